"""Rules of the API: object -> list of field errors. One module per kind; `field` has errors and paths."""

from muster.api.validation.field import FieldError, Path, Type

__all__ = ["FieldError", "Path", "Type"]

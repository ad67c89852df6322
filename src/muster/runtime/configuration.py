"""Reads the configuration file of `muster scheduler`, in whichever of the two forms it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from muster.runtime import kubesettings, settings
from muster.runtime.documents import DocumentError, read
from muster.runtime.fields import Field, Wrong
from muster.runtime.settings import Settings

FORMS = {
    (settings.API_VERSION, settings.KIND): settings.read_own,
    (kubesettings.API_VERSION, kubesettings.KIND): kubesettings.read_settings,
}


def load_settings(path: Path) -> Settings:
    """
    Raises:
        Wrong: names the field and what to write.
    """
    try:
        documents = read(path)
    except DocumentError as error:
        raise Wrong(str(error)) from None
    if len(documents) != 1:
        raise Wrong(f"{path}: has {len(documents)} documents; a configuration is one")
    root = Field(documents[0].value, f"{path}: ")
    if not isinstance(root.value, Mapping):
        raise Wrong(f"{path}: must be a mapping that begins with apiVersion and kind")
    version, kind = root.at("apiVersion"), root.at("kind")
    for form, read_form in FORMS.items():
        if (version.value, kind.value) == form:
            return read_form(root, path)
    known = " or ".join(f"{version} {kind}" for version, kind in FORMS)
    wrong = kind if version.value in [version for version, _ in FORMS] else version
    raise wrong.wrong(f"{repr(wrong.value) if wrong.given else 'missing'}; a configuration is {known}")

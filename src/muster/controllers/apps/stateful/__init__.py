"""The StatefulSet controller."""

from muster.controllers.apps.stateful.controller import StatefulSets

__all__ = ["StatefulSets"]

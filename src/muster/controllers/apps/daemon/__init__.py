"""The DaemonSet controller."""

from muster.controllers.apps.daemon.controller import DaemonSets

__all__ = ["DaemonSets"]

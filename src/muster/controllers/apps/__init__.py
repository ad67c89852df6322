"""The controllers of group apps."""

from muster.controllers.apps.replicasets import ReplicaSets

__all__ = ["ReplicaSets"]

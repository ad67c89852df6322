"""The controllers of group apps."""

from muster.controllers.apps.daemon import DaemonSets
from muster.controllers.apps.deployments import Deployments
from muster.controllers.apps.replicasets import ReplicaSets
from muster.controllers.apps.stateful import StatefulSets

__all__ = ["DaemonSets", "Deployments", "ReplicaSets", "StatefulSets"]

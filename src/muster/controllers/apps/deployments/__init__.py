"""The Deployment controller."""

from muster.controllers.apps.deployments.controller import Deployments

__all__ = ["Deployments"]

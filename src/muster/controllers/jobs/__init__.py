"""The Job controller."""

from muster.controllers.jobs.controller import Jobs

__all__ = ["Jobs"]

"""Expressions in the Common Expression Language, as Kubernetes extends it. Entry point: `programs.compiled`."""

"""Muster: a workload-aware scheduler for Kubernetes accelerators."""

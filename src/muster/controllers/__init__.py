"""The parts of Kubernetes around a scheduler, as machines without I/O."""

"""How the workloads of known controllers look to the builder."""

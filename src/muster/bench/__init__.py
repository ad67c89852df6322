"""Named workload shapes with figures and targets: `run(shapes, nodes, as_json)`."""

from muster.bench.suite import UnknownShape, run

__all__ = ["UnknownShape", "run"]

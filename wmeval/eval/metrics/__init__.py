"""Metrics as pure functions; `METRICS` names them all."""

from wmeval.eval.metrics.table import METRICS, NEEDS_WEIGHTS, Metric, Weighted

__all__ = ["METRICS", "NEEDS_WEIGHTS", "Metric", "Weighted"]

"""Statistics of private records, with intervals, from the same budget as models."""

from ._descriptive import count, mean, std, sum, var  # noqa: A004
from ._quantiles import median, min_max, quantile
from ._result import Estimate

__all__ = [
    "Estimate",
    "count",
    "mean",
    "median",
    "min_max",
    "quantile",
    "std",
    "sum",
    "var",
]

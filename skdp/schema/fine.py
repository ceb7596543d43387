"""Edges of public cells that are finer than bins: one cell for each value of a grid, or 1 % of the value wide."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Logarithmic cells have this width, relative to their values.
LOG_WIDTH = 0.01


def step_edges(low: float, high: float, step: float) -> Array:
    """Return edges between values that are at whole numbers of steps from the lower bound."""
    return low + step * (np.arange(math.floor((high - low) / step) + 1, dtype=np.float64) + 0.5)


def log_edges(low: float, high: float, unit: float) -> Array:
    """Return edges of cells whose width is 1 % of their values, but no less than `unit` around 0."""
    # Smaller values are in cells of width `unit`, with multiples of `unit` in their middle.
    start = max(unit / LOG_WIDTH, low)
    below = unit * (np.arange(math.ceil(1 / LOG_WIDTH), dtype=np.float64) + 0.5)
    reach = max(abs(low), abs(high), start)
    n = math.ceil(math.log(reach / start) / math.log1p(LOG_WIDTH))
    sizes = np.concatenate([below, start * (1 + LOG_WIDTH) ** np.arange(n + 1)])
    return np.concatenate([-sizes[::-1], sizes])

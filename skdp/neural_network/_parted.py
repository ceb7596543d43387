"""Sums of clipped gradients of a network over rows in one place or in parts: the same bits."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..parts.arrays import PartedArray
from ..parts.objects import KeptObjects
from ..sensitivity import ExactTotal
from ._gradients import GradientSums

Array = NDArray[np.float64]


class PartedSums:
    """Sum clipped gradients over rows in parts, as `GradientSums` does. `make` returns the sums over rows of a part."""

    def __init__(self, make: Any, X: PartedArray, targets: PartedArray) -> None:
        self._parts = KeptObjects(make, (X, targets), _n_rows)
        self.n_rows = self._parts.n_rows
        self._own: GradientSums = self._parts.without_rows
        self._weights = np.empty(0)

    def at(self, weights: Array) -> None:
        """Choose the point at which gradients are taken."""
        self._weights = weights.copy()
        self._own.at(weights)

    def sum(self, rows: NDArray[np.intp] | None, out: Array) -> Array:
        """Add up the clipped gradients of some rows (all if None) into `out`, of shape (layout.size,)."""
        limbs = self._parts.sum(partial(_limbs, self._weights), rows)
        ends = np.cumsum(self._own.sizes)[:-1]
        totals = [ExactTotal.of(part) for part in np.split(limbs, ends, axis=1)]
        return self._own.rounded(totals, self.n_rows if rows is None else len(rows), out)


def sums_of(make: Any, X: Any, targets: Any) -> GradientSums | PartedSums:
    """Return the sums of clipped gradients over rows, for which `make` returns the sums over rows in one place."""
    return PartedSums(make, X, targets) if isinstance(X, PartedArray) else make(X, targets)


def _n_rows(sums: GradientSums) -> int:
    return sums.n_rows


def _limbs(weights: Array, sums: GradientSums, rows: NDArray[np.intp] | None) -> NDArray[np.int64]:
    sums.at(weights)
    return np.hstack([total.limbs for total in sums.exact(rows)])

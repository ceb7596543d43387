"""Exact sums of clipped gradients of linear predictors over sparse rows, equal to those over dense rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ..sensitivity import EXACT_ROWS as INTEGER_ROWS
from ..sensitivity import ClippedRows, ExactTotal, by_entry, sparse_squared_norms, step_of, with_data
from .clipped_gradients import EXACT_ROWS, ClippedGradients
from .losses import GradientLoss

Array = NDArray[np.float64]


def clipped_gradients(
    rows: ClippedRows, targets: NDArray, loss: GradientLoss, max_norm: float, whole: bool = False
) -> ClippedGradients:
    """Return an object that sums clipped gradients over dense or sparse rows (see `ClippedGradients`)."""
    kind = SparseGradients if issparse(rows.source) else ClippedGradients
    return kind(rows, targets, loss, max_norm, whole)


class SparseGradients(ClippedGradients):
    """Sum clipped gradients over sparse records. A record adds at most `max_norm` to a sum, in L2 norm."""

    # Entries of rows, weights and derivatives are integers of 64 bits, in units of their steps. Their sums are exact
    # over more rows than sums of doubles are.

    def __init__(
        self, rows: ClippedRows, targets: NDArray, loss: GradientLoss, max_norm: float, whole: bool = False
    ) -> None:
        X = rows.source
        self._n_rows = X.shape[0]
        self._prepare(rows.norm, X.shape[1], loss)
        self._targets = None if loss.signed else targets
        data = np.trunc(X.data * (1 / self._row_step))
        if loss.signed:
            data *= by_entry(X, np.where(targets == 1, -1.0, 1.0))
        lengths = np.sqrt(sparse_squared_norms(with_data(X, data))) * self._row_step
        self._bounds = self._bounds_of(lengths, max_norm)
        self._rows: Any = with_data(X, data.astype(np.int64))
        self._block = min(max(X.shape[0], 1), INTEGER_ROWS)
        self._few = np.empty((3, self._block if loss.outputs > 1 else 0))

    def total(self, weights: Array, rows: NDArray[np.intp] | None = None, lattice: float | None = None) -> Array:
        n_rows = self._rows.shape[0] if rows is None else len(rows)
        unit = self._unit * self._row_step
        step = step_of(max(float(np.abs(weights).max()), self._least_weight), self._weight_bits)
        integers = (weights * (1 / step)).astype(np.int64)
        total = ExactTotal(weights.size)
        for start in range(0, n_rows, self._block):
            positions: Any = slice(start, min(start + self._block, n_rows))
            chosen = positions if rows is None else rows[positions]
            block = self._rows if rows is None and positions.stop - start == self._rows.shape[0] else self._rows[chosen]
            z = np.ascontiguousarray((block @ integers.T).T).astype(np.float64)
            z *= step * self._row_step
            self._differentiate(z, self._bounds[chosen], None if self._targets is None else self._targets[chosen])
            total.add_integers(np.ascontiguousarray((block.T @ z.astype(np.int64).T).T).ravel())
        bits = 0
        # A sum over fewer rows is not rounded, as for dense rows.
        if n_rows > EXACT_ROWS and lattice is not None and lattice > unit:
            bits = math.frexp(lattice)[1] - math.frexp(unit)[1]
        out: Array = total.nearest(bits) * (math.ldexp(unit, bits))
        return out.reshape(weights.shape)

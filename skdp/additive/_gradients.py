r"""Sums of clipped gradients over the records of an additive model, exact, from the cells that records are in.

A record's features are the rows of its cells. So predictors are sums of tables with an entry for each cell, and the sum
of gradients follows from the sums of derivatives in each cell: no record's features are ever written down. Entries of
rows are integers of 20 bits times a power of two, rounded towards 0, which makes no row longer; weights and derivatives
have as many bits as keep everything exact (see :mod:`skdp.solvers.clipped_gradients`, whose sums over dense rows
these are).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..schema.columns import Codes
from ..sensitivity import augmented_norm, step_of, truncate
from ..solvers.clipped_gradients import EXACT_ROWS, ClippedGradients
from ..solvers.losses import GradientLoss
from ._terms import ROW_BITS, Layout

Array = NDArray[np.float64]


class CellGradients(ClippedGradients):
    """Sum clipped gradients over records given by cells; no record adds more than `max_norm`, in L2 norm."""

    def __init__(self, layout: Layout, codes: Codes, targets: NDArray, loss: GradientLoss, max_norm: float) -> None:
        norm = augmented_norm(layout.data_norm, layout.constant)
        self._prepare(norm, layout.n_features + 1, loss)
        self._row_step = step_of(max(1.0, layout.constant), ROW_BITS)
        self._cells = [truncate(term.rows.copy(), self._row_step) for term in layout.terms]
        self._constant = float(truncate(np.array([layout.constant]), self._row_step)[0])
        self._slices = layout.slices
        self._codes = codes
        self._rows = targets
        self._targets = None if loss.signed else targets
        self._signs = np.where(targets == 1, -1.0, 1.0) if loss.signed else None
        self._block = EXACT_ROWS
        most = max(self._n_columns, loss.outputs) * 2.0**-50
        self._most = max_norm * (1 - max(2.0**-40, most)) / norm / self._unit
        if loss.outputs == 1:
            self._most = min(self._most, self._most_derivative)
        self._few = np.empty((3, self._block))

    def _block_total(self, weights: Array, start: int, count: int, rows: NDArray[np.intp] | None) -> Array:
        assert rows is None
        part = slice(start, start + count)
        z = np.empty((self._loss.outputs, count))
        z[:] = self._constant * weights[:, -1:]
        codes = [own[part] for own in self._codes]
        for own, cells, where in zip(codes, self._cells, self._slices, strict=True):
            table = weights[:, where] @ cells.T
            for output, values in zip(z, table, strict=True):
                output += values.take(own)
        if self._signs is not None:
            z *= self._signs[part]
        self._loss.differentiate(z, None if self._targets is None else self._targets[part])
        z *= 1 / self._unit
        if self._loss.outputs == 1:
            np.minimum(z, self._most, out=z)
            np.maximum(z, -self._most, out=z)
        else:
            z *= self._factors(z, np.broadcast_to(self._most, count))
        np.trunc(z, out=z)
        if self._signs is not None:
            z *= self._signs[part]
        total = np.empty((len(z), self._n_columns))
        for output, sums in zip(z, total, strict=True):
            for own, cells, where in zip(codes, self._cells, self._slices, strict=True):
                sums[where] = np.bincount(own, weights=output, minlength=len(cells)) @ cells
            sums[-1] = self._constant * output.sum()
        total *= self._unit
        return total

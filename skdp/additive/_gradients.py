r"""Sums of clipped gradients over the records of an additive model, exact, from the cells that records are in.

A record's features are the rows of its cells. So predictors are sums of tables with an entry for each cell, and the sum
of gradients follows from the sums of derivatives in each cell: no record's features are ever written down. Entries of
rows are integers of 20 bits times a power of two, rounded towards 0, which makes no row longer; weights and derivatives
have as many bits as keep everything exact (see :mod:`skdp.solvers.clipped_gradients`, whose sums over dense rows
these are).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..schema.columns import Codes
from ..sensitivity import augmented_norm, step_of, truncate
from ..solvers.clipped_gradients import EXACT_ROWS, ClippedGradients
from ..solvers.losses import GradientLoss
from ._groups import Centred
from ._joint import Bundles
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
        # No record is longer than the norm.
        self._follow(codes, targets, loss)
        most = max(self._n_columns, loss.outputs) * 2.0**-50
        self._most: Any = max_norm * (1 - max(2.0**-40, most)) / norm / self._unit
        if loss.outputs == 1:
            self._most = min(self._most, self._most_derivative)

    def _follow(self, codes: Codes, targets: NDArray, loss: GradientLoss) -> None:
        self._bundles = Bundles(codes, self._sizes())
        self._point: Array | None = None
        self._joint: list[Array] = []
        self._rows = targets
        self._targets = None if loss.signed else targets
        self._signs = np.where(targets == 1, -1.0, 1.0) if loss.signed else None
        self._block = EXACT_ROWS
        self._few = np.empty((3, self._block))

    def _tables(self, weights: Array) -> list[Array]:
        """Return what each cell of each term adds to predictors, of shape (outputs, n_cells + 1)."""
        return [weights[:, where] @ cells.T for cells, where in zip(self._cells, self._slices, strict=True)]

    def _of_cells(self, sums: list[Array]) -> Array:
        """Return the sum of weighted rows from the sums of weights by term and cell."""
        return np.hstack([own @ cells for own, cells in zip(sums, self._cells, strict=True)])

    def _sizes(self) -> list[int]:
        return [len(cells) for cells in self._cells]

    def _block_total(self, weights: Array, start: int, count: int, rows: NDArray[np.intp] | None) -> Array:
        assert rows is None
        part = slice(start, start + count)
        z = np.empty((self._loss.outputs, count))
        z[:] = self._constant * weights[:, -1:]
        bundles = self._bundles
        if weights is not self._point:
            # All blocks of a step have the same tables.
            self._point, self._joint = weights, bundles.tables(self._tables(weights))
        codes = [own[part] for own in bundles.codes]
        for own, table in zip(codes, self._joint, strict=True):
            for output, values in zip(z, table, strict=True):
                output += values.take(own)
        if self._signs is not None:
            z *= self._signs[part]
        self._loss.differentiate(z, None if self._targets is None else self._targets[part])
        z *= 1 / self._unit
        most = np.broadcast_to(self._most if np.ndim(self._most) == 0 else self._most[part], count)
        if self._loss.outputs == 1:
            np.minimum(z, most, out=z)
            np.maximum(z, -most, out=z)
        else:
            z *= self._factors(z, most)
        np.trunc(z, out=z)
        if self._signs is not None:
            z *= self._signs[part]
        sums: list[Any] = [
            np.stack([np.bincount(own, weights=output, minlength=size) for output in z])
            for own, size in zip(codes, bundles.sizes, strict=True)
        ]
        total: Array = np.hstack([self._of_cells(bundles.by_term(sums)), self._constant * z.sum(axis=1, keepdims=True)])
        total *= self._unit
        return total


class CentredGradients(CellGradients):
    """The same for features that released counts have centred: each record is clipped by its own length."""

    # Centred indicators are written as a multiple of the cell's own one, less a row that all cells share. Both are
    # rounded towards 0, and the products of sums with either have as few bits as those with rows.

    def __init__(
        self,
        features: Centred,
        codes: Codes,
        targets: NDArray,
        loss: GradientLoss,
        max_norm: float,
    ) -> None:
        layout = features.layout
        self._layout = layout
        longest = [
            scale if rows is None else math.sqrt(float((rows**2).sum(axis=1).max(initial=0.0)))
            for rows, scale in zip(features.rows, features.scales, strict=True)
        ]
        norm = math.hypot(layout.constant, *longest) * math.sqrt(2)
        self._prepare(norm, layout.n_features + 1, loss)
        self._row_step = step_of(max(layout.constant, *longest), ROW_BITS)

        def rounded(values: Any) -> Array:
            return truncate(np.array(values, dtype=np.float64), self._row_step)

        self._constant = float(rounded([layout.constant])[0])
        self._parts = [
            (rounded([scale])[0], rounded(scale * shares)) if rows is None else (None, rounded(rows))
            for rows, scale, shares in zip(features.rows, features.scales, features.shares, strict=True)
        ]
        self._follow(codes, targets, loss)
        squares = np.full(codes.shape[1], self._constant**2)
        lengths = [np.zeros(size) for size in self._sizes()]
        for group, (own, rows) in zip(layout.groups, self._parts, strict=True):
            of_bins = (rows**2).sum(axis=1) if own is None else (own - rows) ** 2 + ((rows**2).sum() - rows**2)
            lengths[group.term][:-1] += of_bins[group.bins]
        for cells, of_cells in zip(codes, lengths, strict=True):
            squares += of_cells.take(cells)
        self._most = self._bounds_of(np.sqrt(squares), max_norm)

    def _sizes(self) -> list[int]:
        return [size + 1 for size in self._layout.sizes]

    def _tables(self, weights: Array) -> list[Array]:
        out = [np.zeros((len(weights), size)) for size in self._sizes()]
        for group, where, (own, rows) in zip(self._layout.groups, self._layout.slices, self._parts, strict=True):
            coef = weights[:, where]
            values = coef @ rows.T if own is None else own * coef - (coef @ rows)[:, None]
            out[group.term][:, :-1] += values[:, group.bins]
        return out

    def _of_cells(self, sums: list[Array]) -> Array:
        parts = []
        for group, (own, rows) in zip(self._layout.groups, self._parts, strict=True):
            in_cells = sums[group.term][:, :-1]
            found: Any = np.stack([np.bincount(group.bins, weights=one, minlength=group.size) for one in in_cells])
            if own is None:
                parts.append(found @ rows)
            else:
                parts.append(own * found - found.sum(axis=1, keepdims=True) * rows)
        return np.hstack(parts)

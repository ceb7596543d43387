r"""Exact sums of clipped gradients over the records of an additive model, from the bins of the records.

The features of a record follow from its bins. Therefore predictors are sums of tables with an entry for each bin, and
the sum of gradients follows from the sums of derivatives in each bin. The features of records are never stored.
Entries of rows are integers of 20 bits times a power of two, rounded towards 0, so that no row becomes longer. Weights
and derivatives have few enough bits that all sums are exact, as in :mod:`skdp.solvers.clipped_gradients`, which
computes the same sums over dense rows. Sums of derivatives in cells are exact for 2**33 records. In each step, they are
split into parts of few bits before they are multiplied by rows.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..schema.columns import Codes
from ..sensitivity import ExactTotal, bits_left, step_of, truncate
from ..solvers.clipped_gradients import EXACT_ROWS, ClippedGradients
from ..solvers.losses import GradientLoss, Huber
from ._groups import Centred
from ._joint import BLOCK, Bundles
from ._terms import ROW_BITS, sums_of_values

Array = NDArray[np.float64]


class CellGradients(ClippedGradients):
    """Sum clipped gradients over records given by their bins. Each record adds at most `max_norm` in L2 norm."""

    # A centred indicator is a multiple of the cell's own indicator, minus a row that all cells share. Both are
    # rounded towards 0, and the products of sums with both have as few bits as the products with rows.

    def __init__(
        self,
        features: Centred,
        loss: GradientLoss,
        max_norm: float,
        codes: Codes,
        targets: NDArray,
        start: Array | None = None,
    ) -> None:
        # Scores in `start`, of shape (n_rows, outputs), are added to those of the features.
        self._start = None if start is None else np.ascontiguousarray(start.T)
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
        self._parts = []
        for group, rows, scale in zip(layout.groups, features.rows, features.scales, strict=True):
            shared = scale * features.probabilities[group.term]
            self._parts.append((rounded([scale])[0], rounded(shared)) if rows is None else (None, rounded(rows)))
        sizes = [size + 1 for size in layout.sizes]
        self._follow(codes, targets, loss, sizes)
        ends = np.cumsum([0, *(group.size for group in layout.groups)]).tolist()
        self._of_group = [slice(a, b) for a, b in pairwise(ends)]
        bins = [self._of_term[group.term].start + np.arange(group.size) for group in layout.groups]
        places = np.concatenate(bins), np.arange(ends[-1])
        # A row for each bin has ones for the bin in the groups of its term.
        self._bins = csr_array((np.ones(len(places[0])), places), shape=(sum(sizes), ends[-1]))
        self._in_bins = self._bins.T
        in_bins = [
            (rows**2).sum(axis=1) if own is None else (own - rows) ** 2 + ((rows**2).sum() - rows**2)
            for own, rows in self._parts
        ]
        lengths = self._bins @ np.concatenate(in_bins)
        squares = sums_of_values([lengths[where] for where in self._of_term], self._constant**2, codes)
        self._most = self._bounds_of(np.sqrt(squares, out=squares), max_norm)

    def _follow(self, codes: Codes, targets: NDArray, loss: GradientLoss, sizes: list[int]) -> None:
        self._bundles = Bundles(codes, sizes)
        ends = np.cumsum([0, *sizes]).tolist()
        self._of_term = [slice(a, b) for a, b in pairwise(ends)]
        # Products of rows and of parts of so many bits are exact. Rows of centred indicators have two parts.
        self._part_bits = bits_left(ROW_BITS, 2 * ends[-1])
        self._n_rows = len(targets)
        self._targets = None if loss.signed else targets
        self._signs = np.where(targets == 1, -1.0, 1.0) if loss.signed else None
        # The derivative of Huber's loss is the clipped residual. It is clipped once, in units of its step.
        self._in_units = targets * (1 / self._unit) if isinstance(loss, Huber) and loss.outputs == 1 else None
        self._few = np.empty((3, BLOCK))

    def _values(self, weights: Array) -> Array:
        by_bin = np.empty((self._bins.shape[1], len(weights)))
        for own, where, (scale, rows) in zip(self._of_group, self._layout.slices, self._parts, strict=True):
            coef = weights[:, where].T
            by_bin[own] = rows @ coef if scale is None else scale * coef - rows @ coef
        values: Array = self._bins @ by_bin
        return values

    def _of_cells(self, sums: Array) -> Array:
        by_bin = self._in_bins @ sums
        out = np.empty((sums.shape[1], self._n_columns - 1))
        for own, where, (scale, rows) in zip(self._of_group, self._layout.slices, self._parts, strict=True):
            found = by_bin[own].T
            out[:, where] = found @ rows if scale is None else scale * found - found.sum(axis=1, keepdims=True) * rows
        return out

    def total(self, weights: Array, rows: NDArray[np.intp] | None = None, lattice: float | None = None) -> Array:
        """Sum the clipped gradients of all records at a rounded point; see `ClippedGradients.total`."""
        if self.n_rows > EXACT_ROWS:
            return self.rounded(self.exact(weights, rows), self.n_rows, lattice)
        return self._in_features(self._by_cell(weights, rows)) * self._unit

    def exact(self, weights: Array, rows: NDArray[np.intp] | None = None) -> ExactTotal:
        """Sum the clipped gradients of all records without rounding, in units of their step."""
        left = self._by_cell(weights, rows)
        exact = ExactTotal(self._loss.outputs * self._n_columns)
        for bits in range(0, int(self._most_derivative * max(self.n_rows, 1)).bit_length(), self._part_bits):
            above = np.trunc(left * 2.0**-self._part_bits)
            found = self._in_features(left - above * 2.0**self._part_bits)
            exact.add(found.ravel() * (1 / self._row_step), bits)
            left = above
        return exact

    def _by_cell(self, weights: Array, rows: NDArray[np.intp] | None) -> Array:
        """Return the sums of clipped derivatives in units of their step, of shape (n_cells, outputs)."""
        assert rows is None
        bundles, outputs = self._bundles, self._loss.outputs
        tables = bundles.tables(self._values(weights))
        # A record is in one joint cell of the first bundle.
        tables[:, : bundles.sizes[0]] += self._constant * weights[:, -1:]
        if self._in_units is not None:
            tables *= 1 / self._unit
        in_joint = np.zeros_like(tables)
        first = 0
        for block, transposed in bundles.blocks:
            part = slice(first, first + block.shape[0])
            z = np.empty((outputs, block.shape[0]))
            for k, table in enumerate(tables):
                z[k] = block @ table
            self._clip_derivatives(z, part)
            for sums, output in zip(in_joint, z, strict=True):
                sums += transposed @ output
            first = part.stop
        return bundles.by_cell(in_joint)

    def _in_features(self, sums: Array) -> Array:
        # All records are in a cell of the first term, or in its last cell, which stands for no cell.
        whole = sums[self._of_term[0]].sum(axis=0)
        return np.column_stack([self._of_cells(sums), self._constant * whole])

    def _clip_derivatives(self, z: Array, part: slice) -> None:
        """Replace predictors of a block of records by clipped derivatives, in units of their step."""
        most = self._most[part]
        if self._start is not None:
            z += self._start[:, part] * (1.0 if self._in_units is None else 1 / self._unit)
        if self._in_units is not None:
            z -= self._in_units[part]
        else:
            if self._signs is not None:
                z *= self._signs[part]
            self._loss.differentiate(z, None if self._targets is None else self._targets[part])
            z *= 1 / self._unit
        if self._loss.outputs == 1:
            np.minimum(z, most, out=z)
            np.maximum(z, np.negative(most, out=self._few[0, : z.shape[1]]), out=z)
        else:
            z *= self._factors(z, most)
        np.trunc(z, out=z)
        if self._signs is not None:
            z *= self._signs[part]

r"""Centred features of the bins of columns, in groups, and exact sums of clipped gradients over records.

An ordered column has two groups of features: steps between its bins, and an indicator for each bin. A column of
categories has one group of indicators. The features of each group have mean 0 by the released counts. The weight of
each group follows from the norms of its rows.

The features of a record follow from its bins. Therefore predictors are sums of tables with an entry for each bin, and
the sum of gradients follows from the sums of derivatives in each bin. The features of records are never stored. Entries
of rows are integers of 20 bits times a power of two, rounded towards 0, so that no row becomes longer. Weights and
derivatives have few enough bits that all sums are exact, as in :mod:`skdp.solvers.clipped_gradients`, which computes
the same sums over dense rows. Each record is looked up and counted once for all terms of a bundle. Sums of derivatives
in cells are exact for 2**33 records. In each step, they are split into parts of few bits before they are multiplied by
rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..schema.columns import Codes, Columns, code_type
from ..sensitivity import ExactTotal, bits_left, step_of, truncate
from ..solvers.clipped_gradients import EXACT_ROWS, ClippedGradients
from ..solvers.losses import GradientLoss, Huber
from ..solvers.regularised import INTERCEPT_CONSTANT
from ._cells import ROW_BITS, Places, Term, of_columns, smoothed_shares, steps, sums_of_values

Array = NDArray[np.float64]

#: Lower limit on the mean square of a group's rows in weights of groups. If nearly all records share a bin, the noise
#: in other bins must not be scaled up.
LEAST_SQUARE = 0.2

#: More indicators of a column are treated one by one, because matrices of all of them would take too long.
MOST_TOGETHER = 512


@dataclass(frozen=True, eq=False)
class Group:
    """Features of a column: a row for each bin, or indicators of the bins if `rows` is None."""

    term: int
    size: int  # Number of bins.
    share: float  # Its default weight.
    rows: Array | None = None

    @property
    def width(self) -> int:
        return self.size if self.rows is None else self.rows.shape[1]

    @property
    def factor(self) -> float:
        """Norm of the indicators. Their distances are those of the corners of a simplex of radius 1."""
        return math.sqrt(self.size / (self.size - 1)) if self.rows is None and self.size > 1 else 1.0


@dataclass(frozen=True, eq=False)
class GroupedLayout:
    """The columns, their bins and groups of features, and the constant feature."""

    terms: tuple[Term, ...]
    groups: tuple[Group, ...]
    bins: tuple[Places, ...]  # For each column, the bin of each cell.
    ordered: tuple[bool, ...]

    @classmethod
    def of(cls, columns: Columns, bins: tuple[Places, ...], smoothness: float) -> GroupedLayout:
        """Return the groups of all columns. `smoothness` is the weight of steps in ordered columns."""
        groups = []
        for j, (column, ordered) in enumerate(zip(bins, columns.ordered, strict=True)):
            n_bins = int(column.max(initial=-1)) + 1
            of_steps = 0.0 if not ordered else smoothness if n_bins > 2 else 1.0
            if of_steps > 0:
                groups.append(Group(j, n_bins, of_steps, steps(n_bins)))
            if of_steps < 1:
                groups.append(Group(j, n_bins, 1 - of_steps))
        return cls(of_columns([len(column) for column in bins]), tuple(groups), bins, columns.ordered)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of bins of each column."""
        return tuple(int(column.max(initial=-1)) + 1 for column in self.bins)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Slices of the features of each group."""
        ends = np.cumsum([0, *(group.width for group in self.groups)]).tolist()
        return tuple(slice(a, b) for a, b in pairwise(ends))

    @property
    def n_features(self) -> int:
        """Number of features, without the constant."""
        return self.slices[-1].stop

    @property
    def data_norm(self) -> float:
        """Root mean square of the records' norms, by the released counts, without the constant."""
        return math.sqrt(len(self.terms))

    @property
    def constant(self) -> float:
        """The constant feature."""
        return INTERCEPT_CONSTANT * self.data_norm

    def codes(self, codes: Codes) -> Codes:
        """Return the bin of each record in each column, from its cells. Other entries get the number after the last."""
        bins_of_records = np.empty(codes.shape, dtype=code_type(max(self.sizes)))
        for out, cells, bins, size in zip(bins_of_records, codes, self.bins, self.sizes, strict=True):
            np.take(np.append(bins, size).astype(bins_of_records.dtype), cells, out=out)
        return bins_of_records

    def probabilities(self, counts: list[Array], noise: float) -> list[Array]:
        """Return shares of records in the bins of columns, from released counts in cells with noise of this size."""
        shares = (smoothed_shares(numbers, kind, noise) for numbers, kind in zip(counts, self.ordered, strict=True))
        return [np.asarray(np.bincount(bins, weights)) for bins, weights in zip(self.bins, shares, strict=True)]


@dataclass(frozen=True, eq=False)
class Centred:
    """Centred features with a weight for each group, whose mean squared norm is at most `layout.data_norm` squared."""

    layout: GroupedLayout
    probabilities: list[Array]  # Shares of records in the bins of each column.
    rows: tuple[Array | None, ...]  # Centred rows of each group's bins, times the root of its weight.
    scales: tuple[float, ...]  # For indicators: their length.

    @classmethod
    def of(cls, layout: GroupedLayout, probabilities: list[Array]) -> Centred:
        """Return the features, with weights in proportion to the default weights over the root of mean squares."""
        squares = np.maximum(_mean_squares(layout, probabilities), LEAST_SQUARE)
        weights = np.array([group.share for group in layout.groups]) / np.sqrt(squares)
        weights *= layout.data_norm**2 / float(weights @ squares)
        rows: list[Array | None] = []
        scales = []
        for group, weight in zip(layout.groups, weights, strict=True):
            shares = probabilities[group.term]
            scales.append(group.factor * math.sqrt(weight))
            rows.append(None if group.rows is None else (group.rows - shares @ group.rows) * math.sqrt(weight))
        return cls(layout, probabilities, tuple(rows), tuple(scales))

    def tables(self, theta: Array) -> list[Array]:
        """Return the value that each bin of each column adds to a score, for the coefficients of one output."""
        out = [np.zeros(len(shares)) for shares in self.probabilities]
        for k, (group, where) in enumerate(zip(self.layout.groups, self.layout.slices, strict=True)):
            rows, coef = self.rows[k], theta[where]
            if rows is not None:
                out[group.term] += rows @ coef
            else:
                out[group.term] += self.scales[k] * (coef - math.fsum(self.probabilities[group.term] * coef))
        return out

    def rows_of_bins(self, t: int) -> tuple[Array, float]:
        """Return the features of a column's bins, or no features and the length of its indicators if these are many."""
        shares = self.probabilities[t]
        parts = []
        for group, rows, scale in zip(self.layout.groups, self.rows, self.scales, strict=True):
            if group.term == t and rows is None and group.size > MOST_TOGETHER:
                return np.empty((group.size, 0)), scale
            if group.term == t:
                parts.append(scale * (np.eye(group.size) - shares) if rows is None else rows)
        return np.hstack(parts), 0.0


def _mean_squares(layout: GroupedLayout, probabilities: list[Array]) -> Array:
    """Return the mean squared norm of each group's centred rows, for a weight of 1."""
    out: list[float] = []
    for group in layout.groups:
        shares = probabilities[group.term]
        if group.rows is None:
            out.append(group.factor**2 * (1 - float(shares @ shares)))
        else:
            out.append(float(shares @ ((group.rows - shares @ group.rows) ** 2).sum(axis=1)))
    return np.array(out)


def spectrum(features: Centred) -> Array:
    """Return eigenvalues of the covariance of the features, for independent columns, by released counts."""
    out: list[Any] = []
    for t, weights in enumerate(features.probabilities):
        rows, length = features.rows_of_bins(t)
        scaled = np.sqrt(weights)[:, None] * rows
        out.append(length**2 * weights if length else np.linalg.svd(scaled, compute_uv=False) ** 2)
    return np.concatenate(out)


#: Number of records of a block. The results for a block fit into the processor's cache.
BLOCK = 2**13

# Largest number of joint cells of a bundle. Tables of this size fit into the processor's cache.
_MOST_CELLS = 2**12


class Bundles:
    """Bundles of terms with few joint cells, and the joint cells of each record, as sparse matrices by block."""

    def __init__(self, codes: Codes, sizes: list[int]) -> None:
        members: list[list[int]] = []
        for t in sorted(range(len(sizes)), key=lambda t: -sizes[t]):
            fitting = (bundle for bundle in members if math.prod(sizes[k] for k in (t, *bundle)) <= _MOST_CELLS)
            bundle = next(fitting, None)
            if bundle is None:
                members.append([t])
            else:
                bundle.append(t)
        self.sizes = [math.prod(sizes[t] for t in bundle) for bundle in members]
        starts = np.cumsum([0, *self.sizes]).astype(np.int32)
        firsts = np.cumsum([0, *sizes])
        # A row for each joint cell has ones for its cells of the terms.
        rows, columns = [], []
        for bundle, start, size in zip(members, starts, self.sizes, strict=False):
            cells = np.unravel_index(np.arange(size), [sizes[t] for t in bundle])
            rows += [start + np.arange(size)] * len(bundle)
            columns += [firsts[t] + of_term for t, of_term in zip(bundle, cells, strict=True)]
        places = np.concatenate(rows), np.concatenate(columns)
        self._cells = csr_array((np.ones(len(places[0])), places), shape=(starts[-1], firsts[-1]))
        self._joint = self._cells.T
        # A row for each record has ones for its joint cells. Blocks differ only in the places of the ones.
        ones = np.ones(BLOCK * len(members))
        ends = np.arange(BLOCK + 1, dtype=np.int32) * np.int32(len(members))
        self.blocks = []
        for first in range(0, codes.shape[1], BLOCK):
            own_codes = codes[:, first : first + BLOCK].astype(np.int32)
            count = own_codes.shape[1]
            joint = np.empty((count, len(members)), dtype=np.int32)
            for k, bundle in enumerate(members):
                joint[:, k] = starts[k] + reduce(lambda bundle, t: bundle * sizes[t] + own_codes[t], bundle, 0)
            block = csr_array((ones[: joint.size], joint.ravel(), ends[: count + 1]), shape=(count, starts[-1]))
            self.blocks.append((block, block.T))

    def tables(self, values: Array) -> Array:
        """Return sums of the values of cells, of shape (n_cells, outputs), by output and joint cell."""
        return np.ascontiguousarray((self._cells @ values).T)

    def by_cell(self, sums: Array) -> Array:
        """Return sums by cell of all terms, of shape (n_cells, outputs), from sums by output and joint cell."""
        return self._joint @ sums.T


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
            (rows**2).sum(axis=1) if bundle is None else (bundle - rows) ** 2 + ((rows**2).sum() - rows**2)
            for bundle, rows in self._parts
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
        self._row_buffers = np.empty((3, BLOCK))

    def _values(self, weights: Array) -> Array:
        by_bin = np.empty((self._bins.shape[1], len(weights)))
        for bins, where, (scale, rows) in zip(self._of_group, self._layout.slices, self._parts, strict=True):
            coef = weights[:, where].T
            by_bin[bins] = rows @ coef if scale is None else scale * coef - rows @ coef
        return self._bins @ by_bin

    def _of_cells(self, sums: Array) -> Array:
        by_bin = self._in_bins @ sums
        out = np.empty((sums.shape[1], self._n_columns - 1))
        for bins, where, (scale, rows) in zip(self._of_group, self._layout.slices, self._parts, strict=True):
            of_group = by_bin[bins].T
            whole = of_group.sum(axis=1, keepdims=True)
            out[:, where] = of_group @ rows if scale is None else scale * of_group - whole * rows
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
            products = self._in_features(left - above * 2.0**self._part_bits)
            exact.add(products.ravel() * (1 / self._row_step), bits)
            left = above
        return exact

    def _by_cell(self, weights: Array, rows: NDArray[np.intp] | None) -> Array:
        """Return the sums of clipped derivatives in units of their step, of shape (n_cells, outputs)."""
        if rows is not None:
            raise ValueError("gradients of cells are sums over all records, and not over samples")
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
            np.maximum(z, np.negative(most, out=self._row_buffers[0, : z.shape[1]]), out=z)
        else:
            z *= self._factors(z, most)
        np.trunc(z, out=z)
        if self._signs is not None:
            z *= self._signs[part]

r"""Groups of public features for the terms of a model whose records have weights.

A column of ordered cells has up to three groups of features: steps at the edges of its bins, one indicator for each
bin, and one indicator for each of its cells, if these are finer than the bins. A column of categories has one group of
indicators. A pair of columns has one group of products, and one group of indicators of finer cells, if there are any.
The features of each group are centred by released counts. The weight of each group follows from the norms of its rows.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..schema.columns import Codes, Columns, code_type
from ..sensitivity import augmented_norm
from ..solvers.regularised import INTERCEPT_CONSTANT
from ._terms import PAIR_CELLS, ROUGHNESS, Layout, Term, cell_rows, merged, product_rows, steps, sums_of_values

Array = NDArray[np.float64]
Cells = NDArray[np.intp]

#: With smoothness="auto": the part of steps in the bins of an ordered column, and the part of its cells without noise.
STEPS, FINE = 0.7, 0.1

#: Weight of an ordered column that has cells finer than its bins. Other columns have the weight 1.
FINE_UNITS = 1.0

#: Largest number of finer cells of one column in a pair, and their part of the pair's weight.
FINE_PAIR_CELLS, FINE_PAIR = 64, 0.5

#: Lower limit on the mean square of a group's rows in default weights.
LEAST_SQUARE = 0.02

#: The product of a record's weight and its squared norm is at most q times the squared norm R. The number q covers this
#: many standard deviations of the squared norm, and is at most the second number.
DEVIATIONS, MOST_RATIO = 2.0, 2.0

#: Approximate mean of the second derivative of the loss, times the weight of the record.
MEAN_CURVATURE = 0.12

#: Part of the default weights in learned weights.
KEPT = 0.1

# Weights of records are rounded down by this number, which far exceeds the rounding error of their norms.
_BELOW = 1 - 2.0**-30


@dataclass(frozen=True, eq=False)
class Group:
    """Features of a term: a row for each bin of its cells, or indicators of the bins if `rows` is None."""

    term: int
    bins: Cells  # The bin of each cell of the term.
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
    """The public features: all terms and groups, and the constant feature."""

    terms: tuple[Term, ...]
    groups: tuple[Group, ...]
    bins: tuple[Cells, ...]  # For each column, the bin of each cell.

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of cells of each term."""
        return tuple(len(term.rows) - 1 for term in self.terms)

    @classmethod
    def of(
        cls,
        columns: Columns,
        coarse: Columns,
        smoothness: float | None,
        noise: float,
        fine: Collection[int] = (),
    ) -> GroupedLayout:
        """Return the groups for columns in cells, and for the same columns in bins."""
        # Columns that are not in `fine` have finer cells in pairs only.
        part = STEPS if smoothness is None else smoothness
        terms, groups = [], []
        bins = [_bins_of_cells(columns, coarse, j) for j in range(columns.n_features)]
        for j, (n_cells, n_bins) in enumerate(zip(columns.sizes, coarse.sizes, strict=True)):
            terms.append(Term((j,), (np.arange(n_cells + 1, dtype=np.int32),), np.empty((n_cells + 1, 0))))
            if not columns.ordered[j]:
                groups.append(Group(j, bins[j], n_cells, 1.0))
                continue
            units = 1.0
            if j in fine:
                part_of_cells = FINE / (1 + noise / 4)
                groups.append(Group(j, np.arange(n_cells), n_cells, FINE_UNITS * part_of_cells))
                units = FINE_UNITS * (1 - part_of_cells)
            of_steps = part if n_bins > 2 else 1.0
            groups.append(Group(j, bins[j], n_bins, units * of_steps, steps(n_bins)))
            groups.append(Group(j, bins[j], n_bins, units * (1 - of_steps)))
        rough = 1 - ROUGHNESS / (1 + noise) if smoothness is None else smoothness
        for pair in coarse.pairs:
            term, own = _pair(columns, bins, pair, rough, len(terms))
            terms.append(term)
            groups += own
        return cls(tuple(terms), tuple(group for group in groups if group.share > 0), tuple(bins))

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Slices of the features of each group."""
        ends = np.cumsum([0, *(group.width for group in self.groups)]).tolist()
        return tuple(slice(a, b) for a, b in pairwise(ends))

    @property
    def n_bins(self) -> int:
        """Number of bins of all columns together."""
        return sum(int(own.max(initial=-1)) + 1 for own in self.bins)

    @property
    def n_features(self) -> int:
        """Number of features, without the constant."""
        return self.slices[-1].stop

    @property
    def data_norm(self) -> float:
        """Root mean square of the records' norms, by the released counts, without the constant."""
        return math.sqrt(len({group.term for group in self.groups}))

    @property
    def constant(self) -> float:
        """The constant feature."""
        return INTERCEPT_CONSTANT * self.data_norm

    @property
    def norm(self) -> float:
        """The norm R. The product of a record's weight and its norm is at most R."""
        return augmented_norm(self.data_norm, self.constant)

    def codes(self, codes: Codes) -> Codes:
        """Return the cell of each record in each term, from its cells in the columns."""
        if all(len(term.columns) == 1 for term in self.terms):
            return codes
        return np.stack([term.codes(codes) for term in self.terms])

    def in_bins(self, codes: Codes, plain: Layout) -> Codes:
        """Return the bin of each record in each term of the layout of the bins, from its cells."""
        columns = zip(self.bins, plain.terms, codes, strict=False)
        own = [np.append(bins, term.shape[0]).astype(code_type(term.shape[0]))[cells] for bins, term, cells in columns]
        return plain.codes(np.stack(own))

    def counts_in_bins(self, counts: list[Array]) -> list[Array]:
        """Return the numbers of records in the bins of each column, from the numbers in cells."""
        found: list[Any] = [np.bincount(bins, weights=own) for bins, own in zip(self.bins, counts, strict=True)]
        return found

    def in_cells(self, values: list[Array], plain: Layout) -> list[Array]:
        """Return values of cells from values of the layout of the bins."""
        out = []
        for own, term, other in zip(values, self.terms, plain.terms, strict=True):
            places: Any = 0
            for j, cells, of_bins in zip(term.columns, term.maps, other.maps, strict=True):
                # A cell of a pair takes the value of its first bin.
                first = np.unique(cells[:-1], return_index=True)[1]
                places = np.add.outer(places * int(of_bins[-1]), of_bins[self.bins[j][first]])
            out.append(own[np.ravel(places)])
        return out

    def probabilities(self, counts: list[Array], noise: float) -> list[Array]:
        """Return shares of records in the cells of the terms, from released counts with noise of this size."""
        by_column = [_shares(own, noise) for own in counts]
        out: list[Any] = []
        for term, size in zip(self.terms, self.sizes, strict=True):
            if len(term.columns) == 1:
                out.append(by_column[term.columns[0]])
                continue
            first, second = (
                np.bincount(own[:-1], by_column[j], minlength=int(own[-1]))
                for own, j in zip(term.maps, term.columns, strict=True)
            )
            out.append(np.outer(first, second).ravel()[:size])
        return out


def _bins_of_cells(columns: Columns, coarse: Columns, j: int) -> Cells:
    """Return the bin of each cell of a column."""
    cells = columns.kinds[j]
    if not columns.ordered[j] or columns.sizes[j] == coarse.sizes[j]:
        return np.arange(columns.sizes[j])
    assert isinstance(cells, np.ndarray)
    return coarse.cells(j, cells[:-1])


def _pair(
    columns: Columns, bins: list[Cells], pair: tuple[int, int], smoothness: float, place: int
) -> tuple[Term, list[Group]]:
    """Return the term of a pair of columns, and its groups: products of merged cells, and indicators of finer cells."""
    maps, wholes, rows = [], [], []
    for j in pair:
        cells, ordered = np.arange(columns.sizes[j]), columns.ordered[j]
        if ordered and len(cells) > FINE_PAIR_CELLS:
            cells = merged(int(bins[j].max()) + 1, FINE_PAIR_CELLS)[bins[j]]
        n_cells = int(cells.max(initial=-1)) + 1
        whole = merged(n_cells, PAIR_CELLS) if ordered else np.arange(n_cells)
        maps.append(np.append(cells, n_cells).astype(np.int32))
        wholes.append(whole)
        rows.append(cell_rows(int(whole.max(initial=-1)) + 1, ordered, smoothness))
    size = len(wholes[0]) * len(wholes[1])
    places: Any = (wholes[0][:, None] * len(rows[1]) + wholes[1]).ravel()
    products = product_rows(rows)
    fine = FINE_PAIR if size > len(products) else 0.0
    term = Term(pair, tuple(maps), np.empty((size + 1, 0)))
    groups = [
        Group(place, places, len(products), 1 - fine, products),
        Group(place, np.arange(size), size, fine),
    ]
    return term, groups


def _shares(counts: Array, noise: float) -> Array:
    kept = np.maximum(counts, 0.0)
    if len(kept) > 20:
        # Most of many cells may be empty, and positive noise in all of them would add up.
        kept = np.maximum(kept - 2 * noise, 0.0)
    added = max(noise, 1.0) / max(len(kept), 1)
    shares: Array = (kept + added) / (kept + added).sum()
    return shares


@dataclass(frozen=True, eq=False)
class Centred:
    """Centred features with a weight for each group, from public and released numbers."""

    layout: GroupedLayout
    probabilities: list[Array]  # Shares of records in the cells of each term.
    rows: tuple[Array | None, ...]  # Centred rows of each group's bins, times the root of its weight.
    scales: tuple[float, ...]  # For indicators: their length.
    shares: tuple[Array, ...]  # Shares of records in the bins of each group.
    weights: Array

    @classmethod
    def of(
        cls, layout: GroupedLayout, probabilities: list[Array], weights: Array, least: float = LEAST_SQUARE
    ) -> Centred:
        """Return the features whose mean squared norm is at most `layout.data_norm` squared."""
        # If nearly all records share a bin of a group, the group is not scaled up further, because the certificate
        # depends on the norms of rows before they are centred.
        shares = _by_bin(layout, probabilities)
        squares = mean_squares(layout, probabilities)
        weights = weights * (layout.data_norm**2 / float(weights @ np.maximum(squares, least)))
        rows: list[Array | None] = []
        scales = []
        for group, own, weight in zip(layout.groups, shares, weights, strict=True):
            scales.append(group.factor * math.sqrt(weight))
            rows.append(None if group.rows is None else (group.rows - own @ group.rows) * math.sqrt(weight))
        return cls(layout, probabilities, tuple(rows), tuple(scales), tuple(shares), weights)

    @classmethod
    def by_default(cls, layout: GroupedLayout, probabilities: list[Array], least: float = LEAST_SQUARE) -> Centred:
        """Return the features for the default weights of groups."""
        weights = default_weights(layout, mean_squares(layout, probabilities), least)
        return cls.of(layout, probabilities, weights, least)

    @cached_property
    def squares(self) -> list[Array]:
        """Squared norm of the features of each cell of each term, and 0 for no cell."""
        out = [np.zeros(size + 1) for size in self.layout.sizes]
        for group, rows, scale, own in zip(self.layout.groups, self.rows, self.scales, self.shares, strict=True):
            lengths = scale**2 * (1 - 2 * own + own @ own) if rows is None else (rows**2).sum(axis=1)
            out[group.term][:-1] += lengths[group.bins]
        return out

    @cached_property
    def length_ratio(self) -> float:
        """The number q, from released counts, for independent columns."""
        variance = 0.0
        for own, squares in zip(self.probabilities, self.squares, strict=True):
            variance += float(own @ squares[:-1] ** 2 - (own @ squares[:-1]) ** 2)
        return min(1 + DEVIATIONS * math.sqrt(max(variance, 0.0)) / self.layout.norm**2, MOST_RATIO)

    def record_weights(self, codes: Codes) -> Array:
        """Return the weight of each record's loss, a function of its own cells and of released numbers."""
        squares = sums_of_values(self.squares, self.layout.constant**2, codes)
        norm = self.layout.norm
        weights: Array = np.minimum(norm / np.sqrt(squares), self.length_ratio * norm**2 / squares)
        return np.minimum(weights, 1.0) * _BELOW

    @cached_property
    def _lengths(self) -> list[float]:
        """Bounds on the sum of the norms of a row before it is centred and of the mean, by group."""
        out = []
        for group, scale, weight in zip(self.layout.groups, self.scales, self.weights, strict=True):
            longest = scale**2 if group.rows is None else weight * float((group.rows**2).sum(axis=1).max(initial=0.0))
            out.append(2 * math.sqrt(longest))
        return out

    @cached_property
    def raw_norm(self) -> float:
        """Bound on the sum of the norms of a record's row before it is centred and of the mean."""
        total = math.sqrt(self.layout.constant**2 + math.fsum(length**2 for length in self._lengths))
        return max(total, MOST_RATIO * self.layout.norm)

    def rounding(self, theta: Array) -> tuple[float, int]:
        """Return bounds on the rounding errors of scores, and the number of terms in sums of cells, in units."""
        error, terms = 0.0, 0
        for group, where, length in zip(self.layout.groups, self.layout.slices, self._lengths, strict=True):
            width = 0 if group.rows is None else group.width
            error += (width + 8) * length * float(np.linalg.norm(theta[where]))
            in_bin = int(np.bincount(group.bins).max(initial=0))
            terms = max(terms, in_bin + width)
        largest = abs(self.layout.constant * theta[-1])
        largest += math.fsum(float(np.abs(values).max()) for values in self.tables(theta[:-1]))
        return error + (len(self.layout.groups) + 8) * largest, terms + 16

    def tables(self, theta: Array) -> list[Array]:
        """Return the value that each cell of each term adds to a score, and 0 for no cell."""
        out = [np.zeros(size + 1) for size in self.layout.sizes]
        for k, (group, where) in enumerate(zip(self.layout.groups, self.layout.slices, strict=True)):
            out[group.term][:-1] += self._values(k, theta[where])[group.bins]
        return out

    def _values(self, k: int, own: Array) -> Array:
        rows = self.rows[k]
        if rows is not None:
            values: Array = rows @ own
            return values
        # The sum is exact, because an error of a long sum would affect each record.
        return self.scales[k] * (own - math.fsum(self.shares[k] * own))

    def adjoint(self, sums: list[Array]) -> Array:
        """Return the sum of weighted rows, without the constant, from the sums of weights by term and cell."""
        parts = []
        for group, rows, scale, shares in zip(self.layout.groups, self.rows, self.scales, self.shares, strict=True):
            own = np.bincount(group.bins, weights=sums[group.term][: len(group.bins)], minlength=group.size)
            parts.append(own @ rows if rows is not None else scale * (own - shares * own.sum()))
        return np.concatenate(parts)

    def bin_rows(self, k: int) -> Array:
        """Return the features of the bins of a group."""
        rows = self.rows[k]
        if rows is not None:
            return rows
        dense: Array = self.scales[k] * (np.eye(len(self.shares[k])) - self.shares[k])
        return dense

    def cell_rows(self, t: int) -> Array:
        """Return the features of the cells of a term, with zeros for other terms and for the constant."""
        out = np.zeros((self.layout.sizes[t], self.layout.n_features + 1))
        for k, (group, where) in enumerate(zip(self.layout.groups, self.layout.slices, strict=True)):
            if group.term == t:
                out[:, where] = self.bin_rows(k)[group.bins]
        return out

    def features(self, codes: Codes) -> Array:
        """Return the features of records, from their cells in the terms, without the constant."""
        out = np.zeros((codes.shape[1], self.layout.n_features))
        for k, (group, where) in enumerate(zip(self.layout.groups, self.layout.slices, strict=True)):
            out[:, where] = self.rows_of_records(k, codes[group.term])
        return out

    def rows_of_records(self, k: int, codes: Codes) -> Array:
        """Return the features of a group, from the records' cells in its term."""
        group, rows = self.layout.groups[k], self.bin_rows(k)
        found: Array = np.vstack([rows, np.zeros((1, group.width))])[np.append(group.bins, group.size)[codes]]
        return found


def _by_bin(layout: GroupedLayout, probabilities: list[Array]) -> list[Array]:
    found: list[Any] = [np.bincount(g.bins, probabilities[g.term], g.size) for g in layout.groups]
    return found


def mean_squares(layout: GroupedLayout, probabilities: list[Array]) -> Array:
    """Return the mean squared norm of each group's centred rows, for a weight of 1."""
    out: list[float] = []
    for group, own in zip(layout.groups, _by_bin(layout, probabilities), strict=True):
        if group.rows is None:
            out.append(group.factor**2 * (1 - float(own @ own)))
        else:
            out.append(float(own @ ((group.rows - own @ group.rows) ** 2).sum(axis=1)))
    return np.array(out)


def default_weights(layout: GroupedLayout, squares: Array, least: float = LEAST_SQUARE) -> Array:
    """Return weights in proportion to the default weights, divided by the root of the mean squares."""
    weights = np.array([group.share for group in layout.groups]) / np.sqrt(np.maximum(squares, least))
    return weights / weights.sum()


def learned_weights(features: Centred, theta: Array, noise: float, count: float) -> Array:
    """Return weights in proportion to the size of each group's released coefficients without their noise."""
    layout = features.layout
    squares = mean_squares(layout, features.probabilities)
    sizes = []
    for k, (group, where) in enumerate(zip(layout.groups, layout.slices, strict=True)):
        own, rows, shares = theta[where], features.rows[k], features.shares[k]
        if rows is not None:
            bends = np.linalg.eigvalsh((rows.T * shares) @ rows)
        else:
            # A number that is added to all coefficients of indicators changes no score.
            own = own - own.mean()
            bends = features.scales[k] ** 2 * shares
        variances = (noise / (1 + MEAN_CURVATURE * count * np.maximum(bends, 0.0))) ** 2
        expected = float(variances.sum()) * (1 if rows is not None else 1 - 1 / group.size)
        sizes.append(math.sqrt(max(float(own @ own) - expected, 0.0) * features.weights[k]))
    found, usual = np.array(sizes), default_weights(layout, squares)
    if not found.sum() > 0:
        return usual
    weights = found / np.sqrt(np.maximum(squares, LEAST_SQUARE))
    return (1 - KEPT) * weights / weights.sum() + KEPT * usual

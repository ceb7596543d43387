r"""Centred features of the bins of columns, in groups, from public and released numbers.

An ordered column has two groups of features: steps between its bins, and an indicator for each bin. A column of
categories has one group of indicators. The features of each group have mean 0 by the released counts. The weight of
each group follows from the norms of its rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..schema.columns import Codes, Columns, code_type
from ..solvers.regularised import INTERCEPT_CONSTANT
from ._cells import Places, smoothed_shares
from ._terms import Term, of_columns, steps

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
        for j, (own, ordered) in enumerate(zip(bins, columns.ordered, strict=True)):
            n_bins = int(own.max(initial=-1)) + 1
            of_steps = 0.0 if not ordered else smoothness if n_bins > 2 else 1.0
            if of_steps > 0:
                groups.append(Group(j, n_bins, of_steps, steps(n_bins)))
            if of_steps < 1:
                groups.append(Group(j, n_bins, 1 - of_steps))
        return cls(of_columns([len(own) for own in bins]), tuple(groups), bins, columns.ordered)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of bins of each column."""
        return tuple(int(own.max(initial=-1)) + 1 for own in self.bins)

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
        found = np.empty(codes.shape, dtype=code_type(max(self.sizes)))
        for out, own, bins, size in zip(found, codes, self.bins, self.sizes, strict=True):
            np.take(np.append(bins, size).astype(found.dtype), own, out=out)
        return found

    def probabilities(self, counts: list[Array], noise: float) -> list[Array]:
        """Return shares of records in the bins of columns, from released counts in cells with noise of this size."""
        shares = (smoothed_shares(own, kind, noise) for own, kind in zip(counts, self.ordered, strict=True))
        return [np.asarray(np.bincount(bins, own)) for bins, own in zip(self.bins, shares, strict=True)]


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
            own = probabilities[group.term]
            scales.append(group.factor * math.sqrt(weight))
            rows.append(None if group.rows is None else (group.rows - own @ group.rows) * math.sqrt(weight))
        return cls(layout, probabilities, tuple(rows), tuple(scales))

    def tables(self, theta: Array) -> list[Array]:
        """Return the value that each bin of each column adds to a score, for the coefficients of one output."""
        out = [np.zeros(len(own)) for own in self.probabilities]
        for k, (group, where) in enumerate(zip(self.layout.groups, self.layout.slices, strict=True)):
            rows, own = self.rows[k], theta[where]
            if rows is not None:
                out[group.term] += rows @ own
            else:
                out[group.term] += self.scales[k] * (own - math.fsum(self.probabilities[group.term] * own))
        return out

    def rows_of_bins(self, t: int) -> tuple[Array, float]:
        """Return the features of a column's bins, or no features and the length of its indicators if these are many."""
        own = self.probabilities[t]
        parts = []
        for group, rows, scale in zip(self.layout.groups, self.rows, self.scales, strict=True):
            if group.term == t and rows is None and group.size > MOST_TOGETHER:
                return np.empty((group.size, 0)), scale
            if group.term == t:
                parts.append(scale * (np.eye(group.size) - own) if rows is None else rows)
        return np.hstack(parts), 0.0


def _mean_squares(layout: GroupedLayout, probabilities: list[Array]) -> Array:
    """Return the mean squared norm of each group's centred rows, for a weight of 1."""
    out: list[float] = []
    for group in layout.groups:
        own = probabilities[group.term]
        if group.rows is None:
            out.append(group.factor**2 * (1 - float(own @ own)))
        else:
            out.append(float(own @ ((group.rows - own @ group.rows) ** 2).sum(axis=1)))
    return np.array(out)


def spectrum(features: Centred) -> Array:
    """Return eigenvalues of the covariance of the features, for independent columns, by released counts."""
    out: list[Any] = []
    for t, weights in enumerate(features.probabilities):
        rows, length = features.rows_of_bins(t)
        scaled = np.sqrt(weights)[:, None] * rows
        out.append(length**2 * weights if length else np.linalg.svd(scaled, compute_uv=False) ** 2)
    return np.concatenate(out)

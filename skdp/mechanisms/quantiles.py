r"""Quantiles of columns, by the exponential mechanism on a public grid.

Let :math:`r(o)` be the number of records below edge :math:`o`, and :math:`k/m` a public level. Choosing :math:`o` with
probability proportional to :math:`\exp(-\varepsilon\,|m r(o) - k n| / (2 \max(k, m - k)))` is :math:`\varepsilon`-DP
and :math:`\varepsilon`-bounded-range, for any public weights by which probabilities are multiplied. Scores are
integers, and are computed exactly. Further quantiles are drawn on both sides of an earlier one, and a depth of cuts
costs as much as one cut (Kaplan, Schnapp and Stemmer 2022). This also holds for groups of records with a smaller
exponent, and for records that count by shares. The proofs are on the page *Theorems next to the code* of the
documentation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._base import BitStream, Mechanism, NoNoise
from .selection import ExponentialMechanism

Levels = tuple[int, ...]

# Penalties of weights stay below this, and all scores stay below 2**53, where doubles are exact. This leaves room for
# the ranks of 4e11 records.
_MOST_PENALTY = 2.0**52


def even_levels(depth: int) -> tuple[Levels, int]:
    """Return the levels of bisection, 1, ..., ``2**depth - 1``, and their common denominator."""
    return tuple(range(1, 2**depth)), 2**depth


def quantile_depth(n_levels: int) -> int:
    """Return the number of cuts that one record can affect: the depth of the balanced tree of cuts."""
    return n_levels.bit_length()


def quantile_scores(counts: NDArray[np.float64], level: int, whole: int) -> NDArray[np.float64]:
    """Return the scores of all edges of a part of the grid, including its ends, for the quantile ``level / whole``.

    They are integers: minus the distance of the rank from that of the quantile, times `whole`. One record moves them by
    at most ``max(level, whole - level)``.
    """
    below = np.concatenate([[0.0], np.cumsum(counts)])
    return -np.abs(whole * below - level * below[-1])


def weight_penalties(weights: NDArray[np.float64], change: float, epsilon: float) -> NDArray[np.float64]:
    """Return the penalties of scores for public weights, which are given by their logarithms.

    They are integers from 0 to ``2**52``, in the proportions of the weights. If weights are evenly spaced, a smaller
    weight has a penalty that is larger by at least 1, for every epsilon. `change` is the largest change of a score by
    one record, and `epsilon` the guarantee of the cut.
    """
    below = weights.max() - weights
    if not below.any():
        return below
    rate = min(2 * change / epsilon, _MOST_PENALTY / below.max())
    steps = np.unique(below, return_inverse=True)[1].reshape(below.shape)
    return np.maximum(np.rint(below * rate), steps)


def _edges(
    counts: ArrayLike,
    levels: Levels,
    whole: int,
    choose: Callable[[NDArray[np.float64], NDArray[np.float64], int], int],
    weights: tuple[float, ...],
) -> NDArray[np.float64]:
    """Return the edges that `choose` finds for each column."""
    columns = np.asarray(counts, dtype=np.float64)
    edges = [_cuts(column, levels, whole, choose, weights) for column in columns]
    return np.array(edges, dtype=np.float64).reshape(len(columns), len(levels))


def _cuts(
    column: NDArray[np.float64],
    levels: Levels,
    whole: int,
    choose: Callable[[NDArray[np.float64], NDArray[np.float64], int], int],
    weights: tuple[float, ...],
) -> list[int]:
    """Return the edges that `choose` finds for one column, by depth, from left to right."""
    # `choose` takes scores, the logarithms of weights, and a bound on the change of a score by one record.
    edges = [0] * len(levels)
    preference = np.array(weights) if weights else np.zeros(len(column) + 1)
    limits = (0, *levels, whole)
    # Each side has the quantiles that are drawn in it, and its cells.
    sides = [(0, len(levels), 0, len(column))]
    while sides:
        smaller = []
        for first, last, start, stop in sides:
            middle = (first + last) // 2
            low, high = limits[first], limits[last + 1]
            level, total = levels[middle] - low, high - low
            scores = quantile_scores(column[start:stop], level, total)
            cut = start + choose(scores, preference[start : stop + 1], max(level, total - level))
            edges[middle] = cut
            smaller += [(first, middle, start, cut), (middle + 1, last, cut, stop)]
        sides = [side for side in smaller if side[0] < side[1]]
    return edges


@dataclass(frozen=True)
class GridQuantiles(Mechanism):
    """Quantiles of columns, as edges of a public grid."""

    # Guarantee of one cut, positive and finite. A column costs ``quantile_depth(len(levels))`` times as much, and the
    # costs of columns add up.
    epsilon: float
    levels: Levels  # Increasing, between 0 and `whole`, exclusive.
    whole: int  # Quantiles have levels ``levels / whole``.
    # Logarithms of public weights of the edges, including both ends, `n_cells` plus one in all. Empty for no weights.
    # They are rounded to scores, which are integers (see `weight_penalties`).
    weights: tuple[float, ...] = ()
    rows: int = 1  # Largest number of records that are added or removed together.

    name = "exponential (quantiles)"
    norm = "score range"

    @property
    def sensitivity(self) -> float:  # type: ignore[override]
        """Largest number of records that are added or removed together."""
        return float(self.rows)

    @property
    def scale(self) -> float:
        """Number of records that changes the exponent at the median by one."""
        return self.rows / self.epsilon

    def release(self, value: ArrayLike, stream: BitStream) -> NDArray[np.float64]:
        """Return edges between 0 and `n_cells`, increasing, for the numbers of records in each column's cells."""

        def choose(scores: NDArray[np.float64], weights: NDArray[np.float64], change: int) -> int:
            # A whole number below 2**53 is exact.
            change *= self.rows
            scores = scores - weight_penalties(weights, change, self.epsilon)
            return ExponentialMechanism(self.epsilon, float(change)).select(scores, stream)

        return _edges(value, self.levels, self.whole, choose, self.weights)


@dataclass(frozen=True)
class ExactQuantiles(NoNoise):
    """Quantiles without noise: the best edges of a public grid."""

    sensitivity: float = field(init=False, repr=False)
    levels: Levels  # Increasing, between 0 and `whole`, exclusive.
    whole: int  # Quantiles have levels ``levels / whole``.
    # Logarithms of public weights of the edges, which decide between equal scores. Empty for no weights.
    weights: tuple[float, ...] = field(default=(), repr=False)
    rows: int = field(default=1, repr=False)  # Largest number of records that are added or removed together.

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensitivity", float(self.rows))

    def release(self, value: ArrayLike, stream: BitStream) -> NDArray[np.float64]:
        """Return edges between 0 and `n_cells`, increasing, for the numbers of records in each column's cells."""

        def choose(scores: NDArray[np.float64], weights: NDArray[np.float64], change: int) -> int:
            return int(np.argmax(np.where(scores == scores.max(), weights, -np.inf)))

        return _edges(value, self.levels, self.whole, choose, self.weights)

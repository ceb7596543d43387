r"""Cut points that divide records evenly, by the exponential mechanism on a public grid.

Theorem. Let a column have :math:`c_0, \dots, c_{G-1}` records in the cells of a public grid, and let
:math:`r(o) = c_0 + \dots + c_{o-1}` be the number of records below edge :math:`o`. Choosing :math:`o` with probability
proportional to :math:`e^{-\varepsilon\,|r(o) - n/2|}` is :math:`\varepsilon`-DP and :math:`\varepsilon`-bounded-range.

Proof. One more record raises :math:`n/2` by one half and :math:`r(o)` by 0 or 1, so that every score moves by one half
at most, up or down: the range over edges is at most 1 (see :mod:`skdp.mechanisms.exponential`).

Both sides of a cut are then cut in the same way, and so on. The records of the parts of one level are disjoint: one
record changes the law of one cut only, so that a level, given those before it, costs what one cut costs (Kaplan,
Schnapp and Stemmer 2022); levels add up. Each part uses its own number of records. Where many records share one value,
cuts gather around it, and later ones divide what is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._base import Mechanism
from ._bits import BitStream
from .exponential import ExponentialMechanism


def bisection_scores(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the scores of all edges of a part of the grid, its ends included.

    Parameters
    ----------
    counts : ndarray of shape (n_cells,)
        Number of records in each cell.

    Returns
    -------
    scores : ndarray of shape (n_cells + 1,)
        Minus the distance from half of the records. One record moves them within a range of 1.
    """
    below = np.concatenate([[0.0], np.cumsum(counts)])
    scores: NDArray[np.float64] = -np.abs(below - below[-1] / 2)
    return scores


@dataclass(frozen=True)
class GridQuantiles(Mechanism):
    """Cut points of columns, by repeated bisection.

    Parameters
    ----------
    epsilon : float
        Of one cut, positive and finite. A column costs `levels` times as much, and columns add up.
    levels : int
        ``2**levels - 1`` cuts are made in each column.
    """

    epsilon: float
    levels: int

    name = "exponential (quantiles)"
    norm = "score range"
    sensitivity = 1.0

    @property
    def scale(self) -> float:
        """Number of records that count as one in the exponent."""
        return 1 / self.epsilon

    def release(self, value: ArrayLike, stream: BitStream) -> NDArray[np.float64]:
        """Return cut points.

        Parameters
        ----------
        value : array-like of shape (n_columns, n_cells)
            Number of records in each cell of each column's grid.
        stream : BitStream
            Source of bits.

        Returns
        -------
        edges : ndarray of shape (n_columns, 2**levels - 1)
            Increasing positions on the grid, between 0 and `n_cells`.
        """
        counts = np.asarray(value, dtype=np.float64)
        # Half the range of the scores' changes on either side of 0.
        mechanism = ExponentialMechanism(self.epsilon, 0.5)
        out = np.empty((len(counts), 2**self.levels - 1))
        for column, edges in zip(counts, out, strict=True):
            ends = [0, len(column)]
            for _ in range(self.levels):
                cuts = [
                    start + mechanism.select(bisection_scores(column[start:stop]), stream)
                    for start, stop in pairwise(ends)
                ]
                ends = [end for pair in zip(ends, cuts, strict=False) for end in pair] + ends[-1:]
            edges[:] = ends[1:-1]
        return out

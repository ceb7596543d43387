"""The base of the two selection mechanisms: scores, their range for neighbouring data sets, and exact acceptance."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._bits import BitStream
from ._exact import bernoulli_exp


@dataclass(frozen=True)
class SelectionMechanism:
    """Choice of one of finitely many public candidates by private scores.

    Parameters
    ----------
    epsilon : float
        Pure guarantee, positive and finite.
    sensitivity : float
        Largest change of one candidate's score between neighbouring data sets.
    monotone : bool, default=False
        Whether adding a record never lowers any score (or never raises any), as for counts.
    """

    epsilon: float
    sensitivity: float
    monotone: bool = False

    name: ClassVar[str]

    @property
    def score_range(self) -> float:
        """Largest spread over the candidates of the change by one record, which is the denominator of the exponent."""
        return self.sensitivity if self.monotone else 2 * self.sensitivity

    def _accept(self, scores: NDArray[np.float64], drawn: NDArray[np.intp], stream: BitStream) -> NDArray[np.bool_]:
        """Accept each drawn candidate with probability exp(epsilon (score - best) / range), exactly."""
        best = scores.max()
        with np.errstate(over="ignore"):
            gamma = self.epsilon * (best - scores[drawn]) / self.score_range
        exact_rate = Fraction(self.epsilon) / Fraction(self.score_range)

        def exact(i: int) -> Fraction:
            return exact_rate * (Fraction(float(best)) - Fraction(float(scores[drawn[i]])))

        # Beyond 1000, acceptance has probability below 2^-1442, and the first 53 bits almost always decide.
        error = np.minimum(gamma, 1000.0) * 2.0**-50 + 2.0**-60
        return bernoulli_exp(gamma, error, exact, stream)


def check_scores(scores: ArrayLike) -> NDArray[np.float64]:
    """Return scores as a non-empty finite vector. Messages never hold their values."""
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError("scores must be a one-dimensional array with at least one element")
    if not np.all(np.isfinite(array)):
        raise ValueError("scores must be finite")
    return array

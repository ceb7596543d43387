r"""Choices by scores: of candidates, of a candidate for each of several groups, and of the best of several runs.

The probability of a candidate decreases exponentially with its distance from the best score, times epsilon, over the
largest spread :math:`\rho` over the candidates of the change by one record. For scores of sensitivity :math:`\Delta`,
:math:`\rho = 2\Delta` in general, and :math:`\rho = \Delta` if one more record moves all scores in one direction. The
exponential mechanism is epsilon-DP and epsilon-bounded-range. Permute-and-flip is epsilon-DP only, with a better score.
If each record affects the scores of one group only, the choices in all groups together cost as much as one. The proofs
are on the page *Theorems next to the code* of the documentation. Draws are exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..accounting import runs_parameter
from ._base import BitStream, Mechanism, NoNoise
from ._exact import bernoulli_exp, random_permutation, uniform_below

# Scores that differ by less than this part of their sensitivity are equal.
_EQUAL = 2.0**-20


@dataclass(frozen=True)
class SelectionMechanism(ABC):
    """Choice of one of finitely many public candidates by private scores."""

    epsilon: float  # Pure guarantee, positive and finite.
    sensitivity: float  # Largest change of one candidate's score between neighbouring data sets.
    monotone: bool = False  # Whether adding a record never lowers any score (or never raises any), as for counts.

    name: ClassVar[str]

    @property
    def score_range(self) -> float:
        """Largest spread over the candidates of the change by one record, which is the denominator of the exponent."""
        return self.sensitivity if self.monotone else 2 * self.sensitivity

    @abstractmethod
    def select(self, scores: ArrayLike, stream: BitStream) -> int:
        """Return the index of the chosen candidate. Scores are finite, and larger ones are better."""

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


def _check_scores(scores: ArrayLike) -> NDArray[np.float64]:
    """Return scores as a non-empty finite vector. Messages never hold their values."""
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError("scores must be a one-dimensional array with at least one element")
    if not np.all(np.isfinite(array)):
        raise ValueError("scores must be finite")
    return array


@dataclass(frozen=True)
class ExponentialMechanism(SelectionMechanism):
    __doc__ = SelectionMechanism.__doc__

    name = "exponential"

    def select(self, scores: ArrayLike, stream: BitStream) -> int:
        values = _check_scores(scores)
        while True:
            drawn = uniform_below(values.size, 2 * min(values.size, 4096), stream)[0].astype(np.intp)
            accepted = np.flatnonzero(self._accept(values, drawn, stream))
            if accepted.size:
                return int(drawn[accepted[0]])


@dataclass(frozen=True)
class PermuteAndFlip(SelectionMechanism):
    __doc__ = SelectionMechanism.__doc__

    name = "permute-and-flip"

    def select(self, scores: ArrayLike, stream: BitStream) -> int:
        values = _check_scores(scores)
        order = random_permutation(values.size, stream)
        # The coin of the best candidate always shows heads. Therefore one candidate is always found.
        return int(order[np.argmax(self._accept(values, order, stream))])


@dataclass(frozen=True)
class GroupChoices(Mechanism):
    """Choice of one of finitely many public candidates in each of several disjoint groups."""

    epsilon: float  # Pure guarantee, positive and finite.
    sensitivity: float  # Largest change of one candidate's score between neighbouring data sets.
    monotone: bool = False  # Whether adding a record never lowers any score (or never raises any).
    # Whether the choice must be bounded-range, for composition under Gaussian DP. If True, it is by the exponential
    # mechanism. Otherwise, it is by permute-and-flip, which is better at the same epsilon.
    bounded_range: bool = False

    norm = "score"

    @property
    def _choice(self) -> SelectionMechanism:
        kind = ExponentialMechanism if self.bounded_range else PermuteAndFlip
        return kind(self.epsilon, self.sensitivity, self.monotone)

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the mechanism of the choices."""
        return self._choice.name

    @property
    def scale(self) -> float:
        """Difference of scores that counts as one in the exponent."""
        return self._choice.score_range / self.epsilon

    def release(self, value: ArrayLike, stream: BitStream) -> NDArray[np.float64]:
        """Return the position of the chosen candidate for each row of scores, which are finite."""
        choice = self._choice
        rows = np.asarray(value, dtype=np.float64)
        return np.array([choice.select(scores, stream) for scores in rows], dtype=np.float64)


class BestChoices(NoNoise):
    """The limit of `GroupChoices` for epsilon = inf: one of the best candidates of each group, without a guarantee."""

    def release(self, value: ArrayLike, stream: BitStream) -> NDArray[np.float64]:
        """Return a random one of the best candidates of each group. Scores that differ by rounding are equal."""
        rows = np.asarray(value, dtype=np.float64)
        best = rows >= rows.max(axis=1, keepdims=True) - self.sensitivity * _EQUAL
        order = random_permutation(rows.shape[1], stream)
        return order[best[:, order].argmax(axis=1)].astype(np.float64)


def number_of_runs(mean: float, shape: float, stream: BitStream) -> int:
    """Draw the number of runs, at least 1. It must not be released."""
    gamma = runs_parameter(mean, shape)
    if gamma == 1:
        return 1
    log_gamma = np.log(gamma)
    probability = (1 - gamma) * (-1 / log_gamma if shape == 0 else shape / np.expm1(-shape * log_gamma))
    above = (float(stream.words(1)[0] >> np.uint64(11)) + 0.5) * 2.0**-53
    runs = 1
    while above > probability and (probability > 1e-18 or runs < mean):
        above -= probability
        probability *= (1 - gamma) * (runs + shape) / (runs + 1)
        runs += 1
    return runs


@dataclass(frozen=True)
class BestOfRuns(Mechanism):
    """Position of the run with the largest noisy score."""

    noise: Mechanism  # Mechanism that adds noise to the score of one run.
    mean: float  # Parameters of the law of the number of runs.
    shape: float

    name = "best of a random number of runs"

    @property
    def norm(self) -> str:  # type: ignore[override]
        """Norm of the sensitivity of the score."""
        return self.noise.norm

    @property
    def sensitivity(self) -> float:  # type: ignore[override]
        """Largest change of the score of one run by one record."""
        return self.noise.sensitivity

    @property
    def scale(self) -> float:
        """Scale of the noise on one run's score."""
        return self.noise.scale

    def release(self, value: ArrayLike, stream: BitStream) -> NDArray[np.float64]:
        """Return the position of the best run, by the scores. Only the output of the run is public."""
        # Each run has independent noise.
        return np.array(float(np.argmax(self.noise.release(value, stream))))


def draw_parts(probabilities: tuple[float, ...], n_rows: int, stream: BitStream) -> NDArray[np.intp]:
    """Draw a part for each row, independently, from one word each. The parts are private."""
    whole = sum(Fraction(p) for p in probabilities)
    ends, total = [], Fraction(0)
    for probability in probabilities[:-1]:
        total += Fraction(probability) / whole
        ends.append(min(int(total * 2**64), 2**64 - 1))
    return np.searchsorted(np.array(ends, dtype=np.uint64), stream.words(n_rows), side="right")

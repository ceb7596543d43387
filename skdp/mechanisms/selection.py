r"""Choices by scores: of candidates, of a candidate for each of several groups, and of the best of several runs.

Exponential mechanism. Theorem. Let :math:`h(o) = q(D', o) - q(D, o)` and let :math:`\rho` be the largest :math:`\max_o
h - \min_o h` over neighbours. Drawing :math:`o` with probability proportional to :math:`e^{\varepsilon q(D, o)/\rho}`
is :math:`\varepsilon`-DP, and :math:`\varepsilon`-bounded-range, hence :math:`\varepsilon^2/8`-zCDP (Cesar and Rogers
2021).

Proof. :math:`P_{D'}(o)/P_D(o) = e^{\varepsilon h(o)/\rho} / \mathbb{E}_{P_D}[e^{\varepsilon h/\rho}]`, and the
denominator lies between the smallest and the largest value of the numerator, whose ratio is at most
:math:`e^\varepsilon`.

For scores of sensitivity :math:`\Delta`, :math:`\rho = 2\Delta` in general. If one more record moves all scores in one
direction, :math:`\rho = \Delta`, which is twice the exponent of the textbook form (McSherry and Talwar 2007).

Drawing is exact: a uniform candidate is accepted with probability :math:`e^{-\varepsilon(q^* - q)/\rho}`.

Permute-and-flip, never worse in expected score than the exponential mechanism at the same epsilon. Theorem (McKenna and
Sheldon 2020). Visit the candidates in uniformly random order, and stop at the first one for which
a coin of bias :math:`e^{-\varepsilon(q^* - q)/\rho}` shows heads. With :math:`\rho` as
above, this is :math:`\varepsilon`-DP. Proof: it has the law of adding
Exponential(:math:`\rho/\varepsilon`) noise to each score and reporting the largest (Ding and others 2021). For general
scores, :math:`\rho = 2\Delta` is theirs. For monotone scores, let adding a record raise every score by between 0 and
:math:`\Delta`, and fix all noises except that of :math:`o`. Under either data set, :math:`o` wins if its noise exceeds
a threshold, and the two thresholds differ by at most :math:`\Delta`. Exponential noise of scale
:math:`\Delta/\varepsilon` has tail :math:`e^{-\varepsilon t/\Delta}` above 0 and 1 below, whose ratio over that
distance is at most :math:`e^\varepsilon`.

The mechanism is not bounded-range. The only zCDP bound is the generic one of an :math:`\varepsilon`-DP mechanism.

Groups. Theorem. Let every record belong to one of several groups, by a rule that is public or was released, and let the
scores of a group's candidates depend on its records only. A choice by the exponential mechanism, or by
permute-and-flip, in each group, with parameter :math:`\varepsilon`, is together :math:`\varepsilon`-DP, and with the
exponential mechanism :math:`\varepsilon`-bounded-range.

Proof. Choices are independent. One record changes the law of one of them only, and the other factors of the joint
probability cancel in the ratio.

If one record may change the scores of several groups, the parameters of their choices add up.

The best of a random number of runs, by noisy scores. The number of runs is drawn from the truncated negative binomial
law of ``RepeatedSelectionEvent``, by inversion of its distribution function in double precision.
It does not depend on data. Rounding changes the law, and therefore the cost, by a relative :math:`10^{-12}`. The number
stays hidden, and so do all runs except the best.

Scores are integers. Each gets its own noise, as a part of its run. The best run has the largest noisy score. Among
equal scores, it is the first run. Because runs are independent and identically distributed, this is the order by the
score and by a uniform number of each run. It is an order on the outputs of the runs, as the theorem requires.
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
    """Choice of one of finitely many public candidates in each of several disjoint groups.

    Parameters
    ----------
    epsilon : float
        Pure guarantee, positive and finite.
    sensitivity : float
        Largest change of one candidate's score between neighbouring data sets.
    monotone : bool, default=False
        Whether adding a record never lowers any score (or never raises any).
    bounded_range : bool, default=False
        Whether the choice must be bounded-range, for composition under Gaussian DP. If True, it is by the exponential
        mechanism. Otherwise, it is by permute-and-flip, which is better at the same epsilon.
    """

    epsilon: float
    sensitivity: float
    monotone: bool = False
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
    """The limit of `GroupChoices` for epsilon = inf: one of the best candidates of each group, without any guarantee.

    Parameters
    ----------
    sensitivity : float
        Largest change of one candidate's score, for information only.
    """

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
    """Position of the run with the largest noisy score.

    Parameters
    ----------
    noise : Mechanism
        Mechanism that adds noise to the score of one run.
    mean, shape : float
        Parameters of the law of the number of runs.
    """

    noise: Mechanism
    mean: float
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

r"""One private choice for each of several disjoint groups of records, with the cost of one choice.

Theorem. Let every record belong to one of several groups, by a rule that is public or was released, and let the scores
of a group's candidates depend on its records only. A choice by the exponential mechanism, or by permute-and-flip, in
each group, with parameter :math:`\varepsilon`, is together :math:`\varepsilon`-DP, and with the exponential mechanism
:math:`\varepsilon`-bounded-range.

Proof. Choices are independent. One record changes the law of one of them only, and the other factors of the joint
probability cancel in the ratio.

If one record may change the scores of several groups, the parameters of their choices add up.

Score ranges and monotone scores are defined in :mod:`skdp.mechanisms.exponential`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._base import Mechanism, NoNoise
from ._bits import BitStream
from ._exact import random_permutation
from .exponential import ExponentialMechanism
from .permute_and_flip import PermuteAndFlip

# Scores that differ by less than this part of their sensitivity are equal.
_EQUAL = 2.0**-20


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
    def name(self) -> str:  # type: ignore[override]
        """Name of the mechanism of the choices."""
        return ExponentialMechanism.name if self.bounded_range else PermuteAndFlip.name

    @property
    def scale(self) -> float:
        """Difference of scores that counts as one in the exponent."""
        return (1 if self.monotone else 2) * self.sensitivity / self.epsilon

    def release(self, value: ArrayLike, stream: BitStream) -> NDArray[np.float64]:
        """Return the chosen candidates.

        Parameters
        ----------
        value : array-like of shape (n_groups, n_candidates)
            Finite scores. Larger is better.
        stream : BitStream
            Source of bits.

        Returns
        -------
        chosen : ndarray of shape (n_groups,)
            Positions of the chosen candidates.
        """
        kind = ExponentialMechanism if self.bounded_range else PermuteAndFlip
        mechanism = kind(self.epsilon, self.sensitivity, self.monotone)
        rows = np.asarray(value, dtype=np.float64)
        return np.array([mechanism.select(scores, stream) for scores in rows], dtype=np.float64)


class BestChoices(NoNoise):
    """The limit of `GroupChoices` for epsilon = inf: one of the best candidates of each group, without any guarantee.

    Parameters
    ----------
    sensitivity : float
        Largest change of one candidate's score, for information only.
    """

    def release(self, value: ArrayLike, stream: BitStream) -> NDArray[np.float64]:
        """Return one of the best candidates of each group, drawn at random. Scores that differ by rounding are equal.

        Parameters
        ----------
        value : array-like of shape (n_groups, n_candidates)
            Finite scores. Larger is better.
        stream : BitStream
            Source of bits.

        Returns
        -------
        chosen : ndarray of shape (n_groups,)
            Positions of the chosen candidates.
        """
        rows = np.asarray(value, dtype=np.float64)
        best = rows >= rows.max(axis=1, keepdims=True) - self.sensitivity * _EQUAL
        order = random_permutation(rows.shape[1], stream)
        return order[best[:, order].argmax(axis=1)].astype(np.float64)

"""Mechanisms for a share of a budget, chosen and calibrated by public numbers.

Functions return a mechanism and the event that it costs. A share is a part of the square of the GDP parameter, or of
epsilon if delta is 0. If epsilon is infinite, there is no noise.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..accounting import GaussianEvent, PrivacyEvent, PureEvent, bounded_range_epsilon, gaussian_mu
from ._base import Mechanism, NoNoise
from .discrete import DiscreteLaplaceMechanism
from .gaussian import GammaMechanism, GaussianMechanism
from .quantiles import ExactQuantiles, GridQuantiles, quantile_depth
from .selection import BestChoices, GroupChoices

#: Rounding of the totals adds less than 2**-13 to the sensitivity.
TOTAL_BITS = 14

# Values are clipped to so many steps of the noise's lattice before the release, which is a contraction. Below this
# limit, the two roundings of a weighted total to a double are 2**-52 of it, an eighth of a step.
_MOST_STEPS = 2.0**49

# This is more than the rounding of a product, and of shares that are added up or divided further.
_SHARE_MARGIN = 1 - 2.0**-50


def pure_share(epsilon: float, share: float) -> float:
    """Return a share of a pure epsilon. Shares that add up to 1 never exceed the whole, not even by rounding."""
    return epsilon if share == 1 else epsilon * share * _SHARE_MARGIN


def l2_mechanism(
    epsilon: float, delta: float, share: float, sensitivity: float, size: int
) -> tuple[Mechanism, PrivacyEvent]:
    """Return the mechanism for a vector of this size by L2 sensitivity: Gaussian for a positive delta.

    The lattice is so much finer than the noise that the rounding of a long vector stays small.
    """
    if epsilon == math.inf:
        return NoNoise(sensitivity), PureEvent(epsilon)
    # The mechanism includes its own rounding, by half a step. A quarter more is for the rounding to doubles.
    if delta > 0:
        mu = gaussian_mu(epsilon, delta) * math.sqrt(share)
        bits = _bits(1 / mu, size)
        mechanism: GaussianMechanism | GammaMechanism = GaussianMechanism(mu, sensitivity, size, bits)
        event: PrivacyEvent = GaussianEvent(mu)
    else:
        pure = pure_share(epsilon, share)
        mechanism = GammaMechanism(pure, sensitivity, size, _bits(1 / pure, size))
        event = PureEvent(pure)
    doubles = mechanism.step * math.sqrt(size) / 2
    return replace(mechanism, sensitivity=sensitivity + doubles), event


def _bits(multiplier: float, size: int) -> int:
    return min(max(TOTAL_BITS + math.ceil(math.log2(multiplier * math.sqrt(size))), 0), 42)


def quantile_mechanism(
    epsilon: float,
    delta: float,
    share: float,
    levels: tuple[int, ...],
    whole: int,
    n_columns: int,
    weights: tuple[float, ...] = (),
    rows: int = 1,
) -> tuple[Mechanism, PrivacyEvent]:
    """Return the mechanism for the quantiles with levels ``levels / whole`` of each column.

    `weights` are logarithms of public weights of the edges, and `rows` is the largest number of records that are added
    or removed together.
    """
    if epsilon == math.inf:
        return ExactQuantiles(levels, whole, weights, rows), PureEvent(epsilon)
    n_cuts = quantile_depth(len(levels)) * n_columns
    if delta > 0:
        mu = gaussian_mu(epsilon, delta) * math.sqrt(share)
        cut = bounded_range_epsilon(mu / math.sqrt(n_cuts))
        return GridQuantiles(cut, levels, whole, weights, rows), GaussianEvent(mu)
    pure = pure_share(epsilon, share)
    return GridQuantiles(pure_share(pure, 1 / n_cuts), levels, whole, weights, rows), PureEvent(pure)


def choice_mechanism(epsilon: float, delta: float, share: float, sensitivity: float) -> tuple[Mechanism, PrivacyEvent]:
    """Return the mechanism for choices by scores that one record moves by `sensitivity`, in one direction only.

    It suffices that the changes of two scores by one record differ by at most `sensitivity`. The choice is exponential
    for a positive delta, and permute-and-flip otherwise.
    """
    if epsilon == math.inf:
        return BestChoices(sensitivity), PureEvent(epsilon)
    if delta > 0:
        mu = gaussian_mu(epsilon, delta) * math.sqrt(share)
        choice = GroupChoices(bounded_range_epsilon(mu), sensitivity, monotone=True, bounded_range=True)
        return choice, GaussianEvent(mu)
    epsilon_of_release = pure_share(epsilon, share)
    return GroupChoices(epsilon_of_release, sensitivity, monotone=True), PureEvent(epsilon_of_release)


def within_reach(mechanism: Mechanism, values: ArrayLike) -> NDArray[np.float64]:
    """Clip values, which is a contraction, to the range in which doubles hold fractions of the noise's lattice step."""
    values = np.asarray(values, dtype=np.float64)
    if isinstance(mechanism, GaussianMechanism | GammaMechanism | DiscreteLaplaceMechanism):
        most = _MOST_STEPS * mechanism.step
        return values.clip(-most, most)
    return values


def is_gaussian(mechanism: Mechanism) -> bool:
    """Tell whether the noise in each number is Gaussian or none, and not Laplace or L2 noise."""
    return isinstance(mechanism, GaussianMechanism | NoNoise)


def coordinate_variance(mechanism: Mechanism) -> float:
    """Return the variance of the noise in one coordinate, without rounding."""
    if isinstance(mechanism, GammaMechanism):
        return (mechanism.size + 1) * mechanism.scale**2
    return mechanism.scale**2 * (2 if isinstance(mechanism, DiscreteLaplaceMechanism) else 1)


def l1_mechanism(epsilon: float, sensitivity: float, size: int) -> DiscreteLaplaceMechanism:
    """Return discrete Laplace noise for real values, on a lattice that is fine enough for a long vector."""
    # Its sensitivity includes rounding, to doubles and to the lattice, by three quarters of a step on either side.
    bits = min(TOTAL_BITS + math.ceil(math.log2(size)), 44 + math.floor(math.log2(min(epsilon, 1.0))))
    step = math.ldexp(1.0, math.ceil(math.log2(sensitivity)) - bits)
    return DiscreteLaplaceMechanism(epsilon, sensitivity + 1.5 * size * step, size, step)

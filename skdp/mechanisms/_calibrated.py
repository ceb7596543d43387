"""Mechanisms for a share of a budget, chosen and calibrated by public numbers."""

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
    """Return a part of a pure epsilon. Parts together never exceed the whole, not even by rounding.

    Parameters
    ----------
    epsilon : float
        Whole epsilon.
    share : float
        Fraction in (0, 1]. The shares add up to 1.

    Returns
    -------
    part : float
        Rounded down, unless it is the whole.
    """
    return epsilon if share == 1 else epsilon * share * _SHARE_MARGIN


def l2_mechanism(
    epsilon: float, delta: float, share: float, sensitivity: float, size: int
) -> tuple[Mechanism, PrivacyEvent]:
    """Return the mechanism by L2 sensitivity for a share of the budget, and its event.

    The lattice is so much finer than the noise that the rounding of a long vector stays small.

    Parameters
    ----------
    epsilon, delta : float
        Whole budget. If epsilon is infinite, there is no noise.
    share : float
        Part of the square of the GDP parameter, or of epsilon if delta is 0.
    sensitivity : float
        Largest L2 distance between the values of neighbouring data sets.
    size : int
        Length of the vector.

    Returns
    -------
    mechanism : GaussianMechanism, GammaMechanism or NoNoise
        Gaussian for a positive delta.
    event : PrivacyEvent
        Cost of the release.
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
    """Return the mechanism for quantiles of columns for a share of the budget, and its event.

    Parameters
    ----------
    epsilon, delta : float
        Whole budget. If epsilon is infinite, the quantiles have no noise.
    share : float
        Part of the square of the GDP parameter, or of epsilon if delta is 0.
    levels : tuple of int
        Increasing, between 0 and `whole`, exclusive.
    whole : int
        Quantiles have levels ``levels / whole``.
    n_columns : int
        Number of columns, each with these quantiles.
    weights : tuple of float, default=()
        Logarithms of public weights of the edges. Empty for no weights.
    rows : int, default=1
        Largest number of records that are added or removed together.

    Returns
    -------
    mechanism : GridQuantiles or ExactQuantiles
        Without noise if epsilon is infinite.
    event : PrivacyEvent
        Cost of the release.
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
    """Return the mechanism for choices by scores that one record moves in one direction only.

    Parameters
    ----------
    epsilon, delta : float
        Whole budget. If epsilon is infinite, the best candidate is chosen.
    share : float
        Part of the square of the GDP parameter, or of epsilon if delta is 0.
    sensitivity : float
        Largest change of one candidate's score between neighbouring data sets.

    Returns
    -------
    mechanism : GroupChoices or BestChoices
        Exponential for a positive delta, and permute-and-flip otherwise.
    event : PrivacyEvent
        Cost of the release.
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
    """Clip values to the range in which doubles hold fractions of the noise's lattice step.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism of the later release.
    values : array-like
        Value of the query.

    Returns
    -------
    values : ndarray
        Clipped values. Clipping is a contraction.
    """
    values = np.asarray(values, dtype=np.float64)
    if isinstance(mechanism, GaussianMechanism | GammaMechanism | DiscreteLaplaceMechanism):
        most = _MOST_STEPS * mechanism.step
        return values.clip(-most, most)
    return values


def is_gaussian(mechanism: Mechanism) -> bool:
    """Tell whether the noise in each number is Gaussian, or none.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism of numbers.

    Returns
    -------
    gaussian : bool
        False for Laplace and L2 noise.
    """
    return isinstance(mechanism, GaussianMechanism | NoNoise)


def coordinate_variance(mechanism: Mechanism) -> float:
    """Return the variance of the noise in one coordinate.

    Parameters
    ----------
    mechanism : Mechanism
        Gaussian, L2, discrete Laplace, or without noise.

    Returns
    -------
    variance : float
        Variance without rounding.
    """
    if isinstance(mechanism, GammaMechanism):
        return (mechanism.size + 1) * mechanism.scale**2
    return mechanism.scale**2 * (2 if isinstance(mechanism, DiscreteLaplaceMechanism) else 1)


def l1_mechanism(epsilon: float, sensitivity: float, size: int) -> DiscreteLaplaceMechanism:
    """Return discrete Laplace noise for real values, on a lattice that is fine enough for a long vector.

    Parameters
    ----------
    epsilon : float
        Pure guarantee, finite.
    sensitivity : float
        Largest L1 distance between the values of neighbouring data sets.
    size : int
        Length of the vector.

    Returns
    -------
    mechanism : DiscreteLaplaceMechanism
        Its sensitivity includes rounding, to doubles and to the lattice, by three quarters of a step on either side.
    """
    bits = min(TOTAL_BITS + math.ceil(math.log2(size)), 44 + math.floor(math.log2(min(epsilon, 1.0))))
    step = math.ldexp(1.0, math.ceil(math.log2(sensitivity)) - bits)
    return DiscreteLaplaceMechanism(epsilon, sensitivity + 1.5 * size * step, size, step)

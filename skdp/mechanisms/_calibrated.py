"""Mechanisms for a share of a budget, chosen and calibrated from public numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..accounting import GaussianEvent, PrivacyEvent, PureEvent, bounded_range_epsilon, gaussian_mu
from ._base import Mechanism
from .discrete_laplace import DiscreteLaplaceMechanism
from .gamma import GammaMechanism
from .gaussian import GaussianMechanism
from .quantiles import ExactQuantiles, GridQuantiles, quantile_depth

#: Rounding of the totals adds less than 2**-13 to the sensitivity.
TOTAL_BITS = 14

# What is released is clipped to so many steps of the noise's lattice first: a contraction. Below, the two roundings of
# a weighted total to a double come to 2**-52 of it, an eighth of a step.
_MOST_STEPS = 2.0**49

# More than the rounding of a product, and of shares that are added up or divided further.
_SHARE_MARGIN = 1 - 2.0**-50


def pure_share(epsilon: float, share: float) -> float:
    """Return a part of a pure epsilon, so that parts together are never more than the whole, not even by rounding.

    Parameters
    ----------
    epsilon : float
        The whole.
    share : float
        In (0, 1]; shares add up to 1.

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

    Its lattice is as much finer than the noise as keeps the rounding of a long vector small.

    Parameters
    ----------
    epsilon, delta : float
        The whole budget, finite.
    share : float
        Part of the square of the GDP parameter, or of epsilon if delta is 0.
    sensitivity : float
        Largest L2 distance between the values of neighbouring data sets.
    size : int
        Length of the vector.

    Returns
    -------
    mechanism : GaussianMechanism or GammaMechanism
        Gaussian for a positive delta.
    event : PrivacyEvent
        What it costs.
    """
    # The mechanism allows for its own rounding, by half a step; a quarter more is for the rounding to doubles.
    if delta > 0:
        mu = gaussian_mu(epsilon, delta) * math.sqrt(share)
        bits = _bits(1 / mu, size)
        mechanism: GaussianMechanism | GammaMechanism = GaussianMechanism(mu, sensitivity, size, bits)
        event: PrivacyEvent = GaussianEvent(mu)
    else:
        part = pure_share(epsilon, share)
        mechanism = GammaMechanism(part, sensitivity, size, _bits(1 / part, size))
        event = PureEvent(part)
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
        The whole budget; an epsilon of infinity is for quantiles without noise.
    share : float
        Part of the square of the GDP parameter, or of epsilon if delta is 0.
    levels : tuple of int
        Increasing, between 0 and `whole`, exclusive.
    whole : int
        Quantiles have levels ``levels / whole``.
    n_columns : int
        Number of columns, each of which has these quantiles.
    weights : tuple of float, default=()
        Logarithms of public weights of the edges; empty for none.
    rows : int, default=1
        How many records are added or removed at most, together.

    Returns
    -------
    mechanism : GridQuantiles or ExactQuantiles
        Without noise if epsilon is infinite.
    event : PrivacyEvent
        What it costs.
    """
    if epsilon == math.inf:
        return ExactQuantiles(levels, whole, weights, rows), PureEvent(epsilon)
    n_cuts = quantile_depth(len(levels)) * n_columns
    if delta > 0:
        mu = gaussian_mu(epsilon, delta) * math.sqrt(share)
        cut = bounded_range_epsilon(mu / math.sqrt(n_cuts))
        return GridQuantiles(cut, levels, whole, weights, rows), GaussianEvent(mu)
    part = pure_share(epsilon, share)
    return GridQuantiles(pure_share(part, 1 / n_cuts), levels, whole, weights, rows), PureEvent(part)


def within_reach(mechanism: Mechanism, values: ArrayLike) -> NDArray[np.float64]:
    """Clip values to what doubles hold to a fraction of the noise's lattice step.

    Parameters
    ----------
    mechanism : Mechanism
        That is going to release them.
    values : array-like
        The query's value.

    Returns
    -------
    values : ndarray
        Clipped, a contraction.
    """
    values = np.asarray(values, dtype=np.float64)
    if isinstance(mechanism, GaussianMechanism | GammaMechanism | DiscreteLaplaceMechanism):
        most = _MOST_STEPS * mechanism.step
        return values.clip(-most, most)
    return values


def coordinate_variance(mechanism: Mechanism) -> float:
    """Variance of the noise in one coordinate.

    Parameters
    ----------
    mechanism : Mechanism
        Gaussian, L2, discrete Laplace, or without noise.

    Returns
    -------
    variance : float
        Of the law without rounding.
    """
    if isinstance(mechanism, GammaMechanism):
        return (mechanism.size + 1) * mechanism.scale**2
    return mechanism.scale**2 * (2 if isinstance(mechanism, DiscreteLaplaceMechanism) else 1)


def l1_mechanism(epsilon: float, sensitivity: float, size: int) -> DiscreteLaplaceMechanism:
    """Return discrete Laplace noise for real values, on a lattice that is fine for a long vector.

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
        Its sensitivity allows for rounding, to doubles and to the lattice, by three quarters of a step on either side.
    """
    bits = min(TOTAL_BITS + math.ceil(math.log2(size)), 44 + math.floor(math.log2(min(epsilon, 1.0))))
    step = math.ldexp(1.0, math.ceil(math.log2(sensitivity)) - bits)
    return DiscreteLaplaceMechanism(epsilon, sensitivity + 1.5 * size * step, size, step)

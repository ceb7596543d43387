"""Distributions of privacy losses, and their exact composition.

A loss takes the values of a lattice, with probabilities that join the points of a privacy profile by line segments
(Doroshenko and others 2022). The losses of a fixed list of releases add up (Zhu, Dong and Wang 2022). Their
distribution is a convolution, which is computed by a fast Fourier transform after tilting. A bound on all rounding
errors is added. The page *Theorems next to the code* of the documentation has the formulas and the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft, optimize

from ..checks.params import shown

#: Losses count as infinite if the profile beyond them is less than this.
NEGLIGIBLE = 1e-30

#: Profiles are evaluated to about 1e-13. Multiplied by this factor, they are upper bounds.
_UP = 1 + 1e-12

#: Losses beyond this count as infinite, because their exponentials must be finite.
_MOST_LOSS = 600.0

#: Largest length of a lattice and of a transform.
_MOST_POINTS = 2**24

#: A tilt beyond this has no further effect on a lattice.
_MOST_TILT = 1e3

#: Errors of a transform's outputs for inputs that sum to 1: for each of log2(n) passes, and for each factor of a power.
_PASS_ERROR = 4 * 2.0**-52
_POWER_ERROR = 8 * 2.0**-52

#: The part of the tilted law that may lie outside the window, on either side.
_OUTSIDE = 1e-10

#: Further tilts for Chernoff's bound, times the standard deviation.
_STEPS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 7.0)

#: Number of tilts that are tried if delta is requested at many epsilons.
_TILTS = 12

#: Largest exponent when the tilt is reverted.
_MOST_EXPONENT = 500.0

#: Deltas for the removal and for the addition of a record.
Profiles = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class _Losses:
    """The law of one release's loss on a lattice: ``probabilities[i]`` at ``lowest + i``."""

    lowest: int
    probabilities: NDArray[np.float64]
    infinite: float

    @property
    def highest(self) -> int:
        return self.lowest + len(self.probabilities) - 1

    @cached_property
    def points(self) -> NDArray[np.float64]:
        return np.arange(self.lowest, self.highest + 1, dtype=np.float64)

    @cached_property
    def logs(self) -> NDArray[np.float64]:
        with np.errstate(divide="ignore"):
            return np.log(self.probabilities)

    def tilted(self, tilt: float) -> tuple[NDArray[np.float64], float]:
        """Return the law proportional to ``p * exp(tilt * point)``, and the logarithm of its sum."""
        exponents = self.logs + tilt * self.points
        largest = float(exponents.max())
        weights = np.exp(exponents - largest)
        total = float(weights.sum())
        return weights / total, largest + math.log(total)


_Factors = tuple[tuple[_Losses, int], ...]


@dataclass(frozen=True)
class _Cumulants:
    """Logarithm of the moment generating function of a sum of losses, and its first two derivatives."""

    log_moment: float
    mean: float
    deviation: float


def _cumulants(factors: _Factors, tilt: float) -> _Cumulants:
    log_moment = mean = variance = 0.0
    for losses, count in factors:
        law, log_one = losses.tilted(tilt)
        centre = float(law @ losses.points)
        log_moment += count * log_one
        mean += count * centre
        variance += count * float(law @ (losses.points - centre) ** 2)
    return _Cumulants(log_moment, mean, max(math.sqrt(variance), 0.5))


def _infinite(factors: _Factors) -> float:
    """Return the probability that one of the losses is infinite."""
    logs = (count * math.log1p(-losses.infinite) if losses.infinite < 1 else -math.inf for losses, count in factors)
    return -math.expm1(math.fsum(logs))


def _highest(factors: _Factors) -> int:
    """Return the largest finite loss."""
    return sum(count * losses.highest for losses, count in factors)


def _best_tilt(factors: _Factors, point: float) -> float:
    """Return a tilt, at least 0, that brings the mean of the sum within a standard deviation of `point`."""
    low, high, tilt = 0.0, math.inf, 0.0
    for _ in range(60):
        tilted = _cumulants(factors, tilt)
        distance = (point - tilted.mean) / tilted.deviation
        if abs(distance) < 0.5 or (tilt == 0 and distance < 0) or tilt > _MOST_TILT:
            break
        low, high = (tilt, high) if distance > 0 else (low, tilt)
        newton = tilt + distance / tilted.deviation
        tilt = newton if low < newton < high else (low + high) / 2 if high < math.inf else 2 * tilt
    return tilt


def _window(factors: _Factors, tilt: float, centre: _Cumulants, sign: int, limit: int) -> tuple[int, float]:
    """Return the extent of a window on one side of the mean, and a bound on the tilted law beyond the window."""
    # By Chernoff's inequality with further tilts, the law beyond `width` is at most exp(log M(step) / M(0) - step *
    # end).
    width = float(limit)
    for multiple in _STEPS:
        step = sign * multiple / centre.deviation
        rise = sum(count * losses.tilted(tilt + step)[1] for losses, count in factors) - centre.log_moment
        width = min(width, (rise - step * centre.mean - math.log(_OUTSIDE)) / abs(step) + 1)
    return (limit, 0.0) if width >= limit else (max(math.ceil(width), 1), _OUTSIDE)


def _finite_delta(factors: _Factors, points: NDArray[np.float64], interval: float, tilt: float) -> NDArray[np.float64]:
    """Bound E[(1 - exp(t - L))_+] for the sum L of losses by one transform, for t at `points` of the lattice."""
    centre = _cumulants(factors, tilt)
    middle = round(centre.mean)
    highest = _highest(factors)
    lowest = sum(count * losses.lowest for losses, count in factors)
    above, beyond = _window(factors, tilt, centre, 1, highest - middle)
    below, _ = _window(factors, tilt, centre, -1, middle - lowest)
    size = int(fft.next_fast_len(above + below + 1, real=True))
    if size > _MOST_POINTS:
        raise OverflowError("the privacy loss distribution has too many points")
    start = middle - below
    law, rounding = _convolved(factors, tilt, size)
    lattice = np.arange(start, start + size, dtype=np.float64)
    # Points below the window, or so far below the middle that exponentials would overflow, need another tilt.
    rate = max(tilt, interval)
    served = (rate * (points - middle) > -_MOST_EXPONENT) & ((points >= start) | (start <= lowest))
    keep = max(0, math.ceil(-_MOST_EXPONENT / rate) + middle - start)
    lattice, law = lattice[keep:], np.roll(law, -(start % size))[keep:]
    weights = law * np.exp(-tilt * (lattice - middle))
    first = np.searchsorted(lattice, points, side="right")
    mass = _sums_from(weights)[first]
    shrunk = _sums_from(weights * np.exp(-interval * (lattice - middle)))[first]
    inside = (
        np.maximum(mass - np.exp(interval * np.minimum(points - middle, above + 1)) * shrunk, 0.0)
        + (size + 4096) * 2.0**-52 * mass
    )
    # The rounding error of each point of the window above t, after the tilt is reverted.
    errors = rounding * min(size, 1 / -math.expm1(-tilt) if tilt > 0 else math.inf)
    # At points that are not served, the exponential could overflow.
    inside += errors * np.exp(-tilt * np.where(served, np.maximum(points - middle, -below), 0.0))
    outside = beyond * math.exp(-tilt * above)
    return np.where(served, (inside + outside) * math.exp(centre.log_moment - tilt * middle), math.inf)


def _convolved(factors: _Factors, tilt: float, size: int) -> tuple[NDArray[np.float64], float]:
    """Return the tilted law of the sum modulo `size`, and a bound on the error of each of its values."""
    passes = _PASS_ERROR * (math.log2(size) + 1)
    spectrum = np.ones(size // 2 + 1, complex)
    largest = np.ones(size // 2 + 1)
    errors = np.zeros(size // 2 + 1)
    relative = 0.0
    for losses, count in factors:
        law, _ = losses.tilted(tilt)
        positions = np.arange(losses.lowest, losses.highest + 1) % size
        transform = fft.rfft(np.bincount(positions, weights=law, minlength=size))
        most = np.abs(transform) + passes
        spectrum *= transform**count
        largest *= most**count
        errors += count * (passes / most + _POWER_ERROR)
        exponent = np.abs(losses.logs[losses.probabilities > 0]).max() + tilt * max(-losses.lowest, losses.highest)
        relative += count * 2.0**-50 * (4 + float(exponent))
    errors = largest * (errors + passes)
    rounding = (2 * float(errors.sum()) - float(errors[0])) / size
    return np.maximum(fft.irfft(spectrum, size), 0.0) * (1 + relative), rounding


def _sums_from(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, for each position, the sum of the values from there to the end, and 0 beyond the end."""
    return np.concatenate([np.cumsum(values[::-1])[::-1], [0.0]])


def _connect(curve: NDArray[np.float64], excess: NDArray[np.float64], interval: float) -> _Losses:
    """Return the losses whose profile joins the points of a curve."""
    # `curve` is the profile at 0, 1, ... intervals, and `excess` that of the reversed pair at the same points.
    most = len(curve) - 1
    down, up = -math.expm1(-interval), math.expm1(interval)
    falls = curve[:-1] - curve[1:]
    # At -k, without the part 1 - exp(t) of the profile, which is a straight line.
    left = np.exp(-interval * np.arange(most + 1)) * excess
    rises = left[:-1] - left[1:]
    law = np.zeros(2 * most + 1)
    law[most + 1 : -1] = falls[:-1] / down - falls[1:] / up
    law[-1] = falls[-1] / down
    law[most] = 1 - rises[0] / down - falls[0] / up
    law[1:most] = (rises[:-1] / up - rises[1:] / down)[::-1]
    law[0] = rises[-1] / up - left[-1]
    occurring = np.flatnonzero(law > 0)
    first, last = int(occurring[0]), int(occurring[-1])
    return _Losses(first - most, np.maximum(law[first : last + 1], 0.0), float(curve[-1]))


class PrivacyLossDistribution:
    """Privacy losses of a fixed list of releases, rounded to the safe side.

    Events, costs and guarantees make distributions by their method ``privacy_loss_distribution``.

    Parameters
    ----------
    interval : float
        Width of the lattice of losses.
    directions : tuple
        Laws of the losses for the removal and for the addition of a record. A single law if both are the same.

    See Also
    --------
    skdp.accounting.BudgetAccountant : Composes the charges of all fits.

    References
    ----------
    .. [1] Y. Zhu, J. Dong and Y.-X. Wang, "Optimal Accounting of Differential Privacy via Characteristic Function",
       AISTATS 2022.
    .. [2] V. Doroshenko, B. Ghazi, P. Kamath, R. Kumar and P. Manurangsi, "Connect the Dots: Tighter Discrete
       Approximations of Privacy Loss Distributions", PoPETs 2022.

    Examples
    --------
    >>> from skdp.accounting import GaussianEvent
    >>> ten_fits = (
    ...     GaussianEvent(0.1).privacy_loss_distribution(1e-3).self_compose(10)
    ... )
    >>> round(ten_fits.get_epsilon_for_delta(1e-5), 3)
    1.199
    """

    def __init__(self, interval: float, directions: tuple[_Factors, ...]) -> None:
        self.interval = interval
        self._directions = directions

    def compose(self, other: PrivacyLossDistribution) -> PrivacyLossDistribution:
        """Return the distribution of both lists of releases together.

        Parameters
        ----------
        other : PrivacyLossDistribution
            Distribution on the same lattice.

        Returns
        -------
        distribution : PrivacyLossDistribution
            Distribution of all releases.
        """
        if other.interval != self.interval:
            raise ValueError("the distributions must be on the same lattice")
        size = max(len(self._directions), len(other._directions))
        both = (distribution._directions * (size // len(distribution._directions)) for distribution in (self, other))
        return type(self)(self.interval, tuple(a + b for a, b in zip(*both, strict=True)))

    def self_compose(self, n_times: int) -> PrivacyLossDistribution:
        """Return the distribution of the list of releases, carried out several times.

        Parameters
        ----------
        n_times : int
            Number of times.

        Returns
        -------
        distribution : PrivacyLossDistribution
            Distribution of all releases.
        """
        if n_times != int(n_times) or n_times < 1:
            raise ValueError("n_times must be a positive integer")
        directions = (
            tuple((losses, int(n_times) * count) for losses, count in factors) for factors in self._directions
        )
        return type(self)(self.interval, tuple(directions))

    def get_delta_for_epsilon(self, epsilon: ArrayLike) -> Any:
        """Return the least delta, rounded up, for each epsilon.

        Parameters
        ----------
        epsilon : float or array-like
            Any real numbers, and infinity.

        Returns
        -------
        delta : float or ndarray
            Values in [0, 1]. They hold for additions and removals of a record.
        """
        epsilons = np.asarray(epsilon, dtype=np.float64)
        deltas = np.max(self._profiles(epsilons.ravel()), axis=0).reshape(epsilons.shape)
        return deltas if epsilons.ndim else float(deltas)

    def _profiles(self, t: NDArray[np.float64]) -> Profiles:
        """Return the least deltas, rounded up, when a record is removed, and when it is added."""
        deltas = [self._deltas(factors, t) for factors in self._directions]
        return deltas[0], deltas[-1]

    def _deltas(self, factors: _Factors, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        if not factors:
            return np.maximum(-np.expm1(np.minimum(epsilons, 0.0)), 0.0)
        highest = _highest(factors)
        # Beyond the largest finite loss, delta does not change.
        points = np.minimum(epsilons / self.interval, highest)
        deltas = np.where(points == highest, 0.0, 1.0)
        for at in np.unique(np.linspace(points.min(), points.max(), _TILTS) if len(points) > 3 else points):
            if at < highest or len(points) > 3:
                tilt = _best_tilt(factors, float(at))
                deltas = np.minimum(deltas, _finite_delta(factors, points, self.interval, tilt))
        return np.minimum(_infinite(factors) + deltas, 1.0)

    def get_epsilon_for_delta(self, delta: float) -> float:
        """Return the least epsilon, rounded up, for a delta.

        Parameters
        ----------
        delta : float
            In [0, 1].

        Returns
        -------
        epsilon : float
            At least 0. Infinite if there is no such epsilon.
        """
        if not 0 <= delta <= 1:
            raise ValueError(f"delta must lie in [0, 1], got {shown(delta)}")
        if self.get_delta_for_epsilon(0.0) <= delta:
            return 0.0
        if max(_infinite(factors) for factors in self._directions) > delta:
            return math.inf
        if delta == 0:
            return self.interval * max(_highest(factors) for factors in self._directions)

        def excess(epsilon: float) -> float:
            return math.log(max(self.get_delta_for_epsilon(epsilon), 1e-300)) - math.log(delta)

        starts = [_cumulants(factors, 0.0) for factors in self._directions if factors]
        low = high = self.interval * max(1.0, *(start.mean + 4 * start.deviation for start in starts))
        while excess(high) > 0:
            low, high = high, 2 * high
        while low > self.interval / 2 and excess(low) <= 0:
            low, high = low / 2, low
        if excess(low) > 0 > excess(high):
            low = float(optimize.brentq(excess, low, high, xtol=1e-9 * high, rtol=1e-9))
            step = 2e-9 * high
            while low < high and excess(low) > 0:
                low, step = low + step, 2 * step
        else:
            low = high
        return min(low, high)


def no_losses(interval: float) -> PrivacyLossDistribution:
    """Return the distribution of a release that depends on no record."""
    return PrivacyLossDistribution(interval, ((),))


def losses_of_profile(profile: Callable[[NDArray[np.float64]], Profiles], interval: float) -> PrivacyLossDistribution:
    """Return a distribution of one release, whose profile is at least a given one, and equal to it on a lattice."""
    # `profile` maps epsilons, at least 0, to deltas for the removal and for the addition of a record.
    infinite = np.max([profile(np.array([_MOST_LOSS]))], axis=(0, 2))
    # About the smallest number of steps with almost nothing beyond.
    steps = [1, max(2, math.ceil(_MOST_LOSS / interval))]
    while steps[1] - steps[0] > 1 + steps[0] // 64:
        middle = max(math.isqrt(steps[0] * steps[1]), steps[0] + 1)
        beyond = np.max([profile(np.array([middle * interval]))], axis=(0, 2))
        steps[1 if np.all(beyond <= infinite + NEGLIGIBLE) else 0] = middle
    if 2 * steps[1] > _MOST_POINTS:
        raise OverflowError("the privacy loss distribution has too many points")
    removed, added = (np.minimum(curve * _UP, 1.0) for curve in profile(np.arange(steps[1] + 1) * np.float64(interval)))
    pairs = [(removed, added)] if np.array_equal(removed, added) else [(removed, added), (added, removed)]
    directions = tuple(((_connect(*pair, interval), 1),) for pair in pairs)
    return PrivacyLossDistribution(interval, directions)

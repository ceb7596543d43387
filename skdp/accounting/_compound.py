r"""Events that consist of other events: on parts or samples of the records, or the best of a random number of runs.

A step of noisy gradient descent releases a sum over a Poisson sample with probability :math:`q`, with Gaussian noise.
Its loss is dominated by that of

.. math:: P = (1-q)\,N(0, 1) + q\,N(\mu, 1) \quad\text{against}\quad Q = N(0, 1)

when a record is removed, and with the two exchanged when it is added. The user guide (*Accounting: theorems and
proofs*) has the proof, and how the distribution, the Rényi divergence and the Gaussian-DP parameter of the steps are
computed. In the far tails, the mixture resembles :math:`N(\mu, 1)`. Therefore the Gaussian-DP parameter is correct up
to an additive :math:`10^{-40}` in delta.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from ..checks.params import shown
from ._budget import NEGLIGIBLE_DELTA, UP, gaussian_delta, gaussian_mu, pure_dp_mu
from ._events import GaussianEvent, PrivacyEvent, PureEvent, compose_events, pair_profile
from ._loss_distribution import NEGLIGIBLE, PrivacyLossDistribution, Profiles, losses_of_profile, no_losses

#: Width of the lattice on which the profiles of several lists, and those of declared plans, are composed.
PROFILE_INTERVAL = 1e-4

#: Orders over which the second order of a repeated selection is minimised. 1 is one of them.
_SECOND_ORDERS = np.concatenate([[1.0], 1 + 2.0 ** np.arange(-5, 12, 0.25)])

#: Orders at which divergences are converted to epsilon. The first ones have the least offset.
_CONVERSION_ORDERS = 1 + 2.0 ** np.arange(13, -3.1, -0.25)

#: Delta of the pair that represents a repeated selection in a declared list.
_PAIR_DELTA = 2.0**-30

#: More than the rounding of a bound on a divergence.
_ABOVE_ROUNDING = 1 + 2.0**-40

# Steps of the lattice of losses per standard deviation of the loss of one step. The resulting noise is within a few
# parts in ten thousand of the noise for the finest lattice.
_RESOLUTION = 20.0

# Beyond so many lattice points for a step, or so many steps, Rényi divergences are used, because they are faster.
_MOST_POINTS_OF_STEP, _MOST_STEPS = 4e5, 10**5

# Relative margin when curves are compared on a grid, which is more than their rounding.
_MARGIN = 1e-6

# Relative precision of the noise.
_NOISE_TOLERANCE = 1e-4

#: Every step has at least the noise of a third of the sensitivity, and at least the noise without sampling. Otherwise,
#: if a record is sampled very rarely, delta could be the probability of disclosing a record completely.
MOST_MU = 3.0

# The largest epsilon at which deltas are compared with those of Gaussian DP. Without sampling, delta is negligible at
# so many deviations of the loss above its mean.
_LARGEST_EPSILON, _FARTHEST_LOSS = 400.0, 14.0

# The grid of epsilons: the number of even points, and the logarithm of the factor between the others.
_EVEN_POINTS, _LOG_OF_FACTOR = 200, 0.004

# Relative precision of the parameter of Gaussian DP, which is rounded up.
_PRECISION_OF_MU = 1e-4

# The largest order times mu for which a divergence is integrated. Beyond it, sampling helps little.
_FARTHEST = 2e4

# Orders at which divergences bound delta. Sampled noise needs many orders near 1, and high ones for small rates.
_ORDERS = np.concatenate([np.linspace(1.1, 10.9, 99), np.arange(11.0, 64), (2.0 ** np.arange(6, 12, 0.25)).round()])


@dataclass(frozen=True)
class ParallelEvent(PrivacyEvent):
    r"""Several lists of events such that any one record is exposed to one list only.

    This is the case if the records are divided into disjoint parts, and each list has its own part. The division may be
    a public rule that depends on each record separately, or a draw that is independent for each record and of
    everything else. It is also the case if only one of the lists takes place, and earlier releases decided which one.

    If each list, on its part, has a privacy profile of at most :math:`h_j(t)` for all :math:`t`, in both directions,
    then the whole has at most :math:`\max_j h_j(t)`. The same holds with Rényi divergences, Gaussian-DP parameters and
    epsilons in the place of :math:`h_j(t)` (:ref:`model selection, theorem 1 <model-selection-theorem-1>`).

    The relation is the addition or removal of one record. Under replacement, a record could move from one part to
    another, and lists whose reports are counted would disclose the number of records of a part.

    The largest of several profiles is convex in :math:`e^t`. Therefore it is the profile of a pair of distributions,
    which dominates. A mechanism may also disclose the part of each record, because the proof conditions on the parts.

    Parameters
    ----------
    parts : tuple of tuple of PrivacyEvent
        Events on each part, in order.

    Examples
    --------
    >>> from skdp.accounting import ParallelEvent, PureEvent
    >>> ParallelEvent(
    ...     ((PureEvent(0.5), PureEvent(0.25)), (PureEvent(1.0),))
    ... ).pure_epsilon()
    1.0
    """

    parts: tuple[tuple[PrivacyEvent, ...], ...]

    def __post_init__(self) -> None:
        parts = tuple(tuple(part) for part in self.parts)
        if not parts or not all(isinstance(event, PrivacyEvent) for part in parts for event in part):
            raise TypeError("parts must be lists of events, of one part or more")
        object.__setattr__(self, "parts", parts)

    def pure_epsilon(self) -> float:
        return max(math.fsum(event.pure_epsilon() for event in part) for part in self.parts)

    def mu(self) -> float:
        # A single event is not rounded again.
        return max(
            part[0].mu() if len(part) == 1 else math.sqrt(math.fsum(event.mu() ** 2 for event in part)) * UP
            for part in self.parts
        )

    def rdp(self, order: float) -> float:
        return max(math.fsum(event.rdp(order) for event in part) * UP for part in self.parts)

    def _profiles(self, t: NDArray[np.float64]) -> Profiles:
        return self._largest(t, PROFILE_INTERVAL)

    def privacy_loss_distribution(self, interval: float) -> PrivacyLossDistribution:
        distributions = self._distributions(interval)
        if len(distributions) == 1:
            return distributions[0]
        return losses_of_profile(lambda t: self._largest(t, interval), interval)

    def _distributions(self, interval: float) -> list[PrivacyLossDistribution]:
        counts = {frozenset(Counter(part).items()): Counter(part) for part in self.parts}
        return [compose_events(count, interval) for count in counts.values()]

    def _largest(self, t: NDArray[np.float64], interval: float) -> Profiles:
        removed, added = np.max([losses._profiles(t) for losses in self._distributions(interval)], axis=0)
        return removed, added


@dataclass(frozen=True)
class RepeatedSelectionEvent(PrivacyEvent):
    r"""The best of a random number of independent runs of one mechanism. Nothing else of the runs is released.

    The number of runs has the truncated negative binomial law with shape :math:`\eta` and a parameter :math:`\gamma`
    that follows from its mean: :math:`P(J = k) \propto (1-\gamma)^k \prod_{l<k} \frac{l+\eta}{l+1}` for :math:`k \ge
    1`. The *best* run is the first by an order on the outputs of the mechanism, which include the score. If a run has
    Rényi divergences :math:`\rho(\alpha)`, the whole has (Papernot and Steinke 2022, theorem 2)

    .. math:: \rho'(\alpha) \le \rho(\alpha) + (1+\eta)\Big(1-\frac1\beta\Big)\rho(\beta)
        + \frac{(1+\eta)\log(1/\gamma)}{\beta} + \frac{\log \mathbb{E} J}{\alpha-1}

    for every :math:`\beta \ge 1`. With an :math:`\varepsilon`-DP run, it is :math:`(2+\eta)\varepsilon`-DP. Divergences
    grow with the order. Therefore the bound of a higher order holds as well.
    """

    events: tuple[PrivacyEvent, ...]  # Events of one run.
    mean: float  # Mean number of runs, at least 1.
    shape: float  # Shape of the law, at least 0.

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", tuple(self.events))
        if not self.events or not all(isinstance(event, PrivacyEvent) for event in self.events):
            raise TypeError("events must be instances of PrivacyEvent, one or more")
        runs_parameter(self.mean, self.shape)

    def pure_epsilon(self) -> float:
        return (2 + self.shape) * math.fsum(event.pure_epsilon() for event in self.events)

    def mu(self) -> float:
        return pure_dp_mu(self.pure_epsilon())

    def rdp(self, order: float) -> float:
        whole = math.inf
        second = _second_order(self.events, self.mean, self.shape)
        for multiple in (1.0, 3.0, 10.0, 30.0):
            higher = 1 + multiple * (order - 1)
            once = math.fsum(event.rdp(higher) for event in self.events)
            whole = min(whole, once + second + math.log(self.mean) / (higher - 1))
        pure = self.pure_epsilon()
        return min(whole * _ABOVE_ROUNDING, PureEvent(pure).rdp(order) if math.isfinite(pure) else math.inf)

    def _profiles(self, t: NDArray[np.float64]) -> Profiles:
        pure = self.pure_epsilon()
        if math.isfinite(pure):
            return pair_profile(pure, 0.0, t)
        return pair_profile(renyi_epsilon((self,), _PAIR_DELTA), _PAIR_DELTA, t)


@lru_cache(maxsize=4096)
def _second_order(events: tuple[PrivacyEvent, ...], mean: float, shape: float) -> float:
    """Return the terms of the second order in the bound on the divergence, minimised over this order."""
    log_gamma = math.log(runs_parameter(mean, shape))
    least = math.inf
    for order in _SECOND_ORDERS.tolist():
        divergence = math.fsum(event.rdp(order) for event in events) if order > 1 else 0.0
        least = min(least, (1 - 1 / order) * divergence - log_gamma / order)
    return (1 + shape) * least


@lru_cache(maxsize=256)
def runs_parameter(mean: float, shape: float) -> float:
    """Return the parameter gamma, in (0, 1], of the truncated negative binomial law with this mean and shape."""
    if not 1 <= mean < 1e6:
        raise ValueError(f"the mean number of runs must lie in [1, 1e6), got {mean!r}")
    if not 0 <= shape <= 100:
        raise ValueError(f"the shape of the law of the number of runs must lie in [0, 100], got {shape!r}")
    if mean == 1:
        return 1.0

    def excess(log_gamma: float) -> float:
        # The mean is shape (1 - gamma) / (gamma (1 - gamma^shape)).
        below = -math.expm1(log_gamma) / math.exp(log_gamma)
        least = -log_gamma if shape == 0 else -math.expm1(shape * log_gamma) / shape
        return math.log(below / least) - math.log(mean)

    return math.exp(optimize.brentq(excess, -40.0, -1e-9, xtol=1e-14, rtol=1e-14)) if excess(-1e-9) < 0 else 1.0


def renyi_epsilon(events: tuple[PrivacyEvent, ...], delta: float) -> float:
    """Return the least epsilon that Rényi divergences prove, over a fixed grid of orders. It can be infinite."""
    counts, least = Counter(events), math.inf
    for order in _CONVERSION_ORDERS.tolist():
        # Canonne, Kamath and Steinke 2020, proposition 12.
        offset = math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
        if offset < least:
            least = min(least, math.fsum(count * event.rdp(order) for event, count in counts.items()) + offset)
    return max(least, 0.0) * _ABOVE_ROUNDING


@dataclass(frozen=True)
class SampledGaussianEvent(PrivacyEvent):
    """Repeated sums over Poisson samples of the records, with Gaussian noise."""

    rate: float  # Probability that a record is in a sample, in (0, 1].
    noise_mu: float  # Ratio of the sensitivity of a sum to the standard deviation of its noise.
    n_steps: int  # Number of sums.

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise ValueError(f"rate must lie in (0, 1], got {shown(self.rate)}")
        if not 0 <= self.noise_mu < math.inf:
            raise ValueError(f"noise_mu must be finite and at least 0, got {shown(self.noise_mu)}")
        if self.n_steps != int(self.n_steps) or self.n_steps < 1:
            raise ValueError(f"n_steps must be a positive integer, got {shown(self.n_steps)}")
        object.__setattr__(self, "n_steps", int(self.n_steps))

    def mu(self) -> float:
        # A mixture is at least as hard to distinguish as its farther part.
        whole = math.sqrt(self.n_steps) * self.noise_mu * UP
        return whole if self.rate == 1 or self.noise_mu == 0 else min(whole, _gdp(self))

    def _least_delta(self, epsilon: float) -> float:
        # The divergence of one step, when a record is removed, and of all steps together without sampling.
        mu, rate = self.noise_mu, self.rate
        if rate == 1:
            return float(gaussian_delta(epsilon, mu * math.sqrt(self.n_steps)))
        if mu == 0 or epsilon > 500:
            return 0.0
        above = math.expm1(epsilon) + rate
        cut = (math.log(above / rate) + mu * mu / 2) / mu
        return max(0.0, float(rate * special.ndtr(mu - cut) - above * special.ndtr(-cut)) - 1e-12)

    def rdp(self, order: float) -> float:
        return self.n_steps * _step_rdp(self.rate, self.noise_mu, float(order))

    def _profiles(self, t: NDArray[np.float64]) -> Profiles:
        return self.privacy_loss_distribution(self._spread() / _RESOLUTION)._profiles(t)

    def privacy_loss_distribution(self, interval: float) -> PrivacyLossDistribution:
        if self.noise_mu == 0:
            return no_losses(interval)
        if self.rate == 1:
            # T Gaussian releases are one Gaussian release.
            return GaussianEvent(self.noise_mu * math.sqrt(self.n_steps)).privacy_loss_distribution(interval)
        return losses_of_profile(self._step_profiles, interval).self_compose(self.n_steps)

    def _step_profiles(self, t: NDArray[np.float64]) -> Profiles:
        """Return the profiles of one step, which are those of Gaussian noise at another epsilon."""
        q, mu = self.rate, self.noise_mu
        removed = q * gaussian_delta(np.log1p(np.expm1(t) / q), mu)
        # Against the mixture, this is the remaining part of the law without the record at this epsilon.
        left = -np.expm1(np.minimum(t + math.log1p(-q), 0.0))
        some = np.where(left > 0, left, 1.0)
        added = np.where(left > 0, left * gaussian_delta(math.log(q) + t - np.log(some), mu), 0.0)
        return removed, added

    def _spread(self) -> float:
        """Return approximately the standard deviation of the loss of one step."""
        return self.rate * math.sqrt(math.expm1(min(self.noise_mu, MOST_MU) ** 2))


@lru_cache(maxsize=4096)
def _step_rdp(rate: float, noise_mu: float, order: float) -> float:
    r"""Bound one step's divergence, :math:`\log E (1 - q + q e^{\mu x - \mu^2/2})^\alpha / (\alpha-1)`, x normal."""
    # The integrand is analytic in a strip of half width pi / mu. Therefore the trapezoidal rule is exact except for
    # rounding. The usual series for fractional orders does not converge for all of them.
    whole = order * noise_mu**2 / 2
    if rate == 1 or noise_mu == 0 or order * noise_mu > _FARTHEST:
        return whole
    spacing = 0.1 / max(1.0, noise_mu)
    x = np.arange(-13.0, 13.0 + order * noise_mu, spacing)
    normal = np.log(spacing) - x**2 / 2 - 0.5 * np.log(2 * np.pi)
    power = order * np.logaddexp(np.log1p(-rate), np.log(rate) + noise_mu * x - noise_mu**2 / 2)
    logarithm = float(special.logsumexp(normal + power))
    if logarithm < 0.1:
        small = np.exp(normal) * np.expm1(np.minimum(power, 1.0))
        logarithm = float(np.log1p(np.where(power < 1, small, np.exp(normal + power) - np.exp(normal)).sum()))
    return min(whole, max(logarithm, 0.0) / (order - 1) * (1 + 1e-9) + 1e-13 / (order - 1))


def _grid_of_epsilons(spread: float, largest: float) -> NDArray[np.float64]:
    """Return epsilons from 0 to `largest`, evenly up to half of the spread of the loss, and then by equal factors."""
    points = math.ceil(math.log(2 * largest / spread) / _LOG_OF_FACTOR)
    even = np.linspace(0, spread / 2, _EVEN_POINTS)[:-1]
    return np.concatenate([even, np.geomspace(spread / 2, largest, points)])


def _delta_by_divergences(divergences: NDArray[np.float64], epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bound delta at each epsilon by divergences at all orders (Canonne, Kamath and Steinke 2020, proposition 12)."""
    excess = (divergences + np.log1p(-1 / _ORDERS))[:, None] - epsilons
    logs = (_ORDERS[:, None] - 1) * excess - np.log(_ORDERS)[:, None]
    return np.exp(np.minimum(logs.min(axis=0), 0.0))


@lru_cache(maxsize=1024)
def _gdp(event: SampledGaussianEvent) -> float:
    """Return a mu for which the steps are mu-GDP except for a negligible delta, or infinity if none is found."""
    if event.noise_mu > MOST_MU:
        return math.inf
    spread = event._spread()
    together = spread * math.sqrt(event.n_steps)
    if together > _LARGEST_EPSILON / 10:
        return math.inf
    whole = math.sqrt(event.n_steps) * event.noise_mu
    largest = min(_FARTHEST_LOSS * whole + whole**2 / 2 + together, _LARGEST_EPSILON)
    grid = _grid_of_epsilons(together, largest)
    divergences = np.array([event.rdp(order) for order in _ORDERS])
    deltas = _delta_by_divergences(divergences, grid)
    interval = spread / _RESOLUTION
    if event.n_steps <= _MOST_STEPS and 20 * event.noise_mu / interval <= _MOST_POINTS_OF_STEP:
        deltas = np.minimum(deltas, event.privacy_loss_distribution(interval).get_delta_for_epsilon(grid))
    if not deltas[-1] <= NEGLIGIBLE_DELTA:
        return math.inf

    def dominates(mu: float) -> bool:
        # Deltas decrease with epsilon. On each cell of the grid, the left end is compared with the Gaussian's right
        # end.
        return bool(np.all(deltas[:-1] <= gaussian_delta(grid[1:], mu) * (1 - _MARGIN) + NEGLIGIBLE_DELTA))

    low, high = 0.0, whole
    if not dominates(high):
        return math.inf
    while high - low > _PRECISION_OF_MU * high:
        middle = (low + high) / 2
        low, high = (low, middle) if dominates(middle) else (middle, high)
    return high


@lru_cache(maxsize=1024)
def sampled_gaussian_mu(epsilon: float, delta: float, rate: float, n_steps: int, other_mu: float = 0.0) -> float:
    """Return the largest ratio of sensitivity to noise, rounded down, for (epsilon, delta)-DP sampled Gaussian steps.

    Other Gaussian releases of the same fit are `other_mu`-GDP. The ratio of one step has a closed form if `rate` is 1.
    Otherwise, it is within about a thousandth of the best.
    """
    whole = gaussian_mu(epsilon, delta)
    if not 0 <= other_mu < whole:
        raise ValueError("the other releases leave nothing of epsilon and delta")
    left = math.sqrt(whole**2 - other_mu**2)
    full_batch = left / math.sqrt(n_steps) * (1 - 2.0**-50)
    if rate == 1:
        return full_batch
    # The sum of many small losses is nearly normal. This only determines the start of the search.
    spread = left / math.sqrt(n_steps)
    most = max(full_batch, MOST_MU)
    guess = min(max(full_batch, math.sqrt(math.log1p((spread / rate) ** 2))), most)
    interval = spread / _RESOLUTION

    def events(mu: float) -> Counter[PrivacyEvent]:
        others: list[PrivacyEvent] = [GaussianEvent(other_mu)] if other_mu > 0 else []
        return Counter([SampledGaussianEvent(rate, mu, n_steps), *others])

    def by_distribution(mu: float) -> float:
        try:
            return float(compose_events(events(mu), interval).get_delta_for_epsilon(epsilon))
        except OverflowError:
            return by_divergences(mu)

    def by_divergences(mu: float) -> float:
        divergences = np.array([sum(event.rdp(order) for event in events(mu)) for order in _ORDERS])
        return float(_delta_by_divergences(divergences, np.array([epsilon]))[0])

    # The infinite part of distributions must be a small part of delta.
    quick = n_steps > _MOST_STEPS or 20 * guess / interval > _MOST_POINTS_OF_STEP or 1e4 * n_steps * NEGLIGIBLE > delta
    # Sampling only helps.
    return _largest(by_divergences if quick else by_distribution, delta, guess, (full_batch, most))


def _largest(delta_of: Callable[[float], float], delta: float, guess: float, limits: tuple[float, float]) -> float:
    """Return nearly the largest mu with ``delta_of(mu) <= delta``. The lower limit must satisfy it."""

    @lru_cache
    def excess(log_mu: float) -> float:
        value = delta_of(math.exp(log_mu))
        return (math.log(value) if value > 0 else -1e4) - math.log(delta)

    least, most = (math.log(limit) for limit in limits)
    low = high = math.log(guess)
    while low > least and excess(low) > 0:
        low, high = low - 0.1, low
    if low <= least:
        return limits[0]
    while high < most and excess(high) <= 0:
        low, high = high, high + 0.1
    if high >= most and excess(most) <= 0:
        return limits[1]
    log_mu = float(optimize.brentq(excess, low, min(high, most), xtol=_NOISE_TOLERANCE))
    while excess(log_mu) > 0:
        log_mu -= _NOISE_TOLERANCE
    return max(math.exp(log_mu) * (1 - 2.0**-40), limits[0])

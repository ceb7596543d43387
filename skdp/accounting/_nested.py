r"""Events that consist of other events: on disjoint parts of the records, and the best of a random number of runs."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from ._curves import pure_dp_mu
from ._events import PrivacyEvent, PureEvent, compose_events, pair_profile
from ._loss_distribution import PrivacyLossDistribution, Profiles

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


@dataclass(frozen=True)
class ParallelEvent(PrivacyEvent):
    r"""Several lists of events such that any one record is exposed to one list only.

    This is the case if the records are divided into disjoint parts, and each list has its own part. The division may be
    a public rule that depends on each record separately, or a draw that is independent for each record and of
    everything else. It is also the case if only one of the lists takes place, and earlier releases decided which one.

    *Theorem.* If each list, on its part, has :math:`H_{e^t} \le h_j(t)` for all :math:`t`, in both directions, then the
    whole has :math:`H_{e^t} \le \max_j h_j(t)`. The same holds with Rényi divergences, Gaussian-DP parameters and
    epsilons in the place of :math:`h_j(t)`.

    *Proof.* Neighbours differ in one record :math:`z`. The draw is part of the mechanism. Condition on the parts of all
    records, including :math:`z`. The draw of the others has the same law under both neighbours, and that of :math:`z`
    has no effect if :math:`z` is missing. Let :math:`z` be in part :math:`j`. Then the other parts hold the same rows
    under both neighbours. Their outputs have the same law and, being independent of part :math:`j`'s given the
    division, cancel. If a list depends on releases of another list, that is post-processing or adaptive composition
    with an event whose loss is 0. The remaining list is :math:`j`, with :math:`H_{e^t} \le h_j(t)`. The outputs' laws
    are the mixtures of the conditional ones with equal weights under both neighbours, and :math:`(P, Q) \mapsto
    H_{e^t}(P\,\|\,Q)` is jointly convex, so that the mixture's is at most the largest. Powers
    :math:`e^{(\alpha-1)D_\alpha}` are jointly convex, too. A trade-off curve of a mixture is at least the least of the
    curves, and epsilon is the least :math:`t` with :math:`h(t) = 0`. For the second case, condition on earlier
    releases. ∎

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
    >>> ParallelEvent(((PureEvent(0.5), PureEvent(0.25)), (PureEvent(1.0),))).pure_epsilon()
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

    def alternatives(self) -> tuple[tuple[PrivacyEvent, ...], ...]:
        return self.parts

    def mu(self) -> float:
        # A single event is not rounded again.
        return max(
            part[0].mu() if len(part) == 1 else math.sqrt(math.fsum(event.mu() ** 2 for event in part)) * (1 + 2.0**-50)
            for part in self.parts
        )

    def rdp(self, order: float) -> float:
        return max(math.fsum(event.rdp(order) for event in part) * (1 + 2.0**-50) for part in self.parts)

    def profiles(self, t: NDArray[np.float64]) -> Profiles:
        return self._largest(t, PROFILE_INTERVAL)

    def privacy_loss_distribution(self, interval: float) -> PrivacyLossDistribution:
        distributions = self._distributions(interval)
        if len(distributions) == 1:
            return distributions[0]
        return PrivacyLossDistribution.from_profile(lambda t: self._largest(t, interval), interval)

    def _distributions(self, interval: float) -> list[PrivacyLossDistribution]:
        counts = {frozenset(Counter(part).items()): Counter(part) for part in self.parts}
        return [compose_events(count, interval) for count in counts.values()]

    def _largest(self, t: NDArray[np.float64], interval: float) -> Profiles:
        removed, added = np.max([losses.profiles(t) for losses in self._distributions(interval)], axis=0)
        return removed, added


@dataclass(frozen=True)
class RepeatedSelectionEvent(PrivacyEvent):
    r"""The best of a random number of independent runs of one mechanism. Nothing else of the runs is released.

    The number of runs has the truncated negative binomial law with shape :math:`\eta` and a parameter :math:`\gamma`
    that follows from its mean: :math:`P(J = k) \propto (1-\gamma)^k \prod_{l<k} \frac{l+\eta}{l+1}` for :math:`k \ge
    1`. With :math:`\eta = 0` it is the logarithmic law, and with :math:`\eta = 1` the geometric one. The *best* run is
    the first by an order on the outputs of the mechanism, which include the score.

    *Theorem* (Papernot and Steinke 2022, theorem 2). If a run has Rényi divergences :math:`\rho(\alpha)`, the whole has

    .. math:: \rho'(\alpha) \le \rho(\alpha) + (1+\eta)\Big(1-\frac1\beta\Big)\rho(\beta)
        + \frac{(1+\eta)\log(1/\gamma)}{\beta} + \frac{\log \mathbb{E} J}{\alpha-1}

    for every :math:`\beta \ge 1`. With an :math:`\varepsilon`-DP run, it is :math:`(2+\eta)\varepsilon`-DP (their
    corollary 3). Divergences grow with the order. Therefore the bound of a higher order holds as well.

    A search divides the data once, into rows to train and rows to score, and draws runs afresh on them. In this case,
    condition on the division as for :class:`ParallelEvent`.

    Parameters
    ----------
    events : tuple of PrivacyEvent
        Events of one run.
    mean : float
        Mean number of runs, at least 1.
    shape : float
        Shape of the law, at least 0.

    References
    ----------
    .. [1] N. Papernot and T. Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", ICLR 2022.
    """

    events: tuple[PrivacyEvent, ...]
    mean: float
    shape: float

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

    def profiles(self, t: NDArray[np.float64]) -> Profiles:
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
    """Return the parameter gamma of the truncated negative binomial law with a given mean.

    Parameters
    ----------
    mean : float
        Mean number of runs, at least 1.
    shape : float
        Shape of the law, at least 0.

    Returns
    -------
    gamma : float
        In (0, 1].
    """
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
    """Return the least epsilon that Rényi divergences prove, over a fixed grid of orders.

    Parameters
    ----------
    events : tuple of PrivacyEvent
        Events that take place.
    delta : float
        In (0, 1).

    Returns
    -------
    epsilon : float
        At least 0. Infinite if no divergence is known.
    """
    counts, least = Counter(events), math.inf
    for order in _CONVERSION_ORDERS.tolist():
        # Canonne, Kamath and Steinke 2020, proposition 12.
        offset = math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
        if offset < least:
            least = min(least, math.fsum(count * event.rdp(order) for event, count in counts.items()) + offset)
    return max(least, 0.0) * _ABOVE_ROUNDING

r"""Privacy events: the privacy losses of the releases of a fit, and their known bounds.

An event has three bounds on its privacy loss, and each bound is added up by its own filter: a pure epsilon, the square
of a Gaussian-DP parameter, and the Rényi divergence of a given order. A bound that is not known is infinite. An event
also has a distribution that dominates its loss, for sequences that are declared in advance.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..checks.params import shown
from ._budget import UP, bounded_range_mu, gaussian_delta, pure_dp_mu, renyi_budget
from ._loss_distribution import PrivacyLossDistribution, Profiles, losses_of_profile, no_losses
from ._objective import ObjectiveCurve

#: Accepted relative error between the stated guarantee of a cost and the proved guarantee of its events.
_ROUNDING = 1e-6

#: Ranges beyond this have no distribution of their own, because the profile would lose digits.
_MOST_RANGE = 20.0


def _check(value: float, name: str) -> None:
    if not value >= 0:
        raise ValueError(f"{name} must be at least 0, got {shown(value)}")


def pair_profile(epsilon: float, delta: float, t: NDArray[np.float64]) -> Profiles:
    """Return the profile of an (epsilon, delta)-DP release without further known properties."""
    # This is randomised response, except that a part of the outcomes discloses everything.
    answer = -np.expm1(np.minimum(t - epsilon, 0.0)) / (1 + math.exp(-epsilon))
    both = delta + (1 - delta) * answer
    return both, both


class PrivacyEvent(ABC):
    """One random release, with the bounds that composition needs."""

    @abstractmethod
    def mu(self) -> float:
        """Return a mu for which the event is mu-GDP.

        Returns
        -------
        mu : float
            Rounded up. Infinite if no bound is known.
        """

    @abstractmethod
    def rdp(self, order: float) -> float:
        """Return a bound on the Rényi divergence in both directions.

        Parameters
        ----------
        order : float
            Order, greater than 1.

        Returns
        -------
        divergence : float
            Infinite if no bound is known.
        """

    def _least_delta(self, epsilon: float) -> float:
        """Return a lower bound on the delta for an epsilon, or 0, to refuse costs that are stated too low."""
        return 0.0

    @abstractmethod
    def _profiles(self, t: NDArray[np.float64]) -> Profiles:
        """Bound delta at every epsilon, which is at least 0, when a record is removed, and when it is added."""

    def privacy_loss_distribution(self, interval: float) -> PrivacyLossDistribution:
        """Return a distribution that dominates the privacy loss in both directions.

        Parameters
        ----------
        interval : float
            Width of the lattice of losses.

        Returns
        -------
        distribution : PrivacyLossDistribution
            Rounded up to the safe side.
        """
        return losses_of_profile(self._profiles, interval)

    def pure_epsilon(self) -> float:
        """Return an epsilon for which the event is epsilon-DP.

        Returns
        -------
        epsilon : float
            Infinite if no bound is known.
        """
        return math.inf


@dataclass(frozen=True)
class GaussianEvent(PrivacyEvent):
    """A mu-GDP release, such as that of the Gaussian mechanism."""

    noise_mu: float  # Ratio of the sensitivity to the standard deviation of the noise.

    def __post_init__(self) -> None:
        _check(self.noise_mu, "noise_mu")

    def mu(self) -> float:
        return self.noise_mu

    def rdp(self, order: float) -> float:
        return order * self.noise_mu**2 / 2

    def _profiles(self, t: NDArray[np.float64]) -> Profiles:
        both = gaussian_delta(t, self.noise_mu)
        return both, both


@dataclass(frozen=True)
class PureEvent(PrivacyEvent):
    """An epsilon-DP release."""

    epsilon: float  # Pure guarantee of the release. Infinite for a release without noise.

    def __post_init__(self) -> None:
        _check(self.epsilon, "epsilon")

    def pure_epsilon(self) -> float:
        return self.epsilon

    def mu(self) -> float:
        return pure_dp_mu(self.epsilon)

    def rdp(self, order: float) -> float:
        # Randomised response dominates every epsilon-DP mechanism.
        e = self.epsilon
        if e == math.inf or e == 0:
            return e
        t = (order - 1) * e
        if t < 1:
            # The same formula with hyperbolic functions, which does not cancel near order 1.
            above = math.tanh(e / 2) * math.sinh(t) + 2 * math.sinh(t / 2) ** 2
            return math.log1p(above) / (order - 1) * (1 + 2.0**-40)
        # log((exp(order e) + exp((1 - order) e)) / (1 + exp(e))) / (order - 1), without the large terms that cancel.
        above = t + math.log1p(math.exp((1 - 2 * order) * e)) - math.log1p(math.exp(-e))
        return min(e, above / (order - 1) * (1 + 2.0**-40))

    def _profiles(self, t: NDArray[np.float64]) -> Profiles:
        return pair_profile(self.epsilon, 0.0, t)


@dataclass(frozen=True)
class BoundedRangeEvent(PureEvent):
    r"""A release whose privacy losses lie in an interval of length epsilon, as for the exponential mechanism.

    The interval contains 0. Therefore the release is epsilon-DP, but there are better bounds
    (:doc:`/user_guide/accounting_theory` has the derivations).

    Parameters
    ----------
    epsilon : float
        Length of the interval.

    Examples
    --------
    >>> from skdp.accounting import BoundedRangeEvent, PureEvent
    >>> PureEvent(1.0).rdp(4.0) > BoundedRangeEvent(1.0).rdp(4.0) == 0.5
    True
    """

    def mu(self) -> float:
        return bounded_range_mu(self.epsilon)

    def rdp(self, order: float) -> float:
        return min(super().rdp(order), order * self.epsilon**2 / 8)

    def _profile(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return, for each t, the delta of the worst pair at epsilon `t`, any real number."""
        inside = np.abs(t) < self.epsilon
        u = np.where(inside, t, 0.0)
        tilt = -np.tanh(u / 4) / np.tanh(self.epsilon / 4)
        # sigma(2 atanh(tilt) + x), with the odds (1 + tilt) / (1 - tilt) written out.
        odds = (1 + tilt) / (1 - tilt)
        p, q = (odds / (odds + np.exp(-sign * self.epsilon / 2)) for sign in (1, -1))
        beyond = np.where(t > 0, 0.0, -np.expm1(np.minimum(t, 0.0)))
        return np.where(inside, np.maximum(p - np.exp(u) * q, 0.0), beyond)

    def _profiles(self, t: NDArray[np.float64]) -> Profiles:
        if not 0 < self.epsilon <= _MOST_RANGE:
            return super()._profiles(t)
        both = self._profile(t)
        return both, both


@dataclass(frozen=True)
class ApproximateEvent(PrivacyEvent):
    """A release with (epsilon, delta) and a positive delta, without further known properties."""

    epsilon: float  # Guarantee of the release.
    delta: float

    def __post_init__(self) -> None:
        _check(self.epsilon, "epsilon")
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta must lie in [0, 1), got {shown(self.delta)}")

    def mu(self) -> float:
        return math.inf

    def rdp(self, order: float) -> float:
        return math.inf

    def _profiles(self, t: NDArray[np.float64]) -> Profiles:
        return pair_profile(self.epsilon, self.delta, t)


@dataclass(frozen=True)
class ObjectiveEvent(PrivacyEvent):
    """Objective perturbation with Gaussian noise."""

    curve: ObjectiveCurve  # Its privacy curve.
    noise_mu: float  # Ratio of the sensitivity of the gradient to the standard deviation of the noise.

    def __post_init__(self) -> None:
        _check(self.noise_mu, "noise_mu")

    def mu(self) -> float:
        return self.curve.gdp(self.noise_mu)

    def rdp(self, order: float) -> float:
        return self.curve.rdp(order, self.noise_mu)

    def _profiles(self, t: NDArray[np.float64]) -> Profiles:
        both = self.curve.convex_profile(t, self.noise_mu)
        return both, both


@dataclass(frozen=True)
class PrivacyCost:
    """The cost that an accountant is charged for one fit."""

    epsilon: float  # Guarantee of the fit as a whole. It is pure if delta is 0.
    delta: float
    events: tuple[PrivacyEvent, ...]  # Events of the fit, in order. Each may depend on earlier releases.

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", tuple(self.events))
        if not (self.epsilon >= 0 and 0 <= self.delta < 1):
            raise ValueError(
                f"a cost must have epsilon >= 0 and delta in [0, 1), got {shown(self.epsilon)}, {self.delta!r}"
            )
        if not all(isinstance(event, PrivacyEvent) for event in self.events):
            raise TypeError("the events of a cost must be instances of PrivacyEvent")
        if not self._consistent():
            raise ValueError(
                f"the events do not have the guarantee (epsilon={self.epsilon!r}, delta={self.delta!r}) of their cost"
            )

    def _consistent(self) -> bool:
        """Tell whether the pair is at least what the events prove, in the cases that are easy to compute."""
        if self.epsilon == math.inf or not self.events:
            return bool(self.events) or self.epsilon == self.delta == 0
        if self.delta == 0 or all(isinstance(event, PureEvent) for event in self.events):
            whole = math.fsum(event.pure_epsilon() for event in self.events)
            return whole <= self.epsilon * (1 + 1e-12) or (self.delta > 0 and self._proved_together())
        if all(isinstance(event, GaussianEvent) for event in self.events):
            return self._covers(GaussianEvent(self.mu()))
        return all(self._covers(event) for event in self.events)

    def _proved_together(self) -> bool:
        """Tell whether Gaussian DP or Rényi divergences prove the pair, as for many events of bounded range."""
        if self._covers(self.events[0] if len(self.events) == 1 else GaussianEvent(self.mu())):
            return True
        order, divergence = renyi_budget(self.epsilon, self.delta)
        return self.rdp(order) <= divergence * (1 + _ROUNDING)

    def _covers(self, event: PrivacyEvent) -> bool:
        """Tell whether the guarantee of one event alone is within the pair, as far as its privacy curve is known."""
        epsilon, delta = self.epsilon * (1 + _ROUNDING), self.delta * (1 + _ROUNDING)
        if isinstance(event, GaussianEvent | PureEvent | ApproximateEvent):
            return float(event._profiles(np.array(epsilon))[0]) <= delta
        if event._least_delta(epsilon) > delta:
            return False
        try:
            # Each part of a ParallelEvent must have the pair by itself. Otherwise, its cost cannot be constructed.
            for events in filter(None, getattr(event, "parts", ())):
                replace(self, events=events)
        except ValueError:
            return False
        return True

    @classmethod
    def of_pair(cls, epsilon: float, delta: float) -> PrivacyCost:
        """Return the cost of a release with (epsilon, delta) and no further known properties."""
        event = PureEvent(epsilon) if delta == 0 else ApproximateEvent(epsilon, delta)
        return cls(epsilon, delta, (event,))

    @property
    def pure(self) -> bool:
        """Whether delta is 0."""
        return self.delta == 0

    def mu(self) -> float:
        """Return a mu for which the fit is mu-GDP."""
        return math.sqrt(math.fsum(event.mu() ** 2 for event in self.events)) * UP

    def rdp(self, order: float) -> float:
        """Return a bound on the fit's Rényi divergence in both directions."""
        return math.fsum(event.rdp(order) for event in self.events) * UP

    def privacy_loss_distribution(self, value_discretization_interval: float = 1e-4) -> PrivacyLossDistribution:
        """Return the distribution of the privacy loss of the fit, for composition with others."""
        return compose_events(Counter(self.events), value_discretization_interval)


def compose_events(counts: Counter[PrivacyEvent], interval: float) -> PrivacyLossDistribution:
    """Return a distribution that dominates the privacy loss of a list of events, on a lattice of width `interval`."""
    whole = no_losses(interval)
    for event, count in counts.items():
        if PureEvent(math.inf) == event:
            raise ValueError("a fit with epsilon=inf has no privacy loss distribution")
        whole = whole.compose(event.privacy_loss_distribution(interval).self_compose(count))
    return whole

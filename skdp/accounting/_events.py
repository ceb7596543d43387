r"""What happened, as data: the privacy losses that a fit consists of, and what is known about each.

An event knows three things about its privacy loss, each of which composes by addition under a filter of its own: a
pure epsilon, the square of a Gaussian-DP parameter, and the Rényi divergence of a given order. A statement that is
not known is infinite.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from ._gaussian import pure_dp_mu
from ._objective import ObjectiveCurve


class PrivacyEvent(ABC):
    """One random release, as far as composition is concerned."""

    @abstractmethod
    def mu(self) -> float:
        """Return a mu for which the event is mu-GDP.

        Returns
        -------
        mu : float
            Rounded up; infinite where no such statement is known.
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
            Infinite where no bound is known.
        """


@dataclass(frozen=True)
class GaussianEvent(PrivacyEvent):
    """A mu-GDP release, such as that of the Gaussian mechanism.

    Parameters
    ----------
    noise_mu : float
        Sensitivity over standard deviation.
    """

    noise_mu: float

    def mu(self) -> float:
        return self.noise_mu

    def rdp(self, order: float) -> float:
        return order * self.noise_mu**2 / 2


@dataclass(frozen=True)
class PureEvent(PrivacyEvent):
    """An epsilon-DP release.

    Parameters
    ----------
    epsilon : float
        Its guarantee; infinite for a release without noise.
    """

    epsilon: float

    def mu(self) -> float:
        return pure_dp_mu(self.epsilon)

    def rdp(self, order: float) -> float:
        # Randomised response dominates every epsilon-DP mechanism.
        e = self.epsilon
        if e == math.inf or e == 0:
            return e
        # log((exp(order e) + exp((1 - order) e)) / (1 + exp(e))) / (order - 1)
        return float(np.logaddexp(order * e, (1 - order) * e) - np.logaddexp(0.0, e)) / (order - 1)


@dataclass(frozen=True)
class ApproximateEvent(PrivacyEvent):
    """A release of which only (epsilon, delta) with a positive delta is known.

    Parameters
    ----------
    epsilon, delta : float
        Its guarantee.
    """

    epsilon: float
    delta: float

    def mu(self) -> float:
        return math.inf

    def rdp(self, order: float) -> float:
        return math.inf


@dataclass(frozen=True)
class ObjectiveEvent(PrivacyEvent):
    """Objective perturbation with Gaussian noise.

    Parameters
    ----------
    curve : ObjectiveCurve
        Its privacy curve.
    noise_mu : float
        Sensitivity of the gradient over standard deviation.
    """

    curve: ObjectiveCurve
    noise_mu: float

    def mu(self) -> float:
        return self.curve.gdp(self.noise_mu)

    def rdp(self, order: float) -> float:
        return self.curve.rdp(order, self.noise_mu)


@dataclass(frozen=True)
class PrivacyCost:
    """What one fit is charged.

    Parameters
    ----------
    epsilon, delta : float
        The fit as a whole is (epsilon, delta)-DP; pure if delta is 0.
    events : tuple of PrivacyEvent
        The events that it consists of, in order; each may depend on what those before it released.
    """

    epsilon: float
    delta: float
    events: tuple[PrivacyEvent, ...]

    def __post_init__(self) -> None:
        if not (self.epsilon >= 0 and 0 <= self.delta < 1):
            raise ValueError(f"a cost must have epsilon >= 0 and delta in [0, 1), got {self.epsilon!r}, {self.delta!r}")

    @property
    def pure(self) -> bool:
        """Whether delta is 0."""
        return self.delta == 0

    def mu(self) -> float:
        """Return a mu for which the fit is mu-GDP.

        Returns
        -------
        mu : float
            Rounded up; infinite where none is known.
        """
        return math.sqrt(math.fsum(event.mu() ** 2 for event in self.events)) * (1 + 2.0**-50)

    def rdp(self, order: float) -> float:
        """Return a bound on the fit's Rényi divergence in both directions.

        Parameters
        ----------
        order : float
            Order, greater than 1.

        Returns
        -------
        divergence : float
            Rounded up; infinite where none is known.
        """
        return math.fsum(event.rdp(order) for event in self.events) * (1 + 2.0**-50)

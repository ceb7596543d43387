"""A part of the budget whose division follows from releases, and what is left of it.

The plan of a fit states the event of the whole part. Each share of it is planned when earlier releases have determined
its mechanism. Together, the shares cost no more than the part, which `ReleaseSession.refine` checks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..accounting import GaussianEvent, PrivacyEvent, PureEvent, bounded_range_epsilon, gaussian_mu
from ..mechanisms import BestChoices, GaussianMechanism, GroupChoices, Mechanism, NoNoise, l1_mechanism
from .session import PrivacyGuarantee, Release, ReleaseSession, Reserved, Theorem

# Parts of the budget are rounded down, so that their sum never exceeds the budget.
_BELOW = 1 - 2.0**-36

# Events of reserved parts are rounded down, so that the sum of a plan is below its budget.
_ROUNDED_DOWN = 1 - 2.0**-44

# A smaller rest of the budget is a rounding error.
_LEAST_SHARE = 2.0**-30


@dataclass(frozen=True)
class ReservedPart:
    """A part of the budget for releases whose plans depend on earlier releases, with its label in the plan."""

    label: str
    theorem: Theorem
    epsilon: float
    delta: float
    share: float  # Of the squared GDP parameter, or of epsilon with ``delta=0``.

    def mu(self, share: float) -> float:
        """Return the GDP parameter of a share of the budget."""
        return math.inf if self.epsilon == math.inf else gaussian_mu(self.epsilon, self.delta) * math.sqrt(share)

    @property
    def event(self) -> GaussianEvent | PureEvent:
        return self.event_of(self.share)

    def event_of(self, share: float) -> GaussianEvent | PureEvent:
        """Return the event of a share of the budget."""
        if self.delta == 0 or self.epsilon == math.inf:
            return PureEvent(self.epsilon * share * _ROUNDED_DOWN)
        return GaussianEvent(self.mu(share) * _ROUNDED_DOWN)

    def plan(self) -> PrivacyGuarantee:
        release = Release(self.label, Reserved(self.event), self.share, self.theorem)
        return PrivacyGuarantee(self.epsilon, self.delta, (self.event,), (release,))


class Reserve:
    """What is left of a reserved part. Each share that is spent follows from earlier releases."""

    def __init__(self, session: ReleaseSession, part: ReservedPart) -> None:
        self.session, self._part = session, part

    @property
    def share(self) -> float:
        return self._part.share

    @property
    def pure(self) -> bool:
        """Whether shares are parts of epsilon."""
        return self._part.delta == 0 and self._part.epsilon < math.inf

    @property
    def evidence(self) -> float:
        """Epsilon, or the GDP parameter, of the whole budget."""
        return self._part.epsilon if self.pure else self._part.mu(1.0)

    def choice(self, share: float, sensitivity: float) -> Mechanism:
        """Return the mechanism of a choice for a share of the budget, slightly rounded down."""
        share *= _BELOW**2
        if self._part.epsilon == math.inf:
            return BestChoices(sensitivity)
        if self.pure:
            return GroupChoices(self._part.epsilon * share, sensitivity)
        return GroupChoices(bounded_range_epsilon(self._part.mu(share)), sensitivity, bounded_range=True)

    def sums(self, share: float, bound: float, size: int) -> Mechanism:
        """Return the mechanism of sums for a share of the budget, with a bound on the norm of a contribution."""
        share *= _BELOW**2
        if self._part.epsilon == math.inf:
            return NoNoise(bound)
        if self.pure:
            return l1_mechanism(self._part.epsilon * share, bound, size)
        return GaussianMechanism(self._part.mu(share), bound, size)

    def spend(self, share: float, releases: Sequence[Release], events: Sequence[PrivacyEvent] | None = None) -> None:
        """Plan releases for a share of the budget. Without `events`, there is one release of all of the share."""
        if events is None:
            events = [self._part.event_of(share * _BELOW)]
        left = replace(self._part, share=(self._part.share - share) * _BELOW)
        if left.share > _LEAST_SHARE:
            rest = left.plan()
            releases, events = [*releases, *rest.releases], [*events, *rest.events]
        self.session.refine(self._part.label, releases, events)
        self._part = left

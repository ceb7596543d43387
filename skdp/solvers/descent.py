"""The base of models that are fitted by noisy gradient steps: numbers of records and steps, and their cost."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..accounting import (
    GaussianEvent,
    PrivacyEvent,
    PureEvent,
    SampledGaussianEvent,
    check_delta,
    gaussian_mu,
    sampled_gaussian_mu,
)
from ..checks.params import check_integer, check_positive
from ..checks.rules import Checked, Integer, Or, Real, Rules
from ..mechanisms import LEAST_RATE, GaussianMechanism, Mechanism, NoNoise, SampledGaussianMechanism
from ..release.session import PrivacyGuarantee, Release, ReleaseSession
from ..release.theorems import Theorem
from .target_range import Located

#: Part of the budget, of the square of the GDP parameter, for the number of records if it is not declared.
COUNT_SHARE = 0.02

GRADIENTS = "gradients"
COUNT = "number of records"

_MOST_STEPS = 10**9


def positive_delta(value: object) -> float:
    """Return delta, which must not be 0."""
    delta = check_delta(value)
    if delta == 0:
        raise ValueError(
            "delta must be positive, because noisy gradient descent adds Gaussian noise. Choose a value far below one "
            "over the expected number of records"
        )
    return delta


def _batch_size(value: Any, name: str) -> int | float:
    """Return an expected number of rows of a sample, or the probability that a row is in a sample."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return check_integer(value, name, least=1)
    return check_positive(value, name, least=LEAST_RATE, most=1.0)


#: Rules of the parameters of a schedule.
SCHEDULE_RULES: Rules = {
    "batch_size": Or(None, _batch_size),
    "n_steps": Or(None, Integer(1, _MOST_STEPS)),
    "epochs": Or(None, Real(most=1e9)),
    "expected_n": Or(None, Real(1)),
}


@dataclass(frozen=True)
class SamplingSchedule:
    """The sampling schedule: sampling probability, number of steps and declared number of records, all public."""

    rate: float  # Probability that a record is in the sample of a step.
    n_steps: int
    expected_n: float | None  # If None, the number of records is released.

    @classmethod
    def of(cls, parameters: Checked, default_rate: float, default_steps: int) -> SamplingSchedule:
        """Return the schedule for the checked parameters of `SCHEDULE_RULES`."""
        # As a float, `batch_size` is the rate itself; as an integer, the expected number of rows. An epoch is 1 / rate
        # steps.
        rate, n_steps, n = parameters.batch_size, parameters.n_steps, parameters.expected_n
        if isinstance(rate, int):
            if n is None:
                raise ValueError(
                    "an integer batch_size needs expected_n, because the number of rows is private. Set expected_n, "
                    "or pass batch_size as a float, the probability that a row is in a sample"
                )
            rate = max(LEAST_RATE, min(1.0, rate / n))
        rate = default_rate if rate is None else rate
        if parameters.epochs is not None:
            if n_steps is not None:
                raise ValueError("n_steps and epochs must not both be set. Set one of them to None")
            n_steps = math.ceil(parameters.epochs / rate - 1e-9)
            if n_steps > _MOST_STEPS:
                raise ValueError(f"epochs must be at most {_MOST_STEPS * rate:.6g} for this batch_size")
        return cls(rate, max(default_steps if n_steps is None else n_steps, 1), n)

    def plan(
        self,
        epsilon: float,
        delta: float,
        sensitivity: float,
        size: int,
        theorem: Theorem,
        first: Sequence[tuple[Release, PrivacyEvent]] | None = None,
        last: tuple[Release, PrivacyEvent] | None = None,
    ) -> PrivacyGuarantee:
        """Return the plan: first releases, the gradient sums, and a last release."""
        # If there are no others, the first release is the number of records, unless it is declared. `sensitivity` is
        # the largest L2 norm of a record's contribution to a gradient sum, which `theorem` proves. `delta` is positive.
        private = epsilon < math.inf
        whole = gaussian_mu(epsilon, delta) if private else math.inf
        nothing: PrivacyEvent = PureEvent(math.inf)
        if first is None:
            other = whole * math.sqrt(COUNT_SHARE)
            count: Mechanism = GaussianMechanism(other, 1.0, 1) if private else NoNoise(1.0)
            release = Release(COUNT, count, COUNT_SHARE if private else 0.0, Theorem("Gradient descent", 3))
            counted = release, GaussianEvent(other) if private else nothing
            first = [] if self.expected_n is not None else [counted]
        after = [] if last is None else [last]
        reserved = sum(release.share for release, _ in (*first, *after)) if private else 0.0
        mu, steps = math.inf, nothing
        if private:
            mu = sampled_gaussian_mu(epsilon, delta, self.rate, self.n_steps, whole * math.sqrt(reserved))
            steps = SampledGaussianEvent(self.rate, mu, self.n_steps)
            if self.rate == 1:
                steps = GaussianEvent(mu * math.sqrt(self.n_steps))
        gradients = SampledGaussianMechanism(mu, sensitivity, size, self.n_steps, self.rate)
        planned = [*first, (Release(GRADIENTS, gradients, 1 - reserved, theorem), steps), *after]
        events = tuple(event for _, event in planned) if private else (nothing,)
        return PrivacyGuarantee(epsilon, delta, events, tuple(release for release, _ in planned))

    def records(self, session: ReleaseSession, n_rows: int, located: Located | None = None) -> float:
        """Return the number of records that is declared, or was released, or release it in the session."""
        # A private number below its own noise carries no information, and steps divided by it would be much too large.
        if self.expected_n is not None:
            return self.expected_n
        if located is not None:
            return located.count
        noise = session.mechanism(COUNT).scale
        count = float(session.release(COUNT, np.array([float(n_rows)]))[0])
        return max(1.0, noise, count)

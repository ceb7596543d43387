r"""One or two perturbed objectives with weights of records. The second objective depends on releases of the first.

The plan is public before the fit. Features are scaled by the released counts, so that the norm R and the noise are
known in advance. Within the ratio of theorem 6, each objective is a Gaussian mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounting import GAUSSIAN_RATIO, GaussianEvent, PrivacyEvent, PureEvent, gaussian_mu
from ..mechanisms import GaussianMechanism, Mechanism, NoNoise, coordinate_variance
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Reserved
from ..release.theorems import Theorem
from ..schema.columns import Codes
from ..sensitivity import solver_slack_sensitivity
from ..solvers.certified import certified_minimizer
from ..solvers.parted_objective import objective_over
from ..solvers.threads import blas_threads
from ._engines import GradientEngine, ObjectiveEngine
from ._groups import Centred, GroupedLayout, default_weights, learned_weights, mean_squares
from ._terms import sums_of_values
from ._weighted import WeightedLogLoss, weighted_objective

Array = NDArray[np.float64]

#: Share of the first of two rounds in the budget without the counts.
FIRST_ROUND = 0.25

#: Standard deviations of a column's curve that C="auto" expects with much noise, and without noise.
CURVE, SMOOTH_CURVE = 0.5, 0.3

#: With fewer records in a bin than the first number over the GDP parameter, the ridge grows with this power of their
#: number.
MANY, POWER = 40.0, 0.3

#: With rounds="auto" and fewer records than the second number over the GDP parameter, there are gradient steps without
#: weights of records. With fewer records than the first number over the GDP parameter, or with a GDP parameter below
#: `LEAST_MU`, for which the margin is most important, there is one objective without weights.
FEWEST, FEW, LEAST_MU = 40.0, 400.0, 0.1

#: Steps use less than the reserved budget by this share, so that rounding does not matter.
LESS = 2.0**-36

#: With margin="auto", the margin is this number times the logarithm of 1 plus the noise multiplier of the round.
MARGIN, _LARGEST_MARGIN = 0.6, 4.0

# Share of the squared GDP parameter of a round for the noise that hides the residual of the solver.
_SLACK = 4e-4

# The residual, relative to the sensitivity. It changes a score by less than 0.01.
_TOL, _MAX_ITER = 1e-5, 100

# The noise of the objective is rounded more finely than a release, because its rounding error adds to the residual.
_OBJECTIVE_BITS = 36

# Kappa is rounded up before it is compared with the noise.
_BELOW = 1 - 2.0**-30

CURVES = "curves"

_THEOREM = Theorem("Additive models", 5)


@dataclass(frozen=True)
class Round:
    """One perturbed objective. Public."""

    index: int
    mu: float  # GDP parameter of the objective and of the noise that hides the residual, together.
    share: float
    weight: float
    margin: float
    norm: float
    size: int

    @property
    def labels(self) -> tuple[str, str]:
        """Names of the two releases."""
        return f"objective {self.index}", f"solution {self.index}"

    @property
    def tau(self) -> float:
        """Largest norm of the gradient at the solution."""
        return _TOL * self.weight * self.norm

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        if self.mu == math.inf:
            return (PureEvent(math.inf),)
        return GaussianEvent(self._mu_objective), GaussianEvent(self.mu * math.sqrt(_SLACK))

    @property
    def _mu_objective(self) -> float:
        return self.mu * math.sqrt(1 - _SLACK)

    @cached_property
    def mechanisms(self) -> tuple[Mechanism, Mechanism]:
        """The noise of the objective, and that of its solution."""
        sensitivity = self.weight * self.norm
        if self.mu == math.inf:
            return NoNoise(sensitivity), NoNoise(solver_slack_sensitivity(1.0, self.tau))
        objective = GaussianMechanism(self._mu_objective, sensitivity, self.size, _OBJECTIVE_BITS)
        slack = solver_slack_sensitivity(1.0, self.tau + objective.rounding)
        return objective, GaussianMechanism(self.mu * math.sqrt(_SLACK), slack, self.size)

    def ridge(self, length_ratio: float) -> float:
        """Return the weight of the regulariser, at least 1, that the proof requires."""
        kappa = length_ratio * self.weight * self.norm**2
        return 1.0 if self.mu == math.inf else max(1.0, kappa / (GAUSSIAN_RATIO * self._mu_objective * _BELOW))

    @property
    def releases(self) -> tuple[Release, ...]:
        shares = self.share * (1 - _SLACK), self.share * _SLACK
        theorems = _THEOREM, Theorem("Objective perturbation", 5)
        parts = zip(self.labels, self.mechanisms, shares, theorems, strict=True)
        return tuple(Release(label, mechanism, share, theorem) for label, mechanism, share, theorem in parts)

    @property
    def noise(self) -> float:
        """Standard deviation of the noise in the gradient."""
        return math.hypot(*(math.sqrt(coordinate_variance(mechanism)) for mechanism in self.mechanisms))


@dataclass(frozen=True, eq=False)
class Fitted:
    """Features and released coefficients of a round."""

    of: Round
    features: Centred
    ridge: float
    count: float  # Released number of records.
    theta: Array

    def tables(self) -> list[Array]:
        """Return the value that each cell of each term adds to a score, and 0 for no cell."""
        return self.features.tables(self.theta[:-1])

    @property
    def intercept(self) -> float:
        return float(self.features.layout.constant * self.theta[-1])

    def scores(self, codes: Codes) -> Array:
        """Return the scores of records from their cells and the intercept."""
        return sums_of_values(self.tables(), self.intercept, codes)

    @property
    def largest_score(self) -> float:
        """Bound on the size of scores, from released numbers."""
        return abs(self.intercept) + math.fsum(float(np.abs(values).max()) for values in self.tables())

    def next_weights(self) -> Array:
        """Return the weights of groups for the next round, from released numbers."""
        noise, weight = self.of.noise / self.ridge, self.of.weight / self.ridge
        return learned_weights(self.features, self.theta[:-1], noise, weight * self.count)

    def solved(self, session: ReleaseSession, codes: Any, labels: Any, before: Sequence[Fitted]) -> Fitted:
        """Release the minimiser of the perturbed objective after other rounds, with a certified residual."""
        own = self.of
        # The offset of a record's score is a function of its own cells and of released coefficients.
        starts = [(fit.tables(), fit.intercept) for fit in before]
        largest_start = sum(fit.largest_score for fit in before)
        noise, solution = own.labels
        b = session.release(noise, np.zeros(own.size))
        loss = WeightedLogLoss(own.margin)
        make = partial(weighted_objective, self.features, loss, starts, largest_start, self.count)
        objective = objective_over(make, (codes, labels), own.weight, self.ridge, b[None])
        with blas_threads(own.size):
            found = certified_minimizer(objective, own.tau, _MAX_ITER)[0]
        return replace(self, theta=session.release(solution, found))


@dataclass(frozen=True, eq=False)
class RoundsEngine:
    """Logistic regression in one or two rounds, described by public values."""

    epsilon: float
    delta: float
    reserved: float  # The part of the budget that other releases use.
    layout: GroupedLayout
    n_rounds: int
    C: float | None  # C and margin are chosen automatically if None.
    margin: float | None

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        parts = (1.0,) if self.n_rounds == 1 else (FIRST_ROUND, 1 - FIRST_ROUND)
        return tuple(self.round(i + 1, part * (1 - self.reserved)) for i, part in enumerate(parts))

    def round(self, index: int, share: float) -> Round:
        """Return a round for a share of the budget."""
        # It is rounded down, so that an unused budget of the same size admits the fit.
        mu = gaussian_mu(self.epsilon, self.delta) * math.sqrt(share) * (1 - 2.0**-40)
        norm = self.layout.norm
        # With much noise, the ridge is that of the best linear estimate. Without noise, one over the weight is the
        # square of the expected size of a curve, because sampling errors remain.
        usual = 1 / math.hypot(norm / (mu * CURVE), 1 / SMOOTH_CURVE**2)
        weight = min(usual if self.C is None else self.C, GAUSSIAN_RATIO * mu * _BELOW / norm**2)
        margin = self.margin
        if margin is None:
            margin = min(MARGIN * math.log1p(1 / mu), _LARGEST_MARGIN)
        return Round(index, mu, share, weight, margin, norm, self.layout.n_features + 1)

    @property
    def weight(self) -> float:
        """The weight of the losses in the last round."""
        return self.rounds[-1].weight

    @property
    def offset(self) -> float:
        """The margin of the last round."""
        return self.rounds[-1].margin

    def plan(self) -> PrivacyGuarantee:
        events = tuple(event for own in self.rounds for event in own.events)
        releases = tuple(release for own in self.rounds for release in own.releases)
        return PrivacyGuarantee(self.epsilon, self.delta, events, releases)

    def run(
        self,
        session: ReleaseSession,
        codes: Any,
        labels: Any,
        probabilities: list[Array],
        count: float,
    ) -> list[Fitted]:
        """Return each round's features and coefficients; `count` is the released number of records."""
        weights = default_weights(self.layout, mean_squares(self.layout, probabilities))
        found: list[Fitted] = []
        for own in self.rounds:
            found.append(self.fitted(own, probabilities, weights, count).solved(session, codes, labels, found))
            if own is not self.rounds[-1]:
                weights = found[-1].next_weights()
        return found

    @property
    def event(self) -> GaussianEvent:
        """The share of the budget of all rounds."""
        return GaussianEvent(gaussian_mu(self.epsilon, self.delta) * math.sqrt(1 - self.reserved) * (1 - 2.0**-41))

    def has_few(self, count: float) -> bool:
        """Return whether a number of records is too small for weights with rounds="auto"."""
        return count * gaussian_mu(self.epsilon, self.delta) < FEW

    def fitted(self, own: Round, probabilities: list[Array], weights: Array, count: float) -> Fitted:
        """Return the features of a round, before its release."""
        features = Centred.of(self.layout, probabilities, weights)
        usual = 1.0
        if self.C is None:
            in_bin = count * gaussian_mu(self.epsilon, self.delta) / self.layout.n_bins
            usual = max(1.0, (MANY / in_bin) ** POWER)
        return Fitted(own, features, max(usual, own.ridge(features.length_ratio)), count, np.empty(0))

    def restored(
        self, coef: Sequence[Array], weights: Sequence[Array], probabilities: list[Array], count: float
    ) -> list[Fitted]:
        """Return the rounds of `run`, from the coefficients and the weights of groups by round."""
        triples = zip(self.rounds, coef, weights, strict=True)
        return [
            replace(self.fitted(own, probabilities, of_groups, count), theta=theta) for own, theta, of_groups in triples
        ]


@dataclass(frozen=True, eq=False)
class Choice:
    """A choice between two rounds, steps, and one objective without weights, by the released number of records."""

    plain: ObjectiveEngine
    steps: GradientEngine | None
    rounds: RoundsEngine

    @property
    def event(self) -> GaussianEvent:
        """The share of the budget of each alternative."""
        return self.rounds.event

    def of(self, n_rounds: int, in_steps: bool) -> ObjectiveEngine | GradientEngine | RoundsEngine:
        """Return the engine with the given number of rounds, or with steps."""
        if in_steps:
            assert self.steps is not None
            return self.steps
        return self.rounds if n_rounds else self.plain

    def plan(self) -> PrivacyGuarantee:
        release = Release(CURVES, Reserved(self.event), 1 - self.rounds.reserved, _THEOREM)
        return PrivacyGuarantee(self.rounds.epsilon, self.rounds.delta, (self.event,), (release,))

    def chosen(self, session: ReleaseSession, count: float) -> ObjectiveEngine | GradientEngine | RoundsEngine:
        """Return the engine for a released number of records, and plan its releases."""
        few = self.rounds.has_few(count)
        in_steps = (
            self.steps is not None and few and count * gaussian_mu(self.rounds.epsilon, self.rounds.delta) >= FEWEST
        )
        engine = self.of(0 if few else self.rounds.n_rounds, in_steps)
        guarantee = engine.plan()
        session.refine(CURVES, guarantee.releases, guarantee.events)
        return engine

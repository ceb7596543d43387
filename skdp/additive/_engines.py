"""Fits of the curves by noisy gradient steps."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special
from threadpoolctl import threadpool_limits

from ..accounting import (
    GaussianEvent,
    PrivacyEvent,
    PureEvent,
    gaussian_mu,
    sampled_gaussian_mu,
)
from ..mechanisms import SampledGaussianMechanism
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem
from ..solvers.clipped_gradients import Gradients, gradients_over
from ..solvers.linear_descent import GRADIENTS, MARGIN_WALK, Descent, Path, SamplingSchedule, Settings, eta, rule_of
from ..solvers.losses import GradientLoss
from ._features import CellGradients, Centred, GroupedLayout, spectrum

Array = NDArray[np.float64]

# Matrices of fewer rows are too small to gain from several threads of BLAS. While other processes are at work, threads
# that wait for one another make small products many times slower.
_FEWEST_ROWS = 4096

# As in DPSGDClassifier, except for the number of steps.
_MOMENTUM, _AVERAGED = 0.95, 0.5

# Steps are at most this part of the longest stable step.
_STABLE = 0.99

#: Number of gradient steps.
N_STEPS = 300

#: Limits on the noise in a predictor that the curvature of the loss does not remove: for two labels, and for more.
LIMIT, LIMIT_OF_CLASSES = 0.5, 0.8

#: Approximate mean of the second derivative of the loss of labels.
MEAN_CURVATURE = 0.12

# Momentum divides the length of a step by the first number. Steps are shorter than the longest steps by at most this
# power of e.
_REST, _POWERS = 1 - _MOMENTUM, 30.0

#: Name of the release of a second fit of the curves.
AGAIN = "gradients of the second fit"

GRADIENT_THEOREM = Theorem("Additive models", 2)


def blas_threads(size: int) -> AbstractContextManager[Any]:
    """Return a context in which BLAS uses one thread, if the matrices have fewer rows and columns than some thousands.

    The limit holds for the whole process, as does that of scikit-learn's estimators.
    """
    return threadpool_limits(1, "blas") if size < _FEWEST_ROWS else nullcontext()


def mechanism_of(guarantee: PrivacyGuarantee, label: str) -> Any:
    """Return the mechanism of a release."""
    return next(release.mechanism for release in guarantee.releases if release.label == label)


@dataclass(frozen=True, eq=False)
class GradientEngine:
    """Noisy gradient steps on all records, described by public values."""

    epsilon: float
    delta: float
    reserved: float  # The part of the budget that other releases use.
    layout: GroupedLayout
    loss: GradientLoss
    clip: float  # The clipping norm over the norm of rows.
    walk: float = MARGIN_WALK
    rate: float | None = None  # Length of a step on the mean gradient; automatic if None.
    label: str = GRADIENTS

    def within(self, features: Centred, count: float) -> GradientEngine:
        """Return the engine of labels with the longest steps whose noise in predictors is limited."""
        longest = eta(replace(self.descent, walk=math.inf), 0.0)
        if self.epsilon == math.inf:
            return replace(self, rate=longest)
        limit = LIMIT if self.loss.outputs == 1 else LIMIT_OF_CLASSES
        bends, noise, time = spectrum(features), self.mechanism.scale / count, N_STEPS / _REST

        def excess(logarithm: float) -> float:
            # Along an eigenvector, steps add up the noise, and the curvature of the loss reduces it.
            rate = math.exp(logarithm)
            added = (rate * noise) ** 2 * time / _REST * bends
            undone = 2 * MEAN_CURVATURE * rate * time * bends
            return math.sqrt(float(np.sum(added * special.exprel(-undone)))) - limit

        most = math.log(longest)
        least = most - _POWERS
        if excess(most) <= 0:
            return replace(self, rate=longest)
        return replace(self, rate=math.exp(optimize.brentq(excess, least, most) if excess(least) < 0 else least))

    @cached_property
    def descent(self) -> Descent:
        settings = Settings(self.epsilon, self.delta, self.layout.data_norm, momentum=_MOMENTUM, averaged=_AVERAGED)
        if self.rate is not None:
            settings = replace(settings, eta0=self.rate)
        if settings.private:
            settings = replace(settings, max_grad_norm=self.clip * settings.row_norm)
        schedule = SamplingSchedule(1.0, N_STEPS, None)
        return Descent(settings, schedule, self.loss, self.layout.n_features, self.walk, True)

    @property
    def constant(self) -> float:
        """The constant feature."""
        return self.descent.settings.constant

    @property
    def lone_steps(self) -> int:
        """Number of averaged steps of the intercept alone."""
        return max(1, self.descent.lone_steps - self.descent.lone_steps // 2)

    @property
    def step_mu(self) -> float:
        """Sensitivity divided by noise, of one step."""
        if self.epsilon == math.inf:
            return math.inf
        other = gaussian_mu(self.epsilon, self.delta) * math.sqrt(self.reserved)
        return sampled_gaussian_mu(self.epsilon, self.delta, 1.0, N_STEPS, other)

    @cached_property
    def mechanism(self) -> SampledGaussianMechanism:
        size = math.prod(self.descent.shape)
        return SampledGaussianMechanism(self.step_mu, self.descent.max_norm, size, N_STEPS)

    def plan(self) -> PrivacyGuarantee:
        events: tuple[PrivacyEvent, ...] = (PureEvent(math.inf),)
        if self.epsilon < math.inf:
            events = (GaussianEvent(self.step_mu * math.sqrt(N_STEPS)),)
        release = Release(self.label, self.mechanism, 1 - self.reserved, GRADIENT_THEOREM)
        return PrivacyGuarantee(self.epsilon, self.delta, events, (release,))

    def run(
        self,
        session: ReleaseSession,
        codes: Any,
        targets: Any,
        count: float,
        features: Centred,
        start: Any = None,
        intercept: Array | None = None,
    ) -> tuple[Array, Array, Array | None]:
        """Return coefficients, intercepts, and the intercepts of a fit without curves.

        `start` has scores of shape (n_rows, outputs) that are added to those of the curves. The first steps move the
        intercepts alone, unless they start at `intercept`.
        """
        mechanism = self.mechanism
        gradients = self.gradients(codes, targets, features, start)
        weights = np.zeros(self.descent.shape)
        if intercept is not None:
            weights[:, -1] = intercept / self.constant
        path = Path(self.descent, weights, count, mechanism.scale)
        with blas_threads(self.layout.n_features):
            weights = path.follow(gradients, session.steps(self.label, gradients.n_rows), mechanism)
        return *rule_of(weights, self.descent.settings), path.lone_intercept

    def gradients(self, codes: Any, targets: Any, features: Centred, start: Any = None) -> Gradients:
        """Return the sums of the records' clipped gradients."""
        # Without noise, nothing is clipped.
        most = self.descent.max_norm if self.epsilon < math.inf else math.inf
        arrays = (codes, targets) if start is None else (codes, targets, start)
        return gradients_over(partial(CellGradients, features, self.loss, most), *arrays)

    def sizes_along(self, bends: Array, count: float) -> Array:
        """Return standard deviations of the result along eigenvectors of the second derivative, for its eigenvalues."""
        shares = self._moves_along(bends, count)
        return self.mechanism.scale * np.sqrt((shares**2).sum(axis=0))

    def response_along(self, bends: Array, count: float) -> Array:
        """Return the effect of a gradient of 1 in all steps on the result along eigenvectors, for their eigenvalues."""
        return np.abs(self._moves_along(bends, count).sum(axis=0))

    def _moves_along(self, bends: Array, count: float) -> Array:
        """Return the effect of a gradient of 1 in one step on the result, of shape (n_steps, n_eigenvalues)."""
        # The noise of each step decays by a recursion. The result is an average of the remaining noise of all steps.
        length = (eta(self.descent, self.mechanism.scale / count) if self.rate is None else self.rate) / count
        first = N_STEPS - max(1, math.ceil(_AVERAGED * N_STEPS))
        # The actual steps are stable, even if they are too long for the pseudo-records.
        bends = np.clip(length * bends, 0.0, 2 * _STABLE * (1 + _MOMENTUM))
        left, moved = np.full(len(bends), -length), np.full(len(bends), -length)
        sums = [np.zeros(len(bends)), left.copy()]
        for _ in range(N_STEPS - 1):
            moved = _MOMENTUM * moved - bends * left
            left = left + moved
            sums.append(sums[-1] + left)
        total = np.array(sums)
        steps = np.arange(N_STEPS)
        shares = total[N_STEPS - steps] - total[np.maximum(first - steps, 0)]
        return shares / (N_STEPS - first)


@dataclass(frozen=True, eq=False)
class Averaged:
    """The average of fits by gradient steps, whose noise is independent."""

    engines: tuple[GradientEngine, ...]
    weights: tuple[float, ...] = (1.0,)

    def sizes_along(self, bends: Array, count: float) -> Array:
        """Return standard deviations of the result, as for one fit."""
        pairs = zip(self.weights, self.engines, strict=True)
        return np.sqrt(sum((part * engine.sizes_along(bends, count)) ** 2 for part, engine in pairs))

    def response_along(self, bends: Array, count: float) -> Array:
        """Return the effect of a gradient of 1 in all steps, as for one fit."""
        pairs = zip(self.weights, self.engines, strict=True)
        return np.asarray(sum(part * engine.response_along(bends, count) for part, engine in pairs))

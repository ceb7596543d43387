"""Noisy gradient descent of linear models: the schedule of steps, the step, and the resulting rule."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..mechanisms import SampledGaussianMechanism
from ..release.session import PrivacyGuarantee
from ..release.theorems import Theorem
from ..sensitivity import augmented_norm
from .calibration import Calibration
from .clipped_gradients import MOST_WEIGHT, Gradients, boxed
from .descent import SamplingSchedule
from .losses import GradientLoss
from .regularised import INTERCEPT_CONSTANT
from .target_range import TargetRange

Array = NDArray[np.float64]

_THEOREM = Theorem("Gradient descent", 1)

# The clipping bound, as a part of the largest possible gradient.
_CLIP = 0.3

# Length of a step, as a part of the longest with which heavy ball descent is stable.
_STEP = 0.75

# The same length for Huber's loss. Beyond its threshold, the gradient is constant, and longer steps with momentum can
# oscillate around the minimum for hundreds of steps.
_HUBER_STEP = 0.5

# One of so many steps is of the intercept only, if features have mean 0.
_ALONE = 20

#: Limits on the total noise in predictors: in margins, and in half ranges of targets. Predictions beyond the range are
#: useless, unlike large logits.
MARGIN_WALK, TARGET_WALK = 6.0, 0.7


@dataclass(frozen=True)
class Settings:
    """The checked parameters of a fit, all public."""

    epsilon: float
    delta: float
    data_norm: float
    loss: str = ""
    penalty: str | None = None
    alpha: float = 0.0
    l1_ratio: float = 0.0
    fit_intercept: bool = True
    max_grad_norm: float | None = None
    learning_rate: str = "constant"
    eta0: float | None = None
    momentum: float = 0.95
    averaged: float = 0.5

    @property
    def private(self) -> bool:
        return self.epsilon < math.inf

    @property
    def constant(self) -> float:
        """The constant feature of the intercept, or 0 without an intercept."""
        return INTERCEPT_CONSTANT * self.data_norm if self.fit_intercept else 0.0

    @property
    def row_norm(self) -> float:
        """Bound on the norm of a row with its constant feature."""
        return augmented_norm(self.data_norm, self.constant)


@dataclass(frozen=True)
class Descent:
    """A descent without its data. All attributes are public."""

    settings: Settings
    schedule: SamplingSchedule
    loss: GradientLoss
    n_features: int
    walk: float = MARGIN_WALK  # Limit on the total noise in predictors of the longest row, for the default step.
    centred: bool = False  # Whether features have mean 0, so that only the constant feature moves the mean.
    first: TargetRange | None = None  # The first releases of a regression.

    @property
    def shape(self) -> tuple[int, int]:
        return self.loss.outputs, self.n_features + self.settings.fit_intercept

    @property
    def max_norm(self) -> float:
        """The clipping bound, which is the sensitivity."""
        # No derivative is longer than `lipschitz`. A larger bound would only add noise.
        most = self.loss.lipschitz * (1 + 2.0**-30) * self.settings.row_norm
        if self.settings.max_grad_norm is not None:
            return min(self.settings.max_grad_norm, most)
        return _CLIP * self.loss.usual_norm * self.settings.row_norm if self.settings.private else most

    @property
    def lone_steps(self) -> int:
        """Number of first steps that move the intercept alone."""
        # Where features have mean 0, the others would follow the mean otherwise.
        return self.schedule.n_steps // _ALONE if self.centred else 0

    def plan(self) -> PrivacyGuarantee:
        """Return the guarantee of the descent."""
        settings, size, line = self.settings, math.prod(self.shape), self.calibration
        first = None if self.first is None else self.first.pairs
        last = None if line is None else (line.release, line.event)
        return self.schedule.plan(settings.epsilon, settings.delta, self.max_norm, size, _THEOREM, first, last)

    @property
    def calibration(self) -> Calibration | None:
        """The release after the steps, for a squared loss with an intercept. Without noise, nothing is clipped."""
        settings = self.settings
        if not (settings.private and settings.fit_intercept and settings.loss == "squared_error"):
            return None
        return Calibration.of(settings.epsilon, settings.delta)


class Path:
    """The iterates, which are functions of releases and public parameters."""

    def __init__(self, descent: Descent, start: Array, count: float, noise: float) -> None:
        settings, schedule = descent.settings, descent.schedule
        # Beyond it, gradients do not change, and averages may overflow.
        self._box = MOST_WEIGHT / settings.row_norm
        self.weights = boxed(start, self._box)[0]
        self._momentum = settings.momentum
        self._velocity = np.zeros_like(start)
        self._schedule = settings.learning_rate
        self._rate = eta(descent, noise / count) if settings.eta0 is None else settings.eta0
        self._constant = settings.constant
        self._lone_steps = 0 if start.any() else descent.lone_steps
        walk = math.sqrt(self._lone_steps) * noise / count * settings.constant
        longest = 1 / settings.constant**2 if descent.centred else 0.0
        self._first_rate = min(longest, descent.walk / walk) if walk > 0 else longest
        #: The mean of the intercepts in the second half of these steps; None if there are none.
        self.lone_intercept: Array | None = None
        self._count = count
        self._n_steps = schedule.n_steps
        self._taken = 0
        self._averaged_from = schedule.n_steps - max(1, math.ceil(settings.averaged * schedule.n_steps))
        self._total = np.zeros_like(start)

        l1 = {"l1": 1.0, "elasticnet": settings.l1_ratio}.get(settings.penalty or "", 0.0)
        self._l1 = settings.alpha * l1
        self._l2 = 0.0 if settings.penalty is None else settings.alpha * (1 - l1)
        # The constant feature is not penalised.
        self._penalised = (slice(None), slice(0, descent.n_features))

    def step(self, gradient: Array) -> None:
        """Take a step of heavy ball descent, and a proximal step of the penalty, which is stable for every length."""
        if self._taken < self._lone_steps:
            self.weights[:, -1] -= self._first_rate / self._count * gradient[:, -1]
            self.weights = boxed(self.weights, self._box)[0]
            self._taken += 1
            half = self._lone_steps // 2
            if self._taken > half:
                before = 0.0 if self.lone_intercept is None else self.lone_intercept
                self.lone_intercept = before + self._constant * self.weights[:, -1] / (self._lone_steps - half)
            return
        rate = self._rate * self._decay()
        velocity = self._velocity
        velocity *= self._momentum
        gradient *= rate / self._count
        velocity -= gradient
        if self._l1 or self._l2:
            before = self.weights
            self.weights = before + velocity
            penalised = self.weights[self._penalised]
            if self._l1:
                penalised -= np.clip(penalised, -rate * self._l1, rate * self._l1)
            if self._l2:
                penalised /= 1 + rate * self._l2
            boxed(self.weights, self._box)
            np.subtract(self.weights, before, out=velocity)
        else:
            boxed(velocity, 2 * self._box)
            self.weights = boxed(self.weights + velocity, self._box)[0]
        if self._taken >= self._averaged_from:
            self._total += self.weights
        self._taken += 1

    def follow(
        self,
        gradients: Gradients,
        steps: Iterable[tuple[NDArray[np.intp] | None, Callable[[Array], Array]]],
        mechanism: SampledGaussianMechanism,
    ) -> Array:
        """Take the steps of a session, and return the result."""
        lattice = mechanism.step if mechanism.mu < math.inf else None
        for sample, release in steps:
            point = gradients.at(self.weights)
            self.step(release(gradients.total(point, sample, lattice)))
        return self.result()

    def result(self) -> Array:
        """Return the average of the last iterates, or the last iterate if there is no average yet."""
        if self._taken <= self._averaged_from:
            return self.weights.copy()
        return self._total / (self._taken - self._averaged_from)

    def _decay(self) -> float:
        if self._schedule == "invscaling":
            return 1 / math.sqrt(1 + self._taken)
        if self._schedule == "cosine":
            return (1 + math.cos(math.pi * self._taken / self._n_steps)) / 2
        return 1.0


def eta(descent: Descent, noise: float) -> float:
    """Return the default step on the mean gradient, before momentum. It is a public number."""
    # The step is as long as the curvature allows, but the noise of all steps together is limited.
    settings = descent.settings
    rest, norm = 1 - settings.momentum, settings.row_norm
    share = _HUBER_STEP if settings.loss == "huber" else _STEP
    length = share * 2 * (1 + settings.momentum) / (descent.loss.curvature * norm**2)
    walk = math.sqrt(descent.schedule.n_steps) * noise * norm
    return min(length, rest * descent.walk / walk) if walk > 0 else length


def rule_of(weights: Array, settings: Settings) -> tuple[Array, Array]:
    """Return coefficients and intercepts."""
    if not settings.fit_intercept:
        return weights.copy(), np.zeros(len(weights))
    return weights[:, :-1].copy(), settings.constant * weights[:, -1]


def weights_of(coef: Array, intercept: Array, settings: Settings) -> Array:
    """Return the weights of a rule, the inverse of `rule_of`."""
    if not settings.fit_intercept:
        return np.array(coef, dtype=np.float64)
    return np.column_stack([coef, intercept / settings.constant])

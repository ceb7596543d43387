"""What linear models that are fitted by noisy gradient steps share: the course, the step, and the rule that results."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ..accounting import BudgetAccountant, GaussianEvent, check_delta, check_epsilon
from ..checks.params import check_boolean, check_choice, check_data_norm, check_positive
from ..mechanisms import NoiseSource, SampledGaussianMechanism
from ..release.callbacks import reported
from ..release.session import PrivacyGuarantee, ReleaseSession
from ..release.theorems import Theorem
from ..sensitivity import augmented_norm, clip_rows, row_products
from ..solvers.calibration import Calibration
from ..solvers.descent import GRADIENTS, Course
from ._logistic import INTERCEPT_CONSTANT
from ._sgd_derivatives import Derivative
from ._sgd_gradients import MOST_WEIGHT, ClippedGradients, boxed

Array = NDArray[np.float64]
Method = TypeVar("Method", bound=Callable[..., Any])

PENALTIES = ("l2", "l1", "elasticnet")
SCHEDULES = ("auto", "constant", "invscaling", "cosine")

_THEOREM = Theorem("Gradient descent", 1)

# The clipping norm, as a part of the largest gradient that there can be.
_CLIP = 0.3

# Where full passes take more work than so many products, samples of a fifth of the records are the default.
_MOST_WORK = 2e10
_RATE = 0.2

# Full passes: enough for ill-conditioned columns, and their number costs no privacy to speak of.
_STEPS = 500

# Length of a step, as a part of the longest with which heavy ball descent is stable.
_STEP = 0.75

# The same for Huber's loss. Beyond its threshold the gradient is constant, and longer steps with momentum can swing
# around the minimum for hundreds of steps.
_HUBER_STEP = 0.5

# The default weight of the penalty, in units of the squared norm of rows.
_ALPHA = 1e-6


@dataclass(frozen=True)
class Settings:
    """The checked parameters of a fit, all public."""

    epsilon: float
    delta: float
    data_norm: float
    loss: str
    penalty: str | None
    alpha: float
    l1_ratio: float
    fit_intercept: bool
    max_grad_norm: float | None
    learning_rate: str
    eta0: float | None
    momentum: float
    averaged: float

    @property
    def private(self) -> bool:
        return self.epsilon < math.inf

    @property
    def constant(self) -> float:
        """The constant feature of the intercept; 0 for none."""
        return INTERCEPT_CONSTANT * self.data_norm if self.fit_intercept else 0.0

    @property
    def row_norm(self) -> float:
        """Bound on the norm of a row with its constant feature."""
        return augmented_norm(self.data_norm, self.constant)


def check_settings(estimator: Any, losses: tuple[str, ...]) -> Settings:
    """Return an estimator's parameters, checked."""
    delta = check_delta(estimator.delta)
    if delta == 0:
        raise ValueError(
            "delta must be positive: noisy gradient descent adds Gaussian noise, which no delta=0 covers. "
            "Choose it far below one over the number of records"
        )
    norm = check_data_norm(estimator.data_norm)
    automatic = isinstance(estimator.max_grad_norm, str) and estimator.max_grad_norm == "auto"
    average = estimator.average
    if isinstance(average, bool | np.bool_):
        average = 0.5 if average else 0.0
    else:
        average = check_positive(average, "average", least=0, most=1)
    return Settings(
        epsilon=check_epsilon(estimator.epsilon),
        delta=delta,
        data_norm=norm,
        loss=check_choice(estimator.loss, "loss", losses),
        penalty=None if estimator.penalty is None else check_choice(estimator.penalty, "penalty", PENALTIES),
        alpha=_ALPHA * norm**2 if estimator.alpha is None else check_positive(estimator.alpha, "alpha", least=0),
        l1_ratio=check_positive(estimator.l1_ratio, "l1_ratio", least=0, most=1),
        fit_intercept=check_boolean(estimator.fit_intercept, "fit_intercept"),
        max_grad_norm=None if automatic else check_positive(estimator.max_grad_norm, "max_grad_norm"),
        learning_rate=check_choice(estimator.learning_rate, "learning_rate", SCHEDULES),
        eta0=None if estimator.eta0 is None else check_positive(estimator.eta0, "eta0", least=1e-30, most=1e30),
        momentum=check_positive(estimator.momentum, "momentum", least=0, most=0.9999),
        averaged=average,
    )


@dataclass(frozen=True)
class Descent:
    """A course of steps, but for the data: everything here is public."""

    settings: Settings
    course: Course
    derivative: Derivative
    n_features: int

    @classmethod
    def of(cls, estimator: Any, settings: Settings, derivative: Derivative, n_features: int) -> Descent:
        course = Course.of(
            batch_size=estimator.batch_size,
            n_steps=estimator.n_steps,
            epochs=estimator.epochs,
            expected_n=estimator.expected_n,
            default_rate=1.0,
            default_steps=_STEPS,
        )
        if estimator.batch_size is None and course.expected_n is not None:
            work = course.expected_n * n_features * derivative.outputs * course.n_steps
            if work > _MOST_WORK:
                course = replace(course, rate=_RATE)
        return cls(settings, course, derivative, n_features)

    @property
    def shape(self) -> tuple[int, int]:
        return self.derivative.outputs, self.n_features + self.settings.fit_intercept

    @property
    def max_norm(self) -> float:
        """The clipping norm, and the sensitivity."""
        # No derivative is beyond `most`, so that nothing is clipped here, and noise for more would be wasted.
        most = self.derivative.most * (1 + 2.0**-30) * self.settings.row_norm
        if self.settings.max_grad_norm is not None:
            return min(self.settings.max_grad_norm, most)
        return _CLIP * self.derivative.large * self.settings.row_norm if self.settings.private else most

    def plan(self) -> PrivacyGuarantee:
        """Return what will be released."""
        settings, size, line = self.settings, math.prod(self.shape), self.calibration
        last = None if line is None else (line.release, cast(GaussianEvent, line.event))
        return self.course.plan(settings.epsilon, settings.delta, self.max_norm, size, _THEOREM, last)

    @property
    def calibration(self) -> Calibration | None:
        """The release after the steps, of a squared loss with an intercept; nothing is clipped without noise."""
        settings = self.settings
        if not (settings.private and settings.fit_intercept and settings.loss == "squared_error"):
            return None
        return Calibration.of(settings.epsilon, settings.delta)


class Path:
    """The iterates, functions of what was released and of public parameters."""

    def __init__(self, descent: Descent, start: Array, count: float, noise: float) -> None:
        settings, course = descent.settings, descent.course
        # Beyond it, gradients do not change any more, and averages may not be numbers.
        self._box = MOST_WEIGHT / settings.row_norm
        self.weights = boxed(start, self._box)[0]
        self._momentum = settings.momentum
        self._velocity = np.zeros_like(start)
        self._schedule = settings.learning_rate
        self._rate = eta(descent, noise / count) if settings.eta0 is None else settings.eta0
        self._count = count
        self._n_steps = course.n_steps
        self._taken = 0
        self._averaged_from = course.n_steps - max(1, math.ceil(settings.averaged * course.n_steps))
        self._total = np.zeros_like(start)

        l1 = {"l1": 1.0, "elasticnet": settings.l1_ratio}.get(settings.penalty or "", 0.0)
        self._l1 = settings.alpha * l1
        self._l2 = 0.0 if settings.penalty is None else settings.alpha * (1 - l1)
        # The constant feature is spared.
        self._penalised = (slice(None), slice(0, descent.n_features))

    def step(self, gradient: Array) -> None:
        """Take a step of heavy ball descent, and one of the penalty's own (proximal, hence stable for every length)."""
        rate = self._rate * self._decay()
        velocity = self._velocity
        velocity *= self._momentum
        gradient *= rate / self._count
        velocity -= gradient
        if self._l1 or self._l2:
            before = self.weights
            self.weights = before + velocity
            part = self.weights[self._penalised]
            if self._l1:
                part -= np.clip(part, -rate * self._l1, rate * self._l1)
            if self._l2:
                part /= 1 + rate * self._l2
            boxed(self.weights, self._box)
            np.subtract(self.weights, before, out=velocity)
        else:
            boxed(velocity, 2 * self._box)
            self.weights = boxed(self.weights + velocity, self._box)[0]
        if self._taken >= self._averaged_from:
            self._total += self.weights
        self._taken += 1

    def result(self) -> Array:
        """Return the average of the last iterates, or where there is none yet, the last."""
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
    """Return the default step on the mean gradient, before momentum; it is a public number."""
    # The step is as long as the curvature allows, but the noise of all steps must not add up to more than a limit.
    settings = descent.settings
    rest, norm = 1 - settings.momentum, settings.row_norm
    part = _HUBER_STEP if settings.loss == "huber" else _STEP
    length = part * 2 * (1 + settings.momentum) / (descent.derivative.curvature * norm**2)
    walk = math.sqrt(descent.course.n_steps) * noise * norm
    return min(length, rest * descent.derivative.walk / walk) if walk > 0 else length


def quietly(method: Method) -> Method:
    """Silence all floating-point warnings and errors of a method, because single records could cause them."""

    @wraps(method)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with np.errstate(all="ignore"):
            return method(*args, **kwargs)

    return cast(Method, wrapper)


def carry_out(
    estimator: Any,
    descent: Descent,
    plan: PrivacyGuarantee,
    accountant: BudgetAccountant | None,
    source: NoiseSource,
    X: NDArray,
    targets: Callable[[], NDArray],
    start: Array,
    attributes: Callable[[Array], dict[str, Any]],
) -> dict[str, Any]:
    """Charge the plan, descend from a public start of shape (outputs, n_columns), and return fitted attributes."""
    # The accountant is charged before the data are used. `attributes` maps released weights to fitted attributes.
    settings = descent.settings
    session = ReleaseSession(plan, accountant=accountant, source=source, estimator=type(estimator).__name__)
    rows = clip_rows(X, settings.data_norm, settings.constant)
    whole = descent.course.rate == 1
    values = targets()
    gradients = ClippedGradients(rows, values, descent.derivative, descent.max_norm, whole)
    (mechanism,) = (release.mechanism for release in plan.releases if release.label == GRADIENTS)
    assert isinstance(mechanism, SampledGaussianMechanism)
    lattice = mechanism.step if settings.private else None

    count = descent.course.rate * descent.course.records(session, plan, len(X))
    path = Path(descent, start, count, mechanism.scale)
    steps = session.steps(GRADIENTS, len(X))
    reached = partial(_reached, path, attributes)
    for sample, release in reported(estimator, steps, descent.course.n_steps, reached):
        point = gradients.at(path.weights)
        path.step(release(gradients.total(point, sample, lattice)))
    weights = path.result()
    if descent.calibration is not None:
        coef, intercept = rule_of(weights, settings)
        line = descent.calibration.line(session, (row_products(X, coef.T) + intercept)[:, 0], values)
        weights = weights_of(line.slope * coef, line.slope * intercept + line.shift, settings)
    return attributes(weights)


def _reached(path: Path, attributes: Callable[[Array], dict[str, Any]]) -> dict[str, Any]:
    return attributes(path.result())


def rule_of(weights: Array, settings: Settings) -> tuple[Array, Array]:
    """Return coefficients and intercepts."""
    if not settings.fit_intercept:
        return weights.copy(), np.zeros(len(weights))
    return weights[:, :-1].copy(), settings.constant * weights[:, -1]


def weights_of(coef: Array, intercept: Array, settings: Settings) -> Array:
    """Return what `rule_of` made a rule of."""
    if not settings.fit_intercept:
        return np.array(coef, dtype=np.float64)
    return np.column_stack([coef, intercept / settings.constant])


def together(guarantees: list[PrivacyGuarantee]) -> PrivacyGuarantee:
    """Return the guarantee of several courses, one after the other, which may use the same records."""
    # The pairs (epsilon, delta) add up. The events of all courses are kept, because they allow a tighter bound.
    delta = math.fsum(g.delta for g in guarantees)
    if not delta < 1:
        raise ValueError(
            f"delta of all courses since the last fit would add up to {delta:g}, which promises nothing: fit anew, or "
            "give each course a smaller delta"
        )
    whole = math.fsum(g.epsilon for g in guarantees)
    releases = []
    for guarantee in guarantees:
        part = guarantee.epsilon / whole if whole < math.inf else 1 / len(guarantees)
        releases += [replace(release, share=part * release.share) for release in guarantee.releases]
    return PrivacyGuarantee(
        whole,
        delta,
        tuple(event for guarantee in guarantees for event in guarantee.events),
        tuple(releases),
    )

"""Noisy gradient descent of linear models: the schedule of steps, the step, and the resulting rule and its labels."""

from __future__ import annotations

import math
import numbers
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.utils.validation import check_is_fitted

from ..accounting import (
    GaussianEvent,
    PrivacyEvent,
    PureEvent,
    SampledGaussianEvent,
    check_delta,
    gaussian_mu,
    sampled_gaussian_mu,
)
from ..checks.data import of_valid_rows
from ..checks.params import Checked, Integer, Or, Real, Rules, check_integer, check_positive
from ..checks.silence import DiscreetMethods, available_if
from ..mechanisms import LEAST_RATE, GaussianMechanism, Mechanism, NoNoise, SampledGaussianMechanism
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem
from ..sensitivity import augmented_norm, largest_products, positive_products, row_products
from .calibration import Calibration, RowPowers
from .clipped_gradients import MOST_WEIGHT, Gradients, boxed
from .losses import GradientLoss
from .regularised import INTERCEPT_CONSTANT
from .target_range import Located, TargetRange

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
            "delta must be positive, because the noise is Gaussian: far below one over the expected number of records"
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
        share_before: float = 0.0,
    ) -> PrivacyGuarantee:
        """Return the plan: first releases, the gradient sums, and a last release."""
        # Gaussian releases that are not part of the plan take `share_before` of the budget.
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
        reserved = share_before + sum(release.share for release, _ in (*first, *after)) if private else 0.0
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


Array = NDArray[np.float64]


def probabilities(scores: Array) -> Array:
    """Return class probabilities, of shape (n_rows, n_classes), for logits."""
    if scores.ndim == 1:
        return np.column_stack([special.expit(-scores), special.expit(scores)])
    return special.softmax(scores, axis=1)


def linear_scores(estimator: Any, X: Any) -> Array:
    """Validate rows, and return the linear scores of a fitted estimator, of shape (n_rows, outputs)."""
    check_is_fitted(estimator, "coef_")
    matrix = np.atleast_2d(estimator.coef_).T
    products: Array = of_valid_rows(lambda rows: row_products(rows, matrix), estimator, X)
    return products + estimator.intercept_


def _estimates_probabilities(estimator: Any) -> bool:
    # The loss of the fit counts, because the parameter may have been changed since.
    if getattr(estimator, "_loss", getattr(estimator, "loss", "log_loss")) != "log_loss":
        raise AttributeError('probabilities are available for loss="log_loss"')
    return True


class ScoredLabels(DiscreetMethods):
    """Mixin of classifiers with scores of classes."""

    classes_: NDArray

    @abstractmethod
    def _label_scores(self, X: Any) -> Array:
        """Return one score for the second of two classes, of shape (n_rows,), or one for each class."""

    def predict(self, X: Any) -> NDArray:
        """Return the most likely label of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features. They are not clipped.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Elements of ``classes_``.
        """
        codes = self._label_codes(X)
        return self.classes_.take(codes)

    def _label_codes(self, X: Any) -> NDArray:
        scores = self._label_scores(X)
        return (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)


class LogOdds(ScoredLabels):
    """Mixin of classifiers whose scores are log-odds. If they have a parameter `loss`, only for the log loss."""

    def _logits(self, X: Any) -> Array:
        """Return log-odds in the shape of the scores."""
        return self._label_scores(X)

    @available_if(_estimates_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities. Estimators with a parameter `loss` have them for the log loss only.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features. They are not clipped.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return probabilities(self._logits(X))

    @available_if(_estimates_probabilities)
    def predict_log_proba(self, X: Any) -> Array:
        """Return logarithms of class probabilities. Estimators with a parameter `loss` have them for the log loss only.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features. They are not clipped.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        scores = self._logits(X)
        if scores.ndim == 1:
            return np.column_stack([special.log_expit(-scores), special.log_expit(scores)])
        return special.log_softmax(scores, axis=1)


class LinearRule(ScoredLabels):
    """Mixin of classifiers with the attributes `coef_`, `intercept_` and `classes_`."""

    coef_: Array
    intercept_: Any

    def _label_scores(self, X: Any) -> Array:
        return self.decision_function(X)

    def _label_codes(self, X: Any) -> NDArray:
        check_is_fitted(self, "coef_")
        products = positive_products if len(self.classes_) == 2 else largest_products
        constants = np.broadcast_to(self.intercept_, len(self.coef_))
        codes: NDArray = of_valid_rows(lambda rows: products(rows, self.coef_.T, constants), self, X)
        return codes.astype(np.intp)

    def decision_function(self, X: Any) -> Array:
        """Return the linear score of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features. They are not clipped.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive for the second class if there are two classes. Otherwise, one score for each class.
        """
        check_is_fitted(self, "coef_")
        scores: Array = of_valid_rows(self._scores_of, self, X)
        return scores

    def _scores_of(self, rows: Any) -> Array:
        scores = row_products(rows, self.coef_.T) + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores


_THEOREM = Theorem("Gradient descent", 1)

# The clipping bound, as a part of the largest possible gradient.
_CLIP = 0.3

# Length of a step, as a part of the longest with which heavy ball descent is stable.
_STEP = 0.75

# The same length for Huber's loss. Beyond its threshold, the gradient is constant, and longer steps with momentum can
# oscillate around the minimum for hundreds of steps.
_HUBER_STEP = 0.5

# One of so many steps is of the intercept only, if features have mean 0.
_STEPS_BY_LONE_STEP = 20

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
    target_range: TargetRange | None = None
    share_before: float = 0.0  # Share of the budget of releases that are not part of the plan.

    @property
    def shape(self) -> tuple[int, int]:
        return self.loss.outputs, self.n_features + (1 if self.settings.fit_intercept else 0)

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
        return self.schedule.n_steps // _STEPS_BY_LONE_STEP if self.centred else 0

    def powers(self, n_classes: int, n_records: float) -> RowPowers:
        """Return the powers of probabilities, for a declared or released number of records."""
        settings = self.settings
        mu = gaussian_mu(settings.epsilon, settings.delta) if settings.private else math.inf
        clip = self.max_norm / self.loss.lipschitz
        return RowPowers(settings.data_norm, settings.constant, clip, n_classes, n_records * mu)

    def plan(self) -> PrivacyGuarantee:
        """Return the guarantee of the descent."""
        settings, size, line = self.settings, math.prod(self.shape), self.calibration
        first = None if self.target_range is None else self.target_range.pairs
        last = None if line is None else (line.release, line.event)
        budget = settings.epsilon, settings.delta
        return self.schedule.plan(*budget, self.max_norm, size, _THEOREM, first, last, self.share_before)

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

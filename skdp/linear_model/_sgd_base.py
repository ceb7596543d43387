"""The base of linear models by noisy gradient descent: parameters, fits, and continued fits (`partial_fit`)."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ..accounting import PrivacyCost, check_delta, check_epsilon, gaussian_mu
from ..checks.params import check_boolean, check_choice, check_data_norm, check_positive
from ..mechanisms import SampledGaussianMechanism
from ..parts.arrays import rowwise
from ..release.estimator import PrivateEstimator, Records, Shape
from ..release.progress import CallbackSupportMixin
from ..release.session import PrivacyGuarantee, ReleaseSession
from ..sensitivity import exact_row_products
from ..solvers.calibration import Window
from ..solvers.descent import GRADIENTS, SamplingSchedule
from ..solvers.linear_descent import MARGIN_WALK, Descent, Path, Settings, rule_of, weights_of
from ..solvers.losses import GradientLoss
from ..solvers.parted_gradients import gradients_of
from ..solvers.target_range import Located, TargetRange

Array = NDArray[np.float64]

PENALTIES = ("l2", "l1", "elasticnet")
SCHEDULES = ("auto", "constant", "invscaling", "cosine")

# The default number of steps is enough for ill-conditioned columns.
_STEPS = 500

# The default sampling probability is (2.24 + 1.1 mu) / sqrt(n_steps), for the GDP parameter mu of the whole budget. At
# this rate, and for epsilon up to 10, the noise is at most 7 % larger than if each step took all records.
_RATE, _RATE_OF_MU = 2.24, 1.1

# The default weight of the penalty, in units of the squared norm of rows.
_ALPHA = 1e-6


@dataclass(frozen=True, eq=False)
class Parameters:
    """The checked parameters of a fit, and where it starts, all public."""

    settings: Settings
    schedule: SamplingSchedule
    targets: Any = None  # The `Scaling` of a regressor.
    classes: NDArray | None = None  # The declared label set of a classifier.
    start: Array | None = None  # The weights that the fit starts from.
    earlier: PrivacyGuarantee | None = None  # The guarantee of the earlier courses.


class GradientDescent(CallbackSupportMixin, PrivateEstimator, BaseEstimator):
    """Base of linear models by noisy gradient descent."""

    _counts_outside = ("entries", "target")
    _losses: ClassVar[tuple[str, ...]]
    _walk: ClassVar[float] = MARGIN_WALK
    _takes_parts = True
    _takes_sparse = True

    @abstractmethod
    def _loss_of(self, parameters: Parameters, n_classes: int) -> GradientLoss:
        """Return the loss for a number of classes."""

    @abstractmethod
    def _rule(self, coef: Array, intercept: Array, parameters: Parameters, shape: Shape) -> dict[str, Any]:
        """Return the fitted attributes for coefficients of shape (outputs, n_features) and scaled targets."""

    def _check_parameters(self) -> Parameters:
        estimator: Any = self
        delta = check_delta(estimator.delta)
        if delta == 0:
            raise ValueError(
                "delta must be positive, because noisy gradient descent adds Gaussian noise. Choose a value far "
                "below one over the expected number of records"
            )
        norm = check_data_norm(estimator._declared("data_norm"))
        automatic = isinstance(estimator.max_grad_norm, str) and estimator.max_grad_norm == "auto"
        average = estimator.average
        if isinstance(average, bool | np.bool_):
            average = 0.5 if average else 0.0
        else:
            average = check_positive(average, "average", least=0, most=1)
        settings = Settings(
            epsilon=check_epsilon(estimator.epsilon),
            delta=delta,
            data_norm=norm,
            loss=check_choice(estimator.loss, "loss", self._losses),
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
        schedule = SamplingSchedule.of(
            batch_size=estimator.batch_size,
            n_steps=estimator.n_steps,
            epochs=estimator.epochs,
            expected_n=estimator.expected_n,
            default_rate=1.0,
            default_steps=_STEPS,
        )
        if settings.private and estimator.batch_size is None and estimator.epochs is None:
            mu = gaussian_mu(settings.epsilon, settings.delta)
            rate = (_RATE + _RATE_OF_MU * mu) / math.sqrt(schedule.n_steps)
            schedule = replace(schedule, rate=min(1.0, rate))
        return Parameters(settings, schedule)

    def _after(self, parameters: Parameters, coef: Array, intercept: Array) -> Parameters:
        """Return the parameters of a fit that continues from a rule for scaled targets, and from ``privacy_``."""
        start = weights_of(coef, intercept, parameters.settings)
        return replace(parameters, start=start, earlier=self.privacy_)

    def _plan(self, parameters: Parameters, shape: Shape) -> tuple[PrivacyGuarantee, Descent]:
        settings, schedule = parameters.settings, parameters.schedule
        loss = self._loss_of(parameters, shape.n_classes)
        first = None if parameters.targets is None else TargetRange.of(settings.epsilon, settings.delta)
        descent = Descent(settings, schedule, loss, shape.n_features, self._walk, first=first)
        return descent.plan(), descent

    def _within(self, located: Located, parameters: Parameters, design: Descent) -> tuple[Parameters, Descent]:
        """Return the parameters and the descent for targets in the released range, and where it starts."""
        before, targets, settings = parameters.targets, located.targets, parameters.settings
        start = np.zeros(design.shape)
        if parameters.start is not None:
            coef, intercept = rule_of(parameters.start, settings)
            intercept = (before.half * intercept + before.centre - targets.centre) / targets.half
            start = weights_of(coef * before.half / targets.half, intercept, settings)
        elif settings.fit_intercept:
            start[:, -1] = located.mean_with() / settings.constant
        parameters = replace(parameters, targets=targets, start=start)
        loss = self._loss_of(parameters, 0)
        if settings.private:
            # A threshold of Huber's loss may grow in scaled units, but the clipping bound must not.
            settings = replace(settings, max_grad_norm=design.max_norm)
        return parameters, replace(design, loss=loss, settings=settings)

    def _stated(self, guarantee: PrivacyGuarantee, parameters: Parameters) -> PrivacyGuarantee:
        return guarantee if parameters.earlier is None else together([parameters.earlier, guarantee])

    def _measure(
        self, session: ReleaseSession, records: Records, parameters: Parameters, design: Descent
    ) -> dict[str, Any]:
        settings, schedule, shape = parameters.settings, design.schedule, records.shape
        values, located = records.y, None
        if design.first is not None:
            located = design.first.located(session, records.y, parameters.targets, settings.fit_intercept)
            parameters, design = self._within(located, parameters, design)
            values = rowwise(parameters.targets.scaled, records.y)
        fixed = settings.data_norm, settings.constant, design.loss, design.max_norm, schedule.rate == 1
        gradients = gradients_of(records.X, values, *fixed)
        n_rows = gradients.n_rows
        mechanism = session.mechanism(GRADIENTS)
        assert isinstance(mechanism, SampledGaussianMechanism)

        count = schedule.rate * schedule.records(session, n_rows, located)
        start = np.zeros(design.shape) if parameters.start is None else parameters.start
        path = Path(design, start, count, mechanism.scale)
        privacy = self._stated(session.guarantee, parameters)

        # Callbacks may receive these functions. Therefore they do not hold the records.
        def fitted(weights: Array) -> dict[str, Any]:
            rule = self._rule(*rule_of(weights, settings), parameters, shape)
            return {**rule, "n_steps_": schedule.n_steps, "privacy_": privacy}

        def reached() -> dict[str, Any]:
            return fitted(path.result())

        weights = path.follow(gradients, session.steps(GRADIENTS, n_rows, reached), mechanism)
        if design.calibration is not None:
            coef, intercept = rule_of(weights, settings)
            predictions = rowwise(partial(_predictions, coef, intercept), records.X)
            reach = settings.data_norm * float(np.linalg.norm(coef))
            window = Window.of(float(intercept[0]) - reach, float(intercept[0]) + reach)
            line = design.calibration.line(session, predictions, values, window)
            weights = weights_of(line.slope * coef, line.slope * intercept + line.shift, settings)
        return fitted(weights)

    def _fixed_cost(self) -> PrivacyCost | None:
        return self.privacy_plan(n_features=1, n_classes=2).cost


def _predictions(coef: Array, intercept: Array, X: Any) -> Array:
    return (exact_row_products(X, coef.T) + intercept)[:, 0]


def together(guarantees: list[PrivacyGuarantee]) -> PrivacyGuarantee:
    """Return the guarantee of several courses that may use the same records."""
    # The pairs (epsilon, delta) add up. The events of all courses are kept, because they allow a tighter bound.
    delta = math.fsum(g.delta for g in guarantees)
    if not delta < 1:
        raise ValueError(
            f"delta of all courses since the last fit would add up to {delta:g}, which gives no guarantee. "
            "Call fit to start again, or use a smaller delta for each course"
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

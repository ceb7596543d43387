"""The base of linear models by noisy gradient descent: parameters, fits, and continued fits (`partial_fit`)."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ..accounting import gaussian_mu
from ..checks.params import By, Checked, OneOf, Or, Real, Rules, check_boolean, check_positive
from ..mechanisms import SampledGaussianMechanism
from ..parts.arrays import rowwise
from ..release.estimator import PrivateEstimator, Records, Shape
from ..release.progress import CallbackSupportMixin
from ..release.session import PrivacyGuarantee, ReleaseSession
from ..sensitivity import exact_row_products
from ..solvers.calibration import Window
from ..solvers.clipped_gradients import gradients_of
from ..solvers.linear_descent import (
    GRADIENTS,
    MARGIN_WALK,
    SCHEDULE_RULES,
    Descent,
    Path,
    SamplingSchedule,
    Settings,
    positive_delta,
    rule_of,
    weights_of,
)
from ..solvers.losses import GradientLoss
from ..solvers.target_range import Located, TargetRange

Array = NDArray[np.float64]

# The default number of steps is enough for ill-conditioned columns.
_STEPS = 500

# The default sampling probability is (2.24 + 1.1 mu) / sqrt(n_steps), for the GDP parameter mu of the whole budget. At
# this rate, and for epsilon up to 10, the noise is at most 7 % larger than if each step took all records.
_RATE, _RATE_OF_MU = 2.24, 1.1

# The default weight of the penalty, in units of the squared norm of rows.
_ALPHA = 1e-6


def _averaged(value: object, name: str) -> float:
    """Return the share of the last steps that are averaged."""
    return 0.5 * value if isinstance(value, bool | np.bool_) else check_positive(value, name, least=0, most=1)


class GradientDescent(CallbackSupportMixin, PrivateEstimator, BaseEstimator):
    """Base of linear models by noisy gradient descent."""

    _counts_outside = ("entries", "target")
    _fixes_cost = True
    _parameter_rules: ClassVar[Rules] = {
        **SCHEDULE_RULES,
        "delta": By(positive_delta),
        "penalty": Or(None, OneOf(("l2", "l1", "elasticnet"))),
        "alpha": Or(None, Real(0.0)),
        "l1_ratio": Real(0.0, 1.0),
        "fit_intercept": check_boolean,
        "max_grad_norm": Or("auto", Real()),
        "learning_rate": OneOf(("auto", "constant", "invscaling", "cosine")),
        "eta0": Or(None, Real(1e-30, 1e30)),
        "momentum": Real(0.0, 0.9999),
        "average": _averaged,
    }
    _walk: ClassVar[float] = MARGIN_WALK
    _takes_parts = True
    _takes_sparse = True

    @abstractmethod
    def _loss_of(self, parameters: Checked, n_classes: int) -> GradientLoss:
        """Return the loss for a number of classes."""

    @abstractmethod
    def _rule(self, coef: Array, intercept: Array, parameters: Checked, shape: Shape) -> dict[str, Any]:
        """Return the fitted attributes for coefficients of shape (outputs, n_features) and scaled targets."""

    def _check_together(self, parameters: Checked) -> None:
        # A regression has targets. A course of `partial_fit` starts from the weights of the earlier courses.
        parameters.targets = parameters.start = parameters.earlier = None
        self._schedule_of(parameters)

    def _settings_of(self, parameters: Checked) -> Settings:
        alpha, norm, automatic = parameters.alpha, parameters.data_norm, parameters.max_grad_norm == "auto"
        return Settings(
            epsilon=parameters.epsilon,
            delta=parameters.delta,
            data_norm=norm,
            loss=parameters.loss,
            penalty=parameters.penalty,
            alpha=_ALPHA * norm**2 if alpha is None else alpha,
            l1_ratio=parameters.l1_ratio,
            fit_intercept=parameters.fit_intercept,
            max_grad_norm=None if automatic else parameters.max_grad_norm,
            learning_rate=parameters.learning_rate,
            eta0=parameters.eta0,
            momentum=parameters.momentum,
            averaged=parameters.average,
        )

    def _schedule_of(self, parameters: Checked) -> SamplingSchedule:
        schedule = SamplingSchedule.of(parameters, 1.0, _STEPS)
        if parameters.private and parameters.batch_size is None and parameters.epochs is None:
            mu = gaussian_mu(parameters.epsilon, parameters.delta)
            schedule = replace(schedule, rate=min(1.0, (_RATE + _RATE_OF_MU * mu) / math.sqrt(schedule.n_steps)))
        return schedule

    def _after(self, parameters: Checked, coef: Array, intercept: Array) -> Checked:
        """Return the parameters of a fit that continues from a rule for scaled targets, and from ``privacy_``."""
        start = weights_of(coef, intercept, self._settings_of(parameters))
        return parameters.replaced(start=start, earlier=self.privacy_)

    def _plan(self, parameters: Checked, shape: Shape) -> tuple[PrivacyGuarantee, Descent]:
        settings, schedule = self._settings_of(parameters), self._schedule_of(parameters)
        loss = self._loss_of(parameters, shape.n_classes)
        first = None if parameters.targets is None else TargetRange.of(settings.epsilon, settings.delta)
        descent = Descent(settings, schedule, loss, shape.n_features, self._walk, first=first)
        return descent.plan(), descent

    def _within(self, located: Located, parameters: Checked, design: Descent) -> tuple[Checked, Descent]:
        """Return the parameters and the descent for targets in the released range, and where it starts."""
        before, targets, settings = parameters.targets, located.targets, design.settings
        start = np.zeros(design.shape)
        if parameters.start is not None:
            coef, intercept = rule_of(parameters.start, settings)
            intercept = (before.half * intercept + before.centre - targets.centre) / targets.half
            start = weights_of(coef * before.half / targets.half, intercept, settings)
        elif settings.fit_intercept:
            start[:, -1] = located.mean_with() / settings.constant
        parameters = parameters.replaced(targets=targets, start=start)
        loss = self._loss_of(parameters, 0)
        if settings.private:
            # A threshold of Huber's loss may grow in scaled units, but the clipping bound must not.
            settings = replace(settings, max_grad_norm=design.max_norm)
        return parameters, replace(design, loss=loss, settings=settings)

    def _stated(self, guarantee: PrivacyGuarantee, parameters: Checked) -> PrivacyGuarantee:
        return guarantee if parameters.earlier is None else together([parameters.earlier, guarantee])

    def _measure(
        self, session: ReleaseSession, records: Records, parameters: Checked, design: Descent
    ) -> dict[str, Any]:
        settings, schedule, shape = design.settings, design.schedule, records.shape
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
        portion = guarantee.epsilon / whole if whole < math.inf else 1 / len(guarantees)
        releases += [replace(release, share=portion * release.share) for release in guarantee.releases]
    events = tuple(event for guarantee in guarantees for event in guarantee.events)
    return PrivacyGuarantee(whole, delta, events, tuple(releases))

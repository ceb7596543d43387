r"""Linear models by noisy gradient descent, DP-SGD (Abadi et al. 2016) with one layer: their base, and classification.

Each step releases the sum of the clipped gradients of a Poisson sample of records (by default of all records), with
Gaussian noise. The number of records is released first, unless it is declared. The rest is post-processing: `Path`
(:mod:`skdp.solvers.linear_descent`) computes ``coef_`` from the sums.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..accounting import gaussian_mu
from ..checks.data import known_labels, labelled_data, of_valid_rows
from ..checks.params import By, Checked, OneOf, Or, Real, Rules, check_boolean, check_classes, check_positive
from ..mechanisms import SampledGaussianMechanism
from ..parts.arrays import rowwise
from ..release.estimator import LabelsMixin, PrivateEstimator, Records, Shape
from ..release.session import CallbackSupportMixin, PrivacyGuarantee, ReleaseSession
from ..sensitivity import exact_row_products
from ..solvers.calibration import Window
from ..solvers.clipped_gradients import gradients_of
from ..solvers.linear_descent import (
    GRADIENTS,
    MARGIN_WALK,
    SCHEDULE_RULES,
    Descent,
    LinearRule,
    LogOdds,
    Path,
    SamplingSchedule,
    Settings,
    positive_delta,
    rule_of,
    weights_of,
)
from ..solvers.losses import GradientLoss, Hinge, HuberHinge, LogLoss, OneVsRest, SoftmaxLogLoss
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
    if isinstance(value, bool | np.bool_):
        return 0.5 if value else 0.0
    return check_positive(value, name, least=0, most=1)


class GradientDescent(CallbackSupportMixin, PrivateEstimator, BaseEstimator):
    """Base of linear models by noisy gradient descent."""

    _counts_outside = ("entries", "target")
    _fixes_cost = True
    _composes_before = True
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
        target_range = None if parameters.targets is None else TargetRange.of(settings.epsilon, settings.delta)
        before = parameters.share_before
        descent = Descent(
            settings, schedule, loss, shape.n_features, self._walk, target_range=target_range, share_before=before
        )
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
        if design.target_range is not None:
            located = design.target_range.located(session, records.y, parameters.targets, settings.fit_intercept)
            parameters, design = self._within(located, parameters, design)
            values = rowwise(parameters.targets.scaled, records.y)
        fixed = settings.data_norm, settings.constant, design.loss, design.max_norm, schedule.rate == 1
        gradients = gradients_of(records.X, values, *fixed)
        n_rows = gradients.n_rows
        mechanism = session.mechanism(GRADIENTS)
        assert isinstance(mechanism, SampledGaussianMechanism)

        n_records = schedule.records(session, n_rows, located)
        start = np.zeros(design.shape) if parameters.start is None else parameters.start
        path = Path(design, start, schedule.rate * n_records, mechanism.scale)
        privacy = self._stated(session.guarantee, parameters)

        # Callbacks may receive these functions. Therefore they do not hold the records.
        def fitted(weights: Array) -> dict[str, Any]:
            rule = self._rule(*rule_of(weights, settings), parameters, shape)
            if shape.n_classes:
                rule["_powers"] = design.powers(shape.n_classes, n_records)
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


def loss_of(name: str, n_classes: int) -> GradientLoss:
    """Return the loss for a number of classes."""
    if name == "log_loss":
        return LogLoss() if n_classes == 2 else SoftmaxLogLoss(n_classes)
    margin = Hinge() if name == "hinge" else HuberHinge()
    return margin if n_classes == 2 else OneVsRest(margin, n_classes)


class DPSGDClassifier(LogOdds, LinearRule, ClassifierMixin, LabelsMixin, GradientDescent):
    """Differentially private linear classification by noisy gradient descent.

    In each step, the gradients of the records are clipped, added up, and released with noise. The fit takes as long as
    50 to 100 passes over the data. See :ref:`gradient_descent` for the choice of the parameters.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one `fit` or one course of `partial_fit`. Must be strictly positive. ``inf`` gives no privacy.
    delta : float, default=1e-5
        Privacy budget of one fit, in (0, 1), far below one over the number of records.
    schema : Schema, default=None
        Declaration of the columns of X, in place of `data_norm` and `classes`. Explicit parameters override it.
    accountant : BudgetAccountant, default=None
        Accountant that each `fit` and each `partial_fit` charges before any noise is drawn. ``clone`` shares it.
    random_state : int, RandomState, Generator or None, default=None
        If None, noise and samples are cryptographically secure. Other values are for tests only, and give no privacy.
    loss : {"log_loss", "hinge", "huber"}, default="log_loss"
        ``"log_loss"`` is logistic regression, multinomial for three classes or more. ``"hinge"`` and ``"huber"`` (a
        hinge with a rounded kink) are support vector machines, one-vs-rest, without probabilities.
    penalty : {"l2", "l1", "elasticnet"} or None, default="l2"
        Penalty on the coefficients, not on the intercept.
    alpha : float, default=None
        Weight of the penalty against the *mean* loss, as in :class:`sklearn.linear_model.SGDClassifier`. If None, it is
        1e-6 times the square of `data_norm`, which has almost no effect.
    l1_ratio : float, default=0.15
        L1 part of the elastic net, in [0, 1].
    fit_intercept : bool, default=True
        Whether to add a constant feature of 0.3 `data_norm`.
    max_grad_norm : float or "auto", default="auto"
        Norm to which the gradient of a record is clipped. ``"auto"`` is 0.3 times the largest gradient of the loss.
    batch_size : float, int or None, default=None
        Probability that a record is in the sample of a step. An int is the expected size of the sample, and needs
        `expected_n`. If None, a public rule chooses the probability.
    n_steps : int, default=None
        Number of steps, at most 1e9. If None, it is 500, unless `epochs` is given.
    epochs : float, default=None
        Number of steps in another unit: passes over the data, in place of `n_steps`.
    expected_n : float, default=None
        Publicly known, approximate number of records. If None, 2 % of the budget are spent on a private number.
    learning_rate : {"auto", "constant", "invscaling", "cosine"}, default="auto"
        How the step size decreases: not at all (also ``"auto"``), as 1 / sqrt(step), or as a cosine down to 0.
    eta0 : float, default=None
        Length of the first step for a mean gradient of length 1. If None, a public rule chooses it.
    momentum : float, default=0.95
        Weight of the last step in the next one, in [0, 1).
    average : bool or float, default=True
        Fraction of the last iterates whose average is the result. True is one half. False is the last iterate only.
    data_norm : float
        Public clipping bound: the largest L2 norm of a row of X. Longer rows are scaled down to it.
    classes : array-like, default=None
        Public label set. Other rows are left out. If None, the labels in `y` count as public, with a warning.
    class_weight : dict or "balanced", default=None
        Public weights of the labels. ``"balanced"`` computes them from 4 % of the budget (see :ref:`weights`).
    max_weight : float, default=None
        Public upper bound on `sample_weight` in `fit`. Larger weights count as `max_weight`. Required with weights.
    verbose : int, default=0
        Lines of progress to print: 0 for none, 1 for about ten in each phase (see :doc:`/user_guide/progress`).

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Private coefficients (:ref:`formula <gradient-descent-steps>`).
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Private intercepts. Zeros if `fit_intercept` is False.
    classes_ : ndarray of shape (n_classes,)
        Label set, sorted.
    class_weight_ : ndarray of shape (n_classes,)
        Weights of the labels, at most 1, from the released counts. Only with ``class_weight="balanced"``.
    n_steps_ : int
        Number of steps of the last course. It is public.
    privacy_ : PrivacyGuarantee
        Guarantee of all courses since the last `fit`, with its mechanisms, sensitivities and noise scales.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    ObjPertLogReg : One release instead of many. At larger epsilon, it is at least as accurate.
    DPSGDRegressor : Regression by the same method.

    Notes
    -----
    **Privacy.** `fit` is (`epsilon`, `delta`)-DP under adding or removing one record. Each step releases the sum of the
    clipped gradients of a Poisson sample, with Gaussian noise (:ref:`gradient descent, theorem 1
    <gradient-descent-theorem-1>`). The number of records is released once, unless `expected_n` is given (:ref:`theorem
    3 <gradient-descent-theorem-3>`). The rest is post-processing. Each `partial_fit` is charged in full, also if it
    fails after the charge. ``privacy_`` then states the sum of all courses.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPSGDClassifier, Schema
    >>> k = np.arange(5000)
    >>> age, smokes = 18 + k % 72, np.where(k % 5 < 2, "yes", "no")
    >>> ill = age + 16 * (smokes == "yes") + 20 * np.sin(k) > 60
    >>> columns = {"age": (18, 90), "smokes": ["no", "yes"]}
    >>> schema = Schema(columns, target=[False, True])
    >>> model = DPSGDClassifier(
    ...     epsilon=1, delta=1e-6, schema=schema, random_state=0
    ... )
    >>> model = model.fit({"age": age, "smokes": smokes}, ill)
    >>> people = {"age": [40, 60], "smokes": ["no", "yes"]}
    >>> model.predict_proba(people)[:, 1].round(1)
    array([0.1, 0.9])
    """

    _released = frozenset({"coef_", "intercept_", "_powers"})
    _public = frozenset({"n_steps_", "_loss"})
    _parameter_rules: ClassVar[Rules] = {"loss": OneOf(("log_loss", "hinge", "huber"))}

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        loss: str = "log_loss",
        penalty: str | None = "l2",
        alpha: float | None = None,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_grad_norm: float | str = "auto",
        batch_size: int | float | None = None,
        n_steps: int | None = None,
        epochs: float | None = None,
        expected_n: float | None = None,
        learning_rate: str = "auto",
        eta0: float | None = None,
        momentum: float = 0.95,
        average: bool | float = True,
        data_norm: float | None = None,
        classes: Any = None,
        class_weight: Any = None,
        max_weight: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_grad_norm = max_grad_norm
        self.batch_size = batch_size
        self.n_steps = n_steps
        self.epochs = epochs
        self.expected_n = expected_n
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.momentum = momentum
        self.average = average
        self.data_norm = data_norm
        self.classes = classes
        self.class_weight = class_weight
        self.max_weight = max_weight
        self.verbose = verbose

    def partial_fit(self, X: Any, y: Any, classes: Any = None, *, sample_weight: Any = None) -> Self:
        """Continue from the current coefficients with one more course of steps, and spend epsilon and delta for it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Finite features. Rows longer than `data_norm` are scaled down to this norm.
        y : array-like of shape (n_samples,)
            Labels. Rows with other labels than the declared ones are left out.
        classes : array-like of shape (n_classes,), default=None
            Public label set. Required at the first call, unless the parameter `classes` is set.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights of the records. They require `max_weight`. Each record is kept with a probability
            proportional to its weight (see :ref:`weights`). The weight of a record must not depend on other records.

        Returns
        -------
        self : object
            The fitted estimator. ``privacy_`` is the guarantee of all courses since the last `fit` together, for
            records that may be in each of them.
        """
        first = not hasattr(self, "coef_")
        given = check_classes(classes)
        declared = check_classes(self._declared("classes"))
        if not first:
            if declared is not None and not np.array_equal(declared, self.classes_):
                raise ValueError("classes is not the same as on the first call to partial_fit. Call fit to start again")
            declared = self.classes_
        if declared is None:
            if given is None:
                raise ValueError("classes must be passed on the first call to partial_fit, or be set as a parameter")
            declared = given
        if given is not None and not np.array_equal(given, declared):
            raise ValueError("classes is not the same as on the first call to partial_fit, or as the parameter classes")
        parameters = self._check_parameters().replaced(classes=declared)
        if not first:
            parameters = self._after(parameters, self.coef_, self.intercept_)
        return self._fit(X, y, parameters=parameters, sample_weight=sample_weight)

    def _read(self, X: Any, y: Any, parameters: Checked) -> tuple[Any, Any, NDArray[np.bool_], Shape]:
        X, codes, classes = labelled_data(self, X, y, parameters.classes, reset=parameters.start is None)
        return X, codes, known_labels(codes), Shape(X.shape[1], len(classes), names=self._names(), classes=classes)

    def _loss_of(self, parameters: Checked, n_classes: int) -> GradientLoss:
        return loss_of(parameters.loss, n_classes)

    def _rule(self, coef: Array, intercept: Array, parameters: Checked, shape: Shape) -> dict[str, Any]:
        return {"coef_": coef, "intercept_": intercept, "classes_": shape.classes, "_loss": parameters.loss}

    def _logits(self, X: Any) -> Array:
        check_is_fitted(self, "coef_")
        logits: Array = of_valid_rows(lambda rows: self._powers.logits(rows, self._scores_of(rows)), self, X)
        return logits

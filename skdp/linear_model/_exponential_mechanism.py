r"""Linear models by the exponential mechanism (McSherry and Talwar 2007; Bassily, Smith and Thakurta 2014).

One vector of coefficients is released. It is drawn from a ball with density proportional to
:math:`e^{-(\varepsilon/\Delta) \sum_i \ell(w; z_i)}`, where :math:`\Delta` is the largest spread of one record's loss
over the ball (:mod:`~skdp.solvers.losses`). The draw is exact (:mod:`skdp.mechanisms.tangent_planes`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags, Tags
from sklearn.utils.validation import check_is_fitted

from ..accounting import BoundedRangeEvent, PrivacyEvent, PureEvent
from ..checks.params import Checked, OneOf, Or, Real, Rules, anything, check_boolean
from ..checks.silence import available_if
from ..mechanisms import MOST_PARAMETERS, Mechanism, NoNoise, TangentPlaneMechanism, pure_share
from ..release.estimator import LabelsMixin, OutcomesMixin, PrivateEstimator, Records, Shape, TargetsMixin
from ..release.session import CallbackSupportMixin, PrivacyGuarantee, Release, ReleaseSession, Theorem
from ..sensitivity import augmented_norm, clip_rows
from ..solvers.linear_descent import LinearRule, LogOdds, linear_scores
from ..solvers.losses import (
    AbsoluteError,
    Array,
    LogLoss,
    LossSum,
    ScoreLoss,
    minimiser_on_ball,
)
from ..solvers.regularised import Scaling
from ..solvers.target_range import TargetRange

#: The constant feature of the intercept, as a multiple of `data_norm`. It is larger than in other linear models,
#: because the ball bounds the intercept, by 0.45 times `max_score` here and by 0.29 times for a constant of 0.3.
INTERCEPT_CONSTANT = 0.5

#: The default of `max_score`, for a margin or for a prediction in half ranges of the targets.
LARGEST_MARGIN = 4.0
LARGEST_PREDICTION = 3.0

_COEFFICIENTS = "coefficients"
_THEOREM = Theorem("Exponential mechanism", 1)


@dataclass(frozen=True)
class Problem:
    """What is minimised: the sum of a loss over a ball of coefficients, by public numbers."""

    loss: ScoreLoss
    targets: Scaling | None
    max_score: float
    data_norm: float
    constant: float
    target_range: TargetRange | None

    @classmethod
    def of(cls, parameters: Checked) -> Problem:
        max_score, norm = parameters.max_score, parameters.data_norm
        constant = INTERCEPT_CONSTANT * norm if parameters.fit_intercept else 0.0
        if parameters.loss == "log_loss":
            return cls(LogLoss(), None, LARGEST_MARGIN if max_score is None else max_score, norm, constant, None)
        targets = Scaling.of_target(parameters.bounds_y, parameters.fit_intercept)
        largest = LARGEST_PREDICTION if max_score is None else max_score
        return cls(AbsoluteError(), targets, largest, norm, constant, TargetRange.of(parameters.epsilon, 0.0))

    @property
    def norm(self) -> float:
        """Norm of rows with their constant feature."""
        return augmented_norm(self.data_norm, self.constant)


def plan(epsilon: float, delta: float, problem: Problem, n_features: int) -> PrivacyGuarantee:
    """Return the one release: the coefficients."""
    size = n_features + 1 if problem.constant else n_features
    if size > MOST_PARAMETERS:
        other = "FunctionalMechLinReg" if problem.targets else "ObjPertLogReg"
        raise ValueError(
            f"ExpMechERM is for at most {MOST_PARAMETERS} parameters, including the intercept, because the cost of "
            f"sampling grows exponentially with their number. There are {size}. {other} takes any number"
        )
    spread = problem.loss.spread(problem.max_score)
    mechanism: Mechanism = NoNoise(spread)
    event: PrivacyEvent = PureEvent(epsilon)
    share = 1.0 if problem.target_range is None else 1 - problem.target_range.share
    if epsilon < math.inf:
        scale = pure_share(epsilon, share)
        mechanism, event = TangentPlaneMechanism(scale, spread, problem.max_score, size), BoundedRangeEvent(scale)
    guarantee = PrivacyGuarantee(epsilon, delta, (event,), (Release(_COEFFICIENTS, mechanism, share, _THEOREM),))
    return guarantee if problem.target_range is None else problem.target_range.and_then(guarantee)


def loss_sum(X: NDArray, target: Array, problem: Problem) -> LossSum:
    """Return the sum of losses, as a function of coefficients for rows of norm 1."""
    rows = clip_rows(X, problem.data_norm, problem.constant).array
    # Underflow depends on the data. Therefore NumPy must not report it.
    with np.errstate(all="ignore"):
        rows /= problem.norm
        return LossSum(rows, target, problem.loss, problem.max_score)


def rule_of(released: Array, problem: Problem, targets: Scaling | None) -> dict[str, Any]:
    """Return coefficients and intercept in units of the data, for labels if `targets` is None."""
    coef, intercept = released / problem.norm, 0.0
    if problem.constant:
        coef, intercept = coef[:-1], float(problem.constant * coef[-1])
    if targets is None:
        return {"coef_": coef[None], "intercept_": np.array([intercept])}
    return {"coef_": coef * targets.half, "intercept_": intercept * targets.half + targets.centre}


def _classifies(estimator: Any) -> bool:
    # The loss of the fit counts, because the parameter may have been changed since.
    if getattr(estimator, "_loss", estimator.loss) != "log_loss":
        raise AttributeError("classification losses only")
    return True


class ExpMechERM(CallbackSupportMixin, LogOdds, LinearRule, OutcomesMixin, BaseEstimator):
    r"""Private linear models of up to four parameters (use `ObjPertLogReg` or `FunctionalMechLinReg` instead).

    This is a textbook algorithm. By the exponential mechanism, the coefficients are drawn from a ball, with a
    probability that decreases exponentially with the sum of losses. The draw is exact, without a Markov chain and
    without delta. There are at most four parameters, including the intercept.

    Parameters
    ----------
    loss : {"log_loss", "absolute_error"}, default="log_loss"
        ``"log_loss"`` is logistic regression for two classes, and ``"absolute_error"`` is median regression.
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` returns the
        minimiser on the ball and gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1). The fit is pure epsilon-DP for every `delta`.
    schema : Schema, default=None
        Declaration of the columns of X, in place of `bounds_y`, `data_norm` and `classes`. Explicit parameters override
        it.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.
    max_score : float, default=None
        Radius of the ball: the largest absolute score of a row of norm `data_norm`, from 0.1 to 100. The noise grows
        with it. If None, it is 4 for the log loss and 3 for regression, in half ranges of the targets.
    fit_intercept : bool, default=True
        Whether to add a constant feature of half `data_norm`. If False, targets are not centred.
    bounds_y : tuple (lower, upper), default=None
        Public bounds of the targets. Required for regression. Targets beyond are clipped, and predictions are within.
        The bounds may be generous (see :ref:`regression`).
    data_norm : float
        Public clipping bound: the largest L2 norm of a row of X. Longer rows are scaled down to it. A smaller norm
        means less noise and more clipping.
    classes : array-like, default=None
        Public label set of a classifier, of two labels. Other rows are left out. If None, the labels in `y` count as
        public, with a warning.
    class_weight : dict or "balanced", default=None
        Public weights of the labels. ``"balanced"`` computes them from 4 % of the budget (see :ref:`weights`).
    max_weight : float, default=None
        Public upper bound on `sample_weight` in `fit`. Larger weights count as `max_weight`. Required with weights.
    verbose : int, default=0
        Lines of progress to print: 0 for none, 1 for about ten in each phase (see :doc:`/user_guide/progress`).

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_features,)
        Private coefficients (:ref:`density <erm-draw>`), of a classifier or of a regressor.
    intercept_ : ndarray of shape (1,) or float
        Private intercept.
    classes_ : ndarray of shape (2,)
        Label set, sorted. Only for classification.
    class_weight_ : ndarray of shape (n_classes,)
        Weights of the labels, at most 1, from the released counts. Only with ``class_weight="balanced"``.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit, with its mechanisms, sensitivities and noise scales.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    ObjPertLogReg : Classification with any number of features.
    FunctionalMechLinReg : Least squares with any number of features.

    Notes
    -----
    **Privacy.** For regression, a range of the targets and their mean in it are released first (:ref:`regression,
    theorem 1 <regression-theorem-1>`). One point :math:`w` of the ball is drawn with density proportional to
    :math:`e^{-(\varepsilon/\Delta)\sum_i \ell(w; z_i)}`. The values of the loss of one record on the ball are at most
    :math:`\Delta` apart (:ref:`exponential mechanism, theorem 2 <erm-theorem-2>`). The draw is epsilon-DP under adding
    or removing one record, and epsilon-bounded-range, which composes better (:ref:`theorem 1 <erm-theorem-1>`). The
    exponent has no factor of 2, because records are added or removed and not replaced. The time that `fit` takes
    depends on the data.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import ExpMechERM, Schema
    >>> k = np.arange(5000)
    >>> age = 18 + k % 72
    >>> ill = age + 20 * np.sin(k) > 60
    >>> schema = Schema({"age": (18, 90)}, target=[False, True])
    >>> model = ExpMechERM(epsilon=1.0, schema=schema, random_state=0)
    >>> model = model.fit({"age": age}, ill)
    >>> round(model.score({"age": age}, ill), 1)
    0.8
    """

    intercept_: Any

    _counts_outside = ("entries", "target")
    _released = frozenset({"coef_", "intercept_", "_targets"})
    _public = frozenset({"_loss"})
    _fixes_cost = True
    _parameter_rules: ClassVar[Rules] = {
        "loss": OneOf(("log_loss", "absolute_error")),
        "bounds_y": anything,
        "max_score": Or(None, Real(0.1, 100.0)),
        "fit_intercept": check_boolean,
    }

    def __init__(
        self,
        loss: str = "log_loss",
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        max_score: float | None = None,
        fit_intercept: bool = True,
        bounds_y: Any = None,
        data_norm: float | None = None,
        classes: Any = None,
        class_weight: Any = None,
        max_weight: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.max_score = max_score
        self.fit_intercept = fit_intercept
        self.bounds_y = bounds_y
        self.data_norm = data_norm
        self.classes = classes
        self.class_weight = class_weight
        self.max_weight = max_weight
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if isinstance(self.loss, str) and self.loss == "log_loss":
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(multi_class=False)
        else:
            tags.estimator_type = "regressor"
            tags.regressor_tags = RegressorTags()
        return tags

    def _kind(self, parameters: Checked) -> type[PrivateEstimator]:
        return LabelsMixin if parameters.loss == "log_loss" else TargetsMixin

    def _check_together(self, parameters: Checked) -> None:
        Problem.of(parameters)

    def _plan(self, parameters: Checked, shape: Shape) -> tuple[PrivacyGuarantee, Problem]:
        if shape.n_classes > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass. Use ObjPertLogReg"
            )
        problem = Problem.of(parameters)
        return plan(parameters.epsilon, parameters.delta, problem, shape.n_features), problem

    def _measure(
        self, session: ReleaseSession, records: Records, parameters: Checked, problem: Problem
    ) -> dict[str, Any]:
        targets, y = problem.targets, records.y
        if targets is not None and problem.target_range is not None:
            targets = problem.target_range.located(session, y, targets, problem.constant > 0).targets
        target = np.where(y == 1, 1.0, -1.0) if targets is None else targets.scaled(y)
        losses: Any = loss_sum(records.X, target, problem)
        value = losses if parameters.private else minimiser_on_ball(losses, problem.max_score)
        released = session.release(_COEFFICIENTS, value)
        return rule_of(released, problem, targets) | {"_loss": parameters.loss, "_targets": targets}

    @available_if(_classifies)
    def decision_function(self, X: Any) -> Array:
        """Return the logit of each row. Only for classification.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features. They are not clipped.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Positive for the second class.
        """
        return super().decision_function(X)

    def predict(self, X: Any) -> NDArray:
        """Return the most likely label, or the predicted target, of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, which are not clipped. Predicted targets are clipped to their released range.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Elements of ``classes_``, or numbers.
        """
        check_is_fitted(self, "coef_")
        if self._loss == "log_loss":
            return super().predict(X)
        return self._targets.clipped(linear_scores(self, X)[:, 0])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of a classifier, or the coefficient of determination of a regressor.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            True labels, or targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        score : float
            At most 1.
        """
        check_is_fitted(self, "coef_")
        metric = accuracy_score if self._loss == "log_loss" else r2_score
        return float(metric(y, self.predict(X), sample_weight=sample_weight))

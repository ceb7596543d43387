"""Linear regression by noisy gradient descent, with the steps of :mod:`skdp.linear_model._sgd`."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from ..checks.data import regression_data, single_target
from ..checks.params import Checked, OneOf, Rules, anything
from ..release.estimator import Shape, TargetsMixin
from ..solvers.linear_descent import TARGET_WALK, linear_scores
from ..solvers.losses import GradientLoss, Huber
from ..solvers.regularised import Scaling
from ._sgd import GradientDescent

Array = NDArray[np.float64]

# Residuals are clipped at so many half ranges of the targets.
_MOST_RESIDUAL = 4.0

# The default threshold of Huber's loss, in half ranges.
_THRESHOLD = 0.25

# Smaller thresholds would be lost in the rounding of residuals.
_LEAST_THRESHOLD = 1e-9


class DPSGDRegressor(RegressorMixin, TargetsMixin, GradientDescent):
    """Differentially private linear regression by noisy gradient descent.

    In each step, the gradients of the records are clipped, added up, and released with noise. See
    :ref:`gradient_descent` for the choice of the parameters.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one `fit` or one course of `partial_fit`. Must be strictly positive. ``inf`` gives no privacy.
    delta : float, default=1e-5
        Privacy budget of one fit, in (0, 1), far below one over the number of records.
    schema : Schema, default=None
        Declaration of the columns of X, in place of `bounds_y` and `data_norm`. Explicit parameters override it.
    accountant : BudgetAccountant, default=None
        Accountant that each `fit` and each `partial_fit` charges before any noise is drawn. ``clone`` shares it.
    random_state : int, RandomState, Generator or None, default=None
        If None, noise and samples are cryptographically secure. Other values are for tests only, and give no privacy.
    loss : {"squared_error", "huber"}, default="squared_error"
        Loss function. ``"huber"`` is linear beyond a threshold.
    huber_threshold : float, default=None
        Residual beyond which Huber's loss is linear, in units of the targets (``epsilon`` in scikit-learn). If None, it
        is an eighth of the width of the released range of the targets.
    penalty : {"l2", "l1", "elasticnet"} or None, default="l2"
        Penalty on the coefficients, not on the intercept.
    alpha : float, default=None
        Weight of the penalty against the *mean* loss of targets that are scaled to [-1, 1] by `bounds_y`. If None, it
        is 1e-6 times the square of `data_norm`, which has almost no effect.
    l1_ratio : float, default=0.15
        L1 part of the elastic net, in [0, 1].
    fit_intercept : bool, default=True
        Whether to add a constant feature of 0.3 `data_norm`.
    max_grad_norm : float or "auto", default="auto"
        Norm to which the gradient of a record is clipped. ``"auto"`` is 0.3 times the gradient of a residual of half
        the range of the targets, or of `huber_threshold` if that is smaller.
    batch_size : float, int or None, default=None
        Probability that a record is in the sample of a step. An int is the expected size of the sample, and needs
        `expected_n`. If None, a public rule chooses the probability.
    n_steps : int, default=None
        Number of steps, at most 1e9. If None, it is 500, unless `epochs` is given.
    epochs : float, default=None
        Number of steps in another unit: passes over the data, in place of `n_steps`.
    expected_n : float, default=None
        Publicly known, approximate number of records. If None, it is released with the range of the targets.
    learning_rate : {"auto", "constant", "invscaling", "cosine"}, default="auto"
        How the step size decreases: not at all (also ``"auto"``), as 1 / sqrt(step), or as a cosine down to 0.
    eta0 : float, default=None
        Length of the first step for a mean gradient of length 1 of scaled targets. If None, a public rule chooses it.
    momentum : float, default=0.95
        Weight of the last step in the next one, in [0, 1).
    average : bool or float, default=True
        Fraction of the last iterates whose average is the result. True is one half. False is the last iterate only.
    bounds_y : tuple (lower, upper)
        Public bounds of the targets, which may be generous (see :ref:`regression`). Targets beyond are clipped.
    data_norm : float
        Public clipping bound: the largest L2 norm of a row of X. Longer rows are scaled down to it.
    max_weight : float, default=None
        Public upper bound on `sample_weight` in `fit`. Larger weights count as `max_weight`. Required with weights.
    verbose : int, default=0
        Lines of progress to print: 0 for none, 1 for about ten in each phase (see :doc:`/user_guide/progress`).

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Private coefficients (:ref:`formula <gradient-descent-steps>`).
    intercept_ : float
        Private intercept. 0 if `fit_intercept` is False.
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
    FunctionalMechLinReg : One release of second moments, with bounds for each column instead of a norm.
    DPSGDClassifier : Classification by the same method.

    Notes
    -----
    **Privacy.** `fit` is (`epsilon`, `delta`)-DP under adding or removing one record. A range of the targets, their
    mean in it and the number of records are released first (:ref:`regression, theorem 1 <regression-theorem-1>`). Each
    step releases the sum of the clipped gradients of a Poisson sample, with Gaussian noise (:ref:`gradient descent,
    theorem 1 <gradient-descent-theorem-1>`). With the squared error and an intercept, six noisy sums correct mean and
    slope (:ref:`theorem 2 <gradient-descent-theorem-2>`). The rest is post-processing. Each `partial_fit` is charged in
    full, also if it fails after the charge. ``privacy_`` then states the sum of all courses.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPSGDRegressor, Schema
    >>> k = np.arange(5000)
    >>> age, smokes = 18 + k % 72, np.where(k % 5 < 2, "yes", "no")
    >>> cost = 200 + 10 * age + 500 * (smokes == "yes") + 100 * np.sin(k)
    >>> columns = {"age": (18, 90), "smokes": ["no", "yes"]}
    >>> schema = Schema(columns, target=(0, 3000))
    >>> model = DPSGDRegressor(
    ...     epsilon=1, delta=1e-6, schema=schema, random_state=0
    ... )
    >>> model = model.fit({"age": age, "smokes": smokes}, cost)
    >>> people = {"age": [30, 70], "smokes": ["no", "yes"]}
    >>> model.predict(people).round(-2)
    array([ 500., 1400.])
    """

    _released = frozenset({"coef_", "intercept_", "_targets"})
    _public = frozenset({"n_steps_"})
    _parameter_rules: ClassVar[Rules] = {"loss": OneOf(("squared_error", "huber")), "huber_threshold": anything}
    _walk = TARGET_WALK

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        loss: str = "squared_error",
        huber_threshold: float | None = None,
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
        bounds_y: Any = None,
        data_norm: float | None = None,
        max_weight: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.loss = loss
        self.huber_threshold = huber_threshold
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
        self.bounds_y = bounds_y
        self.data_norm = data_norm
        self.max_weight = max_weight
        self.verbose = verbose

    def partial_fit(self, X: Any, y: Any, *, sample_weight: Any = None) -> Self:
        """Continue from the current coefficients with one more course of steps, and spend epsilon and delta for it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Finite features. Rows longer than `data_norm` are scaled down to this norm.
        y : array-like of shape (n_samples,)
            Finite targets, clipped to `bounds_y`.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights of the records. They require `max_weight`. Each record is kept with a probability
            proportional to its weight (see :ref:`weights`). The weight of a record must not depend on other records.

        Returns
        -------
        self : object
            The fitted estimator. ``privacy_`` is the guarantee of all courses since the last `fit` together, for
            records that may have been in every one of them.
        """
        parameters = self._check_parameters()
        if hasattr(self, "coef_"):
            half, centre = parameters.targets.half, parameters.targets.centre
            intercept = (np.atleast_1d(self.intercept_) - centre) / half
            parameters = self._after(parameters, self.coef_[None] / half, intercept)
        return self._fit(X, y, parameters=parameters, sample_weight=sample_weight)

    def _check_together(self, parameters: Checked) -> None:
        super()._check_together(parameters)
        parameters.targets = Scaling.of_target(parameters.bounds_y, parameters.fit_intercept)
        self._loss_of(parameters, 0)

    def _read(self, X: Any, y: Any, parameters: Checked) -> tuple[Any, Any, None, Shape]:
        X, y = regression_data(self, X, y, reset=parameters.start is None)
        return X, single_target(y), None, Shape(X.shape[1], names=self._names())

    def _loss_of(self, parameters: Checked, n_classes: int) -> GradientLoss:
        if parameters.loss != "huber":
            return Huber(_MOST_RESIDUAL)
        threshold = parameters.targets.huber_threshold(parameters.huber_threshold, _THRESHOLD, _LEAST_THRESHOLD)
        return Huber(min(threshold, _MOST_RESIDUAL))

    def _rule(self, coef: Array, intercept: Array, parameters: Checked, shape: Shape) -> dict[str, Any]:
        half, centre = parameters.targets.half, parameters.targets.centre
        return {
            "coef_": coef[0] * half,
            "intercept_": float(intercept[0]) * half + centre,
            "_targets": parameters.targets,
        }

    def predict(self, X: Any) -> Array:
        """Return the predicted target of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features, which are not clipped. Predictions are clipped to the released range of the targets.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predictions.
        """
        predictions = linear_scores(self, X)[:, 0]
        return self._targets.clipped(predictions)

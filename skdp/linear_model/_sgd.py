r"""Linear classification by noisy gradient descent: DP-SGD (Abadi et al. 2016) for models with one layer.

Released: in each step, the sum of the clipped gradients of a Poisson sample of records (all of them, by default), with
Gaussian noise; and before, unless it is declared, the number of records. The rest is computed from that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from ..checks.data import known_labels, labelled_data
from ..checks.params import check_classes
from ..release.estimator import LabelsMixin, Shape
from ..solvers.linear_rule import LinearRule, LogOdds
from ..solvers.losses import GradientLoss, Hinge, HuberHinge, LogLoss, OneVsRest, SoftmaxLogLoss
from ._sgd_base import GradientDescent, Parameters

Array = NDArray[np.float64]

LOSSES = ("log_loss", "hinge", "huber")


def loss_of(name: str, n_classes: int) -> GradientLoss:
    """Return a loss for so many classes."""
    if name == "log_loss":
        return LogLoss() if n_classes == 2 else SoftmaxLogLoss(n_classes)
    margin = Hinge() if name == "hinge" else HuberHinge()
    return margin if n_classes == 2 else OneVsRest(margin, n_classes)


class DPSGDClassifier(LogOdds, LinearRule, ClassifierMixin, LabelsMixin, GradientDescent):
    r"""Differentially private linear classification by noisy gradient descent.

    In each step, the gradients of the records are clipped, added up, and released with noise. For many columns of
    which each is rare, few records, or several classes, it is often more accurate than
    :class:`~skdp.linear_model.ObjPertLogReg`; it takes as long as some hundred passes over the data.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit, or of one course of `partial_fit`, positive. ``inf`` adds no noise and gives no
        privacy.
    delta : float, default=1e-5
        Privacy budget of one fit, in (0, 1): the noise is Gaussian, and ``delta=0`` is refused. Choose it far below
        one over the number of records.
    data_norm : float
        Largest L2 norm of a row of X, from public knowledge. Longer rows are scaled down to it, silently. Scale columns
        to like sizes first (see :class:`~skdp.preprocessing.BoundsScaler`): where a single one makes up the norm, the
        others drown in noise.
    loss : {"log_loss", "hinge", "huber"}, default="log_loss"
        ``"log_loss"``: logistic regression, multinomial for three classes or more. ``"hinge"`` and ``"huber"`` (a hinge
        with a rounded kink): support vector machines, for three classes or more one against the rest, all together
        under one clipping norm; without probabilities.
    penalty : {"l2", "l1", "elasticnet"} or None, default="l2"
        Penalty on the coefficients, not on the intercept.
    alpha : float, default=None
        Weight of the penalty against the *mean* loss, as in :class:`sklearn.linear_model.SGDClassifier`. None is
        1e-6 times the square of `data_norm`: next to nothing, since noise and steps regularise already.
    l1_ratio : float, default=0.15
        Part of the elastic net that is L1, in [0, 1].
    fit_intercept : bool, default=True
        Whether to add a constant feature of 0.3 `data_norm`.
    max_grad_norm : float or "auto", default="auto"
        The norm to which a record's gradient is clipped. ``"auto"`` is 0.3 times the largest gradient that the loss
        admits; without noise, nothing is clipped. Numbers above that largest gradient count as it.
    batch_size : float, int or None, default=None
        A float is the probability of a record to be in a step's sample, an integer the expected size of the sample,
        which needs `expected_n`. None takes all records in each step; if `expected_n` says that this is more than 2e10
        products, a fifth of them.
    n_steps : int, default=None
        Number of steps, 1e9 at most. None is 500, unless `epochs` is given.
    epochs : float, default=None
        The same, in units of one over the rate.
    expected_n : float, default=None
        Number of records, as far as it is publicly known, to divide sums of gradients by. It need not be exact. None
        spends two per cent of the budget on a private number.
    learning_rate : {"auto", "constant", "invscaling", "cosine"}, default="auto"
        How steps shrink: not at all, as one over the square root of their number, or as a cosine down to 0.
        ``"auto"`` is ``"constant"``.
    eta0 : float, default=None
        Length of a step for a mean gradient of length 1. None is three quarters of the longest that the
        curvature allows, or less where the noise of all steps would add up to more than is good, by a public rule.
    momentum : float, default=0.95
        Weight of the last move in the next, in [0, 1).
    average : bool or float, default=True
        Part of the iterates, the last ones, whose average is the result. True is one half, False the last iterate
        alone.
    classes : array-like, default=None
        The public label set, of at least two labels. Rows with other labels are left out. With None, the labels
        in `y` are taken to be public, with a warning.
    class_weight : dict or "balanced", default=None
        Public weights of labels, not negative. Each record is kept with a probability proportional to the weight of
        its label (see :ref:`weights`). Labels that are not named have weight 1. None gives all labels the same weight.
        ``"balanced"`` releases the counts of labels first, which uses 4 % of the budget, and takes weights that are
        inversely proportional to these counts, of a ratio of at most 100.
    max_weight : float, default=None
        Public upper bound on `sample_weight` of `fit`. Larger weights count as `max_weight`. Required if
        `sample_weight` is given, and without effect otherwise.
    schema : Schema, default=None
        Public facts about the columns of a table, in place of `data_norm` and `classes`. A value that is given
        for `data_norm` or `classes` counts instead of the schema's. X is then the table itself, with text and
        missing values.
    accountant : BudgetAccountant, default=None
        Budget that is charged before any noise is drawn, at each `fit` and each `partial_fit`. ``clone`` shares it.
    random_state : int, RandomState, Generator or None, default=None
        None takes noise and samples from the operating system's cryptographic generator. Anything else makes noise
        that can be reproduced, and subtracted: for tests only.
    verbose : int, default=0
        Whether to print the progress of `fit`. 0 prints nothing, 1 a line for each phase and for about ten steps of a
        phase, and 2 or more up to a hundred steps. The lines hold public numbers and the elapsed time. The elapsed time
        depends on the data, and the guarantee does not cover it.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Private coefficients.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Private intercepts; zeros without `fit_intercept`.
    classes_ : ndarray of shape (n_classes,)
        The label set, sorted.
    class_weight_ : ndarray of shape (n_classes,)
        The weights from the released counts, at most 1; only with ``class_weight="balanced"``.
    n_steps_ : int
        Number of steps of the last course. Public.
    privacy_ : PrivacyGuarantee
        The guarantee of all courses since the last `fit`, with mechanisms, sensitivities and noise scales.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, if X is a frame with names of type str.

    See Also
    --------
    ObjPertLogReg : One release instead of many, at larger epsilon at least as accurate.
    DPSGDRegressor : The same for regression.

    Notes
    -----
    **Privacy.** (`epsilon`, `delta`)-DP under addition or removal of one record. Released are, in each step, the sum
    over a Poisson sample of gradients that are clipped one by one, with Gaussian noise, and once, unless `expected_n`
    is given, the number of records. All else is computed from these. Sums are exact, so that a record moves them by
    its own gradient and by nothing else. The proof is in :ref:`gradient_descent`. Each `partial_fit` is charged in
    full; ``privacy_`` then states the sum of the pairs, and ``privacy_.privacy_loss_distribution()`` composes the
    events of all courses, which says more. A course that fails after it was charged leaves the model and ``privacy_``
    as they were: the accountant counts it, and ``privacy_``, which is about the model, does not. If a callback has kept
    iterates of such a course, add its cost, which is that of `privacy_plan`.

    scikit-learn's callbacks (1.9 and later) are told how many steps are done. They are given no rows, no labels and no
    gradients; a fitted estimator that one asks for holds what was released so far.

    References
    ----------
    .. [1] M. Abadi et al., "Deep learning with differential privacy", CCS 2016.
    .. [2] S. Song, K. Chaudhuri, A. Sarwate, "Stochastic gradient descent with differentially private updates",
       GlobalSIP 2013.
    .. [3] R. Bassily, A. Smith, A. Thakurta, "Private empirical risk minimization: efficient algorithms and tight error
       bounds", FOCS 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPSGDClassifier
    >>> X = np.cos(np.outer(np.arange(1000), [1, 2, 3, 4]))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> model = DPSGDClassifier(epsilon=1.0, data_norm=2.0, classes=[0, 1], random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    _released = frozenset({"coef_", "intercept_"})
    _public = frozenset({"n_steps_", "_loss"})
    _losses = LOSSES

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        data_norm: float | None = None,
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
        classes: Any = None,
        class_weight: Any = None,
        max_weight: float | None = None,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
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
        self.classes = classes
        self.class_weight = class_weight
        self.max_weight = max_weight
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def partial_fit(self, X: Any, y: Any, classes: Any = None, *, sample_weight: Any = None) -> Self:
        """Take one more course of steps, from the coefficients as they are, and spend epsilon and delta for it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Finite features. Rows longer than `data_norm` are scaled down to it.
        y : array-like of shape (n_samples,)
            Labels. Rows with labels that are not declared are left out.
        classes : array-like of shape (n_classes,), default=None
            The public label set. Needed at the first call unless the estimator's own `classes` is set.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the records, not negative; for `max_weight`. Each record is kept with a probability proportional
            to its weight (see :ref:`weights`). The weight of a record must not depend on other private records.

        Returns
        -------
        self : object
            The fitted estimator. ``privacy_`` is the guarantee of all courses since the last `fit` together, for
            records that may have been in every one of them.
        """
        first = not hasattr(self, "coef_")
        given = check_classes(classes)
        declared = check_classes(self._declared("classes"))
        if not first:
            if declared is not None and not np.array_equal(declared, self.classes_):
                raise ValueError("classes is not the same as on the first call to partial_fit: call fit to start anew")
            declared = self.classes_
        if declared is None:
            if given is None:
                raise ValueError("classes must be passed on the first call to partial_fit, or be set")
            declared = given
        if given is not None and not np.array_equal(given, declared):
            raise ValueError("classes is not the same as on the first call to partial_fit, or as was set")
        parameters = replace(self._check_parameters(), classes=declared)
        if not first:
            parameters = self._after(parameters, self.coef_, self.intercept_)
        return self._fit(X, y, parameters=parameters, sample_weight=sample_weight)

    def _check_parameters(self) -> Parameters:
        return replace(super()._check_parameters(), classes=check_classes(self._declared("classes")))

    def _read(self, X: Any, y: Any, parameters: Parameters) -> tuple[Any, Any, NDArray[np.bool_], Shape]:
        X, codes, classes = labelled_data(self, X, y, parameters.classes, reset=parameters.start is None)
        return X, codes, known_labels(codes), Shape(X.shape[1], len(classes), names=self._names(), classes=classes)

    def _loss_of(self, parameters: Parameters, n_classes: int) -> GradientLoss:
        return loss_of(parameters.settings.loss, n_classes)

    def _rule(self, coef: Array, intercept: Array, parameters: Parameters, shape: Shape) -> dict[str, Any]:
        loss = parameters.settings.loss
        return {"coef_": coef, "intercept_": intercept, "classes_": shape.classes, "_loss": loss}

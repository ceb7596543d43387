"""Linear support vector machines by objective and by output perturbation.

The method is that of logistic regression, with a hinge loss whose kink is rounded off, because perturbation needs a
derivative (Chaudhuri, Monteleoni and Sarwate 2011, section 3.4).
"""

from __future__ import annotations

from typing import Any

from ..checks.params import Checked
from ._perturbation import ObjectivePerturbation, OutputPerturbation, PrivateLinearModel


class PrivateLinearSVC(PrivateLinearModel):
    """Base of both estimators, with their parameters."""

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        data_norm: float | None = None,
        C: float | str = "auto",
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 100,
        classes: Any = None,
        class_weight: Any = None,
        max_weight: float | None = None,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.C = C
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.classes = classes
        self.class_weight = class_weight
        self.max_weight = max_weight
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state

    def _check_together(self, parameters: Checked) -> None:
        parameters.loss = "huber"


class ObjPertSVC(ObjectivePerturbation, PrivateLinearSVC):
    r"""Differentially private linear support vector machine by objective perturbation.

    A random linear term is added to the objective, and the minimiser is released. The loss is the hinge loss with its
    kink rounded off between margins of 1/2 and 3/2. The result equals that of :class:`ObjPertLogReg` with
    ``loss="huber"``.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1). If 0, the fit is pure epsilon-DP. Otherwise, the noise is Gaussian, and
        much smaller for many features. Choose a value far below one over the expected number of records.
    data_norm : float
        Public clipping bound: the largest L2 norm of a row of X. Longer rows are scaled down to this norm, without a
        warning. A smaller norm means less noise and more clipping.
    C : float or "auto", default="auto"
        Weight of the sum of losses against half the squared norm of the coefficients, as in
        :class:`sklearn.svm.LinearSVC`. If ``"auto"``, the weight is a formula of public parameters. A number that is
        larger than the proof admits, which is less than for the log loss, is reduced. ``C_`` is the result.
    fit_intercept : bool, default=True
        Whether to add a constant feature of 0.3 `data_norm`. Its coefficient is regularised, because an intercept
        without a penalty has an unbounded sensitivity.
    tol : float, default=1e-6
        Tolerance of the solver, as a multiple of the largest gradient of one record. It affects privacy, because the
        noise that hides the residual of the solver is proportional to `tol`. The residual is certified to be smaller.
    max_iter : int, default=100
        Number of Newton steps after which the solver changes to a slower search. It does not affect privacy.
    classes : array-like, default=None
        Public label set, of at least two labels. Rows with other labels are left out. If None, the labels in `y` are
        declared public, with a `PrivacyAssumptionWarning`.
    class_weight : dict or "balanced", default=None
        Public, non-negative weights of the labels. Each record is kept with a probability proportional to the weight of
        its label (see :ref:`weights`). Labels that are not in the dict have weight 1. If None, all weights are 1. If
        ``"balanced"``, 4 % of the budget is spent on the counts of the labels. The weights are inversely proportional
        to these counts, with a ratio of at most 100.
    max_weight : float, default=None
        Public upper bound on `sample_weight` in `fit`. Larger weights count as `max_weight`. Required with weights.
    schema : Schema, default=None
        Public facts about the columns of a table, in place of `data_norm` and `classes`. A parameter that is set takes
        precedence over the schema. X is then the table, with text and missing values.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Private coefficients, one-vs-rest for three classes or more.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Private intercepts. Zeros if `fit_intercept` is False.
    classes_ : ndarray of shape (n_classes,)
        Label set, sorted.
    class_weight_ : ndarray of shape (n_classes,)
        Weights of the labels, at most 1, from the released counts. Only with ``class_weight="balanced"``.
    C_ : float
        The weight that was used.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit, with its mechanisms, sensitivities and noise scales.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    ObjPertLogReg : Logistic regression, for which the proof needs less regularisation.
    OutputPertSVC : Adds noise to the solution. It is less accurate.

    Notes
    -----
    **Privacy.** As for :class:`ObjPertLogReg`, the minimiser of the perturbed objective is released, with a little
    noise for the residual of the solver. With :math:`K > 2` classes there are :math:`K` problems. One record is in all
    of them, and their joint sensitivity is :math:`\sqrt K C R_a`. The second derivative of the loss is at most 1 and
    jumps. Therefore the determinant adds :math:`\log(1 + C R_a^2)` to epsilon for each problem, and `C` is limited to
    keep this a small part [1]_ (:ref:`objective perturbation, theorem 4 <objective-perturbation-proof-theorem-4>`). The
    guarantee covers neither an error for values that are not finite nor the time that `fit` takes.

    References
    ----------
    .. [1] K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially Private Empirical Risk Minimization",
       JMLR 12, 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skdp.linear_model import ObjPertSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X[:, [21, 27]] - [25, 0.1]) / [10, 0.1]
    >>> model = ObjPertSVC(epsilon=1.0, delta=1e-5, data_norm=2.0, classes=[0, 1], random_state=0)
    >>> bool(model.fit(X, y).score(X, y) > 0.8)
    True
    """


class OutputPertSVC(OutputPerturbation, PrivateLinearSVC):
    r"""Differentially private linear support vector machine by output perturbation.

    A regularised model is fitted, and noise is added to its coefficients. The loss is the hinge loss with its kink
    rounded off between margins of 1/2 and 3/2. The result equals that of :class:`OutputPertLogReg` with
    ``loss="huber"``.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1). If 0, the fit is pure epsilon-DP, by the L2 mechanism. Otherwise, the
        noise is Gaussian, and much smaller for many features. Choose a value far below one over the expected number of
        records.
    data_norm : float
        Public clipping bound: the largest L2 norm of a row of X. Longer rows are scaled down to this norm, without a
        warning. A smaller norm means less noise and more clipping.
    C : float or "auto", default="auto"
        Weight of the sum of losses against half the squared norm of the coefficients, as in
        :class:`sklearn.svm.LinearSVC`. The noise is proportional to it. If ``"auto"``, a formula of public parameters
        gives the weight at which the score of a row of norm `data_norm` has noise of standard deviation 1/4.
    fit_intercept : bool, default=True
        Whether to add a constant feature of 0.3 `data_norm`. Its coefficient is regularised, because an intercept
        without a penalty has an unbounded sensitivity.
    tol : float, default=1e-6
        Tolerance of the solver, as a multiple of the largest gradient of one record. It affects privacy, because the
        residual of the solver is added to the sensitivity twice. The residual is certified to be smaller.
    max_iter : int, default=100
        Number of Newton steps after which the solver changes to a slower search. It does not affect privacy.
    classes : array-like, default=None
        Public label set, of at least two labels. Rows with other labels are left out. If None, the labels in `y` are
        declared public, with a `PrivacyAssumptionWarning`.
    class_weight : dict or "balanced", default=None
        Public, non-negative weights of the labels. Each record is kept with a probability proportional to the weight of
        its label (see :ref:`weights`). Labels that are not in the dict have weight 1. If None, all weights are 1. If
        ``"balanced"``, 4 % of the budget is spent on the counts of the labels. The weights are inversely proportional
        to these counts, with a ratio of at most 100.
    max_weight : float, default=None
        Public upper bound on `sample_weight` in `fit`. Larger weights count as `max_weight`. Required with weights.
    schema : Schema, default=None
        Public facts about the columns of a table, in place of `data_norm` and `classes`. A parameter that is set takes
        precedence over the schema. X is then the table, with text and missing values.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Private coefficients, one-vs-rest for three classes or more.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Private intercepts. Zeros if `fit_intercept` is False.
    classes_ : ndarray of shape (n_classes,)
        Label set, sorted.
    class_weight_ : ndarray of shape (n_classes,)
        Weights of the labels, at most 1, from the released counts. Only with ``class_weight="balanced"``.
    C_ : float
        The weight that was used.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit, with its mechanisms, sensitivities and noise scales.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    ObjPertSVC : Adds noise to the objective. It is more accurate.
    OutputPertLogReg : Logistic regression.

    Notes
    -----
    **Privacy.** The coefficients are released once. Let the norm of rows be at most :math:`R_a` (`data_norm`, and the
    constant feature). Adding or removing one record moves the minimiser by at most :math:`C L + 2\tau` in L2 norm,
    where :math:`L` is :math:`R_a` for two classes and :math:`\sqrt{K} R_a` for :math:`K > 2` [1]_ (:ref:`output
    perturbation, theorem 1 <output-perturbation-theorem-1>`). The guarantee covers neither an error for values that are
    not finite nor the time that `fit` takes.

    References
    ----------
    .. [1] K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially Private Empirical Risk Minimization",
       JMLR 12, 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skdp.linear_model import OutputPertSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X[:, [21, 27]] - [25, 0.1]) / [10, 0.1]
    >>> model = OutputPertSVC(epsilon=1.0, delta=1e-5, data_norm=2.0, classes=[0, 1], random_state=0)
    >>> bool(model.fit(X, y).score(X, y) > 0.8)
    True
    """

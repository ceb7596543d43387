"""Linear support vector machines by objective and by output perturbation.

The machinery is that of logistic regression, with the hinge loss whose kink is rounded off: perturbation needs a
derivative (Chaudhuri, Monteleoni and Sarwate 2011, section 3.4).
"""

from __future__ import annotations

from typing import Any

from ._logistic import PrivateLinearModel
from ._objective_perturbation import ObjectivePerturbation
from ._output_perturbation import OutputPerturbation


class PrivateLinearSVC(PrivateLinearModel):
    """Base of the two: their parameters."""

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

    def _checked_loss(self) -> str:
        return "huber"


class ObjPertSVC(ObjectivePerturbation, PrivateLinearSVC):
    r"""Differentially private linear support vector machine by objective perturbation.

    A random linear term is added to the objective, and the minimiser is released. The loss is the hinge loss with its
    kink rounded off between margins of 1/2 and 3/2. The same as :class:`ObjPertLogReg` with ``loss="huber"``.

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
        :class:`sklearn.svm.LinearSVC`. ``"auto"`` takes a formula of public parameters. A number is used as it is as
        far as the proof admits it, which is less than for the log loss: ``C_`` is what was used.
    fit_intercept : bool, default=True
        Whether to add a constant feature of 0.3 `data_norm`. Its coefficient is regularised, because an intercept
        that is not has no bounded sensitivity.
    tol : float, default=1e-6
        How closely the minimiser is found, as a multiple of what one record can change in the gradient. It is a
        privacy parameter: the residual is certified to stay below it, and the noise that hides it is proportional
        to it.
    max_iter : int, default=100
        Newton steps before the solver turns to a slower search. It does not affect privacy.
    classes : array-like, default=None
        Public label set, of at least two labels. Rows with other labels are left out. If None, the labels in `y` are
        declared public, with a `PrivacyAssumptionWarning`.
    class_weight : dict or "balanced", default=None
        Public, non-negative weights of the labels. Each record is kept with a probability proportional to the weight of
        its label (see :ref:`weights`). Labels that are not in the dict have weight 1. If None, all labels have the same
        weight. If ``"balanced"``, the counts of the labels are released first, with 4 % of the budget. The weights are
        then inversely proportional to these counts, with a ratio of at most 100.
    max_weight : float, default=None
        Public upper bound on `sample_weight` of `fit`. Larger weights count as `max_weight`. Required if
        `sample_weight` is given, and ignored otherwise.
    schema : Schema, default=None
        Public facts about the columns of a table, in place of `data_norm` and `classes`. A parameter that is set takes
        precedence over the schema. X is then the table itself, with text and missing values.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise comes from the operating system's cryptographic generator. Use other values in tests only,
        because noise that can be reproduced can be subtracted.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Private coefficients; one-vs-rest for three classes or more.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Private intercepts; zeros without `fit_intercept`.
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
    ObjPertLogReg : Logistic regression, for which the proof asks for less regularisation.
    OutputPertSVC : Perturbs the solution instead.

    Notes
    -----
    **Privacy.** As for :class:`ObjPertLogReg`: released is the minimiser of the perturbed objective, with a little
    noise for the solver's residual. With :math:`K > 2` classes there are :math:`K` problems, one record is in all of
    them, and their sensitivity is :math:`\sqrt K C R_a` together. The second derivative of the loss is at most 1 and
    jumps, so that the determinant costs :math:`\log(1 + C R_a^2)` of epsilon for each problem; `C` is limited such
    that this stays a small part [1]_. The proof is in the user guide. Not covered: that `fit` raises an error for
    values that are not finite, and how long it takes.

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
    rounded off between margins of 1/2 and 3/2. The same as :class:`OutputPertLogReg` with ``loss="huber"``.

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
        :class:`sklearn.svm.LinearSVC`. The noise is proportional to it. ``"auto"`` takes the weight at which a score
        of a row of norm `data_norm` carries noise of standard deviation 1/4, a formula of public parameters.
    fit_intercept : bool, default=True
        Whether to add a constant feature of 0.3 `data_norm`. Its coefficient is regularised, because an intercept
        that is not has no bounded sensitivity.
    tol : float, default=1e-6
        How closely the minimiser is found, as a multiple of what one record can change in the gradient. It is a
        privacy parameter: the residual is certified to stay below it, and is added to the sensitivity twice.
    max_iter : int, default=100
        Newton steps before the solver turns to a slower search. It does not affect privacy.
    classes : array-like, default=None
        Public label set, of at least two labels. Rows with other labels are left out. If None, the labels in `y` are
        declared public, with a `PrivacyAssumptionWarning`.
    class_weight : dict or "balanced", default=None
        Public, non-negative weights of the labels. Each record is kept with a probability proportional to the weight of
        its label (see :ref:`weights`). Labels that are not in the dict have weight 1. If None, all labels have the same
        weight. If ``"balanced"``, the counts of the labels are released first, with 4 % of the budget. The weights are
        then inversely proportional to these counts, with a ratio of at most 100.
    max_weight : float, default=None
        Public upper bound on `sample_weight` of `fit`. Larger weights count as `max_weight`. Required if
        `sample_weight` is given, and ignored otherwise.
    schema : Schema, default=None
        Public facts about the columns of a table, in place of `data_norm` and `classes`. A parameter that is set takes
        precedence over the schema. X is then the table itself, with text and missing values.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise comes from the operating system's cryptographic generator. Use other values in tests only,
        because noise that can be reproduced can be subtracted.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Private coefficients; one-vs-rest for three classes or more.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Private intercepts; zeros without `fit_intercept`.
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
    ObjPertSVC : Perturbs the objective instead.
    OutputPertLogReg : Logistic regression.

    Notes
    -----
    **Privacy.** Released are the coefficients, once. With rows of norm at most :math:`R_a` (`data_norm`, and the
    constant feature), adding or removing one record moves the minimiser by at most :math:`C L + 2\tau` in L2 norm,
    where :math:`L` is :math:`R_a` for two classes and :math:`\sqrt{K} R_a` for :math:`K > 2` [1]_. The proof is in the
    user guide. Not covered: that `fit` raises an error for values that are not finite, and how long it takes.

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

"""Linear classifiers by objective perturbation (see :mod:`skdp.solvers.objective_perturbation`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..release.session import ReleaseSession
from ..solvers.objective_perturbation import effective_weight, plan, release_minimiser
from ..solvers.regularised import Array, Geometry, Parameters, Rows, solve
from ._logistic import PrivateLinearClassifier, PrivateLinearModel


class ObjectivePerturbation(PrivateLinearModel):
    """A linear classifier whose objective is perturbed."""

    _weight = staticmethod(effective_weight)
    _plan_of = staticmethod(plan)

    @staticmethod
    def _release(
        session: ReleaseSession,
        rows: Rows,
        codes: NDArray[np.intp],
        parameters: Parameters,
        geometry: Geometry,
        C: float,
    ) -> Array:
        def minimise(b: Array, tau: float) -> Array:
            return solve(rows, codes, geometry, C, b, tau, parameters.max_iter)

        return release_minimiser(session, minimise, parameters, geometry, C)


class ObjPertLogReg(ObjectivePerturbation, PrivateLinearClassifier):
    r"""Differentially private logistic regression by objective perturbation.

    A random linear term is added to the objective of regularised logistic regression, and the minimiser is
    released. It is the library's default classifier: accurate, quick, and without anything to tune.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit, positive. ``inf`` adds no noise and gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1). With 0, the fit is pure epsilon-DP; otherwise the noise is Gaussian,
        and much smaller for many features. Choose it far below one over the number of records.
    data_norm : float
        Largest L2 norm of a row of X, from public knowledge. Longer rows are scaled down to it, silently.
    C : float or "auto", default="auto"
        Weight of the sum of losses against half the squared norm of the coefficients, as in scikit-learn.
        ``"auto"`` takes a formula of public parameters, at most 100 over the squared norm. A number is used as it is
        as far as the proof admits it: ``C_`` is what was used.
    loss : {"log_loss", "huber"}, default="log_loss"
        ``"log_loss"``: logistic regression, multinomial for three classes or more. ``"huber"``: hinge loss with a
        rounded kink (a support vector machine), one-vs-rest for three classes or more, without probabilities.
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
        Budget that is charged before any noise is drawn. ``clone`` shares it.
    random_state : int, RandomState, Generator or None, default=None
        None takes noise from the operating system's cryptographic generator. Anything else makes noise that can
        be reproduced, and subtracted: for tests only.

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
    C_ : float
        The weight that was used.
    privacy_ : PrivacyGuarantee
        The guarantee, with mechanisms, sensitivities and noise scales.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, where X has string names.

    See Also
    --------
    OutputPertLogReg : Perturbs the solution instead; simpler and weaker.

    Notes
    -----
    **Privacy.** Released is the minimiser of the perturbed objective, with a little noise for the solver's
    residual. With rows of norm at most :math:`R_a` (`data_norm`, and the constant feature), the objective's noise is
    calibrated to an L2 sensitivity of :math:`C L`, where :math:`L` is :math:`R_a` for two classes and
    :math:`\sqrt{2} R_a` for the multinomial loss; the Huber hinge has one problem a class. The density of the minimiser
    also carries a determinant, which adds to the privacy loss [1]_, [2]_. For the binary log loss, as long as
    :math:`C R_a^2` stays below epsilon, that addition is nothing at all for ``delta=0``. With a positive `delta`, and
    :math:`C R_a^2` of at most 3.7 times the GDP parameter of the noise, objective perturbation is exactly as private as
    the Gaussian mechanism, also in composition with other releases. This, the price for the other losses, and the
    treatment of the residual [3]_ are proved in the user guide. Not covered: that `fit` raises an error for values
    that are not finite, and how long it takes.

    References
    ----------
    .. [1] K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially Private Empirical Risk Minimization",
       JMLR 12, 2011.
    .. [2] D. Kifer, A. Smith and A. Thakurta, "Private Convex Empirical Risk Minimization and High-dimensional
       Regression", COLT 2012.
    .. [3] R. Iyengar, J. P. Near, D. Song, O. Thakkar, A. Thakurta and L. Wang, "Towards Practical Differentially
       Private Convex Optimization", IEEE S&P 2019.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skdp.linear_model import ObjPertLogReg
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> public_upper = [40, 50, 250, 3000] + [1] * 6 + [4, 6, 30, 600] + [1] * 6 + [50, 60, 300, 5000] + [1] * 6
    >>> model = ObjPertLogReg(epsilon=1.0, delta=1e-5, data_norm=2.0, classes=[0, 1], random_state=0)
    >>> bool(model.fit(X / public_upper, y).score(X / public_upper, y) > 0.8)
    True
    """

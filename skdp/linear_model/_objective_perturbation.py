"""Linear classifiers by objective perturbation (see :mod:`skdp.solvers.objective_perturbation`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..accounting import PureEvent
from ..checks.params import Checked
from ..release.counts import class_sums_mechanism
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem
from ..release.units import label_counts
from ..solvers.losses import MultinomialLogLoss
from ..solvers.objective_perturbation import effective_weight, plan, release_minimiser, shrunk
from ..solvers.regularised import Array, Geometry, Rows, solve
from ._logistic import PrivateLinearClassifier, PrivateLinearModel

_COUNTS = "counts of labels"

# Share of the budget for the counts of three labels or more.
_SHARE = 0.06


def _of_counts(parameters: Checked, geometry: Geometry) -> float:
    """Return the share of the budget for the counts of labels."""
    shrinks = parameters.C == "auto" and geometry.constant > 0 and isinstance(geometry.loss, MultinomialLogLoss)
    return _SHARE if shrinks else 0.0


class ObjectivePerturbation(PrivateLinearModel):
    """A linear classifier whose objective is perturbed."""

    @staticmethod
    def _weight(parameters: Checked, geometry: Geometry) -> float:
        return effective_weight(parameters, geometry, _of_counts(parameters, geometry))

    @staticmethod
    def _plan_of(parameters: Checked, geometry: Geometry, C: float) -> PrivacyGuarantee:
        epsilon, delta, share = parameters.epsilon, parameters.delta, _of_counts(parameters, geometry)
        others = plan(parameters, geometry, C, share)
        if not share:
            return others
        mechanism, event = class_sums_mechanism(epsilon, delta, 1, 0, geometry.loss.outputs + 1, share=share)
        # Pure releases have one event together.
        events = (event, *others.events) if delta > 0 and parameters.private else (PureEvent(epsilon),)
        counts = Release(_COUNTS, mechanism, share, Theorem("Statistics", 2))
        return replace(others, events=events, releases=(counts, *others.releases))

    @staticmethod
    def _release(
        session: ReleaseSession, rows: Rows, codes: NDArray[np.intp], parameters: Checked, geometry: Geometry, C: float
    ) -> Array:
        strong_convexity, added, shifted = 1.0, np.zeros(geometry.shape), geometry
        if _of_counts(parameters, geometry):
            n_classes = geometry.loss.outputs + 1
            mechanism = session.mechanism(_COUNTS)
            counts = session.release(_COUNTS, label_counts(codes, n_classes))
            logits, strong_convexity = shrunk(counts, mechanism, parameters, geometry, C)
            loss = MultinomialLogLoss(n_classes, logits)
            added[0, :, -1] = loss.basis.T @ logits / geometry.constant
            shifted = replace(geometry, loss=loss)

        def minimise(b: Array, tau: float) -> Array:
            return solve(rows, codes, shifted, C, b, tau, parameters.max_iter, strong_convexity)

        return release_minimiser(session, minimise, parameters, geometry, C) + added.ravel()


class ObjPertLogReg(ObjectivePerturbation, PrivateLinearClassifier):
    r"""Differentially private logistic regression by objective perturbation.

    Logistic regression with an L2 penalty is fitted to an objective with a random linear term, and its minimiser is
    released. This is the default classifier of the library, because it is accurate, quick, and needs no tuning.

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
        Weight of the sum of losses against half the squared norm of the coefficients, as in scikit-learn. If
        ``"auto"``, the weight is a formula of public parameters, at most 100 over the squared norm of rows. For three
        classes or more, 6 % of the budget is then spent on the counts of labels. Logits are shrunk to half of their
        log-odds, and more strongly if there are few records. A number that is larger than the proof admits is reduced.
        ``C_`` is the result.
    loss : {"log_loss", "huber"}, default="log_loss"
        ``"log_loss"`` is logistic regression, multinomial for three classes or more. ``"huber"`` is the hinge loss with
        a rounded kink (a support vector machine), one-vs-rest for three classes or more, without probabilities.
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
        Private coefficients.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Private intercepts. Zeros if `fit_intercept` is False.
    classes_ : ndarray of shape (n_classes,)
        Label set, sorted.
    class_weight_ : ndarray of shape (n_classes,)
        Weights of the labels, at most 1, from the released counts. Only with ``class_weight="balanced"``.
    C_ : float
        The weight that was used. For three classes or more and few records, ``"auto"`` means a smaller one.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit, with its mechanisms, sensitivities and noise scales.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    OutputPertLogReg : Adds noise to the solution. It is simpler and less accurate.

    Notes
    -----
    **Privacy.** The release is the minimiser of the perturbed objective, with a little noise for the residual of the
    solver. With ``C="auto"`` and three classes or more, the counts of labels are released before (:ref:`statistics,
    theorem 2 <statistics-theorem-2>`). Let the norm of rows be at most :math:`R_a` (`data_norm`, and the constant
    feature). The noise of the objective is calibrated to an L2 sensitivity of :math:`C L`, where :math:`L` is
    :math:`R_a` for two classes and :math:`\sqrt{2} R_a` for the multinomial loss. The Huber hinge has one problem for
    each class. The density of the minimiser also has a determinant, which adds to the privacy loss [1]_, [2]_. For the
    binary log loss and ``delta=0``, the determinant adds nothing as long as :math:`C R_a^2` is at most epsilon
    (:ref:`theorem 1 <objective-perturbation-proof-theorem-1>`). With a positive `delta`, and :math:`C R_a^2` of at most
    3.7 times the GDP parameter of the noise, objective perturbation is exactly as private as the Gaussian mechanism,
    also in composition (:ref:`theorem 6 <objective-perturbation-proof-theorem-6>`).
    :doc:`/user_guide/objective_perturbation_proof` proves the bounds for the other losses (theorems 2 to 4) and for the
    residual (theorem 5) [3]_. The guarantee covers neither an error for values that are not finite nor the time that
    `fit` takes.

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

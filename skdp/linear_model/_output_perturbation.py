r"""Linear classifiers by output perturbation (Chaudhuri, Monteleoni and Sarwate 2011).

The release is the minimiser of :math:`C \sum_i \ell(\theta x_i; y_i) + \|\theta\|^2/2`, certified to a residual
:math:`\tau`, plus noise. Its sensitivity is :math:`CL + 2\tau` (see ``minimizer_sensitivity``). The noise is Gaussian,
or that of the L2 mechanism if delta is 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..accounting import GaussianEvent, PrivacyEvent, PureEvent, gaussian_mu
from ..checks.params import Checked
from ..mechanisms import BitStream, GammaMechanism, GaussianMechanism, Mechanism, NoNoise
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem
from ..sensitivity import minimizer_sensitivity
from ..solvers.regularised import LARGEST_KAPPA, Array, Geometry, Rows, automatic_weight, linear_rule, solve
from ._logistic import PrivateLinearClassifier, PrivateLinearModel

#: Standard deviation of the noise in the score of a row of the largest norm, if C is "auto".
_SCORE_NOISE = 0.25

_COEFFICIENTS = "coefficients"
_THEOREM = Theorem("Output perturbation", 1)


def plan(parameters: Checked, geometry: Geometry, C: float) -> PrivacyGuarantee:
    """Return the one release: the coefficients."""
    tau = parameters.tol * C * geometry.lipschitz
    sensitivity = minimizer_sensitivity(C, geometry.joint_lipschitz, 1.0, geometry.joint(tau))
    epsilon, delta = parameters.epsilon, parameters.delta
    mechanism: Mechanism
    event: PrivacyEvent = PureEvent(epsilon)
    if not parameters.private:
        mechanism = NoNoise(sensitivity)
    elif delta > 0:
        mu = gaussian_mu(epsilon, delta)
        event = GaussianEvent(mu)
        mechanism = GaussianMechanism(mu, sensitivity, geometry.size)
    else:
        mechanism = GammaMechanism(epsilon, sensitivity, geometry.size)
    return PrivacyGuarantee(epsilon, delta, (event,), (Release(_COEFFICIENTS, mechanism, 1.0, _THEOREM),))


class OutputPerturbation(PrivateLinearModel):
    """A linear classifier whose solution is perturbed."""

    @staticmethod
    def _weight(parameters: Checked, geometry: Geometry) -> float:
        if parameters.C != "auto":
            return float(parameters.C)
        return automatic_weight(parameters, geometry, _SCORE_NOISE, LARGEST_KAPPA / geometry.norm**2)

    _plan_of = staticmethod(plan)

    @staticmethod
    def _release(
        session: ReleaseSession, rows: Rows, codes: NDArray[np.intp], parameters: Checked, geometry: Geometry, C: float
    ) -> Array:
        tau = parameters.tol * C * geometry.lipschitz
        theta = solve(rows, codes, geometry, C, np.zeros(geometry.size), tau, parameters.max_iter)
        return session.release(_COEFFICIENTS, theta.ravel())

    def _coef_with_other_noise(self, stream: BitStream) -> Array:
        """Return the coefficients with further noise of the same size."""
        # The counts of labels may be an earlier release.
        mechanism = next(r.mechanism for r in self.privacy_.releases if r.label == _COEFFICIENTS)
        noise = mechanism.release(np.zeros(self._geometry.size), stream)
        return self.coef_ + linear_rule(noise, self._geometry)[0]


class OutputPertLogReg(OutputPerturbation, PrivateLinearClassifier):
    r"""Differentially private logistic regression by output perturbation.

    A regularised model is fitted, and noise is added to its coefficients. This is the simplest private classifier, and
    the least accurate one of the library, because the noise does not become smaller in directions that the data
    determine well. `ObjPertLogReg` is better at every budget. Use this one to learn and to compare.

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
        Weight of the sum of losses against half the squared norm of the coefficients, as in scikit-learn. The noise is
        proportional to it. If ``"auto"``, a formula of public parameters gives the weight at which the score of a row
        of norm `data_norm` has noise of standard deviation 1/4, at most 100 over the squared norm of rows.
    loss : {"log_loss", "huber"}, default="log_loss"
        ``"log_loss"`` is logistic regression, multinomial for three classes or more. ``"huber"`` is the hinge loss with
        a rounded kink (a support vector machine), one-vs-rest for three classes or more, without probabilities.
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
        Private coefficients.
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
    ObjPertLogReg : Adds noise to the objective. It is more accurate.

    Notes
    -----
    **Privacy.** The coefficients are released once. Let the norm of rows be at most :math:`R_a` (`data_norm`, and the
    constant feature). Adding or removing one record moves the minimiser by at most :math:`C L + 2\tau` in L2 norm,
    where :math:`L` is :math:`R_a` (two classes), :math:`\sqrt{2} R_a` (multinomial) or :math:`\sqrt{K} R_a` (Huber, K >
    2 classes) [1]_ (:ref:`output perturbation, theorem 1 <output-perturbation-theorem-1>`). The guarantee covers
    neither an error for values that are not finite nor the time that `fit` takes.

    References
    ----------
    .. [1] K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially Private Empirical Risk Minimization",
       JMLR 12, 2011.
    .. [2] B. Balle and Y.-X. Wang, "Improving the Gaussian Mechanism for Differential Privacy", ICML 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> from skdp.linear_model import OutputPertLogReg
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> public_upper = [40, 50, 250, 3000] + [1] * 6 + [4, 6, 30, 600] + [1] * 6 + [50, 60, 300, 5000] + [1] * 6
    >>> model = OutputPertLogReg(epsilon=1.0, delta=1e-5, data_norm=2.0, classes=[0, 1], random_state=0)
    >>> model.fit(X / public_upper, y).coef_.shape
    (1, 30)
    """

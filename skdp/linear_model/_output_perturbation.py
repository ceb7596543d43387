r"""Linear classifiers by output perturbation (Chaudhuri, Monteleoni and Sarwate 2011).

Released: the minimiser of :math:`C \sum_i \ell(\theta x_i; y_i) + \|\theta\|^2/2`, certified to a residual
:math:`\tau`, plus noise. Its sensitivity is :math:`CL + 2\tau` (see ``minimizer_sensitivity``); the noise is
Gaussian, or of the L2 mechanism when delta is 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..accounting import GaussianEvent, PrivacyEvent, PureEvent, gaussian_mu
from ..mechanisms import BitStream, GammaMechanism, GaussianMechanism, Mechanism, NoNoise
from ..release.session import PrivacyGuarantee, Release, ReleaseSession
from ..release.theorems import Theorem
from ..sensitivity import minimizer_sensitivity
from ..solvers.regularised import (
    LARGEST_KAPPA,
    Array,
    Geometry,
    Parameters,
    Rows,
    automatic_weight,
    linear_rule,
    solve,
)
from ._logistic import PrivateLinearClassifier, PrivateLinearModel

#: Standard deviation of the noise in the score of a row of the largest norm, under C="auto".
_SCORE_NOISE = 0.25

_COEFFICIENTS = "coefficients"
_THEOREM = Theorem("Output perturbation", 1)


def plan(parameters: Parameters, geometry: Geometry, C: float) -> PrivacyGuarantee:
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
    def _weight(parameters: Parameters, geometry: Geometry) -> float:
        if parameters.C is not None:
            return parameters.C
        return automatic_weight(parameters, geometry, _SCORE_NOISE, LARGEST_KAPPA / geometry.norm**2)

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
        tau = parameters.tol * C * geometry.lipschitz
        theta = solve(rows, codes, geometry, C, np.zeros(geometry.size), tau, parameters.max_iter)
        return session.release(_COEFFICIENTS, theta.ravel())

    def _coef_with_other_noise(self, stream: BitStream) -> Array:
        """Return what the coefficients would be with noise on top that is as large as theirs."""
        # Counts of labels may come before.
        mechanism = next(own.mechanism for own in self.privacy_.releases if own.label == _COEFFICIENTS)
        noise = mechanism.release(np.zeros(self._geometry.size), stream)
        return self.coef_ + linear_rule(noise, self._geometry)[0]


class OutputPertLogReg(OutputPerturbation, PrivateLinearClassifier):
    r"""Differentially private logistic regression by output perturbation.

    A regularised model is fitted, and noise is added to its coefficients. It is the simplest private classifier,
    and the weakest of the library: the noise does not shrink with the number of records in the directions that the
    data determine well. `ObjPertLogReg` is better at every budget; use this one to learn, and to compare.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit, positive. ``inf`` adds no noise and gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1). With 0, the fit is pure epsilon-DP and the noise is that of the L2
        mechanism; otherwise it is Gaussian, and much smaller for many features. Choose it far below one over the
        number of records.
    data_norm : float
        Largest L2 norm of a row of X, from public knowledge. Longer rows are scaled down to it, silently.
    C : float or "auto", default="auto"
        Weight of the sum of losses against half the squared norm of the coefficients, as in scikit-learn. The
        noise is proportional to it. ``"auto"`` takes the weight at which a score of a row of norm `data_norm`
        carries noise of standard deviation 1/4, a formula of public parameters; at most 100 over the squared norm.
    loss : {"log_loss", "huber"}, default="log_loss"
        ``"log_loss"``: logistic regression, multinomial for three classes or more. ``"huber"``: hinge loss with a
        rounded kink (a support vector machine), one-vs-rest for three classes or more, without probabilities.
    fit_intercept : bool, default=True
        Whether to add a constant feature of 0.3 `data_norm`. Its coefficient is regularised, because an intercept
        that is not has no bounded sensitivity.
    tol : float, default=1e-6
        How closely the minimiser is found, as a multiple of what one record can change in the gradient. It is a
        privacy parameter: the residual is certified to stay below it, and is added to the sensitivity twice.
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
        The guarantee, with mechanism, sensitivity and noise scale.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, where X has string names.

    See Also
    --------
    ObjPertLogReg : Perturbs the objective instead; more accurate.

    Notes
    -----
    **Privacy.** Released are the coefficients, once. With rows of norm at most :math:`R_a` (`data_norm`, and the
    constant feature), adding or removing one record moves the minimiser by at most :math:`C L + 2\tau` in L2 norm,
    where :math:`L` is :math:`R_a` (two classes), :math:`\sqrt{2} R_a` (multinomial) or :math:`\sqrt{K} R_a` (Huber,
    K > 2 classes) [1]_. The proof is in the user guide. Not covered: that `fit` raises an error for values that
    are not finite, and how long it takes.

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

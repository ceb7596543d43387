r"""Linear classifiers by objective and by output perturbation (Chaudhuri, Monteleoni and Sarwate 2011).

*Objective perturbation* adds a random linear term to the objective (see :mod:`skdp.solvers.regularised`).

*Output perturbation* releases the minimiser of :math:`C \sum_i \ell(\theta x_i; y_i) + \|\theta\|^2/2`, certified to a
residual :math:`\tau`, plus noise. Its sensitivity is :math:`CL + 2\tau` (see ``minimizer_sensitivity``). The noise is
Gaussian, or that of the L2 mechanism if delta is 0.

`fit` is that of :mod:`skdp.release.estimator`, which calls `_measure` here. Of ``coef_``, `_release` returns the
solution for clipped rows, and `linear_rule` converts it to units of the data.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from ..accounting import GaussianEvent, PrivacyCost, PrivacyEvent, PureEvent, gaussian_mu
from ..checks.params import Checked, Integer, OneOf, Or, Real, Rules, check_boolean
from ..mechanisms import BitStream, GammaMechanism, GaussianMechanism, Mechanism, NoNoise
from ..release.counts import class_sums_mechanism
from ..release.estimator import LabelsMixin, Records, Shape
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem
from ..release.units import label_counts
from ..sensitivity import minimizer_sensitivity
from ..solvers.linear_descent import LinearRule, LogOdds
from ..solvers.losses import MultinomialLogLoss
from ..solvers.regularised import (
    LARGEST_KAPPA,
    OBJECTIVE,
    SOLUTION,
    Array,
    Geometry,
    Rows,
    automatic_weight,
    checked_weight,
    clipped,
    largest_kappa,
    linear_rule,
    objective_plan,
    shrunk,
    solve,
)


class PrivateLinearClassifier(LogOdds, LinearRule, ClassifierMixin, LabelsMixin, BaseEstimator):
    """Base of both estimators: parameters, and the rule of a released vector."""

    _counts_outside = ("entries", "target")
    _takes_parts = True
    _released = frozenset({"coef_", "intercept_"})
    _public = frozenset({"C_", "_loss", "_geometry"})
    _takes_sparse = True

    _parameter_rules: ClassVar[Rules] = {
        "C": Or("auto", Real()),
        "loss": OneOf(("log_loss", "huber")),
        "fit_intercept": check_boolean,
        "tol": Real(1e-9, 1e-2),
        "max_iter": Integer(1),
    }

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        C: float | str = "auto",
        loss: str = "log_loss",
        fit_intercept: bool = True,
        data_norm: float | None = None,
        classes: Any = None,
        class_weight: Any = None,
        max_weight: float | None = None,
        tol: float = 1e-6,
        max_iter: int = 100,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.data_norm = data_norm
        self.classes = classes
        self.class_weight = class_weight
        self.max_weight = max_weight
        self.tol = tol
        self.max_iter = max_iter

    @staticmethod
    @abstractmethod
    def _weight(parameters: Checked, geometry: Geometry) -> float:
        """Return the effective C, a public number."""

    @staticmethod
    @abstractmethod
    def _plan_of(parameters: Checked, geometry: Geometry, C: float) -> PrivacyGuarantee:
        """Return the planned releases."""

    @staticmethod
    @abstractmethod
    def _release(
        session: ReleaseSession, rows: Rows, codes: NDArray[np.intp], parameters: Checked, geometry: Geometry, C: float
    ) -> Array:
        """Carry out the plan, and return the private minimiser."""

    def _plan(self, parameters: Checked, shape: Shape) -> tuple[PrivacyGuarantee, tuple[Geometry, float]]:
        geometry = Geometry.of(parameters, shape.n_features, shape.n_classes)
        C = checked_weight(self._weight(parameters, geometry), parameters, geometry)
        return self._plan_of(parameters, geometry, C), (geometry, C)

    def _measure(
        self, session: ReleaseSession, records: Records, parameters: Checked, design: tuple[Geometry, float]
    ) -> dict[str, Any]:
        geometry, C = design
        rows = clipped(records.X, records.y, parameters.data_norm, geometry.constant)
        coef, intercept = linear_rule(self._release(session, rows, records.y, parameters, geometry, C), geometry)
        return {"coef_": coef, "intercept_": intercept, "C_": C, "_loss": parameters.loss, "_geometry": geometry}

    def _cost_of(self, parameters: Checked) -> PrivacyCost | None:
        # With a declared label set, the events depend only on declared parameters, and not on the number of columns.
        if parameters.classes is None and parameters.delta > 0:
            return None
        return self._plan(parameters, self._expected_shape(parameters, 1, 2))[0].cost


_COUNTS = "counts of labels"

# Share of the budget for the counts of three labels or more, with delta=0 and with Gaussian noise.
_COUNTS_SHARES = (0.06, 0.02)

# C R_a^2 under C="auto" is this number over the noise multiplier, within limits.
_KAPPA = 3.0


def _share_of_counts(parameters: Checked, geometry: Geometry) -> float:
    """Return the share of the budget for the counts of labels."""
    shrinks = parameters.C == "auto" and geometry.constant > 0 and isinstance(geometry.loss, MultinomialLogLoss)
    return _COUNTS_SHARES[parameters.delta > 0] if shrinks else 0.0


class ObjPertLogReg(PrivateLinearClassifier):
    r"""Differentially private logistic regression by objective perturbation.

    Logistic regression with an L2 penalty is fitted to an objective with a random linear term, and its minimiser is
    released. Use it for a linear model with coefficients. It needs no tuning. :doc:`/user_guide/objective_perturbation`
    is about the choice of the parameters.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1), far below one over the number of records. If 0, the fit is pure
        epsilon-DP. Otherwise, the noise is Gaussian, and much smaller for many features.
    schema : Schema, default=None
        Declaration of the columns of X, in place of `data_norm` and `classes`. Explicit parameters override it.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.
    C : float or "auto", default="auto"
        Weight of the sum of losses against half the squared norm of the coefficients, as in scikit-learn. ``"auto"`` is
        a formula of public parameters, and for three classes or more also of noisy counts of labels, for 2 % of the
        budget, or 6 % with ``delta=0``. A weight that is larger than the proof admits is reduced to ``C_``.
    loss : {"log_loss", "huber"}, default="log_loss"
        ``"log_loss"`` is logistic regression, multinomial for three classes or more. ``"huber"`` is a support vector
        machine (a hinge with a rounded kink), one-vs-rest, without probabilities.
    fit_intercept : bool, default=True
        Whether to add a constant feature of 0.3 `data_norm`, whose coefficient is regularised.
    data_norm : float
        Public clipping bound: the largest L2 norm of a row of X. Longer rows are scaled down to it. A smaller norm
        means less noise and more clipping.
    classes : array-like, default=None
        Public label set. Other rows are left out. If None, the labels in `y` count as public, with a warning.
    class_weight : dict or "balanced", default=None
        Public weights of the labels. ``"balanced"`` computes them from 4 % of the budget (see :ref:`weights`).
    max_weight : float, default=None
        Public upper bound on `sample_weight` in `fit`. Larger weights count as `max_weight`. Required with weights.
    tol : float, default=1e-6
        Tolerance of the solver, as a multiple of the largest gradient of one record. The noise that hides the residual
        of the solver is proportional to it.
    max_iter : int, default=100
        Number of Newton steps after which the solver changes to a slower search. It does not affect privacy.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Private coefficients (:ref:`formula <objective-perturbation-steps>`).
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Private intercepts. Zeros if `fit_intercept` is False.
    classes_ : ndarray of shape (n_classes,)
        Label set, sorted.
    class_weight_ : ndarray of shape (n_classes,)
        Weights of the labels, at most 1, from the released counts. Only with ``class_weight="balanced"``.
    C_ : float
        The weight that was used. With ``"auto"``, ``delta=0``, three classes or more and few records, the penalty is
        stronger than this weight says.
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
    solver. Let :math:`R_a` be the norm of a row with the constant feature. The noise of the objective is calibrated to
    an L2 sensitivity of :math:`C L`, where :math:`L` is :math:`R_a` for two classes and :math:`\sqrt{2} R_a` for the
    multinomial loss. With a positive `delta`, and :math:`C R_a^2` of at most 3.7 times the GDP parameter of the noise,
    objective perturbation is exactly as private as the Gaussian mechanism (:ref:`theorem 6
    <objective-perturbation-proof-theorem-6>`). :doc:`/user_guide/objective_perturbation_proof` proves the bounds for
    all losses. With ``C="auto"`` and three classes or more, counts of labels are released before (:ref:`statistics,
    theorem 2 <statistics-theorem-2>`).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import ObjPertLogReg, Schema
    >>> k = np.arange(5000)
    >>> age, smokes = 18 + k % 72, np.where(k % 5 < 2, "yes", "no")
    >>> ill = age + 16 * (smokes == "yes") + 20 * np.sin(k) > 60
    >>> columns = {"age": (18, 90), "smokes": ["no", "yes"]}
    >>> schema = Schema(columns, target=[False, True])
    >>> model = ObjPertLogReg(epsilon=1, delta=1e-6, schema=schema, random_state=0)
    >>> model = model.fit({"age": age, "smokes": smokes}, ill)
    >>> people = {"age": [40, 60], "smokes": ["no", "yes"]}
    >>> model.predict_proba(people)[:, 1].round(1)
    array([0.1, 0.9])
    """

    @staticmethod
    def _weight(parameters: Checked, geometry: Geometry) -> float:
        most = largest_kappa(parameters, geometry, _share_of_counts(parameters, geometry)) / geometry.norm**2
        if parameters.C != "auto":
            return min(parameters.C, most)
        return automatic_weight(parameters, geometry, _KAPPA, min(most, LARGEST_KAPPA / geometry.norm**2))

    @staticmethod
    def _plan_of(parameters: Checked, geometry: Geometry, C: float) -> PrivacyGuarantee:
        epsilon, delta, share = parameters.epsilon, parameters.delta, _share_of_counts(parameters, geometry)
        others = objective_plan(parameters, geometry, C, share)
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
        if _share_of_counts(parameters, geometry):
            n_classes = geometry.loss.outputs + 1
            mechanism = session.mechanism(_COUNTS)
            counts = session.release(_COUNTS, label_counts(codes, n_classes))
            logits, strong_convexity = shrunk(counts, mechanism, parameters, geometry, C)
            loss = MultinomialLogLoss(n_classes, logits)
            added[0, :, -1] = loss.basis.T @ logits / geometry.constant
            shifted = replace(geometry, loss=loss)

        tau = parameters.tol * C * geometry.lipschitz
        noise = session.release(OBJECTIVE, np.zeros(geometry.size))
        theta = solve(rows, codes, shifted, C, noise, tau, parameters.max_iter, strong_convexity)
        return session.release(SOLUTION, theta.ravel()) + added.ravel()


#: Standard deviation of the noise in the score of a row of the largest norm, if C is "auto".
_SCORE_NOISE = 0.25

_COEFFICIENTS = "coefficients"
_THEOREM = Theorem("Output perturbation", 1)


class OutputPertLogReg(PrivateLinearClassifier):
    r"""Private logistic regression by output perturbation, a textbook algorithm (use `ObjPertLogReg` instead).

    A regularised model is fitted, and noise is added to its coefficients. This is the simplest private classifier, to
    learn and to compare. `ObjPertLogReg` is more accurate.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1), far below one over the number of records. If 0, the fit is pure
        epsilon-DP, by the L2 mechanism. Otherwise, the noise is Gaussian, and much smaller for many features.
    schema : Schema, default=None
        Declaration of the columns of X, in place of `data_norm` and `classes`. Explicit parameters override it.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.
    C : float or "auto", default="auto"
        Weight of the sum of losses against half the squared norm of the coefficients, as in scikit-learn. The noise is
        proportional to it. ``"auto"`` is a formula of public parameters.
    loss : {"log_loss", "huber"}, default="log_loss"
        ``"log_loss"`` is logistic regression, multinomial for three classes or more. ``"huber"`` is a support vector
        machine (a hinge with a rounded kink), one-vs-rest, without probabilities.
    fit_intercept : bool, default=True
        Whether to add a constant feature of 0.3 `data_norm`, whose coefficient is regularised.
    data_norm : float
        Public clipping bound: the largest L2 norm of a row of X. Longer rows are scaled down to it. A smaller norm
        means less noise and more clipping.
    classes : array-like, default=None
        Public label set. Other rows are left out. If None, the labels in `y` count as public, with a warning.
    class_weight : dict or "balanced", default=None
        Public weights of the labels. ``"balanced"`` computes them from 4 % of the budget (see :ref:`weights`).
    max_weight : float, default=None
        Public upper bound on `sample_weight` in `fit`. Larger weights count as `max_weight`. Required with weights.
    tol : float, default=1e-6
        Tolerance of the solver, as a multiple of the largest gradient of one record. It adds twice to the sensitivity.
    max_iter : int, default=100
        Number of Newton steps after which the solver changes to a slower search. It does not affect privacy.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Private coefficients (:ref:`formula <output-perturbation-steps>`).
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
    **Privacy.** The coefficients are released once. Adding or removing one record moves the minimiser by at most
    :math:`C L + 2\tau` in L2 norm. With the norm :math:`R_a` of a row with the constant feature, :math:`L` is
    :math:`R_a` (two classes), :math:`\sqrt{2} R_a` (multinomial) or :math:`\sqrt{K} R_a` (Huber, K > 2 classes)
    (:ref:`output perturbation, theorem 1 <output-perturbation-theorem-1>`).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import OutputPertLogReg, Schema
    >>> k = np.arange(5000)
    >>> age, smokes = 18 + k % 72, np.where(k % 5 < 2, "yes", "no")
    >>> ill = age + 16 * (smokes == "yes") + 20 * np.sin(k) > 60
    >>> columns = {"age": (18, 90), "smokes": ["no", "yes"]}
    >>> schema = Schema(columns, target=[False, True])
    >>> model = OutputPertLogReg(
    ...     epsilon=1, delta=1e-6, schema=schema, random_state=0
    ... )
    >>> model = model.fit({"age": age, "smokes": smokes}, ill)
    >>> people = {"age": [40, 60], "smokes": ["no", "yes"]}
    >>> model.predict_proba(people)[:, 1].round(1)
    array([0.2, 0.8])
    """

    @staticmethod
    def _weight(parameters: Checked, geometry: Geometry) -> float:
        if parameters.C != "auto":
            return float(parameters.C)
        return automatic_weight(parameters, geometry, _SCORE_NOISE, LARGEST_KAPPA / geometry.norm**2)

    @staticmethod
    def _plan_of(parameters: Checked, geometry: Geometry, C: float) -> PrivacyGuarantee:
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

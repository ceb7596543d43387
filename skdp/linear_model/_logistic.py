"""What output and objective perturbation share: the problem that is solved, and the rule that comes out of it."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from ..accounting import PrivacyCost, check_delta, check_epsilon
from ..checks.params import (
    check_boolean,
    check_choice,
    check_data_norm,
    check_integer,
    check_positive,
)
from ..checks.silence import available_if
from ..checks.values import shown
from ..release.estimator import LabelsMixin, Records, Shape
from ..release.session import PrivacyGuarantee, ReleaseSession
from ..sensitivity import ClippedRows, augmented_norm, clip_rows
from ._certified import Objective, certified_minimizer
from ._losses import HuberHinge, LogLoss, Loss, MultinomialLogLoss
from ._prediction import LinearRule, log_probabilities, probabilities

Array = NDArray[np.float64]

LOSSES = ("log_loss", "huber")

#: The constant feature of the intercept, as a multiple of `data_norm`. The intercept is regularised and noised like
#: every other coefficient; a small constant adds little to the norm, and 4 % to the noise.
INTERCEPT_CONSTANT = 0.3

#: C times the squared norm, under C="auto", where privacy asks for no less regularisation.
LARGEST_KAPPA = 100.0

# C times the squared norm that a user may ask for: beyond it, doubles cannot certify a minimiser.
_MOST_KAPPA = 1e8

# The least certified residual: its square has to be a normal double, or a norm could underflow to 0.
_LEAST_RESIDUAL = 1e-140


@dataclass(frozen=True)
class Parameters:
    """The checked parameters of a fit, all public."""

    epsilon: float
    delta: float
    data_norm: float
    C: float | None
    loss: str
    fit_intercept: bool
    tol: float
    max_iter: int

    @property
    def private(self) -> bool:
        return self.epsilon < math.inf


@dataclass(frozen=True)
class Geometry:
    """Describe the minimisation by public numbers, without its weight C and its data."""

    # With three or more classes, the log loss gives one multinomial problem, and the Huber hinge one problem per class.

    loss: Loss
    n_problems: int
    n_columns: int
    norm: float
    constant: float

    @classmethod
    def of(cls, parameters: Parameters, n_features: int, n_classes: int) -> Geometry:
        loss: Loss
        n_problems = 1
        if parameters.loss == "huber":
            loss = HuberHinge()
            n_problems = 1 if n_classes == 2 else n_classes
        else:
            loss = LogLoss() if n_classes == 2 else MultinomialLogLoss(n_classes)
        constant = INTERCEPT_CONSTANT * parameters.data_norm if parameters.fit_intercept else 0.0
        return cls(
            loss=loss,
            n_problems=n_problems,
            n_columns=n_features + parameters.fit_intercept,
            norm=augmented_norm(parameters.data_norm, constant),
            constant=constant,
        )

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.n_problems, self.loss.outputs, self.n_columns

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def lipschitz(self) -> float:
        """Bound on one record's loss gradient in one problem."""
        return self.loss.lipschitz * self.norm

    @property
    def joint_lipschitz(self) -> float:
        """Bound on one record's loss gradient in all problems together."""
        return self.lipschitz * math.sqrt(self.n_problems)

    def joint(self, tau: float) -> float:
        """Bound on the residual of all problems together, when each is solved to `tau`."""
        return tau * math.sqrt(self.n_problems)


def checked_weight(C: float, parameters: Parameters, geometry: Geometry) -> float:
    """Return the effective C, if minimisers with it can be certified."""
    if C * geometry.norm**2 > _MOST_KAPPA:
        raise ValueError(f"C must be at most {_MOST_KAPPA / geometry.norm**2:.3g} for this data_norm, got {shown(C)}")
    if parameters.tol * C * geometry.norm < _LEAST_RESIDUAL:
        raise ValueError(f"C is too small for this data_norm and tol, got {shown(C)}")
    return C


def solve(
    rows: ClippedRows,
    codes: NDArray[np.intp],
    geometry: Geometry,
    C: float,
    linear: Array,
    tau: float,
    max_iter: int,
) -> Array:
    """Return the certified minimisers, of shape ``geometry.shape``, each to a residual of `tau`."""
    thetas = []
    for problem, b in enumerate(linear.reshape(geometry.shape)):
        own = codes if geometry.n_problems == 1 else (codes == problem).astype(np.intp)
        objective = Objective(rows, own, geometry.loss, C, 1.0, b)
        thetas.append(certified_minimizer(objective, tau, max_iter))
    return np.stack(thetas)


def linear_rule(released: Array, geometry: Geometry) -> tuple[Array, Array]:
    """Return coefficients and intercepts from what was released."""
    theta = released.reshape(geometry.shape)
    loss = geometry.loss
    weights = loss.basis @ theta[0] if isinstance(loss, MultinomialLogLoss) else theta[:, 0, :]
    if geometry.constant == 0:
        return weights.copy(), np.zeros(len(weights))
    return weights[:, :-1].copy(), geometry.constant * weights[:, -1]


class PrivateLinearModel(LinearRule, ClassifierMixin, LabelsMixin, BaseEstimator):
    """Base of output and objective perturbation: checks, and the rule that a released vector stands for."""

    _released = frozenset({"coef_", "intercept_"})
    _public = frozenset({"C_", "_loss", "_geometry"})

    epsilon: float
    delta: float
    data_norm: float | None
    C: float | str
    fit_intercept: bool
    tol: float
    max_iter: int
    classes: Any
    accountant: Any
    random_state: Any

    @abstractmethod
    def _checked_loss(self) -> str:
        """Return the name of the loss."""

    @staticmethod
    @abstractmethod
    def _weight(parameters: Parameters, geometry: Geometry) -> float:
        """Return the effective C, a public number."""

    @staticmethod
    @abstractmethod
    def _plan_of(parameters: Parameters, geometry: Geometry, C: float) -> PrivacyGuarantee:
        """Return what will be released."""

    @staticmethod
    @abstractmethod
    def _release(
        session: ReleaseSession,
        rows: ClippedRows,
        codes: NDArray[np.intp],
        parameters: Parameters,
        geometry: Geometry,
        C: float,
    ) -> Array:
        """Carry out the plan, and return the private minimiser."""

    def _plan(self, parameters: Parameters, shape: Shape) -> tuple[PrivacyGuarantee, tuple[Geometry, float]]:
        geometry = Geometry.of(parameters, shape.n_features, shape.n_classes)
        C = self._checked_weight(parameters, geometry)
        return self._plan_of(parameters, geometry, C), (geometry, C)

    def _measure(
        self, session: ReleaseSession, records: Records, parameters: Parameters, design: tuple[Geometry, float]
    ) -> dict[str, Any]:
        geometry, C = design
        rows = clip_rows(records.X, parameters.data_norm, geometry.constant)
        coef, intercept = linear_rule(self._release(session, rows, records.y, parameters, geometry, C), geometry)
        return {"coef_": coef, "intercept_": intercept, "C_": C, "_loss": parameters.loss, "_geometry": geometry}

    def _fixed_cost(self) -> PrivacyCost | None:
        # With the label set, all that the events depend on is declared; the number of columns only changes dimensions.
        if self.classes is None and self.delta > 0:
            return None
        return self.privacy_plan(n_features=1, n_classes=2).cost

    def _checked_weight(self, parameters: Parameters, geometry: Geometry) -> float:
        return checked_weight(self._weight(parameters, geometry), parameters, geometry)

    def _check_parameters(self) -> Parameters:
        automatic = isinstance(self.C, str) and self.C == "auto"
        return Parameters(
            epsilon=check_epsilon(self.epsilon),
            delta=check_delta(self.delta),
            data_norm=check_data_norm(self.data_norm),
            C=None if automatic else check_positive(self.C, "C"),
            loss=self._checked_loss(),
            fit_intercept=check_boolean(self.fit_intercept, "fit_intercept"),
            tol=check_positive(self.tol, "tol", least=1e-9, most=1e-2),
            max_iter=check_integer(self.max_iter, "max_iter", least=1),
        )


def _estimates_probabilities(estimator: Any) -> bool:
    # Once fitted, by the loss of the fit, whatever the parameter is set to later.
    if getattr(estimator, "_loss", estimator.loss) != "log_loss":
        raise AttributeError('probabilities are available for loss="log_loss"')
    return True


class PrivateLinearClassifier(PrivateLinearModel):
    """Base of those with a choice of losses."""

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        data_norm: float | None = None,
        C: float | str = "auto",
        loss: str = "log_loss",
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 100,
        classes: Any = None,
        accountant: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.classes = classes
        self.accountant = accountant
        self.random_state = random_state

    def _checked_loss(self) -> str:
        return check_choice(self.loss, "loss", LOSSES)

    @available_if(_estimates_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities; for the log loss only.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return probabilities(self.decision_function(X))

    @available_if(_estimates_probabilities)
    def predict_log_proba(self, X: Any) -> Array:
        """Return logarithms of class probabilities; for the log loss only.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return log_probabilities(self.decision_function(X))

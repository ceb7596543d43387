"""The base of linear classifiers by output and objective perturbation."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from ..accounting import PrivacyCost
from ..checks.params import Checked, Integer, OneOf, Or, Real, Rules, check_boolean
from ..release.estimator import LabelsMixin, Records, Shape
from ..release.session import PrivacyGuarantee, ReleaseSession
from ..solvers.linear_descent import LinearRule, LogOdds
from ..solvers.regularised import Geometry, Rows, checked_weight, clipped, linear_rule

Array = NDArray[np.float64]


class PrivateLinearModel(LinearRule, ClassifierMixin, LabelsMixin, BaseEstimator):
    """Base of output and objective perturbation: parameter checks, and the rule of a released vector."""

    _counts_outside = ("entries", "target")
    _takes_parts = True
    _released = frozenset({"coef_", "intercept_"})
    _public = frozenset({"C_", "_loss", "_geometry"})
    _takes_sparse = True

    _parameter_rules: ClassVar[Rules] = {
        "C": Or("auto", Real()),
        "fit_intercept": check_boolean,
        "tol": Real(1e-9, 1e-2),
        "max_iter": Integer(1),
    }

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


class PrivateLinearClassifier(LogOdds, PrivateLinearModel):
    """Base of the classifiers that have a parameter `loss`."""

    _parameter_rules: ClassVar[Rules] = {"loss": OneOf(("log_loss", "huber"))}

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
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.classes = classes
        self.class_weight = class_weight
        self.max_weight = max_weight
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state

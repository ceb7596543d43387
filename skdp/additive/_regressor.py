r"""Additive regression: a curve for each column, from counts in cells and noisy gradient steps, or noisy moments.

Released: the numbers of records in the cells of each column (and before, if asked for, the edges of cells); then, with
``delta > 0``, sums of clipped gradients, step by step, and with ``delta = 0`` the second moments of the public features
of the cells and of the targets. The model is computed from that.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin

from .._data import regression_data, single_target
from .._release import PrivacyGuarantee, ReleaseSession, check_accountant
from ..linear_model._sgd_derivatives import Residual
from ..linear_model._targets import Targets
from ..mechanisms import NoiseSource
from ._base import AdditiveModel, Parameters, whole
from ._engines import GradientEngine, MomentEngine
from ._plans import Before, release_cells
from ._terms import Layout

Array = NDArray[np.float64]

# Half ranges: no residual of targets and predictions within the bounds is larger.
_MOST_RESIDUAL = 2.0


class _Targets(RegressorMixin, BaseEstimator):
    """Stands in where targets are validated with rows that have been read already."""


class DPAdditiveRegressor(RegressorMixin, AdditiveModel):
    r"""Differentially private additive regression: one curve for each column.

    PARAMS
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        bounds: Any = None,
        bounds_y: Any = None,
        categories: Any = None,
        bin_edges: Any = None,
        interactions: Any = None,
        n_bins: int = 32,
        scale: str = "linear",
        unit: float = 1.0,
        thresholds: str = "uniform",
        smoothness: float = 0.9,
        n_steps: int = 300,
        accountant: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.bounds_y = bounds_y
        self.categories = categories
        self.bin_edges = bin_edges
        self.interactions = interactions
        self.n_bins = n_bins
        self.scale = scale
        self.unit = unit
        self.thresholds = thresholds
        self.smoothness = smoothness
        self.n_steps = n_steps
        self.accountant = accountant
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model, and spend epsilon and delta.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows: finite numbers in columns with bins, anything in columns with categories.
        y : array-like of shape (n_samples,)
            Finite targets, clipped to `bounds_y`.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        BudgetError
            If the accountant does not admit the fit. Nothing is computed from the data then.
        """
        accountant = check_accountant(self.accountant)
        parameters = self._check_parameters()
        targets = Targets.of(self.bounds_y, True)
        source = NoiseSource(self.random_state)
        X, columns = self._rows(X, parameters)
        _, y = regression_data(_Targets(), np.zeros((len(X[0]), 1)), y)
        y = single_target(y)
        _, _, layout, before = self._prepared(parameters, columns)
        engine = self._engine(parameters, layout, before)
        guarantee = whole(before, engine.plan())

        session = ReleaseSession(guarantee, accountant=accountant, source=source, estimator=type(self).__name__)
        cells = release_cells(session, guarantee, columns, X)
        scaled = targets.scaled(y, self.bounds_y)
        coef, intercept = engine.run(session, guarantee, layout.codes(cells.codes), scaled, cells.total)

        intercept = targets.centre + targets.half * intercept
        self._set_terms(targets.half * coef, intercept, cells, layout, True)
        self.intercept_ = float(self.intercept_[0])
        self.privacy_ = guarantee
        self._engine_ = engine
        return self

    def privacy_plan(self, *, n_features: int, n_classes: int | None = None) -> PrivacyGuarantee:
        """Return the guarantee that `fit` will give, without any data.

        Parameters
        ----------
        n_features : int
            Number of columns of X.
        n_classes : int, optional
            Not used; here for a signature that all estimators share.

        Returns
        -------
        plan : PrivacyGuarantee
            Equal to ``privacy_`` after a fit on such data.
        """
        parameters, _, layout, before = self._planned(n_features)
        Targets.of(self.bounds_y, True)
        return whole(before, self._engine(parameters, layout, before).plan())

    def _engine(self, parameters: Parameters, layout: Layout, before: Before) -> GradientEngine | MomentEngine:
        epsilon, delta = parameters.epsilon, parameters.delta
        if delta == 0:
            return MomentEngine(epsilon, before.share, layout)
        return GradientEngine(epsilon, delta, before.share, layout, Residual(_MOST_RESIDUAL), parameters.n_steps)

    def predict(self, X: Any) -> Array:
        """Return the sum of each row's terms and the intercept.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predictions, which are not clipped.
        """
        return self._scores(X)[:, 0]

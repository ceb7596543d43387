r"""Additive logistic regression: a curve for each column, from counts in cells and one perturbed objective.

Released: the numbers of records in the cells of each column (and before, if asked for, the edges of cells); then the
minimiser of a perturbed objective, or sums of clipped gradients, step by step, of a logistic regression on public
features of the cells. The model is computed from that.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin

from .._data import labelled_data
from .._params import check_choice, check_classes, check_integer, check_positive
from .._release import PrivacyGuarantee, ReleaseSession, check_accountant
from ..accounting import PrivacyCost
from ..linear_model._prediction import log_probabilities, probabilities
from ..linear_model._sgd_derivatives import LogLoss, Multinomial
from ..mechanisms import NoiseSource
from ._base import AdditiveModel, Parameters, whole
from ._engines import GradientEngine, ObjectiveEngine
from ._plans import Before, release_cells
from ._terms import Layout

Array = NDArray[np.float64]

SOLVERS = ("auto", "objective", "gradient")

#: The largest margin.
_MOST_MARGIN = 8.0


class _Labels(ClassifierMixin, BaseEstimator):
    """Stands in where labels are validated with rows that have been read already."""


class DPAdditiveClassifier(ClassifierMixin, AdditiveModel):
    r"""Differentially private additive logistic regression: one curve for each column, for any number of classes.

    PARAMS
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        bounds: Any = None,
        categories: Any = None,
        bin_edges: Any = None,
        interactions: Any = None,
        n_bins: int = 32,
        scale: str = "linear",
        unit: float = 1.0,
        thresholds: str = "uniform",
        smoothness: float = 0.9,
        solver: str = "auto",
        C: float | str = "auto",
        margin: float | str = "auto",
        n_steps: int = 300,
        classes: Any = None,
        accountant: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.bin_edges = bin_edges
        self.interactions = interactions
        self.n_bins = n_bins
        self.scale = scale
        self.unit = unit
        self.thresholds = thresholds
        self.smoothness = smoothness
        self.solver = solver
        self.C = C
        self.margin = margin
        self.n_steps = n_steps
        self.classes = classes
        self.accountant = accountant
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model, and spend epsilon and delta.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows: finite numbers in columns with bins, anything in columns with categories.
        y : array-like of shape (n_samples,)
            Labels. With declared `classes`, rows with other labels are left out.

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
        self._check_own()
        source = NoiseSource(self.random_state)
        X, columns = self._rows(X, parameters)
        positions = np.zeros((len(X[0]), 1))
        _, labels, classes = labelled_data(_Labels(), positions, y, check_classes(self.classes))
        if np.any(labels < 0):
            X, labels = [column[labels >= 0] for column in X], labels[labels >= 0]
        _, _, layout, before = self._prepared(parameters, columns)
        engine = self._engine(parameters, layout, before, len(classes))
        guarantee = whole(before, engine.plan())

        session = ReleaseSession(guarantee, accountant=accountant, source=source, estimator=type(self).__name__)
        cells = release_cells(session, guarantee, columns, X)
        codes = layout.codes(cells.codes)
        if isinstance(engine, ObjectiveEngine):
            coef, intercept = engine.run(session, codes, labels)
        else:
            coef, intercept = engine.run(session, guarantee, codes, labels, cells.total)

        self._set_terms(coef, intercept, cells, layout, len(classes) == 2)
        self.classes_ = classes
        self.privacy_ = guarantee
        self._engine_ = engine
        self.C_ = engine.weight if isinstance(engine, ObjectiveEngine) else None
        self.margin_ = engine.offset if isinstance(engine, ObjectiveEngine) else 0.0
        return self

    def privacy_plan(self, *, n_features: int, n_classes: int | None = None) -> PrivacyGuarantee:
        """Return the guarantee that `fit` will give, without any data.

        Parameters
        ----------
        n_features : int
            Number of columns of X.
        n_classes : int, optional
            Number of labels; needed unless `classes` is set.

        Returns
        -------
        plan : PrivacyGuarantee
            Equal to ``privacy_`` after a fit on such data.
        """
        parameters, _, layout, before = self._planned(n_features)
        self._check_own()
        classes = check_classes(self.classes)
        if classes is not None:
            n_classes = len(classes)
        elif n_classes is None:
            raise ValueError("n_classes must be given, since classes is None")
        n_classes = check_integer(n_classes, "n_classes", least=2)
        return whole(before, self._engine(parameters, layout, before, n_classes).plan())

    def _check_own(self) -> tuple[str, float | None, float | None]:
        solver = check_choice(self.solver, "solver", SOLVERS)
        automatic = isinstance(self.C, str) and self.C == "auto"
        C = None if automatic else check_positive(self.C, "C")
        automatic = isinstance(self.margin, str) and self.margin == "auto"
        margin = None if automatic else check_positive(self.margin, "margin", least=0.0, most=_MOST_MARGIN)
        return solver, C, margin

    def _engine(
        self, parameters: Parameters, layout: Layout, before: Before, n_classes: int
    ) -> ObjectiveEngine | GradientEngine:
        solver, C, margin = self._check_own()
        epsilon, delta = parameters.epsilon, parameters.delta
        if solver == "auto":
            solver = "gradient" if n_classes > 2 and delta > 0 else "objective"
        if solver == "objective":
            return ObjectiveEngine(epsilon, delta, before.share, layout, n_classes, C, margin)
        if delta == 0:
            raise ValueError('delta must be positive with solver="gradient": its noise is Gaussian')
        derivative = LogLoss() if n_classes == 2 else Multinomial(n_classes)
        return GradientEngine(epsilon, delta, before.share, layout, derivative, parameters.n_steps)

    def _fixed_cost(self) -> PrivacyCost | None:
        return None

    def decision_function(self, X: Any) -> Array:
        """Return the sum of each row's terms and the intercept.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive for the second class when there are two; else one score a class.
        """
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray:
        """Return the most likely label of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Elements of ``classes_``.
        """
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return probabilities(logits(self.decision_function(X), self.margin_))

    def predict_log_proba(self, X: Any) -> Array:
        """Return logarithms of class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return log_probabilities(logits(self.decision_function(X), self.margin_))


def logits(scores: Array, margin: float) -> Array:
    r"""Return log-odds for scores of two classes that were fitted with a margin.

    A score s minimises the mean loss of records of which the part p is of the second class where :math:`p\,\sigma(a-s)
    = (1-p)\,\sigma(a+s)`.
    """
    if margin == 0 or scores.ndim > 1:
        return scores
    return special.log_expit(margin + scores) - special.log_expit(margin - scores)

"""What additive models share: how a table is read, and what is made of released coefficients."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from ..accounting import check_delta, check_epsilon
from ..checks.params import check_integer, check_positive
from ..release.estimator import PrivateEstimator, Shape
from ..solvers.regularised import noise_multiplier
from ._columns import (
    ColumnParameters,
    Columns,
    any_columns,
    check_columns,
    columns_for,
    read_rows,
    refuse_other_types,
    split_columns,
)
from ._plans import Before, Cells
from ._terms import Layout
from ._uncertainty import Pseudo, pseudo_records, term_noise

Array = NDArray[np.float64]

#: The part of single cells in the rows of ordered ones, under smoothness="auto", is this over 1 plus the noise
#: multiplier.
ROUGHNESS = 0.5


@dataclass(frozen=True)
class Parameters:
    """The checked parameters of a fit that all additive models have, all public."""

    epsilon: float
    delta: float
    columns: ColumnParameters
    smoothness: float | None
    n_steps: int

    @property
    def private(self) -> bool:
        return self.epsilon < math.inf


class AdditiveModel(PrivateEstimator, BaseEstimator):
    """Base of additive models: everything but how coefficients are found."""

    _released = frozenset(
        {"terms_", "intercept_", "cell_counts_", "n_samples_estimate_", "_coef", "_offset", "bin_edges_"}
    )

    epsilon: float
    delta: float
    bounds: Any
    categories: Any
    bin_edges: Any
    interactions: Any
    n_bins: int
    scale: str
    unit: float
    thresholds: str
    smoothness: float | str
    n_steps: int
    accountant: Any
    random_state: Any
    intercept_: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = self.categories is not None
        return tags

    def _check_parameters(self) -> Parameters:
        automatic = isinstance(self.smoothness, str) and self.smoothness == "auto"
        return Parameters(
            epsilon=check_epsilon(self.epsilon),
            delta=check_delta(self.delta),
            columns=check_columns(self),
            smoothness=None if automatic else check_positive(self.smoothness, "smoothness", least=0.0, most=1.0),
            n_steps=check_integer(self.n_steps, "n_steps", least=1, most=10**6),
        )

    def _entries(self, X: Any, parameters: Parameters) -> list[NDArray]:
        """Validate rows, and return them by column."""
        rows = read_rows(self, X, bool(parameters.columns.categories), reset=True)
        columns = columns_for(parameters.columns, rows.shape[1], getattr(self, "feature_names_in_", None))
        entries = split_columns(rows, columns)
        refuse_other_types(entries, columns, getattr(self, "feature_names_in_", None))
        return entries

    def _check_rows(self, X: Any) -> None:
        clone(self)._entries(X, self._check_parameters())

    def _codes(self, X: Any) -> NDArray[np.int32]:
        """Return the cells of rows in the terms."""
        check_is_fitted(self, "terms_")
        columns = self._columns.with_edges(self.bin_edges_)
        rows = read_rows(self, X, not all(columns.ordered), reset=False)
        return self._layout.codes(columns.codes(split_columns(rows, columns)))

    def _fitted_terms(
        self, coef: Array, intercept: Array, cells: Cells, columns: Columns, layout: Layout, single: bool
    ) -> dict[str, Any]:
        """Return the attributes that describe the model, computed from releases only."""
        # Terms of one column are centred by the released counts, so that the records' mean is about 0. The
        # intercept takes the difference.
        terms, shift = [], np.zeros(len(intercept))
        for term, values in zip(layout.terms, layout.values(coef), strict=True):
            mean = np.zeros(len(intercept))
            if len(term.columns) == 1:
                weights = np.maximum(cells.counts[term.columns[0]], 0.0)
                weights = weights / weights.sum() if weights.sum() > 0 else np.full(len(values), 1 / len(values))
                mean = weights @ values
            shift += mean
            values = (values - mean).reshape(*term.shape, len(intercept))
            terms.append(values[..., 0] if single else values)
        return {
            "terms_": terms,
            "intercept_": intercept + shift,
            "term_columns_": [term.columns for term in layout.terms],
            "bin_edges_": [kind.copy() if isinstance(kind, np.ndarray) else None for kind in cells.columns.kinds],
            "cell_counts_": cells.counts,
            "n_samples_estimate_": cells.total,
            "_columns": columns,
            "_layout": layout,
            "_coef": coef,
            "_offset": intercept,
        }

    def _scores(self, X: Any) -> Array:
        """Return predictors of rows, of shape (n_rows, outputs)."""
        codes = self._codes(X)
        out = np.tile(np.ravel(self.intercept_), (codes.shape[1], 1))
        for own, values in zip(codes, self._tables(), strict=True):
            out += values.take(own, axis=0)
        return out

    def _tables(self) -> list[Array]:
        """Return what each cell of each term adds, and 0 for what is in none, of shape (n_cells + 1, outputs)."""
        outputs = np.size(self.intercept_)
        return [np.vstack([values.reshape(-1, outputs), np.zeros((1, outputs))]) for values in self.terms_]

    def contributions(self, X: Any) -> Array:
        """Return what each term adds to each row's score. They add up to it, with the intercept.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        contributions : ndarray of shape (n_samples, n_terms) or (n_samples, n_terms, n_classes)
            In the order of ``terms_``; the latter for three classes or more.
        """
        codes = self._codes(X)
        out = np.stack([values[own] for own, values in zip(codes, self._tables(), strict=True)], axis=1)
        return out[..., 0] if out.shape[2] == 1 else out

    @property
    def cell_names_(self) -> list[list[str]]:
        """What the cells of each column are called."""
        check_is_fitted(self, "terms_")
        columns = self._columns.with_edges(self.bin_edges_)
        return [columns.labels(j) for j in range(len(columns.kinds))]

    @abstractmethod
    def _spread(self, pseudo: Pseudo) -> list[Array]:
        """Return what the noise moves coefficients by, for the curvature that such records have."""

    def _term_noise(self, X: Any = None) -> tuple[list[Array], list[Array]]:
        """Return standard deviations of the noise in ``terms_``, and bounds on them that hold for all records."""
        # The rows of X stand for the records, so X must not be private. If None, pseudo-records are used.
        check_is_fitted(self, "terms_")
        total = self.n_samples_estimate_
        if X is None:
            pseudo = pseudo_records(self._layout, self.cell_counts_, total)
        else:
            features = self._layout.features(self._codes(X))
            if not len(features):
                raise ValueError("X must hold one row or more, to stand for the records; None takes pseudo-records")
            pseudo = Pseudo(features, total)
        without = Pseudo(pseudo.features[:1], total, bends=False)
        return term_noise(self, self._spread(pseudo)), term_noise(self, self._spread(without))

    @property
    def term_names_(self) -> list[str]:
        """Names of the terms: those of columns, or ``x0``, ``x1``, ...; of two columns with " x " between."""
        check_is_fitted(self, "terms_")
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        return [" x ".join(str(names[j]) for j in columns) for columns in self.term_columns_]

    def _columns_for(self, parameters: Parameters, shape: Shape) -> Columns:
        return columns_for(parameters.columns, shape.n_features, shape.names, named=shape.is_read)

    def _any_shape(self) -> tuple[Parameters, Layout, Before]:
        """Return what a plan for some shape of the table starts from; the events of all shapes are the same."""
        parameters = self._check_parameters()
        return parameters, *self._prepared(parameters, any_columns(parameters.columns))

    @staticmethod
    def _prepared(parameters: Parameters, columns: Columns) -> tuple[Layout, Before]:
        smoothness = parameters.smoothness
        if smoothness is None:
            noise = noise_multiplier(parameters.epsilon, parameters.delta, sum(columns.sizes))
            smoothness = 1 - ROUGHNESS / (1 + noise)
        layout = Layout.of(columns, smoothness)
        return layout, Before.of(parameters.epsilon, parameters.delta, columns)

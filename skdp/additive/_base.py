"""Base class of additive models: reading of tables, and attributes from released coefficients."""

from __future__ import annotations

import math
from abc import abstractmethod
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from ..accounting import PrivacyCost, check_delta, check_epsilon
from ..checks.data import FLOATS, validate_quietly
from ..checks.params import check_bounds
from ..mechanisms import coordinate_variance
from ..parts.arrays import rowwise
from ..release.estimator import PrivateEstimator
from ..release.session import CallbackSupportMixin, PrivacyGuarantee
from ..schema.columns import Codes, Columns, ColumnSpec, check_columns
from ..schema.declared import Grid, check_n_bins
from ..schema.entries import read_entries
from ..solvers.regularised import noise_multiplier
from ._cells import CELLS_PER_BIN, ROUGHNESS, bins_of
from ._engines import mechanism_of
from ._explanations import AdditiveExplanations
from ._features import Centred, GroupedLayout
from ._plans import COUNTS, Before, Cells, ReservedPart
from ._shrinkage import Moved, pseudo_records
from ._stages import Curves

Array = NDArray[np.float64]


# Number of rows whose features are in memory at once.
_ROWS = 2**12

#: Largest number of bins or cells of a column.
MOST_BINS = 4096


@dataclass(frozen=True)
class Parameters:
    """The checked, public parameters that all additive models have."""

    epsilon: float
    delta: float
    columns: ColumnSpec
    n_bins: int
    chooses: bool  # Whether the fit chooses tables of several columns.

    @property
    def private(self) -> bool:
        return self.epsilon < math.inf

    @property
    def pure(self) -> bool:
        """Whether there are tables only, and no gradient steps."""
        return self.delta == 0 and self.private

    @property
    def smoothness(self) -> float:
        """The part of steps in the features of ordered columns; the rest is that of single bins."""
        return 1 - ROUGHNESS / (1 + noise_multiplier(self.epsilon, self.delta, 0))

    def reserved(self, before: Before, after: float = 0.0) -> ReservedPart:
        """Return the part of the budget for curves and tables."""
        return ReservedPart(self.epsilon, self.delta, 1 - before.share - after)

    def table(self, n_features: int, names: NDArray | None, named: bool = True) -> Columns:
        """Return the columns, with all edges of cells."""
        columns = self.columns.resolve(n_features, names, named)
        return columns.with_edges(zip(columns.numeric, columns.grid.every_edge(), strict=True))

    def layout(self, cells: Cells) -> tuple[GroupedLayout, Centred]:
        """Return the bins and features of gradient steps, from released counts."""
        bins = bins_of(cells.columns, self.n_bins, cells.counts, cells.total, cells.noise)
        layout = GroupedLayout.of(cells.columns, bins, self.smoothness)
        return layout, Centred.of(layout, layout.probabilities(cells.counts, cells.noise))


def _by_column(columns: Columns, names: NDArray | None, rows: NDArray) -> list[NDArray]:
    entries = columns.split(rows)
    columns.refuse_other_types(entries, names)
    return entries


def positions(X: Any) -> Any:
    """Return a column of zeros, with a row for each record."""
    return rowwise(_zeros, X)


def _zeros(X: list[NDArray]) -> Array:
    return np.zeros((len(X[0]), 1))


class AdditiveModel(CallbackSupportMixin, AdditiveExplanations, PrivateEstimator, BaseEstimator):
    """Base class of additive models: everything except the fit of the coefficients."""

    _counts_outside = ("numbers",)
    _takes_parts = True
    _released = frozenset(
        {
            "terms_",
            "term_columns_",
            "_all_terms",
            "_engine",
            "_layout",
            "intercept_",
            "cell_counts_",
            "n_samples_estimate_",
            "bin_edges_",
            "_stage_variances",
            "_kept",
            "_bend",
            "_target_unit",
        }
    )

    epsilon: float
    delta: float
    bounds: Any
    categories: Any
    bin_edges: Any
    interactions: Any
    n_bins: int
    accountant: Any
    random_state: Any
    intercept_: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = self.categories is not None or self.schema is not None
        return tags

    def _check_parameters(self, epsilon: float | None = None, share_before: float = 0.0) -> Parameters:
        n_bins = check_n_bins(self.n_bins, MOST_BINS)
        columns = check_columns(self, n_bins=self._n_cells(), most=MOST_BINS)
        if not columns.named:
            # If all columns have categories or edges, bounds are not needed.
            check_bounds(self._declared("bounds"), "bounds", "the numeric features")
        epsilon = check_epsilon(self.epsilon if epsilon is None else epsilon)
        return Parameters(epsilon, check_delta(self.delta), columns, n_bins, self._chooses_tables())

    def _n_cells(self) -> int:
        n_bins = check_n_bins(self.n_bins, MOST_BINS)
        return max(n_bins, min(CELLS_PER_BIN * n_bins, MOST_BINS))

    def _chooses_tables(self) -> bool:
        return isinstance(self.interactions, str) and self.interactions == "auto"

    def _declared(self, name: str) -> Any:
        # Tables that the fit chooses are not declared.
        return None if name == "interactions" and self._chooses_tables() else super()._declared(name)

    def _entries(self, X: Any, parameters: Parameters) -> Any:
        """Validate rows, and return their entries by column, in one place or in parts."""
        rows = self._rows(X, bool(parameters.columns.categories), reset=True)
        names = self._names()
        return rowwise(partial(_by_column, parameters.table(rows.shape[1], names), names), rows)

    def _rows(self, X: Any, has_categories: bool, *, reset: bool) -> NDArray:
        if has_categories:
            return read_entries(self, X, reset=reset)
        return validate_quietly(self, X, dtype=list(FLOATS), ensure_min_samples=0, reset=reset)

    def _form(self) -> str:
        return "cells"

    def _without_columns(self) -> Self:
        """Return a copy that validates labels or targets with rows of one constant column."""
        other = copy(self)
        other.schema = None
        return other

    def _check_rows(self, X: Any) -> None:
        clone(self)._entries(X, self._check_parameters())

    def _fitted_columns(self) -> Columns:
        check_is_fitted(self, "terms_")
        return self._columns.with_edges((j, own) for j, own in enumerate(self.bin_edges_) if own is not None)

    def _codes(self, X: Any) -> list[Codes]:
        """Return the cells of rows in the terms."""
        cells = self._cells(X)
        return [term.codes(cells) for term in self._all_terms]

    def _fitted_terms(self, model: Curves, cells: Cells, single: bool) -> dict[str, Any]:
        """Return the attributes that describe the model, computed from releases only."""
        # Terms of one column are centred by the released counts, so that their mean over the records is about 0. The
        # intercept takes the difference.
        terms, shift = [], np.zeros(len(model.intercept))
        for term, values in zip(model.terms, model.tables, strict=True):
            mean = np.zeros(len(model.intercept))
            if len(term.columns) == 1:
                weights = np.maximum(cells.counts[term.columns[0]], 0.0)
                weights = weights / weights.sum() if weights.sum() > 0 else np.full(len(values), 1 / len(values))
                mean = weights @ values
            shift += mean
            values = (values - mean).reshape(*term.shape, len(model.intercept))
            terms.append(values[..., 0] if single else values)
        return {
            "terms_": terms,
            "intercept_": model.intercept + shift,
            "term_columns_": [term.columns for term in model.terms],
            "bin_edges_": cells.columns.bin_edges(),
            "cell_counts_": cells.counts,
            "n_samples_estimate_": cells.total,
            "_columns": cells.columns,
            "_all_terms": model.terms,
            "_stage_variances": model.variances,
        }

    def _scores(self, X: Any) -> Array:
        """Return the linear predictors of rows, of shape (n_rows, outputs)."""
        codes = self._codes(X)
        out = np.tile(np.ravel(self.intercept_), (len(codes[0]), 1))
        for own, values in zip(codes, self._tables(), strict=True):
            out += values.take(own, axis=0)
        return out

    def _tables(self) -> list[Array]:
        """Return the values of the cells of each term, and 0 for no cell, of shape (n_cells + 1, outputs)."""
        outputs = np.size(self.intercept_)
        return [np.vstack([values.reshape(-1, outputs), np.zeros((1, outputs))]) for values in self.terms_]

    def contributions(self, X: Any) -> Array:
        """Return the contribution of each term to the score of each row.

        The score is the sum of the contributions and the intercept.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        contributions : ndarray of shape (n_samples, n_terms) or (n_samples, n_terms, n_classes)
            Contributions in the order of ``terms_``. The last axis is for three classes or more.
        """
        codes = self._codes(X)
        out = np.stack([values[own] for own, values in zip(codes, self._tables(), strict=True)], axis=1)
        return out[..., 0] if out.shape[2] == 1 else out

    @property
    def cell_names_(self) -> list[list[str]]:
        """Names of the cells of each column."""
        columns, table = self._fitted_columns(), self._used()
        if table is None:
            return [columns.labels(j) for j in range(columns.n_features)]
        return table.cell_names([kind if isinstance(kind, np.ndarray) else None for kind in columns.kinds])

    def _term_noise(self, X: Any = None) -> tuple[list[Array], ...]:
        """Return standard deviations of the noise in ``terms_``, and bounds on them that hold for all records."""
        # The rows of X stand for the records. Therefore X must not be private. If None, pseudo-records are used.
        check_is_fitted(self, "terms_")
        cells = pseudo_records(self.cell_counts_) if X is None else self._cells(X)
        if not cells.shape[1]:
            raise ValueError(
                "X must have at least one row, which stands for the records. Pass None to use pseudo-records"
            )
        found = self._noise_in_cells(cells)
        return tuple(
            [
                np.sqrt(variances + (one[t] ** 2 if t < len(one) else 0.0)).reshape(self.terms_[t].shape)
                for t, variances in enumerate(self._stage_variances)
            ]
            for one in found
        )

    def _cells(self, X: Any) -> Codes:
        """Return the cells of rows in the columns."""
        columns = self._fitted_columns()
        return columns.codes(columns.split(self._rows(X, not all(columns.ordered), reset=False)))

    def _noise_in_cells(self, cells: Codes) -> tuple[list[Array], list[Array]]:
        """Return standard deviations of the noise of gradient steps in curves, with and without curvature."""
        if self._layout is None:
            return [], []
        codes, outputs = self._layout.codes(cells), np.size(self.intercept_)
        bent, flat = (
            [np.tile(own[:, None], outputs) for own in self._noise_of_steps(codes, bends).in_cells()]
            for bends in (True, False)
        )
        return bent, flat

    def _noise_of_steps(self, codes: Codes, bends: bool) -> Moved:
        """Return the effect of the noise of gradient steps on the curves, for records in these bins."""
        noise = math.sqrt(coordinate_variance(mechanism_of(self.privacy_, COUNTS)))
        features = Centred.of(self._layout, self._layout.probabilities(self.cell_counts_, noise))
        bend = self._bend if bends else 0.0
        moved = Moved.of(self._engine, features, codes, self.n_samples_estimate_, bend, self._kept)
        return moved.times(abs(self._target_unit))

    def noise_std(self, X: Any) -> Array:
        """Return the standard deviation of each row's score that the noise of the fit causes.

        The standard deviation covers neither the effect of other records nor the bias of penalties, clipping and bins.
        It is a first-order estimate for records with the released counts and with independent columns, and may be too
        small or too large if columns are correlated. Choices of tables and their shrinkage are taken as given: another
        fit may choose other tables, in particular with ``delta=0``. The noise of the counts is not included.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        deviations : ndarray of shape (n_samples,) or (n_samples, n_classes)
            In units of ``decision_function``, or of the target for regression. The last axis is for three classes or
            more.

        Notes
        -----
        **Privacy.** The result is computed from released numbers and from X. It uses no budget.
        """
        cells = self._cells(X)
        variance = np.zeros((cells.shape[1], np.size(self.intercept_)))
        if self._layout is not None:
            moved = self._noise_of_steps(self._layout.codes(pseudo_records(self.cell_counts_)), True)
            for start in range(0, len(variance), _ROWS):
                codes = self._layout.codes(cells[:, start : start + _ROWS])
                variance[start : start + _ROWS] = moved.in_scores(codes)[:, None] ** 2
        # The noise of a table of a stage is independent of all other noise.
        for term, own in zip(self._all_terms, self._stage_variances, strict=True):
            variance += np.vstack([own, np.zeros((1, own.shape[1]))])[term.codes(cells)]
        found = np.sqrt(variance)
        return found[:, 0] if found.shape[1] == 1 else found

    @property
    def term_names_(self) -> list[str]:
        """Names of the terms: those of columns (or ``x0``, ``x1``, ...), with " x " between two columns."""
        check_is_fitted(self, "terms_")
        known = self._names()
        names = [f"x{j}" for j in range(self.n_features_in_)] if known is None else list(known)
        return [" x ".join(str(names[j]) for j in columns) for columns in self.term_columns_]

    def _cost_of(self, parameters: Parameters) -> PrivacyCost | None:
        # The cost does not depend on the number of columns.
        columns = Columns((np.array([0.0, 1.0, 2.0]),), Grid(np.zeros(1), np.ones(1), 2), parameters.columns.n_bins)
        return self._guarantee(parameters, columns, 2).cost

    @abstractmethod
    def _guarantee(self, parameters: Parameters, columns: Columns, n_classes: int) -> PrivacyGuarantee:
        """Return the guarantee of a fit."""

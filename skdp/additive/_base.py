"""Base class of additive models: reading of tables, attributes from releases, explanations, edits and exports.

Importances, explanations, edits and exports are post-processing.
"""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.isotonic import IsotonicRegression
from sklearn.utils.validation import check_is_fitted

from ..accounting import PrivacyCost
from ..checks.data import FLOATS, validate_quietly
from ..checks.params import Checked, Integer, Rules, anything, check_bounds, real_numbers
from ..mechanisms import coordinate_variance
from ..parts.arrays import rowwise
from ..release.estimator import PrivateEstimator, Shape
from ..release.session import CallbackSupportMixin, PrivacyGuarantee
from ..schema.columns import Codes, Columns, check_columns
from ..schema.declared import MISSING_CELL, Grid
from ..schema.entries import read_entries
from ..solvers.regularised import noise_multiplier
from ._cells import CELLS_PER_BIN, ROUGHNESS, Term, bins_of
from ._curves import Moved, mechanism_of, pseudo_records
from ._features import Centred, GroupedLayout
from ._plans import COUNTS, Cells, Design
from ._stages import Curves

Array = NDArray[np.float64]


# Number of rows whose features are in memory at once.
_ROWS = 2**12

#: Largest number of bins or cells of a column.
MOST_BINS = 4096


def columns_of(parameters: Checked, shape: Shape) -> Columns:
    """Return the columns, with all edges of cells."""
    columns = parameters.columns.resolve(shape.n_features, shape.names, shape.is_read)
    return columns.with_edges(zip(columns.numeric, columns.grid.every_edge(), strict=True))


def features_of(parameters: Checked, cells: Cells) -> tuple[GroupedLayout, Centred]:
    """Return the bins and features of gradient steps, from released counts."""
    bins = bins_of(cells.columns, parameters.n_bins, cells.counts, cells.total, cells.noise)
    smoothness = 1 - ROUGHNESS / (1 + noise_multiplier(parameters.epsilon, parameters.delta, 0))
    layout = GroupedLayout.of(cells.columns, bins, smoothness)
    return layout, Centred.of(layout, layout.probabilities(cells.counts, cells.noise))


def _by_column(columns: Columns, names: NDArray | None, rows: NDArray) -> list[NDArray]:
    entries = columns.split(rows)
    columns.refuse_other_types(entries, names)
    return entries


def zero_column(X: Any) -> Any:
    """Return a column of zeros, with a row for each record."""
    return rowwise(_zeros, X)


def _zeros(X: list[NDArray]) -> Array:
    return np.zeros((len(X[0]), 1))


def term_importances(terms: Sequence[Term], tables: list[Array], counts: list[Array]) -> Array:
    """Return the mean absolute value that each term adds, for records with independent columns."""
    importances = []
    for term, values in zip(terms, tables, strict=True):
        weights = np.ones(1)
        for j, places in zip(term.columns, term.maps, strict=True):
            records: Any = np.bincount(places[:-1], np.maximum(counts[j], 0.0), int(places[-1]))
            records = records if records.sum() > 0 else np.ones(len(records))
            weights = np.outer(weights, records / records.sum()).ravel()
        importances.append(float(weights @ np.abs(values).reshape(len(weights), -1).mean(axis=1)))
    return np.array(importances)


_FORMAT = "skdp.AdditiveModel"


class AdditiveExplanations:
    """Explanations, edits and exports of a fitted additive model."""

    terms_: list[Array]
    term_columns_: list[tuple[int, ...]]
    cell_counts_: list[Array]
    bin_edges_: list[Array | None]
    intercept_: Any
    privacy_: Any
    _all_terms: tuple[Term, ...]

    def explain_local(self, X: Any) -> list[dict[str, Any]]:
        """Return the contributions of terms to the score of each row, in order of decreasing size.

        .. versionadded:: 0.2

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        explanations : list of dict
            For each row, a dict from names of terms, and ``"intercept"`` at the end, to contributions, which add up to
            the score. For three classes or more, a contribution is a dict from labels to numbers.
        """
        intercept = np.asarray(self.intercept_)
        intercept = intercept.ravel()[0] if intercept.size == 1 else intercept
        labels = getattr(self, "classes_", np.array([])).tolist()

        def named(value: Any) -> Any:
            return dict(zip(labels, value.tolist(), strict=True)) if np.ndim(value) else float(value)

        explanations = []
        for row in self.contributions(X):  # type: ignore[attr-defined]
            order = np.argsort(-np.abs(row).reshape(len(row), -1).max(axis=1), kind="stable")
            by_name = {self.term_names_[i]: named(row[i]) for i in order}
            explanations.append({**by_name, "intercept": named(intercept)})
        return explanations

    @property
    def term_importances_(self) -> Array:
        """Mean absolute value that each term adds to the score, by the released counts, of shape (n_terms,)."""
        check_is_fitted(self, "terms_")
        return term_importances(self._all_terms, self.terms_, self.cell_counts_)

    @property
    def feature_importances_(self) -> Array:
        """Importances of the columns, with the sum 1. A table of several columns counts evenly for each of them."""
        check_is_fitted(self, "terms_")
        sizes = np.zeros(len(self.cell_counts_))
        for columns, importance in zip(self.term_columns_, self.term_importances_, strict=True):
            for j in columns:
                sizes[j] += importance / len(columns)
        return self._importances(sizes)  # type: ignore[attr-defined]

    def with_term(self, name: str, values: Any) -> Self:
        """Return a copy of the model in which a term has other values, which must be public or come from releases.

        .. versionadded:: 0.2

        Parameters
        ----------
        name : str
            Name of the term, from ``term_names_``.
        values : array-like
            Values of the cells, of the shape of the term in ``terms_``.

        Returns
        -------
        model : object
            A fitted copy.
        """
        position = self._position(name)
        given = real_numbers(values)
        if given is None or given.shape != self.terms_[position].shape or not np.all(np.isfinite(given)):
            raise ValueError(f"values must be finite numbers of shape {self.terms_[position].shape}")
        edited = copy(self)
        edited.terms_ = [*self.terms_[:position], given, *self.terms_[position + 1 :]]
        return edited

    def monotone(self, directions: Mapping[str, int]) -> Self:
        """Return a copy of the model with the nearest monotone curves, by the released counts. This uses no budget.

        .. versionadded:: 0.2

        Parameters
        ----------
        directions : dict of str to int
            1 for an increasing curve and -1 for a decreasing curve, by the name of the term. Terms must have one column
            with bins, or with ordered categories. A cell of missing values keeps its value.

        Returns
        -------
        model : object
            A fitted copy.
        """
        if not isinstance(directions, Mapping):
            raise TypeError(f"directions must map names of terms to 1 or -1, got {type(directions).__name__}")
        edited = copy(self)
        for name, direction in directions.items():
            position = self._position(name)
            if direction not in (1, -1):
                raise ValueError(f"directions must be 1 or -1, got {direction!r} for {name!r}")
            values, columns = self.terms_[position], self.term_columns_[position]
            if len(columns) > 1 or self.bin_edges_[columns[0]] is None or values.ndim > 1:
                raise ValueError(f"the term {name!r} is not a single curve over the bins of one column")
            n_steps = len(values) - (self.cell_names_[columns[0]][-1] == MISSING_CELL)
            weights = np.maximum(self.cell_counts_[columns[0]][:n_steps], 1.0)
            curve = IsotonicRegression(increasing=direction == 1).fit_transform(
                np.arange(n_steps), values[:n_steps], sample_weight=weights
            )
            edited = edited.with_term(name, np.append(curve, values[n_steps:]))
        return edited

    def to_json(self, path: Any = None) -> str:
        """Return the model as JSON, for other programs and for archives.

        .. versionadded:: 0.2

        Parameters
        ----------
        path : str or pathlib.Path, default=None
            File to write the text to. If None, nothing is written.

        Returns
        -------
        text : str
            An object that :doc:`/user_guide/deployment` describes.
        """
        check_is_fitted(self, "terms_")
        classes = getattr(self, "classes_", None)
        names = self.term_names_[: len(self.cell_counts_)]
        content = {
            "format": _FORMAT,
            "version": 1,
            "classes": None if classes is None else classes.tolist(),
            "link": getattr(self, "link_", None),
            "range": self._range_of_predictions(),
            "offset": getattr(self, "offset_", 0.0),
            "intercept": np.asarray(self.intercept_).tolist(),
            "terms": [
                {
                    "name": name,
                    "columns": [
                        self._described(j, names[j], cells) for j, cells in zip(term.columns, term.maps, strict=True)
                    ],
                    "values": values.tolist(),
                }
                for name, term, values in zip(self.term_names_, self._all_terms, self.terms_, strict=True)
            ],
            "privacy": str(self.privacy_),
        }
        text = json.dumps(content, indent=1)
        if path is not None:
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text

    def _range_of_predictions(self) -> list[float] | None:
        return None

    def _described(self, j: int, name: str, cells: NDArray) -> dict[str, Any]:
        edges = self.bin_edges_[j]
        bins = {} if edges is None else {"edges": edges.tolist()}
        every = np.arange(len(cells))
        merged = {} if np.array_equal(cells, every) else {"merged": cells[:-1].tolist()}
        return {"name": name, **bins, "cells": self.cell_names_[j], **merged}

    @property
    @abstractmethod
    def term_names_(self) -> list[str]:
        """Names of the terms."""

    @property
    @abstractmethod
    def cell_names_(self) -> list[list[str]]:
        """Names of the cells of each column."""

    def _position(self, name: Any) -> int:
        check_is_fitted(self, "terms_")
        if name not in self.term_names_:
            raise ValueError(f"there is no term {name!r}; the terms are {', '.join(map(repr, self.term_names_))}")
        return self.term_names_.index(name)


class AdditiveModel(CallbackSupportMixin, AdditiveExplanations, PrivateEstimator, BaseEstimator):
    """Base class of additive models: everything except the fit of the coefficients."""

    _parameter_rules: ClassVar[Rules] = {
        # Parameters that describe columns are checked together.
        **dict.fromkeys(("bounds", "categories", "bin_edges", "interactions"), anything),
        "n_bins": Integer(2, MOST_BINS),
    }
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

    def _check_together(self, parameters: Checked) -> None:
        # Whether the fit chooses tables, and whether there are tables only, and no gradient steps.
        parameters.chooses = self._chooses_tables()
        parameters.pure = parameters.delta == 0 and parameters.private
        parameters.columns = check_columns(self, n_bins=self._n_cells(), most=MOST_BINS)
        if not parameters.columns.named:
            # If all columns have categories or edges, bounds are not needed.
            check_bounds(self._declared("bounds"), "bounds", "the numeric features")

    def _n_cells(self) -> int:
        return max(self.n_bins, min(CELLS_PER_BIN * self.n_bins, MOST_BINS))

    def _chooses_tables(self) -> bool:
        return isinstance(self.interactions, str) and self.interactions == "auto"

    def _declared(self, name: str) -> Any:
        # Tables that the fit chooses are not declared.
        return None if name == "interactions" and self._chooses_tables() else super()._declared(name)

    def _entries(self, X: Any, parameters: Checked) -> Any:
        """Validate rows, and return their entries by column, in one place or in parts."""
        rows = self._rows(X, bool(parameters.columns.categories), reset=True)
        names = self._names()
        return rowwise(partial(_by_column, columns_of(parameters, Shape(rows.shape[1], names=names)), names), rows)

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
        return self._columns.with_edges((j, edges) for j, edges in enumerate(self.bin_edges_) if edges is not None)

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
        for cells, values in zip(codes, self._tables(), strict=True):
            out += values.take(cells, axis=0)
        return out

    def _tables(self) -> list[Array]:
        """Return the values of the cells of each term, and 0 for no cell, of shape (n_cells + 1, outputs)."""
        outputs = np.size(self.intercept_)
        return [np.vstack([values.reshape(-1, outputs), np.zeros((1, outputs))]) for values in self.terms_]

    def contributions(self, X: Any) -> Array:
        """Return the contribution of each term to the score of each row, which also has the intercept.

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
        out = np.stack([values[cells] for cells, values in zip(codes, self._tables(), strict=True)], axis=1)
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
        of_curves = self._noise_in_cells(cells)
        return tuple(
            [
                np.sqrt(variances + (one[t] ** 2 if t < len(one) else 0.0)).reshape(self.terms_[t].shape)
                for t, variances in enumerate(self._stage_variances)
            ]
            for one in of_curves
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
            [np.tile(deviations[:, None], outputs) for deviations in self._noise_of_steps(codes, bends).in_cells()]
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

        .. versionadded:: 0.2

        It is an estimate from released numbers for records with independent columns, and uses no budget. It covers
        neither other records, nor the bias of penalties, clipping and bins, nor the choice of tables.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        deviations : ndarray of shape (n_samples,) or (n_samples, n_classes)
            In units of ``decision_function``, or of the target for regression.
        """
        cells = self._cells(X)
        variance = np.zeros((cells.shape[1], np.size(self.intercept_)))
        if self._layout is not None:
            moved = self._noise_of_steps(self._layout.codes(pseudo_records(self.cell_counts_)), True)
            for start in range(0, len(variance), _ROWS):
                codes = self._layout.codes(cells[:, start : start + _ROWS])
                variance[start : start + _ROWS] = moved.in_scores(codes)[:, None] ** 2
        # The noise of a table of a stage is independent of all other noise.
        for term, variances in zip(self._all_terms, self._stage_variances, strict=True):
            variance += np.vstack([variances, np.zeros((1, variances.shape[1]))])[term.codes(cells)]
        deviations = self._slopes(X) * np.sqrt(variance)
        return deviations[:, 0] if deviations.shape[1] == 1 else deviations

    def _slopes(self, X: Any) -> Any:
        """Return derivatives of predictions by the sums of terms."""
        return 1.0

    @property
    def term_names_(self) -> list[str]:
        """Names of the terms: those of columns (or ``x0``, ``x1``, ...), with " x " between two columns."""
        check_is_fitted(self, "terms_")
        known = self._names()
        names = [f"x{j}" for j in range(self.n_features_in_)] if known is None else list(known)
        return [" x ".join(str(names[j]) for j in columns) for columns in self.term_columns_]

    def _cost_of(self, parameters: Checked) -> PrivacyCost | None:
        # The cost does not depend on the number of columns.
        columns = Columns((np.array([0.0, 1.0, 2.0]),), Grid(np.zeros(1), np.ones(1), 2), parameters.columns.n_bins)
        return self._design(parameters, columns, 2).guarantee.cost

    def _plan(self, parameters: Checked, shape: Shape) -> tuple[PrivacyGuarantee, Design]:
        design = self._design(parameters, columns_of(parameters, shape), shape.n_classes)
        return design.guarantee, design

    @abstractmethod
    def _design(self, parameters: Checked, columns: Columns, n_classes: int) -> Design:
        """Return the public plan of a fit."""

"""Predictions of naive Bayes from tables of log probabilities. Rows are read by public columns. Models are released."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from ..checks.data import NUMBERS, validate_quietly
from ..checks.params import real_numbers
from ..checks.silence import DiscreetMethods
from ..schema.columns import Columns, Encoder
from ..schema.mixin import TakesSchema
from ..schema.sparse_cells import SparseEncoder
from ..sensitivity import with_data
from .tables import table_information

Array = NDArray[np.float64]

# Largest number of rows whose probabilities are computed at once, and of their cells.
_PREDICTED_ROWS, _PREDICTED_CELLS = 4096, 2**17

# The same number for sparse rows.
_SPARSE_ROWS = 2**16


class NaiveBayesPrediction(TakesSchema, DiscreetMethods):
    """Predict by the fitted tables of categorical or binned columns."""

    classes_: NDArray
    class_prior_: Array
    feature_log_prob_: list[Any]
    bin_edges_: list[Any]
    exponent_: float
    _columns: Columns

    def _number_evidence(self, X: Any) -> Array:
        """Return the log densities of the columns without tables together, by row and class."""
        return np.zeros((X.shape[0], len(self.class_prior_)))

    def _number_information(self) -> Array:
        """Return the mutual information of columns without tables and the label, and 0 for others."""
        return np.zeros(self._columns.n_features)

    @property
    def feature_importances_(self) -> Array:
        """Mutual information of columns and label under the model, divided by the sum, of shape (n_features,)."""
        check_is_fitted(self, "privacy_")
        information = self._number_information()
        for j in self._columns.tables:
            probabilities = np.exp(self.feature_log_prob_[j])
            information[j] = table_information(probabilities[None], self.class_prior_)[0]
        return self._importances(np.maximum(information, 0.0))

    def _joint_log_scores(self, X: Any) -> Array:
        """Return logarithms of probabilities of classes given rows, each row up to a constant."""
        check_is_fitted(self, "privacy_")
        X = validate_quietly(self, X, dtype=list(NUMBERS), reset=False)
        with np.errstate(divide="ignore"):
            prior = np.log(self.class_prior_)
        columns, encoder = self._columns, Encoder(self._columns)
        tables = [table_for_reading(self.feature_log_prob_[c], self.bin_edges_[c]) for c in columns.tables]
        firsts = np.cumsum([0, *map(len, tables)])[:-1]
        by_class = np.ascontiguousarray(np.vstack([*tables, np.empty((0, len(prior)))]).T)
        out = np.empty((X.shape[0], len(prior)))
        if issparse(X):
            reader = SparseEncoder(columns)
            for start in range(0, len(out), _SPARSE_ROWS):
                rows = slice(start, start + _SPARSE_ROWS)
                evidence = self._number_evidence(X[rows]) + _sparse_evidence(X[rows], reader, by_class, firsts)
                out[rows] = prior + self.exponent_ * evidence
            return out
        size = max(64, min(_PREDICTED_ROWS, _PREDICTED_CELLS // columns.n_features))
        for start in range(0, len(X), size):
            rows = slice(start, start + size)
            evidence = self._number_evidence(X[rows])
            if tables:
                cells = encoder.cells(X[rows])
                cells += firsts
                for evidence_of_class, table in zip(evidence.T, by_class, strict=True):
                    evidence_of_class += table.take(cells).sum(axis=1)
            out[rows] = prior + self.exponent_ * evidence
        return out

    def predict(self, X: Any) -> NDArray:
        """Return the most likely label of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Elements of ``classes_``.
        """
        scores = self._joint_log_scores(X)
        return self.classes_[scores.argmax(axis=1)]

    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return special.softmax(self._joint_log_scores(X), axis=1)

    def predict_log_proba(self, X: Any) -> Array:
        """Return logarithms of class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return special.log_softmax(self._joint_log_scores(X), axis=1)


def _sparse_evidence(X: Any, encoder: SparseEncoder, by_class: Array, firsts: NDArray[np.intp]) -> Array:
    """Return the evidence of the tables for sparse rows: that of zeros, plus the contribution of stored entries."""
    ones = np.ones(X.shape[1])
    entries, tables, cells = encoder.cells(X)
    zeros, added = firsts + encoder.zero_cells, np.zeros(len(X.data))
    out = np.empty((X.shape[0], len(by_class)))
    for k, table in enumerate(by_class):
        of_zeros = table.take(zeros)
        added[entries] = table.take(firsts[tables] + cells) - of_zeros[tables]
        out[:, k] = of_zeros.sum() + with_data(X, added) @ ones
    return out


def by_column(columns: Columns, values: list[Any]) -> list[Any]:
    """Return a list with one entry for each column, from values for its tables."""
    out: list[Any] = [None] * columns.n_features
    for column, value in zip(columns.tables, values, strict=True):
        out[column] = value
    return out


def table_for_reading(log_probabilities: Array, edges: Array | None) -> Array:
    """Return a table by cell and class. The cell of unknown categories has no evidence."""
    by_cell = log_probabilities.T
    return by_cell if edges is not None else np.vstack([by_cell, np.zeros(by_cell.shape[1])])


def check_priors(priors: Any, n_classes: int) -> Array | None:
    """Return public class probabilities, or None."""
    if priors is None:
        return None
    array = real_numbers(priors)
    if array is None or array.shape != (n_classes,):
        raise ValueError(f"priors must hold one number for each of the {n_classes} classes")
    if not np.all(array >= 0) or not math.isclose(array.sum(), 1.0, rel_tol=1e-9):
        raise ValueError("priors must be at least 0 and add up to 1")
    return array

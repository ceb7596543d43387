"""Naive Bayes from noisy tables of a class and a cell: probabilities, and predictions from released models.

All of this is post-processing. Rows are read by public columns.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from ..checks.data import NUMBERS, validate_quietly
from ..checks.params import real_numbers
from ..schema.columns import Columns, Encoder, SparseEncoder
from ..schema.encoding import TakesSchema
from ..sensitivity import with_data
from .linear_descent import LogOdds

Array = NDArray[np.float64]

#: Records without evidence that are added to a cell, as a multiple of the standard deviation of its noise.
PRIOR_RECORDS = 0.5

_TINY = float(np.finfo(float).tiny)

# Largest number of rows whose probabilities are computed at once, and of their cells.
_PREDICTED_ROWS, _PREDICTED_CELLS = 4096, 2**17

# The same number for sparse rows.
_SPARSE_ROWS = 2**16


def table_probabilities(cells: Array, counts: Array, noise: float, bins: bool, alpha: float) -> Array:
    """Return probabilities of cells by class, for noisy counts of shape (n_tables, n_classes, n_cells)."""
    left = np.full((len(cells), 1, 1), noise)
    if bins and noise > 0:
        cells, left = smoothed(cells, counts, noise)
    if noise > 0:
        cells = towards_all(cells, counts, left)
    cells = onto_simplex(cells, counts)
    # The last cell holds unknown categories.
    return shrunk(cells if bins else cells[..., :-1], counts, left, alpha)


def towards_all(cells: Array, counts: Array, noise: Array) -> Array:
    """Return rows that are shrunk towards the rows of all records, by the part of their deviation that is noise."""
    # This is the estimate of James and Stein (1961) with half its strength and no negative factor, by table and class.
    share = (counts / counts.sum())[:, None]
    whole = cells.sum(axis=1, keepdims=True)
    usual = share * onto_simplex(whole, counts.sum(keepdims=True))
    deviation = cells - usual
    energy = (deviation**2).sum(axis=-1, keepdims=True)
    variance = noise**2 * ((1 - share) ** 2 + (len(counts) - 1) * share**2)
    expected = cells.shape[-1] * variance / 2
    # If both are 0, nothing is kept.
    factor = 1 - expected / np.maximum(np.maximum(energy, expected), _TINY)
    return usual + factor * deviation


def onto_simplex(cells: Array, totals: Array) -> Array:
    """Return the nearest rows, along the last axis, that are non-negative and have the given sums."""
    descending = -np.sort(-cells, axis=-1)
    excess = (np.cumsum(descending, axis=-1) - totals[:, None]) / np.arange(1, cells.shape[-1] + 1)
    last = np.maximum((descending > excess).sum(axis=-1, keepdims=True) - 1, 0)
    return np.maximum(cells - np.take_along_axis(excess, last, axis=-1), 0.0)


def smoothed(cells: Array, totals: Array, noise: float) -> tuple[Array, Array]:
    """Return histograms of numeric columns with less noise, and the remaining noise in a bin of each."""
    # The histograms are damped like splines, in the cosine basis, equally for all classes of a column. Stein's unbiased
    # estimate of the squared error chooses the damping, from the histograms and the noise alone (Stein 1981).
    n_classes, n_bins = cells.shape[1:]
    waves = fft.dct(cells, norm="ortho", axis=-1)
    roughness = np.arange(1, n_bins, dtype=np.float64) ** 4
    penalties = np.concatenate([[0.0], np.exp2(np.arange(-18.0, 5.0))])
    factors = 1 / (1 + penalties[:, None] * roughness)
    energy = (waves[..., 1:] ** 2).sum(axis=1)
    risk = energy @ ((1 - factors) ** 2).T + 2 * noise**2 * n_classes * factors.sum(axis=1)
    best = factors[risk.argmin(axis=1)]
    waves[..., 1:] *= best[:, None, :]
    waves[..., 0] = totals / math.sqrt(n_bins)
    left = noise * np.sqrt((best**2).sum(axis=1) / n_bins)
    return fft.idct(waves, norm="ortho", axis=-1), left[:, None, None]


def shrunk(cells: Array, counts: Array, noise: Array, alpha: float) -> Array:
    """Return probabilities of cells by class, shrunk towards those of all records if a cell has few records."""
    # Each cell gets `alpha` records of each class, and more in proportion to its noise, divided as the classes are.
    # They carry no evidence, and outweigh the noise.
    added = PRIOR_RECORDS * noise * (counts / counts.sum())[:, None]
    weights = cells + alpha + added
    return weights / weights.sum(axis=-1, keepdims=True)


def table_information(tables: Array, counts: Array) -> Array:
    """Return the mutual information of each table's cell and the class."""
    share = (counts / counts.sum())[:, None]
    whole = (share * tables).sum(axis=1, keepdims=True)
    return (share * tables * np.log(tables / whole)).sum(axis=(1, 2))


def exponent(information: Array, dependence: float) -> float:
    r"""Return the power to which the features' joint evidence is raised.

    Let m features have log-likelihood ratios of the same law, any two of which have correlation :math:`\rho` within a
    class. Their sum has m times the mean of one, and :math:`m(1 + \rho(m - 1))` times the variance. For Gaussian
    ratios, the best rule is :math:`1/(1 + \rho(m-1))` times the sum. The number m is that of the features that carry
    the information, :math:`(\sum_j I_j)^2/\sum_j I_j^2`.
    """
    total = float(information.sum())
    if not total > 0:
        return 1.0
    carriers = total**2 / float(information @ information)
    return 1 / (1 + dependence * max(carriers - 1, 0.0))


class NaiveBayesPrediction(TakesSchema, LogOdds):
    """Predict by the fitted tables of categorical or binned columns."""

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

    def _label_scores(self, X: Any) -> Array:
        """Return logarithms of probabilities of classes given rows, each row up to a constant."""
        check_is_fitted(self, "privacy_")
        X = validate_quietly(self, X, dtype=list(NUMBERS), reset=False)
        with np.errstate(divide="ignore"):
            prior = np.log(self.class_prior_)
        columns, encoder = self._columns, Encoder(self._columns)
        tables = [self.feature_log_prob_[c].T for c in columns.tables]
        # The cell of unknown categories, which tables of bins do not have, has no evidence.
        unknown = [np.zeros((int(self.bin_edges_[c] is None), len(prior))) for c in columns.tables]
        tables = [np.vstack(pair) for pair in zip(tables, unknown, strict=True)]
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

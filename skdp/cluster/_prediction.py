"""Predictions and distances of rows from released centres, for all clusterers with centres."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.utils.validation import check_is_fitted

from ..checks.data import validate_quietly
from ..checks.silence import DiscreetMethods
from ..sensitivity import exact_products_error, exact_row_products, row_products, squared_norms

Array = NDArray[np.float64]

# Limits on the rows whose distances are computed at once: the rows, and their entries or distances.
_ROWS, _ENTRIES = 4096, 2**17


class NearestCentre(DiscreetMethods, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin):
    """Mixin of clusterers with the attribute `cluster_centers_`."""

    cluster_centers_: Array

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _rows(self, X: Any) -> NDArray:
        check_is_fitted(self, "cluster_centers_")
        # The distances are doubles, because single precision may not hold the centres.
        rows: Array = validate_quietly(self, X, dtype=np.float64, reset=False)
        return rows

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return the nearest centre of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. They are not clipped.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Positions in ``cluster_centers_``.
        """
        rows = self._rows(X)
        find = _Nearest(self.cluster_centers_)
        labels = np.empty(len(rows), dtype=np.int32)
        size = max(16, min(_ROWS, _ENTRIES // max(self.cluster_centers_.shape)))
        for start in range(0, len(rows), size):
            labels[start : start + size] = find(rows[start : start + size])
        return labels

    def transform(self, X: Any) -> Array:
        """Return the distance of each row to each centre.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. They are not clipped.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            Euclidean distances.
        """
        rows, centres = self._rows(X), self.cluster_centers_
        with np.errstate(all="ignore"):
            squares = row_products(rows, -2 * centres.T)
            squares += squared_norms(rows)[:, None]
            squares += squared_norms(centres)
            distances: Array = np.sqrt(np.maximum(squares, 0.0))
        return distances

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the sum of squared distances of rows to their nearest centres.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. They are not clipped.
        y : None
            Not used.

        Returns
        -------
        score : float
            The score is a function of these rows, and therefore not private.
        """
        return -float(np.sum(self._nearest(X)[1] ** 2))

    def fit_predict(self, X: Any, y: Any = None, **kwargs: Any) -> NDArray[np.int32]:
        """Fit, and return the nearest centre of each row.

        The labels are for the owner of the rows. Each label is a function of its own row and of the private centres.
        Therefore published labels disclose something about every record, and no budget covers this.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite rows.
        y : None
            Not used.
        **kwargs : dict
            Passed to `fit`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Positions in ``cluster_centers_``.
        """
        return self.fit(X, y, **kwargs).predict(X)

    def _nearest(self, X: Any) -> tuple[NDArray, NDArray]:
        labels, distances = pairwise_distances_argmin_min(self._rows(X), self.cluster_centers_)
        return labels, distances


class _Nearest:
    """Find nearest centres. The label of a row does not depend on other rows."""

    # The bits of a product of matrices can depend on all rows. If one distance is smaller than all others by more than
    # this can change, the label is certain. The other rows are compared by exact products.

    def __init__(self, centres: Array) -> None:
        n_columns = centres.shape[1]
        # The first of several equal centres counts.
        positions = np.sort(np.unique(centres, axis=0, return_index=True)[1])
        centres = centres[positions]
        # Squared distances, without the squares of the rows.
        self._table, self._squares = -2 * centres, np.einsum("ij,ij->i", centres, centres)
        self._largest = math.sqrt(float(self._squares.max()))
        # Four times the relative errors of a product in doubles and of an exact one.
        self._error = 8 * n_columns * exact_products_error(n_columns)
        self._positions = positions
        self._number_and_sum = np.vstack([np.ones(len(centres)), positions])

    def __call__(self, rows: Array) -> Array:
        with np.errstate(all="ignore"):
            distances = self._table @ rows.T
            distances += self._squares[:, None]
            # No row is longer.
            longest = math.sqrt(float(np.vdot(rows, rows)))
            slack = self._error * (2 * longest + self._largest) * self._largest + 1e-300
            near = distances <= distances.min(axis=0) + slack
            number, labels = self._number_and_sum @ near
            (open_,) = np.nonzero(number != 1)
            if open_.size:
                nearest = (exact_row_products(rows[open_], self._table.T) + self._squares).argmin(axis=1)
                labels[open_] = self._positions[nearest]
        return labels

"""Predictions and distances of rows from released centres, for all clusterers with centres."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.utils.validation import check_is_fitted

from ..checks.data import validate_quietly
from ..checks.params import Integer, Rules
from ..checks.silence import DiscreetMethods
from ..sensitivity import nearest, row_products, squared_norms

Array = NDArray[np.float64]


class NearestCentre(DiscreetMethods, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin):
    """Mixin of clusterers with the attribute `cluster_centers_`."""

    _parameter_rules: ClassVar[Rules] = {"n_clusters": Integer(1, 10**4)}

    cluster_centers_: Array

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _rows(self, X: Any) -> NDArray:
        check_is_fitted(self, "cluster_centers_")
        # The distances are doubles, because single precision may not hold the centres.
        return validate_quietly(self, X, dtype=np.float64, reset=False)

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
        return nearest(self._rows(X), self.cluster_centers_).astype(np.int32)

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
            # If squares overflow, all centres are at the same distance, up to rounding.
            (far,) = np.nonzero(~np.isfinite(squares).all(axis=1))
            norms = np.hypot.reduce(rows[far], axis=1)
            distances[far] = np.minimum(norms, np.finfo(np.float64).max)[:, None]
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

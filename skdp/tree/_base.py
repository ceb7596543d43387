"""Common methods of trees: prediction from released leaves."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..checks.data import validate_quietly
from ..checks.silence import DiscreetMethods
from ._structure import ROUTED

Array = NDArray[np.float64]

#: Routing tables have one entry for each tree and category.
MOST_CATEGORIES = 2**16


class TreeModel(DiscreetMethods):
    """Methods of models that have ``structure_``."""

    _schema_form = "ends"

    structure_: Any

    def _rows(self, X: Any) -> NDArray:
        check_is_fitted(self, "privacy_")
        return validate_quietly(self, X, reset=False, dtype=[np.float64, np.float32])

    def apply(self, X: Any) -> NDArray[np.intp]:
        """Return the leaf that each row reaches in each tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        leaves : ndarray of shape (n_samples, n_trees)
            Positions in the second axis of ``leaf_counts_``. In a forest, a row stays in an inner node that splits a
            column in which the row has no known category. Inner nodes are numbered after the leaves, level by level.
        """
        return self._leaves(self._rows(X))

    def _leaves(self, X: NDArray) -> NDArray[np.intp]:
        route = self.structure_.router(len(X))
        blocks = (X[start : start + ROUTED] for start in range(0, max(len(X), 1), ROUTED))
        return np.concatenate([np.stack(list(route(rows)), axis=1) for rows in blocks])


class TreeClassifier(TreeModel):
    """Methods of classifiers that have ``structure_``, ``classes_`` and `predict_proba`."""

    classes: Any
    classes_: NDArray

    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return self._proba(self._rows(X))

    @abstractmethod
    def _proba(self, X: NDArray) -> Array:
        """Return class probabilities of validated rows."""

    def predict_log_proba(self, X: Any) -> Array:
        """Return logarithms of class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return np.log(np.maximum(self.predict_proba(X), np.finfo(np.float64).tiny))

    def predict(self, X: Any) -> NDArray:
        """Return the most likely labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            From ``classes_``.
        """
        proba = self.predict_proba(X)
        codes = proba[:, 1] > proba[:, 0] if proba.shape[1] == 2 else proba.argmax(axis=1)
        return self.classes_.take(codes)

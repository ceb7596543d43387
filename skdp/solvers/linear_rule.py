"""Prediction by a linear rule, which all linear classifiers share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.utils.validation import check_is_fitted

from ..checks.data import validate_quietly
from ..checks.silence import DiscreetMethods
from ..sensitivity import row_products

Array = NDArray[np.float64]


def probabilities(scores: Array) -> Array:
    """Return class probabilities, of shape (n_rows, n_classes), for logits."""
    if scores.ndim == 1:
        return np.column_stack([special.expit(-scores), special.expit(scores)])
    return special.softmax(scores, axis=1)


def log_probabilities(scores: Array) -> Array:
    """Return logarithms of class probabilities, of shape (n_rows, n_classes), for logits."""
    if scores.ndim == 1:
        return np.column_stack([special.log_expit(-scores), special.log_expit(scores)])
    return special.log_softmax(scores, axis=1)


class LinearRule(DiscreetMethods):
    """Mixin of classifiers with the attributes `coef_`, `intercept_` and `classes_`."""

    coef_: Array
    intercept_: Array
    classes_: NDArray

    def decision_function(self, X: Any) -> Array:
        """Return the linear score of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features. They are not clipped here.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive for the second class when there are two; else one score a class.
        """
        check_is_fitted(self, "coef_")
        X = validate_quietly(self, X, dtype=[np.float64, np.float32], reset=False)
        scores = row_products(X, self.coef_.T) + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray:
        """Return the most likely label of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Elements of ``classes_``.
        """
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

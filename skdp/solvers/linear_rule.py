"""Labels and probabilities from scores, for all classifiers with log-odds, and scores of linear rules."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.utils.validation import check_is_fitted

from ..checks.data import validate_quietly
from ..checks.silence import DiscreetMethods, available_if
from ..sensitivity import largest_products, row_products

Array = NDArray[np.float64]


def probabilities(scores: Array) -> Array:
    """Return class probabilities, of shape (n_rows, n_classes), for logits."""
    if scores.ndim == 1:
        return np.column_stack([special.expit(-scores), special.expit(scores)])
    return special.softmax(scores, axis=1)


def linear_scores(estimator: Any, X: Any) -> Array:
    """Validate rows, and return the linear scores of a fitted estimator, of shape (n_rows, outputs)."""
    return row_products(_rows(estimator, X), np.atleast_2d(estimator.coef_).T) + estimator.intercept_


def _rows(estimator: Any, X: Any) -> Any:
    check_is_fitted(estimator, "coef_")
    return validate_quietly(estimator, X, dtype=[np.float64, np.float32], reset=False)


def _estimates_probabilities(estimator: Any) -> bool:
    # The loss of the fit counts, because the parameter may have been changed since.
    if getattr(estimator, "_loss", getattr(estimator, "loss", "log_loss")) != "log_loss":
        raise AttributeError('probabilities are available for loss="log_loss"')
    return True


class ScoredLabels(DiscreetMethods):
    """Mixin of classifiers with scores of classes."""

    classes_: NDArray

    @abstractmethod
    def _label_scores(self, X: Any) -> Array:
        """Return one score for the second of two classes, of shape (n_rows,), or one for each class."""

    def predict(self, X: Any) -> NDArray:
        """Return the most likely label of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features. They are not clipped.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Elements of ``classes_``.
        """
        codes = self._label_codes(X)
        return self.classes_.take(codes)

    def _label_codes(self, X: Any) -> NDArray:
        scores = self._label_scores(X)
        return (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)


class LogOdds(ScoredLabels):
    """Mixin of classifiers whose scores are log-odds. If they have a parameter `loss`, only for the log loss."""

    def _logits(self, X: Any) -> Array:
        """Return log-odds in the shape of the scores."""
        return self._label_scores(X)

    @available_if(_estimates_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities. Estimators with a parameter `loss` have them for the log loss only.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features. They are not clipped.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return probabilities(self._logits(X))

    @available_if(_estimates_probabilities)
    def predict_log_proba(self, X: Any) -> Array:
        """Return logarithms of class probabilities. Estimators with a parameter `loss` have them for the log loss only.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features. They are not clipped.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        scores = self._logits(X)
        if scores.ndim == 1:
            return np.column_stack([special.log_expit(-scores), special.log_expit(scores)])
        return special.log_softmax(scores, axis=1)


class LinearRule(ScoredLabels):
    """Mixin of classifiers with the attributes `coef_`, `intercept_` and `classes_`."""

    coef_: Array
    intercept_: Any

    def _label_scores(self, X: Any) -> Array:
        return self.decision_function(X)

    def _label_codes(self, X: Any) -> NDArray:
        X = _rows(self, X)
        if len(self.classes_) == 2:
            return (row_products(X, self.coef_.T)[:, 0] + self.intercept_ > 0).astype(np.intp)
        return largest_products(X, self.coef_.T, np.broadcast_to(self.intercept_, len(self.classes_)))

    def decision_function(self, X: Any) -> Array:
        """Return the linear score of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features. They are not clipped.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive for the second class if there are two classes. Otherwise, one score for each class.
        """
        scores = linear_scores(self, X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

"""Scores for membership inference: how well a model fits a record."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_clusterer, is_regressor


def ranks(scores: NDArray) -> NDArray[np.intp]:
    """Return the ranks of scores, equal for equal scores. NaN and minus infinity come first."""
    return np.unique(np.where(np.isnan(scores), -np.inf, scores), return_inverse=True)[1]


def check_can_score(estimator: Any, y: Any) -> None:
    """Refuse, before the fit, an estimator without a score for each record."""
    if not hasattr(estimator, "fit"):
        raise _nothing_to_go_by(estimator)
    if is_classifier(estimator) and np.ndim(y) > 1:
        raise ValueError("with several labels for each record, pass score")
    by_label = y is not None and (is_classifier(estimator) or is_regressor(estimator))
    by_distance = is_clusterer(estimator) and hasattr(estimator, "transform")
    if not (by_label or by_distance or hasattr(estimator, "score_samples") or hasattr(estimator, "inverse_transform")):
        raise _nothing_to_go_by(estimator)


def _nothing_to_go_by(estimator: Any) -> ValueError:
    return ValueError(
        f"{type(estimator).__name__} has no score of the fit to a record. Pass score, a function of the "
        "fitted model, records and their labels"
    )


def membership_scores(model: Any, X: Any, y: Any = None) -> NDArray[np.float64]:
    """Return a number for each record, larger if the fitted model fits it better."""
    if is_classifier(model) and y is not None:
        return _of_labels(model, X, np.asarray(y))
    if is_regressor(model) and y is not None:
        shape = len(np.asarray(y)), -1
        error = np.reshape(model.predict(X), shape) - np.reshape(np.asarray(y, dtype=np.float64), shape)
        return -(error**2).sum(axis=1)
    if hasattr(model, "score_samples"):
        return np.asarray(model.score_samples(X), dtype=np.float64)
    if hasattr(model, "cluster_centers_") and hasattr(model, "transform"):
        return -np.asarray(model.transform(X), dtype=np.float64).min(axis=1)
    if hasattr(model, "inverse_transform"):
        rows = np.asarray(X, dtype=np.float64)
        return -((rows - model.inverse_transform(model.transform(X))) ** 2).sum(axis=1)
    raise _nothing_to_go_by(model)


def _of_labels(model: Any, X: Any, y: NDArray) -> NDArray[np.float64]:
    position = np.searchsorted(model.classes_, y)
    known = position < len(model.classes_)
    known[known] = model.classes_[position[known]] == y[known]
    position[~known] = 0
    rows = np.arange(len(y))
    if hasattr(model, "predict_proba"):
        scores = np.log(np.maximum(model.predict_proba(X)[rows, position], 1e-300))
    elif (values := _decision(model, X)) is not None:
        scores = np.where(position == 1, values, -values) if values.ndim == 1 else values[rows, position]
    else:
        scores = (model.predict(X) == y).astype(np.float64)
    # A record with a label that the model does not have was not included.
    return np.where(known, scores, -np.inf)


def _decision(model: Any, X: Any) -> NDArray[np.float64] | None:
    """Return the decision function, if it has one column for each class, or one for two classes."""
    if not hasattr(model, "decision_function"):
        return None
    values = np.asarray(model.decision_function(X), dtype=np.float64)
    n_classes = len(model.classes_)
    one_vs_one = getattr(model, "decision_function_shape", None) == "ovo" and n_classes > 2
    return None if one_vs_one or values.shape[1:] not in ((), (n_classes,)) else values

"""How much a model seems to know a record: what membership inference goes by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor


def membership_scores(model: Any, X: Any, y: Any = None) -> NDArray[np.float64]:
    """Return a number for each record, larger where the model fits it better.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : array-like of shape (n_samples, n_features)
        Records.
    y : array-like of shape (n_samples,), default=None
        Labels or targets.

    Returns
    -------
    scores : ndarray of shape (n_samples,)
    """
    if is_classifier(model) and y is not None:
        return _of_labels(model, X, np.asarray(y))
    if is_regressor(model) and y is not None:
        error = np.asarray(model.predict(X), dtype=np.float64) - np.asarray(y, dtype=np.float64)
        return -(error**2)
    if hasattr(model, "score_samples"):
        return np.asarray(model.score_samples(X), dtype=np.float64)
    if hasattr(model, "cluster_centers_") and hasattr(model, "transform"):
        return -np.asarray(model.transform(X), dtype=np.float64).min(axis=1)
    if hasattr(model, "inverse_transform"):
        rows = np.asarray(X, dtype=np.float64)
        return -((rows - model.inverse_transform(model.transform(X))) ** 2).sum(axis=1)
    raise ValueError(
        f"{type(model).__name__} has nothing that tells how well it fits a record; pass score, a function of the "
        "fitted model, records and their labels"
    )


def _of_labels(model: Any, X: Any, y: NDArray) -> NDArray[np.float64]:
    position = np.searchsorted(model.classes_, y)
    known = position < len(model.classes_)
    known[known] = model.classes_[position[known]] == y[known]
    position[~known] = 0
    rows = np.arange(len(y))
    if hasattr(model, "predict_proba"):
        scores = np.log(np.maximum(model.predict_proba(X)[rows, position], 1e-300))
    elif hasattr(model, "decision_function"):
        values = np.asarray(model.decision_function(X), dtype=np.float64)
        scores = np.where(position == 1, values, -values) if values.ndim == 1 else values[rows, position]
    else:
        scores = (model.predict(X) == y).astype(np.float64)
    # A label that the model does not have was not in.
    return np.where(known, scores, -np.inf)

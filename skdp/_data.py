"""Validation of X and y: scikit-learn's own, short of what would tell values of the data."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import column_or_1d, validate_data

from .exceptions import PrivacyAssumptionWarning

# Kinds of labels that can be told equal to one another.
_LABEL_KINDS = {
    "b": "number",
    "i": "number",
    "u": "number",
    "f": "number",
    "U": "text",
    "T": "text",
    "S": "bytes",
}


def validate_quietly(estimator: Any, X: Any, y: Any = "no_validation", **kwargs: Any) -> Any:
    """Call scikit-learn's validate_data, and keep values out of its messages.

    Parameters
    ----------
    estimator : estimator
        The estimator.
    X, y : array-like
        The data.
    **kwargs : dict
        Passed on.

    Returns
    -------
    validated : ndarray or tuple of ndarray
    """
    try:
        # The check for values that are not finite adds all of them up, and warns where that overflows.
        with np.errstate(over="ignore", invalid="ignore"):
            return validate_data(estimator, X, y, **kwargs)
    except ValueError as error:
        message = _without_values(str(error))
    # Outside the handler, so that the original message is not kept as the context of this one.
    raise ValueError(message)


def _without_values(message: str) -> str:
    """Take values of the data, and their number, out of a message of scikit-learn or NumPy."""
    if "could not convert" in message:
        return "the data hold text that cannot be read as numbers"
    if message.startswith("Complex data not supported"):
        return "Complex data not supported"
    if "inconsistent numbers of samples" in message:
        return "X and y must have the same number of rows"
    if "1d array" in message:
        return "y must be a 1d array"
    if "inhomogeneous" in message:
        return "rows must all have the same length"
    message = re.sub(r"array=.*?\nReshape", "Reshape", message, flags=re.DOTALL)
    return re.sub(r"shape=\(\d+, 0\)", "shape=(, 0)", message)


def regression_data(estimator: Any, X: Any, y: Any) -> tuple[NDArray, NDArray]:
    """Validate the data of a regressor. Any number of rows is accepted, none included.

    Parameters
    ----------
    estimator : estimator
        Receives ``n_features_in_`` and ``feature_names_in_``.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Targets.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,) or (n_samples, n_targets)
    """
    kinds = [np.float64, np.float32]
    separately = (
        {"dtype": kinds, "ensure_min_samples": 0},
        {"dtype": kinds, "ensure_min_samples": 0, "ensure_2d": False},
    )
    X, y = validate_quietly(estimator, X, y, validate_separately=separately)
    if y.ndim == 0 or (y.ndim == 2 and y.shape[1] == 0):
        raise ValueError("y must have one column or more, and one row for each row of X")
    if len(X) != len(y):
        raise ValueError("X and y must have the same number of rows")
    return X, y


def classification_data(
    estimator: Any, X: Any, y: Any, classes: NDArray | None
) -> tuple[NDArray, NDArray[np.intp], NDArray]:
    """Validate the data of a classifier, and encode labels by the public label set.

    With declared classes, rows with other labels are dropped, and any number of rows is accepted: none included,
    since a data set of one record and the empty one are neighbours.

    Parameters
    ----------
    estimator : estimator
        Receives ``n_features_in_`` and ``feature_names_in_``.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Labels.
    classes : ndarray or None
        Declared labels, sorted; None to declare those that occur.

    Returns
    -------
    X : ndarray of shape (n_kept, n_features)
    codes : ndarray of shape (n_kept,)
        Positions in `classes`.
    classes : ndarray of shape (n_classes,)
        The label set.
    """
    least = 1 if classes is None else 0
    X, y = validate_quietly(estimator, X, y, dtype=[np.float64, np.float32], ensure_min_samples=least)
    y = column_or_1d(y)
    if classes is None:
        with warnings.catch_warnings():
            # scikit-learn comments on the number of distinct labels.
            warnings.simplefilter("ignore")
            check_classification_targets(y)
            classes = unique_labels(y)
        if len(classes) < 2:
            raise ValueError(
                "y must hold at least 2 classes, got 1 class. If others exist that do not occur, declare them with "
                "classes=..."
            )
        warnings.warn(
            "classes=None: the labels that occur in y are taken to be public knowledge. Declare the label set "
            "with classes=... so that no rare label is disclosed",
            PrivacyAssumptionWarning,
            stacklevel=3,
        )
        return X, np.searchsorted(classes, y), classes
    codes = _encode(y, classes)
    known = codes >= 0
    return (X, codes, classes) if known.all() else (X[known], codes[known], classes)


def _encode(y: NDArray, classes: NDArray) -> NDArray[np.intp]:
    """Positions of labels in `classes`; -1 for a label that is not there."""
    kinds = _LABEL_KINDS.get(y.dtype.kind), _LABEL_KINDS.get(classes.dtype.kind)
    if None in kinds:
        position = {label: i for i, label in enumerate(classes.tolist())}
        return np.array([position.get(label, -1) for label in y.tolist()], dtype=np.intp)
    if kinds[0] != kinds[1]:
        raise TypeError(f"classes holds {kinds[1]} labels, and y holds {kinds[0]} labels")
    codes = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    return np.where(classes[codes] == y, codes, -1)

r"""Scores of which one record can change little: sums over records of integers between 0 and a public number.

Theorem. Let a record's gain be an integer in :math:`[0, G]` that depends on the record and on a model which does not
depend on the record. Adding a record raises the sum of gains by between 0 and :math:`G`, for any other records.

Every score here is such a sum: the number of correct labels (:math:`G = 1`); correct labels with public weights; what a
clipped loss leaves of its bound, rounded to a lattice record by record, so that the sum is exact.

What has no such form is refused. The area under the ROC curve compares pairs of records, and R^2 divides by the
variance of the others' targets; a function that the user passes may do anything. Outside of searches, areas and F1 are
computed from tables of counts that are released (`_evaluation`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor

from ..checks.data import encode_labels
from ..checks.params import check_bounds, check_choice, check_positive
from ..checks.silence import silence
from ..checks.values import shown

Gains = NDArray[np.int64]

CLASSIFICATION = ("accuracy", "balanced_accuracy", "neg_log_loss")
REGRESSION = ("neg_mean_absolute_error", "neg_mean_squared_error")

#: Levels of a clipped loss, and of class weights.
LEVELS = 2**12


@dataclass(frozen=True)
class Score:
    """A bounded score: a sum of integer gains of records."""

    name: str
    most: int  # Largest gain of one record.
    unit: float  # The score that a gain of `most` stands for.
    loss: bool  # Whether the score is minus the missing part of the gain.
    classes: NDArray | None = None
    weights: NDArray[np.int64] | None = None  # Largest gain of a record of each label.
    bounds: tuple[float, float] | None = None  # Range of targets of a regression.

    def gains(self, model: Any, X: Any, y: NDArray) -> Gains:
        """Return each row's gain, between 0 and `most`, as a function of the row and of the model alone."""
        # A model whose fit failed is None, and gains nothing. `y` holds positions in `classes` (-1 for other labels),
        # or targets.
        if model is None:
            return np.zeros(len(y), dtype=np.int64)
        method = self._probabilities if self.name == "neg_log_loss" else self._predictions
        with silence(), np.errstate(all="ignore"):
            gains = row_by_row_if_need_be(lambda rows, targets: method(model, rows, targets), X, y)
        return np.clip(gains, 0, self.most)

    def possible(self, y: NDArray) -> Gains:
        """Return the gain of each row from a perfect model."""
        if self.weights is None:
            return np.full(len(y), self.most, dtype=np.int64)
        return np.where(y >= 0, self.weights[y], 0)

    def _predictions(self, model: Any, X: Any, y: NDArray) -> Gains:
        predicted = np.asarray(model.predict(X))
        if self.classes is not None:
            correct = (encode_labels(predicted, self.classes) == y) & (y >= 0)
            return correct * (np.int64(1) if self.weights is None else self.weights[y])
        assert self.bounds is not None
        low, high = self.bounds
        error = np.abs(np.clip(np.nan_to_num(predicted.reshape(y.shape), nan=low), low, high) - np.clip(y, low, high))
        share = error / (high - low)
        return self._remainder(share**2 if self.name == "neg_mean_squared_error" else share)

    def _probabilities(self, model: Any, X: Any, y: NDArray) -> Gains:
        assert self.classes is not None
        estimated = np.asarray(model.predict_proba(X), dtype=np.float64)
        own = encode_labels(np.asarray(model.classes_), self.classes)
        table = np.zeros((len(y), len(self.classes) + 1))
        table[:, own] = np.nan_to_num(estimated, nan=0.0)
        # Labels that are not in the set have a probability of 0.
        table[:, -1] = 0.0
        loss = -np.log(np.maximum(table[np.arange(len(y)), y], np.finfo(float).tiny))
        return self._remainder(np.clip(loss / self.unit, 0.0, 1.0))

    def _remainder(self, share: NDArray[np.float64]) -> Gains:
        return self.most - np.rint(share * self.most).astype(np.int64)

    #: Of what `cells` returns.
    shape = (2,)

    def cells(self, model: Any, X: Any, y: NDArray) -> Gains:
        """Return the sum of gains, and the sum of what is missing to the largest gains."""
        gains = self.gains(model, X, y)
        return np.array([gains.sum(), (self.possible(y) - gains).sum()])

    def value(self, sums: Any) -> float:
        """Return the score from exact or noisy sums of gains and missing gains; NaN unless their total is positive."""
        gained, missed = (float(each) for each in sums)
        if gained + missed <= 0:
            return math.nan
        share = min(max(gained / (gained + missed), 0.0), 1.0)
        return self.unit * (share - 1.0) if self.loss else share


def row_by_row_if_need_be(method: Callable[[Any, NDArray], Gains], X: Any, y: NDArray) -> Gains:
    """Return the method's integer for each row; 0 for a row that it refuses, without an effect on other rows."""
    if len(y) == 0:
        return np.zeros(0, dtype=np.int64)
    try:
        return np.asarray(method(X, y), dtype=np.int64)
    except Exception:
        if len(y) == 1:
            return np.zeros(1, dtype=np.int64)
    half = len(y) // 2
    first, second = np.arange(half), np.arange(half, len(y))
    return np.concatenate([row_by_row_if_need_be(method, take(X, rows), y[rows]) for rows in (first, second)])


def take(X: Any, rows: NDArray[np.intp]) -> Any:
    """Return some rows of an array, sparse matrix or dataframe, in the form of `X`."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows]


def make_score(
    scoring: object,
    estimator: Any,
    classes: NDArray | None,
    label_weights: Any = None,
    loss_bound: float = 5.0,
    bounds_y: Any = None,
) -> Score:
    """Return the score of a name, or raise an error with the reason why there is none."""
    if not isinstance(scoring, str) or scoring not in (*CLASSIFICATION, *REGRESSION):
        raise ValueError(
            f"scoring must be one of {', '.join((*CLASSIFICATION, *REGRESSION))}, got {shown(scoring)}: one record "
            "must change a score by no more than is known. Areas under curves and R^2 depend on pairs of records, or "
            "on a variance, and a callable may do anything. private_score and private_cross_val_score compute areas "
            "and F1 from counts with noise"
        )
    kind = "classifiers" if scoring in CLASSIFICATION else "regressors"
    if not (is_classifier(estimator) if kind == "classifiers" else is_regressor(estimator)):
        other = REGRESSION if kind == "classifiers" else CLASSIFICATION
        raise ValueError(f"scoring={scoring!r} is for {kind}; others are {', '.join(other)}")
    if scoring == "accuracy":
        return Score(scoring, 1, 1.0, False, classes)
    if scoring == "balanced_accuracy":
        return Score(scoring, LEVELS, 1.0, False, classes, _label_weights(label_weights, classes))
    if scoring == "neg_log_loss":
        if not hasattr(estimator, "predict_proba"):
            raise ValueError(f"scoring={scoring!r} needs predict_proba")
        return Score(scoring, LEVELS, check_positive(loss_bound, "loss_bound", least=1e-3, most=1e3), True, classes)
    low, high = check_bounds(bounds_y, "bounds_y", "the targets")
    if low.ndim:
        raise ValueError("bounds_y must be one pair of numbers")
    width = float(high - low)
    unit = width**2 if scoring == "neg_mean_squared_error" else width
    return Score(scoring, LEVELS, unit, True, bounds=(float(low), float(high)))


def _label_weights(label_weights: Any, classes: NDArray | None) -> NDArray[np.int64]:
    labels = [] if classes is None else classes.tolist()
    if not isinstance(label_weights, Mapping) or set(label_weights) != set(labels):
        raise ValueError(
            "scoring='balanced_accuracy' needs label_weights: a dict with a public weight for each label, for instance "
            "one over its publicly known share. The shares in the data are private"
        )
    weights = [
        check_positive(label_weights[label], f"the weight of {label!r}", least=1e-6, most=1e6) for label in labels
    ]
    return np.maximum(1, np.rint(LEVELS * np.array(weights) / max(weights))).astype(np.int64)


def check_metric(metric: object, names: tuple[str, ...]) -> str:
    """Return the metric if it is one of the names."""
    return check_choice(metric, "metric", names)

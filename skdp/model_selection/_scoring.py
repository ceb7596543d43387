r"""Scores with bounded sensitivity: sums over records of integers between 0 and a public number.

Theorem. Let the gain of a record be an integer in :math:`[0, G]` that depends on the record and on a model which does
not depend on the record. Adding a record raises the sum of gains by between 0 and :math:`G`, for any other records.

Every score here is such a sum: the number of correct labels (:math:`G = 1`), the number of correct labels with public
weights, and the clipping bound minus the clipped loss. Each loss is rounded to a lattice, so that sums are exact.

Scores without such a form are refused. The area under the ROC curve compares pairs of records, R^2 divides by the
variance of the others' targets, and a function from the user may do anything. Areas and F1 are computed from tables of
counts instead. A record adds 1 to at most one cell of such a table, and the table is released with noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import is_classifier, is_regressor

from ..checks.data import encode_labels
from ..checks.params import check_bounds, check_integer, check_positive, real_number, shown
from ..checks.silence import silence
from ..mechanisms import Mechanism, restarted
from ..release.blocks import attempt, isolated_process_state
from ..release.estimates import Around, Law, Quotient, combination
from ._stateless import is_exact
from ._steps import take

Gains = NDArray[np.int64]

CLASSIFICATION = ("accuracy", "balanced_accuracy", "neg_log_loss")
REGRESSION = ("neg_mean_absolute_error", "neg_mean_squared_error")

#: Tables, and scores that are computed from a released histogram or confusion matrix.
TABLES = ("confusion_matrix", "histogram")
CURVES = ("roc_auc", "average_precision")
_COUNTED = ("f1", "f1_macro", "recall", "recall_macro")
FROM_TABLES = (*CURVES, *_COUNTED)

#: Largest number of bins, so that a wrong number is refused at once.
MOST_BINS = 10**6

#: Number of bins of equal width of a histogram, and of bins of nearly equal counts for an area.
_BINS, AREA_BINS = 10, 32

#: Ties in bins lower an area by a power of the width of the bins: the second power, or the first power. This weight of
#: the difference between the area of bins and that of pairs of bins estimates the effect.
TIES = {"roc_auc": 1 / 3, "average_precision": 1.0}

#: Edges from which those of an area are chosen. They are dense in log-odds around 0, because models with strong
#: regularisation estimate probabilities near 1/2, and reach to the largest double below 1.
_CENTRE, _FARTHEST, _N_FINE = 1e-4, 36.0, 2**14

#: Number of levels of a clipped loss, and of class weights.
LEVELS = 2**12

#: A record apart adds the largest gain over this number to a further sum.
_APART = 16


@dataclass(frozen=True)
class Constant:
    """A model that predicts the same label or number for each row."""

    value: Any

    def predict(self, X: Any) -> NDArray:
        return np.full(X.shape[0], self.value)


@dataclass(frozen=True)
class Score:
    """A bounded score: a sum of integer gains of records, or its difference to the score of a baseline."""

    name: str
    most: int  # Largest gain of one record.
    unit: float  # Score of a gain of `most`.
    loss: bool  # Whether the score is minus the missing part of the gain.
    classes: NDArray | None = None
    weights: NDArray[np.int64] | None = None  # Largest gain of a record of each label.
    bounds: tuple[float, float] | None = None  # Bounds of targets of a regression.
    baseline: Any = None  # A model whose gains are subtracted.

    def released(self) -> Score:
        """Return the score with sums that are fine enough for the parts that records apart add."""
        return replace(self, most=max(self.most, _APART))

    @property
    def apart(self) -> int:
        """What a record apart adds to a further sum."""
        return self.most // _APART

    def moved(self, norm: int) -> float:
        """Return what one record adds to all sums, at most, in L1 or L2 norm."""
        return float(self.most + self.apart) if norm == 1 else math.hypot(self.most, self.apart) * (1 + 2.0**-50)

    @property
    def shape(self) -> tuple[int]:
        """Shape of the sums of `_parts_of`."""
        return (2 if self.baseline is None else 3,)

    def gains(self, model: Any, X: Any, y: NDArray) -> Gains:
        """Return the gain of each row, between 0 and `most`, as a function of the row and of the model only."""
        # If the fit of a model failed, the model is None and its gain is 0. `y` holds positions in `classes`
        # (-1 for other labels), or targets.
        return np.clip(self._gains(model, X, y), 0, self.most)

    def _gains(self, model: Any, X: Any, y: NDArray) -> Gains:
        """Return the gains, and -1 for a row that the model refuses."""
        if model is None:
            return np.zeros(len(y), dtype=np.int64)
        method = self._gains_by_probability if self.name == "neg_log_loss" else self._gains_by_prediction
        with silence(), isolated_process_state(0):
            return of_each_row(lambda rows, targets: method(model, rows, targets), X, y, is_exact(model))

    def largest(self, y: NDArray) -> Gains:
        """Return the gain of each row from a perfect model."""
        if self.weights is None:
            return np.full(len(y), self.most, dtype=np.int64)
        return np.where(y >= 0, self.weights[y], 0)

    def _gains_by_prediction(self, model: Any, X: Any, y: NDArray) -> Gains:
        # Some libraries predict a column. Other shapes are refused.
        predicted = np.asarray(model.predict(X)).reshape(y.shape)
        if self.classes is not None:
            correct = (encode_labels(predicted, self.classes) == y) & (y >= 0)
            return correct * self.largest(y)
        assert self.bounds is not None
        low, high = self.bounds
        error = np.abs(np.clip(np.nan_to_num(predicted, nan=low), low, high) - np.clip(y, low, high))
        share = error / (high - low)
        return self._remainder(share**2 if self.name == "neg_mean_squared_error" else share)

    def _gains_by_probability(self, model: Any, X: Any, y: NDArray) -> Gains:
        assert self.classes is not None
        estimated = np.asarray(model.predict_proba(X), dtype=np.float64)
        columns = encode_labels(np.asarray(model.classes_), self.classes)
        table = np.zeros((len(y), len(self.classes) + 1))
        table[:, columns] = np.nan_to_num(estimated, nan=0.0)
        # Labels that are not in the set have a probability of 0.
        table[:, -1] = 0.0
        loss = -np.log(np.maximum(table[np.arange(len(y)), y], np.finfo(float).tiny))
        return self._remainder(np.clip(loss / self.unit, 0.0, 1.0))

    def _remainder(self, share: NDArray[np.float64]) -> Gains:
        return self.most - np.rint(share * self.most).astype(np.int64)

    def tally(self, model: Any, X: Any, y: NDArray) -> Gains:
        """Return the sums, and those of records apart: without a declared target, and refused by the model."""
        gains, undeclared = self._gains(model, X, y), is_undeclared(y, self.bounds)
        refused = (gains < 0) & ~undeclared
        sums = [part.sum() for part in self._parts_of(np.clip(gains, 0, self.most), X, y)]
        return np.array([*sums, self.apart * undeclared.sum(), self.apart * refused.sum()])

    def _parts_of(self, gains: Gains, X: Any, y: NDArray) -> list[Gains]:
        """Divide the largest gain of each row into its gain and a rest, or into more and less than by the baseline."""
        parts = [gains]
        if self.baseline is not None:
            more = gains - self.gains(self.baseline, X, y)
            parts = [np.maximum(more, 0), np.maximum(-more, 0)]
        return [*parts, self.largest(y) - np.sum(parts, axis=0)]

    @property
    def least(self) -> int:
        """What a record with a declared target adds to the sums, at least."""
        return self.most if self.weights is None else int(self.weights.min())

    @property
    def elsewhere(self) -> tuple[bool, bool]:
        """Whether records of each kind apart are missing from the sums. Labels without a weight are."""
        return self.weights is not None, False

    def value(self, sums: Any) -> float:
        """Return the score from exact or noisy sums of the parts. NaN unless their total is positive."""
        gained, *less, _ = parts = [float(each) for each in sums]
        if sum(parts) <= 0:
            return math.nan
        share = min(max((gained - sum(less)) / sum(parts), -1.0 if less else 0.0), 1.0)
        return self.unit * (share - 1.0) if self.loss and not less else self.unit * share


def with_baseline(measure: Score | Table, baseline: Any) -> Score:
    """Return the score as a difference to that of a baseline: a model, a label or a number."""
    if not isinstance(measure, Score):
        names = ", ".join(map(repr, (*CLASSIFICATION, *REGRESSION)))
        raise ValueError(f"baseline needs a metric that is a mean over records: {names}, got {measure.metric!r}")
    if not hasattr(baseline, "predict"):
        if measure.classes is None:
            baseline = real_number(baseline, "baseline")
        elif np.ndim(baseline) or baseline not in measure.classes.tolist():
            raise ValueError(f"baseline must be a fitted model or a label in classes, got {shown(baseline)}")
        baseline = Constant(baseline)
    elif is_classifier(baseline) != (measure.classes is not None):
        raise ValueError("baseline must be a classifier if estimator is one, and a regressor if estimator is one")
    elif measure.classes is not None:
        known = np.ravel(getattr(baseline, "classes_", measure.classes)).tolist()
        if set(measure.classes.tolist()).isdisjoint(known):
            raise ValueError("baseline has none of the labels in classes")
    if measure.name == "neg_log_loss" and not hasattr(baseline, "predict_proba"):
        raise ValueError("baseline needs predict_proba for the metric 'neg_log_loss'")
    return replace(measure, baseline=baseline)


def is_undeclared(y: NDArray, bounds: tuple[float, float] | None = None) -> NDArray[np.bool_]:
    """Tell which targets are beyond the bounds, or which positions of labels stand for other labels."""
    return y < 0 if bounds is None else (y < bounds[0]) | (y > bounds[1])


def of_each_row(method: Callable[[Any, NDArray], Gains], X: Any, y: NDArray, exact: bool) -> Gains:
    """Return the method's integer for each row, and -1 for a row that it refuses, without an effect on other rows."""
    # Without `exact`, the last bit of a row can depend on the rows around it, so that each row is passed alone. Draws
    # from global generators must not depend on the number of rows either.
    if len(y) == 0:
        return np.zeros(0, dtype=np.int64)
    if exact or len(y) == 1:
        # An array of another shape is an error as well.
        gains = attempt(lambda: np.asarray(method(X, y), dtype=np.int64).reshape(y.shape), 0, restarted)
        if gains is not None or len(y) == 1:
            return np.full(1, -1) if gains is None else gains
    half = len(y) // 2
    parts = np.arange(half), np.arange(half, len(y))
    return np.concatenate([of_each_row(method, take(X, rows), y[rows], exact) for rows in parts])


def make_score(
    scoring: str,
    estimator: Any,
    classes: NDArray | None,
    label_weights: Any = None,
    loss_bound: float = 5.0,
    bounds_y: Any = None,
) -> Score:
    """Return the score of a name by `check_metric`."""
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


@dataclass(frozen=True)
class Table:
    """Counts of records, each in at most one cell, and the score that is computed from them."""

    metric: str
    shape: tuple[int, ...]
    classes: NDArray
    edges: NDArray | None  # Edges of the bins of a histogram, or None for a confusion matrix.

    #: What one record adds to a cell, or to a number of records apart.
    most = least = apart = 1

    #: Records of each kind apart are in no cell.
    elsewhere = True, True

    def moved(self, norm: int) -> float:
        """Return what one record changes, in L1 or L2 norm."""
        return 1.0

    @property
    def is_area(self) -> bool:
        return self.metric in CURVES

    def released(self) -> Table:
        """Return the table, or the table of an area in bins from which its own bins will be made."""
        if not self.is_area:
            return self
        farthest = math.asinh(_FARTHEST / _CENTRE)
        edges = expit(_CENTRE * np.sinh(np.linspace(-farthest, farthest, _N_FINE + 1)))
        edges[[0, -1]] = 0.0, 1.0
        return replace(self, shape=(_N_FINE, 2), edges=edges)

    def merged(self, counts: NDArray, positions: NDArray[np.intp]) -> tuple[Table, NDArray]:
        """Return the table with some of its edges only, and the counts of one or more tables in its bins."""
        assert self.edges is not None
        bounds = np.concatenate([[0], positions, [self.shape[0]]])
        below = np.insert(np.cumsum(counts, axis=-2), 0, 0, axis=-2)
        table = replace(self, shape=(len(bounds) - 1, 2), edges=self.edges[bounds])
        return table, np.diff(below[..., bounds, :], axis=-2)

    def area(self, counts: NDArray[np.float64]) -> tuple[float, float]:
        """Return the area under a curve if rows of a bin count as ties, and an estimate of what ties have removed."""
        area = _area(counts, self.metric)
        return area, TIES[self.metric] * (area - _area(pairs_of_bins(counts), self.metric))

    def tally(self, model: Any, X: Any, y: NDArray) -> NDArray[np.int64]:
        """Count the rows in each cell, and records apart: without a declared label, and without a valid prediction."""
        # `y` holds positions of labels, and -1 for others. A model whose fit failed is None, and refuses every row.
        size = math.prod(self.shape)

        def cells(rows: Any, labels: NDArray) -> NDArray[np.int64]:
            if self.edges is None:
                column = encode_labels(np.asarray(model.predict(rows)).reshape(labels.shape), self.classes)
                return np.where(column >= 0, labels * self.shape[1] + column, -1)
            second = int(np.argmax(encode_labels(np.asarray(model.classes_), self.classes)))
            estimated = np.asarray(model.predict_proba(rows), dtype=np.float64)[:, second]
            line = np.searchsorted(self.edges, np.nan_to_num(estimated), side="right") - 1
            return 2 * line.clip(0, self.shape[0] - 1) + labels

        positions = np.full(len(y), -1)
        if model is not None:
            with silence(), isolated_process_state(0):
                positions = of_each_row(cells, X, y, is_exact(model))
        refused = size + 1 if self.metric in TABLES else self._error(y)
        positions = np.where(is_undeclared(y), size, np.where(positions < 0, refused, positions))
        return np.bincount(positions, minlength=size + 2)

    def cells(self, model: Any, X: Any, y: NDArray) -> NDArray[np.int64]:
        """Count the rows in each cell."""
        return self.tally(model, X, y)[:-2].reshape(self.shape)

    def _error(self, labels: NDArray) -> NDArray[np.int64]:
        """Return the cell of refused rows: no prediction, or the estimate that is farthest from the label."""
        n_rows, n_columns = self.shape
        if self.edges is None:
            return np.asarray(labels * n_columns + n_columns - 1, dtype=np.int64)
        return np.asarray(np.where(labels == 1, 0, n_rows - 1) * n_columns + labels, dtype=np.int64)

    def value(self, counts: NDArray) -> Any:
        """Return the table, or the score from the noisy counts. The score is NaN if it divides by 0."""
        if self.metric in TABLES:
            return counts
        with np.errstate(all="ignore"):
            if self.edges is not None:
                # Negative counts are kept, because an area of clipped counts would be biased.
                area, ties = self.area(counts.astype(np.float64))
                return min(max(area + ties, 0.0), 1.0)
            counts = np.maximum(counts, 0).astype(np.float64)
            if not counts.any():
                return math.nan
            # As in scikit-learn, the score of a label that does not occur is 0.
            true, correct = counts.sum(axis=1), np.diagonal(counts)
            if self.metric.startswith("f1"):
                scores = np.nan_to_num(2 * correct / (counts.sum(axis=0)[: len(counts)] + true))
            else:
                scores = np.nan_to_num(correct / true)
        return float(scores.mean() if self.metric.endswith("_macro") else scores[1])


def _area(counts: NDArray[np.float64], metric: str) -> float:
    """Return the area under a curve, from counts by increasing estimated probability. Rows of a bin count as ties."""
    negative, positive = counts[::-1].T
    if positive.sum() <= 0 or (metric == "roc_auc" and negative.sum() <= 0):
        return math.nan
    if metric == "roc_auc":
        below = negative.sum() - np.cumsum(negative)
        return float(positive @ (below + negative / 2)) / float(positive.sum() * negative.sum())
    return float(positive @ precisions(negative, positive)) / float(positive.sum())


def pairs_of_bins(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the counts in pairs of neighbouring bins."""
    return np.add.reduceat(counts, np.arange(0, len(counts), 2), axis=0)


def precisions(negative: NDArray[np.float64], positive: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the precision among the records of the first bins, for each number of bins."""
    true, false = np.cumsum(positive), np.cumsum(negative)
    return (true / np.maximum(true + false, 1.0)).clip(0.0, 1.0)


def make_table(metric: str, estimator: Any, classes: NDArray | None, n_bins: int | None) -> Table:
    """Return the table of a metric that is a table, or is computed from one."""
    assert classes is not None
    if metric in ("f1", "recall") and len(classes) != 2:
        raise ValueError(f"{metric!r} needs a classifier of two labels. '{metric}_macro' takes any number of labels")
    if metric in (*_COUNTED, "confusion_matrix"):
        # In the table of a score, the last column is for records without a prediction.
        n_columns = len(classes) + 1 if metric in _COUNTED else len(classes)
        return Table(metric, (len(classes), n_columns), classes, None)
    if n_bins is None:
        n_bins = AREA_BINS if metric in CURVES else _BINS
    edges = np.linspace(0.0, 1.0, check_integer(n_bins, "n_bins", least=2, most=MOST_BINS) + 1)
    if len(classes) != 2 or not hasattr(estimator, "predict_proba"):
        raise ValueError(f"{metric!r} needs a classifier of two labels with predict_proba")
    return Table(metric, (len(edges) - 1, 2), classes, edges)


def make_measure(
    scoring: str,
    estimator: Any,
    classes: NDArray | None,
    label_weights: Any,
    loss_bound: float,
    bounds_y: Any,
    n_bins: int | None,
) -> Score | Table:
    """Return the sum of gains, or the table, of a name by `check_metric`."""
    if scoring in (*TABLES, *FROM_TABLES):
        return make_table(scoring, estimator, classes, n_bins)
    return make_score(scoring, estimator, classes, label_weights, loss_bound, bounds_y)


def _label_weights(label_weights: Any, classes: NDArray | None) -> NDArray[np.int64]:
    labels = [] if classes is None else classes.tolist()
    if not isinstance(label_weights, Mapping) or set(label_weights) != set(labels):
        raise ValueError(
            "scoring='balanced_accuracy' needs label_weights: a dict with a public weight for each label, for instance "
            "one over its publicly known share. Without known shares, use 'recall_macro', from released counts"
        )
    weights = [
        check_positive(label_weights[label], f"the weight of {label!r}", least=1e-6, most=1e6) for label in labels
    ]
    return np.maximum(1, np.rint(LEVELS * np.array(weights) / max(weights))).astype(np.int64)


def check_metric(metric: object, estimator: Any, name: str = "metric") -> str:
    """Return the metric if the estimator can have it, or its default if it is None."""
    names = {"classifier": (*CLASSIFICATION, *FROM_TABLES), "regressor": REGRESSION}
    if name == "metric":
        names["classifier"] += TABLES
    kind = "classifier" if is_classifier(estimator) else "regressor" if is_regressor(estimator) else "other"
    of_kind = names.get(kind, ())
    if metric is None and of_kind:
        return of_kind[0]
    if metric is None:
        raise ValueError(f"estimator must be a classifier or a regressor, got {type(estimator).__name__}")
    if isinstance(metric, str) and metric in of_kind:
        return metric
    accepted = of_kind or (*names["classifier"], *REGRESSION)
    for other, known in names.items():
        if isinstance(metric, str) and metric in known:
            raise ValueError(
                f"{name}={metric!r} is for {other}s, and {type(estimator).__name__} is "
                f"{f'a {kind}' if of_kind else f'no {other}'}. Set {name} to one of {', '.join(map(repr, accepted))}"
            )
    text = metric.casefold() if isinstance(metric, str) else ""
    # Names are known by a part of them, and by the initials of their words.
    meant = [one for one in accepted if text and (text in one or text in "".join(word[0] for word in one.split("_")))]
    why = f" Do you mean {' or '.join(map(repr, meant))}?" if meant else ""
    if kind == "regressor" and text in ("r2", "r2_score"):
        why = " R^2 is 1 less the squared error over the variance of the targets, which skdp.stats.var releases."
    if callable(metric):
        why = " A function is refused, because the effect of one record on its result is not known."
    raise ValueError(
        f"{name} must be one of {', '.join(map(repr, accepted))} for {f'a {kind}' if of_kind else 'this model'}, got "
        f"{shown(metric)}.{why}"
    )


Array = NDArray[np.float64]

#: Up to this number of cells, the law of a sum of their noise is computed exactly.
_MOST_CELLS = 200


def spread_of(measure: Score | Table, released: NDArray, mechanism: Mechanism) -> tuple[Any, Any]:
    """Return the standard error by noise of a score or table, and the rule of its intervals."""
    # `released` holds the noisy sums or counts.
    if isinstance(measure, Score):
        # Sums are measured in the largest change by one record.
        unit = float(measure.most)
        top, bottom = np.zeros(len(released)), np.ones(len(released))
        top[0], top[1:-1] = 1.0, -1.0
        gained, every = float(top @ released) / unit, float(released.sum()) / unit
        least, record, shift = 0.0, None, -measure.unit if measure.loss else 0.0
        if measure.baseline is not None:
            # The square of a difference is at most its size. Where noise hides the sum of sizes, it is the noise.
            least, shift, sizes = -1.0, 0.0, np.array([1.0, 1.0, 0.0]) / unit
            sum_of_sizes = max(float(sizes @ released), math.sqrt(combination(mechanism, sizes).variance))
            mean = min(max(gained / max(every, 1.0), -1.0), 1.0)
            record = min(max(sum_of_sizes / max(every, 1.0) - mean**2, 0.0), 1 - mean**2)
        quotient = Quotient(
            *(gained, every, mechanism, top / unit, bottom / unit, record, least, 1.0), shift=shift, scale=measure.unit
        )
        return quotient.standard_error, quotient
    counts = np.maximum(released, 0).astype(np.float64)
    if measure.metric in TABLES:
        law = combination(mechanism, 1.0)
        return np.full(counts.shape, math.sqrt(law.variance)), Around(released, law, np.sqrt(counts), 0.0)
    value = measure.value(released)
    if math.isnan(value):
        # The counts hold no information, so that the interval is the whole range.
        return math.inf, Around(0.5, Law(normal=math.inf), 0.0, 0.0, 1.0)
    noise = math.sqrt(combination(mechanism, 1.0).variance)
    gradient = gradient_of(measure, counts if measure.edges is None else released.astype(np.float64), 3 * noise)
    if gradient.size <= _MOST_CELLS:
        law = combination(mechanism, gradient)
    else:
        # The noise in a linear combination of many counts is nearly normal.
        law = Law(normal=float(np.linalg.norm(gradient)) * noise)
    centred = gradient - (counts * gradient).sum() / counts.sum()
    sampling = math.sqrt(float((counts * centred**2).sum()))
    ties = 0.0
    if measure.is_area:
        ties = abs(measure.area(released.astype(np.float64))[1])
        pairs = float(np.prod(np.maximum(released.sum(axis=0), 1)))
        squares = len(released) * noise**2 / math.sqrt(2) / pairs
        law = replace(law, normal=math.hypot(law.normal, squares))
    return math.sqrt(law.variance), Around(value, law, sampling, 0.0, 1.0, allowance=ties)


def gradient_of(table: Table, counts: Array, least: float = 1.0) -> Array:
    """Return the derivatives of a score by the counts. A precision among fewer records than `least` changes less."""
    with np.errstate(all="ignore"):
        if table.edges is None:
            return np.nan_to_num(_gradient_of_confusion(table.metric, counts))
        pairs = _gradient_of_bins(table.metric, pairs_of_bins(counts), least).repeat(2, axis=0)[: len(counts)]
        weight = TIES[table.metric]
        return np.nan_to_num((1 + weight) * _gradient_of_bins(table.metric, counts, least) - weight * pairs)


def _gradient_of_bins(metric: str, counts: Array, least: float) -> Array:
    # By decreasing estimated probability.
    negative, positive = counts[::-1].T
    if metric == "roc_auc":
        below = negative.sum() - np.cumsum(negative) + negative / 2
        pairs = positive.sum() * negative.sum()
        value = float(positive @ below) / float(pairs)
        above = np.cumsum(positive) - positive / 2
        slopes = (above - value * positive.sum()) / pairs, (below - value * negative.sum()) / pairs
    else:
        slopes = _gradient_of_precision(negative, positive, max(least, 1.0))
    return np.stack(slopes, axis=1)[::-1]


def _gradient_of_precision(negative: Array, positive: Array, least: float) -> tuple[Array, Array]:
    true, false = np.cumsum(positive), np.cumsum(negative)
    precision = precisions(negative, positive)
    share = positive / true[-1]
    value = float(share @ precision)
    each = share / np.maximum(true + false, least) ** 2

    def later(slopes: Array) -> Array:
        return np.cumsum(slopes[::-1])[::-1]

    return -later(each * true), (precision - value) / true[-1] + later(each * false)


def _gradient_of_confusion(metric: str, counts: Array) -> Array:
    """Return the derivatives of F1 (2 correct / (true + predicted)) or of recall (correct / true)."""
    k = len(counts)
    predicted = counts.sum(axis=0)[:k] if metric.startswith("f1") else 0.0
    multiple = 2 if metric.startswith("f1") else 1
    totals = counts.sum(axis=1) + predicted
    weights = np.full(k, 1 / k) if metric.endswith("_macro") else np.array([0.0, 1.0])
    # A label without any count has a score of 0, which does not change at once.
    shares = np.where(totals > 0, weights / totals, 0.0)
    loss = np.nan_to_num(shares * (multiple * np.diagonal(counts) / totals))
    gradient: Array = np.zeros(counts.shape) - loss[:, None]
    if metric.startswith("f1"):
        gradient[:, :k] -= loss
    gradient[np.arange(k), np.arange(k)] += multiple * shares
    return gradient

"""What an audit compares if no statistic is given: the numbers that a model holds, and how well it fits a record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import is_classifier, is_clusterer, is_regressor

from ..checks.silence import parts_of
from ..mechanisms import OneStream

# If a model has more numbers, the others are added up in so many sums.
MOST_NUMBERS = 4096


def numbers_of(model: Any) -> tuple[NDArray[np.float64], frozenset[str]]:
    """Return the numbers in a fitted model or a result, and the names of the attributes that cannot be read."""
    # The parameters of an estimator are left out. Text counts as a checksum, and objects are taken apart as by pickle.
    if model is None:
        raise ValueError("the statistic, or the audited function, must return numbers, and returned None")
    reader = _Reader()
    if hasattr(model, "get_params"):
        reader.read_fitted(model)
    else:
        reader.read(model)
    numbers = np.array(reader.numbers, dtype=np.float64)
    if len(numbers) > MOST_NUMBERS:
        rest = numbers[MOST_NUMBERS:]
        rest = np.pad(rest, (0, -len(rest) % MOST_NUMBERS)).reshape(-1, MOST_NUMBERS)
        with np.errstate(invalid="ignore", over="ignore"):
            numbers = np.concatenate([numbers[:MOST_NUMBERS], rest.sum(axis=0)])
    return numbers, frozenset(reader.unread)


class _Reader:
    """Visit objects, each of them once."""

    def __init__(self) -> None:
        self.numbers: list[float] = []
        self.unread: set[str] = set()
        self._attribute = "the result"
        # Objects are kept alive, so that no other object gets their number.
        self._seen: dict[int, Any] = {}

    def read(self, value: Any) -> None:
        """Append the numbers in an object of any type."""
        if isinstance(value, np.ndarray):
            self._read_array(value)
        elif isinstance(value, float | int | np.number | np.bool_):
            self._read_number(value)
        elif value is None or isinstance(value, str):
            self._read_text(str(value))
        elif id(value) not in self._seen:
            self._seen[id(value)] = value
            self._read_object(value)

    def read_fitted(self, model: Any) -> None:
        """Append the numbers that a fit has left in an estimator, and in the estimators among its parameters."""
        # Parameters are public, but pipelines fit their steps in place.
        if id(model) in self._seen:
            return
        self._seen[id(model)] = model
        parameters = model.get_params(deep=False)
        for name, value in sorted(vars(model).items()):
            outer, self._attribute = self._attribute, name
            if name not in parameters:
                self.read(value)
            else:
                for step in parts_of(value):
                    self.read_fitted(step)
            self._attribute = outer

    def _read_all(self, values: Iterable[Any]) -> None:
        for value in values:
            self.read(value)

    def _read_number(self, value: Any) -> None:
        if isinstance(value, complex | np.complexfloating):
            self.numbers += [float(value.real), float(value.imag)]
            return
        try:
            self.numbers.append(float(value))
        except OverflowError:
            self._read_text(str(value))

    def _read_text(self, text: str) -> None:
        self.numbers.append(float(crc32(text.encode(errors="surrogatepass"))))

    def _read_array(self, array: NDArray) -> None:
        if array.dtype.kind in "mM":
            array = array.view(np.int64)
        if array.dtype.names is not None:
            self._read_all(array[name] for name in array.dtype.names)
        elif array.dtype.kind in "fiub" and not isinstance(array, np.ma.MaskedArray):
            self.numbers += array.astype(np.float64).ravel().tolist()
        else:
            self.read(array.tolist())

    def _read_object(self, value: Any) -> None:
        if isinstance(value, bytes | bytearray | memoryview):
            self.numbers.append(float(crc32(value)))
        elif isinstance(value, type | FunctionType | BuiltinFunctionType | ModuleType):
            self._read_text(getattr(value, "__qualname__", value.__name__))
            self._read_all(cell.cell_contents for cell in getattr(value, "__closure__", None) or ())
        elif isinstance(value, OneStream):
            pass  # It is the audit's own.
        elif hasattr(value, "get_params"):
            # It was made by the fit, and its parameters may depend on the data.
            self._read_all(value for _, value in sorted(vars(value).items()))
        elif issparse(value):
            coo = value.tocoo()
            self._read_all((coo.shape, coo.row, coo.col, coo.data))
        elif hasattr(value, "to_numpy") and hasattr(value, "axes"):
            self._read_all((*(axis.to_numpy() for axis in value.axes), value.to_numpy()))
        elif isinstance(value, Mapping):
            self._read_all(entry for item in value.items() for entry in item)
        elif isinstance(value, Sequence):
            self._read_all(value)
        elif isinstance(value, Set):
            self._read_all(sorted(value, key=repr))
        elif hasattr(value, "__array__"):
            self._read_array(np.asarray(value))
        else:
            self._read_state(value)

    def _read_state(self, value: Any) -> None:
        attributes = getattr(value, "__dict__", {})
        try:
            reduced: Any = value.__reduce_ex__(4)
        except Exception:
            self.unread.add(self._attribute)
            self.read(attributes)
            return
        if isinstance(reduced, str):
            self._read_text(reduced)
            return
        _, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
        self.read(arguments)
        if state is not None:
            self.read(state)
        self._read_all(entry for entries in (items, pairs) for entry in entries or ())
        if not isinstance(state, dict) or state.keys() != attributes.keys():
            self.read(attributes)


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

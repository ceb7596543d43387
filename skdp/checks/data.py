"""Validate X and y by the checks of scikit-learn, with messages that hold no values of the data.

The conversion of sparse rows to dense rows depends on public facts only.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from ..exceptions import PrivacyAssumptionWarning
from ..parts.arrays import PartedArray, is_collection, mapped, rowwise
from .params import shown, warn
from .silence import silence

#: Types of rows for estimators that compute with them.
FLOATS = (np.float64, np.float32)

#: Types for estimators that read each entry once. Codes of categories are often integers, and are not copied.
NUMBERS = (*FLOATS, np.int64, np.int32, np.int16, np.int8)

# Kinds of labels, by dtype. Only labels of the same kind can be compared.
LABEL_KINDS = {"b": "number", "i": "number", "u": "number", "f": "number", "U": "text", "S": "bytes"}

# Doubles represent all integers below this number.
_MOST_NUMBER = 2**53
_INFINITE = (float("inf"), -float("inf"))

# Start of messages about types that do not depend on single entries.
_ABOUT_TYPES = ("Sparse", "np.matrix", "Feature names", "Expected sequence", "Singleton", "X must hold", "y must hold")
_NO_NUMBER = "the data hold entries that are no numbers: float() argument must be a string or a real number"

_TIMES = (np.datetime64, np.timedelta64)
_MISSING_TYPES = ("NoneType", "NAType", "NaTType", "MaskedConstant")

# Their messages about data are known.
_LIBRARIES = ("skdp", "sklearn", "numpy", "scipy", "pandas", "polars", "pyarrow", "narwhals")
_NO_TIMES = "Count the time since a public date, in a unit of your choice"

_LEAVE_OUT = (
    "Leave out records with missing values, or put in a public constant. A value of other records would be a release."
)

_ENCODE = (
    "Encode columns of text by a public list of categories, for instance with OneHotEncoder(categories=[...], "
    'handle_unknown="ignore", sparse_output=False), or use an estimator that has the parameter categories.'
)

#: Advice about rows without a label or target.
NO_TARGET = "Drop the rows without y, in pandas by X[y.notna()] and y[y.notna()]. This uses no budget."

#: The message about text in place of numbers in a statistic or a target.
NO_NUMBERS = "the {} hold text that cannot be read as numbers. Convert it, and dates to days since a public date"

_TEXT_AS_TARGET = "y holds text that cannot be read as numbers. Convert it, or use a classifier (DPAdditiveClassifier)"

#: The warning about labels that nobody declared.
LABELS_OF_DATA = (
    "classes=None: the labels that occur in y are taken to be public knowledge. Declare the label set with "
    "classes=... on the estimator, so that no rare label is disclosed"
)

_DECLARE = "Declare the labels as y holds them, with classes or with the target of the schema."

_DECLARE_FOR_PARTS = "a collection of Dask needs declared classes: pass classes=[...], or a schema with a target"

# Number of columns that a message names.
_MOST_NAMES = 8


def validate_quietly(estimator: Any, X: Any, y: Any = "no_validation", *, times: bool = False, **kwargs: Any) -> Any:
    """Call scikit-learn's validate_data, and keep values of the data out of its messages."""
    # Values are checked to be finite even if scikit-learn is configured to assume it, because bounds hold for numbers
    # only. NumPy's warnings during this check would depend on the values. With `times`, points in time and durations
    # may pass, and must not be read as numbers. Sparse rows become canonical CSR arrays if the estimator accepts them,
    # and are otherwise made dense.
    if isinstance(X, PartedArray):
        data = (X,) if isinstance(y, str) else (X, y)
        return _in_parts(validate_quietly, estimator, *data, times=times, **kwargs)

    checked, rows = estimator, X
    if hasattr(estimator, "_encoded"):
        rows = estimator._encoded(X, reset=kwargs.get("reset", True))
    if rows is not X:
        # Rows were encoded by a schema. The estimator stores the number and names of the table's columns.
        X, checked, kwargs = rows, copy(estimator), {**kwargs, "reset": True}

    if isinstance(y, str) and _is_as_expected(checked, X, **kwargs):
        return X

    takes_sparse = getattr(estimator, "_takes_sparse", False) and "accept_sparse" not in kwargs
    if takes_sparse:
        kwargs = _with_sparse_rows(kwargs)

    def validate() -> Any:
        rows = X
        if is_sparse(X):
            check_dimensions(X)
            if not takes_sparse and "accept_sparse" not in kwargs:
                rows = dense_rows(X, type(estimator).__name__)
            elif issparse(X) and X.format == "coo":
                rows = ordered_by_row(X)
        if not times:
            # Data that are not converted to numbers here may hold text.
            _refuse_odd(rows, "X", text=kwargs.get("skip_check_array", False))
        if not isinstance(y, str):
            _refuse_odd(y, "y")
        read = validate_data(checked, rows, y, **kwargs)
        if not takes_sparse:
            return read
        rows, *targets = read if isinstance(read, tuple) else (read,)
        rows = canonical_rows(rows) if issparse(rows) else rows
        return (rows, *targets) if targets else rows

    return _quietly(validate, X)


def _is_as_expected(
    estimator: Any,
    X: Any,
    *,
    reset: bool = True,
    dtype: Any = None,
    ensure_min_samples: int = 1,
    ensure_all_finite: bool = True,
    **others: Any,
) -> bool:
    """Tell whether X is an array that scikit-learn, whose checks take longer, would accept and return as it is."""
    if reset or others or type(X) is not np.ndarray or X.ndim != 2 or hasattr(estimator, "feature_names_in_"):
        return False
    if X.dtype not in (FLOATS if isinstance(dtype, list) else (dtype,)):
        return False
    if len(X) < ensure_min_samples or X.shape[1] != getattr(estimator, "n_features_in_", None):
        return False
    with np.errstate(all="ignore"):
        # A sum of finite numbers may be infinite. Then scikit-learn looks at each of them.
        return not ensure_all_finite or bool(np.isfinite(X.sum()))


def of_valid_rows(compute: Callable[[Any], Any], estimator: Any, X: Any) -> Any:
    """Return a function of rows that a fitted estimator validates.

    The function raises FloatingPointError for a row that is not finite, so that no pass over the rows looks for one.
    """
    validate = partial(validate_quietly, estimator, X, dtype=[np.float64, np.float32], reset=False)
    try:
        return compute(validate(ensure_all_finite=is_sparse(X)))
    except FloatingPointError:
        validate()
        raise


def _with_sparse_rows(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return arguments of validate_data that admit sparse rows."""
    if "validate_separately" in kwargs:
        of_rows, of_targets = kwargs["validate_separately"]
        return {**kwargs, "validate_separately": (_with_sparse_rows(of_rows), of_targets)}
    return {**kwargs, "accept_sparse": "csr"}


def reads_table(estimator: Any, reset: bool) -> bool:
    """Tell whether an estimator encodes its rows by a schema."""
    return hasattr(estimator, "_used") and estimator._used(reset) is not None


def _in_parts(validate: Callable[..., Any], estimator: Any, *data: PartedArray, **options: Any) -> Any:
    """Validate columns and types here, without rows, and the rows of each part in its place."""
    without_rows = validate(estimator, *(array.meta for array in data), **options)
    metas = without_rows if isinstance(without_rows, tuple) else (without_rows,)
    arrays = metas[: len(data)]
    reader = estimator._column_reader(options.get("reset", True))
    validate_part = partial(validate, reader, **{**options, "reset": False})
    types = tuple(array.dtype for array in arrays)
    validated = mapped(partial(_validated_part, validate_part, types), data, arrays)
    # The results after the arrays do not depend on rows.
    return (*validated, *metas[len(data) :]) if isinstance(without_rows, tuple) else validated[0]


def _validated_part(validate: Callable[..., Any], types: tuple[Any, ...], *data: Any) -> tuple[Any, ...]:
    if len({data_of_part.shape[0] for data_of_part in data}) > 1:
        raise ValueError("X and y must have the same number of rows")
    read = validate(*data)
    arrays = (read if isinstance(read, tuple) else (read,))[: len(data)]
    if any(array.dtype != dtype for array, dtype in zip(arrays, types, strict=True)):
        raise TypeError("a part has another type than the whole")
    return arrays


def known_labels(codes: Any) -> Any:
    """Return which labels are in the label set, for codes of `labelled_data`."""
    return rowwise(partial(operator.le, 0), codes)


def check_quietly(X: Any, text: str = "", **kwargs: Any) -> Any:
    """Call scikit-learn's check_array, and keep values out of its messages, as `validate_quietly` does.

    `text` is the message about text in place of numbers.
    """
    if isinstance(X, PartedArray):
        meta = check_quietly(X.meta, text, **kwargs)
        check = partial(check_quietly, text=text, **kwargs)
        return mapped(partial(_validated_part, check, (meta.dtype,)), (X,), (meta,))[0]

    def validate() -> Any:
        rows = X
        if is_sparse(X):
            check_dimensions(X)
            rows = X if "accept_sparse" in kwargs else dense_rows(X, "this method")
        _refuse_odd(rows, kwargs.get("input_name", "X"))
        return check_array(rows, **kwargs)

    return _quietly(validate, X, text)


def array_quietly(X: Any) -> Any:
    """Make an array of data without a shape, and keep the number of rows out of messages."""
    return X if hasattr(X, "shape") else _quietly(lambda: np.asarray(X))


def _quietly(validate: Callable[[], Any], X: Any = None, text: str = "") -> Any:
    # `text` is the message about text in place of numbers.
    try:
        with config_context(assume_finite=False), np.errstate(all="ignore"):
            return validate()
    except OverflowError:
        failure: Exception = ValueError("the data hold integers that are too large for doubles")
    except ValueError as error:
        message = _message_of_a_library(error)
        about = text if "could not convert" in message and text else _without_values(message, X)
        failure = ValueError(about if message else "the data cannot be read as numbers")
    except TypeError as error:
        message = _message_of_a_library(error)
        failure = TypeError(message if message.startswith(_ABOUT_TYPES) else _NO_NUMBER)
        if message.startswith("Sparse") and HOW_TO_DENSE not in message:
            failure = TypeError(f"{message} {HOW_TO_DENSE}")
        elif "NAType" in message:
            failure = ValueError(f"The data contain missing values (NaN, pandas.NA). {_LEAVE_OUT}")
    except MemoryError:
        # NumPy's message holds the number of rows.
        failure = MemoryError("the data do not fit into memory as numbers")
    except Exception:
        failure = ValueError("the data cannot be read as numbers")
    # It is raised outside the handler, so that the original message is not kept as the context.
    try:
        raise failure
    finally:
        # An error in its own traceback would keep the data in memory.
        del failure


def _message_of_a_library(error: Exception) -> str:
    """Return the message of an error, or none if an entry of the data raised it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))
    return str(error) if module.partition(".")[0] in _LIBRARIES else ""


def _refuse_odd(data: Any, name: str, *, text: bool = True) -> None:
    """Refuse entries that NumPy would convert to numbers although they are not numbers."""
    # Points in time and durations would become integers in their own unit, and masked entries would be shown. In a
    # list, one text would convert all numbers to text, so that one record determines how the others are read.
    if data is None:
        return
    _refuse_collection(data)
    entries = (
        data.flat if isinstance(data, np.ndarray) and data.dtype.kind == "O" else data if is_sequence(data) else ()
    )
    if np.ma.is_masked(data) or any(map(_is_masked, entries)):
        raise ValueError(f"Input {name} contains NaN or masked entries.")
    kinds = _kinds(data)
    if not text and is_sequence(data) and kinds & set("US"):
        raise ValueError("could not convert")
    if "O" in kinds and any(isinstance(entry, _TIMES) for entry in np.asarray(data).flat):
        raise TypeError(_NO_NUMBER)
    for kind in sorted(kinds & set("mM")):
        what = "timedelta64" if kind == "m" else "datetime64"
        raise TypeError(f"{name} must hold numbers, and has the dtype kind {kind!r} ({what}). {_NO_TIMES}")


def _is_masked(entry: Any) -> bool:
    """Tell whether an entry, or an entry of a row, is masked, of which NumPy would warn."""
    if issubclass(type(entry), list | tuple):
        return any(one is np.ma.masked for one in entry)
    return entry is np.ma.masked or (issubclass(type(entry), np.ma.MaskedArray) and np.ma.is_masked(entry))


def refuse_lazy(data: Any) -> None:
    """Refuse a table of Polars that has not been read."""
    if type(data).__name__ == "LazyFrame":
        raise TypeError("X must hold rows in memory, and got a LazyFrame of Polars: pass X.collect()")


def _refuse_collection(data: Any) -> None:
    refuse_lazy(data)
    if is_collection(data):
        # NumPy would compute all of its rows.
        raise TypeError("Sparse or dense rows in memory are needed here, and the data are a collection of Dask")


def _kinds(data: Any) -> set[str]:
    """Return the kinds of dtypes of an array, of the columns of a table, or of the array of other data."""
    dtypes: Any = getattr(data, "dtypes", None)
    columns: list[Any] = list(dtypes) if hasattr(dtypes, "__iter__") else [getattr(data, "dtype", None)]
    # The kind of categories is that of their values.
    columns = [getattr(getattr(dtype, "categories", None), "dtype", dtype) for dtype in columns]
    if not all(hasattr(dtype, "kind") for dtype in columns):
        columns = [np.asarray(data).dtype]
    return {str(dtype.kind) for dtype in columns}


def _columns_of_text(X: Any) -> str:
    """Name the columns of a table that may hold text, by their types, which are public."""
    if not hasattr(X, "columns"):
        return ""
    dtypes = list(X.schema.values()) if hasattr(X, "schema") else list(X.dtypes)
    numeric = [
        dtype.is_numeric() if hasattr(dtype, "is_numeric") else getattr(dtype, "kind", "O") in "fiub"
        for dtype in dtypes
    ]
    names = [shown(name) for name, good in zip(list(X.columns), numeric, strict=True) if not good]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f" (columns that are not of a numeric type: {', '.join(names[:_MOST_NAMES])}{more})" if names else ""


def _without_values(message: str, X: Any = None) -> str:
    """Remove values of the data, and their number, from a message of scikit-learn or NumPy."""
    if "could not convert" in message:
        return f"the data hold text that cannot be read as numbers{_columns_of_text(X)}. {_ENCODE}"
    if message.startswith("Complex data not supported"):
        return "Complex data not supported"
    if "inconsistent numbers of samples" in message:
        return "X and y must have the same number of rows"
    if "1d array" in message:
        return "y must be a 1d array"
    if "inhomogeneous" in message:
        return "rows must all have the same length"
    if "contains NaN" in message:
        return f"{message.splitlines()[0]} {NO_TARGET if message.startswith('Input y') else _LEAVE_OUT}"
    message = re.sub(r"array=.*?\nReshape", "Reshape", message, flags=re.DOTALL)
    return re.sub(r"shape=\(\d+, 0\)", "shape=(, 0)", message)


def regression_data(estimator: Any, X: Any, y: Any, *, reset: bool = True) -> tuple[NDArray, NDArray]:
    """Validate the data of a regressor, of any number of rows (also 0), with one or more columns of targets."""
    if isinstance(X, PartedArray):
        return _in_parts(regression_data, estimator, X, y, reset=reset)
    kinds = [np.float64, np.float32]
    separately: Any = (
        {"dtype": kinds, "ensure_min_samples": 0},
        {"dtype": kinds, "ensure_min_samples": 0, "ensure_2d": False},
    )
    _quietly(lambda: _refuse_odd(y, "y", text=False), text=_TEXT_AS_TARGET)
    if y is not None and _kinds(y) & set("OUS"):
        _quietly(lambda: check_array(y, **separately[1], ensure_all_finite=False), text=_TEXT_AS_TARGET)
    X, y = validate_quietly(estimator, X, y, reset=reset, validate_separately=separately)
    if y.ndim == 0 or (y.ndim == 2 and y.shape[1] == 0):
        raise ValueError("y must have one column or more, and one row for each row of X")
    if X.shape[0] != len(y):
        raise ValueError("X and y must have the same number of rows")
    return X, y


def single_target(y: NDArray) -> NDArray:
    """Return targets of one column as a vector, or refuse them without stating their number."""
    if isinstance(y, PartedArray):
        return rowwise(single_target, y)
    if y.ndim == 1 or (y.ndim == 2 and y.shape[1] == 1):
        return column_or_1d(y, warn=True)
    raise ValueError("y must be a 1d array")


def labelled_data(
    estimator: Any,
    X: Any,
    y: Any,
    classes: NDArray | None,
    dtypes: Sequence[type] = FLOATS,
    *,
    reset: bool = True,
) -> tuple[NDArray, NDArray[np.intp], NDArray]:
    """Validate the data of a classifier, and return rows, positions of labels in the label set, and that set."""
    # With declared classes, any number of rows is accepted, because a data set of one record and the empty one are
    # neighbours. A label that is not in the set has position -1, and its row is kept here, because a public number of
    # rows must not depend on labels. X keeps its type if it is one of `dtypes`. Without `reset`, classes must be
    # declared.
    if isinstance(X, PartedArray):
        if classes is None:
            raise ValueError(_DECLARE_FOR_PARTS)
        return _in_parts(labelled_data, estimator, X, y, classes=classes, dtypes=dtypes, reset=reset)
    if classes is None:
        X, y = validate_quietly(estimator, X, y, dtype=list(dtypes))
        y, classes = _quietly(partial(_occurring_labels, y))
        if len(classes) < 2:
            raise ValueError("y must hold at least 2 classes, got 1 class. Declare others that exist by classes=[...]")
        warn(LABELS_OF_DATA, PrivacyAssumptionWarning)
        return X, np.searchsorted(classes, y), classes
    if y is None:
        validate_quietly(estimator, X, y)
    X = validate_quietly(estimator, X, dtype=list(dtypes), ensure_min_samples=0, reset=reset)
    codes = encode_labels(labels_of(y), classes)
    if X.shape[0] != len(codes):
        raise ValueError("X and y must have the same number of rows")
    return X, codes, classes


def _occurring_labels(y: Any) -> tuple[NDArray, NDArray]:
    y = column_or_1d(y)
    # scikit-learn may warn about the number of distinct labels.
    with silence():
        check_classification_targets(y)
        return y, unique_labels(y)


def is_sequence(data: Any) -> bool:
    """Tell whether data are a sequence of separate entries, which NumPy would convert to one type for all of them."""
    return isinstance(data, Sequence) and not isinstance(data, str | bytes) and not hasattr(data, "__array__")


def labels_of(y: Any) -> NDArray:
    """Return labels as an array that keeps the type of each label."""
    # NumPy would convert all labels of a list to one type, so that one record determines how the others are read.
    _refuse_collection(y)
    if np.ma.is_masked(y) or (is_sequence(y) and any(map(_is_masked, y))):
        raise ValueError(f"y holds missing labels. {NO_TARGET}")
    if not is_sequence(y):
        array = np.asarray(y)
    elif any(issubclass(type(label), list | tuple | np.ndarray) for label in y):
        try:
            array = np.array(y, dtype=object)
        except Exception:
            array = np.empty((0, 0, 0))
    else:
        array = np.fromiter(y, dtype=object, count=len(y))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError("y must be a 1d array")
    if array.dtype.kind in "mM":
        raise TypeError("labels must be all text, or all numbers; write points in time as text")
    return array


def label_array(y: Any) -> NDArray:
    """Validate labels without rows: all text, or all finite numbers. There may be none."""
    # Numbers in a list are read as doubles, which hold integers below 2**53. Each larger one is left out separately.
    # NumPy would choose a type for all of them, so that one record determines how the others are read.
    array = labels_of(y)
    if array.dtype.kind in "OT":
        kinds = {label_key(label)[0] for label in array.tolist()}
        if len(kinds) > 1 or not kinds <= {"text", "bytes", "number"}:
            raise TypeError("labels must be all text, or all numbers")
        if kinds == {"number"}:
            array = np.array(
                [float(label) for label in array.tolist() if abs(label) < _MOST_NUMBER or label in _INFINITE]
            )
        else:
            array = np.array(array.tolist(), dtype=str if kinds == {"text"} else None)
    if array.dtype.kind not in LABEL_KINDS:
        raise TypeError("labels must be all text, or all numbers")
    if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
        raise ValueError("labels must not contain NaN or infinity")
    # Adding 0.0 removes the sign of zeros. Otherwise, one record might determine which zero is shown.
    return array + 0.0 if array.dtype.kind == "f" else array


def encode_labels(y: NDArray, classes: NDArray, advice: str = "") -> NDArray[np.intp]:
    """Return positions of labels in the sorted `classes`, or -1 for others. Errors about their type end with advice."""
    if y.size == 0:
        # An empty y may have any dtype.
        return np.empty(0, dtype=np.intp)
    kinds = LABEL_KINDS.get(y.dtype.kind), LABEL_KINDS.get(classes.dtype.kind)
    if None in kinds:
        return _encode_one_by_one(y, classes, advice)
    if kinds[0] != kinds[1]:
        raise TypeError(
            f"classes holds {kinds[1]} labels, and y holds {kinds[0]} labels. "
            f"{advice or _DECLARE + _coded(kinds, len(classes))}"
        )
    if y.dtype.kind == "f":
        if not np.all(np.isfinite(y)):
            raise ValueError(f"y must hold labels, and holds NaN or infinity. {NO_TARGET}")
        # The comparison is then the same as for single labels.
        y = y.astype(np.float64)
    codes = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    return np.where(classes[codes] == y, codes, -1)


def _coded(kinds: tuple[str | None, ...], n_classes: int) -> str:
    """Return the reason why labels of text may arrive as numbers."""
    if kinds != ("number", "text"):
        return ""
    codes = f"range({n_classes})" if n_classes > _MOST_NAMES else list(range(n_classes))
    return (
        " If it is inside another estimator: VotingClassifier, StackingClassifier, BaggingClassifier and "
        "cross_val_predict(method='predict_proba') of scikit-learn hand positions of labels to the estimators inside. "
        f"Set classes={codes} on these. OneVsRestClassifier and OneVsOneClassifier hand on 0 and 1: set classes=[0, 1] "
        "on theirs. The whole still predicts text"
    )


def _encode_one_by_one(y: NDArray, classes: NDArray, advice: str) -> NDArray[np.intp]:
    positions = {label_key(label): i for i, label in enumerate(classes.tolist())}
    keys = [label_key(label) for label in y.tolist()]
    if ("missing", None) in keys:
        raise ValueError(f"y holds missing labels. {NO_TARGET}")
    if keys and not {kind for kind, _ in keys} & {kind for kind, _ in positions}:
        numbers = {kind for kind, _ in keys} == {"number"} and {kind for kind, _ in positions} == {"text"}
        hint = _coded(("number", "text"), len(classes)) if numbers else ""
        raise TypeError(f"the labels in y are of another type than those in classes. {advice or _DECLARE + hint}")
    return np.array([positions.get(key, -1) for key in keys], dtype=np.intp)


def label_key(label: Any) -> tuple[str, Any]:
    """Return the kind of a label (text, bytes, number, missing or other) and its value, so that 1 is not "1"."""
    try:
        return _label_key(label)
    except Exception:
        # Reading the class or the value of an object may run any code.
        return "other", None


def _label_key(label: Any) -> tuple[str, Any]:
    if isinstance(label, _TIMES):
        # item() may return an integer.
        return ("missing" if np.isnat(label) else "other"), None
    if isinstance(label, np.floating):
        # item() does not convert np.longdouble.
        label = float(label)
    elif isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, str):
        return "text", label
    if isinstance(label, bytes):
        return "bytes", label
    if type(label).__name__ in _MISSING_TYPES or (isinstance(label, float) and label != label):
        return "missing", None
    return ("number", label) if isinstance(label, bool | int | float) else ("other", None)


#: Sparse rows with at most so many columns are made dense if an estimator computes with dense rows only.
MOST_DENSE_COLUMNS = 1000

#: How a pipeline makes dense rows.
HOW_TO_DENSE = (
    "In a pipeline, set sparse_output=False on OneHotEncoder and TableEncoder, and sparse_threshold=0 on "
    "ColumnTransformer."
)


def refuse_wide(X: Any, name: str) -> None:
    """Refuse sparse rows that have too many columns for the estimator `name`, which computes with dense rows."""
    if X.shape[1] > MOST_DENSE_COLUMNS:
        raise TypeError(
            f"Sparse rows are made dense by {name} if they have at most {MOST_DENSE_COLUMNS} columns: got "
            f"n_features={X.shape[1]}. {HOW_TO_DENSE}"
        )


def is_sparse(X: Any) -> bool:
    """Tell whether data are a sparse matrix or array, or a frame of pandas with sparse columns only."""
    return sparse.issparse(X) or (hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2 and hasattr(X, "sparse"))


def check_dimensions(X: Any) -> None:
    """Refuse sparse data that are no rows, without stating how many entries there are."""
    if X.ndim != 2:
        raise ValueError(f"Expected rows in two dimensions, got a sparse array of {X.ndim}. Reshape your data")


def dense_rows(X: Any, name: str) -> Any:
    """Return sparse rows as an array, or refuse them if they have too many columns."""
    refuse_wide(X, name)
    return X.toarray(order="C") if sparse.issparse(X) else X.sparse.to_dense()


def ordered_by_row(X: Any) -> Any:
    """Return a sparse array of coordinates as a CSR array in which duplicates keep their order."""
    # SciPy's conversion would add up duplicates.
    order = np.argsort(X.row, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(X.row, minlength=X.shape[0]))])
    return sparse.csr_array((X.data[order], X.col[order], ends), shape=X.shape)


def canonical_rows(X: Any) -> Any:
    """Return a copy of CSR rows as a CSR array: sorted, without duplicates and without stored zeros."""
    # The constructor copies flags from X, which may be wrong. Therefore only the parts are passed on.
    n_entries = int(X.indptr[-1])
    try:
        rows = sparse.csr_array((X.data[:n_entries], X.indices[:n_entries], X.indptr), shape=X.shape)
        rows.check_format(full_check=True)
    except Exception:
        rows = None
    if rows is None:
        # It is raised outside the handler, because SciPy's message may hold the number of rows.
        raise ValueError("X is no valid sparse matrix: its indices are out of bounds")
    with np.errstate(all="ignore"):
        # Two transpositions sort the entries, and keep the order of duplicates. A sort of each row would only take
        # place if there are unsorted rows, and could change that order. Then a record would affect the rounding of
        # others.
        rows = rows.tocsc().tocsr()
        rows.sum_duplicates()
    rows.eliminate_zeros()
    if not np.isfinite(rows.data).all():
        raise ValueError("Input X contains infinity or a value too large for dtype('float64').")
    return rows

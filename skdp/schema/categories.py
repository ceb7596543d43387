"""Declarations of users about columns without a schema: categorical columns, lists of categories, and bounds.

All of them are public. Messages name the parameter and its value.
"""

from __future__ import annotations

import numbers
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks.data import FLOATS, LABEL_KINDS, is_sequence, label_key, reads_table, validate_quietly
from ..checks.messages import shown
from ..checks.params import check_bounds, check_classes, check_integer, columns_of, is_list
from ..mechanisms import UNKNOWN

Array = NDArray[np.float64]


def named_columns(value: Any, name: str) -> tuple[int | None, tuple[Any, ...]]:
    """Return the length of a mask, or None without a mask, and the columns by position or by name."""
    message = f"{name} must be a sequence of positions or names of columns, or a mask"
    if value is None:
        return None, ()
    if isinstance(value, str | bytes):
        raise ValueError(message)
    # With dtype object, a position among names stays a number.
    array = np.asarray(value, dtype=object)
    if array.ndim != 1:
        raise ValueError(message)
    entries = array.tolist()
    if entries and all(isinstance(entry, bool | np.bool_) for entry in entries):
        return len(entries), tuple(i for i, entry in enumerate(entries) if entry)
    return None, tuple(column_name(entry, name) for entry in entries)


def column_name(value: Any, name: str) -> Any:
    """Return the position or name of a column, or refuse the value."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 0:
        raise ValueError(f"{name} must hold positions, from 0, or names of columns, got {shown(value)}")
    return int(value)


def check_n_categories(value: Any, n_columns: int, most: int) -> tuple[int, ...]:
    """Return the number of categories of each categorical column. Their sum is at most `most`."""
    if value is None:
        if n_columns == 0:
            return ()
        raise ValueError(
            "n_categories must be given: the number of categories of each categorical feature, from its code book. "
            "Categories are coded 0, 1, ... They are never read from the data, because that would be a release"
        )
    one_by_one = is_list(value)
    counts = list(value) if one_by_one else [value] * max(n_columns, 1)
    checked = tuple(check_integer(count, "n_categories", least=1) for count in counts)
    if not one_by_one:
        checked = checked[:n_columns]
    if len(checked) != n_columns:
        raise ValueError(
            f"n_categories must have one entry for each of the {n_columns} categorical features, got {len(checked)}"
        )
    if sum(checked) > most:
        raise ValueError(f"n_categories must add up to at most {most}")
    return checked


def check_pairs(value: Any) -> tuple[tuple[Any, Any], ...]:
    """Return the pairs of columns that `interactions` names."""
    if value is None:
        return ()
    if not is_list(value) or not all(is_list(pair) and len(pair) == 2 for pair in value):
        raise ValueError("interactions must be a list of pairs of columns, by position or name")
    return distinct_pairs((column_name(a, "interactions"), column_name(b, "interactions")) for a, b in value)


def distinct_pairs(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, Any], ...]:
    """Return pairs of different columns, or refuse them."""
    found = tuple(pairs)
    if any(a == b for a, b in found) or len({frozenset(pair) for pair in found}) < len(found):
        raise ValueError("interactions must be pairs of different columns, each pair once")
    return found


def positions_of(
    groups: Sequence[tuple[str, Sequence[Any]]], n_features: int, names: NDArray | None, named: bool = True
) -> dict[Any, int]:
    """Return the position of each column that a parameter names. A column may occur once."""
    # Without `named`, the names of X are unknown, and a name stands for any column that is left, because a plan does
    # not depend on which.
    known = {} if names is None else {name: i for i, name in enumerate(names)}
    taken = {column for _, columns in groups for column in columns if not isinstance(column, str)}
    free = iter([i for i in range(n_features) if i not in taken])
    found: dict[Any, int] = {}
    for parameter, columns in groups:
        for column in columns:
            place = (known.get(column) if named else next(free, None)) if isinstance(column, str) else column
            if place is None or place >= n_features:
                raise ValueError(f"{parameter} names the column {column!r}, which X does not have")
            found[column] = int(place)
    if len(set(found.values())) < len(found):
        raise ValueError(f"a column may occur once only in {' and '.join(name for name, used in groups if used)}")
    return found


def bounds_of_columns(
    bounds: Any, n_features: int, used: NDArray[np.intp], numeric: NDArray[np.intp]
) -> tuple[Array, Array]:
    """Return lower and upper bounds of the columns in `used`."""
    # `bounds` may be two numbers, or two sequences for all columns, for the numeric ones (`used` is among them), or for
    # those in `used`.
    if len(used) == 0:
        return np.empty(0), np.empty(0)
    lower, upper = check_bounds(bounds, "bounds", "the numeric features")
    if lower.ndim and len(lower) in (len(used), len(numeric)):
        own = slice(None) if len(lower) == len(used) else np.searchsorted(numeric, used)
    else:
        lower, upper = columns_of((lower, upper), "bounds", n_features)
        own = used
    return lower[own], upper[own]


Integers = NDArray[np.int64]

_MOST = 10**6

_TRUTHS = {"true": True, "false": False}

# PyArrow reads these as numbers of 64 bits.
_HEXADECIMAL = re.compile("0[xX][0-9a-fA-F]{1,16}")


@dataclass(frozen=True, eq=False)
class Categories:
    """The categories of one column, in the user's order, and in sorted order."""

    values: NDArray
    ascending: NDArray
    order: NDArray[np.intp]
    coded: bool = False  # Whether the values are 0, 1, ...

    @classmethod
    def codes(cls, size: int) -> Categories:
        """Return categories that are coded 0, 1, ..."""
        values = np.arange(size)
        return cls(values, values, values, coded=True)

    @property
    def size(self) -> int:
        return len(self.values)

    def cells(self, column: NDArray) -> NDArray[np.intp]:
        """Return the positions of entries in `values`. Other entries get the number of categories."""
        if self.coded and column.dtype.kind in "if":
            return cells_of_codes(column, np.intp(self.size))
        found = self.encode(column)
        return np.where(found == UNKNOWN, self.size, found).astype(np.intp, copy=False)

    def encode(self, column: NDArray) -> Integers:
        """Return the positions of entries in `values`, or -1 for an entry in no category."""
        # Each entry is read separately and none is refused, because a refusal would disclose it. A number is compared
        # by its value only, even if it was rounded to single precision or written as text, because its type depends on
        # other entries.
        kind, own = (LABEL_KINDS.get(array.dtype.kind) for array in (column, self.ascending))
        if column.dtype.kind in "mM":
            return np.full(len(column), UNKNOWN, dtype=np.int64)
        if kind == own == "number":
            if column.dtype.kind == "f":
                with np.errstate(all="ignore"):
                    column = column.astype(np.float64)
            codes = self._find(self.ascending, column)
            if not np.array_equal(self._singles, self.ascending):
                codes = np.where(codes == UNKNOWN, self._find(self._singles, column), codes)
            return codes
        positions = self._positions()
        if own == "text" and kind in ("number", "text") and all(key[0] == "text" for key in positions):
            # There are no numbers among the categories.
            if kind == "text":
                return self._find(self.ascending, column)
            return np.full(len(column), UNKNOWN, dtype=np.int64)
        return np.array([self._position(entry, positions) for entry in column.tolist()], dtype=np.int64)

    def _positions(self) -> dict[tuple[str, Any], int]:
        """Map the keys by which categories are compared to their positions."""
        labels = self.values.tolist()
        positions = {key_of(label): i for i, label in enumerate(labels)}
        if len(positions) < len(labels):
            # "7" and "007" are two categories, and neither is the number 7.
            return {label_key(label): i for i, label in enumerate(labels)}
        numbers = [
            (value, i) for (kind, value), i in positions.items() if kind == "number" and isinstance(value, float)
        ]
        rounded = [float(_single(np.array(value))) for value, _ in numbers]
        times = Counter(rounded)
        for single, (_, i) in zip(rounded, numbers, strict=True):
            if times[single] == 1:
                positions.setdefault(("number", single), i)
        return positions

    def holds_other_types(self, column: NDArray) -> bool:
        """Tell whether an entry is text where the categories are numbers, or a number where they are text."""
        own = LABEL_KINDS.get(self.ascending.dtype.kind) or _kind_of(self.ascending.tolist()[0])
        kind = LABEL_KINDS.get(column.dtype.kind)
        if kind == "number" and own != "number":
            return not bool(np.all(np.isnan(column)))
        if kind is not None:
            return kind != own and len(column) > 0
        if column.dtype.kind in "mM":
            return False
        return not {_kind_of(entry) for entry in column.tolist()} <= {own, None}

    @property
    def _singles(self) -> NDArray:
        """The values in single precision. Values that are rounded to the same number are not rounded."""
        if self.ascending.dtype.kind != "f":
            return self.ascending
        rounded = _single(self.ascending)
        same = np.append(rounded[1:] == rounded[:-1], False)
        return np.where(same | np.append(False, same[:-1]), self.ascending, rounded)

    def _find(self, ascending: NDArray, column: NDArray) -> Integers:
        places = np.searchsorted(ascending, column).clip(max=len(self.values) - 1)
        return np.where(ascending[places] == column, self.order[places], UNKNOWN).astype(np.int64)

    def _position(self, entry: Any, positions: dict[tuple[str, Any], int]) -> int:
        try:
            if self.ascending.dtype.kind == "f" and isinstance(entry, Integral):
                entry = float(entry)
            if isinstance(entry, complex) and entry.imag == 0:
                entry = entry.real
            return positions.get(label_key(entry), positions.get(key_of(entry), UNKNOWN))
        except Exception:
            # Comparison with an object may run any code.
            return UNKNOWN


def cells_of_codes(values: NDArray, sizes: NDArray[np.intp] | np.intp) -> NDArray[np.intp]:
    """Return codes 0, 1, ... as they are, and the number of categories for any other value."""
    # Other values are first moved to the two numbers next to the categories, so that they can be cast.
    with np.errstate(invalid="ignore"):
        inside = np.clip(values, -1, sizes)
        codes = inside.astype(np.intp)
    other = codes != inside
    other |= codes < 0
    np.copyto(codes, sizes, where=other)
    return codes


def _single(numbers: NDArray) -> NDArray:
    """Round numbers to single precision, in which 0.1 is another number, unless they become 0 or infinite."""
    with np.errstate(all="ignore"):
        rounded = numbers.astype(np.float32).astype(np.float64)
    return np.where(np.isfinite(rounded) & (rounded != 0), rounded, numbers)


def key_of(entry: Any) -> tuple[str, Any]:
    """Return the kind of an entry and its value. Text that is a number has the key of the number."""
    # An array of numbers becomes one of text if one more entry is text, and so does a column of a file.
    kind, value = label_key(entry)
    if kind == "bytes" and value.isascii():
        kind, value = "text", value.decode()
    if kind != "text" or "_" in value:
        return kind, value
    if value.casefold() in _TRUTHS:
        return "number", _TRUTHS[value.casefold()]
    if _HEXADECIMAL.fullmatch(value):
        return "number", (int(value, 16) + 2**63) % 2**64 - 2**63
    for read in (int, float):
        try:
            number = read(value)
        except ValueError:
            continue
        # A category "nan" is that of missing values, which become this text in an array of text.
        return ("number", number) if number == number else ("missing", None)
    return kind, value


def _kind_of(entry: Any) -> str | None:
    """Return the kind of an entry as in `LABEL_KINDS`, or None for a missing entry or another type."""
    try:
        kind = label_key(entry)[0]
        return kind if kind in LABEL_KINDS.values() else None
    except Exception:
        # Reading the value of an object may run any code.
        return None


def read_entries(estimator: Any, X: Any, *, reset: bool) -> NDArray:
    """Validate rows of any entries. Missing entries, and those of another kind, are no categories."""
    if reads_table(estimator, reset):
        return validate_quietly(estimator, X, dtype=list(FLOATS), ensure_min_samples=0, reset=reset)
    X = entries_of(X)
    # NumPy converts a list to a type that holds all of its entries. Then one entry determines how the others are read.
    dtype = None if has_one_type(X) else object
    return validate_quietly(
        estimator, X, dtype=dtype, ensure_all_finite=False, ensure_min_samples=0, reset=reset, times=True
    )


def has_one_type(X: Any) -> bool:
    """Tell whether the rows are already of one type."""
    dtypes: Any = getattr(X, "dtypes", None)
    if hasattr(dtypes, "__iter__"):
        return all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in dtypes)
    return hasattr(X, "__array__") or hasattr(X, "shape")


def entries_of(X: Any) -> Any:
    """Return the rows in a form in which scikit-learn's validation does not refuse any entry."""
    # Lists, and tables with points in time, become arrays of objects, so that each entry stays as it was.
    if np.ma.isMaskedArray(X):
        return np.ma.filled(X.astype(object), None)
    if isinstance(X, np.ndarray) and X.dtype.kind in "mM":
        return np.full(X.shape, None, dtype=object)
    dtypes: Any = getattr(X, "dtypes", None)
    if hasattr(dtypes, "__iter__") and any(getattr(dtype, "kind", None) in ("m", "M") for dtype in dtypes):
        # No type holds these and numbers both, and NumPy would look for one.
        return X.astype(object)
    if not isinstance(X, list | tuple) or not X or not all(map(is_row, X)):
        return X
    widths = {len(row) for row in X}
    if len(widths) > 1:
        raise ValueError("rows must all have the same length")
    width = widths.pop()
    return np.fromiter((entry for row in X for entry in row), dtype=object, count=len(X) * width).reshape(len(X), width)


def is_row(row: Any) -> bool:
    # Reading the class of an object may run any code. Its type is known.
    return issubclass(type(row), list | tuple) or (issubclass(type(row), np.ndarray) and row.ndim == 1)


def encode_labels(y: Any, classes: NDArray) -> Integers:
    """Return the positions of labels in the sorted `classes`, or -1 for a label that is missing or not declared."""
    if is_sequence(y):
        labels = np.fromiter((row[0] if is_row(row) and len(row) == 1 else row for row in y), object, count=len(y))
    else:
        labels = np.ma.filled(y.astype(object), None) if np.ma.isMaskedArray(y) else np.asarray(y)
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError("y must be a 1d array")
    return Categories(classes, classes, np.arange(len(classes))).encode(labels)


def check_categories(value: Any, n_features: int, *, least: int = 2) -> tuple[Categories, ...]:
    """Return the categories of each column, at least `least` of them."""
    # A user passes a number or a list for all columns, or a list that holds one of these for each column.
    if value is None:
        raise ValueError(
            "categories must be given: the number of categories of each column, coded 0, 1, ..., or lists of "
            "them, from the code book. They are never read from the data, because that would be a release"
        )
    if np.isscalar(value):
        every = [check_list(value, least)] * n_features
    else:
        entries = _listed(value)
        if all(isinstance(entry, str) or np.isscalar(entry) for entry in entries):
            if len(entries) == n_features > 1 and all(_may_be_a_number_of_categories(entry) for entry in entries):
                numbers = [int(entry) for entry in entries]
                raise ValueError(
                    f"categories={numbers} may be the categories of every column, or the number of each column's "
                    "categories: write a list for each column, "
                    f"[{numbers}] * {n_features} or [{', '.join(f'range({number})' for number in numbers)}]"
                )
            every = [check_list(entries, least)] * n_features
        else:
            every = [check_list(entry, least) for entry in entries]
    if len(every) != n_features:
        raise ValueError(f"categories must hold one list for each of the {n_features} columns, or one for all")
    return tuple(every)


def _listed(value: Any, name: str = "categories") -> list[Any]:
    # A set has no order, and an iterator can be read once only.
    if not isinstance(value, Set | Mapping | Iterator):
        try:
            return list(value)
        except Exception:
            # An object may run any code.
            pass
    raise ValueError(f"{name} must be a number, a list, or a list of them, got {shown(value)}")


def _may_be_a_number_of_categories(entry: Any) -> bool:
    return isinstance(entry, int | np.integer) and not isinstance(entry, bool) and int(entry) >= 2


def check_list(value: Any, least: int, name: str = "categories") -> Categories:
    """Return the categories of one column, for their number or a list of them."""
    if isinstance(value, str):
        raise ValueError(f"{name} must be a number, a list, or a list of them, got {shown(value)}")
    if np.isscalar(value):
        return Categories.codes(check_integer(value, name, least=least, most=_MOST))
    listed = _listed(value, name)
    ascending = check_classes(listed, name, least=least)
    if ascending is None or ascending.dtype.kind not in "biufU":
        raise ValueError(f"{name} must contain numbers or text")
    values = np.array(listed, dtype=ascending.dtype)
    return Categories(values, ascending, np.argsort(values))

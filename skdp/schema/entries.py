"""Reading of entries: lists of categories, and tables of any kind.

Each entry becomes a number, a text or a code, or is missing, by its own value only. The meaning of an entry never
depends on the type of its column, because one record can change this type.
"""

from __future__ import annotations

import datetime
import numbers
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks.data import (
    FLOATS,
    LABEL_KINDS,
    NO_TARGET,
    array_quietly,
    is_sequence,
    label_key,
    labels_of,
    reads_table,
    refuse_lazy,
    validate_quietly,
)
from ..checks.params import as_float, check_classes, check_integer, shown
from ..mechanisms import UNKNOWN
from ..parts.arrays import is_collection

Array = NDArray[np.float64]

Integers = NDArray[np.int64]

_MOST = 10**6

_TRUTHS = {"true": 1.0, "false": 0.0}

# PyArrow reads these as numbers of 64 bits.
_HEXADECIMAL = re.compile("0[xX][0-9a-fA-F]{1,16}")

#: Codes of entries that are in no list.
MISSING = -2

#: Texts that readers of CSV files take for missing entries, though some keep them where a column holds other text.
#: Spellings of NaN belong to them too, and are found by reading them.
MISSING_TEXTS = frozenset(
    ["", "NA", "N/A", "n/a", "#NA", "#N/A", "#N/A N/A", "NULL", "null", "<NA>", "NaT", "missing"]
).union(f"{sign}1.#{kind}" for sign in ("", "-") for kind in ("IND", "QNAN"))

_TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)

#: Types whose entries can be compared and hashed without running foreign code.
_PLAIN = {str, int, float, bool, type(None), np.str_, np.bool_, np.int32, np.int64, np.float32, np.float64}

# Numbers that are not whole are equal if they differ by less than the rounding to single precision.
_ROUNDING = 2.0**-24


@dataclass(frozen=True, eq=False)
class Categories:
    """The categories of one column, in the user's order."""

    values: NDArray
    coded: bool = False  # Whether the values are 0, 1, ...

    @classmethod
    def codes(cls, size: int) -> Categories:
        """Return categories that are coded 0, 1, ..."""
        return cls(np.arange(size), coded=True)

    @property
    def size(self) -> int:
        return len(self.values)

    def cells(self, column: NDArray) -> NDArray[np.intp]:
        """Return the positions of entries in `values`. Other entries get the number of categories."""
        if self.coded and column.dtype.kind in "if":
            return cells_of_codes(column, np.intp(self.size))
        codes = self.encode(column)
        return np.where(codes == UNKNOWN, self.size, codes).astype(np.intp, copy=False)

    def encode(self, column: NDArray) -> Integers:
        """Return the positions of entries in `values`, or -1 for an entry in no category."""
        # No entry is refused, because a refusal would disclose it.
        with np.errstate(all="ignore"):
            return np.maximum(_from_numpy(column).as_codes(self.values.tolist()), UNKNOWN)

    def holds_other_types(self, column: NDArray) -> bool:
        """Tell whether an entry is text where the categories are numbers, or a number where they are text."""
        declared, kind = (LABEL_KINDS.get(array.dtype.kind) for array in (self.values, column))
        if column.dtype.kind in "mM" or len(column) == 0:
            return False
        if kind == "number" and declared != "number":
            return not bool(np.all(np.isnan(column)))
        kinds = {kind} if kind is not None else {label_key(entry)[0] for entry in column.tolist()}
        return not kinds.isdisjoint({*LABEL_KINDS.values()} - {declared})


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
    if isinstance(X, np.ndarray) and X.dtype.kind in "mM":
        return np.full(X.shape, None, dtype=object)
    if isinstance(X, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(X), np.array(None), X.data.astype(object))
    dtypes: Any = getattr(X, "dtypes", None)
    if hasattr(dtypes, "__iter__") and any(getattr(dtype, "kind", None) in ("m", "M") for dtype in dtypes):
        # No type holds these and numbers both, and NumPy would look for one.
        return X.astype(object)
    if hasattr(X, "get_columns"):
        # NumPy would read times in nanoseconds as integers.
        return X.with_columns([_without_times(column) for column in X.get_columns() if column.dtype.is_temporal()])
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
        labels = y if np.ma.isMaskedArray(y) else np.asarray(y)
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError("y must be a 1d array")
    refuse_alike(classes.tolist(), "classes")
    return Categories(classes).encode(labels)


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
            numbers = [int(entry) for entry in entries if isinstance(entry, int | np.integer)]
            if len(numbers) == len(entries) == n_features > 1 and min(numbers) >= 2:
                raise ValueError(
                    f"categories={numbers} may be the categories of every column, or their numbers: write "
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
    refuse_alike(listed, name)
    return Categories(np.array(listed, dtype=ascending.dtype))


def refuse_alike(values: Sequence[Any], name: str) -> None:
    """Refuse categories that one entry of a table may be."""
    meanings = [spelled(meaning_of(value)) for value in values]
    if len(set(meanings)) < len(meanings):
        # Readers of CSV files convert text to numbers or missing entries, unless one entry is another text.
        raise ValueError(
            f"{name} must not hold two texts that spell the same number or time, such as '7' and '007', or two that "
            "stand for missing entries, such as 'NA' and 'null'"
        )


@dataclass(frozen=True, eq=False)
class Entries:
    """A column of a table: doubles, in which NaN is missing, or positions in a list of distinct entries."""

    numbers: Array | None
    positions: Integers | None = None
    distinct: tuple[Any, ...] = ()
    name: str = ""

    def __len__(self) -> int:
        return len(self.positions if self.numbers is None else self.numbers)  # type: ignore[arg-type]

    def at(self, rows: NDArray) -> Entries:
        """Return some of the entries."""
        if self.positions is not None:
            return replace(self, positions=self.positions[rows])
        return replace(self, numbers=self.as_numbers()[rows])

    def as_numbers(self) -> Array:
        """Return the entries as doubles. Missing entries and those that are no numbers become NaN."""
        if self.positions is None:
            assert self.numbers is not None
            return self.numbers
        return np.append(_numbers_among(map(meaning_of, self.distinct)), np.nan)[self.positions]

    def as_codes(self, values: Sequence[Any]) -> NDArray[np.int64]:
        """Return positions in the values of a category, `UNKNOWN` for other entries, and `MISSING` for missing ones.

        Entries that are no numbers are missing in a category of numbers. Text has no spelling of missing entries that
        every reader agrees on, and a reader keeps it as text only where a column holds other text.
        """
        declared = list(map(meaning_of, values))
        missing = declared.index(None) if None in declared else MISSING
        meanings = None if self.positions is None else list(map(meaning_of, self.distinct))
        numbers = self.as_numbers() if meanings is None else _numbers_among(meanings)
        codes = np.where(np.isnan(numbers), missing, _positions_among(numbers, _numbers_among(declared)))
        if meanings is None:
            return codes
        if isinstance(values[0], str | bytes):
            code_of = {"None": missing} | {spelled(text): i for i, text in enumerate(declared)}
            for i, meaning in enumerate(meanings):
                if not isinstance(meaning, float | None):
                    codes[i] = code_of.get(spelled(meaning), UNKNOWN)
        return np.append(codes, missing)[self.positions]

    def are_missing(self) -> NDArray[np.bool_]:
        """Tell which entries are missing. Text that is no number is not."""
        if self.positions is None:
            return np.isnan(self.as_numbers())
        return np.array([*(meaning_of(entry) in (None, "None") for entry in self.distinct), True])[self.positions]


@dataclass(frozen=True, eq=False)
class Rows:
    """A table that was read, whose rows can be selected as in an array."""

    names: tuple[str, ...]
    columns: tuple[Entries, ...]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.columns[0]), len(self.columns)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: NDArray) -> Rows:
        return Rows(self.names, tuple(column.at(rows) for column in self.columns))


def _numbers_among(meanings: Iterable[Any]) -> Array:
    return np.array([meaning if isinstance(meaning, float) else np.nan for meaning in meanings], dtype=np.float64)


def _positions_among(numbers: Array, declared: Array) -> NDArray[np.int64]:
    """Return the positions of numbers in `declared`, in which other entries are NaN, and `UNKNOWN` for others."""
    order = np.argsort(declared)[: np.count_nonzero(~np.isnan(declared))]
    if len(order) == 0:
        return np.full(len(numbers), UNKNOWN, dtype=np.int64)
    ascending = declared[order]
    positions = np.searchsorted(ascending[:-1] / 2 + ascending[1:] / 2, numbers)
    nearest = ascending[positions]
    rounded = (nearest != np.rint(nearest)) & (np.abs(numbers - nearest) <= _ROUNDING * np.abs(nearest))
    return np.where((numbers == nearest) | rounded, order[positions], UNKNOWN)


def meaning_of(entry: Any) -> Any:
    """Return a double or a text, None for a missing entry, and an ellipsis for any other entry."""
    try:
        if isinstance(entry, bytes):
            # NumPy writes numbers as bytes if one entry of a column is bytes.
            entry = bytes.decode(entry, errors="surrogateescape")
        kind, value = label_key(entry)
        if kind != "missing" and isinstance(entry, _TIMES):
            # Readers convert text to points in time, unless one entry is another text.
            kind, value = "text", str(entry)
        if kind == "text":
            return _meaning_of_text(str.__str__(value))
        if isinstance(entry, complex) and entry.imag == 0:
            kind, value = "number", entry.real
        if kind == "number" or (kind == "other" and isinstance(entry, numbers.Number)):
            value = as_float(entry if kind == "other" else value)
            return None if value != value else value
        return None if kind == "missing" else ...
    except Exception:
        # Reading the value of an object may run any code.
        return ...


def _meaning_of_text(text: str) -> Any:
    # An array of numbers becomes one of text if one more entry is text, and so does a column of a file.
    if text in MISSING_TEXTS:
        return None
    if "_" in text:
        return text
    if text.casefold() in _TRUTHS:
        return _TRUTHS[text.casefold()]
    if _HEXADECIMAL.fullmatch(text):
        return float((int(text, 16) + 2**63) % 2**64 - 2**63)
    for read in (int, float):
        try:
            number = as_float(read(text))
        except ValueError:
            continue
        return None if number != number else number
    return text


def spelled(meaning: Any) -> Any:
    """Return the point in time that a text spells, or what `meaning_of` returned."""
    for read in (datetime.datetime.fromisoformat, datetime.time.fromisoformat):
        try:
            return read(meaning)
        except (TypeError, ValueError):
            continue
    return meaning


def from_objects(entries: Sequence[Any]) -> Entries:
    """Read entries of any types."""
    if not set(map(type, entries)) <= _PLAIN:
        entries = [entry if type(entry) in _PLAIN else meaning_of(entry) for entry in entries]
    distinct = tuple(set(entries))
    positions = {entry: i for i, entry in enumerate(distinct)}
    return Entries(None, np.fromiter(map(positions.__getitem__, entries), dtype=np.intp, count=len(entries)), distinct)


def _from_numpy(column: NDArray) -> Entries:
    kind = column.dtype.kind
    if kind in "biuf" and not np.ma.isMaskedArray(column):
        return Entries(np.ascontiguousarray(column, dtype=np.float64))
    # In the list, masked entries are None.
    return from_objects((column.astype(str) if kind in "mM" else column).tolist())


def _from_dictionary(positions: NDArray, distinct: Any) -> Entries:
    """Read positions in a list of entries. Negative positions are missing entries."""
    read = _read(distinct)
    every = tuple(read.numbers.tolist()) if read.numbers is not None else read.distinct
    if read.positions is not None:
        positions = np.append(read.positions, UNKNOWN)[np.asarray(positions, dtype=np.intp)]
    return Entries(None, np.asarray(positions, dtype=np.intp), every)


def _from_pandas(column: Any) -> Entries:
    dtype = column.dtype
    if isinstance(dtype, np.dtype):
        return _from_numpy(column.to_numpy())
    if hasattr(dtype, "categories"):
        return _from_dictionary(np.asarray(column.cat.codes), column.cat.categories)
    if hasattr(dtype, "pyarrow_dtype"):
        return _from_arrow(column.array.__arrow_array__())
    if dtype.kind in "biuf":
        return Entries(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if hasattr(dtype, "storage"):
        # These columns hold text.
        positions, distinct = column.array.factorize()
        return _from_dictionary(positions, np.asarray(distinct, dtype=object))
    return from_objects(column.astype(object).tolist())


def _without_times(column: Any) -> Any:
    """Return a column of times of Polars as text, or as objects if they are durations, which it does not convert."""
    if str(column.dtype).startswith("Duration"):
        return type(column)(column.name, column.to_list(), dtype=object)
    # Python has no points in time before the year 1.
    return column.cast(str)


def _from_polars(column: Any) -> Entries:
    if column.dtype.is_temporal():
        column = _without_times(column)
    dtype = column.dtype
    # Integers of 128 bits cannot become an array. One record may give a column this type.
    if (dtype.is_integer() or dtype.is_float()) and "128" not in str(dtype):
        return Entries(np.asarray(column.to_numpy(), dtype=np.float64))
    return from_objects(column.to_list())


def _from_arrow(column: Any) -> Entries:
    name = str(column.type)
    if name.startswith(("int", "uint", "float", "double", "halffloat")):
        return Entries(np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64))
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    if name.startswith(("date", "time")):
        # Python has no points in time before the year 1.
        column = column.cast("string")
    if name.startswith(("string", "large_string", "date", "time")):
        column = column.dictionary_encode()
    if hasattr(column, "dictionary"):
        positions = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return _from_dictionary(positions, column.dictionary.to_pylist())
    return from_objects(column.to_pylist())


def labels_by(classes: NDArray, y: Any) -> NDArray:
    """Return labels as entries of sorted `classes`, by the rules for a category, and a greater one for other labels."""
    labels = labels_of(y)
    of_text = classes.dtype.kind == "U"
    if labels.dtype.kind in "biuf" and of_text:
        # They may be positions of labels, which are refused later.
        return labels
    entries = _read(labels)
    codes = entries.as_codes(classes.tolist())
    if np.all(codes < 0):
        # They may be of another type, which is refused later.
        return labels
    if np.any(codes == MISSING):
        raise ValueError(f"y holds missing labels{'' if of_text else ', or text that is no number'}. {NO_TARGET}")
    # Positions of other labels are -1, which is the last one.
    return np.append(classes, f"{classes[-1]}_" if of_text else classes[-1] + 1)[codes]


def _read(column: Any) -> Entries:
    if isinstance(column, Entries):
        return column
    library = type(column).__module__.partition(".")[0]
    if library == "pandas":
        return _from_pandas(column.to_series() if hasattr(column, "to_series") else column)
    if library == "polars":
        return _from_polars(column)
    if library == "pyarrow":
        return _from_arrow(column)
    if isinstance(column, list | tuple):
        return from_objects(column)
    array = column if isinstance(column, np.ndarray) else np.asarray(column)
    if array.ndim != 1:
        raise ValueError("must have one entry for each row")
    return _from_numpy(array)


def read_column(column: Any, name: str) -> Entries:
    """Read a column of a table. Messages name it, and hold nothing else of the data."""
    failure: Exception
    with np.errstate(all="ignore"):
        try:
            return replace(_read(column), name=name)
        except MemoryError:
            raise
        except (TypeError, ValueError) as error:
            known = str(error) if str(error).startswith("must have one entry") else ""
            failure = type(error)(f"column {name!r} of X {known or 'cannot be read'}")
        except Exception:
            failure = ValueError(f"column {name!r} of X cannot be read")
    # It is raised outside the handler, so that the original message is not kept as the context.
    try:
        raise failure
    finally:
        # An error in its own traceback would keep the data in memory.
        del failure


def table_columns(X: Any) -> tuple[list[Any] | None, list[Any]]:
    """Return the names of columns, or None if they have no names, and the columns of a table."""
    library = type(X).__module__.partition(".")[0]
    refuse_lazy(X)
    if hasattr(X, "toarray"):
        raise TypeError("Sparse data are not taken: X must be a dense table, with one column for each of the schema's")
    if isinstance(X, Rows):
        names, columns = list(X.names), list(X.columns)
    elif isinstance(X, Mapping):
        names, columns = list(X), list(X.values())
        if not same_index(columns):
            raise ValueError(
                "the columns of X have different indexes, and rows are matched by position. Pass pandas.DataFrame(X), "
                "which matches them by index, or arrays in one order, as column.to_numpy() returns"
            )
    elif library == "pandas" and hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2:
        names, columns = list(X.columns), [X.iloc[:, j] for j in range(X.shape[1])]
    elif library == "polars" and hasattr(X, "get_columns"):
        names, columns = list(X.columns), list(X.get_columns())
    elif library == "pyarrow" and hasattr(X, "column_names"):
        names, columns = list(X.column_names), list(X.columns)
    elif isinstance(X, np.ndarray) and X.dtype.names is not None and X.ndim == 1:
        names, columns = list(X.dtype.names), [X[name] for name in X.dtype.names]
    else:
        return None, _columns_of_rows(X)
    named = [isinstance(name, str) for name in names]
    return (names if any(named) else None), columns


def same_index(tables: Iterable[Any]) -> bool:
    """Tell whether the tables and columns of pandas among these have equal indexes."""
    indexes = [table.index for table in tables if hasattr(table, "iloc") and hasattr(table, "index")]
    try:
        return all(indexes[0].equals(index) for index in indexes[1:])
    except Exception:
        # An error is raised outside the handler, because the original message may show entries.
        return False


def check_index(X: Any, values: Any, name: str) -> None:
    """Refuse values of rows whose index is not that of the rows, because they are matched by position."""
    if is_collection(X) or is_collection(values):
        return
    if not same_index([*(X.values() if isinstance(X, Mapping) else [X]), values]):
        raise ValueError(
            f"X and {name} have different indexes, and rows are matched by position: bring {name} into the order of X, "
            f"as {name}.loc[X.index] does, or pass {name}.to_numpy() if it is in that order"
        )


def _columns_of_rows(X: Any) -> list[Any]:
    if isinstance(X, list | tuple) and len(X) and all(map(is_row, X)):
        if len({len(row) for row in X}) > 1:
            raise ValueError("rows must all have the same length")
        return [list(column) for column in zip(*X, strict=True)]
    if isinstance(X, np.matrix):
        raise TypeError("np.matrix is not supported: pass an array")
    array = X if isinstance(X, np.ndarray) else np.asarray(array_quietly(X))
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported")
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead. Reshape your data to the columns of the schema"
        )
    return list(array.T)

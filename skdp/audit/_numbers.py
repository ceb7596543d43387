"""The numbers that a fitted estimator holds, which an audit compares if no statistic is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

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
                for part in parts_of(value):
                    self.read_fitted(part)
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
            self._read_all(part for item in value.items() for part in item)
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
        self._read_all(part for parts in (items, pairs) for part in parts or ())
        if not isinstance(state, dict) or state.keys() != attributes.keys():
            self.read(attributes)

"""Arrays whose rows are divided into parts, and sums over these parts.

A `PartedArray` has columns and a type, but no rows. Code that needs the rows raises an error. Only `folded` reads rows.
It returns an exact sum over the parts, and runs after the accountant has admitted the fit.

A job that holds a secret, or an object that could draw noise or charge a budget, is not pickled but raises an error.
"""

from __future__ import annotations

import io
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config

from ..exceptions import PartitionError
from .tasks import GIVEN, PART, Failure, Identity, Node, Outcome, Task, arithmetic

_ELSEWHERE = "the rows are divided into partitions, but this operation needs all rows in one place"

_INVALID = (
    "At least one partition of X, y, groups or sample_weight cannot be used. Either it cannot be read, or it holds "
    "NaN, infinity, negative weights, missing labels or groups, or entries that are not numbers, or its types differ "
    "from the types that the collection declares, or X, y, groups and sample_weight have different rows. Inspect the "
    "partitions one by one to find the cause. "
)
_MEMORY = "A partition does not fit into the memory of a worker. Use smaller partitions. "
_CHANGED = (
    "The partitions of X or y were different when they were read again. Make the partitions deterministic, or write "
    "them to files first. "
)
_ARITHMETIC = (
    "The workers and the client round exp, log or tanh differently, because their processors or their versions of "
    "NumPy differ. Use identical machines, or run the client on one of the workers. "
)

#: Whether a call that releases something, or a call around it in this thread, has an accountant.
CHARGES: ContextVar[bool] = ContextVar("CHARGES", default=False)


def charge() -> str:
    """Return the sentence by which a message after a release ends."""
    return "The budget was charged" if CHARGES.get() else "No budget was charged, because there is no accountant"


class Parts(ABC):
    """Parts of a data set: tuples of arrays with the same rows."""

    def __init__(self, identities: dict[int, Identity] | None = None) -> None:
        # The identity of each part at its first reading, by the number of the part.
        self._identities: dict[int, Identity] = {} if identities is None else identities
        self._given: list[Sequence[Any]] = []

    @property
    @abstractmethod
    def n_parts(self) -> int:
        """Number of parts."""

    @abstractmethod
    def _run(self, job: bytes, extras: Sequence[dict[str, Any]] | None) -> Outcome | Failure:
        """Run a pickled job on each part, and return the sum of the outcomes."""

    @abstractmethod
    def _kept(self, job: bytes, identities: dict[int, Identity]) -> Parts:
        """Return parts with the arrays of a pickled job, which stay on their machines."""

    @abstractmethod
    def _divided(self, job: bytes, identities: dict[int, Identity]) -> Parts:
        """Return as many parts, with the arrays of a pickled job but the last, which has the new part of each row."""

    def give(self, arrays: Sequence[Any]) -> Node:
        """Send one array to each part with all later jobs."""
        self._given.append(arrays)
        return Node(GIVEN + 1 - len(self._given))

    def given(self, index: int) -> tuple[Any, ...]:
        """Return the arrays that are sent to a part with each job."""
        return tuple(arrays[index] for arrays in self._given)

    def fold(
        self, task: Task, nodes: Sequence[Node], extras: Sequence[dict[str, Any]] | None = None, charged: bool = True
    ) -> Any:
        """Apply a task to the arrays of each part, and return the sum; `extras` are further arguments by part."""
        outcome = self._run(dumps((tuple(nodes), task)), extras)
        statement = charge() if charged else "The budget was not charged"
        if outcome is Failure.MEMORY:
            raise MemoryError(_MEMORY + statement)
        if isinstance(outcome, Failure):
            raise ValueError(_INVALID + statement)
        if outcome.arithmetic != {arithmetic()}:
            raise PartitionError(_ARITHMETIC + statement)
        if any(self._identities.setdefault(identity.part, identity) != identity for identity in outcome.identities):
            raise PartitionError(_CHANGED + statement)
        return outcome.value

    def keep(self, nodes: Sequence[Node]) -> Parts:
        """Return parts with the arrays of these nodes, which are computed once and stay on their machines."""
        return self._kept(dumps((tuple(nodes), _as_tuple)), self._identities)


def _as_tuple(*arrays: Any) -> tuple[Any, ...]:
    return arrays


class PartedArray:
    """One array that is divided into parts; `meta` has its columns and its type, but no rows."""

    # NumPy then leaves operators to this class, which defines none, so that they raise an error.
    __array_ufunc__ = None

    def __init__(self, parts: Parts, node: Node, meta: Any) -> None:
        self.parts, self.node, self.meta = parts, node, meta

    @property
    def dtype(self) -> Any:
        """Type of the entries."""
        return self.meta.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return int(self.meta.ndim)

    @property
    def shape(self) -> tuple[Any, ...]:
        """None (the number of rows is private), then the number of columns."""
        return (None, *self.meta.shape[1:])

    def __len__(self) -> int:
        raise TypeError(_ELSEWHERE)

    def __array__(self, *args: Any, **kwargs: Any) -> NDArray:
        raise TypeError(_ELSEWHERE)

    def __reduce__(self) -> Any:
        raise TypeError("an array in parts must not be sent to the parts")

    def __iter__(self) -> Any:
        raise TypeError(_ELSEWHERE)


def mapped(task: Task, arrays: Sequence[PartedArray], metas: Sequence[Any]) -> tuple[PartedArray, ...]:
    """Apply a task that returns a tuple of arrays to the arrays of each part; `metas` are their columns and types."""
    parts = _parts_of(arrays)
    whole = Node(task, tuple(array.node for array in arrays))
    return tuple(PartedArray(parts, Node(itemgetter(i), (whole,)), meta) for i, meta in enumerate(metas))


def rowwise(function: Callable[..., Any], *arrays: Any) -> Any:
    """Apply a function that treats each row by itself, and may leave rows out."""
    if not isinstance(arrays[0], PartedArray):
        return function(*arrays)
    meta = function(*(array.meta for array in arrays))
    return PartedArray(_parts_of(arrays), Node(function, tuple(array.node for array in arrays)), meta)


def folded(task: Task, arrays: Sequence[Any], extras: Sequence[dict[str, Any]] | None = None) -> Any:
    """Apply a task to the arrays, or to the arrays of each part, and return the sum."""
    if not isinstance(arrays[0], PartedArray):
        return task(*arrays)
    return _parts_of(arrays).fold(task, [array.node for array in arrays], extras)


def kept(arrays: Sequence[PartedArray]) -> tuple[PartedArray, ...]:
    """Return these arrays, computed once and kept on their machines."""
    parts = _parts_of(arrays).keep([array.node for array in arrays])
    return tuple(PartedArray(parts, Node(i), array.meta) for i, array in enumerate(arrays))


def is_collection(data: Any) -> bool:
    """Return whether data are a Dask collection."""
    dask = sys.modules.get("dask")
    # The type is asked, because other data may raise errors that count their rows.
    return dask is not None and hasattr(type(data), "__dask_graph__") and bool(dask.is_dask_collection(data))


def many_rows(X: Any) -> int:
    """Return the number of rows, or a large number for arrays in parts. No result may depend on it."""
    return 2**30 if isinstance(X, PartedArray) else len(X)


def in_memory(X: Any) -> bool:
    """Return whether rows are in memory, and neither in parts nor memory-mapped, as a whole or in part."""
    if isinstance(X, PartedArray | np.memmap):
        return False
    base = getattr(X, "base", None)
    return base is None or in_memory(base)


def row_check(*arrays: Any) -> Callable[[], None] | None:
    """Return a function that validates all rows before a charge, or None if no validation is needed."""
    parted = [array for array in arrays if isinstance(array, PartedArray)]
    if not parted or get_config()["assume_finite"]:
        return None
    parts = _parts_of(parted)
    return partial(parts.fold, lambda *arrays: 0, [array.node for array in parted], charged=False)


def count_rows(X: Any) -> int:
    """Return the number of rows, which is private."""
    return int(folded(len, [X])) if isinstance(X, PartedArray) else int(X.shape[0])


def chosen(by: PartedArray, draw: Callable[[NDArray], Any], *arrays: Any) -> tuple[Any, ...]:
    """Return the rows at the increasing, private positions that `draw` returns for the private entries of `by`."""
    entries = _by_part(np.asarray, by)
    if len({entries_of_part.dtype for entries_of_part in entries}) > 1:
        # A common type could round entries.
        entries = [entries_of_part.astype(object) for entries_of_part in entries]
    parts = _parts_of([array for array in arrays if array is not None])
    node = parts.give(positions_by_part(draw(np.concatenate(entries)), np.cumsum([0, *map(len, entries)])))

    def rows_at(X: Any, positions: NDArray[np.intp]) -> Any:
        return [column[positions] for column in X] if isinstance(X, list) else X[positions]

    return tuple(
        None if array is None else PartedArray(parts, Node(rows_at, (array.node, node)), array.meta) for array in arrays
    )


def _by_part(task: Task, X: PartedArray) -> list[Any]:
    numbered = folded(partial(_numbered, task), [PartedArray(X.parts, Node(PART), X.meta), X])
    return [result for _, result in sorted(numbered, key=itemgetter(0))]


def _numbered(task: Task, part: int, X: Any) -> list[tuple[int, Any]]:
    return [(part, task(X))]


def positions_by_part(positions: NDArray[np.intp], ends: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Return the increasing positions of rows by part, counted from the first row of the part."""
    cuts = np.searchsorted(positions, ends)
    return [positions[a:b] - start for (a, b), start in zip(pairwise(cuts), ends[:-1], strict=True)]


def divided(numbers: NDArray[np.intp], *arrays: Any) -> tuple[Any, ...]:
    """Return arrays in other parts, and the numbers with them. The part of a row is the remainder of its number."""
    present = [array for array in arrays if array is not None]
    parts = _parts_of(present)
    ends = np.cumsum([0, *_by_part(len, present[0])])
    node = parts.give([numbers[a:b] for a, b in pairwise(ends)])
    n_parts = parts.n_parts
    remainder = Node(lambda numbers: numbers % n_parts, (node,))
    job = dumps(((*(array.node for array in present), node, remainder), _as_tuple))
    others = parts._divided(job, parts._identities)
    metas = [*(array.meta for array in present), numbers[:0]]
    made = iter([PartedArray(others, Node(i), meta) for i, meta in enumerate(metas)])
    return tuple(None if array is None else next(made) for array in [*arrays, numbers])


def column_of(j: int, X: Any) -> Any:
    """Return a column."""
    return rowwise(itemgetter((slice(None), j)), X)


def _parts_of(arrays: Sequence[Any]) -> Parts:
    parts: Parts = arrays[0].parts
    if not all(isinstance(array, PartedArray) and array.parts is parts for array in arrays):
        raise TypeError("all arrays must have the same partitions")
    return parts


class KeptObjects:
    """One object for each part, made from its arrays; `n_rows_of` returns the number of rows of an object."""

    def __init__(self, make: Callable[..., Any], arrays: tuple[PartedArray, ...], n_rows_of: Callable[[Any], int]):
        (self._objects,) = kept((rowwise(make, *arrays),))
        # The positions of rows and the numbers of rows are private.
        self._ends = np.cumsum([0, *_by_part(n_rows_of, self._objects)])

    @property
    def without_rows(self) -> Any:
        """The object for no rows."""
        return self._objects.meta

    @property
    def n_rows(self) -> int:
        """Number of rows of all parts."""
        return int(self._ends[-1])

    def sum(self, task: Callable[..., Any], rows: NDArray[np.intp] | None = None) -> Any:
        """Apply a task to the object and the rows (of increasing positions) of each part, and return the sum."""
        by_part = [None] * (len(self._ends) - 1) if rows is None else positions_by_part(rows, self._ends)
        return folded(task, [self._objects], [{"rows": positions} for positions in by_part])


# Classes of noise, seeds, budgets and sessions are in these packages.
_CLIENT_ONLY = ("skdp.mechanisms.", "skdp.accounting.", "skdp.release.", "numpy.random.", "random.")

# Attributes of estimators. None and the seed 0, which replaces a seed, are no secrets.
_SECRETS = ("accountant", "random_state")


def dumps(job: Any) -> bytes:
    """Pickle a job, including nested functions."""
    import cloudpickle

    class Pickler(cloudpickle.Pickler):
        def reducer_override(self, obj: Any) -> Any:
            kinds = [f"{kind.__module__}." for kind in type(obj).__mro__]
            # A class is pickled by its name.
            attributes = {} if isinstance(obj, type) else getattr(obj, "__dict__", {})
            secrets = [attributes[name] for name in _SECRETS if attributes.get(name) is not None]
            is_zero = (isinstance(value, int) and value == 0 for value in secrets)
            if any(kind.startswith(_CLIENT_ONLY) for kind in kinds) or not all(is_zero):
                raise TypeError(f"an object of type {type(obj).__name__} must not leave the client")
            return super().reducer_override(obj)

    file = io.BytesIO()
    Pickler(file).dump(job)
    return file.getvalue()

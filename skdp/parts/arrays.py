"""Arrays whose rows lie in parts, and sums over them.

A `PartedArray` knows its columns and its type, and not its rows: code that needs the rows fails. Rows are read only by
`folded`, which returns an exact sum over the parts, and after a fit has been admitted by its accountant.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config

from ..exceptions import PartitionError
from .pickling import dumps
from .tasks import PART, Failure, Identity, Node, Outcome, Task, arithmetic

_ELSEWHERE = "the rows lie in partitions elsewhere, and this needs them in one place"

_INVALID = (
    "At least one partition of X or y cannot be used: it cannot be read, it holds NaN, infinity, missing labels or "
    "entries that are no numbers, its types differ from those that the collection declares, or X and y have different "
    "rows. Look at the partitions one by one to find out which. "
)
_MEMORY = "A partition does not fit into the memory of a worker. Use smaller partitions. "
_CHANGED = (
    "The partitions of X or y were different when they were read again. Make them deterministic, or write them to "
    "files first. "
)
_ARITHMETIC = (
    "The workers and the client round exp, log or tanh differently, because their processors or their versions of "
    "NumPy differ. Use equal machines, or connect from one of the workers. "
)
_CHARGED = "The budget was charged"
_NOT_CHARGED = "The budget was not charged"


class Parts(ABC):
    """Parts of a data set: tuples of arrays with the same rows."""

    def __init__(self, identities: dict[int, Identity] | None = None) -> None:
        # By number of the part, as it was first read.
        self._identities: dict[int, Identity] = {} if identities is None else identities

    @property
    @abstractmethod
    def n_parts(self) -> int:
        """Number of parts."""

    @abstractmethod
    def _run(self, job: bytes, extras: Sequence[dict[str, Any]] | None) -> Outcome | Failure:
        """Carry out a pickled job on each part, and return the sum of the outcomes."""

    @abstractmethod
    def _kept(self, job: bytes, identities: dict[int, Identity]) -> Parts:
        """Return parts with the arrays of a pickled job, which are kept where they lie."""

    def fold(
        self, task: Task, nodes: Sequence[Node], extras: Sequence[dict[str, Any]] | None = None, charged: bool = True
    ) -> Any:
        """Return the sum over the parts of a task of their arrays; `extras` are further arguments for each part."""
        outcome = self._run(dumps((tuple(nodes), task)), extras)
        end = _CHARGED if charged else _NOT_CHARGED
        if outcome is Failure.MEMORY:
            raise MemoryError(_MEMORY + end)
        if isinstance(outcome, Failure):
            raise ValueError(_INVALID + end)
        if outcome.arithmetic != {arithmetic()}:
            raise PartitionError(_ARITHMETIC + end)
        if any(self._identities.setdefault(part, own) != own for part, own in outcome.identities.items()):
            raise PartitionError(_CHANGED + end)
        return outcome.value

    def keep(self, nodes: Sequence[Node]) -> Parts:
        """Return parts of the arrays of these nodes, which are computed once and kept where they lie."""
        return self._kept(dumps((tuple(nodes), _as_tuple)), self._identities)


def _as_tuple(*arrays: Any) -> tuple[Any, ...]:
    return arrays


def _nothing(*arrays: Any) -> int:
    return 0


class PartedArray:
    """One of the arrays of all parts. `meta` has its columns and its type, and no rows."""

    # NumPy leaves operators to this class, which has none.
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
        """None in place of the number of rows, then the number of columns."""
        return (None, *self.meta.shape[1:])

    def __len__(self) -> int:
        raise TypeError(_ELSEWHERE)

    def __array__(self, *args: Any, **kwargs: Any) -> NDArray:
        raise TypeError(_ELSEWHERE)

    def __reduce__(self) -> Any:
        raise TypeError("an array in parts must not be sent to them")

    def __iter__(self) -> Any:
        raise TypeError(_ELSEWHERE)


def mapped(task: Task, arrays: Sequence[PartedArray], metas: Sequence[Any]) -> tuple[PartedArray, ...]:
    """Return the arrays that a task makes of those of each part, as a tuple; `metas` are their columns and types."""
    parts = _parts_of(arrays)
    whole = Node(task, tuple(array.node for array in arrays))
    return tuple(PartedArray(parts, Node(partial(_at, i), (whole,)), meta) for i, meta in enumerate(metas))


def _at(i: int, arrays: Sequence[Any]) -> Any:
    return arrays[i]


def rowwise(function: Callable[..., Any], *arrays: Any) -> Any:
    """Return a function of arrays that treats each row by itself; it may leave rows out."""
    if not isinstance(arrays[0], PartedArray):
        return function(*arrays)
    meta = function(*(array.meta for array in arrays))
    return PartedArray(_parts_of(arrays), Node(function, tuple(array.node for array in arrays)), meta)


def folded(task: Task, arrays: Sequence[PartedArray], extras: Sequence[dict[str, Any]] | None = None) -> Any:
    """Return the sum over the parts of a task of their arrays."""
    return _parts_of(arrays).fold(task, [array.node for array in arrays], extras)


def kept(arrays: Sequence[PartedArray]) -> tuple[PartedArray, ...]:
    """Return the same arrays, computed once and kept where they lie."""
    parts = _parts_of(arrays).keep([array.node for array in arrays])
    return tuple(PartedArray(parts, Node(i), array.meta) for i, array in enumerate(arrays))


def many_rows(X: Any) -> int:
    """Return the number of rows, or a large number in its place, where no result depends on it."""
    return 2**30 if isinstance(X, PartedArray) else len(X)


def unchecked(*arrays: Any) -> Callable[[], None] | None:
    """Return a function that validates all rows before a charge, or None if there is nothing to be done."""
    parted = [array for array in arrays if isinstance(array, PartedArray)]
    if not parted or get_config()["assume_finite"]:
        return None
    parts = _parts_of(parted)
    return partial(parts.fold, _nothing, [array.node for array in parted], charged=False)


def count_rows(X: Any) -> int:
    """Return the number of rows, which is private."""
    return int(folded(len, [X])) if isinstance(X, PartedArray) else int(X.shape[0])


def taken(X: Any, draw: Callable[[int], Any]) -> Any:
    """Return the rows at increasing positions, which `draw` chooses for a number of rows; the positions are private."""
    if not isinstance(X, PartedArray):
        return X[draw(X.shape[0])]
    part = PartedArray(X.parts, Node(PART), X.meta)
    numbered = folded(_numbered, [part, X])
    ends = np.cumsum([0, *(n for _, n in sorted(numbered))])
    positions = draw(int(ends[-1]))
    cuts = np.searchsorted(positions, ends)
    own = [positions[a:b] - start for a, b, start in zip(cuts[:-1], cuts[1:], ends[:-1], strict=True)]
    return PartedArray(X.parts, Node(partial(_rows_of_part, own), (part.node, X.node)), X.meta)


def _numbered(part: int, X: Any) -> list[tuple[int, int]]:
    return [(part, len(X))]


def _rows_of_part(own: Sequence[Any], part: int, X: Any) -> Any:
    return X[own[part]]


def column_of(j: int, X: Any) -> Any:
    """Return a column."""
    return rowwise(partial(_column, j), X)


def _column(j: int, X: Any) -> Any:
    return X[:, j]


def _parts_of(arrays: Sequence[Any]) -> Parts:
    parts: Parts = arrays[0].parts
    if not all(isinstance(array, PartedArray) and array.parts is parts for array in arrays):
        raise TypeError("arrays must all lie in the same partitions")
    return parts

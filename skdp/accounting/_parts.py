"""Disjoint parts of the records, each with an accountant whose charges do not count for the other parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..checks.data import array_quietly, is_sequence
from ..checks.params import shown
from ..checks.silence import discreet

#: Largest number of parts of a division, because the ledger keeps the sums of each.
_MOST_PARTS = 10_000


class Part:
    """One part of the records, made by `BudgetAccountant.parallel`.

    Parameters
    ----------
    name : str or int
        Name of the part.
    accountant : BudgetAccountant
        Accountant whose charges count for the records of this part only.
    rows : ndarray of int
        Positions of its rows. They are not visible, because they are private.
    n_rows : int
        Number of all records.
    """

    def __init__(self, name: Any, accountant: Any, rows: NDArray[np.intp], n_rows: int) -> None:
        self.name = name
        self.accountant = accountant
        self._rows = rows
        self._n_rows = n_rows

    @discreet
    def take(self, *arrays: Any) -> Any:
        """Return the rows of this part.

        Parameters
        ----------
        *arrays : array-like, sparse matrix or dataframe of shape (n_samples, ...)
            Data of all records, in the order of `by`.

        Returns
        -------
        taken : object or tuple
            Rows of each array. If there is one array, it is not in a tuple.
        """
        taken = tuple(self._take(array) for array in arrays)
        return taken[0] if len(taken) == 1 else taken

    def _take(self, array: Any) -> Any:
        array = array_quietly(array)
        if len(array.shape) == 0 or array.shape[0] != self._n_rows:
            raise ValueError("each array must have as many rows as `by`: its rows are the same records")
        if hasattr(array, "iloc"):
            return array.iloc[self._rows]
        if hasattr(array, "tocsr"):
            array = array.tocsr()
        return array[self._rows]

    def __repr__(self) -> str:
        # The number of records of the part is private.
        return f"Part({self.name!r})"


class Parts(AbstractContextManager["Parts"]):
    """A division of the records by one rule. Each record is in the part that its own value names, or in no part.

    `BudgetAccountant.parallel` makes divisions, and documents the rules. A division is a context manager. After the end
    of the block, parts cannot be charged.

    Parameters
    ----------
    names : tuple of str or int
        Names of the parts.
    part_of_record : ndarray of int of shape (n_samples,)
        For each record, the position of its part in `names`, or -1.
    accountants : list of BudgetAccountant
        Accountants of the parts.
    close : callable
        Function that ends the division.
    """

    def __init__(
        self,
        names: tuple[Any, ...],
        part_of_record: NDArray[np.intp],
        accountants: Sequence[Any],
        close: Callable[[], None],
    ) -> None:
        self._names, self._close = names, close
        self._parts = tuple(
            Part(name, accountant, np.flatnonzero(part_of_record == position), len(part_of_record))
            for position, (name, accountant) in enumerate(zip(names, accountants, strict=True))
        )

    def __iter__(self) -> Iterator[Part]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, name: Any) -> Part:
        if name not in self._names:
            raise KeyError(name)
        return self._parts[self._names.index(name)]

    def close(self) -> None:
        """End the division. A further charge on a part is a BudgetError."""
        self._close()

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Parts({list(self._names)!r})"


def check_names(names: Sequence[Any]) -> tuple[Any, ...]:
    """Return the declared names of the parts."""
    if isinstance(names, str | bytes) or not hasattr(names, "__len__"):
        raise TypeError(f"parts must be a list of names, got {shown(names)}")
    checked = tuple(name.item() if isinstance(name, np.generic) else name for name in names)
    if not 0 < len(checked) <= _MOST_PARTS:
        raise ValueError(f"parts must have between 1 and {_MOST_PARTS} names, got {len(checked)}")
    if not all(isinstance(name, str | int | bool) for name in checked):
        raise TypeError("the names of parts must be text or integers")
    if len(set(checked)) < len(checked) or len({str(name) for name in checked}) < len(checked):
        raise ValueError(f"parts must not name a part twice, got {list(checked)!r}")
    return checked


def assign(by: ArrayLike, names: tuple[Any, ...]) -> NDArray[np.intp]:
    """Return the position of each record's part, or -1 if no part has its name."""
    # Each value is read separately. NumPy would let one record determine the type of all values.
    values: Any = by if is_sequence(by) else np.asarray(by)
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ValueError("`by` must be one-dimensional: one value for each record")
        values = values.tolist()
    positions = {_key(name): position for position, name in enumerate(names)}
    return np.fromiter((positions.get(_key(value), -1) for value in values), dtype=np.intp, count=len(values))


def _key(value: Any) -> Any:
    """Return a value with its kind. Numbers are equal as numbers, and truth values are not numbers."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, int | float):
        return "number", value
    return ("text", value) if isinstance(value, str) else None

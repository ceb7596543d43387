"""Public lists of categories, and what is in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._data import label_key
from .._params import check_classes, check_integer
from ..mechanisms import UNKNOWN

Integers = NDArray[np.int64]

_MOST = 10**6

_KINDS = {"b": "numbers", "i": "numbers", "u": "numbers", "f": "numbers", "U": "text"}


@dataclass(frozen=True, eq=False)
class Categories:
    """The categories of one column, in the user's order, and in sorted order."""

    values: NDArray
    ascending: NDArray
    order: NDArray[np.intp]

    def encode(self, column: NDArray) -> Integers:
        """Return positions of entries in `values`; -1 for what is no category.

        Each entry is read by itself, whatever the others are.
        """
        kind = _KINDS.get(column.dtype.kind)
        if kind is None:
            positions = {label_key(label): i for i, label in enumerate(self.values.tolist())}
            return np.array([positions.get(label_key(entry), UNKNOWN) for entry in column.tolist()], dtype=np.int64)
        own = _KINDS[self.ascending.dtype.kind]
        if kind != own:
            raise TypeError(f"categories holds {own}, and the column holds {kind}")
        places = np.searchsorted(self.ascending, column).clip(max=len(self.values) - 1)
        return np.where(self.ascending[places] == column, self.order[places], UNKNOWN).astype(np.int64)


def check_categories(value: Any, n_features: int) -> tuple[Categories, ...]:
    """Return the categories of each column.

    Parameters
    ----------
    value : object
        What a user passed: a number or a list for all columns, or a list with one of them for each.
    n_features : int
        Number of columns.
    """
    if value is None:
        raise ValueError(
            "categories must be given: how many there are in each column, coded 0, 1, ..., or lists of them, from the "
            "code book. They are never read from the data, because that would be a release"
        )
    if np.isscalar(value):
        every = [_one(value)] * n_features
    else:
        try:
            entries = list(value)
        except TypeError:
            raise ValueError(f"categories must be a number, a list, or a list of them, got {value!r}") from None
        if all(isinstance(entry, str) or np.isscalar(entry) for entry in entries):
            every = [_one(entries)] * n_features
        else:
            every = [_one(entry) for entry in entries]
    if len(every) != n_features:
        raise ValueError(f"categories has lists for {len(every)} columns, and there are {n_features}")
    return tuple(every)


def _one(value: Any) -> Categories:
    if isinstance(value, str):
        raise ValueError(f"categories must be a number, a list, or a list of them, got {value!r}")
    if np.isscalar(value):
        n = check_integer(value, "categories", least=2)
        if n > _MOST:
            raise ValueError(f"categories must be at most {_MOST} for a column, got {value!r}")
        values = np.arange(n)
        return Categories(values, values, values)
    listed = list(value)
    ascending = check_classes(listed, "categories")
    if ascending is None or ascending.dtype.kind not in _KINDS:
        raise ValueError("categories must contain numbers or text")
    values = np.array(listed, dtype=ascending.dtype)
    return Categories(values, ascending, np.argsort(values))

"""The data sets of an audit, its samples of rows, and its coins."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ..mechanisms import NoiseSource


def as_data_set(data: Any) -> tuple[Any, ...]:
    """Return the arguments of `fit` as a tuple, from ``(X,)``, ``(X, y)`` or X alone."""
    if isinstance(data, list) and any(getattr(part, "ndim", 0) > 1 for part in data):
        raise TypeError("a list is taken for the rows of X: pass a tuple, (X, y)")
    return data if isinstance(data, tuple) else (data,)


def number_of_records(data: tuple[Any, ...]) -> int:
    """Return the number of rows of a data set."""
    return data[0].shape[0] if hasattr(data[0], "shape") else len(data[0])


def take(data: tuple[Any, ...], rows: NDArray) -> tuple[Any, ...]:
    """Return some rows of each array, by their positions or a mask."""
    return tuple(_take(part, rows) for part in data)


def _take(part: Any, rows: NDArray) -> Any:
    if hasattr(part, "iloc"):
        return part.iloc[rows]
    return part.tocsr()[rows] if issparse(part) else np.asarray(part)[rows]


def coins(random_state: Any, label: str, number: int) -> NDArray[np.bool_]:
    """Toss fair coins for one purpose of an audit, which `label` names."""
    return NoiseSource(random_state).stream(label).words(number) >> np.uint64(63) == 1

"""Data sets and coins as audits take them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ..mechanisms import NoiseSource


def as_data_set(data: Any) -> tuple[Any, ...]:
    """Return the arguments of `fit`.

    Parameters
    ----------
    data : tuple or array-like
        ``(X,)``, ``(X, y)``, or X alone.

    Returns
    -------
    arguments : tuple
    """
    if isinstance(data, list) and any(getattr(part, "ndim", 0) > 1 for part in data):
        raise TypeError("a list is taken for the rows of X: pass a tuple, (X, y)")
    return data if isinstance(data, tuple) else (data,)


def number_of_records(data: tuple[Any, ...]) -> int:
    """Return how many rows there are.

    Parameters
    ----------
    data : tuple of array-like
        Arguments of `fit`.

    Returns
    -------
    number : int
    """
    number: int = data[0].shape[0] if hasattr(data[0], "shape") else len(data[0])
    return number


def take(data: tuple[Any, ...], rows: NDArray) -> tuple[Any, ...]:
    """Return some rows of each array.

    Parameters
    ----------
    data : tuple of array-like
        Arguments of `fit`.
    rows : ndarray
        Positions, or a mask.

    Returns
    -------
    data : tuple
    """
    return tuple(_take(part, rows) for part in data)


def _take(part: Any, rows: NDArray) -> Any:
    if hasattr(part, "iloc"):
        return part.iloc[rows]
    return part.tocsr()[rows] if issparse(part) else np.asarray(part)[rows]


def coins(random_state: Any, label: str, number: int) -> NDArray[np.bool_]:
    """Toss fair coins.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None
        Of the audit.
    label : str
        What they are for.
    number : int
        How many.

    Returns
    -------
    heads : ndarray of shape (number,)
    """
    heads: NDArray[np.bool_] = NoiseSource(random_state).stream(label).words(number) >> np.uint64(63) == 1
    return heads

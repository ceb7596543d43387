"""The largest change of a query by one record, found by trial."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..checks.params import check_boolean, check_integer, shown
from ..mechanisms import NoiseSource
from ._fits import as_data_set, number_of_records, take


@dataclass(frozen=True, eq=False)
class LargestChange:
    """The largest change of a query that was found.

    Parameters
    ----------
    value : float
        Change in the norm.
    data : tuple of array-like
        Smaller data set, or the one in which a record was replaced.
    record : tuple of array-like
        Record that was added, as data of one row.
    position : int
        Row of the record.
    n_pairs : int
        Number of pairs of neighbouring data sets that were tried.
    """

    value: float
    data: tuple[Any, ...]
    record: tuple[Any, ...]
    position: int
    n_pairs: int

    def __repr__(self) -> str:
        return f"a change of {self.value:.6g}, the largest of {self.n_pairs} pairs of neighbours"


def brute_force_sensitivity(
    query: Callable[..., ArrayLike],
    records: Any,
    *,
    n_rows: int = 2,
    norm: float = 2,
    replace: bool = False,
    n_pairs: int = 10_000,
    random_state: Any = 0,
) -> LargestChange:
    """Add records to small data sets of the same records, at every position, and return the largest change of a query.

    Parameters
    ----------
    query : callable
        Function that maps a data set, ``query(X)`` or ``query(X, y)``, to a number or an array, before noise is added.
    records : tuple of array-like, or array-like
        ``(X, y)`` or X. Records of the data sets, such as corners of the bounds, and values beyond the bounds.
    n_rows : int, default=2
        Largest number of rows of the smaller data set.
    norm : {1, 2, inf}, default=2
        Norm of the change.
    replace : bool, default=False
        If True, neighbouring data sets differ in a record that is replaced. If False, one has one record more.
    n_pairs : int, default=10_000
        Largest number of pairs to try. If there are more, data sets, records and positions are drawn at random.
    random_state : int, RandomState, Generator or None, default=0
        Seed of these draws.

    Returns
    -------
    change : LargestChange
        A lower bound on the sensitivity, with the pair that shows it.

    Notes
    -----
    Data sets are tried in every order, and with repeated records, because a query may depend on the order of rows. The
    number of pairs grows fast. Few records, such as corners of the bounds, are most informative.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.audit import brute_force_sensitivity
    >>> corners = np.array([[-1.0, -1.0], [1.0, 1.0], [1.0, -1.0], [9.0, 9.0]])
    >>> change = brute_force_sensitivity(
    ...     lambda X: np.clip(X, -1, 1).sum(axis=0), corners
    ... )
    >>> round(float(change.value), 3)
    1.414
    """
    n_rows = check_integer(n_rows, "n_rows", least=0)
    n_pairs = check_integer(n_pairs, "n_pairs", least=1)
    if norm not in (1, 2, math.inf):
        raise ValueError(f"norm must be 1, 2 or inf, got {shown(norm)}")
    data = as_data_set(records)
    n_records = number_of_records(data)
    replace = check_boolean(replace, "replace")
    if n_records == 0:
        raise ValueError("records must hold one record or more")
    if replace and n_rows == 0:
        raise ValueError(
            "n_rows must be at least 1 if replace is True, because an empty data set has no record to replace"
        )

    def value_of(rows: NDArray[np.intp]) -> NDArray[np.float64]:
        value = query(*take(data, rows))
        if value is None:
            raise ValueError("query returned None")
        return np.asarray(value, dtype=np.float64)

    best: tuple[float, Any, int, int] = (-1.0, None, 0, 0)
    tried, last, before = 0, None, np.empty(0)
    for rows, added, position in _pairs(n_records, n_rows, replace, n_pairs, random_state):
        tried += 1
        if rows is not last:
            before, last = value_of(rows), rows
        others = np.delete(rows, position) if replace else rows
        after = value_of(np.insert(others, position, added))
        if after.shape != before.shape:
            raise ValueError(
                "the shape of the query's value must not depend on the number of rows, because it has no noise"
            )
        change = _distance(before, after, norm)
        if change > best[0]:
            best = change, rows, added, position
    change, rows, added, position = best
    return LargestChange(change, take(data, rows), take(data, np.array([added])), position, tried)


def _distance(before: NDArray, after: NDArray, norm: float) -> float:
    with np.errstate(invalid="ignore", over="ignore"):
        same = (before == after) | (np.isnan(before) & np.isnan(after))
        change = np.abs(np.where(same, 0.0, after - before)).ravel()
        largest = float(change.max(initial=0.0))
        if not math.isfinite(largest):
            return math.inf
        # Squares of small numbers would underflow.
        return largest * float(np.linalg.norm(change / largest, norm)) if largest > 0 else 0.0


def _pairs(
    n_records: int, n_rows: int, replace: bool, most: int, random_state: Any
) -> Iterator[tuple[NDArray[np.intp], int, int]]:
    # An empty data set has no record to replace.
    sizes = range(1 if replace else 0, n_rows + 1)
    if sum(n_records ** (size + 1) * _positions(size, replace) for size in sizes) <= most:
        for size in sizes:
            for chosen in product(range(n_records), repeat=size):
                rows = np.array(chosen, dtype=np.intp)
                for added, position in product(range(n_records), range(_positions(size, replace))):
                    yield rows, added, position
        return
    words = NoiseSource(random_state).stream("pairs").words(most * (n_rows + 3)).reshape(most, n_rows + 3)
    for row in words:
        size = sizes[int(row[0] % np.uint64(len(sizes)))]
        drawn = (row[2:] % np.uint64(n_records)).astype(np.intp)
        yield drawn[:size], int(drawn[-1]), int(row[1] % np.uint64(_positions(size, replace)))


def _positions(size: int, replace: bool) -> int:
    return size if replace else size + 1

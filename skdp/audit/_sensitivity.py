"""What one record can change in a query, found by trying."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement, islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._params import check_integer
from .._values import shown
from ..mechanisms import NoiseSource
from ._data import as_data_set, take


@dataclass(frozen=True)
class LargestChange:
    """The largest change that was found.

    Parameters
    ----------
    value : float
        In the norm.
    data : tuple of array-like
        The smaller data set.
    record : tuple of array-like
        The record that was added to it, as data of one row.
    n_pairs : int
        Number of pairs of neighbours that were tried.
    """

    value: float
    data: tuple[Any, ...]
    record: tuple[Any, ...]
    n_pairs: int

    def __repr__(self) -> str:
        return f"a change of {self.value:.6g}, the largest of {self.n_pairs} pairs of neighbours"


def brute_force_sensitivity(
    query: Callable[..., ArrayLike],
    records: Any,
    *,
    n_rows: int = 2,
    norm: float = 2,
    n_pairs: int = 10_000,
    random_state: Any = 0,
) -> LargestChange:
    """Add each of some records to data sets made of them, and return the largest change of a query.

    Parameters
    ----------
    query : callable
        Maps a data set, ``query(X)`` or ``query(X, y)``, to a number or an array: what noise is added to.
    records : tuple of array-like, or array-like
        ``(X, y)`` or X: records to make data sets of. Corners of the bounds, and what lies beyond them.
    n_rows : int, default=2
        Most rows of the smaller data set. There is also the empty one.
    norm : {1, 2, inf}, default=2
        Norm of the change.
    n_pairs : int, default=10_000
        Most pairs to try: all, if there are no more, or else data sets and records drawn at random.
    random_state : int, RandomState, Generator or None, default=0
        Of these draws.

    Returns
    -------
    change : LargestChange
        A lower bound on the sensitivity, with the pair that shows it.

    Notes
    -----
    The record is added as the last row and as the first, since a query that depends on the order of rows changes by
    more than one record's worth.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.audit import brute_force_sensitivity
    >>> corners = np.array([[-1.0, -1.0], [1.0, 1.0], [1.0, -1.0], [9.0, 9.0]])
    >>> found = brute_force_sensitivity(lambda X: np.clip(X, -1, 1).sum(axis=0), corners)
    >>> bool(np.isclose(found.value, 2**0.5))
    True
    """
    n_rows = check_integer(n_rows, "n_rows", least=0)
    n_pairs = check_integer(n_pairs, "n_pairs", least=1)
    if norm not in (1, 2, math.inf):
        raise ValueError(f"norm must be 1, 2 or inf, got {shown(norm)}")
    parts = as_data_set(records)
    n_records = np.shape(parts[0])[0]
    if n_records == 0:
        raise ValueError("records must hold one record or more")
    best: tuple[float, Any, Any] = (-1.0, None, None)
    tried = 0
    for rows, added in _pairs(n_records, n_rows, n_pairs, random_state):
        tried += 1
        before = np.asarray(query(*take(parts, rows)), dtype=np.float64)
        for more in (np.append(rows, added), np.append(added, rows)):
            after = np.asarray(query(*take(parts, more)), dtype=np.float64)
            if after.shape != before.shape:
                raise ValueError("the query's shape depends on the number of rows, which tells it without any noise")
            change = float(np.linalg.norm(np.ravel(after - before), norm))
            if change > best[0] or math.isnan(change):
                best = (math.inf if math.isnan(change) else change), rows, added
            if not len(rows):
                break
    value, rows, added = best
    return LargestChange(value, take(parts, rows), take(parts, np.array([added])), tried)


def _pairs(n_records: int, n_rows: int, most: int, random_state: Any) -> Iterator[tuple[NDArray[np.intp], int]]:
    number = sum(math.comb(n_records + size - 1, size) for size in range(n_rows + 1)) * n_records
    if number <= most:
        for size in range(n_rows + 1):
            for rows in combinations_with_replacement(range(n_records), size):
                for added in range(n_records):
                    yield np.array(rows, dtype=np.intp), added
        return
    words = NoiseSource(random_state).stream("pairs").words(most * (n_rows + 2)).reshape(most, n_rows + 2)
    for row in islice(words, most):
        size = int(row[0] % np.uint64(n_rows + 1))
        drawn = (row[1:] % np.uint64(n_records)).astype(np.intp)
        yield drawn[:size], int(drawn[-1])

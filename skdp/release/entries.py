r"""Entries and targets outside of their declaration, for estimators with a schema that release no counts of these.

Each column of the schema has a number: 1/2 for each record with an entry in no category, and -1/2 for each record with
a declared entry. Its expectation is positive only if more than half of the entries are outside. A number of a column
counts as outside if it is missing, unreadable or not below the upper bound. Because some entries belong there, such a
record adds 1/16, and a record with a missing entry of a category adds 1/32. Then the expectation is positive only if
more than 8/9 or 16/17 of the entries are outside. A target beyond its bounds, or a label that is not declared, counts
as an entry in no category. Records of such labels count in no other number. The vector of `d` numbers is a sum over
records, of which one moves it by at most :math:`\sqrt d/2` in L2 norm (user guide, "Units", theorem 1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ..accounting import PrivacyEvent, PureEvent
from ..mechanisms import Mechanism, NoNoise, coordinate_variance, is_gaussian, l2_mechanism
from ..parts.arrays import PartedArray, folded
from .mismatch import FALSE_ALARM, margin, values_of, warn_of_parts, warn_of_targets
from .session import ReleaseSession

ENTRIES = "entries outside of their declaration"

#: Share of the budget, of epsilon or of the square of the GDP parameter, with columns and for the target alone.
ENTRIES_SHARE, TARGET_SHARE = 0.02, 0.005

# What an entry of the declaration adds, and a target outside of it.
_INSIDE, _BEYOND = -0.5, 0.5


def entries_mechanism(size: int, epsilon: float, delta: float, share: float) -> tuple[Mechanism, PrivacyEvent]:
    """Return the mechanism of `size` numbers for a share of the budget, and its event."""
    sensitivity = math.sqrt(size) / 2 * (1 + 2.0**-40)
    if epsilon == math.inf:
        return NoNoise(sensitivity), PureEvent(epsilon)
    return l2_mechanism(epsilon, delta, share, sensitivity, size)


def check_entries(
    session: ReleaseSession, columns: Mapping[str, Any], targets: Any, X: Any, y: Any, known: Any
) -> None:
    """Release the numbers of columns and of targets, and warn of those that are positive beyond the noise."""
    # Targets have bounds, () for labels, or None. X has the `known` rows, or those that weights keep of them if `known`
    # is None.
    mechanism = session.mechanism(ENTRIES)
    sums = partial(_sums, list(columns.values()), targets)
    arrays = [X] if y is None else [X, y]
    numbers = folded(sums, arrays) if isinstance(X, PartedArray) else sums(*arrays)
    if targets == () and known is not None:
        numbers[-1] += _BEYOND * left_out(known)
    found = session.release(ENTRIES, numbers)
    deviation = math.sqrt(coordinate_variance(mechanism))
    off = found > margin(deviation, FALSE_ALARM / len(found), is_gaussian(mechanism))
    if targets is not None and off[-1]:
        warn_of_targets(labels=targets == ())
    else:
        warn_of_parts([values_of(name) for name, is_off in zip(columns, off.tolist(), strict=False) if is_off])


def _sums(columns: list[Any], targets: Any, X: Any, y: Any = None) -> NDArray[np.float64]:
    table = X.tocsc() if issparse(X) else X
    numbers = np.full(len(columns) + (targets is not None), _INSIDE * X.shape[0])
    for j, intervals in enumerate(columns):
        for place, low, high, added in intervals:
            entries = table[:, [place]].toarray().ravel() if issparse(table) else table[:, place]
            numbers[j] += (added - _INSIDE) * np.count_nonzero((entries >= low) & (entries < high))
    if targets:
        beyond = (y < targets[0]) | (y > targets[1])
        numbers[-1] += (_BEYOND - _INSIDE) * np.count_nonzero(beyond if beyond.ndim == 1 else beyond.all(axis=1))
    return numbers


def left_out(known: Any) -> float:
    """Return how many records do not have a declared label."""
    return float(folded(left_out, [known]) if isinstance(known, PartedArray) else np.count_nonzero(~known))

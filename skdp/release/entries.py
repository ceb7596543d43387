r"""Entries and targets outside of their declaration, for estimators with a schema that release no counts of these.

Each column of the schema has a number: 1/2 for each record with an entry outside of the declared categories, and -1/2
for each other record. Its expectation is positive only if more than half of the entries are outside. A number of a
column counts as outside if it is missing, unreadable or not below the upper bound. Because some entries belong there,
such a record adds 1/16, and the expectation is positive only if more than 8/9 of the entries are outside. A target
beyond its bounds, or a label that is not declared, counts as an entry outside. Records of such labels count in no other
number. The vector of `d` numbers is a sum over records, of which one moves it by at most :math:`\sqrt d/2` in L2 norm
(user guide, "Units", theorem 1).
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

_INSIDE = -0.5

#: What an entry outside adds, and one that may belong there.
OUTSIDE, SELDOM = 0.5, 1 / 16


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
    numbers = folded(sums, [X, y]) if isinstance(X, PartedArray) else sums(X, y)
    if targets == () and known is not None:
        numbers[-1] += OUTSIDE * left_out(known)
    found = session.release(ENTRIES, numbers)
    deviation = math.sqrt(coordinate_variance(mechanism))
    off = found > margin(deviation, FALSE_ALARM / len(found), is_gaussian(mechanism))
    if targets is not None and off[-1]:
        warn_of_targets(labels=targets == ())
    else:
        warn_of_parts([values_of(name) for name, is_off in zip(columns, off.tolist(), strict=False) if is_off])


def _sums(columns: list[Any], targets: Any, X: Any, y: Any) -> NDArray[np.float64]:
    numbers = []
    table = X.tocsc() if issparse(X) else X
    for intervals, some_belong in columns:
        outside = np.zeros(X.shape[0], dtype=bool)
        for place, low, high in intervals:
            entries = table[:, [place]].toarray().ravel() if issparse(table) else table[:, place]
            outside |= (entries >= low) & (entries <= high)
        numbers.append(((SELDOM if some_belong else OUTSIDE) - _INSIDE) * np.count_nonzero(outside))
    if targets is not None:
        beyond = (y < targets[0]) | (y > targets[1]) if targets else np.zeros(X.shape[0], dtype=bool)
        numbers.append((OUTSIDE - _INSIDE) * np.count_nonzero(beyond if beyond.ndim == 1 else beyond.all(axis=1)))
    return np.array(numbers) + _INSIDE * X.shape[0]


def left_out(known: Any) -> float:
    """Return how many records do not have a declared label."""
    return float(folded(left_out, [known]) if isinstance(known, PartedArray) else np.count_nonzero(~known))

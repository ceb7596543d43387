r"""Entries and labels outside of their declaration, for estimators with a schema that release no counts of these.

Each column of the schema has a number: 1/2 for each record with an entry that is strictly beyond the bounds or in no
category, and less than 0 for each record with a declared entry. It is -1/2 for numbers and categories of numbers. Then
the expectation is positive only if more than half of the entries are outside. For categories of text it is about -1/18,
so that this share is a tenth. Most entries may be missing, and a missing entry adds little: the expectation is positive
only if more than 8/9 of the numbers, or 16/17 of the categories, are missing or unreadable. A label that is not
declared counts as an entry in no category of text. Records of such labels count in no other number. The vector of `d`
numbers is a sum over records, of which one moves it by at most :math:`\sqrt d/2` in L2 norm (user guide, "Units",
theorem 1).
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
from ..schema.encoding import LISTED, OUTSIDE, Outside
from .mismatch import FALSE_ALARM, margin, values_of, warn_of_classes, warn_of_parts
from .session import ReleaseSession

ENTRIES = "entries outside of their declaration"

#: Share of epsilon or of the square of the GDP parameter, for all columns, or for numbers and the target alone.
ENTRIES_SHARE, TARGET_SHARE = 0.02, 0.005


def entries_mechanism(size: int, epsilon: float, delta: float, share: float) -> tuple[Mechanism, PrivacyEvent]:
    """Return the mechanism of `size` numbers for a share of the budget, and its event."""
    sensitivity = math.sqrt(size) / 2 * (1 + 2.0**-40)
    if epsilon == math.inf:
        return NoNoise(sensitivity), PureEvent(epsilon)
    return l2_mechanism(epsilon, delta, share, sensitivity, size)


def check_entries(session: ReleaseSession, columns: Mapping[str, Outside], labels: bool, X: Any, known: Any) -> None:
    """Release the numbers of columns and of labels, and warn of those that are positive beyond the noise."""
    # X has the `known` rows, or those that weights keep of them if `known` is None.
    mechanism = session.mechanism(ENTRIES)
    sums = partial(_sums, [*columns.values(), *[(LISTED, ())] * labels])
    numbers = folded(sums, [X]) if isinstance(X, PartedArray) else sums(X)
    if labels and known is not None:
        numbers[-1] += OUTSIDE * left_out(known)
    found = session.release(ENTRIES, numbers)
    deviation = math.sqrt(coordinate_variance(mechanism))
    off = found > margin(deviation, FALSE_ALARM / len(found), is_gaussian(mechanism))
    if labels and off[-1]:
        warn_of_classes()
    else:
        warn_of_parts([values_of(name) for name, is_off in zip(columns, off.tolist(), strict=False) if is_off])


def _sums(columns: list[Outside], X: Any) -> NDArray[np.float64]:
    # Additive models have lists of columns.
    table = X.tocsc() if issparse(X) else X
    numbers = np.array([inside for inside, _ in columns]) * (len(X[0]) if isinstance(X, list) else X.shape[0])
    for j, (inside, intervals) in enumerate(columns):
        for place, low, high, added in intervals:
            if issparse(table):
                entries = table[:, [place]].toarray().ravel()
            else:
                entries = table[place] if isinstance(table, list) else table[:, place]
            numbers[j] += (added - inside) * np.count_nonzero((entries >= low) & (entries < high))
    return numbers


def left_out(known: Any) -> float:
    """Return how many records do not have a declared label."""
    return float(folded(left_out, [known]) if isinstance(known, PartedArray) else np.count_nonzero(~known))

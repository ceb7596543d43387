"""Releases of additive models, and the division of the budget, from public numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounting import PrivacyEvent, PureEvent
from ..checks.params import Checked
from ..mechanisms import (
    Mechanism,
    NoNoise,
    coordinate_variance,
    is_gaussian,
    l1_mechanism,
    l2_mechanism,
    pure_share,
    within_reach,
)
from ..parts.arrays import folded, rowwise
from ..release.counts import declared_parts, left_out, warn_of_mismatch
from ..release.reserve import ReservedPart
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem
from ..schema.columns import Columns
from ..solvers.target_range import TargetRange
from ._cells import smoothed_shares

Array = NDArray[np.float64]

CURVES_AND_TABLES = "curves and tables"
COUNTS = "records in cells"

_COUNTS_THEOREM = Theorem("Additive models", 1)

#: Share of the counts in the squared GDP parameter, and in epsilon with ``delta=0``.
COUNT_SHARE, PURE_COUNT_SHARE = 0.04, 0.08

#: With ``delta=0``, a record adds at most so much to the numbers of all its cells.
WEIGHT_OF_CELLS = 2.0

#: The same numbers for labels with a small epsilon. They are halfway at the third number.
LABEL_COUNT_SHARE, WEIGHT_BESIDE_LABELS, HALFWAY = 0.2, 0.5, 0.2

# Number of bits of the weight of a record in cells.
_BITS = 20

#: A larger rest of the budget after the stages repeats the fit of the curves.
LEAST_REST = 2.0**-20


def cell_sensitivity(n_columns: int, with_labels: bool = False) -> int:
    """Bound what one record adds to the numbers of records in all cells, and to their total.

    A record is in at most one cell of each of :math:`d` columns. It adds 1 to the count of each of these cells, 1 to
    the total, and 1 to the count of its label, if labels are counted. Therefore the L1 norm and the squared L2 norm of
    its contribution are at most :math:`d + 1`, or :math:`d + 2` with labels, which is the returned bound. A record in a
    cell of each column attains it. A record with another label is in no cell. It adds 1 to one more number.

    With ``delta=0``, a record adds a public weight :math:`w` to the numbers of its cells, and 1 to one other number:
    that of its label if labels are counted, and otherwise the total. The L1 norm is then at most :math:`1 + dw`.
    """
    return n_columns + 1 + with_labels


def records_in_cells(sizes: tuple[int, ...], codes: Any) -> Array:
    """Return the number of records, followed by the numbers of records in the cells of each column."""
    counts = [np.bincount(cells, minlength=size)[:size] for cells, size in zip(codes, sizes, strict=True)]
    return np.concatenate([[codes.shape[1]], *counts]).astype(np.float64)


@dataclass(frozen=True, eq=False)
class CountsPlan:
    """The plan of the counts, which are released before the model."""

    events: tuple[PrivacyEvent, ...]
    releases: tuple[Release, ...]
    share: float  # Share of the budget.
    n_labels: int = 0
    weight: float = 1.0  # What a record adds to the numbers of its cells.

    @classmethod
    def of(cls, epsilon: float, delta: float, columns: Columns, n_labels: int = 0) -> CountsPlan:
        moved, size = cell_sensitivity(len(columns.kinds), n_labels > 0), 2 + sum(columns.sizes) + n_labels
        share, weight = COUNT_SHARE, 1.0
        counts: Mechanism
        event: PrivacyEvent
        if epsilon == math.inf:
            counts, event = NoNoise(math.sqrt(moved)), PureEvent(epsilon)
        elif delta > 0:
            counts, event = l2_mechanism(epsilon, delta, share, math.sqrt(moved), size)
        else:
            share, of_cells = PURE_COUNT_SHARE, WEIGHT_OF_CELLS
            if n_labels:
                # With much noise, the numbers of labels matter most.
                noisy = 1 / (1 + (epsilon / HALFWAY) ** 2)
                share += noisy * (LABEL_COUNT_SHARE - share)
                of_cells += noisy * (WEIGHT_BESIDE_LABELS - of_cells)
            # Sums of such multiples are exact.
            weight = math.floor(of_cells / len(columns.kinds) * 2.0**_BITS) * 2.0**-_BITS
            part = pure_share(epsilon, share)
            counts, event = l1_mechanism(part, 1 + len(columns.kinds) * weight, size), PureEvent(part)
        return cls((event,), (Release(COUNTS, counts, share, _COUNTS_THEOREM),), share, n_labels, weight)


@dataclass(frozen=True, eq=False)
class Design:
    """The public columns of a fit, the plans of its releases, and the part of the budget for curves and tables."""

    columns: Columns
    counts: CountsPlan
    reserved: ReservedPart
    last: Any = None  # The plan of a release after those of the model.
    target_range: TargetRange | None = None

    @classmethod
    def of(
        cls,
        parameters: Checked,
        columns: Columns,
        n_labels: int = 0,
        last: Any = None,
        target_range: TargetRange | None = None,
    ) -> Design:
        counts = CountsPlan.of(parameters.epsilon, parameters.delta, columns, n_labels)
        others = (0.0 if target_range is None else target_range.share) + (0.0 if last is None else last.release.share)
        theorem, share = Theorem("Additive models", 4), 1 - counts.share - others
        reserved = ReservedPart(CURVES_AND_TABLES, theorem, parameters.epsilon, parameters.delta, share)
        return cls(columns, counts, reserved, last, target_range)

    @property
    def guarantee(self) -> PrivacyGuarantee:
        """The guarantee of all releases."""
        model = self.reserved.plan()
        events, releases = self.counts.events + model.events, self.counts.releases + model.releases
        if self.last is not None:
            events, releases = (*events, self.last.event), (*releases, self.last.release)
        if model.epsilon == math.inf:
            events = (PureEvent(math.inf),)
        guarantee = PrivacyGuarantee(model.epsilon, model.delta, events, releases)
        return guarantee if self.target_range is None else self.target_range.and_then(guarantee)


@dataclass(frozen=True, eq=False)
class Cells:
    """The private cells of the records, and the released counts."""

    columns: Columns
    codes: Any  # Private, of shape (n_columns, n_rows), in one place or in parts.
    total: float  # Released number of records; at least 1, and at least its own noise.
    counts: list[Array]  # Released numbers of records in the cells of each column.
    noise: float  # Standard deviation of the noise in each of them, and in the number of each label.
    label_noise: float
    labels: Array  # Released numbers of records with each label, if labels are counted.

    @cached_property
    def shares(self) -> list[Array]:
        """Shares of records in the cells of each column."""
        ordered = self.columns.ordered
        return [smoothed_shares(numbers, kind, self.noise) for numbers, kind in zip(self.counts, ordered, strict=True)]


def release_cells(
    session: ReleaseSession,
    columns: Columns,
    X: Any,
    names: NDArray | None,
    plan: CountsPlan,
    known: Any = None,
    labels: Any = None,
) -> Cells:
    """Release counts, and warn if the records do not match the declarations."""
    codes = rowwise(columns.codes, X)
    mechanism = session.mechanism(COUNTS)
    gaussian = is_gaussian(mechanism)
    weight, n_labels = plan.weight, plan.n_labels
    # Without labels, the last number is 0.
    outside = 0.0 if known is None else left_out(known)
    of_labels = folded(partial(np.bincount, minlength=n_labels), [labels]) if n_labels else np.empty(0)
    by_cell = folded(partial(records_in_cells, columns.sizes), [codes])
    # If the L1 norm counts, the total is not released, but is the sum of the numbers of labels.
    summed = n_labels > 0 and not gaussian
    exact = [0.0 if summed else by_cell[0], *(weight * by_cell[1:]), *of_labels, outside]
    released = session.release(COUNTS, within_reach(mechanism, exact))
    total, in_cells, of_labels, (others,) = np.split(released, np.cumsum([1, sum(columns.sizes), n_labels]))
    noise = math.sqrt(coordinate_variance(mechanism))
    variance = noise**2
    whole = (float(total[0]), variance)
    if summed:
        whole = (float(of_labels.sum()), variance * n_labels)
    counts = np.split(in_cells / weight, np.cumsum(columns.sizes)[:-1])
    parts = []
    for j, (ordered, numbers) in enumerate(zip(columns.ordered, counts, strict=True)):
        if not ordered or j in columns.declared:
            name = j if names is None else str(names[j])
            n_declared = columns.declared.get(j, len(numbers))
            parts += declared_parts(name, numbers, n_declared, whole, variance / weight**2, ordered)
    warn_of_mismatch(
        parts, labels=None if known is None else whole, others=(float(others), variance), gaussian=gaussian
    )
    # A number below its own noise has no information, and would make steps that are divided by it far too long.
    n_records = max(1.0, math.sqrt(whole[1]), whole[0])
    return Cells(columns, codes, n_records, counts, noise / weight, noise, of_labels)

"""Releases of additive models, and the division of the budget, from public numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..accounting import GaussianEvent, PrivacyEvent, PureEvent, gaussian_mu
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
from ..parts.arrays import PartedArray, folded, rowwise
from ..release.mismatch import declared_parts, left_out, warn_of_mismatch
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Reserved, Theorem
from ..schema.columns import Columns
from ._cells import smoothed_shares

Array = NDArray[np.float64]

CURVES_AND_TABLES = "curves and tables"
COUNTS = "records in cells"

_COUNTS_THEOREM = Theorem("Additive models", 1)

#: Share of the counts in the budget (of epsilon, or of the squared GDP parameter).
COUNT_SHARE = 0.04


# Parts of the budget are rounded down, so that their sum never exceeds the budget.
_BELOW = 1 - 2.0**-36

# Events of reserved parts are rounded down, so that the sum of a plan is below its budget.
_ROUNDED_DOWN = 1 - 2.0**-44

# A smaller rest of the budget is a rounding error.
_LEAST_SHARE = 2.0**-30

#: A larger rest of the budget after the stages repeats the fit of the curves.
LEAST_REST = 2.0**-20


class Last(Protocol):
    """The plan of a release after those of the model."""

    @property
    def release(self) -> Release: ...

    @property
    def event(self) -> PrivacyEvent: ...


def cell_sensitivity(n_columns: int, with_labels: bool = False) -> int:
    """Bound what one record adds to the numbers of records in all cells, and to their total.

    A record is in at most one cell of each of :math:`d` columns. It adds 1 to the count of each of these cells, 1 to
    the total, and 1 to the count of its label, if labels are counted. Therefore the L1 norm and the squared L2 norm of
    its contribution are at most :math:`d + 1`, or :math:`d + 2` with labels, which is the returned bound. A record in a
    cell of each column attains it. A record with another label is in no cell. It adds 1 to one more number.
    """
    return n_columns + 1 + with_labels


def records_in_cells(sizes: tuple[int, ...], codes: Any) -> Array:
    """Return the number of records, followed by the numbers of records in the cells of each column."""
    if isinstance(codes, PartedArray):
        total: Array = folded(partial(records_in_cells, sizes), [codes])
        return total
    counts = [np.bincount(own, minlength=size)[:size] for own, size in zip(codes, sizes, strict=True)]
    return np.concatenate([[codes.shape[1]], *counts]).astype(np.float64)


def with_labels(n_labels: int, labels: Any) -> Array:
    """Return the number of records with each label."""
    if isinstance(labels, PartedArray):
        total: Array = folded(partial(with_labels, n_labels), [labels])
        return total
    return np.bincount(labels, minlength=n_labels).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Before:
    """The release before those of the model: the counts."""

    events: tuple[PrivacyEvent, ...]
    releases: tuple[Release, ...]
    share: float  # Share of the budget.

    @classmethod
    def of(cls, epsilon: float, delta: float, columns: Columns, n_labels: int = 0) -> Before:
        moved, size = cell_sensitivity(len(columns.kinds), n_labels > 0), 2 + sum(columns.sizes) + n_labels
        counts: Mechanism
        event: PrivacyEvent
        if epsilon == math.inf:
            counts, event = NoNoise(math.sqrt(moved)), PureEvent(epsilon)
        elif delta > 0:
            counts, event = l2_mechanism(epsilon, delta, COUNT_SHARE, math.sqrt(moved), size)
        else:
            part = pure_share(epsilon, COUNT_SHARE)
            counts, event = l1_mechanism(part, float(moved), size), PureEvent(part)
        return cls((event,), (Release(COUNTS, counts, COUNT_SHARE, _COUNTS_THEOREM),), COUNT_SHARE)

    def and_then(self, guarantee: PrivacyGuarantee, last: Last | None = None) -> PrivacyGuarantee:
        """Return the guarantee of these releases, of the model's releases, and of the last release."""
        events, releases = self.events + guarantee.events, self.releases + guarantee.releases
        if last is not None:
            events, releases = (*events, last.event), (*releases, last.release)
        if guarantee.epsilon == math.inf:
            events = (PureEvent(math.inf),)
        return PrivacyGuarantee(guarantee.epsilon, guarantee.delta, events, releases)


@dataclass(frozen=True)
class ReservedPart:
    """The part of the budget for curves and tables, whose plans depend on earlier releases."""

    epsilon: float
    delta: float
    share: float  # Of the squared GDP parameter.

    def mu(self, share: float) -> float:
        """Return the GDP parameter of a share of the budget."""
        return math.inf if self.epsilon == math.inf else gaussian_mu(self.epsilon, self.delta) * math.sqrt(share)

    @property
    def event(self) -> GaussianEvent | PureEvent:
        return self.event_of(self.share)

    def event_of(self, share: float) -> GaussianEvent | PureEvent:
        """Return the event of a share of the budget."""
        return PureEvent(math.inf) if self.delta == 0 else GaussianEvent(self.mu(share) * _ROUNDED_DOWN)

    def plan(self) -> PrivacyGuarantee:
        release = Release(CURVES_AND_TABLES, Reserved(self.event), self.share, Theorem("Additive models", 6))
        return PrivacyGuarantee(self.epsilon, self.delta, (self.event,), (release,))


class Reserve:
    """What is left of a reserved part. Each share that is spent follows from earlier releases."""

    def __init__(self, session: ReleaseSession, part: ReservedPart) -> None:
        self.session, self._part = session, part

    @property
    def share(self) -> float:
        return self._part.share

    def mu(self, share: float) -> float:
        """Return the GDP parameter of a share of the budget, slightly rounded down."""
        return self._part.mu(share * _BELOW)

    def spend(self, share: float, releases: Sequence[Release], events: Sequence[PrivacyEvent] | None = None) -> None:
        """Plan releases for a share of the budget. Without `events`, there is one release of all of the share."""
        if events is None:
            events = [self._part.event_of(share * _BELOW)]
        left = replace(self._part, share=(self._part.share - share) * _BELOW)
        if left.share > _LEAST_SHARE:
            rest = left.plan()
            releases, events = [*releases, *rest.releases], [*events, *rest.events]
        self.session.refine(CURVES_AND_TABLES, releases, events)
        self._part = left


@dataclass(frozen=True, eq=False)
class Cells:
    """The private cells of the records, and the released counts."""

    columns: Columns
    codes: Any  # Private, of shape (n_columns, n_rows), in one place or in parts.
    total: float  # Released number of records; at least 1, and at least its own noise.
    counts: list[Array]  # Released numbers of records in the cells of each column.
    noise: float  # Standard deviation of the noise in each of them.
    labels: Array  # Released numbers of records with each label, if labels are counted.

    @cached_property
    def shares(self) -> list[Array]:
        """Shares of records in the cells of each column."""
        ordered = self.columns.ordered
        return [smoothed_shares(own, kind, self.noise) for own, kind in zip(self.counts, ordered, strict=True)]


def release_cells(
    session: ReleaseSession,
    columns: Columns,
    X: Any,
    names: NDArray | None,
    known: Any = None,
    labels: Any = None,
    n_labels: int = 0,
) -> Cells:
    """Release counts, and warn if the records do not match the declarations."""
    codes = rowwise(columns.codes, X)
    mechanism = session.mechanism(COUNTS)
    # Without labels, the last number is 0.
    outside = 0.0 if known is None else left_out(known)
    of_labels = with_labels(n_labels, labels) if n_labels else np.empty(0)
    exact = [*records_in_cells(columns.sizes, codes), *of_labels, outside]
    released = session.release(COUNTS, within_reach(mechanism, exact))
    found, of_labels = np.delete(released, slice(-1 - n_labels, -1)), released[len(released) - 1 - n_labels : -1]
    noise = math.sqrt(coordinate_variance(mechanism))
    counts = np.split(found[1:-1], np.cumsum(columns.sizes)[:-1])
    total, others, parts = (float(found[0]), noise**2), (float(found[-1]), noise**2), []
    for j, (ordered, own) in enumerate(zip(columns.ordered, counts, strict=True)):
        if not ordered or j in columns.declared:
            name = j if names is None else str(names[j])
            n_declared = columns.declared.get(j, len(own))
            parts += declared_parts(name, own, n_declared, total, noise**2)
    labels = None if known is None else total
    warn_of_mismatch(parts, labels=labels, others=others, gaussian=is_gaussian(mechanism))
    # A number below its own noise has no information, and would make steps that are divided by it far too long.
    return Cells(columns, codes, max(1.0, noise, total[0]), counts, noise, of_labels)

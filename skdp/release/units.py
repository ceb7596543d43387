r"""The unit of privacy, one record or all records of one group, and weights of records.

Weights. A record of weight :math:`w\in[0,1]` is kept with probability :math:`w`, independently, and the fit continues
with the kept records (user guide, "Units", theorem 2). In expectation, every sum over them is the weighted sum. No
sensitivity depends on weights, so that a weight that is not clipped cannot break the guarantee. The condition is that
the weight of a record depends on this record alone, and on public or released numbers. Nothing here can check it.

Groups. If a person has several records, they are a group. At most a public number of records of each group counts. They
are drawn at random, and the others are left out (theorem 1).

The draws of one group must not depend on another group. Each row has a random priority, and the rows of lowest priority
in their group count. The priorities are independent and identically distributed, and do not depend on other rows or on
the order of rows. Identifiers are only compared for equality, and each is read separately. NumPy would convert a list
to a type that holds all entries, and one group would then determine whether two other groups are distinguished.

Balanced weights of labels: the counts of labels are released first, and records are kept by weights from them (theorem
3). The fit is that of a copy of the estimator, with a smaller epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounting import (
    GaussianEvent,
    PrivacyEvent,
    Relation,
    check_delta,
    check_epsilon,
    gaussian_epsilon,
    gaussian_mu,
)
from ..checks.data import check_quietly, is_sequence, label_key
from ..checks.params import check_integer, check_positive, shown
from ..mechanisms import BitStream, Mechanism, NoiseSource, coordinate_variance, pure_share
from ..parts.arrays import PartedArray, chosen, folded, rowwise
from ..schema.encoding import LISTED
from ..schema.entries import check_index
from .counts import ENTRIES, ENTRIES_SHARE, TARGET_SHARE, WORST, class_sums_mechanism, entries_releases
from .session import PrivacyGuarantee, Release, ReleaseSession, Reserved, Theorem

Array = NDArray[np.float64]

_NO_BOUND = (
    "sample_weight is given and max_weight is None. Set max_weight, a public upper bound on the weights: a record is "
    "kept with probability sample_weight / max_weight. If bagging or boosting passes the weights, the guarantee does "
    "not hold for any max_weight: use PATEClassifier, SampleAggregate or DPRandomTree instead"
)


def relative_weights(sample_weight: Any, max_weight: Any) -> Any:
    """Check weights of records and their public bound. Return weights in [0, 1], or None if there are none."""
    bound = None if max_weight is None else check_positive(max_weight, "max_weight")
    if sample_weight is None:
        return None
    if bound is None:
        raise ValueError(_NO_BOUND)
    return rowwise(partial(_relative, bound), sample_weight)


def _relative(bound: float, sample_weight: Any) -> Array:
    weights = check_quietly(
        sample_weight, dtype=np.float64, ensure_2d=False, ensure_min_samples=0, input_name="sample_weight"
    )
    if weights.ndim != 1:
        raise ValueError("sample_weight must be a 1d array: one weight for each row")
    if np.any(weights < 0):
        raise ValueError("sample_weight must not hold negative weights")
    return np.minimum(weights, bound) / bound


def check_class_weight(class_weight: Any) -> Any:
    """Return weights of labels, or refuse those of another type."""
    balanced = isinstance(class_weight, str) and class_weight == "balanced"
    if not (balanced or class_weight is None or isinstance(class_weight, Mapping)):
        raise TypeError(
            f"class_weight must be a dict of weights by label, 'balanced' or None, got {shown(class_weight)}"
        )
    return class_weight


def class_weights(class_weight: Any, classes: NDArray | None) -> Array | None:
    """Check public weights of labels. Return weights in [0, 1] of all labels and of labels outside of `classes`."""
    if class_weight is None:
        return None
    if classes is None:
        raise ValueError("class_weight is for labels, and this fit has none: leave it at None")
    if not isinstance(class_weight, Mapping):
        # These weights follow from a release of the fit.
        return None
    labels = classes.tolist()
    for label in set(class_weight) - set(labels):
        raise ValueError(f"class_weight names {shown(label)}, which is not in classes")
    weights = np.array(
        [check_positive(class_weight.get(label, 1.0), f"class_weight[{shown(label)}]", least=0) for label in labels]
    )
    if not weights.any():
        raise ValueError("class_weight must hold a positive weight: no record would be kept")
    # Records with other labels are left out, or only counted. Their code is -1.
    return np.append(weights / weights.max(), 1.0)


def chances(relative: Any, by_class: Array | None, X: Any, y: Any) -> Any:
    """Return for each record the probability that it is kept, or None if all are kept."""
    in_parts = isinstance(relative, PartedArray)
    if relative is not None and not in_parts and len(relative) != (X.shape[0] if y is None else len(y)):
        raise ValueError("X and sample_weight must have the same number of rows")
    if by_class is None:
        return relative
    return rowwise(partial(_by_label, by_class), y, *([] if relative is None else [relative]))


def _by_label(by_class: Array, y: NDArray[np.intp], relative: Array | float = 1.0) -> Array:
    weights: Array = relative * by_class[y]
    return weights


def kept(probabilities: Array, stream: BitStream) -> NDArray[np.bool_]:
    """Toss a coin for each record, and return which records are kept: always with probability 1, and never with 0."""
    # The coins are words in the order of the records. A record in between changes the words of later records. This does
    # not change the law, because the words are independent and identically distributed.
    words = stream.words(len(probabilities)) >> np.uint64(11)
    # Both sides of the comparison are exact: words of 53 bits are doubles.
    coins: NDArray[np.bool_] = words.astype(np.float64) * 2.0**-53 < probabilities
    return coins


#: Largest number of rows of a group that may count.
MOST_ROWS_PER_GROUP = 10**6

_MISSING = "groups holds missing values. Leave out records whose group is unknown"

_MERGED = (
    "groups holds floating-point numbers that are too large to tell integers apart, so that different groups may have "
    "become one: pass identifiers as integers or as text"
)


@dataclass(frozen=True)
class Unit:
    """The unit of neighbouring data sets: one record (None), or a group of which `rows_per_group` records count."""

    rows_per_group: int | None = None

    @classmethod
    def of(cls, rows_per_group: object) -> Unit:
        """Check the parameter `rows_per_group`, an integer or None, and return the unit."""
        if rows_per_group is None:
            return cls()
        return cls(check_integer(rows_per_group, "rows_per_group", least=1, most=MOST_ROWS_PER_GROUP))

    @property
    def rows(self) -> int:
        """Largest number of records of one unit."""
        return 1 if self.rows_per_group is None else self.rows_per_group

    def stated(self, plan: PrivacyGuarantee, where: str = "") -> PrivacyGuarantee:
        """Return the plan with a statement of this unit, for which its sensitivities must hold."""
        # `where` names the part in which the number of records is limited, if it is not limited everywhere.
        if self.rows_per_group is None:
            return plan
        count = ("1 counts" if self.rows == 1 else f"{self.rows} count") + (where and f" in {where}")
        limit = f"of which at most {count}"
        return replace(plan, relation=Relation.ADD_OR_REMOVE_GROUP, limit=limit, rows=self.rows)

    def numbers(self, groups: Any, X: Any) -> Any:
        """Validate groups against the user's rows. Return numbers, or None if the unit is one record."""
        # In parts, the groups themselves are returned. They have numbers only where all of them are.
        if self.rows_per_group is None:
            if groups is not None:
                raise ValueError("rows_per_group must be set if groups are given: how many records of each may count")
            return None
        if groups is None:
            raise ValueError("groups must be given if rows_per_group is set: the group of each row")
        if isinstance(groups, PartedArray):
            return rowwise(_checked_groups, groups)
        check_index(X, groups, "groups")
        return group_numbers(groups)

    def members(self, numbers: Any, X: Any, y: Any = None, known: Any = None) -> tuple[Any, Any, Any]:
        """Return the `known` rows, their targets, and their groups by numbers. Nothing is drawn."""
        if numbers is not None and not isinstance(numbers, PartedArray) and len(numbers) != X.shape[0]:
            raise ValueError("X and groups must have the same number of rows")
        if known is None or (not isinstance(known, PartedArray) and known.all()):
            return X, y, numbers
        return rows_at(X, known), rows_at(y, known), rows_at(numbers, known)

    def counted(
        self,
        source: NoiseSource,
        members: Any,
        X: Any,
        y: Any = None,
        probabilities: Any = None,
    ) -> tuple[Any, Any]:
        """Return the rows that count, in their order: all, or a few of each group, drawn at random."""
        # With `probabilities`, each of these rows is kept with its probability.
        if members is not None:
            X, y, probabilities = self.drawn(source, members, X, y, probabilities)
        if probabilities is not None:
            X, y = with_coins(probabilities, source.stream("weights of records"), X, y)
        return X, y

    def drawn(self, source: NoiseSource, members: Any, *arrays: Any) -> tuple[Any, ...]:
        """Return a few rows of each group, drawn at random, in their order."""
        stream = source.stream("rows that count")
        if isinstance(members, PartedArray):
            return chosen(members, lambda groups: drawn_rows(group_numbers(groups), self.rows, stream), *arrays)
        rows = drawn_rows(members, self.rows, stream)
        return tuple(rows_at(array, rows) for array in arrays)


#: The default unit of a fit.
ONE_RECORD = Unit()


def with_coins(probabilities: Any, stream: BitStream, X: Any, y: Any) -> tuple[Any, Any]:
    """Keep each record with its probability."""
    if isinstance(probabilities, PartedArray):
        X, y = chosen(probabilities, lambda chances_of_part: np.flatnonzero(kept(chances_of_part, stream)), X, y)
        return X, y
    coins = kept(probabilities, stream)
    return rows_at(X, coins), rows_at(y, coins)


def rows_at(data: Any, rows: NDArray) -> Any:
    """Return some rows of an array or of a list of columns."""
    if isinstance(data, list):
        return [column[rows] for column in data]
    if isinstance(data, PartedArray):
        return rowwise(rows_at, data, rows)
    return None if data is None else data[rows]


def group_numbers(groups: Any) -> NDArray[np.intp]:
    """Return a number for each row. Numbers are equal if the groups are equal, and have no other meaning."""
    if is_sequence(groups):
        array = np.fromiter(groups, dtype=object, count=len(groups))
    else:
        if np.ma.is_masked(groups):
            raise ValueError(_MISSING)
        array = np.asarray(groups)
    if array.ndim != 1:
        raise ValueError("groups must be one-dimensional, with the group of each row")
    if array.dtype.kind == "f" and np.any(np.abs(array) >= _exact_up_to(array.dtype)):
        raise ValueError(_MERGED)
    if array.dtype.kind in "biufUS":
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise ValueError(_MISSING)
        return np.unique(array, return_inverse=True)[1].astype(np.intp)
    if array.dtype.kind not in "OT":
        raise TypeError("groups must hold numbers or text")
    entries = array.tolist()
    if any(
        issubclass(type(group), float | np.floating) and abs(float(group)) >= _exact_up_to(type(group))
        for group in entries
    ):
        raise ValueError(_MERGED)
    keys = [label_key(group) for group in entries]
    kinds = {kind for kind, _ in keys}
    if "missing" in kinds:
        raise ValueError(_MISSING)
    if not kinds <= {"text", "bytes", "number"}:
        raise TypeError("groups must hold numbers or text")
    numbers: dict[Any, int] = {}
    return np.fromiter((numbers.setdefault(key, len(numbers)) for key in keys), dtype=np.intp, count=len(keys))


def _exact_up_to(dtype: Any) -> float:
    """Return the smallest number from which on integers of a floating-point type are merged."""
    return 2.0 ** (np.finfo(dtype).nmant + 1)


def _checked_groups(groups: Any) -> NDArray:
    """Return the groups of a part, and raise an error if they cannot be compared."""
    group_numbers(groups)
    return np.asarray(groups)


def drawn_rows(members: NDArray[np.intp], most: int, stream: BitStream) -> NDArray[np.intp]:
    """Draw `most` rows of each group uniformly, or all if there are not more, and return increasing positions."""
    # Priorities are 64-bit words. Two words of a group are equal with probability 2**-64.
    order = np.lexsort((stream.words(len(members)), members))
    sorted_members = members[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = sorted_members[1:] != sorted_members[:-1]
    positions = np.arange(len(order))
    rank = positions - np.maximum.accumulate(np.where(first, positions, 0))
    return np.sort(order[rank < most])


COUNTS = "counts of labels for balanced weights"

#: Share of the budget for the counts, of epsilon or of the square of the GDP parameter.
SHARE = 0.04

#: The largest weight is at most so many times the smallest one.
LARGEST_RATIO = 100.0

#: Labels whose released count is below so many standard deviations of its noise have the largest weight.
_LEAST_DEVIATIONS = 3.0

# This is more than the rounding of the inversions of the privacy curve, and of the sum of squares.
_ROUNDING = 1 - 2.0**-28


def is_balanced(estimator: Any) -> bool:
    """Tell whether a fit starts with a release of the counts of labels."""
    class_weight = check_class_weight(getattr(estimator, "class_weight", None))
    return isinstance(class_weight, str) and not estimator._balances_itself


def _gaussian_rest(epsilon: float, delta: float, share: float) -> float:
    """Return an epsilon for a Gaussian fit after Gaussian releases of this share, or 0 if there is none."""
    if epsilon == math.inf or delta == 0:
        return 0.0
    rest = gaussian_epsilon(gaussian_mu(epsilon, delta) * math.sqrt(1 - share) * _ROUNDING, delta)
    # With a delta that is large for this epsilon, little of epsilon is left.
    return rest if rest > epsilon / 2 else 0.0


#: Labels of the releases before a fit.
BEFORE = frozenset({ENTRIES, WORST, COUNTS})


@dataclass(frozen=True)
class ReleaseBeforeFit:
    """A share of the budget before the fit, and its releases with their events by the budget's epsilon and delta."""

    share: float
    releases: Callable[[float, float], list[tuple[Release, PrivacyEvent]]]


def releases_before_fit(estimator: Any, n_classes: int) -> list[ReleaseBeforeFit]:
    """Return the releases before the fit of an estimator, by public facts."""
    before = []
    unit = Unit.of(estimator._declared("rows_per_group") if hasattr(estimator, "rows_per_group") else None)
    columns, labels = estimator._outside()
    if declared := [*(inside for inside, _ in columns.values()), *[LISTED] * labels]:
        if unit != ONE_RECORD:
            # The sensitivity is that of one record, and records of undeclared labels count in groups of any size.
            raise RuntimeError("undeclared entries can be counted for single records only. Nothing was charged")
        share = ENTRIES_SHARE if columns and "entries" in estimator._counts_outside else TARGET_SHARE
        before.append(ReleaseBeforeFit(share, partial(entries_releases, declared, share)))
    if is_balanced(estimator):

        def counts(epsilon: float, delta: float) -> list[tuple[Release, PrivacyEvent]]:
            mechanism, event = class_sums_mechanism(epsilon, delta, 1, 0, n_classes, unit.rows, SHARE)
            return [(Release(COUNTS, mechanism, SHARE, Theorem("Units", 3)), event)]

        before.append(ReleaseBeforeFit(SHARE, counts))
    return before


def with_releases_before(
    releases: Sequence[ReleaseBeforeFit], estimator: Any, make: Callable[[float, float], tuple[Any, ...]]
) -> tuple[Any, ...]:
    """Return a guarantee or a cost, as `make` plans it for the rest of the budget, with the releases before the fit."""
    # `make` receives an epsilon, and the share of the budget of releases with which a plan composes its steps. A fit
    # that has no known cost has None. If all events of the fit are Gaussian, or if its plan composes its steps with
    # Gaussian releases, the releases before are Gaussian, and take their share of the square of the GDP parameter.
    # Otherwise, epsilon and delta are added up.
    epsilon, delta = check_epsilon(estimator.epsilon), check_delta(estimator.delta)
    share = math.fsum(release.share for release in releases)

    def planned(rest: float, its_delta: float, share_before: float = 0.0) -> tuple[Any, ...]:
        plan, *others = make(rest, share_before)
        if plan is None:
            return None, *others
        made = [pair for release in releases for pair in release.releases(epsilon, its_delta)]
        plan = replace(plan, epsilon=epsilon, events=(*(event for _, event in made), *plan.events))
        if isinstance(plan, PrivacyGuarantee):
            left = 1.0 if share_before else 1 - share
            after = (replace(release, share=release.share * left) for release in plan.releases)
            plan = replace(plan, releases=(*(release for release, _ in made), *after))
        return plan, *others

    if estimator._composes_before and delta > 0 and epsilon < math.inf:
        return planned(epsilon, delta, share)
    rest = _gaussian_rest(epsilon, delta, share)
    if rest > 0:
        plan, *others = planned(rest, delta)
        # The events must be Gaussian, and together as private as Gaussian noise of this epsilon and delta.
        if plan is None or Reserved(GaussianEvent(gaussian_mu(epsilon, delta))).covers(plan.events):
            return plan, *others
    return planned(pure_share(epsilon, 1 - share), 0.0)


def balanced_weights(counts: Array, mechanism: Mechanism) -> Array:
    """Return weights in (0, 1] from released counts, inversely proportional to them within limits."""
    occurs = counts > max(_LEAST_DEVIATIONS * math.sqrt(coordinate_variance(mechanism)), 0.5)
    weights = np.ones(len(counts))
    if occurs.any():
        # A label that hardly occurs must not determine how many records of the others are kept.
        weights[occurs] = np.maximum(counts[occurs].min() / counts[occurs], 1 / LARGEST_RATIO)
    return weights


def balance(session: ReleaseSession, source: NoiseSource, X: Any, y: Any, n_classes: int) -> tuple[Any, Any, Array]:
    """Release the counts of labels, keep records by weights from them, and return these and the weights."""
    mechanism = session.mechanism(COUNTS)
    weights = balanced_weights(session.release(COUNTS, label_counts(y, n_classes)), mechanism)
    # Records with other labels are left out later, or only counted.
    probabilities = chances(None, np.append(weights, 1.0), X, y)
    return *with_coins(probabilities, source.stream("balanced weights"), X, y), weights


def label_counts(y: Any, n_classes: int) -> Array:
    """Return the exact number of records of each label, without records of other labels."""
    return folded(partial(_counts, n_classes), [y])


def _counts(n_classes: int, y: NDArray[np.intp]) -> Array:
    return np.bincount(y[y >= 0], minlength=n_classes).astype(np.float64)

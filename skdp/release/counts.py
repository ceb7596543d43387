r"""Counts and scaled moments of records: their mechanism, and their exact sums.

A value is clipped to public bounds and scaled to :math:`v \in [-1, 1]`. The sums are of :math:`v` and :math:`a(v^2 -
1/2)`. The values of each record are rounded to a lattice before they are added, so that sums are exact. The sensitivity
is in ``class_sums_l1`` and ``class_sums_l2``.

Warnings about declarations that the data do not seem to follow, from released counts only. Every rule is a linear form
of released counts, whose expectation is positive only if a declaration does not fit. There is a warning if a form
exceeds its margin: a quantile of the normal distribution for Gaussian noise, and otherwise the bound of the page
*Theorems next to the code* of the documentation, which also has the weights of the forms.

Everything here is post-processing of released counts and public numbers.

Estimators with a schema that release no counts of such entries release a number for each column, and one for the
labels (user guide, "Declarations that the data do not follow"). It is a sum over records, of which each adds at most
1/2, and its expectation is positive only if too many entries are outside of their declaration. Fits without Gaussian
noise release the largest number only, and choose a column that is likely to have it ("Units", corollary 3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.sparse import issparse

from ..accounting import GaussianEvent, PrivacyEvent, PureEvent, gaussian_mu
from ..checks.params import warn
from ..exceptions import SchemaMismatchWarning
from ..mechanisms import (
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    Mechanism,
    NoNoise,
    choice_mechanism,
    is_gaussian,
    l1_mechanism,
    l2_mechanism,
    pure_share,
)
from ..parts.arrays import PartedArray, charge, folded
from ..schema.encoding import LISTED, OUTSIDE, Outside
from ..sensitivity import class_sums_l1, class_sums_l2, group_sensitivity
from .estimates import Law
from .session import Release, ReleaseSession, Theorem

Array = NDArray[np.float64]

#: Weight of the second moments, for L2 and for L1 sensitivity. The first is close to sqrt(2). Both have few bits, so
#: that weighted sums are exact.
WEIGHT_L2 = 1.375
WEIGHT_L1 = 1.0

# Lattice of scaled values, in bits after the point.
_VALUE_BITS = 20

# Bits of an integer that doubles hold exactly.
_DOUBLE_BITS = 53


def class_sums_mechanism(
    epsilon: float, delta: float, n_counts: int, n_moments: int, size: int, rows: int = 1, share: float = 1.0
) -> tuple[Mechanism, PrivacyEvent]:
    """Return the mechanism that releases counts and moments jointly for a share of the budget, and its event."""
    # A record adds to `n_counts` counts and to two moments of each of `n_moments` features. One unit adds at most
    # `rows` records. The vector has `size` numbers.
    sensitivity = group_sensitivity(class_sums_l2(n_counts, n_moments, WEIGHT_L2), rows)
    if epsilon == math.inf:
        return NoNoise(sensitivity), PureEvent(epsilon)
    if delta > 0:
        mu = gaussian_mu(epsilon, delta) * math.sqrt(share)
        # Steps of at least 2**-31 leave space for 2**30 records.
        bits = min(max(31 + math.floor(math.log2(sensitivity / mu)), 16), 30)
        return GaussianMechanism(mu, sensitivity, size, bits), GaussianEvent(mu)
    sensitivity, step = group_sensitivity(class_sums_l1(n_counts, n_moments, WEIGHT_L1), rows), 1.0
    pure = pure_share(epsilon, share)
    if n_moments:
        # The sampler takes scales of up to 2**46 steps.
        step = math.ldexp(1.0, -max(1, min(_VALUE_BITS, 44 - math.ceil(math.log2(sensitivity / pure)))))
    return DiscreteLaplaceMechanism(pure, sensitivity, size, step), PureEvent(pure)


def noise_scale(mechanism: Mechanism) -> float:
    """Return the standard deviation of the noise in each number."""
    return mechanism.scale * (math.sqrt(2) if isinstance(mechanism, DiscreteLaplaceMechanism) else 1.0)


def moment_weight(mechanism: Mechanism) -> float:
    """Return the weight of the second moments in a release by this mechanism."""
    return WEIGHT_L1 if isinstance(mechanism, DiscreteLaplaceMechanism) else WEIGHT_L2


def moment_bits(mechanism: Mechanism, n_moments: int) -> int | None:
    """Return the bits after the point of the lattice of records' values, or None for doubles if no noise is added."""
    if isinstance(mechanism, NoNoise):
        return None
    if isinstance(mechanism, DiscreteLaplaceMechanism) and n_moments:
        return -round(math.log2(mechanism.step))
    return _VALUE_BITS


def largest_value(bits: int | None) -> float:
    """Return 1 in units of the lattice."""
    return 1.0 if bits is None else float(2**bits)


def record_moments(first: Array, bits: int | None) -> Array:
    """Return values and their squares in lattice units, of shape (n_rows, 2 * n_moments), and overwrite `first`."""
    # `first` holds values of at most `largest_value`. Rounding leaves both within their intervals.
    m = first.shape[1]
    values = np.empty((len(first), 2 * m))
    if bits is not None:
        np.rint(first, out=first)
    values[:, :m] = first
    np.multiply(first, first, out=first)
    if bits is not None:
        first *= 1 / largest_value(bits)
        np.rint(first, out=first)
    values[:, m:] = first
    return values


def in_real_units(total: NDArray, n_counts: int, n_moments: int, mechanism: Mechanism) -> Array:
    """Convert sums in units of the lattice (counts first, then both moments) to the units of the release."""
    # The sums were added as integers, and are clipped to the range that doubles hold exactly, which is a contraction.
    bits = moment_bits(mechanism, n_moments)
    out = np.asarray(total)
    if bits is not None:
        most = 2 ** (_DOUBLE_BITS - 4)
        out = out.clip(-most, most).astype(np.float64)
        # Factors are powers of two and a weight of four bits, so that the products are exact.
        out[..., n_counts:] *= math.ldexp(1.0, -bits)
    out[..., n_counts + n_moments :] *= moment_weight(mechanism)
    return out


#: Probability that a call warns although the data follow the declarations.
FALSE_ALARM = 5e-3

#: A declared label, or the declared values of a column, with at least this share of the records count as present.
LEAST_SHARE_OF_LABEL, LEAST_SHARE = 0.02, 1 / 9

#: Entries in no category, records without a declared label, and targets beyond their bounds may have this share.
LARGEST_SHARE = 0.1

#: Declared labels fit if this number of records has one.
FEWEST = 25

_MOST_NAMED = 10

#: What released counts show of a label or a column.
RARE = "too few records have the label"
UNLISTED = "many entries are in no category in the column"
LACKING = "most entries are missing or unreadable in the column"
ONLY_BEYOND = "most numbers are beyond the bounds in the column"
BEYOND = "most numbers are beyond the bounds, or in their lowest 1/128, in the column"
NO_NUMBERS = "hardly any record has a number in the column"
AT_BOUND = "most numbers are at a bound, or beyond it, in the column"
NOT_COMPLETE = "hardly any record has a declared entry in all of the columns"
NOT_WITHIN = "most entries are beyond the bounds, missing or no numbers in the column"
NOT_LISTED = "many entries are in no category or missing in the column"
OTHERWISE = "most entries are in no category or missing in the column"

BEYOND_TARGETS = (
    "targets are beyond bounds_y. They count as the bounds. Check the units of y, and the bounds of the target"
)
SPELL_LABELS = "Check that the labels in y are spelled as in classes (case, numbers for text)"

_SPELLED = "Check that the declared labels and categories are spelled as the data hold them."
_LISTS = "A list declares categories, and a tuple (lower, upper) bounds of numbers."
_UNITS = "Check that the bounds are in the units of the data, neither too narrow nor far too wide."
_NARROW = "Check that the bounds are in the units of the data, and not too narrow."
_READ = "Numbers must be without a unit, and dates must be days since a public date."
_ADVICE = {
    RARE: (_SPELLED,),
    **dict.fromkeys((UNLISTED, NOT_LISTED, OTHERWISE), (_SPELLED, _LISTS)),
    **dict.fromkeys((LACKING, NO_NUMBERS), (_READ,)),
    **dict.fromkeys((ONLY_BEYOND, AT_BOUND), (_NARROW,)),
    BEYOND: (_UNITS,),
    NOT_WITHIN: (_UNITS, _READ),
    NOT_COMPLETE: (_SPELLED, _READ),
}

_C = np.linspace(0.5, 0.999, 100)


def margin(deviation: float, probability: float, gaussian: bool = False) -> float:
    """Return a number that noise of this standard deviation exceeds on one side with at most this probability."""
    if gaussian:
        return -deviation * float(special.ndtri(probability))
    return deviation / math.sqrt(2) * float(np.min((-math.log(probability) - np.log1p(-(_C**2))) / _C))


#: A number with the variance of its noise.
Count = tuple[float, float]

#: Stands for a count that was not released.
NOT_RELEASED: Count = (0.0, math.inf)


def excess_of(a: Count, b: Count, total: Count, share: float) -> tuple[float, float]:
    """Return the form for a share of `a` in both counts that has the least noise, and its standard deviation."""
    variance = total[1] + a[1] + b[1]
    if b[1] == math.inf or variance == 0:
        x = -share
    elif a[1] == math.inf:
        x = 1 - share
    else:
        x = ((1 - share) * a[1] - share * b[1]) / variance
    pairs = [(w, *count) for w, count in zip((x, 1 - share - x, -share - x), (total, a, b), strict=True) if w]
    return sum(w * value for w, value, _ in pairs), math.sqrt(sum(w**2 * noise for w, _, noise in pairs))


@dataclass(frozen=True)
class Part:
    """A label or column, a form that is positive if other values have too large a share, and what this shows."""

    name: Any
    what: str
    excess: float
    deviation: float
    present: tuple[float, float] | None = None  # The number of records with the declared values, and its noise.
    note: str = ""
    law: Law | None = None  # Of the noise of the form. If None, the margin is that of the theorem.

    @classmethod
    def of(cls, name: Any, what: str, declared: Count, others: Count, total: Count, least: float) -> Part:
        """Return declared values that are missing from the data if their share is below `least`."""
        present = excess_of(declared, others, total, 0.0)
        return cls(name, what, *excess_of(others, declared, total, 1 - least), present)

    def shows(self, probability: float, gaussian: bool) -> bool:
        """Tell whether the form shows that the values do not fit."""
        by_law = None if self.law is None else float(self.law.half_width(1 - 2 * probability))
        if self.excess <= (margin(self.deviation, probability, gaussian) if by_law is None else by_law):
            return False
        # Rare values that are known to occur are not named.
        return self.present is None or self.present[0] <= margin(self.present[1], probability, gaussian)


def label_parts(classes: NDArray, counts: NDArray, deviation: float) -> list[Part]:
    """Return the declared labels and their released counts."""
    total, variance, parts = float(counts.sum()), deviation**2, []
    for label, n in zip(classes.tolist(), counts.tolist(), strict=True):
        others = total - n, variance * (len(counts) - 1)
        parts.append(Part.of(label, RARE, (n, variance), others, NOT_RELEASED, LEAST_SHARE_OF_LABEL))
    return parts


def column_part(name: Any, known: Count, total: Count, what: str = OTHERWISE) -> Part:
    """Return the declared values of a column, by their number among all records."""
    return Part.of(name, what, known, NOT_RELEASED, total, LEAST_SHARE)


def declared_parts(
    name: Any, counts: NDArray, n_declared: int, total: Count, variance: float, is_number: bool = False
) -> list[Part]:
    """Return the first `n_declared` of a column's released counts, and the count of entries in no category."""
    # If only the others were counted, `n_declared` is 0. The noise of the total is independent of that of the counts.
    known, others = (
        (float(cells.sum()), variance * len(cells)) if len(cells) else NOT_RELEASED
        for cells in (counts[:n_declared], counts[n_declared:])
    )
    if len(counts) - n_declared < 2:
        return [Part.of(name, LACKING if is_number else OTHERWISE, known, others, total, LEAST_SHARE)]
    # Most entries of a column may be missing. Of two other cells, the first is for entries in no category.
    unlisted, every = float(counts[n_declared]), float(counts.sum())
    rest = (every - unlisted, variance * (len(counts) - 1)) if n_declared else NOT_RELEASED
    share = percent(unlisted, total[0] if total[1] < math.inf else every)
    return [
        Part.of(name, LACKING, known, others, total, LEAST_SHARE),
        Part(name, UNLISTED, *excess_of((unlisted, variance), rest, total, LARGEST_SHARE), note=f" ({share})"),
    ]


def table_parts(
    names: Any, table: NDArray, declared: Mapping[int, int], variance: float, ordered: Sequence[bool] = ()
) -> list[Part]:
    """Return parts for some axes of a released table, with the numbers of their first cells for declared values."""
    parts = []
    for j, n_declared in declared.items():
        counts = table.sum(axis=tuple(set(range(table.ndim)) - {j}))
        name = j if names is None else str(names[j])
        noise = variance * table.size / len(counts)
        parts += declared_parts(name, counts, n_declared, NOT_RELEASED, noise, any(ordered[j : j + 1]))
    return parts


def percent(count: float, total: float) -> str:
    return f"about {100 * min(count / max(total, 1.0), 1.0):.0f} %"


def encoded_parts(
    undeclared: Mapping[str, tuple[bool, Sequence[int]]], counts: NDArray, total: Count, variance: float
) -> list[Part]:
    """Return parts for columns by the counts of their indicators of undeclared entries, at these positions."""
    parts = []
    for name, (is_number, at) in undeclared.items():
        parts += declared_parts(name, counts[at], 0, total, variance, is_number)
    return parts


def warn_of_labels(
    total: Count, others: Count = NOT_RELEASED, probability: float = FALSE_ALARM, gaussian: bool = False
) -> bool:
    """Warn if many records have no declared label, or hardly any has one, by the numbers of both, and tell whether."""
    forms = {
        f"fewer than {FEWEST} records have a label that is in classes": (FEWEST - total[0], math.sqrt(total[1])),
    }
    if others[1] < math.inf:
        share = percent(others[0], others[0] + total[0])
        forms[f"{share} of the records have a label that is not in classes"] = excess_of(
            others, total, NOT_RELEASED, LARGEST_SHARE
        )
    shown = [what for what, form in forms.items() if form[0] > margin(form[1], probability / len(forms), gaussian)]
    if shown:
        warn_of_classes(shown[-1])
    return bool(shown)


def warn_of_beyond(beyond: Count, total: Count, probability: float = FALSE_ALARM, gaussian: bool = False) -> bool:
    """Warn if many targets are beyond their bounds, and tell whether."""
    excess, deviation = excess_of(beyond, NOT_RELEASED, total, LARGEST_SHARE)
    if excess <= margin(deviation, probability, gaussian):
        return False
    warn_that(f"{percent(beyond[0], total[0])} of the {BEYOND_TARGETS}")
    return True


def warn_that(text: str, released: str = "counts") -> None:
    """Warn of a mismatch that released numbers show."""
    warn(f"the released {released} show that {text}. {charge()}", SchemaMismatchWarning)


def warn_of_classes(
    shown: str = f"more than {100 * LARGEST_SHARE:.0f} % of the records have a label that is not in classes",
    among: str = "",
) -> None:
    """Warn that many records have no declared label."""
    warn_that(f"{among}{shown}. Other records are left out. {SPELL_LABELS}")


def warn_of_mismatch(
    parts: Sequence[Part],
    *,
    labels: Count | None,
    others: Count = NOT_RELEASED,
    n_totals: int = 1,
    gaussian: bool = False,
) -> None:
    """Warn of declared parts that do not fit the data, if released counts with Gaussian or other noise show it."""
    # If records with other labels were left out, `labels` counts those with declared labels, and `others` the others.
    # If no count is of all records, each part may have been compared with the largest of `n_totals` counts.
    probability = FALSE_ALARM / (n_totals * (len(parts) + 1))
    if labels is not None and warn_of_labels(labels, others, probability, gaussian):
        return
    # Of two parts of one column, the last one says more.
    off = {(part.what == RARE, part.name): part for part in parts if part.shows(probability, gaussian)}
    warn_of_parts([(part.what, f"{part.name!r}{part.note}") for part in off.values()])


def few_parts(names: Sequence[str], counts: NDArray, variance: float) -> list[Part]:
    """Compare the numbers of values of columns with FEWEST, or with twice the largest noise if this is more."""
    deviation = math.sqrt(variance)
    most = max(FEWEST, 2 * margin(deviation, FALSE_ALARM / len(counts)))
    return [Part(name, NO_NUMBERS, most - n, deviation) for name, n in zip(names, counts.tolist(), strict=True)]


def warn_of_incomplete(names: Sequence[str], count: float, variance: float) -> None:
    """Warn of columns together if hardly any record has a declared entry in all of them."""
    (few,) = few_parts(names[:1], np.array([count]), variance)
    if few.shows(FALSE_ALARM, gaussian=False):
        warn_of_parts([(NO_NUMBERS if len(names) == 1 else NOT_COMPLETE, ", ".join(map(repr, names)))])


#: A released mean that is nearer to a bound than this part of the width shows that most numbers are at the bound.
AT_BOUND_SHARE = 1 / 128


def bound_parts(names: Sequence[Any], bounds: Any, n: Any, sums: NDArray, deviations: Sequence[float]) -> list[Part]:
    """Compare means of columns with their bounds, which they must not be nearer to than a small part of the width.

    The sums are of values in [-1, 1]. For the lower and the upper bounds, `deviations` are those of the noise of the
    sums with a minus and a plus, less (1 - 2 * AT_BOUND_SHARE) times the number of records.
    """
    excess = np.stack([-sums, sums]) - (1 - 2 * AT_BOUND_SHARE) * n
    # Many columns are mostly 0. Therefore a bound of 0 is not named.
    return [
        Part(name, AT_BOUND, float(of_bound[j]), float(deviation))
        for of_bound, bound, deviation in zip(excess, bounds, deviations, strict=True)
        for j, name in enumerate(names)
        if bound[j] != 0
    ]


def warn_of_outer_cells(
    names: Sequence[Any], bounds: tuple[NDArray, NDArray], positions: NDArray, levels: NDArray, n_cells: int
) -> NDArray[np.bool_]:
    """Warn of columns with half of the numbers in an outer cell of a grid, by released quantiles, and return them.

    The positions of the quantiles, of shape (n_columns, n_levels), are in cells.
    """
    if 2 * len(positions) / n_cells > FALSE_ALARM:
        # Without records, each position would have the same probability.
        return np.zeros(len(positions), dtype=bool)
    low = np.any((positions <= 1) & (levels >= 0.5), axis=1) & (bounds[0] != 0)
    high = np.any((positions >= n_cells - 1) & (levels <= 0.5), axis=1) & (bounds[1] != 0)
    off: NDArray[np.bool_] = low | high
    warn_of_columns(AT_BOUND, names, off, "quantiles")
    return off


def warn_of_columns(what: str, names: Sequence[Any], off: NDArray[np.bool_], released: str = "counts") -> None:
    """Warn of the columns that are `off`."""
    warn_of_parts([(what, repr(name)) for name, is_off in zip(names, off.tolist(), strict=True) if is_off], released)


def warn_of_parts(off: Sequence[tuple[str, str]], released: str = "counts", among: str = "") -> None:
    """Warn of labels and columns that do not fit the data, as pairs of what is shown and a name."""
    if not off:
        return
    shown = []
    for what in dict.fromkeys(what for what, _ in off):
        names = [name for other, name in off if other == what]
        more = "" if len(names) <= _MOST_NAMED else ", and others"
        shown.append(f"{what}{'s' * (len(names) > 1)} {', '.join(names[:_MOST_NAMED])}{more}")
    advice = dict.fromkeys(one for what, _ in off for one in _ADVICE[what])
    warn_that(f"{among}{'; '.join(shown)}. {' '.join(advice).removesuffix('.')}", released)


ENTRIES, WORST = "entries outside of their declaration", "column with most entries outside"

#: Share of epsilon or of the square of the GDP parameter, for all columns, or for numbers and the target alone.
ENTRIES_SHARE, TARGET_SHARE = 0.02, 0.005

# Part of this share for the choice of a column, without Gaussian noise, and the largest probability of a wrong choice.
_NAME_PART, _WRONG_NAME = 0.4, 0.2


def entries_releases(
    declared: Sequence[float], share: float, epsilon: float, delta: float
) -> list[tuple[Release, PrivacyEvent]]:
    """Return releases for columns to whose numbers declared entries add `declared`, and their events."""
    size = len(declared)
    if delta > 0 or epsilon == math.inf:
        mechanism, event = l2_mechanism(epsilon, delta, share, math.sqrt(size) / 2 * (1 + 2.0**-40), size)
        return [(Release(ENTRIES, mechanism, share, Theorem("Units", 1)), event)]
    for_name = share * _NAME_PART if size > 1 else 0.0
    pure, theorem = pure_share(epsilon, share - for_name), Theorem("Units", 3, "corollary")
    largest = Release(ENTRIES, l1_mechanism(pure, OUTSIDE, 1), share - for_name, theorem)
    if size == 1:
        return [(largest, PureEvent(pure))]
    # The changes of two numbers by one record differ by at most this.
    choice, event = choice_mechanism(epsilon, 0.0, for_name, OUTSIDE - min(declared))
    return [(largest, PureEvent(pure)), (Release(WORST, choice, for_name, theorem), event)]


def check_entries(session: ReleaseSession, columns: Mapping[str, Outside], labels: bool, X: Any, known: Any) -> None:
    """Release the numbers of columns and of labels, or the largest, and warn of those that are beyond the noise."""
    # X has the `known` rows, or those that weights keep of them if `known` is None.
    mechanism = session.mechanism(ENTRIES)
    sums = partial(_sums, [*columns.values(), *[(LISTED, ())] * labels])
    numbers = folded(sums, [X])
    if labels and known is not None:
        numbers[-1] += OUTSIDE * left_out(known)
    among = ""
    if is_gaussian(mechanism):
        released = session.release(ENTRIES, numbers)
        off = released > margin(mechanism.scale, FALSE_ALARM / len(released), gaussian=True)
    else:
        # This is the quantile of the Laplace distribution.
        (largest,) = session.release(ENTRIES, [numbers.max()])
        off = np.full(len(numbers), largest > mechanism.scale * math.log(0.5 / FALSE_ALARM))
        if len(numbers) > 1:
            among = (
                f"the entries of at least one column{' or the labels' * labels} are not as declared. Schema.check says "
                "which, and uses no budget. "
            )
            # Each number that is not positive is chosen with at most this probability.
            wrong = math.exp(-max(largest, 0.0) / session.mechanism(WORST).scale) / 2
            chosen = np.arange(len(numbers)) == session.release(WORST, [numbers])
            if off[0] and wrong * (len(numbers) - 1) > _WRONG_NAME:
                warn_that(among.removesuffix(". "))
                return
            off &= chosen
            among += "Most likely, "
    if labels and off[-1]:
        warn_of_classes(among=among)
        return
    named = zip(columns.items(), off.tolist(), strict=False)
    shown = [(_shown_by(intervals), repr(name)) for (name, (_, intervals)), is_off in named if is_off]
    warn_of_parts(shown, among=among)


def _shown_by(intervals: Sequence[tuple[int, float, float, float]]) -> str:
    # Columns of numbers have an interval below their bounds, one above and one at the lower bound, and one for missing.
    if intervals[0][1] > -math.inf:
        return NOT_LISTED
    return NOT_WITHIN if len(intervals) > 3 else BEYOND


def _sums(columns: list[Outside], X: Any) -> NDArray[np.float64]:
    # Additive models have lists of columns.
    table = X.tocsc() if issparse(X) else X
    numbers = np.array([inside for inside, _ in columns]) * (len(X[0]) if isinstance(X, list) else X.shape[0])
    for j, (inside, intervals) in enumerate(columns):
        for position, low, high, added in intervals:
            if issparse(table):
                entries = table[:, [position]].toarray().ravel()
            else:
                entries = table[position] if isinstance(table, list) else table[:, position]
            numbers[j] += (added - inside) * np.count_nonzero((entries >= low) & (entries < high))
    return numbers


def left_out(known: Any) -> float:
    """Return how many records do not have a declared label."""
    return float(folded(left_out, [known]) if isinstance(known, PartedArray) else np.count_nonzero(~known))

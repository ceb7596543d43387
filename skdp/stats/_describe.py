"""A description of all columns of a table with one privacy budget."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounting import Budget
from ..mechanisms import is_gaussian
from ..parts.arrays import column_of, count_rows
from ..release.counts import LACKING, Part, column_part, declared_parts, warn_of_mismatch
from ..release.estimates import Around, Counts, Estimate, Law, combination
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Reserved
from ..schema.declared import Category, Number
from ..schema.schema import as_html, as_text
from ..sensitivity import sum_over_rows
from ._call import (
    COUNTS,
    Call,
    Cells,
    Numbers,
    Sensitivity,
    cells_in,
    check_known,
    choosing,
    counts_estimate,
    numbers_of,
    quietest,
    statistic,
    with_and_without_delta,
)
from ._moments import LABEL, THEOREM, Design, in_units, moment_design, moment_parts
from ._quantiles import WHOLE, counted, counts_between, enclosed_quantiles, quantile_parts, quantiles_at

Array = NDArray[np.float64]

_QUARTILES = {"25%": WHOLE // 4, "50%": WHOLE // 2, "75%": 3 * WHOLE // 4}
_NAMES = ("count", "missing", "mean", "std", *_QUARTILES)

# Quartiles, and whether there are moments. The first choice is made whose noise is at most this part of the number of
# records, or the last one.
_CHOICES = ((tuple(_QUARTILES), True), (("50%",), True), (("50%",), False))
_MOST_NOISE = 0.05

# With a larger standard error, in widths of the bounds, a mean or quartile is unknown.
_UNKNOWN = 0.15

# If fewer numbers of a column are released than so many deviations of their noise, the others of its statistics are
# unknown.
_FEWEST = 4.0

# Numbers with more decimals are printed with at most so many digits.
_MOST_DECIMALS, _MOST_DIGITS = 4, 6

_NUMBERS = "statistics of numbers"
_BEYOND = "numbers beyond the ranges"

# Numbers of records and of entries in cells have a weight, if values of columns may be missing and are counted as well.
_WEIGHT = 4

# Moments are of values that are clipped to a range. It reaches beyond the quartiles by at least so many times their
# distance, or by the root of the number of records in units of the noise and of this factor. With less noise, a wider
# range is affordable, which clips less. A range is used if it is at most this part of the bounds.
_LEAST_REACH, _REACH, _NARROW = 1.5, 0.1, 0.5

# The bounds are used if the released numbers show by so many deviations of the noise that a larger part of the values
# is beyond the range. Equal values may have quartiles that hardly differ.
_MOST_BEYOND, _SURE_BY = 0.01, 2.0

# Part of the share of moments for the numbers of values beyond the ranges.
_OF_BEYOND = 0.2


@dataclass(frozen=True, eq=False)
class Description:
    """Result of :func:`~skdp.stats.describe`.

    Parameters
    ----------
    numbers : dict of str to dict
        Statistics of each column of numbers, as a dict of `Estimate` by name. The value of a statistic that is unknown
        is NaN.
    categories : dict of str to Estimate
        Numbers of records in the cells of each column of categories.
    count : Estimate
        Number of records.
    privacy_ : PrivacyGuarantee
        Guarantee of the call, with its releases.

    Examples
    --------
    >>> from skdp import stats
    >>> found = stats.describe(
    ...     {"age": [30.0, 40.0] * 500}, schema={"age": (0, 100)}, random_state=0
    ... )
    >>> list(found.numbers["age"])
    ['count', 'missing', 'mean', 'std', '25%', '50%', '75%']
    """

    numbers: dict[str, dict[str, Estimate]]
    categories: dict[str, Estimate]
    count: Estimate
    privacy_: PrivacyGuarantee = field(repr=False)

    def to_frame(self) -> Any:
        """Return the statistics of numbers as a DataFrame, in the layout of ``DataFrame.describe``.

        Returns
        -------
        frame : DataFrame
            Frame with one column for each column of numbers, and one row for each statistic.
        """
        import pandas as pd

        columns = self.numbers.items()
        return pd.DataFrame({name: {key: one.value for key, one in estimates.items()} for name, estimates in columns})

    def plot(self, axes: Any = None, *, level: float = 0.95) -> list[Any]:
        """Plot the columns side by side: boxes between quartiles for numbers, and bars for categories.

        Parameters
        ----------
        axes : list of matplotlib Axes, default=None
            Axes of each column, numbers first. If None, a figure is created.
        level : float, default=0.95
            Level of the intervals of means and counts, which cover noise and sampling.

        Returns
        -------
        axes : list of matplotlib Axes
            The axes.
        """
        width = len(self.numbers) + len(self.categories)
        if axes is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError:
                raise ImportError("pictures need matplotlib: pip install matplotlib") from None
            lines = math.ceil(width / 4)
            size = (3 * min(width, 4), 2.8 * lines)
            axes = plt.subplots(lines, min(width, 4), figsize=size, layout="constrained", squeeze=False)[1].ravel()
        axes = list(axes)
        for ax, (name, estimates) in zip(axes, self.numbers.items(), strict=False):
            low, middle, high = (estimates[key].value for key in _QUARTILES)
            ax.bar(0, high - low, bottom=low, width=0.5, alpha=0.3)
            ax.hlines(middle, -0.25, 0.25)
            ends = estimates["mean"].confidence_interval(level)
            ax.errorbar(0, sum(ends) / 2, (ends[1] - ends[0]) / 2, fmt="o", capsize=4)
            ax.set(title=name, xticks=[], xlim=(-0.6, 0.6))
        for ax, (name, counts) in zip(axes[len(self.numbers) :], self.categories.items(), strict=False):
            low, high = counts.confidence_interval(level)
            errors = np.abs(np.stack([counts.value - low, high - counts.value]))
            ax.barh(range(len(counts.names)), np.maximum(counts.value, 0), xerr=errors, alpha=0.6)
            ax.set(title=name, yticks=range(len(counts.names)), yticklabels=counts.names)
            ax.invert_yaxis()
        for ax in axes[width:]:
            ax.set_visible(False)
        return axes

    def _tables(self) -> list[list[tuple[str, ...]]]:
        tables: list[list[tuple[str, ...]]] = []
        if self.numbers:
            # One line for each column stays readable for many columns.
            values = [(name, *(_with_error(each[key]) for key in _NAMES[1:])) for name, each in self.numbers.items()]
            tables.append([("column", *_NAMES[1:]), *values])
        shares = []
        for name, counts in self.categories.items():
            total = max(float(np.sum(np.maximum(counts.value, 0))), 1.0)
            errors = counts.standard_error.tolist()
            for label, count, error in zip(counts.names, counts.value.tolist(), errors, strict=True):
                shares.append((name, label, f"{count:d}{_plus_minus(error)}", f"{max(count, 0) / total:.1%}"))
        return [*tables, [("column", "category", "count", "share"), *shares]] if shares else tables

    def _line(self) -> str:
        counted = " that count" if self.privacy_.unit == "group" else ""
        return (
            f"{_with_error(self.count)} records{counted}; the number after ± is the standard error by noise\n"
            "means are biased if few numbers are far beyond the others, which confidence_interval() covers\n"
            f"{str(self.privacy_).splitlines()[0]}"
        )

    def __repr__(self) -> str:
        return "\n\n".join([*map(as_text, self._tables()), self._line()])

    def _repr_html_(self) -> str:
        return "".join(map(as_html, self._tables())) + f"<p>{self._line()}</p>"


def _plus_minus(error: float) -> str:
    return f" ± {error:.2g}" if error > 0 else ""


def _with_error(one: Estimate) -> str:
    if math.isnan(one.value):
        return "unknown"
    if isinstance(one.value, int) or not 0 < one.standard_error < math.inf:
        return f"{one.value:.6g}{_plus_minus(one.standard_error)}"
    # Digits far below the error are noise.
    digits = max(1 - math.floor(math.log10(one.standard_error)), 0)
    value = f"{one.value:.{digits}f}"
    if digits > _MOST_DECIMALS:
        before = math.floor(math.log10(abs(one.value))) + 1 if one.value else 1
        value = f"{one.value:.{min(max(digits + before, 1), _MOST_DIGITS)}g}"
    return f"{value}{_plus_minus(one.standard_error)}"


@dataclass(frozen=True, eq=False)
class _Counts:
    """The release of the numbers of records, of values in columns that may lack some, and of records in cells."""

    numbers: Numbers | None
    cells: Cells | None

    @cached_property
    def lacking(self) -> list[int]:
        """Positions of the columns of numbers whose missing values are counted."""
        scales = () if self.numbers is None else self.numbers.scales
        return [j for j, column in enumerate(scales) if column.missing == "cell"]

    @property
    def weight(self) -> int:
        """Weight of the counts of records. Values of a column that may lack some have weight 1."""
        return _WEIGHT if self.lacking else 1

    @property
    def shape(self) -> tuple[int, ...]:
        return () if self.cells is None else self.cells.shape

    @property
    def moves(self) -> Sensitivity:
        n_tables, n_lacking, weight = 1 + len(self.shape), len(self.lacking), self.weight
        norm = math.sqrt(weight**2 * n_tables + n_lacking) * (1 + 2.0**-50)
        return Sensitivity(float(weight * n_tables + n_lacking), norm, 1 + n_lacking + sum(self.shape), integers=True)

    def exact(self, values: NDArray, codes: NDArray) -> Array:
        tables = []
        for j, size in enumerate(self.shape):
            count = partial(np.bincount, minlength=size)
            tables.append(self.weight * sum_over_rows(count, column_of(j, codes), block_rows=2**16).astype(np.float64))
        present = np.zeros(0)
        if self.numbers is not None and self.lacking:
            present = counted(self.numbers, values)[self.lacking]
        return np.concatenate([[self.weight * float(count_rows(values))], present, *tables])

    def split(self, released: Array) -> tuple[float, Array, list[Array]]:
        """Return the numbers of records, of values in columns that may lack some, and of records in cells."""
        n, present, *tables = np.split(released, np.cumsum([1, len(self.lacking), *self.shape])[:-1])
        return float(n[0]) / self.weight, present, [table / self.weight for table in tables]

    def parts(self, n: float, present: Array, tables: list[Array], mechanism: Any) -> list[Part]:
        """Compare the numbers of values, and of entries in no category, with the number of records."""
        single, variance = (combination(mechanism, unit).variance for unit in (1.0, 1 / self.weight))
        parts = []
        for j, count in zip(self.lacking, present.tolist(), strict=True):
            parts.append(column_part(self.numbers.names[j], (count, single), (n, variance), LACKING))  # type: ignore[union-attr]
        for j, counts in enumerate(tables):
            name, n_listed = self.cells.names[j], self.cells.n_listed[j]  # type: ignore[union-attr]
            parts += declared_parts(name, counts, n_listed, (n, variance), variance)
        return parts


def _noises(budget: Budget, numbers: Numbers, rows: int, choice: tuple[tuple[str, ...], bool]) -> list[float]:
    """Return the noise of ranks, and of moments, with the whole budget, in numbers of records."""
    levels = tuple(_QUARTILES[name] for name in choice[0])
    # The law of a rank is approximately a Laplace law with the scale of the mechanism.
    noises = [math.sqrt(2) * quantiles_at(budget, 1.0, levels, numbers.width, rows)[0].scale]
    if choice[1]:
        design = moment_design(budget, 1.0, 4, numbers.width, 1, numbers.may_lack, rows)
        noises.append(math.sqrt(combination(design.mechanism, design.powers[1]).variance))
    return noises


def _even(budget: Budget, noises: list[float]) -> tuple[list[float], float]:
    """Return shares of the budget with which these noises of the whole budget become equal, and the equal noise."""
    # Noise is inversely proportional to a share of epsilon, or to the square root of a share under Gaussian DP.
    power = 2.0 if budget.delta > 0 else 1.0
    total = math.fsum(noise**power for noise in noises)
    shares = [(noise**power / total if total else 1 / len(noises)) * (1 - 2.0**-40) for noise in noises]
    return shares, total ** (1 / power)


@statistic(bounds=False)
def describe(call: Call, y: Any = None) -> Description:
    r"""Describe all columns of a table with one privacy budget.

    .. versionadded:: 0.2

    Parameters
    ----------
    X : table
        A table with the columns of `schema`, and possibly with the column of its target.
    y : array-like of shape (n_samples,), default=None
        Labels or targets, if they are not a column of `X`. If given, the target of `schema` is described as well.
    columns : list of str, default=None
        Names of the columns to describe, possibly with the name of the target (``"target"`` if it has none). If None,
        all columns of the schema are described. The target is then described if it is in `X`, or if `y` is given.

    Returns
    -------
    description : Description
        For columns of numbers: the numbers of values and of missing values, the mean, the standard deviation and the
        quartiles. For columns of categories: the number of records in each cell. Each statistic has an interval. A
        standard deviation that is no larger than its standard error, and a mean or quartile whose standard error is at
        least 15 % of the width of the bounds, are NaN and print as "unknown". So are all three for a column in which
        the number of values is at most four times its standard error.

    See Also
    --------
    mean, quantile, value_counts : Single statistics with the whole budget.

    Notes
    -----
    **Privacy.** The numbers of records, of values and of all categories are released first (:ref:`statistics, theorem 2
    <statistics-theorem-2>`), then the quartiles as :func:`quantile` releases them, and the moments of values that are
    clipped to ranges around the quartiles (:ref:`statistics, theorem 1 <statistics-theorem-1>`), with the numbers of
    values beyond. The noise of all of them is about equal in numbers of records. If it is more than 5 % of the
    released number of records, medians are released in place of quartiles, and then no moments. Whether `X` has a
    column of the target is public, as all names of columns are.

    Examples
    --------
    >>> from skdp import Number, Schema, stats
    >>> schema = Schema({"age": Number(0, 100, step=1), "sex": ["f", "m"]})
    >>> X = {"age": [30, 40, 50, None] * 5000, "sex": ["f", "m"] * 10_000}
    >>> found = stats.describe(X, schema=schema, epsilon=1.0, random_state=0)
    >>> (
    ...     round(found.numbers["age"]["mean"].value),
    ...     found.numbers["age"]["50%"].value,
    ... )
    (40, 40.0)
    >>> found.categories["sex"].names
    ('f', 'm', 'not in list', 'missing')
    >>> low, high = found.numbers["age"]["25%"].confidence_interval()
    >>> low, high
    (29.0, 37.0)
    """
    if call.schema is None:
        raise ValueError("schema must be given, because it declares the columns of numbers and of categories")
    call = call.with_target(y)
    assert call.schema is not None
    names = [call.chosen] if isinstance(call.chosen, str) else call.chosen
    if names is not None:
        check_known(call.schema, call.chosen, "columns")
    chosen = call.schema if names is None else call.schema.select(*names)
    kinds = {kind: [name for name in chosen if isinstance(chosen[name], kind)] for kind in (Number, Category)}
    numbers = numbers_of(choosing(call, kinds[Number])) if kinds[Number] else None
    cells = cells_in(choosing(call, kinds[Category])) if kinds[Category] else None
    first, rows = _Counts(numbers, cells), call.unit.rows

    def build(budget: Budget) -> Any:
        # The noise of all statistics is in numbers of records.
        noises = [math.sqrt(combination(quietest(budget, 1.0, first.moves, rows)[0], 1 / first.weight).variance)]
        if numbers is not None:
            noises += _noises(budget, numbers, rows, _CHOICES[0])
        (share, *_), noise = _even(budget, noises)
        return budget, share, *quietest(budget, share, first.moves, rows), noise

    budget, of_counts, mechanism, event, _ = with_and_without_delta(call.budget, build, lambda design: design[-1])
    parts, events, share = [("counts", mechanism, of_counts, COUNTS)], [event], 1 - of_counts
    if numbers is not None:
        rest = quantiles_at(budget, share, (WHOLE // 2,), 1, rows)[1]
        parts.append((_NUMBERS, Reserved(rest), share, THEOREM))  # type: ignore[arg-type]
        events.append(rest)
    plan = call.plan(budget, *parts, events=events)
    # If all columns are of one type, one array stands for both arrays.
    arrays: list[Any] = [one for one in (numbers and numbers.values, cells and cells.codes) if one is not None]
    session, values, codes = call.open(plan, arrays[0], arrays[-1])
    n, present, tables = first.split(session.release("counts", first.exact(values, codes)))
    compared = first.parts(n, present, tables, mechanism)
    law = combination(mechanism, 1 / first.weight)
    count, *counts = (np.rint(one).astype(np.int64) for one in (np.array(n), *tables))
    described, categories, n_records = {}, {}, counts_estimate(count, law, plan)
    if cells is not None:
        for name, labels, of_column in zip(cells.names, cells.labels, counts, strict=True):
            categories[name] = counts_estimate(of_column, law, plan, labels)
    if numbers is not None:
        n_present = np.full(numbers.width, n)
        # Most columns lack few values, and the number of records has less noise.
        lack, of_one = n - present, math.sqrt(combination(mechanism, 1.0).variance)
        does_lack = lack > _SURE_BY * of_one
        n_present[first.lacking] -= np.where(does_lack, lack, 0.0)
        noise = np.full(numbers.width, n_records.standard_error)
        noise[first.lacking] = np.where(does_lack, of_one, n_records.standard_error)
        columns = _Columns(
            session, budget, rows, numbers, values, n_records, n_present, noise, first.lacking, plan, compared
        )
        described = columns.described(share)
    # With delta, all mechanisms are Gaussian.
    warn_of_mismatch(compared, labels=None, gaussian=is_gaussian(mechanism))
    return Description(described, categories, n_records, plan)


@dataclass(frozen=True, eq=False)
class _Columns:
    """The columns of numbers of a description, with the session of their releases."""

    session: ReleaseSession
    budget: Budget
    rows: int
    numbers: Numbers
    values: NDArray
    n: Estimate
    n_present: Array
    noise: Array  # Standard deviations of the noise in `n_present`.
    lacking: list[int]
    plan: PrivacyGuarantee
    compared: list[Part]

    def design(self, share: float) -> Design:
        """Return the design of the moments."""
        return moment_design(self.budget, share, 4, self.numbers.width, 1, self.numbers.may_lack, self.rows)

    def estimate(self, value: Any, error: float, spread: Any) -> Estimate:
        return Estimate(value, error, self.plan, (), {}, spread)

    def unknown(self, least: float, most: float) -> Estimate:
        return self.estimate(math.nan, math.inf, Around(0.0, Law(normal=math.inf), 0.0, least, most))

    def described(self, share: float) -> dict[str, dict[str, Estimate]]:
        """Release quartiles or medians, and moments, as far as the share of the budget allows."""
        numbers, session = self.numbers, self.session
        # The choice depends on a released number of records.
        shares: list[float] = []
        for choice in _CHOICES:
            shares, noise = _even(self.budget, _noises(self.budget, numbers, self.rows, choice))
            if noise / share <= _MOST_NOISE * self.n.value:
                break
        of_quartiles, of_moments = (*(share * of_rest for of_rest in shares), 0.0)[:2]
        names = choice[0]
        levels = tuple(_QUARTILES[name] for name in names)
        parts, events = quantile_parts(self.budget, of_quartiles, levels, numbers.width, self.rows)
        if of_moments:
            event = self.design(of_moments).event
            parts, events = [*parts, (LABEL, Reserved(event), of_moments, THEOREM)], [*events, event]  # type: ignore[arg-type]
        session.refine(_NUMBERS, [Release(*planned) for planned in parts], events)
        described = []
        for low, high in zip(numbers.lower.tolist(), numbers.upper.tolist(), strict=True):
            unknown = {name: self.unknown(low, high) for name in _NAMES}
            unknown |= dict.fromkeys(("count", "missing"), self.unknown(0.0, math.inf))
            described.append(unknown | {"std": self.unknown(0.0, (high - low) / 2)})
        n = np.maximum(self.n_present, 1.0)
        quartiles, spread = enclosed_quantiles(
            session, self.budget, of_quartiles, self.rows, numbers, 0.95, levels, n, self.values, self.compared
        )
        for (i, name), (j, estimates) in product(enumerate(names), enumerate(described)):
            error = float(spread.standard_error[i, j])
            estimates[name] = self.estimate(float(quartiles[i, j]), error, spread.of_one(i, j))
        if of_moments:
            for estimates, moments in zip(described, self.moments(of_moments, quartiles), strict=True):
                estimates.update(moments)
        for j, (half, estimates) in enumerate(zip(numbers.half.tolist(), described, strict=True)):
            limits = dict.fromkeys(("mean", *_QUARTILES), _UNKNOWN * 2 * half) | {"std": estimates["std"].value}
            # A value that its noise hides is not known.
            count = estimates["count"]
            n_values, noise = (count.value, count.standard_error) if of_moments else (self.n_present[j], self.noise[j])
            is_hidden = j in self.lacking and n_values <= _FEWEST * noise
            hidden = [key for key, most in limits.items() if is_hidden or estimates[key].standard_error > most]
            estimates |= {key: replace(estimates[key], value=math.nan) for key in hidden}
        return dict(zip(numbers.names, described, strict=True))

    def moments(self, share: float, quartiles: Array) -> list[dict[str, Estimate]]:
        """Release the moments of values within ranges around the quartiles, and the numbers of values beyond."""
        numbers, session, width = self.numbers, self.session, self.numbers.width
        design = self.design(share)
        noise = math.sqrt(combination(design.mechanism, design.powers[1]).variance)
        ranges = _ranges(numbers, quartiles, self.n_present, noise)
        narrow = np.flatnonzero((ranges.lower > numbers.lower) | (ranges.upper < numbers.upper))
        of_beyond = _OF_BEYOND * len(narrow) / width * share
        # Both parts are rounded down, so that their sum never exceeds the reserved part.
        share = (share - of_beyond) * (1 - 2.0**-40)
        design = self.design(share)
        releases, events = [Release(LABEL, design.mechanism, share, THEOREM)], [design.event]
        n_beyond, law = np.zeros((width, 2)), Law()
        if len(narrow):
            # A value is beyond one end of the range of its column at most.
            moves = Sensitivity.of_counts(len(narrow), 2 * len(narrow))
            beyond, event = quietest(self.budget, of_beyond * (1 - 2.0**-40), moves, self.rows)
            releases.append(Release(_BEYOND, beyond, of_beyond, COUNTS))
            events.append(event)
            law = combination(beyond, 1.0)
        session.refine(LABEL, releases, events)
        if len(narrow):
            # A value that is an end of the range is in the range.
            cuts = np.stack([ranges.lower, np.nextafter(ranges.upper, np.inf)], axis=1)
            counts = counts_between(cuts, self.values)[narrow][:, [0, 2]]
            n_beyond[narrow] = session.release(_BEYOND, counts.ravel()).reshape(-1, 2)
            sure = n_beyond.sum(axis=1) - _SURE_BY * math.sqrt(2 * law.variance)
            ranges = _within(numbers, ranges.lower, ranges.upper, sure <= _MOST_BEYOND * self.n_present)
        sums = design.power_sums(session.release(LABEL, design.sums(self.values, ranges)))[0]
        # Moments of values within a range do not show whether values are at the bounds.
        is_whole = (ranges.lower == numbers.lower) & (ranges.upper == numbers.upper)
        whole = np.where(is_whole, sums.T, 0.0).T
        self.compared.extend(moment_parts(design, whole, replace(numbers, may_lack=False)))
        of_count = combination(design.mechanism, design.powers[0])
        mean, std = (in_units(name, design, sums, ranges.centre, ranges.half)[2].rules for name in ("mean", "std"))
        described = []
        for j in range(width):
            missing, error = 0, 0.0
            if j in self.lacking:
                missing = max(self.n.value - round(sums[j, 0]), 0)
                error = math.hypot(self.n.standard_error, math.sqrt(of_count.variance))
                known, total = (sums[j, 0], of_count.variance), (self.n.value, self.n.standard_error**2)
                self.compared.append(column_part(numbers.names[j], known, total, LACKING))
            estimates = {
                "count": counts_estimate(round(sums[j, 0]), of_count, self.plan),
                "missing": self.estimate(missing, error, Around(missing, Law(normal=error), None, 0)),
            }
            ends = (numbers.lower[j], ranges.lower[j], ranges.upper[j], numbers.upper[j])
            for key, rule in (("mean", mean[j]), ("std", std[j])):
                spread = OfClipped(rule, ends, Counts(n_beyond[j], law), max(sums[j, 0], 1.0), key == "std")
                estimates[key] = self.estimate(rule.value, rule.standard_error, spread)
            described.append(estimates)
        return described


def _ranges(numbers: Numbers, quartiles: Array, n: Array, noise: float) -> Numbers:
    """Return the columns with ranges around released quartiles as their bounds, for moments with this noise."""
    low, high = quartiles[0], quartiles[-1]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        reach = (high - low) * np.maximum(_LEAST_REACH, np.sqrt(_REACH * np.maximum(n, 0.0) / noise))
        lower, upper = np.maximum(low - reach, numbers.lower), np.minimum(high + reach, numbers.upper)
        narrow = (high > low) & (upper - lower <= _NARROW * (numbers.upper - numbers.lower))
    return _within(numbers, lower, upper, narrow)


def _within(numbers: Numbers, lower: Array, upper: Array, narrow: NDArray[np.bool_]) -> Numbers:
    """Return the columns with these bounds for some of them."""
    lower, upper = np.where(narrow, [lower, upper], [numbers.lower, numbers.upper])
    return replace(numbers, lower=lower, upper=upper)


@dataclass(frozen=True, eq=False)
class OfClipped:
    """Intervals of a mean or standard deviation, by that of clipped values and by counts of the values beyond."""

    rule: Any
    ends: tuple[float, float, float, float]  # The lower bound, the range, and the upper bound.
    beyond: Counts
    count: float
    of_std: bool

    def interval(self, level: float, rows: int) -> tuple[float, float]:
        """Return both ends."""
        least, lower, upper, most = self.ends
        if (lower, upper) == (least, most):
            return self.rule.interval(level, rows)
        # Half of the errors are left to the clipped values, and the other half to the upper ends of both counts.
        low, high = self.rule.interval((1 + level) / 2, rows)
        below, above = np.minimum(self.beyond.interval((1 + level) / 2, rows)[1] / self.count, 1.0).tolist()
        if not self.of_std:
            return max(low - below * (lower - least), least), min(high + above * (most - upper), most)
        # Clipping lowers the spread. Around the mean of the clipped values, which is in the range, the square of a
        # value is larger than that of the clipped value by this much at most.
        more = below * (lower - least) * (2 * upper - lower - least)
        more += above * (most - upper) * (most + upper - 2 * lower)
        return low, min(math.sqrt(high**2 + more), (most - least) / 2)

"""A description of all columns of a table with one privacy budget."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounting import Budget
from ..parts.arrays import column_of, count_rows
from ..release.estimates import Around, Counts, Estimate
from ..release.laws import Law, combination
from ..release.session import PrivacyGuarantee, Release, Reserved
from ..schema.declared import Category, Number
from ..schema.schema import as_html, as_text
from ..sensitivity import sum_over_rows
from ._call import COUNTS, Call, Cells, Numbers, cells_in, choosing, numbers_of, statistic
from ._moments import LABEL, THEOREM, in_units, means, moment_design, variances
from ._noise import Sensitivity, quietest, with_and_without_delta
from ._quantiles import enclosed_quantiles, quantile_parts
from ._ranks import WHOLE, quantiles_at

Array = NDArray[np.float64]


_QUARTILES = {"25%": WHOLE // 4, "50%": WHOLE // 2, "75%": 3 * WHOLE // 4}
_NAMES = ("count", "missing", "mean", "std", *_QUARTILES)

# Quartiles, and whether there are moments. The first choice is made whose noise is at most this part of the number of
# records, or the last one.
_CHOICES = ((tuple(_QUARTILES), True), (("50%",), True), (("50%",), False))
_MOST_NOISE = 0.1

# With a larger standard error, in widths of the bounds, a mean or quartile is unknown.
_UNKNOWN = 0.15

_NUMBERS = "statistics of numbers"


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
    >>> found = stats.describe({"age": [30.0, 40.0] * 500}, schema={"age": (0, 100)}, random_state=0)
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

        return pd.DataFrame({name: {key: one.value for key, one in own.items()} for name, own in self.numbers.items()})

    def _tables(self) -> list[list[tuple[str, ...]]]:
        found = []
        if self.numbers:
            # One line for each column stays readable for many columns.
            rows = [(name, *(_with_error(own[key]) for key in _NAMES[1:])) for name, own in self.numbers.items()]
            found.append([("column", *_NAMES[1:]), *rows])
        if self.categories:
            rows = []
            for name, own in self.categories.items():
                total = max(float(np.sum(np.maximum(own.value, 0))), 1.0)
                for label, one, error in zip(own.names, own.value.tolist(), own.standard_error.tolist(), strict=True):
                    rows.append((name, label, f"{one:d}{_plus_minus(error)}", f"{max(one, 0) / total:.1%}"))
            found.append([("column", "category", "count", "share"), *rows])
        return found

    def _line(self) -> str:
        return (
            f"{_with_error(self.count)} records; the number after ± is the standard error by noise\n"
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
    return f"{one.value:.{digits}f}{_plus_minus(one.standard_error)}"


def _division(budget: Budget, numbers: Numbers | None, cells: Cells | None, rows: int) -> tuple[Budget, Any, Any]:
    """Return the release of counts with its share, and the noise of all statistics in numbers of records."""
    n_tables = 0 if cells is None else len(cells.names)
    size = 1 + (0 if cells is None else sum(cells.shape))
    moves = Sensitivity(1.0 + n_tables, math.sqrt(1 + n_tables) * (1 + 2.0**-50), size, integers=True)
    noises = [math.sqrt(combination(quietest(budget, 1.0, moves, rows)[0], 1.0).variance)]
    if numbers is not None:
        noises += _noises(budget, numbers, rows, _CHOICES[0])
    (share, *_), noise = _even(budget, noises)
    return budget, (*quietest(budget, share, moves, rows), share), noise


def _noises(budget: Budget, numbers: Numbers, rows: int, choice: tuple[tuple[str, ...], bool]) -> list[float]:
    """Return the noise of ranks, and of moments, with the whole budget, in numbers of records."""
    levels = tuple(_QUARTILES[name] for name in choice[0])
    # The law of a rank is approximately a Laplace law with the scale of the mechanism.
    found = [math.sqrt(2) * quantiles_at(budget, 1.0, levels, numbers.width, rows)[0].scale]
    if choice[1]:
        design = moment_design(budget, 1.0, 4, numbers.width, 1, numbers.may_lack, rows)
        found.append(math.sqrt(combination(design.mechanism, design.powers[1]).variance))
    return found


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

    Parameters
    ----------
    X : table
        A table with the columns of `schema`, and possibly with the column of its target.
    y : array-like of shape (n_samples,), default=None
        Labels or targets, if they are not a column of `X`. If given, the target of `schema` is described as well.
    columns : list of str, default=None
        Names of the columns to describe, possibly with the name of the target (``"target"`` if it has none). If None,
        all columns of the schema are described. The target is then described if it is in `X`, or if `y` is given.
    %(shared)s

    Returns
    -------
    description : Description
        For columns of numbers: the numbers of values and of missing values, the mean, the standard deviation and the
        quartiles. For columns of categories: the number of records in each cell. The description prints as a table
        with standard errors. Each statistic has an interval. The value of a standard deviation that is no larger than
        its standard error, and of a mean or quartile whose standard error is at least 15 % of the width of the bounds,
        is NaN and prints as "unknown". If a column has ``missing="cell"``, missing values are
        counted in ``"missing"`` for numbers, and in a cell of this name for categories.

    See Also
    --------
    DescribeDisplay : Plot of a description.
    mean, quantile, value_counts : Single statistics with the whole budget.

    Notes
    -----
    **Privacy.** The number of records and the counts of all categories are released first (:ref:`statistics, theorem 2
    <statistics-theorem-2>`), then the moments of all numbers (:ref:`statistics, theorem 1 <statistics-theorem-1>`),
    their quartiles and the ends of the intervals of the quartiles (:ref:`preprocessing, theorem 2
    <preprocessing-theorem-2>`), and the ranks of the ends. The budget is divided so that the noise of counts, sums and
    ranks is about equal in numbers of records. If it is more than 10 % of the released number of records, medians are
    released in place of quartiles, and then no moments, so that fewer statistics use the budget. Whether `X` has a
    column of the target is public, as all names of columns are.

    Examples
    --------
    >>> from skdp import Number, Schema, stats
    >>> schema = Schema({"age": Number(0, 100, step=1), "sex": ["f", "m"]})
    >>> X = {"age": [30, 40, 50, None] * 5000, "sex": ["f", "m"] * 10_000}
    >>> found = stats.describe(X, schema=schema, epsilon=1.0, random_state=0)
    >>> round(found.numbers["age"]["mean"].value), found.numbers["age"]["50%"].value
    (40, 40.0)
    >>> found.categories["sex"].names
    ('f', 'm', 'not in list', 'missing')
    >>> low, high = found.numbers["age"]["25%"].confidence_interval()
    >>> low <= 30 <= high
    True
    """
    if call.schema is None:
        raise ValueError("schema must be given, because it declares the columns of numbers and of categories")
    call = call.with_target(y)
    assert call.schema is not None
    names = [call.chosen] if isinstance(call.chosen, str) else call.chosen
    chosen = call.schema if names is None else call.schema.select(*names)
    kinds = {kind: [name for name in chosen if isinstance(chosen[name], kind)] for kind in (Number, Category)}
    numbers = numbers_of(choosing(call, kinds[Number])) if kinds[Number] else None
    cells = cells_in(choosing(call, kinds[Category])) if kinds[Category] else None
    rows = call.unit.rows
    budget, (mechanism, event, of_counts), _ = with_and_without_delta(
        call.budget, lambda own: _division(own, numbers, cells, rows), lambda found: found[2]
    )
    parts, events, share = [("counts", mechanism, of_counts, COUNTS)], [event], 1 - of_counts
    if numbers is not None:
        rest = quantiles_at(budget, share, (WHOLE // 2,), 1, rows)[1]
        parts.append((_NUMBERS, Reserved(rest), share, THEOREM))  # type: ignore[arg-type]
        events.append(rest)
    plan = call.plan(budget, *parts, events=events)
    # If all columns are of one type, one array stands for both arrays.
    arrays: list[Any] = [own for own in (numbers and numbers.values, cells and cells.codes) if own is not None]
    session, values, codes = call.open(plan, arrays[0], arrays[-1])

    own_cells = _cell_counts(cells, codes) if cells is not None else []
    exact = np.concatenate([[float(count_rows(values))], *own_cells])
    counts = np.rint(session.release("counts", exact)).astype(np.int64)
    law = combination(mechanism, 1.0)
    n = _counted(counts[0], law, plan)
    categories, start = {}, 1
    for name, labels in zip(() if cells is None else cells.names, () if cells is None else cells.labels, strict=True):
        categories[name] = _counted(counts[start : start + len(labels)], law, plan, labels)
        start += len(labels)
    described = {}
    if numbers is not None:
        described = _describe_numbers(session, budget, share, rows, numbers, values, n, plan)
    return Description(described, categories, n, plan)


def _cell_counts(cells: Cells, codes: NDArray) -> list[Array]:
    found = []
    for j, size in enumerate(cells.shape):

        def block(some: NDArray, size: int = size) -> NDArray:
            return np.bincount(some, minlength=size)

        found.append(sum_over_rows(block, column_of(j, codes), block_rows=2**16).astype(np.float64))
    return found


def _counted(value: Any, law: Law, plan: PrivacyGuarantee, names: tuple[str, ...] = ()) -> Estimate:
    error = np.full(np.shape(value), math.sqrt(law.variance))
    scalar = np.ndim(value) == 0
    found = int(value) if scalar else value
    return Estimate(found, float(error) if scalar else error, plan, names, {}, Counts(found, law))


def _describe_numbers(
    session: Any,
    budget: Budget,
    share: float,
    rows: int,
    numbers: Numbers,
    values: NDArray,
    n: Estimate,
    plan: PrivacyGuarantee,
) -> dict[str, dict[str, Estimate]]:
    # The choice depends on a released number of records.
    shares: list[float] = []
    for choice in _CHOICES:
        shares, noise = _even(budget, _noises(budget, numbers, rows, choice))
        if noise / share <= _MOST_NOISE * n.value:
            break
    of_quartiles, of_moments = (*(share * part for part in shares), 0.0)[:2]
    names, width = choice[0], numbers.width
    levels = tuple(_QUARTILES[name] for name in names)
    parts, events = quantile_parts(budget, of_quartiles, levels, width, rows)
    design = moment_design(budget, of_moments, 4, width, 1, numbers.may_lack, rows) if of_moments else None
    if design:
        parts.append((LABEL, design.mechanism, of_moments, THEOREM))
        events.append(design.event)
    session.refine(_NUMBERS, [Release(*part) for part in parts], events)

    def unknown(least: float, most: float) -> Estimate:
        return Estimate(math.nan, math.inf, plan, (), {}, Around(0.0, Law(normal=math.inf), 0.0, least, most))

    found = []
    for low, high in zip(numbers.lower.tolist(), numbers.upper.tolist(), strict=True):
        own = {name: unknown(low, high) for name in _NAMES}
        own |= {name: unknown(0.0, math.inf) for name in ("count", "missing")} | {"std": unknown(0.0, (high - low) / 2)}
        found.append(own)
    present = np.full(width, max(float(n.value), 1.0))
    if design:
        sums = design.power_sums(session.release(LABEL, design.sums(values, numbers)))[0]
        present = np.maximum(sums[:, 0], 1.0) if numbers.may_lack else present
        law = combination(design.mechanism, design.powers[0])
        mean = in_units(means(design, sums), numbers.centre, numbers.half, (width,))[2].rules
        std = in_units(variances(design, sums, 0.5), np.zeros(1), numbers.half, (width,))[2].rules
        for j, own in enumerate(found):
            lacks = numbers.scales[j].missing == "cell"
            lacking = max(n.value - round(sums[j, 0]), 0) if lacks else 0
            both = math.hypot(n.standard_error, math.sqrt(law.variance)) if lacks else 0.0
            own["count"] = _counted(round(sums[j, 0]), law, plan)
            own["missing"] = Estimate(lacking, both, plan, (), {}, Around(lacking, Law(normal=both), None, 0))
            for key, rule in (("mean", mean[j]), ("std", std[j])):
                own[key] = Estimate(rule.value, rule.standard_error, plan, (), {}, rule)
    drawn, spread = enclosed_quantiles(session, budget, of_quartiles, rows, numbers, 0.95, levels, present, values)
    for (i, name), (j, own) in product(enumerate(names), enumerate(found)):
        error = float(spread.standard_error[i, j])
        own[name] = Estimate(float(drawn[i, j]), error, plan, (), {}, spread.of_one(i, j))
    for j, own in enumerate(found):
        limits = dict.fromkeys(("mean", *_QUARTILES), _UNKNOWN * 2 * numbers.half[j]) | {"std": own["std"].value}
        # A value that its noise hides is not known.
        hidden = [key for key, most in limits.items() if own[key].standard_error > most]
        own |= {key: replace(own[key], value=math.nan) for key in hidden}
    return dict(zip(numbers.names, found, strict=True))


class DescribeDisplay:
    """Plot of a description: boxes between quartiles for numbers, and bars for categories.

    Use `from_description` to create a display.

    Parameters
    ----------
    description : Description
        Result of :func:`~skdp.stats.describe`.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        Axes of each column.
    figure_ : matplotlib Figure
        Figure.

    Notes
    -----
    **Privacy.** The plot shows released numbers only.

    Examples
    --------
    >>> from skdp import stats
    >>> found = stats.describe({"age": [30.0, 40.0] * 500}, schema={"age": (0, 100)}, random_state=0)
    >>> stats.DescribeDisplay.from_description(found, plot=False).description is found
    True
    """

    def __init__(self, description: Description) -> None:
        self.description = description

    @classmethod
    def from_description(cls, description: Description, *, plot: bool = True, **kwargs: Any) -> DescribeDisplay:
        """Create a display, and plot it.

        Parameters
        ----------
        description : Description
            Result of :func:`~skdp.stats.describe`.
        plot : bool, default=True
            Whether to plot the display.
        **kwargs : dict
            Arguments of `plot`.

        Returns
        -------
        display : DescribeDisplay
            The display, with ``axes_`` and ``figure_`` if `plot` is True.
        """
        display = cls(description)
        return display.plot(**kwargs) if plot else display

    def plot(self, axes: Any = None, *, level: float = 0.95) -> DescribeDisplay:
        """Plot the columns side by side.

        Parameters
        ----------
        axes : list of matplotlib Axes, default=None
            Axes of each column, numbers first. If None, a figure is created.
        level : float, default=0.95
            Level of the intervals of means and counts, which cover noise and sampling.

        Returns
        -------
        self : DescribeDisplay
            The display, with ``axes_`` and ``figure_``.
        """
        found = self.description
        width = len(found.numbers) + len(found.categories)
        if axes is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError:
                raise ImportError("pictures need matplotlib: pip install matplotlib") from None
            lines = math.ceil(width / 4)
            size = (3 * min(width, 4), 2.8 * lines)
            axes = plt.subplots(lines, min(width, 4), figsize=size, layout="constrained", squeeze=False)[1].ravel()
        self.axes_ = list(axes)
        for ax, (name, own) in zip(self.axes_, found.numbers.items(), strict=False):
            low, middle, high = (own[key].value for key in _NAMES[-3:])
            ax.bar(0, high - low, bottom=low, width=0.5, alpha=0.3)
            ax.hlines(middle, -0.25, 0.25)
            ends = own["mean"].confidence_interval(level)
            ax.errorbar(0, sum(ends) / 2, (ends[1] - ends[0]) / 2, fmt="o", capsize=4)
            ax.set(title=name, xticks=[], xlim=(-0.6, 0.6))
        for ax, (name, one) in zip(self.axes_[len(found.numbers) :], found.categories.items(), strict=False):
            low, high = one.confidence_interval(level)
            errors = np.abs(np.stack([one.value - low, high - one.value]))
            ax.barh(range(len(one.names)), np.maximum(one.value, 0), xerr=errors, alpha=0.6)
            ax.set(title=name, yticks=range(len(one.names)), yticklabels=one.names)
            ax.invert_yaxis()
        for ax in self.axes_[width:]:
            ax.set_visible(False)
        self.figure_ = self.axes_[0].figure
        return self

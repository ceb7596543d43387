"""A description of all columns of a table with one privacy budget."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounting import Budget
from ..parts.arrays import column_of, count_rows
from ..release.estimates import Around, Counts, Estimate
from ..release.laws import Law, combination
from ..release.session import PrivacyGuarantee
from ..schema.declared import Category, Number
from ..schema.schema import as_html, as_text
from ..sensitivity import sum_over_rows
from ._call import COUNTS, Call, Cells, Numbers, cells_in, choosing, numbers_of, statistic
from ._moments import LABEL, THEOREM, in_units, means, moment_design, variances
from ._noise import Sensitivity, quietest, with_and_without_delta
from ._quantiles import ENDS, RANKS, enclosing, enclosures, errors_of
from ._ranks import THEOREM as OF_RANKS
from ._ranks import WHOLE, as_values, edges_of, quantiles_at, rank_counts, rank_scales, refined

Array = NDArray[np.float64]


QUARTILES = (WHOLE // 4, WHOLE // 2, 3 * WHOLE // 4)

# Parts of the share of the quartiles for the ends of their intervals, and for the ranks of the ends.
_OF_ENDS, _OF_RANKS = 0.15, 0.08

# Level at which the intervals of quartiles are most accurate.
_LEVEL = 0.95

_NAMES = ("count", "missing", "mean", "std", "25%", "50%", "75%")


@dataclass(frozen=True, eq=False)
class Description:
    """Result of :func:`~skdp.stats.describe`.

    Parameters
    ----------
    numbers : dict of str to dict
        Statistics of each column of numbers, as a dict of `Estimate` by name.
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
            rows = [(key, *(_with_error(own[key], ".6g") for own in self.numbers.values())) for key in _NAMES]
            found.append([("", *self.numbers), *rows])
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
            f"{_with_error(self.count, 'd')} records; the number after ± is the standard error by noise\n"
            f"{str(self.privacy_).splitlines()[0]}"
        )

    def __repr__(self) -> str:
        return "\n\n".join([*map(as_text, self._tables()), self._line()])

    def _repr_html_(self) -> str:
        return "".join(map(as_html, self._tables())) + f"<p>{self._line()}</p>"


def _plus_minus(error: float) -> str:
    return f" ± {error:.2g}" if error > 0 else ""


def _with_error(one: Estimate, form: str) -> str:
    return f"{one.value:{form}}{_plus_minus(one.standard_error)}"


@dataclass(frozen=True, eq=False)
class _Parts:
    """The releases, each with its share of the budget."""

    budget: Budget
    shares: dict[str, float]
    found: dict[str, Any]
    cost: float


def _parts(budget: Budget, numbers: Numbers | None, cells: Cells | None, rows: int) -> _Parts:
    """Divide a budget so that the noise of counts, means and ranks is about equal in numbers of records."""
    n_tables = 0 if cells is None else len(cells.names)
    size = 1 + (0 if cells is None else sum(cells.shape))
    moves = Sensitivity(1.0 + n_tables, math.sqrt(1 + n_tables) * (1 + 2.0**-50), size, integers=True)
    makers: dict[str, Any] = {"counts": lambda share: quietest(budget, share, moves, rows)}
    if numbers is not None:
        width, lacks = numbers.width, numbers.may_lack
        makers[LABEL] = lambda share: moment_design(budget, share, 4, width, 1, lacks, rows)
        makers["quartiles"] = lambda share: quantiles_at(budget, share, QUARTILES, width, rows)
    costs = {name: _noise_in_records(make(1.0)) for name, make in makers.items()}
    # Noise is inversely proportional to a share of epsilon, or to the square root of a share under Gaussian DP.
    power = 2.0 if budget.delta > 0 else 1.0
    total = math.fsum(cost**power for cost in costs.values())
    shares = {name: (cost**power / total if total else 1 / len(costs)) * (1 - 2.0**-40) for name, cost in costs.items()}
    if numbers is not None:
        shares[ENDS], shares[RANKS] = _OF_ENDS * shares["quartiles"], _OF_RANKS * shares["quartiles"]
        shares["quartiles"] *= 1 - _OF_ENDS - _OF_RANKS
    found = {name: make(shares[name]) for name, make in makers.items()}
    if numbers is not None:
        found[ENDS], found[RANKS] = enclosing(budget, shares[ENDS], shares[RANKS], QUARTILES, numbers.width, rows)
    return _Parts(budget, shares, found, total ** (1 / power))


def _noise_in_records(part: Any) -> float:
    if hasattr(part, "mechanism"):
        gradient = np.zeros(part.degree + 1)
        gradient[1] = 1.0
        return math.sqrt(combination(part.mechanism, gradient @ part.powers).variance)
    mechanism = part[0]
    # The law of a rank is approximately a Laplace law with the scale of the mechanism.
    ranks = mechanism.norm == "score range"
    law = Law(parts=((mechanism.scale, 1.0),)) if ranks else combination(mechanism, 1.0)
    return math.sqrt(law.variance)


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
        with standard errors. Each statistic has an interval. If a column has ``missing="cell"``, missing values are
        counted in ``"missing"`` for numbers, and in a cell of this name for categories.

    See Also
    --------
    DescribeDisplay : Plot of a description.
    mean, quantile, value_counts : Single statistics with the whole budget.

    Notes
    -----
    **Privacy.** There are four releases: the moments of all numbers (:ref:`statistics, theorem 1
    <statistics-theorem-1>`), their quartiles and the ends of the intervals of the quartiles (:ref:`preprocessing,
    theorem 2 <preprocessing-theorem-2>`), and the number of records with the counts of all categories
    (:ref:`statistics, theorem 2 <statistics-theorem-2>`). The budget is divided so that the noise of counts, sums and
    ranks is about equal in numbers of records. The division depends only on the schema and the budget. Whether `X` has
    a column of the target is public, as all names of columns are.

    Examples
    --------
    >>> from skdp import Number, Schema, stats
    >>> schema = Schema({"age": Number(0, 100, step=1), "sex": ["f", "m"]})
    >>> X = {"age": [30, 40, 50, None] * 5000, "sex": ["f", "m"] * 10_000}
    >>> found = stats.describe(X, schema=schema, epsilon=1.0, random_state=0)
    >>> round(found.numbers["age"]["mean"].value), found.numbers["age"]["50%"].value
    (40, 40.0)
    >>> found.categories["sex"].names
    ('f', 'm', 'other', 'missing')
    >>> low, high = found.numbers["age"]["25%"].confidence_interval()
    >>> low <= 30 <= high
    True
    """
    if call.schema is None:
        raise ValueError("schema must be given, because it declares the columns of numbers and of categories")
    call = call.with_target(y)
    assert call.schema is not None
    chosen = call.schema if call.chosen is None else call.schema.select(*_names(call.chosen))
    kinds = {kind: [name for name in chosen if isinstance(chosen[name], kind)] for kind in (Number, Category)}
    numbers = numbers_of(choosing(call, kinds[Number])) if kinds[Number] else None
    cells = cells_in(choosing(call, kinds[Category])) if kinds[Category] else None
    parts = with_and_without_delta(
        call.budget, lambda own: _parts(own, numbers, cells, call.unit.rows), lambda found: found.cost
    )
    pairs = {
        name: (one.mechanism, one.event) if hasattr(one, "mechanism") else one for name, one in parts.found.items()
    }
    theorems = {"counts": COUNTS, LABEL: THEOREM, "quartiles": OF_RANKS, ENDS: OF_RANKS, RANKS: COUNTS}
    releases = [(name, pairs[name][0], parts.shares[name], theorems[name]) for name in pairs]
    plan = call.plan(parts.budget, *releases, events=[event for _, event in pairs.values()])
    # If all columns are of one type, one array stands for both arrays.
    arrays: list[Any] = [own for own in (numbers and numbers.values, cells and cells.codes) if own is not None]
    session, values, codes = call.open(plan, arrays[0], arrays[-1])

    own_cells = _cell_counts(cells, codes) if cells is not None else []
    exact = np.concatenate([[float(count_rows(values))], *own_cells])
    counts = np.rint(session.release("counts", exact)).astype(np.int64)
    law = combination(pairs["counts"][0], 1.0)
    n = _counted(counts[0], law, plan)
    categories, start = {}, 1
    for name, labels in zip(() if cells is None else cells.names, () if cells is None else cells.labels, strict=True):
        categories[name] = _counted(counts[start : start + len(labels)], law, plan, labels)
        start += len(labels)
    described = {} if numbers is None else _describe_numbers(session, parts, call.unit.rows, numbers, values, n, plan)
    return Description(described, categories, n, plan)


def _names(columns: Any) -> list[str]:
    return [columns] if isinstance(columns, str) else list(columns)


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
    session: Any, parts: _Parts, rows: int, numbers: Numbers, values: NDArray, n: Estimate, plan: PrivacyGuarantee
) -> dict[str, dict[str, Estimate]]:
    design, half = parts.found[LABEL], numbers.half
    sums = design.power_sums(session.release(LABEL, design.sums(values, numbers)))[0]
    present = np.maximum(sums[:, 0] if numbers.may_lack else np.full(numbers.width, float(n.value)), 1.0)
    levels = np.array(QUARTILES, dtype=np.intp)
    ends = enclosures(session, parts.budget, parts.shares[ENDS], rows, numbers, _LEVEL, levels, present, values)
    edges = refined(edges_of(numbers, 4096), ends.ends)
    scales = rank_scales(session.mechanism("quartiles"), QUARTILES)
    quartiles = as_values(edges, session.release("quartiles", rank_counts(edges, values)), numbers).T
    ends = ends.about(quartiles, scales, _LEVEL, quartiles.shape)
    errors = errors_of(ends, numbers)
    own_law = combination(design.mechanism, design.powers[0])
    shape = (numbers.width,)
    every = {
        "mean": in_units(means(design, sums), numbers.centre, half, shape),
        "std": in_units(variances(design, sums, 0.5), np.zeros(1), half, shape),
    }
    found = {}
    for j, (name, column) in enumerate(zip(numbers.names, numbers.scales, strict=True)):
        own = {"count": _counted(round(sums[j, 0]), own_law, plan)}
        lacking = max(n.value - round(sums[j, 0]), 0) if column.missing == "cell" else 0
        both = math.hypot(n.standard_error, math.sqrt(own_law.variance)) if column.missing == "cell" else 0.0
        own["missing"] = Estimate(lacking, both, plan, (), {}, Around(lacking, Law(normal=both), None, 0))
        for key, (value, error, spread) in every.items():
            own[key] = Estimate(float(value[j]), float(error[j]), plan, (), {}, spread.rules[j])
        for i, key in enumerate(_NAMES[-3:]):
            own[key] = Estimate(float(quartiles[i, j]), float(errors[i, j]), plan, (), {}, ends.of_one(i, j))
        found[name] = own
    return found


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
                raise ImportError("pictures need matplotlib: pip install 'skdp[plot]'") from None
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

"""Statistics of groups of records, and a test of two groups."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from ..accounting import Budget
from ..checks.params import check_choice, check_positive, is_list
from ..checks.silence import discreet
from ..checks.values import shown
from ..release.session import PrivacyGuarantee, Release, Reserved
from ..schema.declared import Category, Number
from ._call import Call, begin, cells_in, choosing, label_names, numbers_of, private_labels, statistic
from ._moments import LABEL, THEOREM, Design, in_units, means, moment_design, variances
from ._noise import Law, combination, with_and_without_delta
from ._result import Around, Estimate
from ._tables import OCCURRING, occurring_mechanism, released_labels

Array = NDArray[np.float64]

STATISTICS = ("count", "mean", "std", "var")

_LABELS = "labels that occur"


def group_by(X: Any, by: Any, *, schema: Any, rows_per_group: int | None = None, groups: Any = None) -> GroupBy:
    """Group the records of a table, for statistics of each group.

    Parameters
    ----------
    X : table
        With the columns of `schema`.
    by : str, list of str, ndarray or Series
        A name or a list of names of columns of categories of the schema. Or an array or a series with a label for each
        row, of which the list is private: then `delta` must be positive, and only groups with enough records are
        released.
    schema : Schema
        Public facts about the columns of the table.
    rows_per_group : int, default=None
        How many records of a person count at most, drawn at random. This has nothing to do with `by`.
    groups : array-like of shape (n_samples,), default=None
        The person of each row, by a number or a text; for `rows_per_group`.

    Returns
    -------
    grouped : GroupBy
        With a method ``agg``. Nothing is computed or charged before that.

    Notes
    -----
    **Privacy.** See :meth:`GroupBy.agg`.

    Examples
    --------
    >>> from skdp import Number, Schema, stats
    >>> schema = Schema({"sex": ["f", "m"], "height": Number(100, 220, missing="error")})
    >>> X = {"sex": ["f", "m"] * 1000, "height": [165.0, 178.0] * 1000}
    >>> found = stats.group_by(X, "sex", schema=schema).agg({"height": "mean"}, epsilon=1.0, random_state=0)
    >>> found["height_mean"].names
    ('f', 'm', 'other', 'missing')
    >>> found["height_mean"].value[:2].round().tolist()
    [165.0, 178.0]
    """
    return GroupBy(X, by, schema, rows_per_group, groups)


@dataclass(frozen=True, eq=False)
class GroupBy:
    """Groups of the records of a table; :func:`~skdp.stats.group_by` makes it.

    Parameters
    ----------
    X : table
        The table.
    by : str, list of str or array-like
        Names of columns, or labels of the rows.
    schema : Schema
        Public facts about the columns.
    rows_per_group : int, default=None
        How many records of a person count at most.
    groups : array-like, default=None
        The person of each row.

    Examples
    --------
    >>> from skdp import stats
    >>> stats.GroupBy({"a": [1.0]}, "a", {"a": (0, 1)}).by
    'a'
    """

    X: Any = field(repr=False)
    by: Any = field(repr=False)
    schema: Any = field(repr=False)
    rows_per_group: int | None = None
    groups: Any = field(default=None, repr=False)

    @discreet
    def agg(
        self,
        statistics: Any,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        accountant: Any = None,
        random_state: Any = None,
    ) -> dict[str, Estimate]:
        """Estimate statistics of columns in each group, with one joint release.

        Parameters
        ----------
        statistics : dict
            For names of columns of numbers, ``"count"``, ``"mean"``, ``"var"``, ``"std"`` or a list of them.
        epsilon : float, default=1.0
            Privacy budget of this call, positive.
        delta : float, default=0.0
            Privacy budget of this call, in [0, 1). Must be positive if the list of groups is private.
        accountant : BudgetAccountant, default=None
            Budget that is charged before anything is computed from the data.
        random_state : int, RandomState, Generator or None, default=None
            If None, noise comes from the operating system's cryptographic generator. Any other value is for tests.

        Returns
        -------
        found : dict of str to Estimate
            By column and statistic, as ``"income_mean"``. Each has one entry for each group, by its name in ``names``.

        Notes
        -----
        **Privacy.** Each record is in one group, so that it changes the moments of one group only (statistics,
        theorem 1). The noise does not depend on the number of groups. If the list of groups is private, half of the
        budget releases the groups whose noisy counts exceed a threshold (statistics, theorem 3).
        """
        asked = _check_statistics(statistics)
        call = begin(
            "group_by",
            self.X,
            columns=list(asked),
            schema=self.schema,
            epsilon=epsilon,
            delta=delta,
            rows_per_group=self.rows_per_group,
            groups=self.groups,
            accountant=accountant,
            random_state=random_state,
        )
        degree = 4 if any({"var", "std"} & set(own) for own in asked.values()) else 2
        design, sums, names, plan = group_moments(call, self.by, degree)
        numbers = numbers_of(call)
        found = {}
        for j, (column, own) in enumerate(asked.items()):
            shift, half = numbers.centre[j], numbers.half[j]
            for one in own:
                part, shape = sums[:, j], (len(names),)
                if one == "count":
                    rules: Any = _counts(design, part)
                elif one == "mean":
                    rules = in_units(means(design, part), shift, half, shape)
                else:
                    power = 1.0 if one == "var" else 0.5
                    rules = in_units(variances(design, part, power), np.zeros(1), half ** (2 * power), shape)
                value, error, spread = rules
                found[f"{column}_{one}"] = Estimate(value, error, plan, names, {"count": part[:, 0]}, spread)
        return found


def _counts(design: Design, sums: Array) -> tuple[Array, Array, Any]:
    law = combination(design.mechanism, design.powers[0])
    value = sums[:, 0]
    return value, np.full(len(value), math.sqrt(law.variance)), Around(value, law, np.sqrt(np.maximum(value, 0)), 0.0)


def _check_statistics(statistics: Any) -> dict[str, list[str]]:
    if not isinstance(statistics, Mapping) or not statistics:
        raise TypeError(f"statistics must map names of columns to names of statistics, got {shown(statistics)}")
    found = {}
    for column, own in statistics.items():
        every = list(own) if is_list(own) else [own]
        if not every:
            raise ValueError(f"statistics must name one statistic or more of column {column!r}")
        found[column] = [check_choice(one, f"the statistic of column {column!r}", STATISTICS) for one in every]
    return found


def group_moments(call: Call, by: Any, degree: int) -> tuple[Design, Array, tuple[str, ...], PrivacyGuarantee]:
    """Release moments of the columns by group; return power sums by group and column, and names of the groups."""
    numbers, rows = numbers_of(call), call.unit.rows
    # The type of `by` tells, because labels are private.
    declared = isinstance(by, str | list | tuple)

    def design_for(budget: Budget, n_cells: int) -> Design:
        return moment_design(budget, 1.0, degree, numbers.width, n_cells, numbers.may_lack, rows)

    if declared:
        cells = cells_in(choosing(call, [by] if isinstance(by, str) else list(by)))
        names = _product_names(cells.labels)
        budget, design = with_and_without_delta(
            call.budget, lambda own: (own, design_for(own, len(names))), lambda found: found[1].cost
        )
        plan = call.plan(budget, (LABEL, design.mechanism, 1.0, THEOREM), events=[design.event])
        session, values, codes = call.open(plan, numbers.values, cells.flat)
    else:
        labels, known = private_labels(by)
        if len(labels) != len(numbers.values):
            raise ValueError("by must name columns of categories of the schema, or be an array of a label for each row")
        half = Budget(call.budget.epsilon / 2 * (1 - 2.0**-40), call.budget.delta / 2)
        mechanism, event = occurring_mechanism(half, rows)
        pair = with_and_without_delta(half, lambda own: (own, design_for(own, 16)), lambda found: found[1].cost)
        reserved = Reserved(pair[1].event)
        parts = [(_LABELS, mechanism, 0.5, OCCURRING), (LABEL, reserved, 0.5, THEOREM)]
        plan = call.plan(call.budget, *parts, events=[event, pair[1].event])
        session, values, labels, known = call.open(plan, numbers.values, labels, known)
        found = released_labels(session, _LABELS, labels[known], mechanism)[0]
        names = label_names(found)
        design = design_for(pair[0], max(len(names), 1))
        session.refine(LABEL, [Release(LABEL, design.mechanism, 0.5, THEOREM)], [design.event])
        known = known & np.isin(labels, found)
        values, codes = values[known], np.searchsorted(found, labels[known]).astype(np.int64)
    sums = design.power_sums(session.release(LABEL, design.sums(values, numbers, codes)))
    return design, sums[: len(names)], names, plan


def _product_names(labels: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    names = [""]
    for i, own in enumerate(labels):
        names = [f"{one}, {label}" if i else label for one in names for label in own]
    return tuple(names)


@dataclass(frozen=True, eq=False)
class TestResult:
    """Result of a private test.

    Parameters
    ----------
    statistic : float
        The test statistic.
    pvalue : float
        Probability of a statistic as extreme, under the hypothesis and the known law of the noise.
    df : float
        Degrees of freedom.
    privacy_ : PrivacyGuarantee
        The guarantee of the call.
    details : dict
        Further released numbers.
    alternatives : object
        Computes the power.

    Examples
    --------
    >>> from skdp import Number, Schema, stats
    >>> schema = Schema({"sex": ["f", "m"], "height": Number(100, 220, missing="error")})
    >>> X = {"sex": ["f", "m"] * 1000, "height": [165.0, 178.0] * 1000}
    >>> stats.ttest_ind(X, "sex", schema=schema, random_state=0).power(5.0) > 0.9
    True
    """

    __test__ = False

    statistic: float
    pvalue: float
    df: float
    privacy_: PrivacyGuarantee
    details: dict[str, Any] = field(default_factory=dict)
    alternatives: Any = field(default=None, repr=False)

    def power(self, effect: Any, alpha: float = 0.05) -> float:
        """Return the probability that a test of this noise and this many records rejects the hypothesis.

        Parameters
        ----------
        effect : float or array-like
            The true effect: for :func:`ttest_ind` the difference of the means, a number; for :func:`chi2_contingency`
            the table of probabilities of the declared categories.
        alpha : float, default=0.05
            Size of the test.

        Returns
        -------
        power : float
            Computed from released numbers.
        """
        alpha = check_positive(alpha, "alpha", most=1.0)
        return float(self.alternatives.power(effect, alpha))


@dataclass(frozen=True, eq=False)
class _Difference:
    law: Law
    normal: float

    def power(self, effect: Any, alpha: float) -> float:
        limit = float(self.law.half_width(1 - alpha, self.normal))
        return self.law.tail(limit - effect, self.normal) + self.law.tail(limit + effect, self.normal)


@statistic(bounds=False)
def ttest_ind(
    call: Call,
    by: str,
) -> TestResult:
    r"""Test whether the means of a column are equal in two groups.

    Parameters
    ----------
    X : table
        With the columns of `schema`.
    by : str
        Name of a column with two declared categories. Records with other or missing entries are left out.
    columns : str, default=None
        Name of the column of numbers. It may be left out if there is only one.
    %(shared)s

    Returns
    -------
    result : TestResult
        ``details["difference"]`` has the difference of the means, first minus second.

    Notes
    -----
    **Privacy.** The moments of both groups are one release (statistics, theorem 1). The statistic is Welch's, with the
    variance of the noise added. Its law under the hypothesis is that of the noise and a normal sampling error.

    References
    ----------
    .. [1] B. L. Welch, "The Generalization of 'Student's' Problem when Several Different Population Variances are
       Involved", Biometrika 34, 1947.

    Examples
    --------
    >>> from skdp import Number, Schema, stats
    >>> schema = Schema({"sex": ["f", "m"], "height": Number(100, 220, missing="error")})
    >>> X = {"sex": ["f", "m"] * 1000, "height": [165.0, 178.0] * 1000}
    >>> stats.ttest_ind(X, "sex", schema=schema, random_state=0).pvalue < 1e-6
    True
    """
    names = call.names(Number)[0]
    column: Any = None if not isinstance(by, str) or call.schema is None else call.schema.get(by)
    if not isinstance(column, Category) or len(column.values) != 2:
        raise ValueError(f"by must name a column of two categories, got {shown(by)}")
    if len(names) != 1:
        raise ValueError("columns must name one column of numbers")
    half = float(numbers_of(call).half[0])
    design, sums, _, plan = group_moments(call, by, 2)
    first, second = means(design, sums[:2, 0])
    n = np.array([max(first.b, 1.0), max(second.b, 1.0)])
    at = [min(max(rule.a / rule_n, -1.0), 1.0) for rule, rule_n in zip((first, second), n, strict=True)]
    parts = [rule.law(mean) for rule, mean in zip((first, second), at, strict=True)]
    law = Law(
        normal=half * math.hypot(*(part.normal / own for part, own in zip(parts, n, strict=True))),
        parts=tuple((half * a / own, k) for part, own in zip(parts, n.tolist(), strict=True) for a, k in part.parts),
    )
    sampled = np.array([first.record, second.record]) / n
    normal = half * math.sqrt(float(sampled.sum()))
    df = float(sampled.sum() ** 2 / max((sampled**2 / np.maximum(n - 1, 1)).sum(), 1e-300)) if normal else math.inf
    difference = half * (at[0] - at[1])
    # Student's law has heavier tails than the normal law: exact at the usual size of 5 %.
    normal *= float(stdtrit(max(df, 1.0), 0.975) / stdtrit(math.inf, 0.975)) if normal else 1.0
    spread = math.sqrt(law.variance + normal**2)
    value = difference / spread if spread else math.copysign(math.inf, difference) if difference else 0.0
    pvalue = min(1.0, 2 * law.tail(abs(difference), normal))
    details = {"difference": difference, "standard_error": spread, "count": n}
    return TestResult(value, pvalue, df, plan, details, _Difference(law, normal))

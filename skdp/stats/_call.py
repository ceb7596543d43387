"""Shared code of all statistics: parameters, reading of tables, choice of a mechanism, and charges."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from inspect import Parameter, signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounting import Budget, BudgetAccountant, PrivacyEvent, PureEvent, check_delta, check_epsilon
from ..checks.data import FLOATS, NO_NUMBERS, check_quietly, label_key, labels_of
from ..checks.params import check_bounds, columns_of, is_list, misspelling, shown
from ..checks.silence import discreet
from ..mechanisms import (
    DiscreteLaplaceMechanism,
    Mechanism,
    NoiseSource,
    NoNoise,
    l1_mechanism,
    l2_mechanism,
    pure_share,
)
from ..parts import in_parts
from ..parts.arrays import PartedArray, row_check, rowwise
from ..release.estimates import Counts, Estimate, Law, combination
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem, check_accountant
from ..release.units import Unit
from ..schema.declared import Category, Column, Number, cells_of, read_cells, read_numbers
from ..schema.encoding import unit_of
from ..schema.entries import check_index, read_column, table_columns
from ..schema.schema import Schema, as_schema, columns_in_order
from ..sensitivity import group_sensitivity


@dataclass(frozen=True)
class Sensitivity:
    """The sensitivity of a vector to one record, in both norms, and whether the vector holds integers."""

    l1: float
    l2: float
    size: int
    integers: bool = False

    @classmethod
    def of_counts(cls, n: int, size: int) -> Sensitivity:
        """Return the sensitivity of `size` counts, of which a record changes `n` by 1."""
        return cls(float(n), math.sqrt(n) * (1 + 2.0**-50), size, integers=True)


def pure_mechanism(budget: Budget, share: float, moves: Sensitivity, rows: int) -> tuple[Mechanism, PrivacyEvent]:
    """Return Laplace noise for a share of epsilon."""
    if budget.epsilon == math.inf:
        return NoNoise(group_sensitivity(moves.l2, rows)), PureEvent(math.inf)
    epsilon = pure_share(budget.epsilon, share)
    sensitivity = group_sensitivity(moves.l1, rows)
    if moves.integers:
        return DiscreteLaplaceMechanism(epsilon, sensitivity, moves.size), PureEvent(epsilon)
    return l1_mechanism(epsilon, sensitivity, moves.size), PureEvent(epsilon)


def norm_mechanism(budget: Budget, share: float, moves: Sensitivity, rows: int) -> tuple[Mechanism, PrivacyEvent]:
    """Return noise for the L2 norm and a share of the budget, which is Gaussian if delta is positive."""
    if budget.epsilon == math.inf:
        return pure_mechanism(budget, share, moves, rows)
    return l2_mechanism(*budget, share, group_sensitivity(moves.l2, rows), moves.size)


def mechanisms(budget: Budget, share: float, moves: Sensitivity, rows: int) -> list[tuple[Mechanism, PrivacyEvent]]:
    """Return the mechanisms for a share of the budget: Gaussian if delta is positive, else both with delta=0."""
    if budget.delta > 0 and budget.epsilon < math.inf:
        return [norm_mechanism(budget, share, moves, rows)]
    return [pure_mechanism(budget, share, moves, rows), norm_mechanism(budget, share, moves, rows)]


def quietest(budget: Budget, share: float, moves: Sensitivity, rows: int) -> tuple[Mechanism, PrivacyEvent]:
    """Return the mechanism for a share of the budget with the least noise in a coordinate."""
    return min(mechanisms(budget, share, moves, rows), key=lambda choice: combination(choice[0], 1.0).variance)


def counts_estimate(
    counts: Any, law: Law, plan: PrivacyGuarantee, names: tuple[str, ...] = (), details: dict[str, Any] | None = None
) -> Estimate:
    """Return released counts with intervals. Under sampling, each count follows a Poisson law."""
    error: Any = np.full(np.shape(counts), math.sqrt(law.variance))
    if np.ndim(counts) == 0:
        counts, error = int(counts), float(error)
    return Estimate(counts, error, plan, names, details or {}, Counts(counts, law))


def with_and_without_delta(budget: Budget, build: Callable[[Budget], Any], cost: Callable[[Any], float]) -> Any:
    """Build a plan with delta and a plan without delta, and return the plan with the smaller cost."""
    budgets = [Budget(budget.epsilon, 0.0)] + [budget] * (budget.delta > 0)
    return min(map(build, budgets), key=cost)


Array = NDArray[np.float64]

#: The theorem for counts of records in cells.
COUNTS = Theorem("Statistics", 2)

# Defaults and documentation of the shared parameters.
_SHARED: dict[str, tuple[Any, str]] = {
    "columns": (
        None,
        """str or list of str, default=None
        Names of columns of the schema, possibly with its target if `X` has this column. For one name, results are
        numbers. For a list, results are arrays. If None, all columns of the type that the statistic requires are used,
        without the target.""",
    ),
    "schema": (
        None,
        """Schema, default=None
        Public facts about the columns of a table. X is then the table. Missing values are left out if the column has
        ``missing="cell"``, and raise an error if it has ``missing="error"``.""",
    ),
    "bounds": (
        None,
        """tuple (lower, upper), default=None
        Public bounds: numbers, or one for each column. Required without a schema. Values beyond are clipped. If
        most values are beyond, most statistics warn, as far as released numbers show it. Tighter bounds mean less
        noise.""",
    ),
    "epsilon": (
        1.0,
        """float, default=1.0
        Privacy budget of this call. Must be strictly positive. Smaller values add more noise. ``inf`` gives no
        privacy.""",
    ),
    "delta": (
        0.0,
        """float, default=0.0
        Privacy budget of this call, in [0, 1). If positive, Gaussian noise is used wherever it is smaller than the
        noise for ``delta=0``. The choice depends on public numbers only. Choose a value far below one over the
        expected number of records.""",
    ),
    "rows_per_group": (
        None,
        """int, default=None
        Public limit on the number of rows of one group, such as a person. Further rows of a group are left out at
        random. The guarantee is then for all rows of a group together, and the noise is larger. If None, the guarantee
        is for one row.""",
    ),
    "groups": (
        None,
        """array-like of shape (n_samples,), default=None
        Group of each row, as a number or a text. Required with `rows_per_group`, unless `schema` declares it.""",
    ),
    "accountant": (
        None,
        """BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. If None, no charge is recorded.""",
    ),
    "random_state": (
        None,
        """int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.""",
    ),
}

_ROWS = """    X : array-like or table
        Numbers between `bounds`, or a table with the columns of `schema`.
"""
_TABLE = """    X : table
        A table with the columns of `schema`.
"""

# Parameters of functions of other libraries, and what to write instead.
_ANSWERS = {
    "axis": "Each column is summarised by itself.",
    "categories": "Declare the categories: value_counts({'name': labels}, schema={'name': categories}).",
    "method": "To clip to a range of most values, pass the value of min_max as bounds.",
    "range": "Pass bounds=(lower, upper), which must be public. Values beyond them count in the outer bins.",
    "weights": "Weights are not supported.",
}


def statistic(
    *, bounds: bool = True, like: Callable[..., Any] | None = None, **words: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Turn a function of a `Call` into a public function with the shared parameters and discreet errors.

    With `like`, the function has the docstring of another function, where each of `words` replaces
    ``[[name: original word]]``.
    """
    shared = {name: default for name, (default, _) in _SHARED.items() if bounds or name != "bounds"}

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        specific = list(signature(function).parameters.values())[1:]
        kinds = [Parameter(name, Parameter.KEYWORD_ONLY, default=default) for name, default in shared.items()]
        public = signature(function).replace(
            parameters=[Parameter("X", Parameter.POSITIONAL_OR_KEYWORD), *specific, *kinds]
        )

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                bound = public.bind(*args, **kwargs)
            except TypeError as error:
                answers = [_ANSWERS[key] for key in kwargs if key in _ANSWERS and key not in public.parameters]
                raise TypeError(" ".join([f"{function.__name__}: {error}.", *answers])) from None
            bound.apply_defaults()
            given = dict(bound.arguments)
            common = {name: given.pop(name) for name in shared}
            return function(begin(function.__name__, given.pop("X"), **common), **given)

        call.template = doc = function.__doc__ or like.template  # type: ignore[attr-defined,union-attr]
        doc = re.sub(r"\[\[(\w+): (.*?)\]\]", lambda match: words.get(match[1], match[2]), doc, flags=re.DOTALL)
        if "    Parameters\n" not in doc:
            doc = doc.replace("    Returns\n", "    Parameters\n    ----------\n\n    Returns\n", 1)
        # The parameters that all functions have come first and last.
        summary, parameters, results = re.split(r"    Parameters\n    -+\n|\n    Returns\n", doc, maxsplit=2)
        table = "" if parameters.startswith("    X :") else _ROWS if bounds else _TABLE
        others = "".join(f"    {name} : {_SHARED[name][1]}\n" for name in shared if f"    {name} : " not in parameters)
        call.__doc__ = f"{summary}    Parameters\n    ----------\n{table}{parameters}{others}\n    Returns\n{results}"
        call.__signature__ = public  # type: ignore[attr-defined]
        return discreet(call)

    return decorate


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a statistic: its checked public parameters, and the table that only `Call.open` gives access to."""

    name: str
    table: Any
    schema: Schema | None
    chosen: Any
    bounds: Any
    budget: Budget
    unit: Unit
    accountant: BudgetAccountant | None
    source: NoiseSource
    members: Any
    # The last column of the schema, if it is not in the table.
    target: Any = None

    def with_target(self, y: Any) -> Call:
        """Return the call with the target of the schema as a further column, if X has its column or y is given."""
        assert self.schema is not None
        name, table = self.schema.target_name, getattr(self.table, "meta", self.table)
        if _is_column(table):
            # One column is the one that is chosen, unless y is the target.
            names = self._chosen_names() if y is None else []
        else:
            names = table_columns(table)[0] or [] if name else []
        is_column = name is not None and name in names
        if y is None and not is_column:
            return self
        if self.schema.target is None:
            raise ValueError("y is given, and the schema declares no target. Declare it, or leave out y")
        if y is not None and is_column:
            raise ValueError(f"y is given, and X has the column {shown(name)} of the target. Leave out one of them")
        if y is not None and isinstance(self.table, PartedArray):
            raise TypeError("y is not supported for a collection of Dask. Make the target a column of X, with its name")
        check_index(self.table, y, "y")
        name = name or ("target" if "target" not in self.schema else "(target)")
        schema = Schema({**self.schema, name: self.schema.target}, None, self.schema.group, self.schema.rows_per_group)
        return replace(self, schema=schema, target=y)

    def with_named_target(self) -> Call:
        """Return the call with the target of the schema as a further column, if it is chosen and X has its column."""
        target = None if self.schema is None else self.schema.target_name
        return self.with_target(None) if target is not None and target in self._chosen_names() else self

    def _chosen_names(self) -> list[str]:
        names = [self.chosen] if isinstance(self.chosen, str) else self.chosen if is_list(self.chosen) else ()
        return [name for name in names if issubclass(type(name), str)]

    def plan(
        self, budget: Budget, *parts: tuple[str, Mechanism, float, Theorem], events: Sequence[PrivacyEvent]
    ) -> PrivacyGuarantee:
        """Return the plan of releases with these labels, mechanisms, shares and theorems."""
        releases = tuple(Release(*planned) for planned in parts)
        return self.unit.stated(PrivacyGuarantee(*budget, tuple(events), releases))

    def open(self, plan: PrivacyGuarantee, *arrays: Any) -> tuple[Any, ...]:
        """Charge for the plan, and return the session and the rows of each array within the limit of each group."""
        parted = isinstance(arrays[0], PartedArray)
        if not parted and len({len(array) for array in arrays}) > 1:
            raise ValueError("all columns must have the same length")
        if self.members is not None and not parted and any(len(array) != len(self.members) for array in arrays):
            raise ValueError("X and groups must have the same number of rows")
        session = ReleaseSession(
            plan,
            accountant=self.accountant,
            source=self.source,
            estimator=f"stats.{self.name}",
            validate=row_check(*arrays, self.members),
        )
        if self.members is None:
            return (session, *arrays)
        return (session, *self.unit.drawn(self.source, self.members, *arrays))

    def names(self, kind: type) -> tuple[tuple[str, ...], bool]:
        """Return the names of the chosen columns of one type, and whether `columns` is a single name."""
        if self.schema is None:
            raise ValueError("schema must be given, because it declares the columns of a table")
        of_kind = tuple(name for name, column in self.schema.items() if isinstance(column, kind))
        if self.chosen is None:
            if not of_kind:
                raise ValueError(f"the schema declares no column of type {kind.__name__}, which this statistic needs")
            return of_kind, False
        single = isinstance(self.chosen, str)
        if not single and not (is_list(self.chosen) and len(self.chosen)):
            raise TypeError(f"columns must be a name or a list of names, got {shown(self.chosen)}")
        names = (self.chosen,) if single else tuple(self.chosen)
        check_known(self.schema, self.chosen, "columns")
        wrong = [name for name in names if name not in of_kind]
        if wrong or len(set(names)) < len(names):
            raise ValueError(
                f"columns must name different columns of type {kind.__name__}"
                + (f", and {wrong[0]!r} is of another type" if wrong else "")
            )
        return names, single

    def read(self, read: Callable[..., NDArray], names: Sequence[str]) -> Any:
        """Return columns of the table as one array, by a function of the declaration and the entries of a column."""
        assert self.schema is not None
        is_choice = self.chosen is not None
        return rowwise(partial(_read_columns, read, self.schema, tuple(names), self.target, is_choice), self.table)


def check_known(schema: Schema, chosen: Any, parameter: str, advice: str = "") -> None:
    """Refuse names that the schema does not declare. Entries of a list may be data, and are not shown."""
    names = [chosen] if isinstance(chosen, str) else list(chosen)
    unknown = [i for i, name in enumerate(names) if not (issubclass(type(name), str) and name in schema)]
    if not unknown:
        return
    hint = f"The schema declares {', '.join(map(repr, schema))}."
    if isinstance(chosen, str):
        what = f"{parameter} names {shown(chosen)}, which is no column of the schema"
        if chosen == schema.target_name:
            hint = "It is the target of the schema, and X has no column of this name."
        else:
            hint = misspelling(chosen, [*schema, *filter(None, [schema.target_name])]).strip() or hint
    else:
        entry = "an entry of by" if parameter == "by" else f"{parameter}[{unknown[0]}]"
        what = f"{entry} is the name of no column of the schema"
    raise ValueError(f"{what}. {hint}{advice}")


def _read_columns(
    read: Callable[..., NDArray], schema: Schema, names: tuple[str, ...], target: Any, is_choice: bool, table: Any
) -> NDArray:
    declared = schema if target is None else schema.drop(list(schema)[-1])
    wanted = [name for name in names if name in declared]
    if _is_column(table):
        if len(wanted) != 1:
            raise ValueError(
                "X is a single column, but the schema declares several of this kind. Pass its name as columns=..."
            )
        declared, table = declared.select(*wanted), {wanted[0]: table}
    elif is_choice and wanted:
        # Further columns of the table need no declaration if columns are chosen.
        present, columns = table_columns(table)
        if present is not None and all(present.count(name) == 1 for name in wanted):
            declared, table = declared.select(*wanted), {name: columns[present.index(name)] for name in wanted}
    by_name = dict(zip(declared, columns_in_order(declared, table), strict=True))
    if target is not None:
        by_name[list(schema)[-1]] = target
    entries = {name: read_column(by_name[name], name) for name in names}
    if len(set(map(len, entries.values()))) > 1:
        raise ValueError("the columns of X must all have the same length")
    return np.column_stack([read(schema[name], entries[name]) for name in names])


def _is_column(table: Any) -> bool:
    shape = getattr(table, "shape", None)
    if shape is not None:
        return len(shape) == 1
    return not hasattr(table, "keys") and not hasattr(table, "column_names") and np.ndim(table) == 1


def _numbers_or_nan(column: Any, entries: Any) -> NDArray:
    values = entries.as_numbers()
    if column.missing == "error" and np.isnan(values).any():
        # This refuses missing values.
        read_numbers(column, entries)
    # Numbers beyond the bounds stay distinct from the bounds, so that released counts can show them.
    return np.clip(values, np.nextafter(float(column.low), -np.inf), np.nextafter(float(column.high), np.inf))


def begin(
    name: str,
    X: Any,
    *,
    columns: Any = None,
    schema: Any = None,
    bounds: Any = None,
    epsilon: Any,
    delta: Any,
    rows_per_group: Any,
    groups: Any,
    accountant: Any,
    random_state: Any,
) -> Call:
    """Check the parameters that all statistics have."""
    accountant = check_accountant(accountant)
    budget = Budget(check_epsilon(epsilon), check_delta(delta))
    declared = None if schema is None else as_schema(schema)
    if declared is None and columns is not None:
        raise ValueError("columns requires schema. Without a schema, select the columns of the array before the call")
    if declared is not None and bounds is not None:
        raise ValueError("bounds and schema must not both be given, because the schema declares the bounds")
    rows_per_group, groups = unit_of(declared, rows_per_group, groups, X)
    X, groups = in_parts(X, groups)
    unit = Unit.of(rows_per_group)
    members = unit.numbers(groups, X)
    call = Call(name, X, declared, columns, bounds, budget, unit, accountant, NoiseSource(random_state), members)
    # A description has the target in any case, and may have it from y.
    return call if name == "describe" else call.with_named_target()


@dataclass(frozen=True, eq=False)
class Numbers:
    """Columns of numbers with their public bounds. Missing numbers are NaN."""

    values: NDArray
    lower: Array
    upper: Array
    may_lack: bool
    names: tuple[str, ...]
    single: bool
    scales: tuple[Column, ...] = ()

    @property
    def width(self) -> int:
        return len(self.lower)

    @property
    def centre(self) -> Array:
        return self.lower / 2 + self.upper / 2

    @property
    def half(self) -> Array:
        return self.upper / 2 - self.lower / 2


def numbers_of(call: Call) -> Numbers:
    """Read the columns of numbers."""
    if call.schema is None:
        lower, upper = check_bounds(call.bounds, "bounds", "the columns")
        text = NO_NUMBERS.format("data")
        values = check_quietly(call.table, text, dtype=list(FLOATS), ensure_2d=False, ensure_min_samples=0)
        if values.ndim == 0:
            raise ValueError("X must have one column or more")
        single = values.ndim == 1
        values = rowwise(_as_column, values) if single else values
        lower, upper = columns_of((lower, upper), "bounds", values.shape[1])
        names: tuple[str, ...] = tuple(map(str, range(len(lower))))
        # A Series has a name.
        name = getattr(getattr(call.table, "meta", call.table), "name", None)
        if single and isinstance(name, str) and name:
            names = (name,)
        return Numbers(values, lower, upper, False, names, single)
    names, single = call.names(Number)
    columns: list[Any] = [call.schema[name] for name in names]
    values = call.read(_numbers_or_nan, names)
    lower, upper = np.array([(float(column.low), float(column.high)) for column in columns]).T
    may_lack = any(column.missing == "cell" for column in columns)
    return Numbers(values, lower, upper, may_lack, names, single, tuple(columns))


def _as_column(values: NDArray) -> NDArray:
    return values[:, None]


@dataclass(frozen=True, eq=False)
class Cells:
    """Columns of categories, as numbers of their cells."""

    codes: NDArray[np.int64]
    labels: tuple[tuple[str, ...], ...]
    names: tuple[str, ...]
    n_listed: tuple[int, ...]  # Numbers of the first cells of the columns, which are for declared values.

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.labels))

    @property
    def flat(self) -> NDArray[np.int64]:
        """Return the number of each row's cell in the product of the columns."""
        return rowwise(partial(_flat, self.shape), self.codes)


def _flat(shape: tuple[int, ...], codes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(np.ravel_multi_index(tuple(codes.T), shape), dtype=np.int64)


def cells_in(call: Call) -> Cells:
    """Read the columns of categories."""
    if call.schema is None:
        raise ValueError("schema must be given, because it declares the categories. They are never read from the data")
    names, _ = call.names(Category)
    columns: list[Any] = [call.schema[name] for name in names]
    labels, n_listed = tuple(tuple(cells_of(column)) for column in columns), tuple(len(c.values) for c in columns)
    return Cells(call.read(read_cells, names), labels, names, n_listed)


def choosing(call: Call, columns: Any) -> Call:
    """Return the call for other columns of the same table."""
    return replace(call, chosen=columns).with_named_target()


def private_labels(labels: Any) -> tuple[NDArray, NDArray[np.bool_]]:
    """Return labels whose list is private, as text or doubles, and a mask of usable labels."""
    # The type of an array depends on all of its entries. Therefore all numbers become doubles, and integers from 2**53
    # on are left out.
    if isinstance(labels, PartedArray):
        raise TypeError("A private list of labels needs all rows in one place. For a Dask collection, use a schema")
    array = labels_of(labels)
    if array.dtype.kind in "OT":
        kinds = {label_key(label)[0] for label in array.tolist()}
        if len(kinds) > 1 or not kinds <= {"text", "bytes", "number"}:
            raise TypeError("labels must be all text, or all numbers")
        if kinds == {"number"}:
            array = np.array([float(label) if abs(label) < 2**53 else np.nan for label in array.tolist()])
        else:
            array = np.array(array.tolist(), dtype=None if kinds == {"bytes"} else str)
    if array.dtype.kind in "SU":
        return array, np.ones(len(array), dtype=bool)
    if array.dtype.kind not in "biuf":
        raise TypeError("labels must be all text, or all numbers")
    # Adding 0.0 removes the sign of zeros.
    numbers = array.astype(np.float64) + 0.0
    return numbers, np.abs(numbers) < 2.0**53


def label_names(labels: NDArray) -> tuple[str, ...]:
    """Return names of labels. Whole numbers have no decimal point."""
    return tuple(
        str(int(label)) if isinstance(label, float) and label.is_integer() else str(label) for label in labels.tolist()
    )

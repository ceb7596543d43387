"""Statistics of collections of Dask are those of rows in memory, to the last bit."""

import numpy as np
import pytest

from skdp import BudgetAccountant, Category, Number, Schema, stats
from skdp.exceptions import BudgetError
from skdp.preprocessing import private_bounds

dask = pytest.importorskip("dask", reason="Dask is not installed")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

# Ranges are found on a sample of so many rows.
N = 33_000

SCHEMA = Schema(
    {
        "age": Number(18, 90, missing="error"),
        "income": Number(0, 1e6),
        "sex": ["f", "m"],
        "smokes": Category(["yes", "no"]),
    }
)

FIXED = {"schema": SCHEMA, "random_state": 3}
AGES = {"bounds": (0, 100), "random_state": 3}

CALLS = {
    "count": lambda X: stats.count(X, **FIXED),
    "count of columns": lambda X: stats.count(X, columns=["age", "income"], **FIXED),
    "sum": lambda X: stats.sum(X, columns="income", **FIXED),
    "mean": lambda X: stats.mean(X, columns=["age", "income"], **FIXED),
    "mean of an array": lambda X: stats.mean(X[["age"]], **AGES),
    "mean of a column": lambda X: stats.mean(X["age"], **AGES),
    "var": lambda X: stats.var(X, columns="age", delta=1e-6, **FIXED),
    "std": lambda X: stats.std(X, columns="age", **FIXED),
    "median": lambda X: stats.median(X, columns="income", **FIXED),
    "quantile": lambda X: stats.quantile(X, [0.1, 0.5], columns=["age", "income"], interval=True, **FIXED),
    "min_max": lambda X: stats.min_max(X, columns=["age", "income"], **FIXED),
    "histogram": lambda X: stats.histogram(X, 10, columns="age", **FIXED),
    "histogramdd": lambda X: stats.histogramdd(X, 3, columns=["age", "income"], **FIXED),
    "value_counts": lambda X: stats.value_counts(X, columns="sex", **FIXED),
    "proportion": lambda X: stats.proportion(X, "yes", columns="smokes", **FIXED),
    "proportion of a column": lambda X: stats.proportion(X["smokes"], "yes", random_state=3),
    "contingency": lambda X: stats.contingency(X, **FIXED),
    "chi2_contingency": lambda X: stats.chi2_contingency(X, **FIXED),
    "ecdf": lambda X: stats.ecdf(X, columns="age", **FIXED),
    "covariance": lambda X: stats.covariance(X, columns=["age", "income"], **FIXED),
    "correlation": lambda X: stats.correlation(X, columns=["age", "income"], **FIXED),
    "linear_trend": lambda X: stats.linear_trend(X, columns=["age", "income"], **FIXED),
    "ttest_ind": lambda X: stats.ttest_ind(X, "sex", columns="age", **FIXED),
    "mannwhitneyu": lambda X: stats.mannwhitneyu(X, "sex", columns="age", **FIXED),
    "group_by": lambda X: stats.group_by(
        X, "sex", {"age": ["mean", "std", "median"], "income": "count"}, random_state=3, schema=SCHEMA
    ),
    "describe": lambda X: stats.describe(X, **FIXED),
    "private_bounds": lambda X: private_bounds(X["age"], epsilon=1.0, random_state=3),
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "age": rng.integers(18, 90, N).astype(float),
            "income": rng.lognormal(10, 1, N),
            "sex": rng.choice(["f", "m"], N),
            "smokes": rng.choice(["yes", "no", "perhaps"], N),
        }
    )
    rows.loc[::7, "income"] = np.nan
    return rows


def parted(rows):
    ends = [0, 1, 1, 4000, len(rows)]
    return dd.from_map(lambda i: rows.iloc[ends[i] : ends[i + 1]], range(4), meta=rows.iloc[:0])


def numbers(found):
    """All numbers of a result, as bytes."""
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, list | tuple):
        return [one for part in found for one in numbers(part)]
    if hasattr(found, "__dataclass_fields__"):
        return [one for name in found.__dataclass_fields__ for one in numbers(getattr(found, name))]
    return [np.asarray(found, dtype=float).tobytes()] if isinstance(found, int | float | np.ndarray) else []


def test_every_statistic_is_tried():
    functions = {name for name in stats.__all__ if callable(getattr(stats, name)) and name.islower()}
    assert functions <= set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_statistics_are_those_of_rows_in_memory(name, table):
    with dask.config.set(scheduler="threads", num_workers=2):
        expected, found = CALLS[name](table), CALLS[name](parted(table))
    assert repr(expected) == repr(found)
    assert numbers(expected) == numbers(found) != []


def test_a_table_of_one_row_less_has_another_mean(table):
    assert numbers(CALLS["mean"](table)) != numbers(CALLS["mean"](parted(table.iloc[1:])))


def test_no_partition_is_read_without_budget(table):
    collection = parted(table).map_partitions(_failing, meta=table.iloc[:0])
    with pytest.raises(BudgetError):
        stats.mean(collection, columns="age", accountant=BudgetAccountant(epsilon=0.1), **FIXED)
    with pytest.raises(ValueError, match="not charged"):
        stats.mean(collection, columns="age", **FIXED)


def _failing(part):
    raise AssertionError("nothing is read")


def test_private_labels_are_refused(table):
    collection = parted(table)
    with pytest.raises(TypeError, match="one place"):
        stats.value_counts(collection["sex"], delta=1e-6)
    with pytest.raises(TypeError, match=r"declared|schema"):
        stats.group_by(collection, collection["sex"], {"age": "mean"}, delta=1e-6, schema=SCHEMA)


@pytest.mark.parametrize("name", ["mean", "median"])
def test_groups_of_partitions_are_those_of_rows_in_memory(table, name):
    people = table.assign(person=np.arange(len(table)) % 997)

    def call(people):
        return getattr(stats, name)(people["age"], rows_per_group=2, groups=people["person"], **AGES).value

    whole = getattr(stats, name)(people["age"], **AGES)
    assert call(parted(people)) == call(people) != whole.value

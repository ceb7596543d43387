"""Statistics: known answers, what is charged and refused, missing values, and forms of tables."""

import inspect
import math
import tracemalloc

import numpy as np
import pandas as pd
import pytest

import skdp
from skdp import BudgetAccountant, Category, Number, Schema, stats
from skdp.accounting import PureEvent
from skdp.exceptions import BudgetError
from skdp.release.session import ReleaseSession
from skdp.stats import _describe

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(50, 10, 2001), RNG.uniform(0, 100, 2001)])
X[:, 1] += X[:, 0] / 2
CLIPPED = np.clip(X, 0, 100)
NOTHING = {"epsilon": math.inf}
EXACT = {"bounds": (0, 100), **NOTHING}

SCHEMA = Schema(
    {
        "age": Number(0, 100, step=1),
        "income": Number(0, 1000, missing="error"),
        "sex": ["f", "m"],
        "work": ["a", "b", "c"],
    }
)
TABLE = pd.DataFrame(
    {
        "age": np.where(np.arange(3000) % 10 == 0, np.nan, RNG.integers(0, 101, 3000)),
        "income": RNG.uniform(0, 1000, 3000),
        "sex": RNG.choice(["f", "m"], 3000),
        "work": RNG.choice(["a", "b", "c"], 3000, p=[0.6, 0.3, 0.1]),
    }
)
WIDE_SCHEMA = Schema({"a": list(range(30)), "b": list(range(30))})
WIDE = {"a": [0, 1], "b": [1, 0]}

#: How each function is called on the table.
CALLS = {
    "count": lambda **k: stats.count(TABLE, schema=SCHEMA, **k),
    "sum": lambda **k: stats.sum(TABLE, schema=SCHEMA, **k),
    "mean": lambda **k: stats.mean(TABLE, schema=SCHEMA, **k),
    "var": lambda **k: stats.var(TABLE, schema=SCHEMA, **k),
    "std": lambda **k: stats.std(TABLE, schema=SCHEMA, **k),
    "quantile": lambda **k: stats.quantile(TABLE, [0.2, 0.5], schema=SCHEMA, **k),
    "median": lambda **k: stats.median(TABLE, schema=SCHEMA, **k),
    "min_max": lambda **k: stats.min_max(TABLE, schema=SCHEMA, **k),
    "histogram": lambda **k: stats.histogram(TABLE, columns="age", schema=SCHEMA, **k),
    "histogramdd": lambda **k: stats.histogramdd(TABLE, [2, 3], schema=SCHEMA, **k),
    "ecdf": lambda **k: stats.ecdf(TABLE, columns="age", depth=3, schema=SCHEMA, **k),
    "value_counts": lambda **k: stats.value_counts(TABLE, columns="work", schema=SCHEMA, **k),
    "proportion": lambda **k: stats.proportion(TABLE, "f", columns="sex", schema=SCHEMA, **k),
    "contingency": lambda **k: stats.contingency(TABLE, schema=SCHEMA, **k),
    "covariance": lambda **k: stats.covariance(TABLE, schema=SCHEMA, **k),
    "correlation": lambda **k: stats.correlation(TABLE, schema=SCHEMA, **k),
    "linear_trend": lambda **k: stats.linear_trend(TABLE, schema=SCHEMA, **k),
    "group_by": lambda **k: stats.group_by(TABLE, "sex", {"age": ["mean", "std"]}, **k, schema=SCHEMA)["age_mean"],
    "ttest_ind": lambda **k: stats.ttest_ind(TABLE, "sex", columns="age", schema=SCHEMA, **k),
    "mannwhitneyu": lambda **k: stats.mannwhitneyu(TABLE, "sex", columns="age", schema=SCHEMA, **k),
    "chi2_contingency": lambda **k: stats.chi2_contingency(TABLE, schema=SCHEMA, **k),
    "describe": lambda **k: stats.describe(TABLE, schema=SCHEMA, **k),
}

every_function = pytest.mark.parametrize("name", CALLS)


def test_every_function_is_called_here():
    functions = {name for name in stats.__all__ if inspect.isfunction(getattr(stats, name))}
    assert functions == set(CALLS)


def test_the_package_is_found_without_an_import():
    assert skdp.stats is stats
    assert skdp.describe is stats.describe


# --- known answers ---------------------------------------------------------------------------------------------------


def test_without_noise_statistics_are_those_of_numpy():
    assert stats.count(X, epsilon=math.inf).value == 2001
    for name in ("sum", "mean", "var", "std"):
        expected = getattr(np, name)(CLIPPED, axis=0)
        np.testing.assert_allclose(getattr(stats, name)(X, **EXACT).value, expected, rtol=1e-4, err_msg=name)
    for name in ("mean", "var", "std"):
        found = getattr(stats, name)(X, **EXACT).value
        np.testing.assert_allclose(found, getattr(np, name)(CLIPPED, axis=0), rtol=1e-4)
    q = [0.1, 0.5, 0.9]
    np.testing.assert_allclose(stats.quantile(X, q, **EXACT).value, np.quantile(CLIPPED, q, axis=0), atol=0.2)
    np.testing.assert_allclose(stats.median(X, **EXACT).value, np.median(CLIPPED, axis=0), atol=0.1)
    np.testing.assert_allclose(stats.covariance(X, **EXACT).value, np.cov(CLIPPED.T, ddof=0), atol=0.01)
    np.testing.assert_allclose(stats.correlation(X, **EXACT).value, np.corrcoef(CLIPPED.T), atol=1e-4)
    slope, intercept = np.polyfit(*CLIPPED.T, 1)
    found = stats.linear_trend(X, **EXACT)
    np.testing.assert_allclose([found.value, found.details["intercept"]], [slope, intercept], rtol=1e-3)


def test_without_noise_tables_are_those_of_numpy():
    edges = np.array([0, 10, 50, 100.0])
    np.testing.assert_array_equal(stats.histogram(X[:, 0], edges, **EXACT).value, np.histogram(CLIPPED[:, 0], edges)[0])
    expected = np.histogramdd(CLIPPED, [4, 5], [(0, 100)] * 2)[0]
    np.testing.assert_array_equal(stats.histogramdd(X, [4, 5], **EXACT).value, expected)
    found = stats.ecdf(X[:, 0], depth=5, **EXACT)
    expected = [(CLIPPED[:, 0] < edge).mean() for edge in found.details["edges"][:-1]]
    np.testing.assert_allclose(found.value, [*expected, 1.0], atol=1e-12)
    counts = stats.contingency(TABLE, schema=SCHEMA, epsilon=math.inf)
    expected = pd.crosstab(TABLE["sex"], TABLE["work"]).to_numpy()
    np.testing.assert_array_equal(counts.value[:2, :3], expected)
    assert counts.value.sum() == 3000
    np.testing.assert_array_equal(counts.details["margins"][1][:3], expected.sum(axis=0))


def test_values_beyond_the_bounds_are_clipped():
    x = np.array([-50.0, 5.0, 500.0])
    given = {"bounds": (0, 10), "epsilon": math.inf}
    assert stats.sum(x, **given).value == pytest.approx(15, abs=1e-4)
    assert stats.mean(x, **given).value == pytest.approx(5, abs=1e-4)
    assert stats.histogram(x, 2, **given).value.tolist() == [1, 2]


def test_missing_values_follow_the_schema():
    age = TABLE["age"].dropna()
    found = stats.describe(TABLE, schema=SCHEMA, epsilon=math.inf)
    assert found.count.value == 3000
    own = found.numbers["age"]
    assert (own["count"].value, own["missing"].value) == (2700, 300)
    assert own["mean"].value == pytest.approx(age.mean(), abs=1e-3)
    assert own["std"].value == pytest.approx(age.std(ddof=0), abs=1e-3)
    assert own["50%"].value == pytest.approx(age.median(), abs=1)
    assert found.numbers["income"]["missing"].value == 0
    assert stats.count(TABLE, columns="age", schema=SCHEMA, epsilon=math.inf).value == 2700
    assert stats.mean(TABLE, columns="age", schema=SCHEMA, epsilon=math.inf).value == pytest.approx(
        age.mean(), abs=1e-3
    )
    both = TABLE[["age", "income"]].dropna()
    np.testing.assert_allclose(
        stats.covariance(TABLE, schema=SCHEMA, epsilon=math.inf).value, both.cov(ddof=0), rtol=1e-3, atol=2
    )
    refused = TABLE.assign(income=np.nan)
    with pytest.raises(ValueError, match="income"):
        stats.mean(refused, schema=SCHEMA)
    with pytest.raises(ValueError, match="NaN"):
        stats.mean([1.0, np.nan], bounds=(0, 1))


def test_groups_without_noise():
    found = stats.group_by(
        TABLE, ["sex", "work"], {"income": ["mean", "var", "std", "count"]}, epsilon=math.inf, schema=SCHEMA
    )
    expected = TABLE.groupby(["sex", "work"])["income"]
    names = [", ".join(key) for key in expected.mean().index]
    places = [found["income_mean"].names.index(name) for name in names]
    np.testing.assert_allclose(found["income_mean"].value[places], expected.mean(), rtol=1e-4)
    np.testing.assert_allclose(found["income_std"].value[places], expected.std(ddof=0), rtol=1e-3)
    np.testing.assert_allclose(found["income_count"].value[places], expected.count())


def test_groups_of_a_private_list():
    labels = np.array(["north"] * 1500 + ["south"] * 1499 + ["secret"])
    found = stats.group_by(TABLE, labels, {"income": "mean"}, epsilon=4.0, delta=1e-12, schema=SCHEMA)
    # A label of one record is released with a probability of 1e-12 at most.
    assert found["income_mean"].names == ("north", "south")
    with pytest.raises(ValueError, match="delta must be positive"):
        stats.group_by(TABLE, labels, {"income": "mean"}, epsilon=4.0, schema=SCHEMA)


@pytest.mark.parametrize("declared", [True, False])
def test_medians_of_groups(declared):
    labels, given = TABLE["sex"].to_numpy(), {"epsilon": 4.0, "delta": 0.0 if declared else 1e-6, "random_state": 0}
    by, given = "sex" if declared else labels, {"schema": SCHEMA, **given}
    found = stats.group_by(TABLE, by, {"income": ["median", "mean"], "age": "median"}, **given)
    names = found["income_median"].names
    for label in ("f", "m"):
        own = TABLE[TABLE["sex"] == label]
        place = names.index(label)
        assert found["income_median"].value[place] == pytest.approx(own["income"].median(), abs=20)
        assert found["age_median"].value[place] == pytest.approx(own["age"].median(), abs=2)
    alone = stats.group_by(TABLE, by, "median", columns="income", **given)["income_median"]
    shares = {one.label: one.share for one in alone.privacy_.releases if one.label != "labels that occur"}
    assert shares["medians"] == pytest.approx(0.96 / (1 + (not declared)))
    assert set(shares) == {"medians", "moments", "number of records"}
    with pytest.raises(ValueError, match="without an interval"):
        alone.confidence_interval()
    rare, given = np.arange(len(TABLE)).astype(str), {"epsilon": 0.5, "delta": 1e-9, "schema": SCHEMA}
    assert stats.group_by(TABLE, rare, {"income": "median"}, **given)["income_median"].value.shape == (0,)


def test_labels_of_a_private_list_have_their_counts():
    labels = ["a"] * 5000 + ["b"] * 3000 + ["secret"]
    found = stats.value_counts(labels, epsilon=1.0, delta=1e-12)
    assert found.names == ("a", "b")
    # The noise is never larger than the threshold.
    assert np.all(np.abs(found.value - [5000, 3000]) <= found.details["threshold"])


def test_tests_of_hypotheses_find_what_there_is():
    table = TABLE.assign(income=TABLE["income"].where(TABLE["sex"] == "f", TABLE["income"] / 2))
    given = {"schema": SCHEMA, "epsilon": 1.0, "random_state": 0}
    strong = stats.ttest_ind(table, "sex", columns="income", **given)
    assert strong.pvalue < 1e-6
    ranks = stats.mannwhitneyu(table, "sex", columns="income", **given)
    first, second = (table["income"][table["sex"] == own].to_numpy() for own in ("f", "m"))
    assert ranks.statistic == pytest.approx(np.mean(first[:, None] > second), abs=0.03)
    assert ranks.pvalue == 0.0005
    dependent = TABLE.assign(work=np.where(TABLE["sex"] == "f", "a", TABLE["work"]))
    found = stats.chi2_contingency(dependent, **given)
    assert found.pvalue == 0.0005


def test_a_description_with_few_records_holds_fewer_statistics():
    rng = np.random.default_rng(0)
    schema = Schema({f"column {k}": Number(0, 100) for k in range(6)})

    def described(n):
        found = stats.describe({name: rng.uniform(0, 100, n) for name in schema}, schema=schema, epsilon=0.5)
        assert {release.label for release in found.privacy_.releases} == {"counts", "statistics of numbers"}
        # An unknown statistic is named "unknown", has no value, and keeps an interval.
        for own in found.numbers.values():
            assert list(own) == ["count", "missing", "mean", "std", "25%", "50%", "75%"]
            low, high = own["mean"].confidence_interval()
            assert 0 <= low <= high <= 100
        return found, [
            {name for name, one in own.items() if not math.isnan(one.value)} for own in found.numbers.values()
        ]

    assert described(20_000)[1] == 6 * [{"count", "missing", "mean", "std", "25%", "50%", "75%"}]
    few, known = described(300)
    # Some medians are hidden by their noise, too.
    assert all(names <= {"50%"} for names in known)
    assert sum(map(len, known)) >= 3
    assert repr(few).count("unknown") == 6 * 6 - sum(map(len, known))
    assert few.to_frame().isna().sum().sum() == 7 * 6 - sum(map(len, known))
    pytest.importorskip("matplotlib").use("Agg")
    assert len(few.plot()) >= 6
    assert all(names <= {"50%"} for names in described(3)[1])


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_parts_of_a_description_leave_room_for_rounding(delta, monkeypatch):
    """If one of many columns has a range, the numbers beyond it have a small part of the budget."""
    parts = []

    def note(session, label, releases, events):
        every = (*events, session.mechanism(label).event)
        sizes = [event.epsilon if isinstance(event, PureEvent) else event.noise_mu**2 for event in every]
        parts.append(math.fsum(sizes[:-1]) / sizes[-1])
        return refine(session, label, releases, events)

    refine = ReleaseSession.refine
    monkeypatch.setattr(ReleaseSession, "refine", note)
    monkeypatch.setattr(_describe, "_OF_BEYOND", 1e-9)
    table = {"narrow": np.linspace(40, 50, 4000)} | {f"wide {k}": np.linspace(0, 1000, 4000) for k in range(9)}
    schema = Schema({name: Number(0, 1000) for name in table})
    found = stats.describe(table, schema=schema, epsilon=5.0, delta=delta, random_state=0)
    assert math.isfinite(found.numbers["narrow"]["mean"].standard_error)
    assert parts[-1] < 1 - 2.0**-44


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_description_of_wide_bounds_is_that_of_the_range_of_the_values(delta):
    rng = np.random.default_rng(0)
    table = {
        "normal": rng.normal(40, 10, 20_000),
        "skewed": np.where(rng.random(20_000) < 0.1, np.nan, rng.exponential(5, 20_000)),
        "mostly zero": np.where(rng.random(20_000) < 0.1, rng.uniform(0, 1000, 20_000), 0),
    }
    schema = Schema({name: Number(0, 1000) for name in table})
    errors = {name: [] for name in table}
    for seed in range(10):
        found = stats.describe(table, schema=schema, epsilon=0.5, delta=delta, random_state=seed)
        for name, values in table.items():
            own, std = found.numbers[name], np.nanstd(values)
            errors[name].append([abs(own["mean"].value - np.nanmean(values)) / std, abs(own["std"].value / std - 1)])
            for key, true in (("mean", np.nanmean(values)), ("std", std)):
                low, high = own[key].confidence_interval(0.999, of="noise")
                assert low <= true <= high
    # With noise for the whole bounds, the standard deviations of the first two columns are hidden in it.
    for name in ("normal", "skewed"):
        assert np.all(np.median(errors[name], axis=0) <= [0.05, 0.25]), errors[name]
    # The quartiles are equal, and the whole bounds are used.
    assert np.all(np.median(errors["mostly zero"], axis=0) <= [0.1, 0.25])


def test_a_description_of_thirty_columns_has_a_line_for_each():
    schema = Schema({f"c{k}": Number(0, 100) for k in range(30)})
    found = stats.describe({name: [50.0] * 1000 for name in schema}, schema=schema, epsilon=100.0)
    lines = repr(found).splitlines()
    assert lines[0].split() == ["column", "missing", "mean", "std", "25%", "50%", "75%"]
    assert max(map(len, lines[:31])) < 110
    # No digit is printed far below the error.
    value, sign, error = lines[1].split()[4:7] if lines[1].split()[2] == "\u00b1" else lines[1].split()[2:5]
    assert sign == "\u00b1"
    assert len(value) <= 6, (value, error)


# --- forms of tables --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["pandas", "dict", "arrow", "array"])
def test_forms_of_a_table_do_not_matter(form):
    pa = pytest.importorskip("pyarrow")
    table = {
        "pandas": lambda: TABLE,
        "dict": lambda: {name: TABLE[name].tolist() for name in TABLE},
        "arrow": lambda: pa.Table.from_pandas(TABLE),
        "array": lambda: TABLE.to_numpy(dtype=object),
    }[form]()
    found = stats.describe(table, schema=SCHEMA, random_state=0)
    assert repr(found) == repr(stats.describe(TABLE, schema=SCHEMA, random_state=0))


def test_memory_is_bounded_and_maps_of_files_are_read(tmp_path):
    import tracemalloc

    path = tmp_path / "x.npy"
    np.save(path, np.tile(X[:, 0], 500))
    mapped = np.load(path, mmap_mode="r")
    for function in (stats.mean, stats.std, stats.sum, stats.median, stats.histogram):
        tracemalloc.start()
        found = function(mapped, bounds=(0, 100), epsilon=math.inf)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 0.9 * mapped.nbytes, function.__name__
        assert np.all(np.isfinite(found.value))


def test_a_table_may_have_further_columns_if_columns_are_chosen():
    more, own = TABLE.assign(further=1.0), SCHEMA.select("age", "sex")
    assert stats.mean(more, columns=["age"], schema=own, **NOTHING).value == pytest.approx(
        TABLE["age"].mean(), abs=0.01
    )
    found = stats.group_by(more, "sex", {"age": "count"}, epsilon=math.inf, schema=own)["age_count"]
    assert found.value.sum() == 2700
    with pytest.raises(ValueError, match="lacks columns"):
        stats.mean(more.drop(columns="age"), columns="age", schema=own)
    with pytest.raises(ValueError, match="does not declare"):
        stats.mean(more, schema=own)


def test_a_single_column_is_named_by_the_schema_or_by_columns():
    expected = pytest.approx(TABLE["age"].mean(), abs=0.01)
    age = TABLE["age"]
    for column in (age, age.tolist(), age.to_numpy()):
        assert stats.mean(column, columns="age", schema=SCHEMA, **NOTHING).value == expected
        assert stats.mean(column, schema=SCHEMA.select("age"), **NOTHING).value == expected
    with pytest.raises(ValueError, match="Pass its name as columns="):
        stats.mean(age, schema=SCHEMA)


@pytest.mark.parametrize("name", ["ttest_ind", "mannwhitneyu"])
def test_groups_of_a_test_may_be_the_target(name):
    schema = Schema({"income": SCHEMA["income"]}, target={"sex": ["f", "m"]})
    given = {"epsilon": 1.0, "random_state": 0}
    test = getattr(stats, name)
    own = test(TABLE[["income", "sex"]], "sex", schema=schema, **given)
    assert own.pvalue == test(TABLE, "sex", columns="income", schema=SCHEMA, **given).pvalue
    with pytest.raises(ValueError, match="its target if X has it"):
        test(TABLE[["income"]], "sex", schema=schema)


def test_entries_of_lists_in_place_of_names_are_not_shown():
    labels = ["private label"] * len(TABLE)
    for call in (
        lambda: stats.group_by(TABLE, labels, {"age": "mean"}, schema=SCHEMA),
        lambda: stats.mean(TABLE, columns=labels, schema=SCHEMA),
        lambda: stats.value_counts(TABLE, columns=np.array(labels), schema=SCHEMA),
        lambda: stats.describe(TABLE, columns=pd.Series(labels).tolist(), schema=SCHEMA),
    ):
        with pytest.raises(ValueError, match=r"The schema declares 'age'") as caught:
            call()
        assert "private" not in str(caught.value)
        assert ("Pass labels of rows" in str(caught.value)) == ("entry of by" in str(caught.value))


def test_the_target_is_a_column_if_it_is_named():
    """What is released is the same as for a schema that declares the target as a further column."""
    schema = Schema({"age": SCHEMA["age"]}, target={"income": SCHEMA["income"]})
    labelled = Schema({"age": SCHEMA["age"]}, target={"sex": SCHEMA["sex"]})
    given = {"epsilon": 1.0, "random_state": 0}
    for statistic in (stats.mean, stats.std, stats.median):
        expected = repr(statistic(TABLE, columns="income", schema=SCHEMA, **given))
        assert repr(statistic(TABLE, columns="income", schema=schema, **given)) == expected
        assert repr(statistic(TABLE["income"], columns="income", schema=schema, **given)) == expected
    counts = stats.value_counts(TABLE, columns="sex", schema=labelled, **given)
    assert repr(counts) == repr(stats.value_counts(TABLE, columns="sex", schema=SCHEMA, **given))
    more = Schema({"age": SCHEMA["age"], "work": SCHEMA["work"]}, target={"income": SCHEMA["income"]})
    for by, statistics, own in (("work", {"income": "mean"}, more), ("sex", {"age": ["mean", "median"]}, labelled)):
        found, expected = (stats.group_by(TABLE, by, statistics, **given, schema=one) for one in (own, SCHEMA))
        assert repr(found) == repr(expected)
    # Without a name, the target is no column.
    assert stats.mean(TABLE[["age", "income"]], schema=schema, **given).names == ("age",)
    with pytest.raises(ValueError, match="It is the target of the schema, and X has no column of this name"):
        stats.mean(TABLE[["age"]], columns="income", schema=schema)


def test_statistics_by_group_of_all_columns_of_numbers():
    found = stats.group_by(TABLE, "sex", ["mean", "count"], epsilon=math.inf, schema=SCHEMA)
    assert list(found) == ["age_mean", "age_count", "income_mean", "income_count"]


@pytest.mark.parametrize(
    ("call", "kind", "answer"),
    [
        (lambda b: stats.histogram(X[:, 0], range=(0, 1), accountant=b), TypeError, r"Pass bounds=\(lower, upper\)"),
        (lambda b: stats.mean(X, bounds=(0, 1), axis=0, accountant=b), TypeError, "Each column"),
        (lambda b: stats.mean(X, bounds=(0, 1), method="auto", accountant=b), TypeError, "value of min_max"),
        (lambda b: stats.value_counts(["a"], categories=["a"], accountant=b), TypeError, "schema="),
        (lambda b: stats.mean(X, bounds=(0, 1), wrong=1, accountant=b), TypeError, "'wrong'. Nothing was charged"),
        (lambda b: stats.ttest_ind(X[:, 0], X[:, 1], accountant=b), TypeError, r"'value': \[\*a, \*b\]"),
        (lambda b: stats.group_by(TABLE, "sex", schema=SCHEMA, accountant=b), TypeError, "'statistics'"),
    ],
)
def test_calls_of_other_libraries_are_answered(call, kind, answer):
    accountant = BudgetAccountant(1.0)
    with pytest.raises(kind, match=answer):
        call(accountant)
    assert accountant.records == ()


# --- what is charged and refused -------------------------------------------------------------------------------------


@every_function
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_plan_is_charged_before_anything_is_computed(name, delta):
    accountant = BudgetAccountant(10.0, 1e-3)
    found = CALLS[name](epsilon=0.5, delta=delta, accountant=accountant)
    (record,) = accountant.records
    assert record.estimator == f"stats.{name}"
    assert (found.privacy_.epsilon, found.privacy_.relation) == (0.5, record.relation)
    assert found.privacy_.delta in (0.0, delta)
    assert record.cost == found.privacy_.cost
    assert sum(release.share for release in found.privacy_.releases) <= 1 + 1e-12
    with pytest.raises(BudgetError):
        CALLS[name](epsilon=0.5, accountant=BudgetAccountant(0.1))


@every_function
def test_with_the_same_seed_the_same_is_released(name):
    first, second = (CALLS[name](epsilon=0.5, random_state=3) for _ in range(2))
    assert repr(first) == repr(second)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stats.mean([1.0]), "bounds must be given"),
        (lambda: stats.mean([1.0], bounds=(0, 1), columns="a"), "columns requires schema"),
        (lambda: stats.mean(TABLE, schema=SCHEMA, bounds=(0, 1)), "bounds and schema must not both be given"),
        (lambda: stats.mean(TABLE, schema=SCHEMA, columns="sex"), "of another type"),
        (lambda: stats.mean(TABLE, schema=SCHEMA, columns="wrong"), "columns names 'wrong'"),
        (lambda: stats.mean(TABLE, schema=SCHEMA, columns="incomes"), "Is it a misspelling of 'income'"),
        (lambda: stats.mean(TABLE, schema=SCHEMA, columns=["age", "wrong"]), r"columns\[1\] is the name of no column"),
        (lambda: stats.describe(TABLE, schema=SCHEMA, columns=["incomes"]), r"columns\[0\] is the name of no column"),
        (lambda: stats.group_by(TABLE, "sex", {"ages": "mean"}, schema=SCHEMA), "statistics names 'ages'.*'age'"),
        (lambda: stats.quantile(X, 1.5, bounds=(0, 1)), "q must be a number"),
        (lambda: stats.quantile(X, [0.5, 0.5], bounds=(0, 1)), "q must increase"),
        (lambda: stats.histogram(X, bounds=(0, 1)), "takes 1 column"),
        (lambda: stats.histogram(X[:, 0], [2.0, 1.0], bounds=(0, 1)), "increasing edges"),
        (lambda: stats.value_counts(["a"]), "delta must be positive"),
        (lambda: stats.proportion(TABLE, "x", columns="sex", schema=SCHEMA), "must be a category"),
        (lambda: stats.contingency(TABLE), "schema must be given"),
        (lambda: stats.linear_trend(X[:, 0], bounds=(0, 1)), "must have two columns"),
        (lambda: stats.ttest_ind(TABLE, "work", columns="age", schema=SCHEMA), "two categories"),
        (lambda: stats.chi2_contingency(TABLE, columns=["sex"], schema=SCHEMA), "two columns"),
        (lambda: stats.ecdf(X, bounds=(0, 1)), "one column"),
        (lambda: stats.group_by(TABLE, "sex", {"age": "mode"}, schema=SCHEMA), "statistic of column"),
        (lambda: stats.group_by(TABLE, "sex", "age", schema=SCHEMA), "must be one of"),
        (lambda: stats.group_by(TABLE, "sex", {"age": []}, schema=SCHEMA), "at least one statistic"),
        (lambda: stats.group_by(TABLE, "sex", {"age": "mean"}, columns="age", schema=SCHEMA), "columns must be None"),
        (lambda: stats.group_by(TABLE, "sex", {"age": "mean"}), "schema must be given"),
        (lambda: stats.group_by(TABLE, "seks", {"age": "mean"}, schema=SCHEMA), "by names 'seks'.*'sex'"),
        (lambda: stats.ttest_ind(X, "sex"), "schema must be given"),
        (lambda: stats.mannwhitneyu(TABLE, "work", columns="age", schema=SCHEMA), "two categories"),
        (lambda: stats.mannwhitneyu(TABLE, "sex", schema=SCHEMA), "one column"),
        (lambda: stats.mannwhitneyu(TABLE, "sex", columns="age", n_cells=1, schema=SCHEMA), "n_cells"),
        (lambda: stats.proportion([1], []), "at least 1"),
        (lambda: stats.count({"age": [1.0]}), "requires schema"),
        (lambda: stats.value_counts([1], delta=1e-6, epsilon=2e3, rows_per_group=2, groups=[1]), "too large"),
        (lambda: stats.chi2_contingency(WIDE, schema=WIDE_SCHEMA), "degrees of freedom"),
        (lambda: stats.describe(X), "schema must be given"),
        (lambda: stats.mean(X, bounds=(0, 1), groups=[1] * 2001), "rows_per_group must be set"),
        (lambda: stats.mean(X, bounds=(0, 1), groups=[1] * 7, rows_per_group=1), "same number of rows"),
        (lambda: stats.mean(X, bounds=(0, 1), epsilon=0.0), "epsilon"),
        (lambda: stats.mean(X, bounds=(0, 1)).confidence_interval(2.0), "level must lie"),
        (lambda: stats.mean(X, bounds=(0, 1)).confidence_interval(of="all"), "of must be one of"),
        (lambda: stats.sum(X, bounds=(0, 1)).confidence_interval(), "which a population does not have"),
        (lambda: stats.median(X, bounds=(0, 1), interval=False).confidence_interval(), "without an interval"),
    ],
)
def test_what_is_wrong_is_said(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


@pytest.mark.parametrize("n", [0, 1])
@every_function
def test_there_may_be_no_rows(name, n, monkeypatch):
    monkeypatch.setitem(globals(), "TABLE", TABLE.iloc[:n])
    found = CALLS[name](epsilon=0.5)
    if isinstance(found, stats.Estimate):
        assert np.all(np.isfinite(np.asarray(found.value, dtype=float)))


@every_function
def test_results_are_shown(name):
    found = CALLS[name](epsilon=0.5)
    assert "epsilon=0.5" in repr(found) or isinstance(found, stats.TestResult)
    if hasattr(found, "_repr_html_"):
        assert found._repr_html_().startswith("<table>")


def test_a_description_shows_standard_errors():
    found = stats.describe(TABLE, schema=SCHEMA, epsilon=0.5, random_state=0)
    lines = repr(found).splitlines()
    own = found.numbers["age"]
    assert all(f" ± {own[name].standard_error:.2g}" in repr(found) for name in list(own)[1:])
    assert f"{own['mean'].value:.2f} ± {own['mean'].standard_error:.2g}" in repr(found)
    assert all(math.isfinite(one.standard_error) and one.standard_error > 0 for one in own.values())
    assert lines[-3].endswith("the number after ± is the standard error by noise")
    assert lines[-3].startswith(f"{found.count.value} ± ")
    assert sum("±" in line for line in lines) == 2 + sum(len(one.names) for one in found.categories.values()) + 1
    # Without noise, only the errors of rounding to a declared step remain.
    exact = repr(stats.describe(TABLE, schema=SCHEMA, epsilon=math.inf)).splitlines()
    assert exact[1].count("±") == 3
    assert "±" not in exact[2]
    assert found._repr_html_().count("±") > 7


def test_the_target_is_described():
    schema = Schema({name: SCHEMA[name] for name in ("age", "sex")}, target={"work": SCHEMA["work"]})
    rows, y = TABLE[["age", "sex"]], TABLE["work"]
    given = {"schema": schema, "epsilon": 2.0, "random_state": 0}
    beside, inside = stats.describe(rows, y, **given), stats.describe(TABLE[["age", "sex", "work"]], **given)
    assert list(beside.categories) == ["sex", "work"]
    assert repr(beside) == repr(inside) == repr(stats.describe(rows, y.tolist(), **given))
    # The order of columns does not matter, and the target is one more column in the sensitivity.
    assert repr(stats.describe(TABLE[["work", "sex", "age"]], **given)) == repr(inside)
    # Numbers of records and of entries in cells count four times, and the number of values of the age once.
    assert beside.privacy_.releases[0].sensitivity == 4 * 3 + 1
    without = stats.describe(rows, **given)
    assert list(without.categories) == ["sex"]
    assert without.privacy_.releases[0].sensitivity == 4 * 2 + 1
    exact = stats.describe(rows, y, schema=schema, epsilon=math.inf)
    own = exact.categories["work"]
    assert dict(zip(own.names, own.value, strict=True))["a"] == (y == "a").sum()
    only = stats.describe(rows, y, columns=["work", "age"], schema=schema)
    assert (list(only.numbers), list(only.categories)) == (["age"], ["work"])


def test_a_numeric_target_without_a_name_is_described():
    schema = Schema({"age": SCHEMA["age"]}, target=SCHEMA["income"])
    ages, y = TABLE[["age"]], TABLE["income"].to_numpy()
    found = stats.describe(ages, y, schema=schema, epsilon=math.inf)
    assert found.numbers["target"]["mean"].value == pytest.approx(y.mean(), rel=1e-3)
    assert list(stats.describe(ages.to_numpy()[:, 0], y, schema=schema).numbers) == ["age", "target"]
    budget = BudgetAccountant(1.0)
    for arguments, message in (
        ((ages, y[:-1]), "same length"),
        ((ages, np.where(y > 0, np.nan, y)), "target"),
    ):
        with pytest.raises(ValueError, match=message):
            stats.describe(*arguments, schema=schema, accountant=budget)
    with pytest.raises(ValueError, match="declares no target"):
        stats.describe(ages, y, schema={"age": SCHEMA["age"]}, accountant=budget)
    with pytest.raises(ValueError, match="column 'income' of the target"):
        stats.describe(
            TABLE[["age", "income"]],
            y,
            schema=Schema({"age": SCHEMA["age"]}, target={"income": SCHEMA["income"]}),
            accountant=budget,
        )
    assert len(budget) == 0


def test_medians_of_a_description_with_little_budget_are_near_the_records():
    """With quartiles and means, they would be spread over the bounds. False-alarm probability: fixed seeds."""
    schema = Schema({f"column {k}": Number(0, 100, missing="error") for k in range(4)})
    for seed in range(10):
        values = np.random.default_rng(seed).lognormal(0, 0.8, (2000, 4))
        table = {name: np.minimum(column, 100) for name, column in zip(schema, values.T, strict=True)}
        found = stats.describe(table, schema=schema, epsilon=0.1, random_state=seed)
        assert all(0.5 < own["50%"].value < 2 for own in found.numbers.values())


def test_plots_draw_all_columns():
    plt = pytest.importorskip("matplotlib.pyplot")
    found = stats.describe(TABLE, schema=SCHEMA, epsilon=1.0)
    axes = found.plot()
    assert [ax.get_title() for ax in axes] == list(SCHEMA)
    assert list(found.to_frame().columns) == ["age", "income"]
    plt.close(axes[0].figure)


def test_columns_of_other_lengths_are_refused_before_a_charge():
    table, budget = {"age": [30.0] * 3, "sex": ["f"] * 5}, BudgetAccountant(1.0)
    schema = Schema({"age": Number(0, 100), "sex": ["f", "m"]})
    common = {"schema": schema, "accountant": budget}
    for call in (
        lambda: stats.group_by(table, "sex", {"age": "mean"}, accountant=budget, schema=schema),
        lambda: stats.ttest_ind(table, "sex", **common),
        lambda: stats.describe(table, **common),
    ):
        with pytest.raises(ValueError, match="same length"):
            call()
    assert len(budget) == 0


def test_groups_that_are_not_released_have_no_intervals():
    labels = np.array([f"id {k}" for k in range(len(TABLE))])
    given = {"schema": SCHEMA, "epsilon": 0.5, "delta": 1e-9, "random_state": 0}
    found = stats.group_by(TABLE, labels, {"age": "mean"}, **given)["age_mean"]
    assert found.names == ()
    assert all(end.shape == (0,) for end in found.confidence_interval())


def test_missing_numbers_are_not_counted_by_ranges():
    values = np.where(np.arange(10_000) < 9_700, np.nan, 50.0)
    schema = Schema({"a": Number(0, 1000)})
    found = stats.min_max({"a": values}, schema=schema, columns="a", epsilon=1.0, random_state=0)
    assert found.details["count"] < 1000


def test_a_column_of_a_schema_may_come_alone():
    schema = Schema({"age": Number(0, 100)})
    expected = stats.mean({"age": [20.0, 30.0]}, schema=schema, random_state=0).value
    assert stats.mean([20.0, 30.0], schema=schema, random_state=0).value == expected
    assert Category(["a"]).values == ("a",)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("function", [stats.covariance, stats.correlation])
def test_matrices_of_many_columns_take_memory_for_their_pairs(function, delta):
    """A release has a place for each pair, and the noise of an entry depends on a few places only."""
    rows = RNG.uniform(0, 100, (3000, 100))
    tracemalloc.start()
    try:
        found = function(rows, bounds=(0, 100), delta=delta, random_state=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # 5,050 pairs with 5,151 coefficients each would take 208 MB.
    assert peak < 150e6
    assert max(len(rule.top) for rule in found.spread.rules) <= 6
    for ends in (found.value, found.standard_error, *found.confidence_interval()):
        assert ends.shape == (100, 100)
        assert np.array_equal(ends, ends.T)

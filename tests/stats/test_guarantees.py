"""What one record, or one group, moves in the releases of statistics: brute force, and mutants that move more."""

import math

import numpy as np
import pandas as pd
import pytest

from skdp import Number, Schema, stats
from skdp.accounting import Budget
from skdp.release import units
from skdp.release.session import ReleaseSession
from skdp.sensitivity import exact_sum
from skdp.stats import _call, _moments, _quantiles
from skdp.stats._tables import occurring_mechanism
from tests.neighbours import MOVED

SCHEMA = Schema({"a": Number(-1, 1), "b": Number(-1, 3), "sex": ["f", "m"], "work": [1, 2, 3]})
BOUNDS = {"bounds": (-1, 1)}

NUMBERS = ["a", "b"]

#: Functions with one release each, or without what depends on an earlier release.
FUNCTIONS = {
    "count": lambda t, **k: stats.count(t, columns=NUMBERS, schema=SCHEMA, **k),
    "sum": lambda t, **k: stats.sum(t, schema=SCHEMA, **k),
    "mean": lambda t, **k: stats.mean(t, schema=SCHEMA, **k),
    "mean of a column": lambda t, **k: stats.mean(t["a"], **BOUNDS, **k),
    "var": lambda t, **k: stats.var(t, schema=SCHEMA, **k),
    "std of columns": lambda t, **k: stats.std(t[["a", "b"]], **BOUNDS, **k),
    "quantile": lambda t, **k: stats.quantile(t, [0.2, 0.5, 0.9], interval=False, schema=SCHEMA, **k),
    "histogram": lambda t, **k: stats.histogram(t, 4, columns="a", schema=SCHEMA, **k),
    "histogramdd": lambda t, **k: stats.histogramdd(t, [2, 3], schema=SCHEMA, **k),
    "value_counts": lambda t, **k: stats.value_counts(t, columns="work", schema=SCHEMA, **k),
    "proportion": lambda t, **k: stats.proportion(t, "f", columns="sex", schema=SCHEMA, **k),
    "contingency": lambda t, **k: stats.contingency(t, schema=SCHEMA, **k),
    "covariance": lambda t, **k: stats.covariance(t, schema=SCHEMA, **k),
    "covariance of columns": lambda t, **k: stats.covariance(t, **BOUNDS, **k),
    "ecdf": lambda t, **k: stats.ecdf(t, columns="a", depth=4, schema=SCHEMA, **k),
    "group_by": lambda t, **k: stats.group_by(t, "work", {"a": "mean", "b": "std"}, schema=SCHEMA, **k),
    "medians by group": lambda t, **k: stats.group_by(t, "work", "median", columns=["a", "b"], schema=SCHEMA, **k),
    "mannwhitneyu": lambda t, **k: stats.mannwhitneyu(t, "sex", columns="a", n_cells=4, schema=SCHEMA, **k),
    "describe": lambda t, **k: stats.describe(t, schema=SCHEMA, **k),
}  # fmt: skip

every_function = pytest.mark.parametrize("name", FUNCTIONS)


def table(n=30, seed=0):
    rng = np.random.default_rng(seed)
    columns = {
        "a": np.where(rng.random(n) < 0.1, np.nan, rng.uniform(-2, 2, n)),
        "b": rng.uniform(-2, 4, n),
        "sex": rng.choice(["f", "m"], n).astype(object),
        "work": rng.integers(1, 4, n).astype(object),
    }
    return pd.DataFrame(columns)


#: Records that are added: at the bounds, far beyond, in the middle, and with missing entries.
RECORDS = [
    (1.0, 3.0, "f", 1),
    (-1.0, -1.0, "m", 3),
    (-1e300, 1e300, "m", 2),
    (0.0, 1.0, "f", 9),
    (np.nan, np.nan, None, None),
    (0.5, np.nan, "m", 1),
]


def inputs(name, rows, monkeypatch, **given):
    """What goes into the releases of a function, by label, with the mechanism."""
    found = {}
    release = ReleaseSession.release

    def note(self, label, value):
        found[label] = self.mechanism(label), np.array(value, dtype=float)
        return release(self, label, value)

    if name.endswith(("column", "columns")):
        rows = rows[["a", "b"]].fillna(0.0)
    with monkeypatch.context() as patch:
        patch.setattr(ReleaseSession, "release", note)
        FUNCTIONS[name](rows, random_state=0, **given)
    return found


def largest_move(name, rows, delta, monkeypatch, size):
    """The largest move of a release over its sensitivity, where `size` records of one group are added."""
    groups = np.arange(30) // 2
    base = table()
    given = {"epsilon": 1.0, "delta": delta, "rows_per_group": rows, "groups": None if rows is None else groups}
    without, most = inputs(name, base, monkeypatch, **given), {}
    for record in RECORDS:
        added = pd.DataFrame([record] * size, columns=list(base)).astype(base.dtypes)
        more = pd.concat([base, added], ignore_index=True)
        if rows is not None:
            given["groups"] = np.append(groups, np.full(size, 99))
        for label, (mechanism, value) in inputs(name, more, monkeypatch, **given).items():
            # Sums that depend on the values of earlier releases are compared for equal values, below.
            if label in ("squared deviations", "ranks of the ends") or (name == "describe" and label != "counts"):
                continue
            moved = MOVED[mechanism.norm](value - without[label][1])
            most[label] = max(most.get(label, 0.0), moved / mechanism.sensitivity)
    return most


# With missing values, a record of full norm has all of the L1 norm; of the L2 norm, those of counts and sums.
@every_function
@pytest.mark.parametrize("delta", [0.0, 1e-2])
@pytest.mark.parametrize("rows", [None, 3])
def test_no_release_moves_by_more_than_stated(name, delta, rows, monkeypatch):
    for size in (1,) if rows is None else (1, 3, 12):
        most = largest_move(name, rows, delta, monkeypatch, size)
        assert max(most.values()) <= 1 + 1e-9
        if size == (rows or 1):
            # Records are spread over cells, and quantiles have several columns, of which one has missing values.
            assert all(part >= (0.3 if label in ("quantiles", "medians") else 0.9) for label, part in most.items()), (
                most
            )


# --- releases in several steps ---------------------------------------------------------------------------------------

# One of the columns may lack values, and both are in a small part of their bounds.
WIDE = {"x": Number(-1000, 1000, missing="error"), "y": Number(-1000, 1000)}

STEPS = {
    "quantile": lambda x, **k: stats.quantile(x, [0.3, 0.5], **BOUNDS, **k),
    "min_max": lambda x, **k: stats.min_max(x, **BOUNDS, **k),
    "describe": lambda x, **k: stats.describe({"x": x, "y": -x}, schema={"x": (-1, 1), "y": (-1, 1)}, **k),
    "describe, in ranges": lambda x, **k: stats.describe({"x": x, "y": -x}, schema=WIDE, **k),
    "covariance": lambda x, **k: stats.covariance(np.column_stack([x, -x]), **BOUNDS, **k),
    "correlation": lambda x, **k: stats.correlation(np.column_stack([x, x, -x]), **BOUNDS, **k),
    "linear_trend": lambda x, **k: stats.linear_trend(np.column_stack([x, -x]), **BOUNDS, **k),
}


def replayed(call, x, monkeypatch, outputs, first, labels=None):
    """What goes into the releases in their order; after the first call, the released values are repeated."""
    found, release = [], ReleaseSession.release

    def note(self, label, value):
        if labels is not None:
            labels.append(label)
        found.append((self.mechanism(label), np.array(value, dtype=float)))
        out = release(self, label, value)
        if first:
            outputs.append(out)
        return outputs[len(found) - 1]

    with monkeypatch.context() as patch:
        patch.setattr(ReleaseSession, "release", note)
        call(x, epsilon=1.0, random_state=0)
    return found


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("delta", [0.0, 1e-2])
def test_steps_move_by_no_more_than_stated_given_the_steps_before(name, delta, monkeypatch):
    x, outputs = np.linspace(-0.5, 0.5, 20_001), []

    def call(rows, **given):
        return STEPS[name](rows, delta=delta, **given)

    labels = []
    without = replayed(call, x, monkeypatch, outputs, True, labels)
    assert len(without) >= 2
    assert ("numbers beyond the ranges" in labels) == ("ranges" in name)
    for more in (1.0, -1.0, 0.0, 1e300):
        with_it = replayed(call, np.append(x, more), monkeypatch, outputs, False)
        assert len(with_it) == len(without)
        for (mechanism, value), (same, other) in zip(without, with_it, strict=True):
            assert mechanism == same
            assert MOVED[mechanism.norm](other - value) <= mechanism.sensitivity * (1 + 1e-9)


def exact_without_clip(monkeypatch):
    monkeypatch.setattr(
        _moments, "scaled", lambda values, centre, half, most: np.clip((values - centre) / half, -9, 9) * most
    )


def noise_for_one_row(monkeypatch):
    monkeypatch.setattr(_call, "group_sensitivity", lambda sensitivity, rows: sensitivity)
    original = _quantiles.quantile_mechanism
    monkeypatch.setattr(_quantiles, "quantile_mechanism", lambda *given: original(*given[:-1], 1))


def all_rows_count(monkeypatch):
    monkeypatch.setattr(units, "drawn_rows", lambda members, most, stream: np.arange(len(members)))


@pytest.mark.parametrize("name", ["mean of a column", "std of columns", "covariance of columns"])
def test_without_clipping_releases_move_by_more(name, monkeypatch):
    exact_without_clip(monkeypatch)
    assert max(largest_move(name, None, 0.0, monkeypatch, 1).values()) > 2


@every_function
@pytest.mark.parametrize("broken", [noise_for_one_row, all_rows_count])
def test_groups_that_are_broken_on_purpose_move_by_more(name, broken, monkeypatch):
    broken(monkeypatch)
    assert max(largest_move(name, 3, 0.0, monkeypatch, 12).values()) > 1.5


def test_sums_are_exact_in_any_order():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, 50_000)
    first, second = (
        stats.mean(rows, bounds=(0, 1), epsilon=1.0, random_state=0).value for rows in (x, rng.permutation(x))
    )
    assert first == second
    assert exact_sum(lambda rows: np.array([len(rows)]), x)[0] == len(x)


# --- the choice of the noise depends on public numbers alone ---------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (10.0, 1e-3)])
@pytest.mark.parametrize("width", [1, 3, 30])
def test_the_smaller_noise_is_used(epsilon, delta, width):
    rows = np.zeros((5, width))
    given = {"bounds": (-1, 1), "epsilon": epsilon}
    errors = [np.max(stats.sum(rows, delta=own, **given).standard_error) for own in (0.0, delta)]
    assert errors[1] <= errors[0] * (1 + 1e-12)
    names = {
        stats.sum(x, delta=delta, **given).privacy_.releases[0].mechanism.name for x in (rows, rows + 0.7, rows[:0])
    }
    assert len(names) == 1


def test_many_columns_have_gaussian_noise():
    found = stats.mean(np.zeros((5, 40)), bounds=(-1, 1), epsilon=1.0, delta=1e-6)
    assert found.privacy_.releases[0].mechanism.name == "Gaussian"
    assert found.privacy_.delta == 1e-6
    found = stats.mean(np.zeros(5), bounds=(-1, 1), epsilon=1.0, delta=1e-6)
    assert found.privacy_.delta == 0.0
    assert math.isfinite(found.value)


# --- labels of a private list, by group ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "delta", "rows"), [(1.0, 1e-4, 1), (1.0, 1e-4, 4), (3.0, 1e-3, 2), (50.0, 1e-3, 3)]
)
def test_deltas_of_the_records_of_a_group_add_up(epsilon, delta, rows):
    mechanism, event = occurring_mechanism(Budget(epsilon, delta), rows)
    assert (event.epsilon, event.delta) == (epsilon, delta)
    # One record after the other, each costs (epsilon / rows, delta'), and what is left over is multiplied.
    assert mechanism.epsilon * rows <= epsilon
    total = sum(mechanism.delta * math.exp(k * mechanism.epsilon) for k in range(rows))
    assert 0.999 * delta <= total <= delta * (1 + 1e-9)
    assert mechanism.sensitivity == rows


@pytest.mark.parametrize("labels", [np.ones(200, dtype=int), np.array(["1"] * 200), [1] * 200, [True] * 200])
@pytest.mark.parametrize("value", [[str(k) for k in range(1, 21)], list(range(1, 21)), 1, "1"])
def test_a_record_moves_a_proportion_by_itself(labels, value):
    shares = [stats.proportion(labels[:n], value, epsilon=math.inf).value for n in (100, 119, 120, 200)]
    assert len(set(shares)) == 1


def test_a_record_that_changes_the_type_of_labels_moves_no_other():
    few = pd.Series([1] * 500 + [0] * 400)
    for more in (pd.Series([*few, 2.5]), pd.Series([*few, True]), few.astype(bool), few.astype(float), few.tolist()):
        found = stats.value_counts(more, delta=1e-9, random_state=0)
        assert found.names == ("0", "1")

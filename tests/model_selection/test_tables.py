"""Searches and scores on tables of any kind: dicts of columns, tables of PyArrow, and arrays with named columns."""

import math
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skdp import BudgetAccountant, Category, DPGridSearchCV, DPNaiveBayes, Number, ObjPertLogReg, Schema, TableEncoder
from skdp.model_selection import private_cross_val_score, private_score
from skdp.schema.schema import read_rows
from skdp.tree import DPRandomTree
from tests.estimators import released

pa = pytest.importorskip("pyarrow")

SCHEMA = Schema(
    {"age": Number(0, 100), "town": ["aa", "ba", "7"], "size": Category(["s", "m"], ordered=True)}, ["no", "yes"]
)


def columns(n_rows=400, seed=0):
    rng = np.random.default_rng(seed)
    town = rng.choice(["aa", "ba", "7", "else", None], n_rows).tolist()
    age = [None if value > 98 else float(value) for value in rng.uniform(0, 100, n_rows).round()]
    return {"age": age, "town": town, "size": rng.choice(["s", "m"], n_rows).tolist()}


def labels(table):
    return np.array(["yes" if (age or 0) > 50 else "no" for age in table["age"]])


def structured(table):
    kinds = [("age", float), ("town", object), ("size", "U1")]
    rows = zip(
        *([np.nan if e is None else e for e in table[n]] if n == "age" else table[n] for n in table), strict=True
    )
    return np.array(list(rows), dtype=kinds)


CONTAINERS = {
    "pandas": pd.DataFrame,
    "polars": lambda table: pl.DataFrame(table, strict=False),
    "dict of lists": dict,
    "dict of arrays": lambda table: {name: np.array(values, dtype=object) for name, values in table.items()},
    "dict of series": lambda table: {name: pd.Series(values) for name, values in table.items()},
    "reversed dict": lambda table: dict(reversed(table.items())),
    "pyarrow": pa.table,
    "chunks": lambda table: pa.concat_tables([pa.table(table)[:5], pa.table(table)[5:]]),
    "structured": structured,
}
in_each = pytest.mark.parametrize("container", [name for name in CONTAINERS if name != "pandas"])


def models():
    return {
        "linear": ObjPertLogReg(schema=SCHEMA, epsilon=3.0, delta=1e-6, random_state=0),
        "bayes": DPNaiveBayes(schema=SCHEMA, epsilon=3.0, random_state=0),
        "trees": DPRandomTree(schema=SCHEMA, epsilon=3.0, delta=1e-6, n_estimators=4, random_state=0),
        "encoder": make_pipeline(
            TableEncoder(SCHEMA), ObjPertLogReg(data_norm=2.0, classes=["no", "yes"], epsilon=3.0, random_state=0)
        ),
    }


GRIDS = {
    "linear": {"C": [0.1, 1.0]},
    "bayes": {"n_bins": [4, 8]},
    "trees": {"max_depth": [1, 2]},
    "encoder": {"objpertlogreg__C": [0.1, 1.0]},
}
by_model = pytest.mark.parametrize("name", GRIDS)


@cache
def scored(name, container):
    X, y = CONTAINERS[container](columns()), labels(columns())
    model = models()[name].fit(X, y)
    fits = {"cv": 3, "epsilon": 9.0, "delta": 1e-5, "random_state": 1}
    return private_score(model, X, y, epsilon=1.0, random_state=1).value, *private_cross_val_score(model, X, y, **fits)


@cache
def searched(name, container, accountant=None):
    X, y = CONTAINERS[container](columns()), labels(columns())
    given = {"epsilon": 20.0, "delta": 1e-5, "strategy": "holdout", "random_state": 1, "accountant": accountant}
    search = DPGridSearchCV(models()[name], GRIDS[name], **given).fit(X, y)
    assert search.n_features_in_ == 3
    assert search.predict(X).shape == (400,)
    return search.best_index_, *released(search)


@by_model
@in_each
def test_scores_do_not_depend_on_the_container(name, container):
    assert scored(name, container) == scored(name, "pandas")


@in_each
@pytest.mark.parametrize("name", GRIDS)
def test_searches_do_not_depend_on_the_container(name, container):
    assert searched(name, container) == searched(name, "pandas")


def test_a_search_in_a_dict_is_charged_once():
    budget = BudgetAccountant(1e9, 0.1)
    with pytest.warns(match="random_state"):
        searched("bayes", "dict of lists", budget)
    assert len(budget) == 1


@pytest.mark.parametrize("container", ["dict of lists", "pyarrow", "chunks"])
def test_groups_are_a_column_of_the_table(container):
    table = columns() | {"person": list(range(200)) * 2}
    y = labels(table)
    schema = Schema(dict(SCHEMA), ["no", "yes"], group="person", rows_per_group=2)
    model = DPNaiveBayes(schema=schema, epsilon=3.0, random_state=0)
    given = {"epsilon": 20.0, "random_state": 1}
    found = []
    for kind in ("pandas", container):
        X = CONTAINERS[kind](table)
        search = DPGridSearchCV(model, {"n_bins": [4, 8]}, **given).fit(X, y)
        found.append([*released(search), private_score(search, X, y, **given).value])
        found[-1] += private_cross_val_score(model, X, y, cv=3, **given).tolist()
    np.testing.assert_array_equal(found[0], found[1])


@in_each
def test_a_record_that_changes_types_moves_no_other_record(container):
    table = columns(50)
    whole = read_rows(SCHEMA, CONTAINERS[container](table))
    encoder = TableEncoder(SCHEMA).fit(whole)
    for entry in ("text", None, 1e300, 7, "7"):
        if container in ("pyarrow", "chunks", "structured") and entry is not None:
            # These containers have one type for a column.
            more = {name: [*map(str, values), str(entry)] for name, values in table.items()}
            some = {name: values[:-1] for name, values in more.items()}
            more, some = (pa.table(each) for each in (more, some))
        elif container == "structured":
            continue
        else:
            more, some = CONTAINERS[container]({n: [*v, entry] for n, v in table.items()}), whole
        both = [encoder.transform(read_rows(SCHEMA, each)) for each in (more, some)]
        assert len(both[0]) == 51
        np.testing.assert_array_equal(both[0][:-1], both[1])


def test_a_record_counts_in_its_own_cell_alone():
    table = columns(50)
    y = labels(table)
    model = models()["trees"].fit(table, y)
    counts = private_score(model, table, y, metric="confusion_matrix", epsilon=math.inf).counts
    for entry in ("text", None, 1e300, b"x", object()):
        more = {name: [*values, entry] for name, values in table.items()}
        found = private_score(model, more, [*y, "no"], metric="confusion_matrix", epsilon=math.inf).counts
        assert np.abs(found - counts).sum() == 1


@pytest.mark.parametrize("container", ["dict of lists", "pyarrow", "structured"])
def test_tables_are_refused_where_nothing_reads_them(container):
    table = columns()
    X, y = CONTAINERS[container](table), labels(table)
    numbers = np.random.default_rng(0).normal(size=(400, 3))
    budget = BudgetAccountant(100.0, 0.1)
    model = ObjPertLogReg(data_norm=3.0, classes=["no", "yes"])
    fitted = model.fit(numbers, y)
    for act in (
        lambda: private_score(fitted, X, y, accountant=budget),
        lambda: private_cross_val_score(model, X, y, delta=1e-6, accountant=budget),
        lambda: DPGridSearchCV(model, {"C": [0.1, 1.0]}, accountant=budget).fit(X, y),
    ):
        with pytest.raises(TypeError, match=r"of columns, which only .* ObjPertLogReg has none"):
            act()
    assert len(budget) == 0


def test_columns_with_different_indexes_are_refused_before_any_charge():
    table = columns()
    y = labels(table)
    budget = BudgetAccountant(100.0, 0.1)
    series = {name: pd.Series(values) for name, values in table.items()}
    wrong = series | {"town": series["town"].sort_index(ascending=False)}
    fitted = models()["linear"].fit(series, y)
    for act in (
        lambda: models()["linear"].set_params(accountant=budget, random_state=None).fit(wrong, y),
        lambda: private_score(fitted, wrong, y, accountant=budget),
        lambda: private_cross_val_score(models()["linear"], wrong, y, delta=1e-6, accountant=budget),
        lambda: DPGridSearchCV(models()["linear"], {"C": [0.1, 1.0]}, accountant=budget).fit(wrong, y),
        lambda: fitted.predict(wrong),
    ):
        with pytest.raises(ValueError, match="have different indexes") as failure:
            act()
        assert "399" not in str(failure.value)
    assert len(budget) == 0
    # One index in all columns, of any kind, is no difference; nor is an array among them.
    same = {name: pd.Series(values, index=np.arange(400)[::-1] * 1.0) for name, values in table.items()}
    same["town"] = table["town"]
    np.testing.assert_array_equal(fitted.predict(same), fitted.predict(series))


def test_one_category_at_most_stands_for_missing_entries():
    # With one text among its entries, NumPy makes "nan" of all missing numbers in a column.
    assert np.array([1.0, np.nan, "x"])[1] == "nan"
    for text in ("nan", "NaT", "<NA>"):
        Schema({"town": ["aa", text]}, ["no", text])
        with pytest.raises(ValueError, match="column 'town': values must not hold two texts"):
            Schema({"town": ["aa", text, "NA"]})
        with pytest.raises(ValueError, match="target: values must not hold two texts"):
            Schema({"town": ["aa", "ba"]}, ["NA", text])


# --- encoders that make sparse rows ----------------------------------------------------------------------------------


def one_hot(sparse_output):
    return OneHotEncoder(
        categories=[["aa", "ba", "7"], ["s", "m"]], handle_unknown="ignore", sparse_output=sparse_output
    )


@pytest.mark.parametrize(
    "model",
    [
        ObjPertLogReg(data_norm=2.0, classes=["no", "yes"]),
        DPNaiveBayes(bounds=(0, 1), classes=["no", "yes"], n_bins=2),
        DPRandomTree(bounds=(0, 1), classes=["no", "yes"], n_estimators=4),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("kind", ["one-hot", "table"])
def test_searches_take_encoders_that_make_sparse_rows(model, kind):
    table = pd.DataFrame(columns()).drop(columns="age")
    y = np.array(["yes" if town == "aa" else "no" for town in table["town"]])
    found = []
    for sparse_output in (False, True):
        encoder = one_hot(sparse_output)
        if kind == "table":
            encoder = TableEncoder(SCHEMA.select("town", "size"), sparse_output=sparse_output)
        pipeline = make_pipeline(encoder, model)
        name = f"{pipeline.steps[-1][0]}__epsilon"
        assert name in pipeline.get_params()
        given = {"epsilon": 20.0, "delta": 1e-5, "random_state": 1}
        search = DPGridSearchCV(pipeline, [{}], **given).fit(table, y)
        scores = private_cross_val_score(pipeline, table, y, cv=3, **given)
        found.append(np.append(search.predict_proba(table)[:, 1], scores))
        assert private_score(search, table, y, epsilon=50.0, random_state=0).value > 0.6
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


@pytest.mark.parametrize("encoder", [one_hot(True), TableEncoder(SCHEMA.select("town", "size"), sparse_output=True)])
def test_a_column_transformer_takes_dense_encoders_only(encoder):
    # It divides by the number of entries, and fails if there are no rows.
    model = ObjPertLogReg(data_norm=2.0, classes=["no", "yes"])
    inside = ColumnTransformer([("towns", make_pipeline(encoder), ["town", "size"])], sparse_threshold=0)
    table = pd.DataFrame(columns())
    budget = BudgetAccountant(100.0, 0.1)
    with pytest.raises(ValueError, match="sparse rows, which a ColumnTransformer refuses if empty"):
        DPGridSearchCV(make_pipeline(inside, model), [{}], accountant=budget).fit(table, labels(table))
    assert len(budget) == 0


@pytest.mark.parametrize("row", [("aa", "s"), ("x", None), (None, "7"), (1.5, "m")])
def test_a_record_moves_no_other_record_in_sparse_rows(row):
    from skdp.model_selection._stateless import WithoutRecords

    table = pd.DataFrame(columns(50)).drop(columns="age").astype(object)
    more = pd.concat([table, pd.DataFrame([row], columns=table.columns, dtype=object)], ignore_index=True)
    for encoder in (one_hot(True), TableEncoder(SCHEMA.select("town", "size"), sparse_output=True)):
        made = [WithoutRecords(encoder).fit(each).transform(each).tocsr() for each in (table, more)]
        assert (made[0] != made[1][:-1]).nnz == 0
        np.testing.assert_array_equal(made[0].indices, made[1][:-1].indices)

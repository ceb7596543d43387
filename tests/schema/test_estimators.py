"""Every estimator takes a table as it is: containers do not matter, and one record moves a release as far as stated."""

import pickle
import warnings
from functools import partial
from inspect import signature

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import LogisticRegression

import skdp
from skdp import (
    BudgetAccountant,
    Category,
    DPAdditiveClassifier,
    DPGreedyTree,
    DPGridSearchCV,
    DPNaiveBayes,
    DPRandomTree,
    DPRandomTreeRegressor,
    DPSGDRegressor,
    NoisyHistogram,
    Number,
    ObjPertLogReg,
    Schema,
    TableEncoder,
    allocate,
    private_cross_val_score,
    private_score,
)
from skdp.exceptions import BudgetError, SchemaMismatchWarning
from skdp.schema.declared import edges_of
from tests.estimators import ESTIMATORS, released
from tests.neighbours import IN_ALL_GROUPS, MOVED, inputs

N_ROWS = 60

COLUMNS = {
    "age": Number(17, 90, step=1),
    "gain": Number(0, 1000, scale="log"),
    "degree": Category(["school", "college", "university"], ordered=True),
    "work": Category(["private", "state", "7"]),
}
NUMBERS = {"age": Number(17, 90, missing="error"), "gain": Number(0, 1000, scale="log", missing="error")}
CATEGORIES = {name: COLUMNS[name] for name in ("degree", "work")}
LABELS = Category(["<=50K", ">50K"])
TARGETS = Number(0, 100)

# Counts of cells, and exact samples, are for few columns.
FEW = ("HistogramClassifier", "HistogramRegressor", "NoisyHistogram", "ExpMechERM", "ExpMechPCA")
ARGUMENTS = {
    "PATEClassifier": {"n_teachers": 4, "delta": 1e-5},
    "SampleAggregate": {"estimator": LogisticRegression(), "bounds": (-5, 5), "n_blocks": 4},
    "DPKMeans": {"n_clusters": 2},
    "SampleAggKMeans": {"n_clusters": 2, "n_blocks": 4},
    "DPMLPClassifier": {"delta": 1e-5, "hidden_layer_sizes": (3,), "n_steps": 2},
    "DPMLPRegressor": {"delta": 1e-5, "hidden_layer_sizes": (3,), "n_steps": 2},
    "DPPCA": {"n_components": 2},
    "ExpMechPCA": {"n_components": 1},
}
# Without a table; NormClipper has nothing that a schema could say.
WITHOUT = {"TableEncoder", "NormClipper", "DPGridSearchCV", "DPRandomizedSearchCV"}
PROTOTYPES = {type(estimator).__name__: estimator for estimator in ESTIMATORS}
KINDS = sorted(PROTOTYPES.keys() - WITHOUT)


def made(name, **further):
    """Return an estimator with a schema."""
    kind = getattr(skdp, name)
    form = kind._schema_form
    columns = NUMBERS if form == "values" else CATEGORIES if form == "categories" else COLUMNS
    if name in FEW:
        columns = {key: columns[key] for key in ("age",)}
        if name == "ExpMechPCA":
            columns = {"work": COLUMNS["work"], **columns}
    one = PROTOTYPES[name]
    labelled = is_classifier(one) or name in ("SampleAggregate", "ExpMechERM")
    target = LABELS if labelled else TARGETS if is_regressor(one) else None
    own = {**ARGUMENTS.get(name, {}), **further}
    if name == "PATEClassifier":
        own["public_X"] = Schema(columns).sample(30, seed=9)
    if name not in ("BoundsScaler", "PublicBinner"):
        own = {"epsilon": 3.0, "random_state": 3, **own}
    return kind(schema=Schema(columns, target), **own)


def table(model, n_rows=N_ROWS, seed=1):
    """Return made-up rows, and labels or targets, or None."""
    X = Schema(dict(model.schema)).sample(n_rows, seed=seed)
    rng = np.random.default_rng(seed)
    if isinstance(model.schema.target, Category):
        return X, np.array(LABELS.values)[rng.integers(0, 2, n_rows)]
    return X, None if model.schema.target is None else rng.uniform(0, 100, n_rows)


def objects(frame):
    array = np.empty(frame.shape, dtype=object)
    for j, name in enumerate(frame):
        array[:, j] = [None if entry is None or entry != entry else entry for entry in frame[name].tolist()]
    return array


def columns_of(frame):
    return dict(zip(frame, objects(frame).T.tolist(), strict=True))


def of_arrow(frame):
    return pytest.importorskip("pyarrow").table(columns_of(frame))


def as_categories(frame):
    """Return text as categories of which some are not declared, in another order."""
    text = [name for name in frame if name in CATEGORIES]
    return frame.assign(
        **{
            name: pd.Categorical(frame[name], categories=["church", *reversed(COLUMNS[name].values), "none"])
            for name in text
        }
    )


CONTAINERS = {
    "nullable": lambda frame: frame.convert_dtypes(),
    "objects in pandas": lambda frame: frame.astype(object),
    "categories": as_categories,
    "another order": lambda frame: frame[list(frame)[::-1]],
    "polars": lambda frame: pl.DataFrame(columns_of(frame), strict=False),
    "arrow": of_arrow,
    "arrow in pandas": lambda frame: of_arrow(frame).to_pandas(types_mapper=pd.ArrowDtype),
    "dict": columns_of,
    "objects": objects,
    "rows": lambda frame: objects(frame).tolist(),
}


def fitted(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaMismatchWarning)
        return clone(model).fit(X, y)


def said(model, X):
    """Return all that a model says of rows."""
    methods = [name for name in ("predict", "predict_proba", "transform", "decision_function") if hasattr(model, name)]
    if isinstance(model, skdp.DPTableGenerator):
        return [model.score_samples(X)]
    if not methods:
        return [model.counts_]
    return [np.asarray(getattr(model, name)(X)) for name in methods]


@pytest.mark.parametrize("name", KINDS)
def test_the_container_does_not_matter(name):
    model = made(name)
    X, y = table(model)
    expected = fitted(model, X, y)
    for container in CONTAINERS.values():
        other = fitted(model, container(X), y)
        if name in ("BoundsScaler", "PublicBinner") or other._local:
            assert other.n_features_in_ == len(model.schema)
        else:
            assert np.array_equal(released(expected), released(other))
        if not getattr(other, "_randomizes_rows", False):
            for one, another in zip(said(expected, X), said(expected, container(X)), strict=True):
                assert np.array_equal(one, another)


def with_target(model, X, y):
    """Return the model with a name for its target, and the table with the target."""
    schema = Schema(dict(model.schema), {"answer": model.schema.target})
    return clone(model).set_params(schema=schema), X.assign(answer=y)


@pytest.mark.parametrize("name", [name for name in KINDS if made(name).schema.target is not None])
def test_the_target_may_be_a_column_of_the_table(name):
    model = made(name)
    X, y = table(model)
    named, whole = with_target(model, X, y)
    if is_classifier(model) or is_regressor(model):
        assert np.array_equal(released(fitted(model, X, y)), released(fitted(named, whole, None)))
        with pytest.raises(ValueError, match="y"):
            fitted(named, X, None)


def test_the_target_may_be_a_column_of_a_table_of_searches_and_scores():
    model = made("DPAdditiveClassifier")
    X, y = table(model)
    named, whole = with_target(model, X, y)
    searches = [skdp.DPGridSearchCV(one, {"n_bins": [4, 8]}, epsilon=9.0, random_state=0) for one in (model, named)]
    chosen, again = fitted(searches[0], X, y), fitted(searches[1], whole, None)
    assert np.array_equal(released(chosen.best_estimator_), released(again.best_estimator_))
    judged = fitted(model, X, y)
    expected = skdp.private_score(judged, X, y, random_state=0).value
    assert skdp.private_score(fitted(named, whole, None), whole, random_state=0).value == expected
    for one, rows in ((judged, X), (LogisticRegression().fit([[0], [1]], [0, 1]), [[0.0]])):
        with pytest.raises(ValueError, match="requires y to be passed"):
            skdp.private_score(one, rows)


@pytest.mark.parametrize("name", KINDS)
def test_what_a_schema_leaves_behind(name):
    model = made(name)
    X, y = table(model)
    model = fitted(model, X, y)
    assert model.n_features_in_ == len(model.schema)
    assert model.feature_names_in_.tolist() == list(model.schema)
    assert model.get_params()["schema"] is model.schema
    again = pickle.loads(pickle.dumps(model))
    if not getattr(model, "_randomizes_rows", False):
        for one, another in zip(said(model, X), said(again, X), strict=True):
            assert np.array_equal(one, another)
    if hasattr(model, "privacy_plan"):
        assert model.privacy_plan() == model.privacy_ == made(name).privacy_plan()
        assert made(name)._fixed_cost() in (None, model.privacy_.cost)


@pytest.mark.parametrize("name", KINDS)
def test_a_table_with_other_columns_is_refused_before_a_charge(name):
    model = made(name)
    budget = BudgetAccountant(10.0, 1e-3)
    if hasattr(model, "accountant"):
        model.set_params(accountant=budget)
    X, y = table(model)
    with pytest.raises(ValueError, match="X has columns that the schema does not declare: 'further'"):
        model.fit(X.assign(further=1), y)
    first = next(iter(model.schema))
    with pytest.raises(ValueError, match=f"X lacks columns of the schema: {first!r}"):
        model.fit(X.rename(columns={first: "another"}), y)
    assert not budget.records
    assert not hasattr(model, "n_features_in_")


def neighbours(model):
    """Yield what may be added to a table: an ordinary row, missing entries, and entries beyond what is declared."""
    schema = model.schema
    X, y = table(model, n_rows=3, seed=7)
    ordinary = objects(X)
    yield ordinary[:1], y
    for entry in (None, "nonsense", -(10.0**300), 10.0**300, float("nan"), pd.NaT):
        if model._form() == "values" and not (isinstance(entry, float) and entry == entry):
            # This estimator has no cell for missing values.
            continue
        row = np.empty((1, len(schema)), dtype=object)
        row[:] = [[entry] * len(schema)]
        yield row, y


AUDITED = [
    name
    for name in KINDS
    if name not in ("BoundsScaler", "PublicBinner", "ObjPertLogReg", "DPAdditiveClassifier")
    and not getattr(skdp, name)._local
]


@pytest.mark.usefixtures("notes_of_modules_are_left")
@pytest.mark.parametrize("name", AUDITED)
def test_no_release_moves_by_more_than_it_says(name):
    # As for arrays of numbers in tests/test_neighbours.py; here one record brings text, missing and odd entries.
    model = made(name)
    frame, y = table(model)
    X = objects(frame)
    data = (X, y) if y is not None else (X,)
    most = {}
    without = inputs(model, data, N_ROWS + 1)
    for row, label in neighbours(model):
        more = (np.concatenate([X, row]), *([] if y is None else [np.concatenate([y, label[:1]])]))
        with_it = inputs(model, more, N_ROWS + 1, without)
        assert without.keys() == with_it.keys()
        for label_of, release in without.items():
            mechanism, difference = release.mechanism, with_it[label_of].value - release.value
            if mechanism.norm == "score" and name not in IN_ALL_GROUPS:
                assert (difference != 0).any(axis=1).sum() <= 1
            moved = MOVED[mechanism.norm]
            if not getattr(mechanism, "monotone", True):
                moved = partial(moved, monotone=False)
            most[label_of] = max(most.get(label_of, 0.0), moved(difference) / mechanism.sensitivity)
    assert max(most.values()) <= 1 + 1e-9, most
    assert max(most.values()) > (0.01 if name in IN_ALL_GROUPS else 0.1), most


def test_a_linear_model_gets_what_the_encoder_makes():
    # With a schema, a part of a finite epsilon is for entries outside of it.
    model = made("ObjPertLogReg", epsilon=np.inf)
    X, y = table(model)
    encoder = TableEncoder(model.schema)
    direct = clone(model).set_params(schema=None, **encoder.parameters(ObjPertLogReg))
    direct.fit(encoder.fit_transform(X), y)
    assert np.array_equal(direct.coef_, clone(model).fit(X, y).coef_)


def test_a_tree_gets_codes():
    model = made("DPRandomTree", epsilon=np.inf)
    complete = {**COLUMNS, "age": Number(17, 90, missing="error"), "gain": NUMBERS["gain"]}
    model.set_params(schema=Schema(complete, LABELS))
    X, y = table(model)
    encoder = TableEncoder(model.schema, "codes")
    direct = DPRandomTree(epsilon=np.inf, random_state=3, **encoder.parameters(DPRandomTree))
    direct.fit(encoder.fit_transform(X), y)
    assert np.array_equal(released(direct), released(clone(model).fit(X, y)))


def test_missing_numbers_have_a_cell_of_their_own():
    schema = Schema({"age": (0, 10)}, target=["no", "yes"])
    ages = [5, 10, None] * 1500
    labels = ["no", "no", "yes"] * 1500
    model = DPAdditiveClassifier(schema=schema, epsilon=50.0, delta=1e-6, random_state=0).fit({"age": ages}, labels)
    assert model.cell_names_[0][-1] == "missing"
    assert model.predict({"age": [5, 10, None, float("nan"), "unknown"]}).tolist() == ["no", "no", "yes", "yes", "yes"]
    bayes = DPNaiveBayes(schema=schema, numeric="binned", epsilon=50.0, random_state=0).fit({"age": ages}, labels)
    assert bayes.predict({"age": [5, 10, None]}).tolist() == ["no", "no", "yes"]


def test_trees_tell_missing_numbers_from_others():
    schema = Schema({"age": (0, 10)}, target=["no", "yes"])
    ages, labels = [0, 10, None] * 1000, ["no", "no", "yes"] * 1000
    for model in (DPRandomTree(n_estimators=100), DPGreedyTree(n_thresholds=20)):
        model.set_params(schema=schema, epsilon=50.0, random_state=0).fit({"age": ages}, labels)
        assert model.predict({"age": [0, 10, 99, None, "old"]}).tolist() == ["no", "no", "no", "yes", "yes"]


def test_bins_of_numbers_are_even_on_their_scale_and_can_be_given():
    schema = Schema({"gain": Number(1, 256, scale="log", missing="error")}, target=["no", "yes"])
    rows, labels = {"gain": [1, 256] * 10}, ["no", "yes"] * 10
    model = DPAdditiveClassifier(schema=schema, n_bins=8, epsilon=50.0, random_state=0)
    for delta in (1e-6, 0.0):
        # There are eight cells for each bin.
        model.set_params(delta=delta).fit(rows, labels)
        np.testing.assert_allclose(model.bin_edges_[0], 2.0 ** (np.arange(65) / 8))
    model.set_params(bin_edges={"gain": [1, 100, 200]}).fit(rows, labels)
    assert model.bin_edges_[0].tolist() == [1, 100, 200]
    with pytest.raises(ValueError, match="bin_edges names 'loss'"):
        model.set_params(bin_edges={"loss": [1, 2]}).fit(rows, labels)


def test_what_is_given_counts_and_what_contradicts_is_refused():
    model = made("ObjPertLogReg", data_norm=0.5, classes=["<=50K", ">50K", "?"])
    assert model._declared("data_norm") == 0.5
    assert model._declared("classes") == ["<=50K", ">50K", "?"]
    X, y = table(model)
    with pytest.raises(ValueError, match="categorical_features follows from the schema"):
        made("DPRandomTree", categorical_features=[0]).fit(X, y)
    with pytest.raises(TypeError, match=r"schema must be a skdp\.Schema, got 'census.toml'"):
        ObjPertLogReg(schema="census.toml").fit(X, y)
    with pytest.raises(
        ValueError, match="declares the column 'age' as a Number, and this estimator takes a Category only"
    ):
        skdp.RandomizedResponse(schema=model.schema).fit(X)
    with pytest.raises(ValueError, match=r"has no cell for missing values\. Declare the column 'age'"):
        skdp.DPStandardScaler(schema=model.schema.select("age")).fit(X[["age"]])


def grouped():
    schema = Schema(COLUMNS, {"income": LABELS}, group="person", rows_per_group=2)
    X = schema.sample(80, seed=2)
    return schema, X.drop(columns="income"), X["income"]


def test_groups_follow_from_the_schema():
    schema, X, y = grouped()
    model = DPNaiveBayes(schema=schema, random_state=0).fit(X, y)
    direct = DPNaiveBayes(schema=Schema(COLUMNS, LABELS), rows_per_group=2, random_state=0)
    direct.fit(X.drop(columns="person"), y, groups=X["person"])
    assert model.privacy_.unit == "group"
    assert np.array_equal(released(model), released(direct))
    with pytest.raises(ValueError, match="X lacks the column 'person' of groups that the schema declares"):
        DPNaiveBayes(schema=schema).fit(X.drop(columns="person"), y)
    with pytest.raises(ValueError, match="ObjPertLogReg has no parameter rows_per_group"):
        ObjPertLogReg(schema=schema).fit(X, y)


def test_searches_and_scores_take_the_schema():
    schema, X, y = grouped()
    search = DPGridSearchCV(DPNaiveBayes(), {"alpha": [0.5, 1.0]}, schema=schema, epsilon=4.0, random_state=0).fit(X, y)
    assert search.privacy_.unit == "group"
    assert search.best_estimator_.schema == schema
    inner = DPGridSearchCV(DPNaiveBayes(schema=schema), {"alpha": [0.5, 1.0]}, epsilon=4.0, random_state=0).fit(X, y)
    assert inner.best_params_ == search.best_params_
    assert np.array_equal(released(inner.best_estimator_), released(search.best_estimator_))
    assert search.predict(X.drop(columns="person")).shape == (80,)
    assert private_score(search, X, y, epsilon=1.0, random_state=0).privacy_.unit == "group"
    scores = private_cross_val_score(DPNaiveBayes(), X, y, schema=schema, cv=2, epsilon=4.0, random_state=0)
    assert scores.shape == (2,)
    with pytest.raises(ValueError, match="schema is not the same as that of DPNaiveBayes"):
        DPGridSearchCV(DPNaiveBayes(schema=schema.select("age")), {"alpha": [0.5]}, schema=schema).fit(X, y)
    with pytest.raises(ValueError, match="LogisticRegression, which reads the table first, has no such parameter"):
        DPGridSearchCV(LogisticRegression(), {"C": [0.5]}, schema=schema).fit(X, y)


def test_the_range_of_targets_follows_for_scores():
    model = made("DPSGDRegressor")
    X, y = table(model)
    search = DPGridSearchCV(
        DPSGDRegressor(),
        {"n_steps": [5, 10]},
        schema=model.schema,
        scoring="neg_mean_squared_error",
        epsilon=4.0,
        delta=1e-5,
        random_state=0,
    ).fit(X, y)
    assert private_score(search, X, y, metric="neg_mean_absolute_error", epsilon=1.0, random_state=0).value < 0


def test_a_search_refuses_entries_that_the_schema_refuses_before_a_charge():
    schema = Schema({"age": Number(0, 1, missing="error"), "size": (0, 1)}, target=["no", "yes"])
    frame, labels = pd.DataFrame({"age": [0.5] * 39 + [np.nan], "size": 0.5}), ["no", "yes"] * 20
    budget = BudgetAccountant(5.0, 1e-5)
    for model in (DPNaiveBayes(schema=schema), ObjPertLogReg(schema=schema)):
        with pytest.raises(ValueError, match="does not accept") as caught:
            DPGridSearchCV(model, {}, epsilon=4.0, delta=1e-6, accountant=budget).fit(frame, labels)
        assert "39" not in str(caught.value)
    assert not budget.records


def test_allocate_prices_a_schema_without_data():
    model = made("ObjPertLogReg", delta=1e-6, random_state=None)
    budget = BudgetAccountant(2.0, 1e-6)
    allocate(model, epsilon=1.0, delta=1e-6, accountant=budget)
    X, y = table(model)
    model.fit(X, y)
    with pytest.raises(BudgetError, match="This fit is admitted with epsilon="):
        model.set_params(epsilon=5.0).fit(X, y)
    assert budget.remaining(2, like=model).epsilon > 0


def test_codes_of_a_histogram():
    model = made("NoisyHistogram")
    X, _ = table(model)
    model = NoisyHistogram(schema=Schema({"work": COLUMNS["work"]}), epsilon=5.0, random_state=0).fit(table_of_work(X))
    assert set(np.unique(model.sample(200, 0)[0])) <= {0.0, 1.0, 2.0, 3.0, 4.0}


def table_of_work(X):
    return pd.DataFrame({"work": ["private", "church", None, "7"] * (len(X) // 4)})


# ---------------------------------------------------------------- targets


@pytest.mark.parametrize("name", [name for name in KINDS if name != "LocalDPNaiveBayes"])
def test_the_target_of_the_schema_decides_before_a_charge(name):
    model = made(name)
    classifies = is_classifier(model) or name == "ExpMechERM"
    if not (classifies or is_regressor(model)):
        pytest.skip("it has no target")
    X, y = table(model)
    accountant = BudgetAccountant(1e9, 0.9)
    other = Number(0, 100) if classifies else Category(["a", "b"])
    for target, message in (
        (other, f"target as a {type(other).__name__}, and {name} is a .*DPAdditive(Classifier|Regressor)"),
        (None, "the schema declares no target, and labels are never" if classifies else "bounds_y must be given"),
    ):
        schema = Schema(dict(model.schema), target)
        with pytest.raises(ValueError, match=message):
            clone(model).set_params(schema=schema, accountant=accountant).fit(X, y)
    assert accountant.remaining().epsilon == 1e9
    given = {"classes": list(LABELS.values)} if classifies else {"bounds_y": (0, 100)}
    if given.keys() <= model.get_params().keys():
        clone(model).set_params(schema=Schema(dict(model.schema)), **given).fit(X, y)


@pytest.mark.parametrize("name", ["DPAdditiveRegressor", "DPRandomTreeRegressor", "FunctionalMechLinReg"])
def test_labels_of_a_regressor_are_refused_as_the_schema_declares_them(name):
    model = made(name)
    X, y = table(model)
    model.set_params(schema=Schema(dict(model.schema), target=Category(["no", "yes"])))
    with pytest.raises(ValueError, match="is a regressor: use another estimator, such as DPAdditiveClassifier"):
        model.fit(X, np.where(np.asarray(y) > 0, "no", "yes"))


@pytest.mark.parametrize("name", [name for name in KINDS if "bounds_y" in signature(getattr(skdp, name)).parameters])
def test_the_scale_of_a_target_is_refused_and_not_ignored(name):
    model = made(name, **({"loss": "absolute_error"} if name == "ExpMechERM" else {}))
    X = table(model)[0]
    accountant = BudgetAccountant(1e9, 0.9)
    model.set_params(schema=Schema(dict(model.schema), {"price": Number(1, 100, scale="log")}), accountant=accountant)
    with pytest.raises(ValueError, match="declares the target 'price' with scale=\"log\", which " + name):
        model.fit(X, np.linspace(1, 100, N_ROWS))
    assert accountant.remaining().epsilon == 1e9


def test_searches_and_scores_follow_the_target_of_the_schema():
    X = Schema(COLUMNS).sample(200)
    labels, numbers = np.repeat(["<=50K", ">50K"], 100), np.linspace(0, 100, 200)
    without, with_labels, with_numbers = (Schema(COLUMNS, target) for target in (None, LABELS, TARGETS))
    accountant = BudgetAccountant(1e9, 0.9)
    classifier, regressor = DPNaiveBayes(epsilon=1.0), DPRandomTreeRegressor(epsilon=1.0)
    for schema, model, y, message in (
        (with_numbers, classifier, numbers, "DPNaiveBayes is a classifier"),
        (without, classifier, labels, "the schema declares no target"),
        (with_labels, regressor, labels, "DPRandomTreeRegressor is a regressor"),
        (without, regressor, numbers, "bounds_y must be given"),
    ):
        scoring = "accuracy" if model is classifier else "neg_mean_squared_error"
        search = DPGridSearchCV(model, {"max_depth": [1]} if model is regressor else {"n_bins": [4]}, scoring=scoring)
        search.set_params(epsilon=5.0, delta=1e-5, accountant=accountant, schema=schema)
        with pytest.raises(ValueError, match=message):
            search.fit(X, y)
        with pytest.raises(ValueError, match=message):
            private_cross_val_score(model, X, y, schema=schema, epsilon=5.0, scoring=scoring, accountant=accountant)
    for schema, fitted_by, model, y in (
        (with_numbers, with_labels, classifier, labels),
        (with_labels, with_numbers, regressor, numbers),
    ):
        fitted = clone(model).set_params(schema=fitted_by, random_state=0).fit(X, y)
        with pytest.raises(ValueError, match=f"{type(model).__name__} is a"):
            private_score(fitted, X, y, schema=schema, epsilon=5.0, accountant=accountant)
    assert accountant.remaining().epsilon == 1e9


def test_searches_and_scores_read_labels_as_estimators_do():
    """One record can turn a column of numbers into text."""
    schema = Schema({"age": (0, 1)}, target=Category([0, 1]))
    X, y = np.linspace(0, 1, 400)[:, None], np.arange(400) // 200
    search = DPGridSearchCV(DPNaiveBayes(schema=schema), {"n_bins": [2, 4]}, epsilon=8.0, delta=1e-5, random_state=0)
    found = [
        (
            clone(search).fit(X, labels).predict(X).tolist(),
            float(
                private_score(
                    DPNaiveBayes(schema=schema, epsilon=5.0, random_state=0).fit(X, labels),
                    X,
                    labels,
                    epsilon=5.0,
                    random_state=0,
                )
            ),
            private_cross_val_score(DPNaiveBayes(schema=schema), X, labels, epsilon=5.0, cv=2, random_state=0).tolist(),
        )
        for labels in (y, y.astype(str), y.astype(str).astype(object), y.astype(float).tolist())
    ]
    assert all(each == found[0] for each in found)
    assert found[0][1] > 0.9


# ---------------------------------------------------------------- numbers of cells


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        (Number(0, 5, step=1), 6),
        (Number(0, 0.3, step=0.1), 4),
        (Number(1, 10.9, step=1), 10),
        (Number(0, 5, step=1, scale="log"), 6),
        (Number(-3, 3, step=0.5, missing="error"), 13),
        (Number(0, 31, step=1), 32),
        (Number(0, 40, step=1), 32),
        (Number(0, 40, step=1, scale="log"), 20),
        (Number(0, 1, step=2), 32),
        (Number(0, 5), 32),
        (Number(0, 1e12, step=1e-3), 32),
    ],
    ids=repr,
)
def test_bins_never_exceed_the_possible_values(column, cells):
    edges = edges_of(column, 32)
    assert len(edges) == cells + 1
    assert (edges[0], edges[-1]) == (column.low, column.high)
    if column.step in (2, 1e-3, None):
        return
    values = column.low + np.arange(int((column.high - column.low) / column.step + 1.001)) * column.step
    found = np.searchsorted(edges[1:-1], values, side="right")
    assert set(found) == set(range(cells))
    if len(values) > 32 and column.scale == "linear":
        # They hold the values that even bins hold.
        even = np.linspace(column.low, column.high, 33)[1:-1]
        assert np.array_equal(found, np.searchsorted(even, values, side="right"))


@pytest.mark.parametrize("name", ["DPAdditiveClassifier", "DPAdditiveRegressor", "DPNaiveBayes", "LocalDPNaiveBayes"])
@pytest.mark.parametrize("n", [2, 6, 31, 33, 41, 64, 100])
def test_cells_never_exceed_the_possible_values(name, n):
    columns = {"a": Number(0, n - 1, step=1), "b": Category(["low", "middle", "high"], ordered=True)}
    target = TARGETS if name == "DPAdditiveRegressor" else LABELS
    model = getattr(skdp, name)(schema=Schema(columns, target), epsilon=5.0, random_state=0, n_bins=32)
    if name != "LocalDPNaiveBayes":
        model.set_params(delta=1e-5)
    X, y = table(model, n_rows=300)
    assert len(model.fit(X, y).bin_edges_[0]) - 2 <= n
    if name.startswith("DPAdditive"):
        model.set_params(interactions=[["a", "b"]]).fit(X, y)
        assert len(model.bin_edges_[0]) - 2 <= n
        assert len(model.bin_edges_[1]) - 3 <= 3


def test_the_names_of_cells_are_distinct():
    schema = Schema({"a": ["other", "not in list"], "b": ["missing", "x"], "c": Category(["NA", "x"], other="missing")})
    encoder = TableEncoder(schema)
    rows = [("other", "missing", "NA"), ("z", None, "z"), (None, "z", None)]
    found = encoder.set_output(transform="pandas").fit_transform(rows)
    assert list(found.columns) == [
        *("a_other", "a_not in list", "a_not in list_", "a_missing"),
        *("b_missing", "b_x", "b_not in list", "c_NA", "c_x"),
    ]
    assert [found.columns[row == 1].tolist() for row in found.to_numpy()] == [
        ["a_other", "b_missing", "c_NA"],
        ["a_not in list_", "b_missing", "c_NA"],
        ["a_missing", "b_not in list", "c_NA"],
    ]
    assert skdp.stats.value_counts(
        {"b": ["missing", None, "x"] * 100}, schema=Schema({"b": ["missing", "x"]})
    ).names == (*("missing", "x", "not in list"),)
    share = skdp.stats.proportion(
        {"b": [None, "x", "x", "z"] * 100}, "missing", columns="b", schema=Schema({"b": ["missing", "x"]}), epsilon=1e6
    )
    assert abs(share.value - 0.25) < 0.01

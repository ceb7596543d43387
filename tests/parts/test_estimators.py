"""Fits to collections of Dask are those to rows in memory, and other estimators say that they are not."""

from inspect import signature

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

import skdp
from skdp import BudgetAccountant, Category, DPNaiveBayes, DPStandardScaler, Number, Schema
from skdp.exceptions import BudgetError
from skdp.release.mixin import DPEstimatorMixin
from skdp.solvers import certified
from tests.collections_of_parts import (
    BLOCKS,
    BY_ROW,
    CERTIFIED,
    FEW_PASSES,
    FITTED,
    IN_PARTS,
    KINDS,
    LENGTHS,
    MANY_PASSES,
    REFUSED,
    TOLERANCE,
    dask_arrays,
    frames,
    rows_of,
)
from tests.estimators import ESTIMATORS, LOCAL, ONE_EACH, data_for, declared, is_search, name_of, needs_y, released

dask = pytest.importorskip("dask", reason="Dask is not installed")


@pytest.fixture(autouse=True)
def threads():
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


def assert_same(model, other, tolerance=TOLERANCE):
    """The attributes that come from releases have the same bits, or are equal within the certificate."""
    for name in model._released & vars(model).keys():
        a, b = (np.asarray(_flat(getattr(one, name))) for one in (model, other))
        # Sums of gradients and of residuals are exact.
        if type(model).__name__ in CERTIFIED and not (isinstance(model, skdp.DPAdditiveClassifier) and model.delta > 0):
            np.testing.assert_allclose(a, b, rtol=0, atol=tolerance, err_msg=name)
        else:
            assert a.tobytes() == b.tobytes(), name
    assert repr(model.privacy_) == repr(other.privacy_)


def _flat(value):
    """All numbers of an attribute, in their order."""
    if isinstance(value, BaseEstimator):
        value = sorted(vars(value).items())
    if hasattr(value, "__dataclass_fields__"):
        value = sorted((name, getattr(value, name)) for name in value.__dataclass_fields__)
    if isinstance(value, list | tuple):
        return np.concatenate([np.zeros(0), *(_flat(one) for one in value)])
    array = np.asarray(value)
    return array.ravel().astype(float) if array.dtype.kind in "biuf" else np.zeros(0)


def test_every_estimator_of_the_library_is_in_one_class():
    public = {name for name in skdp.__all__ if isinstance(getattr(skdp, name), type)}
    private = {name for name in public if issubclass(getattr(skdp, name), DPEstimatorMixin)}
    listed = [FEW_PASSES, MANY_PASSES, CERTIFIED, BLOCKS, REFUSED, BY_ROW]
    every = private | {type(estimator).__name__ for estimator in ESTIMATORS}
    assert set().union(*listed) >= every
    assert sum(map(len, listed)) == len(set().union(*listed))
    # The attribute says the same.
    marked = {type(estimator).__name__ for estimator in ESTIMATORS if getattr(estimator, "_takes_parts", False)}
    assert marked == FITTED


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("estimator", IN_PARTS, ids=name_of)
def test_fit_is_that_of_rows_in_memory(estimator, kind):
    arrays = rows_of(estimator)
    model = clone(estimator).fit(*arrays)
    assert_same(model, clone(estimator).fit(*KINDS[kind](*arrays)))


#: Of those with categories, hardly a record has one.
WITHOUT_CATEGORIES = [one for one in IN_PARTS if getattr(one, "categorical_features", None) is None]


@pytest.mark.parametrize("estimator", WITHOUT_CATEGORIES[::3], ids=name_of)
def test_a_fit_to_one_row_less_differs(estimator):
    # Some records, beyond a margin or in no cell, change nothing.
    arrays = rows_of(estimator)
    model = clone(estimator).fit(*arrays)
    for row in range(8):
        fewer = [np.delete(a, row, axis=0) for a in arrays]
        other = clone(estimator).fit(*frames(*fewer, lengths=(136, 263)))
        if not np.array_equal(released(model), released(other)):
            return
    pytest.fail("eight records change nothing")


@pytest.mark.parametrize("estimator", IN_PARTS[::4], ids=name_of)
def test_noise_at_a_small_budget_is_the_same(estimator):
    estimator = clone(estimator).set_params(epsilon=1.0)
    arrays = rows_of(estimator)
    assert_same(clone(estimator).fit(*arrays), clone(estimator).fit(*frames(*arrays)))


@pytest.mark.parametrize(
    "estimator",
    [one for one in ONE_EACH if type(one).__name__ in REFUSED | BY_ROW],
    ids=lambda one: type(one).__name__,
)
def test_other_estimators_refuse_collections_before_a_charge(estimator):
    arrays = data_for(estimator)
    collections = frames(*arrays)
    arguments = collections if needs_y(estimator) else collections[:1]
    accountant = BudgetAccountant(epsilon=1e7, delta=0.5)
    model = declared(estimator)
    if "accountant" in model.get_params():
        model.set_params(accountant=accountant)
    with pytest.raises(TypeError, match="Dask"):
        model.fit(*arguments)
    assert not accountant.records
    with pytest.raises(Exception, match=r"not fitted|is not"):
        check_is_fitted(model, "privacy_")


def test_the_table_of_refusals_names_estimators_that_there_are():
    assert {type(one).__name__ for one in ONE_EACH} | {"DPRandomizedSearchCV"} >= REFUSED
    assert any(is_search(one) for one in ONE_EACH)
    assert {type(one).__name__ for one in LOCAL} <= BY_ROW


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba"])
def test_prediction_says_how_it_is_applied_to_partitions(method):
    model = DPNaiveBayes(bounds=(-3, 3), classes=[0, 1], random_state=0)
    X, y = data_for(model)
    Z, z = frames(X, y, lengths=(1, 399))
    model.fit(Z, z)
    with pytest.raises(TypeError, match=rf"table.map_partitions\(model\.{method}, meta=\.\.\.\)"):
        getattr(model, method)(Z)
    if method == "predict":
        found = Z.map_partitions(model.predict, meta=("y", "i8")).compute()
        assert np.array_equal(found, model.predict(Z.compute()))


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_methods_of_some_settings_say_it_as_well(method):
    model = skdp.HistogramClassifier(bounds=(-3, 3), classes=[0, 1], n_bins=2, random_state=0)
    X, y = data_for(model)
    model.fit(X, y)
    (Z,) = frames(X)
    with pytest.raises(TypeError, match=rf"table.map_partitions\(model\.{method}, meta=\.\.\.\)"):
        getattr(model, method)(Z)


def test_transformers_say_it_as_well():
    (X,) = frames(data_for(DPStandardScaler())[0])
    model = DPStandardScaler(bounds=(-3, 3)).fit(X)
    with pytest.raises(TypeError, match=r"map_partitions\(model\.transform"):
        model.transform(X)


@pytest.mark.parametrize("model", [DPStandardScaler(bounds=(-3, 3)), skdp.DPPCA(2, data_norm=3.0)])
def test_fit_transform_is_refused_before_the_charge(model):
    accountant = BudgetAccountant(epsilon=2.0)
    (X,) = frames(data_for(model)[0])
    with pytest.raises(TypeError, match="Nothing was charged"):
        clone(model).set_params(accountant=accountant).fit_transform(X)
    assert not accountant.records
    clone(model).set_params(accountant=accountant).fit(X)
    assert accountant.records


def weighted_data(kind, estimator, lengths=LENGTHS):
    """Rows, labels, groups and weights, in memory and as collections of one table."""
    X, y = data_for(DPNaiveBayes())
    rng = np.random.default_rng(1)
    arrays = X, y, rng.integers(90, size=len(X)), 2 * rng.random(len(X))
    collections = KINDS[kind](*arrays, lengths=lengths)
    collections = [one if one.ndim == 1 or i == 0 else one[one.columns[0]] for i, one in enumerate(collections)]
    return tuple(given(estimator, *some) for some in (arrays, collections))


def given(estimator, X, y, groups, weights):
    """The arguments of a fit that uses groups or weights if the estimator says so."""
    arguments = {"X": X, "y": y}
    if getattr(estimator, "rows_per_group", None) is not None:
        arguments["groups"] = groups
    if estimator.max_weight is not None:
        arguments["sample_weight"] = weights
    return arguments


FIXED = {"classes": [0, 1], "random_state": 0}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "estimator",
    [
        DPNaiveBayes(bounds=(-3, 3), rows_per_group=2, **FIXED),
        DPNaiveBayes(bounds=(-3, 3), rows_per_group=2, max_weight=1.5, **FIXED),
        skdp.DPSGDClassifier(delta=1e-6, data_norm=3.0, n_steps=10, max_weight=2.0, class_weight={0: 0.4}, **FIXED),
        skdp.DPSGDClassifier(delta=1e-6, data_norm=3.0, n_steps=10, batch_size=0.5, max_weight=2.0, **FIXED),
        skdp.DPRandomTree(bounds=(-3, 3), class_weight={1: 0.5}, **FIXED),
        skdp.ObjPertLogReg(delta=1e-6, data_norm=3.0, class_weight="balanced", **FIXED),
        skdp.DPAdditiveClassifier(delta=1e-6, bounds=(-3, 3), class_weight="balanced", **FIXED),
    ],
    ids=lambda one: type(one).__name__,
)
def test_groups_and_weights_of_partitions_are_those_in_memory(estimator, kind):
    memory, parts = weighted_data(kind, estimator)
    model = clone(estimator).fit(**memory)
    other = clone(estimator).fit(**parts)
    assert_same(model, other)
    plain = clone(estimator).set_params(class_weight=None)
    if hasattr(plain, "rows_per_group"):
        plain.set_params(rows_per_group=None)
    plain.fit(memory["X"], memory["y"])
    assert not np.allclose(released(plain), released(other), rtol=1e-3), "groups and weights change the fit"


def test_groups_and_weights_are_read_after_the_charge_only():
    read = []
    model = DPNaiveBayes(bounds=(-3, 3), rows_per_group=2, max_weight=1.5, **FIXED)
    _, parts = weighted_data("DataFrame", model)
    counted = {name: one.map_partitions(_noted, read, meta=one._meta) for name, one in parts.items()}
    with pytest.raises(BudgetError):
        clone(model).set_params(accountant=BudgetAccountant(epsilon=0.1, unit="group")).fit(**counted)
    assert not read
    model.fit(**counted)
    assert read


@pytest.mark.parametrize(
    ("name", "value"), [("groups", np.nan), ("groups", 1e300), ("sample_weight", -1.0), ("sample_weight", np.nan)]
)
def test_groups_and_weights_that_cannot_be_used_are_refused_before_the_charge(name, value):
    accountant = BudgetAccountant(epsilon=2.0, unit="group")
    model = DPNaiveBayes(bounds=(-3, 3), rows_per_group=2, max_weight=1.5, accountant=accountant, **FIXED)
    X, y = data_for(DPNaiveBayes())
    columns = {"groups": np.arange(400.0), "sample_weight": np.ones(400)}
    columns[name][300] = value
    Z, z, groups, weights = frames(X, y, *columns.values())
    with pytest.raises(ValueError, match="The budget was not charged"):
        model.fit(Z, z["y0"], groups=groups["y1"], sample_weight=weights["y2"])
    assert not accountant.records


def test_the_schema_names_the_groups_of_a_collection():
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    n = 300
    table = pd.DataFrame({"age": np.arange(n) % 70 + 18.0, "person": [f"p{i % 50}" for i in range(n)]})
    table["sick"] = np.arange(n) % 2
    schema = Schema({"age": Number(18, 90)}, target=Category([0, 1]), group="person", rows_per_group=2)
    model = DPNaiveBayes(schema=schema, random_state=0)
    collection = dd.from_pandas(table, npartitions=4, sort=False)
    fitted = clone(model).fit(collection[["age", "person"]], collection["sick"])
    assert_same(clone(model).fit(table[["age", "person"]], table["sick"]), fitted)
    assert fitted.privacy_.limit == "of which at most 2 count"


@pytest.mark.parametrize("model", [skdp.DPAdditiveClassifier, skdp.DPAdditiveRegressor])
def test_pairs_are_chosen_as_in_memory(model):
    rng = np.random.default_rng(0)
    X = rng.random((6000, 3))
    t = np.where((X[:, 0] > 0.5) == (X[:, 1] > 0.5), 0.9, 0.1)
    y = (t > rng.random(6000)).astype(int) if model is skdp.DPAdditiveClassifier else t
    fixed = {"classes": [0, 1]} if model is skdp.DPAdditiveClassifier else {"bounds_y": (0, 1)}
    model = model(epsilon=8.0, delta=1e-6, bounds=(0, 1), interactions="auto", n_bins=8, random_state=0, **fixed)
    fitted = clone(model).fit(X, y)
    other = clone(model).fit(*dask_arrays(X, y, lengths=(1, 0, 2000, 3999)))
    assert (0, 1) in fitted.term_columns_
    assert fitted.term_columns_ == other.term_columns_
    assert_same(fitted, other)


@pytest.mark.parametrize(
    "model",
    [
        skdp.ObjPertLogReg(delta=1e-6, data_norm=3.0, classes=[0, 1, 2]),
        skdp.ObjPertLogReg(delta=1e-6, data_norm=3.0, classes=[0, 1, 2], loss="huber"),
        skdp.DPAdditiveClassifier(bounds=(-3, 3), n_bins=8, classes=[0, 1]),
    ],
    ids=lambda one: f"{type(one).__name__}-{getattr(one, 'loss', '')}",
)
def test_minimisers_start_from_a_part_of_a_part_of_many_rows(monkeypatch, model):
    # 9,000 rows are as many as half a million with the ratio of 16.
    monkeypatch.setattr(certified, "_COARSE_RATIO", 2)
    monkeypatch.setattr(certified, "_precise_search", _refused)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9_000, 3))
    y = np.where(rng.random(9_000) < 0.2, 2, X[:, 0] > 0)
    model = clone(model).set_params(random_state=0)
    # The residual of curves is certified to 1e-5 of the sensitivity.
    tolerance = 1e-7 if isinstance(model, skdp.DPAdditiveClassifier) else TOLERANCE
    assert_same(clone(model).fit(X, y), clone(model).fit(*dask_arrays(X, y, lengths=(1, 8_000, 999))), tolerance)


def _refused(*arguments):
    raise AssertionError("doubles suffice")


def test_classes_have_to_be_declared():
    model = DPNaiveBayes(bounds=(-3, 3))
    with pytest.raises(ValueError, match="needs declared classes"):
        model.fit(*frames(*data_for(model)))


def test_rows_and_labels_have_to_be_of_one_kind():
    model = DPNaiveBayes(bounds=(-3, 3), classes=[0, 1])
    X, y = data_for(model)
    Z, z = frames(X, y)
    for arguments in ((Z, y), (X, z)):
        with pytest.raises(TypeError, match="all be Dask collections"):
            model.fit(*arguments)


def test_no_partition_is_read_without_budget():
    read = []
    for estimator in IN_PARTS[::3]:
        arrays = frames(*rows_of(estimator))
        counted = [one.map_partitions(_noted, read, meta=one._meta) for one in arrays]
        model = clone(estimator).set_params(accountant=BudgetAccountant(epsilon=1e-3, delta=1e-9), epsilon=1.0)
        with pytest.raises(BudgetError):
            model.fit(*counted)
    assert not read
    clone(IN_PARTS[0]).fit(*[one.map_partitions(_noted, read, meta=one._meta) for one in frames(*rows_of(IN_PARTS[0]))])
    assert read


def _noted(part, read):
    read.append(len(part))
    return part


def test_a_table_with_text_is_read_by_its_schema():
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    n = 300
    table = pd.DataFrame(
        {
            "age": np.arange(n) % 70 + 18.0,
            "sex": np.where(np.arange(n) % 3, "f", "m"),
            "sick": np.where(np.arange(n) % 4, "no", "yes"),
        }
    )
    schema = Schema(
        {"age": Number(18, 90, missing="cell"), "sex": Category(["f", "m"])}, target=Category(["no", "yes"])
    )
    table.loc[::7, "age"] = np.nan
    model = DPNaiveBayes(schema=schema, random_state=0)
    collection = dd.from_pandas(table, npartitions=4, sort=False)
    fitted = clone(model).fit(collection[["age", "sex"]], collection["sick"])
    assert_same(clone(model).fit(table[["age", "sex"]], table["sick"]), fitted)
    assert fitted.feature_names_in_.tolist() == ["age", "sex"]


def test_columns_that_lack_are_refused_at_the_client():
    schema = Schema({"age": Number(18, 90)}, target=Category([0, 1]))
    X, y = frames(*data_for(DPNaiveBayes()))
    with pytest.raises(ValueError, match="age"):
        DPNaiveBayes(schema=schema).fit(X.map_partitions(_failing, meta=X._meta), y)


def _failing(part):
    raise AssertionError("nothing is read")


@pytest.mark.parametrize("kind", KINDS)
def test_a_collection_without_the_column_of_groups_is_refused(kind):
    schema = Schema({"x0": Number(-3, 3)}, target=Category([0, 1]), group="person", rows_per_group=2)
    X, y = data_for(DPNaiveBayes())
    Z, z = KINDS[kind](X[:, :1], y)
    accountant = BudgetAccountant(epsilon=2.0, unit="group")
    model = DPNaiveBayes(schema=schema, accountant=accountant)
    with pytest.raises(ValueError, match="X lacks the column 'person' of groups"):
        model.fit(Z, z)
    with pytest.raises(ValueError, match="X lacks the column 'person' of groups"):
        skdp.stats.mean(Z[:, 0] if kind == "Array" else Z["x0"], schema=schema, accountant=accountant)
    assert not accountant.records


@pytest.mark.parametrize("group", [None, "person"])
def test_a_bag_becomes_a_frame_by_its_own_method(group):
    bags = pytest.importorskip("dask.bag")
    rng = np.random.default_rng(0)
    columns = {"age": rng.uniform(18, 90, 200), "person": np.arange(200) % 70, "sick": rng.integers(2, size=200)}
    records = [
        dict(zip(columns, row, strict=True)) for row in zip(*map(np.ndarray.tolist, columns.values()), strict=True)
    ]
    bag = bags.from_sequence(records, npartitions=7)
    groups = {} if group is None else {"group": group, "rows_per_group": 2}
    model = DPNaiveBayes(schema=Schema({"age": Number(18, 90)}, target=Category([0, 1]), **groups), random_state=0)
    with pytest.raises(TypeError, match="Convert a Bag by to_dataframe"):
        clone(model).fit(bag, bag)
    table = bag.to_dataframe(meta={"age": float, "person": int, "sick": int})
    names = ["age", *groups.values()][: 1 + bool(groups)]
    fitted = clone(model).fit(table[names], table["sick"])
    assert_same(clone(model).fit({name: columns[name] for name in names}, columns["sick"]), fitted)


def arguments_of_records(estimator):
    """The arguments of fit, one value for each record, that are not in the data."""
    return [name for name in ("sample_weight", "groups") if name in signature(estimator.fit).parameters]


#: One of each class and kind of noise that takes weights or groups.
WITH_ARGUMENTS = {
    (type(one), one.get_params().get("delta", 0) > 0): one for one in WITHOUT_CATEGORIES if arguments_of_records(one)
}


@pytest.mark.filterwarnings("ignore:bounds_y are far too wide")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("estimator", WITH_ARGUMENTS.values(), ids=name_of)
def test_weights_and_groups_are_those_in_memory_for_each_estimator(estimator, kind):
    arrays, rng = rows_of(estimator), np.random.default_rng(5)
    n, names = len(arrays), arguments_of_records(estimator)
    values = {"sample_weight": 2 * rng.random(400), "groups": rng.integers(130, size=400)}
    bounds = {"sample_weight": ("max_weight", 1.5), "groups": ("rows_per_group", 2)}
    model = clone(estimator).set_params(**dict(bounds[name] for name in names))

    def fitted(values):
        collections = KINDS[kind](*arrays, *(values[name] for name in names))
        return clone(model).fit(*collections[:n], **dict(zip(names, collections[n:], strict=True)))

    found = fitted(values)
    assert_same(clone(model).fit(*arrays, **{name: values[name] for name in names}), found)
    # A control: with weights in another order, and all records in one group, the fit differs.
    other = fitted({"sample_weight": values["sample_weight"][::-1].copy(), "groups": 0 * values["groups"]})
    assert not np.array_equal(released(found), released(other))


ADDITIVE = [one for one in IN_PARTS if type(one).__name__.startswith("DPAdditive")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lengths", [(400,), (57, 57, 57, 57, 57, 57, 58), (1, 1, 0, 0, 398), (0, 400)], ids=str)
@pytest.mark.parametrize("estimator", ADDITIVE[::3], ids=name_of)
def test_additive_models_do_not_depend_on_partitions(estimator, lengths, kind):
    arrays = rows_of(estimator)
    assert_same(clone(estimator).fit(*arrays), clone(estimator).fit(*KINDS[kind](*arrays, lengths=lengths)))


@pytest.mark.parametrize("estimator", ADDITIVE, ids=name_of)
def test_an_additive_model_of_one_row_less_differs(estimator):
    # At this budget, the counts of cells show each record.
    arrays = rows_of(estimator)
    model = clone(estimator).fit(*arrays)
    fewer = [np.delete(a, 137, axis=0) for a in arrays]
    other = clone(estimator).fit(*frames(*fewer, lengths=(1, 0, 136, 262)))
    assert not np.array_equal(released(model), released(other))

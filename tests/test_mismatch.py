"""Warnings about declared labels and categories that hardly occur: when they come, and how often falsely.

False-alarm probability of what is drawn here: 1e-9 at most, or seeds are fixed.
"""

import math
import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone, is_classifier, is_regressor

from skdp import (
    BudgetAccountant,
    Category,
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPGreedyTree,
    DPNaiveBayes,
    DPRandomTree,
    DPRandomTreeRegressor,
    HistogramClassifier,
    Number,
    Schema,
)
from skdp.cluster import DPKMeans
from skdp.decomposition import DPPCA
from skdp.exceptions import SchemaMismatchWarning
from skdp.linear_model import (
    DPSGDClassifier,
    DPSGDRegressor,
    FunctionalMechLinReg,
    FunctionalMechLogReg,
    ObjPertLogReg,
    OutputPertLogReg,
)
from skdp.mechanisms import NoiseSource
from skdp.neural_network import DPMLPClassifier, DPMLPRegressor
from skdp.release.entries import ENTRIES, ENTRIES_SHARE, check_entries, entries_mechanism
from skdp.release.mismatch import (
    FALSE_ALARM,
    FEWEST,
    LEAST_SHARE_OF_LABEL,
    column_part,
    label_parts,
    margin,
    warn_of_mismatch,
)
from skdp.release.session import ReleaseSession
from skdp.schema.encoding import MISSING, OUTSIDE, SELDOM

RNG = np.random.default_rng(0)
N = 4000
X = RNG.uniform(0, 1, (N, 2))
Y = np.where(X[:, 0] > 0.5, "e", "p")

MODELS = [
    DPNaiveBayes(bounds=(0, 1), random_state=0),
    DPGreedyTree(bounds=(0, 1), max_depth=2, random_state=0),
    HistogramClassifier(bounds=(0, 1), n_bins=4, random_state=0),
    DPAdditiveClassifier(bounds=(0, 1), n_bins=4, random_state=0),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


def said(act):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        act()
    return [str(w.message) for w in heard if issubclass(w.category, SchemaMismatchWarning)]


@pytest.mark.parametrize("epsilon", [5.0, math.inf])
@every_model
def test_labels_that_never_occur_are_named(model, epsilon):
    def fit(classes, y=Y, **parameters):
        return said(lambda: model.set_params(classes=classes, epsilon=epsilon, **parameters).fit(X, y))

    assert fit(["e", "p"]) == []
    (message,) = fit(["edible", "poisonous"])
    assert "Check that the labels in y are spelled as in classes" in message
    if not isinstance(model, DPAdditiveClassifier):
        (message,) = fit(["e", "p", "q"])
        assert "too few records for the label 'q'. " in message
        # A label that is rare, and not very rare, is not named.
        assert fit(["e", "p", "q"], np.where(np.arange(N) % 10 == 0, "q", Y)) == []
    else:
        # Labels are not counted, and the number of records is.
        assert fit(["e", "p", "q"], delta=1e-5) == []
        model.set_params(delta=0.0)


def test_code_books_that_do_not_fit_are_named():
    town = pd.Series(RNG.choice(["aa", "ba"], N))
    frame = pd.DataFrame({"town": town, "age": X[:, 0]})
    for model, y in (
        (DPAdditiveClassifier(bounds=(0, 1), n_bins=4, classes=["e", "p"], epsilon=20.0, random_state=0), Y),
        (DPAdditiveRegressor(bounds=(0, 1), n_bins=4, bounds_y=(0, 1), epsilon=20.0, random_state=0), X[:, 0]),
    ):
        assert said(partial(model.set_params(categories={"town": ["aa", "ba"]}).fit, frame, y)) == []
        (message,) = said(partial(model.set_params(categories={"town": ["AA", "BA"]}).fit, frame, y))
        assert "for the declared values of the column 'town'. " in message
    codes = np.column_stack([10 + RNG.integers(0, 3, N), RNG.integers(0, 3, N)]).astype(float)
    bayes = DPNaiveBayes(categorical_features=[0, 1], n_categories=3, classes=["e", "p"], random_state=0)
    (message,) = said(lambda: bayes.fit(codes, Y))
    assert "for the declared values of the column 0. " in message


@pytest.mark.parametrize("epsilon", [20.0, math.inf])
@pytest.mark.parametrize("size", [{"n_estimators": 8}, {"expected_n": N}, {}], ids=lambda size: "".join(size) or "auto")
def test_codes_and_labels_of_random_trees_are_compared_with_released_counts(size, epsilon):
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 3, (N, 2)).astype(float)
    model = DPRandomTree(
        bounds=(0, 1), categorical_features=[1, 2], n_categories=3, classes=["e", "p"], max_depth=3, random_state=0
    ).set_params(epsilon=epsilon, **size)
    frame = pd.DataFrame(np.column_stack([X[:, 0], codes]), columns=["age", "town", "kind"])
    assert said(lambda: model.fit(frame, Y)) == []
    for wrong in (-1.0, 7.0, 0.5):
        (message,) = said(lambda wrong=wrong: model.fit(frame.assign(town=wrong), Y))
        assert "for the declared values of the column 'town'. " in message
    # A tenth with known codes is enough.
    assert said(lambda: model.fit(frame.assign(town=np.where(np.arange(N) % 10 == 0, 1.0, 7.0)), Y)) == []
    # Where each column is categorical, no tree counts all records.
    model.set_params(categorical_features=[0, 1])
    assert said(lambda: model.fit(codes, Y)) == []
    (message,) = said(lambda: model.fit(codes + np.array([0, 9]), Y))
    assert "for the declared values of the column 1. " in message
    for y in (np.full(N, "x"), X[:, 0]):
        model.set_params(classes=["e", "p"] if y is not X[:, 0] and y.dtype.kind == "U" else [0, 1])
        (message,) = said(lambda y=y: model.fit(codes, y))
        assert "classes" in message


def test_the_largest_of_several_totals_is_allowed_for():
    """Each total exceeds its margin with a probability that is shared by all."""
    least = FEWEST - margin(1.0, FALSE_ALARM)
    assert said(lambda: warn_of_mismatch(least - 0.1, 1.0, [], labels=True))
    assert said(lambda: warn_of_mismatch(least - 0.1, 1.0, [], labels=True, n_totals=9)) == []


@every_model
def test_the_charge_stands_and_only_released_values_are_looked_at(model):
    accountant = BudgetAccountant(200.0)
    own = model.set_params(classes=["edible", "poisonous"], epsilon=200.0).get_params() | {"accountant": accountant}
    with pytest.warns(UserWarning, match="the released counts|random_state"):
        type(model)(**own).fit(X, Y)
    assert len(accountant) == 1
    # Whether there is a warning depends on the noise as well: of no records, it is seen now and then.
    assert said(lambda: type(model)(**own | {"accountant": None}).fit(X[:0], Y[:0]))


@pytest.mark.parametrize("law", [stats.norm(), stats.laplace(scale=1 / math.sqrt(2))])
def test_noise_is_beyond_its_margin_as_rarely_as_is_said(law):
    for probability in (0.1, 1e-3, 1e-6):
        assert law.sf(margin(1.0, probability)) <= probability
    assert margin(3.0, 1e-3) == pytest.approx(3 * margin(1.0, 1e-3))
    assert margin(1.0, 1e-3) < 9
    assert margin(0.0, 1e-3) == 0.0


def test_false_alarms_are_as_rare_as_is_said():
    """Two labels with the least share that counts as present; noise of one kind in all numbers."""
    n, deviation, runs = 4000, 20.0, 2000
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(runs):
        counts = n * np.array([1 - 2 * LEAST_SHARE_OF_LABEL, LEAST_SHARE_OF_LABEL, LEAST_SHARE_OF_LABEL])
        counts += rng.laplace(scale=deviation / math.sqrt(2), size=3)
        parts = label_parts(np.array(["a", "b", "c"]), counts, deviation)
        act = partial(warn_of_mismatch, counts.sum(), deviation * math.sqrt(3), parts, labels=True)
        alarms += bool(said(act))
    assert stats.binom.sf(alarms - 1, runs, FALSE_ALARM) > 1e-9


def test_few_parts_are_named():
    parts = [column_part(j, 0.0, 1.0) for j in range(30)]
    (message,) = said(lambda: warn_of_mismatch(1e6, 1.0, parts, labels=False))
    assert "the column 9, and others. " in message
    assert said(lambda: warn_of_mismatch(0.0, 1.0, [], labels=False)) == []


# --- good fits, and columns that are spelled otherwise ----------------------------------------------------------------

SURGERY = Schema({"ward": ["surgery", "medicine", "eyes"], "age": (0, 1), "kind": Category(["a", "b"])}, ["e", "p"])


def patients(n_rows, seed=8):
    """A table with many missing entries, and a label that is 2 % of the records."""
    rng = np.random.default_rng(seed)
    kind = np.where(rng.random(n_rows) < 0.9, None, rng.choice(["a", "b"], n_rows))
    frame = pd.DataFrame(
        {"ward": rng.choice(["surgery", "medicine", "eyes"], n_rows, p=[0.9, 0.05, 0.05]), "age": rng.random(n_rows)}
    )
    return frame.assign(kind=kind), np.where(rng.random(n_rows) < 0.98, "e", "p")


KINDS = [
    (DPAdditiveClassifier, {"delta": 1e-6}),
    (DPNaiveBayes, {}),
    (DPGreedyTree, {}),
    (DPRandomTree, {"delta": 1e-6}),
    (FunctionalMechLogReg, {"delta": 1e-6}),
    (FunctionalMechLogReg, {}),
    (ObjPertLogReg, {"delta": 1e-6}),
    (OutputPertLogReg, {}),
    (DPSGDClassifier, {"delta": 1e-6, "n_steps": 2}),
    (DPMLPClassifier, {"delta": 1e-6, "n_steps": 2}),
    (DPKMeans, {}),
    (DPPCA, {"delta": 1e-6}),
]
every_kind = pytest.mark.parametrize(("kind", "parameters"), KINDS, ids=lambda one: getattr(one, "__name__", ""))


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("n_rows", [200, 4000])
@every_kind
def test_good_fits_raise_no_alarm(kind, parameters, n_rows, epsilon):
    """At most one fit in 100 may warn. False-alarm probability of the test: 1e-9."""
    X, y = patients(n_rows)
    model = kind(schema=SURGERY, epsilon=epsilon, **parameters)
    runs = 30
    alarms = sum(bool(said(partial(model.set_params(random_state=seed).fit, X, y))) for seed in range(runs))
    assert stats.binom.sf(alarms - 1, runs, 0.01) > 1e-9


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_a_category_in_the_wrong_case_is_found(epsilon):
    """20,000 rows. It was found in no additive fit at 0.1, and in 13 of 20 at 1, for nine tenths of the records."""
    X, y = patients(20_000)
    wrong = X.assign(ward=X["ward"].replace("surgery", "Surgery"))
    for kind in (DPAdditiveClassifier, DPNaiveBayes, FunctionalMechLogReg):
        for seed in range(10):
            model = kind(schema=SURGERY, epsilon=epsilon, random_state=seed, delta=1e-6)
            (message,) = said(partial(model.fit, wrong, y))
            assert "too few records for the declared values of the column 'ward'. " in message


COUNTERS = [(kind, parameters) for kind, parameters in KINDS if "entries" in kind._counts_outside]


@pytest.mark.parametrize(("kind", "parameters"), COUNTERS, ids=lambda one: getattr(one, "__name__", ""))
@pytest.mark.parametrize("epsilon", [0.2, 1.0, math.inf])
def test_entries_outside_are_found_by_their_numbers(kind, parameters, epsilon):
    """20,000 rows. The smallest distance from the margin is 6 standard deviations of the noise."""
    X, y = patients(20_000)
    model = kind(schema=SURGERY, epsilon=epsilon, random_state=0, **parameters)
    wrong = {"ward": X["ward"].replace("surgery", "Surgery")}
    if epsilon >= 1:
        # Nine tenths of the entries of "kind" are missing, which is no mismatch.
        wrong["age"] = X["age"].map("{:.1f} years".format)
        months = Schema({**SURGERY, "age": (0, 0.01)}, SURGERY.target)
        (message,) = said(partial(clone(model).set_params(schema=months).fit, X, y))
        assert "too few records for the declared values of the column 'age'. " in message
    if is_classifier(model):
        # Trees also have counts of labels.
        assert "most records have a label that is not in classes" in said(partial(model.fit, X, np.char.upper(y)))[0]
    for name, entries in wrong.items():
        (message,) = said(partial(model.fit, X.assign(**{name: entries}), y))
        assert f"too few records for the declared values of the column {name!r}. " in message
    assert model.privacy_plan() == model.privacy_
    assert model.privacy_.releases[0].label == ENTRIES


@pytest.mark.parametrize("kind", [DPKMeans, DPPCA, DPRandomTree, DPSGDRegressor])
def test_entries_in_parts_count_as_in_one_place(kind, monkeypatch):
    frames = pytest.importorskip("dask.dataframe")
    X, y = patients(600)
    schema = Schema(SURGERY, Number(0, 1)) if kind is DPSGDRegressor else SURGERY
    y = X["age"] if kind is DPSGDRegressor else pd.Series(y)
    found = []

    def note(session, label, value):
        if label == ENTRIES:
            found.append(np.array(value))
        return release(session, label, value)

    release = ReleaseSession.release
    monkeypatch.setattr(ReleaseSession, "release", note)
    parameters = {"n_steps": 2} if kind is DPSGDRegressor else {}
    model = kind(schema=schema, delta=1e-6, random_state=0, **parameters)
    for one, other in ((X, y), (frames.from_pandas(X, npartitions=3), frames.from_pandas(y, npartitions=3))):
        clone(model).fit(*((one, other) if is_classifier(model) or is_regressor(model) else (one,)))
    np.testing.assert_array_equal(*found)


def recorded(mechanism, released, seed=0):
    """A session that only releases numbers, and notes what is released."""

    def release(label, value):
        released.append(value)
        return mechanism.release(value, NoiseSource(seed).stream(label))

    return SimpleNamespace(mechanism=lambda label: mechanism, release=release)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_numbers_of_entries_raise_no_alarm_at_one_half(delta):
    n, runs = 400, 1000
    columns = {name: [(place, 1.0, 1.5, SELDOM if name >= "c" else OUTSIDE)] for place, name in enumerate("abcd")}
    X, known = np.zeros((n, 4)), np.arange(2 * n) < n
    X[: n // 2, :2], X[: n * 8 // 9, 2:] = 1.0, 1.0
    mechanism, _ = entries_mechanism(5, 1.0, delta, ENTRIES_SHARE)
    alarms = 0
    for seed in range(runs):
        alarms += bool(said(partial(check_entries, recorded(mechanism, [], seed), columns, (), X, None, known)))
    assert stats.binom.sf(alarms - 1, runs, FALSE_ALARM) > 1e-9


@pytest.mark.parametrize("targets", [(), (0.0, 1.0)])
def test_the_numbers_of_a_record_have_the_stated_norm(targets):
    columns = {"a": [(0, 1.0, 1.5, OUTSIDE)], "b": [(1, 1.0, 1.5, OUTSIDE), (1, 2.0, 9.0, MISSING)]}
    columns["c"] = [(3, 1.0, 9.0, SELDOM)]
    mechanism, _ = entries_mechanism(4, math.inf, 0.0, ENTRIES_SHARE)
    released = []
    for row in np.ndindex(2, 3, 1, 2):
        for y in (0.5, 2.0, -1.0):
            X = np.array([row], dtype=float)
            said(partial(check_entries, recorded(mechanism, released), columns, targets, X, np.array([y]), None))
    if not targets:
        nobody = np.zeros((0, 4))
        said(partial(check_entries, recorded(mechanism, released), columns, (), nobody, None, np.array([False])))
        assert released[-1].tolist() == [0, 0, 0, 0.5]
    moved = np.linalg.norm(released, axis=1)
    assert moved.max() <= mechanism.sensitivity <= moved.max() * (1 + 1e-9)


@pytest.mark.parametrize("kind", [DPNaiveBayes, DPGreedyTree, FunctionalMechLogReg])
def test_labels_in_the_wrong_case_are_found_by_their_number(kind):
    X, y = patients(20_000)
    model = kind(schema=SURGERY, epsilon=0.5, random_state=0)
    assert "most records have a label that is not in classes" in said(partial(model.fit, X, np.char.upper(y)))[0]
    assert model.privacy_plan() == model.privacy_


@pytest.mark.parametrize("kind", [DPSGDRegressor, DPMLPRegressor])
def test_targets_beyond_their_bounds_are_found(kind):
    X, _ = patients(20_000)
    schema = Schema({"ward": SURGERY["ward"], "kind": SURGERY["kind"]}, {"age": (0, 1)})
    model = kind(schema=schema, epsilon=0.5, delta=1e-6, n_steps=2, random_state=0)
    assert said(partial(model.fit, X[["ward", "kind"]], X["age"])) == []
    (message,) = said(partial(model.fit, X[["ward", "kind"]], X["age"] * 12))
    assert "most targets are beyond the declared bounds" in message


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_unreadable_numbers_are_found_by_moments(delta):
    X, _ = patients(20_000)
    schema = Schema({"ward": ["surgery", "medicine", "eyes"], "day": (0, 365)}, {"age": (0, 1)})
    days = np.arange(len(X)) % 365
    model = FunctionalMechLinReg(schema=schema, epsilon=1.0, delta=delta, random_state=0)
    assert said(partial(model.fit, X[["ward"]].assign(day=days), X["age"])) == []
    (message,) = said(partial(model.fit, X[["ward"]].assign(day=[f"day {day}" for day in days]), X["age"]))
    assert "too few records for the declared values of the column 'day'. " in message


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (DPAdditiveClassifier, {"delta": 1e-6}),
        (DPAdditiveRegressor, {"delta": 1e-6}),
        (DPNaiveBayes, {"numeric": "binned", "n_bins": 20}),
    ],
)
def test_bounds_below_most_numbers_are_found_by_the_last_cell(kind, parameters):
    X, y = patients(20_000)
    target = Number(0, 1) if kind is DPAdditiveRegressor else SURGERY.target
    y = X["age"] if kind is DPAdditiveRegressor else y
    for high, found in ((1, False), (0.5, False), (0.05, True)):
        schema = Schema({**SURGERY, "age": (0, high)}, target)
        messages = said(partial(kind(schema=schema, epsilon=2.0, random_state=0, **parameters).fit, X, y))
        assert any("the column 'age'" in message for message in messages) == found


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_labels_in_the_wrong_case_are_found_by_additive_models(epsilon):
    X, y = patients(20_000)
    for seed in range(10):
        model = DPAdditiveClassifier(schema=SURGERY, epsilon=epsilon, delta=1e-6, random_state=seed)
        (message,) = said(partial(model.fit, X, np.char.upper(y)))
        assert "most records have a label that is not in classes" in message


@pytest.mark.parametrize(
    "model",
    [
        DPAdditiveClassifier(delta=1e-6, epsilon=20.0, random_state=0),
        DPNaiveBayes(epsilon=5.0, random_state=0),
        DPNaiveBayes(numeric="binned", epsilon=5.0, random_state=0),
    ],
    ids=["additive", "Gaussian", "binned"],
)
def test_values_that_a_schema_does_not_declare_are_told_by_their_cell(model):
    schema = Schema({"town": ["aa", "ba"], "size": Category(["s", "m"], ordered=True), "age": (0, 1)}, ["e", "p"])
    rng = np.random.default_rng(5)
    table = {"town": rng.choice(["aa", "ba"], N), "size": rng.choice(["s", "m"], N), "age": X[:, 0]}
    model = clone(model).set_params(schema=schema)
    assert said(lambda: model.fit(table, Y)) == []
    for name, entry in (("town", "AA"), ("size", None)):
        (message,) = said(lambda name=name, entry=entry: model.fit({**table, name: [entry] * N}, Y))
        assert f"for the declared values of the column {name!r}. " in message
    if model._form() == "cells":
        (message,) = said(lambda: model.fit({**table, "age": ["young"] * N}, Y))
        assert "for the declared values of the column 'age'. " in message


# --- random trees with a schema --------------------------------------------------------------------------------------

TOWNS = [f"t{i}" for i in range(11)]


def table(seed=6, n_rows=N):
    rng = np.random.default_rng(seed)
    return {"town": rng.choice(TOWNS, n_rows), "size": rng.choice(["s", "m"], n_rows), "age": rng.uniform(size=n_rows)}


@pytest.mark.parametrize("epsilon", [2.0, math.inf])
@pytest.mark.parametrize("size", [{"n_estimators": 9}, {"expected_n": N}, {}], ids=lambda size: "".join(size) or "auto")
@pytest.mark.parametrize("kind", [DPRandomTree, DPRandomTreeRegressor])
def test_random_trees_compare_cells_of_a_schema(kind, size, epsilon):
    columns = {"town": TOWNS, "size": Category(["s", "m"], ordered=True), "age": (0, 1)}
    y, target = (Y, ["e", "p"]) if kind is DPRandomTree else (X[:, 0], Number(0, 1))
    model = kind(schema=Schema(columns, target), max_depth=5, delta=1e-5, random_state=0)
    model.set_params(epsilon=epsilon, **size)
    rows = table()
    assert said(lambda: model.fit(rows, y)) == []
    for name, entry in (("town", "T1"), ("size", None), ("town", np.nan)):
        wrong = {**rows, name: [entry] * N}
        (message,) = said(lambda wrong=wrong: model.fit(wrong, y))
        assert f"for the declared values of the column {name!r}. " in message
    (message,) = said(lambda: model.fit({**rows, "town": ["x"] * N, "size": ["x"] * N}, y))
    assert "'town', the declared values of the column 'size'. " in message
    # Most entries are declared.
    some = np.where(np.arange(N) % 5 < 3, rows["town"], "T1")
    assert said(lambda: model.fit({**rows, "town": some}, y)) == []
    # Without numbers, too, there is a number of all records.
    only = Schema({name: columns[name] for name in ("town", "size")}, target)
    model.set_params(schema=only)
    rows.pop("age")
    assert said(lambda: model.fit(rows, y)) == []
    (message,) = said(lambda: model.fit({**rows, "town": ["x"] * N, "size": ["x"] * N}, y))
    assert "'town', the declared values of the column 'size'. " in message

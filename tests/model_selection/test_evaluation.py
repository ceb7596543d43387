"""Private evaluation: what is charged, what one record changes, known answers without noise."""

import inspect
import itertools
import logging
import math
import random
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    confusion_matrix,
    f1_score,
    log_loss,
    mean_absolute_error,
    mean_squared_error,
    recall_score,
    roc_auc_score,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

import skdp
from skdp import (
    DPPCA,
    BoundsScaler,
    BudgetAccountant,
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPGridSearchCV,
    FunctionalMechLinReg,
    ObjPertLogReg,
)
from skdp.ensemble import PATEClassifier, SampleAggregate
from skdp.exceptions import (
    BudgetError,
    BudgetWarning,
    PrivacyAssumptionWarning,
    SchemaMismatchWarning,
    SeededNoiseWarning,
)
from skdp.mechanisms import DiscreteLaplaceMechanism, GaussianMechanism
from skdp.model_selection import _scoring, private_cross_val_score, private_score
from skdp.model_selection._scoring import LEVELS, make_measure, make_score, make_table
from skdp.model_selection._stateless import _TREES, is_exact
from skdp.preprocessing import TableEncoder
from skdp.schema import Category, Number, Schema
from skdp.synthetic import HistogramClassifier
from tests.linear_model.data import blobs
from tests.model_selection.stubs import NoisyCount, UnknownCost, records

DELTA = 1e-5
X, Y = blobs(2, 600)
WEIGHT = {0: 1.0, 1: 3.0}


@pytest.fixture(scope="module")
def model():
    return ObjPertLogReg(data_norm=3.0, classes=[0, 1], epsilon=20.0, random_state=0).fit(X[:300], Y[:300])


@pytest.fixture(scope="module")
def regressor():
    return FunctionalMechLinReg(bounds=(-5, 5), bounds_y=(-3, 3), epsilon=50.0, random_state=0).fit(X, X[:, 0])


def test_areas_and_f1_follow_from_tables(model):
    predicted, estimated = model.predict(X), model.predict_proba(X)[:, 1]
    for metric, reference, power in (("roc_auc", roc_auc_score, 2), ("average_precision", average_precision_score, 1)):
        got = private_score(model, X, Y, metric=metric, n_bins=20, epsilon=math.inf)
        assert got.counts.shape == (20, 2)
        assert got.counts.sum(axis=1).max() <= 2 * len(Y) / 20
        # As scikit-learn computes them from estimates that are known by their bin, or by a pair of bins, alone.
        bins = np.searchsorted(got.edges, estimated, side="right") - 1
        fine, coarse = reference(Y, bins), reference(Y, bins // 2)
        assert got.value == pytest.approx(fine + (fine - coarse) / (2**power - 1), abs=1e-12)
        assert got.value == pytest.approx(reference(Y, estimated), abs=2e-3)
        noisy = private_score(model, X, Y, metric=metric, n_bins=20, epsilon=0.5, random_state=0)
        assert noisy.counts.shape == (20, 2)
        assert 0 <= noisy.value <= 1
        first, second = noisy.privacy_.releases
        assert (first.share, second.share) == (0.25, pytest.approx(0.75))
    counted = {
        "f1": f1_score(Y, predicted),
        "f1_macro": f1_score(Y, predicted, average="macro"),
        "recall": recall_score(Y, predicted),
        "recall_macro": balanced_accuracy_score(Y, predicted),
        "balanced_accuracy": balanced_accuracy_score(Y, predicted),
    }
    for metric, value in counted.items():
        got = private_score(model, X, Y, metric=metric, epsilon=math.inf)
        assert got.value == pytest.approx(value, abs=1e-12)
        # A further column is for records that the model refuses.
        assert got.counts.shape == (2, 3)


def test_the_difference_to_a_baseline(model, regressor):
    other = LogisticRegression(C=1e-3).fit(X[300:], Y[300:])

    def without_noise(estimator, y, **options):
        return private_score(estimator, X, y, epsilon=math.inf, bounds_y=(-3, 3), **options)

    for metric, options in (("accuracy", {}), ("neg_log_loss", {}), ("balanced_accuracy", {"label_weights": WEIGHT})):
        options = {"metric": metric, **options}
        got = without_noise(model, Y, baseline=other, **options)
        alone = without_noise(model, Y, **options).value - without_noise(other, Y, **options).value
        assert got.value == pytest.approx(alone, abs=1e-9)
        assert without_noise(other, Y, baseline=model, **options).value == pytest.approx(-alone, abs=1e-9)
    right = np.mean(model.predict(X) == Y) - np.mean(Y == 1)
    assert without_noise(model, Y, baseline=1).value == pytest.approx(right, abs=1e-12)
    got = without_noise(regressor, X[:, 0], baseline=0.5)
    errors = mean_absolute_error(X[:, 0], np.full(len(X), 0.5)) - mean_absolute_error(X[:, 0], regressor.predict(X))
    assert got.value == pytest.approx(errors, abs=1e-3)
    # More, less and the rest.
    assert got.counts.shape == (3,)
    assert got.counts.sum() == pytest.approx(len(X))


@pytest.mark.sample(always=True)
@pytest.mark.parametrize("metric", ["accuracy", "neg_log_loss", "balanced_accuracy"])
def test_a_record_moves_a_difference_no_more_than_a_score(model, metric):
    other = ObjPertLogReg(data_norm=3.0, classes=[0, 1], epsilon=0.5, random_state=0).fit(X[300:], Y[300:])
    measure = replace(make_score(metric, model, np.array([0, 1]), WEIGHT), baseline=other).released()
    before, largest = measure.tally(model, X[:50], Y[:50]), [0.0, 0.0]
    for row, label in itertools.product(X[50:110], (0, 1, -1)):
        after = measure.tally(model, np.vstack([X[:50], row]), np.append(Y[:50], label))
        assert (after >= before).all()
        for place, norm in enumerate((1, 2)):
            largest[place] = max(largest[place], np.linalg.norm(after - before, norm))
            assert largest[place] <= measure.moved(norm)
    assert largest[1] >= 0.5 * measure.most


class Shaped(ClassifierMixin, BaseEstimator):
    """A classifier whose predictions have another shape: columns, or for one row of all a wrong number of them."""

    classes_ = np.array([0, 1])

    def __init__(self, wrong=math.inf):
        self.wrong = wrong

    def fit(self, X, y):
        return self

    def predict(self, X):
        labels = (X[:, 0] > 0).astype(int)
        return np.repeat(labels, 3) if (X[:, 0] == self.wrong).any() else labels[:, None]

    def predict_proba(self, X):
        return np.column_stack([1 - self.predict(X), self.predict(X)])


@pytest.mark.parametrize("metric", ["accuracy", "neg_log_loss", "f1", "confusion_matrix", "roc_auc"])
@pytest.mark.parametrize("exact", [True, False])
def test_predictions_of_another_shape_move_no_more(monkeypatch, metric, exact):
    monkeypatch.setattr(_scoring, "is_exact", lambda model: exact)
    X, y = np.linspace(-1, 1, 21)[:, None], np.arange(21) % 2
    measure = make_measure(metric, Shaped(), np.array([0, 1]), None, 5.0, None, None).released()
    flat = measure.tally(Shaped(), X, y)
    assert flat.sum() == 21 * measure.most
    # A row with a wrong number of predictions is refused, and does not affect the others.
    odd = measure.tally(Shaped(wrong=-1.0), X, y)
    assert np.abs(odd - flat).sum() <= 2 * measure.moved(1) + measure.most
    if metric == "accuracy":
        both = replace(measure, baseline=Shaped(wrong=-1.0)).tally(model=Shaped(), X=X, y=y)
        assert both[:3].sum() == 21 * measure.most
        assert both[0] + both[1] <= measure.most


def test_baselines_are_checked_before_a_charge(model, regressor):
    budget = BudgetAccountant(epsilon=1.0)
    wrong = (
        ({"baseline": "no"}, "a label in classes"),
        ({"baseline": 2}, "a label in classes"),
        ({"baseline": np.array([0, 1])}, "a label in classes"),
        ({"baseline": regressor}, "a classifier if estimator is one"),
        ({"baseline": LogisticRegression().fit(X, np.where(Y, "yes", "no"))}, "none of the labels"),
        ({"baseline": 1, "metric": "roc_auc"}, "mean over records"),
        ({"baseline": 1, "metric": "neg_log_loss"}, "predict_proba"),
        ({"baseline": LogisticRegression().fit(X[:, :1], Y)}, "features"),
    )
    for parameters, message in wrong:
        with pytest.raises(ValueError, match=message):
            private_score(model, X, Y, accountant=budget, **parameters)
    with pytest.raises(TypeError, match="baseline must be a real number"):
        private_score(regressor, X, X[:, 0], bounds_y=(-3, 3), baseline="no", accountant=budget)
    with pytest.raises(NotFittedError):
        private_score(model, X, Y, baseline=LogisticRegression(), accountant=budget)
    assert not budget.records


def test_a_score_has_the_delta_of_the_model(model):
    assert private_score(model, X, Y).privacy_.delta == 0
    approximate = clone(model).set_params(delta=1e-7).fit(X, Y)
    for judged in (approximate, make_pipeline(BoundsScaler(bounds=(-9, 9)).fit(X), approximate)):
        assert private_score(judged, X, Y).privacy_.delta == 1e-7
        assert private_score(judged, X, Y, delta=0.0).privacy_.delta == 0
    public = LogisticRegression().fit(X, Y)
    assert private_score(public, X, Y).privacy_.delta == 0


def test_they_are_at_the_top():
    assert skdp.private_score is private_score
    assert skdp.private_cross_val_score is private_cross_val_score


def test_areas_and_f1_of_nothing(model):
    for metric in ("roc_auc", "average_precision", "f1", "f1_macro"):
        assert math.isnan(private_score(model, X[:0], Y[:0], metric=metric, epsilon=math.inf).value)
    three = ObjPertLogReg(data_norm=3.0, classes=[0, 1, 2], epsilon=5.0).fit(X, Y)
    assert 0 < private_score(three, X, Y, metric="f1_macro", epsilon=math.inf).value < 1
    for metric, message in (("f1", "f1_macro"), ("roc_auc", "two labels"), ("average_precision", "two labels")):
        with pytest.raises(ValueError, match=message):
            private_score(three, X, Y, metric=metric)


def test_a_record_moves_areas_of_all_folds_by_one_cell():
    model = ObjPertLogReg(data_norm=3.0, classes=[0, 1])
    accountant = BudgetAccountant(math.inf)
    for scoring, cells in (("roc_auc", 2 * 8), ("average_precision", 2 * 8), ("f1", 6), ("f1_macro", 6)):
        options = {"cv": 3, "scoring": scoring, "n_bins": 8, "random_state": 0}
        with pytest.warns(SeededNoiseWarning):
            scores = private_cross_val_score(model, X, Y, epsilon=40.0, accountant=accountant, **options)
        assert scores.shape == (3,)
        assert np.all((scores > 0.6) & (scores <= 1.0))
        *edges, table = accountant.records[-1].releases
        assert len(edges) == (scoring in ("roc_auc", "average_precision"))
        assert table.sensitivity == 1.0
        exact = private_cross_val_score(model, X, Y, epsilon=math.inf, **options)
        assert np.all(exact > 0.8)
        assert cells == math.prod(make_table(scoring, model, np.array([0, 1]), 8).shape)


TEXT = ["a", "b", "c"]


def text_frame(n):
    rng = np.random.default_rng(0)
    letters, numbers = rng.choice(TEXT, n), rng.normal(size=n)
    return letters, numbers, ((letters == "a") + numbers > 0.5).astype(int)


def polars():
    """Skip where Polars is not installed, or where scikit-learn does not read the names of its columns."""
    module = pytest.importorskip("polars")
    if not hasattr(BoundsScaler((-3, 3)).fit(module.DataFrame({"a": [0.0]})), "feature_names_in_"):
        pytest.skip("this scikit-learn does not read names of columns of this Polars")
    return module


@pytest.mark.parametrize("kind", ["object", "category", "string", "list", "array", "polars"])
def test_estimators_that_take_text_are_searched_and_judged(kind):
    letters, numbers, y = text_frame(300)
    missing = np.where(np.arange(300) % 10 == 0, None, letters)
    if kind == "polars":
        frame = polars().DataFrame({"letter": missing.tolist(), "number": numbers})
    else:
        column = pd.Series(missing, dtype="object" if kind in ("list", "array") else kind)
        frame = pd.DataFrame({"letter": column, "number": numbers})
    rows = {"list": lambda: frame.to_numpy().tolist(), "array": lambda: frame.to_numpy()}.get(kind, lambda: frame)()
    letter, number = (0, 1) if kind in ("list", "array") else ("letter", "number")
    encoder = OneHotEncoder(categories=[TEXT], handle_unknown="ignore", sparse_output=False)
    columns = ColumnTransformer([("l", encoder, [letter]), ("n", BoundsScaler((-3, 3)), [number])], sparse_threshold=0)
    models = [(DPAdditiveClassifier(bounds=(-3, 3), categories={letter: TEXT}, classes=[0, 1]), "n_bins")]
    if kind not in ("list", "array"):
        models.append((make_pipeline(columns, ObjPertLogReg(data_norm=2.0, classes=[0, 1])), "objpertlogreg__C"))
    for model, name in models:
        search = DPGridSearchCV(model, {name: [4, 8]}, epsilon=30.0, strategy="holdout", random_state=0).fit(rows, y)
        assert np.mean(search.predict(rows) == y) > 0.6
        assert private_score(search, rows, y, epsilon=30.0, random_state=0).value > 0.6
        assert np.all(private_cross_val_score(model, rows, y, cv=2, epsilon=60.0, random_state=0) > 0.6)
        # What a step does not take is found before anything is charged.
        accountant = BudgetAccountant(10.0)
        bad = frame.assign(number="x") if hasattr(frame, "assign") else frame.with_columns(number=frame["letter"])
        bad = bad if kind not in ("list", "array") else bad.to_numpy()
        for call in (
            lambda data: DPGridSearchCV(model, {name: [4, 8]}, accountant=accountant).fit(data, y),  # noqa: B023
            lambda data: private_cross_val_score(model, data, y, accountant=accountant),  # noqa: B023
        ):
            with pytest.raises((TypeError, ValueError)):
                call(bad)
        assert len(accountant) == 0


@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_frames_of_numbers_are_searched(output):
    pl = polars()
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    alone = ObjPertLogReg(data_norm=3.0, classes=[0, 1])
    steps = make_pipeline(BoundsScaler((-3, 3)), DPPCA(1, data_norm=2.0, delta=DELTA), alone)
    with config_context(transform_output=output):
        for model, name in ((alone, "C"), (steps, "objpertlogreg__C")):
            options = {"epsilon": 30.0, "delta": DELTA, "random_state": 0}
            search = DPGridSearchCV(model, {name: [0.1, 1.0]}, **options).fit(frame, pl.Series(Y))
            assert search.predict(frame).shape == Y.shape
            assert list(search.best_estimator_.feature_names_in_) == ["a", "b"]


def test_known_answers_without_noise(model, regressor):
    kwargs = {"epsilon": math.inf, "label_weights": WEIGHT}
    predicted = model.predict(X)
    assert private_score(model, X, Y, **kwargs).value == accuracy_score(Y, predicted)
    np.testing.assert_array_equal(
        private_score(model, X, Y, metric="confusion_matrix", **kwargs).value, confusion_matrix(Y, predicted)
    )
    weights = np.where(Y == 1, 3.0, 1.0)
    expected = np.average(predicted == Y, weights=weights)
    got = private_score(model, X, Y, metric="balanced_accuracy", **kwargs).value
    assert got == pytest.approx(expected, abs=1e-3)
    shares = {0: 1 / np.mean(Y == 0), 1: 1 / np.mean(Y == 1)}
    got = private_score(model, X, Y, metric="balanced_accuracy", epsilon=math.inf, label_weights=shares).value
    assert got == pytest.approx(balanced_accuracy_score(Y, predicted), abs=1e-3)
    clipped = np.clip(model.predict_proba(X), math.exp(-5.0), None)[np.arange(len(Y)), Y]
    got = private_score(model, X, Y, metric="neg_log_loss", **kwargs).value
    assert got == pytest.approx(np.mean(np.log(clipped)), abs=2e-3)
    assert got == pytest.approx(-log_loss(Y, model.predict_proba(X)), abs=5e-2)
    y = np.clip(X[:, 0], -3, 3)
    for metric, reference in [
        ("neg_mean_absolute_error", mean_absolute_error),
        ("neg_mean_squared_error", mean_squared_error),
    ]:
        got = private_score(regressor, X, y, metric=metric, bounds_y=(-3, 3), epsilon=math.inf).value
        assert got == pytest.approx(-reference(y, np.clip(regressor.predict(X), -3, 3)), abs=1e-2)


def test_histogram_without_noise(model):
    found = private_score(model, X, Y, metric="histogram", n_bins=4, epsilon=math.inf)
    p = model.predict_proba(X)[:, 1]
    expected = [
        [np.sum((p >= low) & (p < high) & (label == Y)) for label in (0, 1)]
        for low, high in zip(found.edges[:-1], found.edges[1:], strict=True)
    ]
    np.testing.assert_array_equal(found.value, expected)
    assert found.value.sum() == len(Y)


@pytest.mark.parametrize("delta", [0.0, DELTA])
@pytest.mark.parametrize("metric", ["accuracy", "confusion_matrix", "histogram", "neg_log_loss"])
def test_each_is_charged_and_close(model, metric, delta):
    accountant = BudgetAccountant(2.0, delta, composition="basic")
    found = private_score(model, X, Y, metric=metric, epsilon=2.0, delta=delta, accountant=accountant)
    assert accountant.total() == (2.0, delta)
    (record,) = accountant.records
    assert record.cost == found.privacy_.cost
    exact = private_score(model, X, Y, metric=metric, epsilon=math.inf)
    # Sums of relative gains are in units of the lattice on which they are released.
    unit = {"accuracy": 16, "neg_log_loss": LEVELS}.get(metric, 1)
    assert np.all(found.counts * unit % 1 == 0)
    # Noise of a table is a few records a cell; twenty standard deviations.
    scale = found.privacy_.releases[0].mechanism.scale / unit
    assert np.abs(found.counts - exact.counts).max() <= 28 * scale + 1
    with pytest.raises(BudgetError):
        private_score(model, X, Y, accountant=accountant)
    assert len(accountant) == 1


@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy", "neg_log_loss", "confusion_matrix", "histogram"])
@pytest.mark.sample(every=3)
def test_one_record_changes_the_table_by_no_more_than_is_claimed(model, metric, monkeypatch):
    tables, claims = [], []

    def release(self, value, stream):
        tables.append(np.array(value))
        return value

    monkeypatch.setattr(DiscreteLaplaceMechanism, "release", release)
    rng = np.random.default_rng(0)
    rows, labels = X[:30], np.concatenate([Y[:25], [7] * 5])
    extreme = [50.0 * model.coef_[0], -50.0 * model.coef_[0]]
    largest = 0.0
    for _ in range(40):
        z = extreme[rng.integers(2)] if rng.random() < 0.5 else rng.normal(size=5)
        label = rng.choice([0, 1, 7])
        data = [(rows, labels), (np.vstack([rows, z]), np.append(labels, label))]
        tables.clear()
        for each in data:
            found = private_score(model, *each, metric=metric, label_weights=WEIGHT)
            claims.append(found.privacy_.releases[0].mechanism.sensitivity)
        change = np.abs(tables[1] - tables[0]).sum()
        assert change <= claims[-1]
        largest = max(largest, change)
    assert largest >= 0.9 * claims[-1]


class ByCompany(TransformerMixin, ClassifierMixin, BaseEstimator):
    """Rounds by the number of rows, as libraries for linear algebra do, and predicts the sign of the first column."""

    classes_ = np.array([0, 1])

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X + (-1.0) ** len(X)

    def predict(self, X):
        return (self.transform(X)[:, 0] > 0).astype(int)

    def predict_proba(self, X):
        return np.eye(2)[self.predict(X)]


def by_company(model):
    """Models that would count all rows by the number of rows."""
    holders = {
        HistogramClassifier: "estimator_",
        SampleAggregate: "estimator_",
        PATEClassifier: "student_",
        DPGridSearchCV: "best_estimator_",
    }
    yield "plain", ByCompany()
    yield "pipeline", make_pipeline(ByCompany(), model)
    columns = ColumnTransformer([("all", ByCompany(), [0, 1, 2, 3, 4])], sparse_threshold=0)
    yield "columns", make_pipeline(columns.fit(X), model)
    rest = ColumnTransformer([("last", "passthrough", [4])], remainder=ByCompany(), sparse_threshold=0)
    yield "remainder", make_pipeline(rest.fit(X), model)
    for kind, attribute in holders.items():
        holder = kind.__new__(kind)
        fitted = {attribute: ByCompany(), "classes_": np.array([0, 1]), "privacy_": None, "result_": None}
        given = {"n_features_in_": 5, "estimator": ByCompany(), "student": ByCompany(), "schema": None}
        defaults = {name: parameter.default for name, parameter in inspect.signature(kind).parameters.items()}
        vars(holder).update(defaults | fitted | given)
        yield kind.__name__, holder


@pytest.mark.parametrize("metric", ["accuracy", "neg_log_loss", "confusion_matrix", "roc_auc"])
def test_no_row_is_counted_by_the_rows_around_it(metric):
    plain = ObjPertLogReg(data_norm=3.0, classes=[0, 1], epsilon=50.0).fit(X, Y)
    rows = np.tile([0.5, 0.0, 0.0, 0.0, 0.0], (5, 1))
    for name, judged in by_company(plain):
        fewer, more = (
            private_score(judged, rows[:n], np.ones(n, dtype=int), metric=metric, epsilon=math.inf).counts
            for n in (4, 5)
        )
        assert np.abs(more - fewer).sum() == 1, name


@pytest.mark.parametrize("kind", _TREES, ids=lambda kind: kind.__name__)
def test_trees_predict_each_row_by_itself(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    forest = kind(n_estimators=30, random_state=0) if "n_estimators" in kind().get_params() else kind(random_state=0)
    forest.fit(X, X[:, 0] + rng.normal(size=400) if is_regressor(forest) else rng.integers(3, size=400))
    assert is_exact(forest)
    if hasattr(forest, "n_jobs"):
        assert not is_exact(clone(forest).set_params(n_jobs=2))
    for method in {"predict", "predict_proba"} & set(dir(forest)):
        ask = getattr(forest, method)
        alone = np.concatenate([ask(X[k : k + 1]) for k in range(33)])
        for n in (2, 3, 8, 33):
            for order in "CF":
                np.testing.assert_array_equal(ask(np.array(X[:n], order=order)), alone[:n])


@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy", "neg_log_loss"])
def test_gains_of_classification(model, scoring):
    score = make_score(scoring, model, np.array([0, 1]), WEIGHT)
    coded = np.concatenate([Y[:590], [-1] * 10])
    gains = score.gains(model, X, coded)
    assert gains.dtype == np.int64
    assert gains.min() >= 0
    assert gains.max() <= score.most
    # Each row's gain is its own.
    np.testing.assert_array_equal(gains[::7], score.gains(model, X[::7], coded[::7]))
    assert score.gains(None, X, coded).sum() == 0
    assert score.gains(model, X[:0], coded[:0]).shape == (0,)


def test_a_row_that_a_model_refuses_takes_nothing_from_others(model):
    rows = X[:40].copy()
    score = make_score("accuracy", model, np.array([0, 1]))
    before = score.gains(model, rows, Y[:40])
    rows[7] = np.nan
    after = score.gains(model, rows, Y[:40])
    assert after[7] == 0
    np.testing.assert_array_equal(np.delete(after, 7), np.delete(before, 7))


class Refusing(ClassifierMixin, BaseEstimator):
    """Predicts by the sign of the first column; refuses rows with a second one above 0, or has another label there."""

    classes_ = np.array([0, 1])

    def __init__(self, refuses=True):
        self.refuses = refuses

    def predict(self, X):
        if self.refuses and np.any(X[:, 1] > 0):
            raise ValueError("not such a row")
        return np.where(X[:, 1] > 0, 7, np.where(X[:, 0] > 0, 1, 0))

    def predict_proba(self, X):
        if np.any(X[:, 1] > 0):
            raise ValueError("not such a row")
        share = np.where(X[:, 0] > 0, 0.9, 0.1)
        return np.column_stack([1 - share, share])


@pytest.mark.parametrize("refuses", [True, False])
def test_a_row_that_a_model_refuses_is_an_error_of_its_label(refuses):
    signs = np.array([-1, -1, 1, 1, 1, 1, -1, 1])
    refused = np.array([0, 0, 0, 0, 0, 1, 1, 0])
    y = np.array([0, 0, 1, 1, 1, 1, 1, 0])
    X = np.column_stack([signs, refused])

    def value(metric, y=y):
        return private_score(Refusing(refuses), X, y, metric=metric, epsilon=math.inf).value

    predicted = np.where(refused, 2, signs > 0)
    assert value("f1") == pytest.approx(f1_score(y == 1, predicted == 1))
    assert value("f1_macro") == pytest.approx(f1_score(y, predicted, average="macro", labels=[0, 1]))
    worst = np.where(refused, 1.0 - y, np.where(signs > 0, 0.9, 0.1))
    assert value("roc_auc") == pytest.approx(roc_auc_score(y, worst))
    # A label that is not declared is in no cell, whether the model refuses the row or not.
    assert value("f1", np.where(refused, 5, y)) == pytest.approx(f1_score(y[refused == 0], signs[refused == 0] > 0))
    # The tables themselves have no place for it.
    assert value("confusion_matrix").sum() == value("histogram").sum() == 6


def test_a_fit_that_failed_has_the_worst_score():
    for metric in ("f1", "f1_macro", "roc_auc", "average_precision"):
        table = make_table(metric, Refusing(), np.array([0, 1]), 10)
        counts = table.cells(None, X[:10], Y[:10])
        assert counts.sum() == 10
        # No model is below: average precision is the share of the label at least.
        assert table.value(counts) == pytest.approx(Y[:10].mean() if metric == "average_precision" else 0.0)
        # One record is in one cell, also then.
        assert np.abs(counts - table.cells(None, X[:9], Y[:9])).sum() == 1


def test_gains_of_regression(regressor):
    score = make_score("neg_mean_absolute_error", regressor, None, bounds_y=(-1, 1))
    y = np.array([-1e9, 1e9, 0.0])
    assert np.all((score.gains(regressor, X[:3], y) >= 0) & (score.gains(regressor, X[:3], y) <= score.most))
    # Each record moves the released sums by the claim at most, and one beyond the bounds attains it.
    moved = [score.tally(regressor, X[[k]], y[[k]]) for k in range(3)]
    assert [np.abs(own).sum() for own in moved] == [score.moved(1), score.moved(1), score.most]
    assert max(np.linalg.norm(own) for own in moved) <= score.moved(2)
    np.testing.assert_array_equal(np.sum(moved, axis=0), score.tally(regressor, X[:3], y))


def test_a_score_that_is_charged_to_no_accountant_is_named():
    accountant = BudgetAccountant(100.0)
    fitted = ObjPertLogReg(data_norm=3.0, classes=[0, 1], accountant=accountant).fit(X, Y)
    for one in (fitted, make_pipeline(BoundsScaler((-5, 5)), fitted)):
        with pytest.warns(BudgetWarning, match="this score is charged to none. Pass accountant=, "):
            private_score(one, X, Y)
        private_score(one, X, Y, accountant=accountant)
    assert len(accountant) == 3
    private_score(fitted.set_params(accountant=None), X, Y)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.0), (1.0, 0.0), (1.0, DELTA), (10.0, 0.0), (math.inf, 0.0)])
@pytest.mark.parametrize("scoring", ["neg_mean_absolute_error", "neg_mean_squared_error"])
def test_targets_beyond_their_bounds_are_named_by_scores(regressor, scoring, epsilon, delta):
    """At most one evaluation in 100 may warn falsely. Probability that the test fails by chance: 1e-9."""
    rng, n, alarms, runs = np.random.default_rng(0), 4000, 0, 40
    rows = X[rng.integers(0, len(X), n)]
    good, wrong = np.where(rng.random(n) < 0.09, 9.0, 1.0), np.where(rng.random(n) < 0.6, 9.0, 0.0)
    words = {"metric": scoring, "bounds_y": (0, 1), "epsilon": epsilon, "delta": delta}
    for seed in range(runs):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", SchemaMismatchWarning)
            private_score(regressor, rows, good, random_state=seed, **words)
        alarms += bool(heard)
        with pytest.warns(SchemaMismatchWarning, match="show that about [4-8][0-9] % of the targets are"):
            private_score(regressor, rows, wrong, random_state=seed, **words)
    assert stats.binom.sf(alarms - 1, runs, 0.01) > 1e-9
    with pytest.warns(SchemaMismatchWarning, match="of the targets are beyond bounds_y"):
        private_cross_val_score(
            FunctionalMechLinReg(bounds=(-5, 5), bounds_y=(-10, 10)),
            rows,
            wrong,
            cv=2,
            scoring=scoring,
            bounds_y=(0, 1),
            epsilon=max(epsilon, 1.0),
            delta=delta,
            random_state=0,
        )


OF_LABELS = {
    "accuracy": "count as wrong",
    "balanced_accuracy": "are left out",
    "neg_log_loss": "count as wrong",
    "roc_auc": "are left out",
    "f1": "are left out",
    "confusion_matrix": "are left out",
}


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (1.0, DELTA), (10.0, 0.0), (math.inf, 0.0)])
@pytest.mark.parametrize("metric", OF_LABELS)
def test_undeclared_labels_are_named_by_scores(model, metric, epsilon, delta):
    """At most one evaluation in 100 may warn falsely. Probability that the test fails by chance: 1e-9."""
    rng, n, alarms, runs = np.random.default_rng(0), 4000, 0, 20
    chosen = rng.integers(0, len(X), n)
    rows, labels = X[chosen], Y[chosen]
    # Rare labels have large weights, so that the sums are much smaller than the number of records.
    common = rng.random(n) < 0.9
    weights = {0: 1.0, 1: 10.0} if metric == "balanced_accuracy" else None
    good, wrong = np.where(rng.random(n) < 0.09, 7, labels * ~common), np.where(rng.random(n) < 0.6, 7, labels)
    words = {"metric": metric, "epsilon": epsilon, "delta": delta, "label_weights": weights}
    for seed in range(runs):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", SchemaMismatchWarning)
            private_score(model, rows, good, random_state=seed, **words)
        alarms += bool(heard)
        message = f"show that about .* % of the records have a label that is not in classes. They {OF_LABELS[metric]}"
        with pytest.warns(SchemaMismatchWarning, match=message):
            private_score(model, rows, wrong, random_state=seed, **words)
    assert stats.binom.sf(alarms - 1, runs, 0.01) > 1e-9
    if metric != "confusion_matrix":
        del words["metric"]
        with pytest.warns(SchemaMismatchWarning, match="have a label that is not in classes"):
            private_cross_val_score(
                ObjPertLogReg(data_norm=3.0, classes=[0, 1]), rows, labels + 7, cv=2, scoring=metric, random_state=0,
                **words | {"epsilon": max(epsilon, 5.0)},
            )  # fmt: skip


REFUSED = np.ones_like(X)


@pytest.mark.parametrize("metric", ["accuracy", "neg_log_loss", "confusion_matrix", "histogram"])
def test_records_without_a_prediction_are_named_by_scores(model, metric):
    words = {"metric": metric, "epsilon": 5.0, "random_state": 0}
    effect = "are left out" if metric in ("confusion_matrix", "histogram") else "count as wrong"
    with pytest.warns(SchemaMismatchWarning, match=f"100 % of the records get no valid prediction.* They {effect}"):
        private_score(Refusing(), REFUSED, Y, **words)
    # A record is counted apart for one reason only.
    with pytest.warns(SchemaMismatchWarning, match="have a label") as heard:
        private_score(Refusing(), REFUSED, Y + 7, **words)
    assert len(heard) == 1


@pytest.mark.parametrize("metric", OF_LABELS)
def test_a_record_apart_moves_the_released_sums_by_the_claim(model, metric):
    """By its definition, for each kind of record: declared, undeclared, refused, and both."""
    measure = make_measure(metric, model, np.array([0, 1]), WEIGHT, 5.0, None, None).released()
    moves = []
    for judge in (model, Refusing()):
        for code in (-1, 0, 1):
            tally = measure.tally(judge, REFUSED[:1], np.array([code]))
            moves.append([np.linalg.norm(tally, norm) for norm in (1, 2)])
            assert (tally[-2] > 0) == (code < 0)
            assert not tally[-2:].all()
    largest = np.max(moves, axis=0)
    apart = 0 if measure.most == 1 else measure.most / 16
    np.testing.assert_allclose(largest, [measure.most + apart, np.hypot(measure.most, apart)], rtol=1e-12)
    assert largest[0] <= measure.moved(1)
    assert largest[1] <= measure.moved(2) <= largest[1] * (1 + 1e-12)
    both = measure.tally(model, X[:2], np.array([0, -1]))
    np.testing.assert_array_equal(
        both, measure.tally(model, X[:1], np.array([0])) + measure.tally(model, X[1:2], np.array([-1]))
    )


def test_undeclared_labels_keep_the_meaning_of_scores(model):
    labels = np.where(np.arange(len(Y)) < 12, 7, Y)
    right = model.predict(X) == labels
    assert private_score(model, X, labels, epsilon=math.inf).value == pytest.approx(right.mean())
    for metric in ("roc_auc", "f1", "balanced_accuracy", "confusion_matrix"):
        all_rows, declared = (
            private_score(model, X[rows], labels[rows], metric=metric, epsilon=math.inf).value
            for rows in (slice(None), slice(12, None))
        )
        np.testing.assert_array_equal(all_rows, declared)


@pytest.mark.parametrize("delta", [0.0, DELTA])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_cross_validation_is_charged_once(delta, n_jobs):
    accountant = BudgetAccountant(30.0, delta, composition="basic")
    scores = private_cross_val_score(
        ObjPertLogReg(data_norm=3.0, classes=[0, 1]), X, Y, epsilon=30.0, delta=delta, accountant=accountant, cv=3,
        n_jobs=n_jobs,
    )  # fmt: skip
    assert scores.shape == (3,)
    # The noise of other processes has no seed.
    assert np.all((scores > (0.5 if n_jobs == 1 else -1.0)) & (scores <= 1.0))
    assert accountant.total() == (30.0, delta)
    (record,) = accountant.records
    assert len(record.cost.events) >= 3
    with pytest.raises(BudgetError):
        private_cross_val_score(ObjPertLogReg(data_norm=3.0, classes=[0, 1]), X, Y, accountant=accountant)


def test_cross_validation_of_few_records():
    for n in (0, 1, 3):
        assert private_cross_val_score(NoisyCount(), *records(n), cv=3).shape == (3,)
    with pytest.warns(PrivacyAssumptionWarning):
        private_cross_val_score(ObjPertLogReg(data_norm=3.0), X, Y, cv=3)
    with pytest.raises(ValueError, match="pass it to the search"):
        private_cross_val_score(NoisyCount(accountant=BudgetAccountant(1.0)), *records(3))


def test_cross_validation_of_an_estimator_whose_cost_is_not_known():
    accountant = BudgetAccountant(1.0, DELTA, composition="basic")
    assert len(private_cross_val_score(UnknownCost(), *records(3), delta=DELTA, accountant=accountant)) == 5
    assert accountant.total().epsilon <= 1
    assert accountant.total().delta <= DELTA


@pytest.mark.parametrize("delta", [0.0, DELTA])
def test_one_record_changes_the_table_of_folds_by_no_more_than_the_noise_is_made_for(delta, monkeypatch):
    X, y = records(40)
    y[:10] = 1
    tables = []

    def remember(self, value, stream):
        tables.append((np.array(value), self.sensitivity))
        return np.asarray(value, dtype=float)

    for kind in (DiscreteLaplaceMechanism, GaussianMechanism):
        monkeypatch.setattr(kind, "release", remember)
    weights = {"scoring": "balanced_accuracy", "label_weights": {0: 1.0, 1: 3.0}, "delta": delta, "random_state": 0}
    for data in ((X, y), (X[:-1], y[:-1]), (X[1:], y[1:])):
        private_cross_val_score(NoisyCount(), *data, **weights)
    tables = [(value, sensitivity) for value, sensitivity in tables if value.size == 12]
    (more, sensitivity), *fewer = tables
    assert len(fewer) == 2
    # The last record of one seed is in the same fold as ever; the first one moves all others to other folds.
    change = np.abs(more - fewer[0][0]).sum()
    assert 0.2 * sensitivity < change <= sensitivity
    assert abs(more.sum() - fewer[1][0].sum()) <= sensitivity


def test_no_fold_is_scored_by_a_model_that_has_seen_it(monkeypatch):
    seen = []
    fit = NoisyCount.fit

    def spy(self, X, y):
        fitted = fit(self, X, y)
        fitted.rows = set(X[:, 0].tolist())
        return fitted

    def predict(self, X):
        seen.append((self.rows, set(X[:, 0].tolist())))
        return np.zeros(len(X), dtype=int)

    monkeypatch.setattr(NoisyCount, "fit", spy)
    monkeypatch.setattr(NoisyCount, "predict", predict)
    X = np.arange(60.0)[:, None]
    private_cross_val_score(NoisyCount(), X, np.zeros(60, dtype=int), cv=3)
    folds = {}
    for trained, tested in seen:
        folds.setdefault(frozenset(trained), set()).update(tested)
    assert len(folds) == 3
    for trained, tested in folds.items():
        assert trained | tested == set(range(60))
        assert not trained & tested
    assert set.union(*folds.values()) == set(range(60))


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
def test_sparse_rows_of_any_format(form):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) * (rng.random((60, 2)) < 0.5)
    y = (X[:, 0] > 0).astype(int)
    public = LogisticRegression().fit(X, y)
    X[3, 0] = np.nan
    found = private_score(public, sparse.csr_matrix(X).asformat(form), y, epsilon=math.inf)
    assert found.counts.sum() == 60


def test_lists_of_text_are_refused_before_the_charge():
    """One record's text would make text of the numbers of all."""
    accountant = BudgetAccountant(1.0)
    encoder = OneHotEncoder(categories=[[0.0, 1.0]], handle_unknown="ignore")
    public = make_pipeline(encoder, LogisticRegression()).fit([[0.0], [1.0]], [0, 1])
    assert private_score(public, [[0.0], [1.0]], [0, 1], epsilon=math.inf).value == 1
    with pytest.raises(ValueError, match="numeric"):
        private_score(public, [[0.0], ["1"]], [0, 1], accountant=accountant)
    assert len(accountant) == 0


def judged():
    """Fitted models of the columns a and b, with rows and targets, and whether they select from wider tables."""
    frame = pd.DataFrame({"a": X[:100, 0], "b": np.where(X[:100, 1] > 0, "x", "y")})
    numbers, columns = pd.DataFrame(X[:100, :2], columns=["a", "b"]), {"a": Number(-5, 5), "b": Category(["x", "y"])}
    schema, of_numbers = Schema(columns, target=Category([0, 1])), Schema(columns, target=Number(-5, 5))
    encoded, alone = ObjPertLogReg(data_norm=2.0, classes=[0, 1]), ObjPertLogReg(data_norm=3.0, classes=[0, 1])
    named = ColumnTransformer([("a", "passthrough", ["a"]), ("b", "passthrough", slice("b", "b"))])
    for estimator, rows, target in [
        (DPAdditiveClassifier(schema=schema), frame, Y[:100]),
        (ObjPertLogReg(schema=schema), frame, Y[:100]),
        (make_pipeline(TableEncoder(schema), encoded), frame, Y[:100]),
        (DPAdditiveRegressor(schema=of_numbers), frame, X[:100, 0]),
        (DPGridSearchCV(ObjPertLogReg(schema=schema), {"C": [0.1, 1.0]}), frame, Y[:100]),
        (alone, numbers, Y[:100]),
        (make_pipeline("passthrough", BoundsScaler((-5, 5)), alone), numbers, Y[:100]),
        (LogisticRegression(), numbers, Y[:100]),
        (make_pipeline(named, LogisticRegression()), numbers, Y[:100]),
    ]:
        fitted = estimator.fit(rows, target)
        selects = isinstance(fitted, Pipeline) and isinstance(fitted[0], ColumnTransformer)
        yield fitted, rows, target, selects
    yield FrozenEstimator(make_pipeline("passthrough", fitted)), rows, target, True


def test_columns_that_do_not_fit_the_model_are_refused_before_the_charge():
    for fitted, rows, target, selects in judged():
        metric = "neg_mean_absolute_error" if is_regressor(fitted) else "accuracy"
        words = {"metric": metric, "epsilon": 30.0, "random_state": 0, "bounds_y": (-5, 5)}
        accountant = BudgetAccountant(100.0)
        for wrong in (
            rows.rename(columns={"a": "A"}),
            rows[["a"]],
            rows.to_numpy()[:, :1],
            np.hstack([rows.to_numpy()] * 2),
            rows.assign(c=1.0),
        ):
            if selects and "c" in getattr(wrong, "columns", []):
                # It takes its columns from a wider table.
                private_score(fitted, wrong, target, **words)
                continue
            with pytest.raises(ValueError, match=r"feature|column"):
                private_score(fitted, wrong, target, accountant=accountant, **words)
        if selects:
            # An array has no names, by which the steps find columns.
            with pytest.raises(ValueError, match=r"X has no names of columns"):
                private_score(fitted, rows.to_numpy(), target, accountant=accountant, **words)
        assert len(accountant) == 0
        assert private_score(fitted, rows, target, **words).value > (-1.5 if is_regressor(fitted) else 0.4)


def test_a_confusion_matrix_is_printed_with_the_error_of_each_count():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 2)), rng.choice(["no", "yes"], 500)
    model = ObjPertLogReg(data_norm=3.0, classes=["no", "yes"], random_state=0).fit(X, y)
    found = private_score(model, X, y, metric="confusion_matrix", random_state=0)
    head, *rows = repr(found).splitlines()[:3]
    assert head.split("  ")[0] == "true \\ predicted (± noise)"
    assert head.split()[-2:] == ["no", "yes"] == [row.split()[0] for row in rows]
    error = f"{found.standard_error[0, 0]:.3g}"
    assert [row.split()[1:] for row in rows] == [
        [str(first), "±", error, str(second), "±", error] for first, second in found.value.tolist()
    ]
    assert "standard error (noise)" in repr(private_score(model, X, y, random_state=0))


def test_refusals(model, regressor):
    for call, message in [
        (lambda: private_score(model, X, Y, metric="log_loss"), "metric"),
        (lambda: private_score(regressor, X, Y, metric="roc_auc"), "for classifiers"),
        (lambda: private_score(regressor, X, Y, metric="confusion_matrix"), "for classifiers"),
        (lambda: private_score(regressor, X, Y), "bounds_y must be given"),
        (
            lambda: private_score(regressor, X, Y, metric="accuracy"),
            "^metric='accuracy' is for classifiers, .*'neg_mean_squared_error'",
        ),
        (
            lambda: private_score(model, X, Y, metric="neg_mean_absolute_error", bounds_y=(0, 1)),
            "^metric='neg_mean_absolute_error' is for regressors, and ObjPertLogReg is a classifier.* to one of 'acc",
        ),
        (
            lambda: private_cross_val_score(model, X, Y, scoring="neg_mean_absolute_error"),
            "^scoring='neg_mean_absolute_error' is for regressors, .* Set scoring to one of 'acc",
        ),
        (lambda: private_score(model, X, Y[:-1]), "same number"),
        (lambda: private_score(clone(model), X, Y), "is not fitted yet"),
        (lambda: private_score(make_pipeline(BoundsScaler((-5, 5)), clone(model)), X, Y), "is not fitted yet"),
        (lambda: private_score(FrozenEstimator(clone(model)), X, Y), "is not fitted yet"),
        (lambda: private_score(model, X, Y, classes=[3, 4]), "classes holds none of the labels of the model"),
        (lambda: private_score(model, X, Y, metric="histogram", n_bins=1), "n_bins"),
        (lambda: private_score(model, X, Y, metric="balanced_accuracy", label_weights={0: 1}), "label_weights"),
        (lambda: private_cross_val_score(model, X, Y, cv=1), "cv"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


class Drawing(ClassifierMixin, BaseEstimator):
    """It draws labels from the global generators, and prints and logs a line for each call."""

    classes_ = np.array([0, 1])

    def fit(self, X, y=None):
        return self

    def predict(self, X):
        print("rows")
        logging.getLogger("drawing").error("rows")
        return np.random.randint(2, size=len(X)) ^ random.randrange(2)  # noqa: NPY002


@pytest.mark.parametrize("role", ["estimator", "baseline"])
def test_draws_of_a_model_do_not_show_the_number_of_rows(role, capsys, caplog, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.integers(2, size=40)
    constant = DummyClassifier(strategy="constant", constant=1).fit(X, y)
    models = {"estimator": Drawing()} if role == "estimator" else {"estimator": constant, "baseline": Drawing()}
    sums, later = [], []
    tally = _scoring.Score.tally
    monkeypatch.setattr(_scoring.Score, "tally", lambda *args: sums.append(tally(*args)) or sums[-1])
    for rows in (slice(0, None), slice(1, None)):
        np.random.seed(1)  # noqa: NPY002
        random.seed(1)
        private_score(X=X[rows], y=y[rows], classes=[0, 1], epsilon=1.0, random_state=0, **models)
        later.append((np.random.random(), random.random()))  # noqa: NPY002
    assert later[0] == later[1]
    # The first row counts as it does in each table, and no other row changes.
    assert np.abs(sums[0] - sums[1]).sum() <= 17 * _scoring.LEVELS / 16
    assert capsys.readouterr() == ("", "")
    assert not caplog.records


@pytest.mark.parametrize(
    "wrap", [lambda model: model, FrozenEstimator, lambda model: make_pipeline("passthrough", model)]
)
@pytest.mark.parametrize("role", ["estimator", "baseline"])
def test_a_model_with_a_generator_of_its_own_is_refused_before_the_charge(role, wrap):
    X, y = np.zeros((20, 1)), np.arange(20) % 2
    drawing = DummyClassifier(strategy="uniform", random_state=np.random.RandomState(0)).fit(X, y)
    accountant = BudgetAccountant(1.0)
    constant = DummyClassifier().fit(X, y)
    models = {"estimator": wrap(drawing)} if role == "estimator" else {"estimator": constant, "baseline": wrap(drawing)}
    with pytest.raises(ValueError, match=r"random_state of .* is a generator, whose later draws"):
        private_score(X=X, y=y, epsilon=1.0, accountant=accountant, **models)
    assert len(accountant) == 0
    drawing.set_params(random_state=0)
    private_score(X=X, y=y, epsilon=1.0, random_state=0, **models)

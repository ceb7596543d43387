"""Noisy histograms and the models on top: counts against NumPy's, sensitivity by brute force, post-processing."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skdp import (
    BoundsScaler,
    BudgetAccountant,
    DPNaiveBayes,
    HistogramClassifier,
    HistogramRegressor,
    NoisyHistogram,
    allocate,
)
from skdp.exceptions import PrivacyAssumptionWarning
from skdp.mechanisms import DiscreteLaplaceMechanism, GaussianMechanism
from skdp.solvers.target_range import LOCATION, RANGE
from skdp.synthetic import _base
from skdp.synthetic._base import COUNTS, default_bins, made_up_rows, postprocess_weights, threshold
from tests.statistics import accept, chi_square, chi_square_integers

INF = math.inf
BOX = {"bounds": (-4.0, 4.0), "n_bins": 6}
LABELS = {**BOX, "classes": [0, 1, 2]}


def data(n_rows=500, seed=0):
    """Three clusters in two columns, some of them beyond the bounds."""
    return make_blobs(n_rows, 2, centers=[(-2, 0), (2, 2), (3, -5)], random_state=seed)


def mixed(n_rows=300, seed=0):
    """Two numbers, and two columns of categories with a value that is none."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(4, size=n_rows), rng.uniform(size=(n_rows, 2)), rng.integers(2, size=n_rows)])
    return X, rng.integers(3, size=n_rows)


MIXED = {"bounds": (0, 1), "categorical_features": [0, 3], "n_categories": [3, 2], "n_bins": 4}


# --- known answers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_without_noise_counts_are_those_of_numpy(dtype):
    X, y = data()
    X = X.astype(dtype)
    clipped = np.column_stack([np.clip(X, -4, 4), y])
    edges = [np.linspace(-4, 4, 7)] * 2
    expected = np.histogramdd(clipped, [*edges, [-0.5, 0.5, 1.5, 2.5]])[0]
    histogram = NoisyHistogram(epsilon=INF, **LABELS).fit(X, y)
    np.testing.assert_array_equal(histogram.counts_, expected)
    np.testing.assert_array_equal(histogram.weights_, expected)
    np.testing.assert_array_equal(histogram.bin_edges_, edges)
    without = NoisyHistogram(epsilon=INF, **BOX).fit(X, y)
    np.testing.assert_array_equal(without.counts_, expected.sum(axis=2))
    target = NoisyHistogram(epsilon=INF, **BOX, bounds_y=(0, 2), n_bins_y=5).fit(X, y)
    expected = np.histogramdd(clipped, [*edges, np.linspace(0, 2, 6)])[0]
    np.testing.assert_array_equal(target.counts_, expected)


def test_axes_are_in_the_order_of_the_columns_whatever_they_hold():
    X, y = mixed()
    edges = [0, 0.2, 0.9, 1]
    histogram = NoisyHistogram(epsilon=INF, classes=[0, 1, 2], bin_edges={1: edges}, **MIXED).fit(X, y)
    known = X[:, 0] < 3
    values = np.column_stack([X, y])[known]
    grid = [np.arange(4) - 0.5, edges, np.linspace(0, 1, 5), np.arange(3) - 0.5, np.arange(4) - 0.5]
    np.testing.assert_array_equal(histogram.counts_, np.histogramdd(values, grid)[0])
    assert histogram.bin_edges_[0] is histogram.bin_edges_[3] is None
    np.testing.assert_array_equal(histogram.bin_edges_[1], edges)
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = clone(histogram).set_params(categorical_features=["a", "d"], bin_edges={"b": edges}).fit(frame, y)
    np.testing.assert_array_equal(named.counts_, histogram.counts_)
    assert named.feature_names_in_.tolist() == list("abcd")


def test_blocks_and_order_of_rows_do_not_matter(monkeypatch):
    X, y = data()
    whole = NoisyHistogram(epsilon=INF, **LABELS).fit(X, y).counts_
    order = np.random.default_rng(0).permutation(len(y))
    np.testing.assert_array_equal(NoisyHistogram(epsilon=INF, **LABELS).fit(X[order], y[order]).counts_, whole)
    monkeypatch.setattr("skdp.synthetic._base._LEAST_ROWS", 7)
    np.testing.assert_array_equal(NoisyHistogram(epsilon=INF, **LABELS).fit(X, y).counts_, whole)


def test_rows_with_unknown_categories_or_labels_count_nowhere():
    X, y = mixed()
    histogram = NoisyHistogram(epsilon=INF, classes=[0, 1], **MIXED).fit(X, y)
    assert histogram.counts_.sum() == np.sum((X[:, 0] < 3) & (y < 2))
    for odd in (-1, 0.5, 3, 1e300, -1e300):
        one = np.array([[odd, 0.5, 0.5, 0.0]])
        assert NoisyHistogram(epsilon=INF, **MIXED).fit(one).counts_.sum() == 0


def test_model_is_the_one_fitted_to_binned_rows():
    X, y = data()
    middle = np.clip(np.floor((np.clip(X, -4, 4) + 4) / (8 / 6)), 0, 5) * 8 / 6 - 4 + 4 / 6
    weighted = HistogramClassifier(LogisticRegression(tol=1e-10), epsilon=INF, **LABELS).fit(X, y)
    plain = LogisticRegression(tol=1e-10).fit(middle, y)
    np.testing.assert_allclose(weighted.predict_proba(X), plain.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(weighted.decision_function(X), plain.decision_function(X), atol=1e-4)
    target = X[:, 0] + y
    binned = np.clip(np.floor((np.clip(target, -4, 6) + 4) / (10 / 8)), 0, 7) * 10 / 8 - 4 + 10 / 16
    regressor = HistogramRegressor(Ridge(2.0), epsilon=INF, **BOX, bounds_y=(-4, 6), n_bins_y=8).fit(X, target)
    # Predictions are within the bounds.
    expected = np.clip(Ridge(2.0).fit(middle, binned).predict(X), -4, 6)
    np.testing.assert_allclose(regressor.predict(X), expected)


def test_default_models_scale_numbers_and_encode_categories():
    X, y = mixed()
    model = HistogramClassifier(epsilon=INF, classes=[0, 1, 2], **MIXED).fit(X, y)
    one_hot = OneHotEncoder(categories=[[0, 1, 2], [0, 1]], handle_unknown="ignore")
    own = make_pipeline(
        ColumnTransformer([("c", one_hot, [0, 3])], remainder=StandardScaler()),
        LogisticRegression(max_iter=1000),
    )
    rows, labels, weights = model.cells()
    own.fit(rows, labels, logisticregression__sample_weight=weights)
    np.testing.assert_allclose(model.predict_proba(X), own.predict_proba(X))
    assert isinstance(HistogramRegressor(**BOX, bounds_y=(0, 1)).fit(*data()).estimator_[-1], LinearRegression)


# --- sensitivity ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["none", "labels", "number"])
def test_one_record_moves_one_count_by_one(target):
    X, y = mixed(40)
    more = {"none": {}, "labels": {"classes": [0, 1, 2]}, "number": {"bounds_y": (0, 2), "n_bins_y": 3}}[target]
    model = NoisyHistogram(epsilon=INF, **MIXED, **more)
    moved = set()
    for i in range(len(X)):
        rest = np.delete(np.arange(len(X)), i)
        difference = model.fit(X, y).counts_ - model.fit(X[rest], y[rest]).counts_
        assert np.count_nonzero(difference) <= 1
        moved.add(float(np.abs(difference).sum()))
    assert moved == {0.0, 1.0}
    for delta in (0.0, 1e-5):
        claim = clone(model).set_params(epsilon=1.0, delta=delta).privacy_plan(n_features=4).releases[0].sensitivity
        assert claim == pytest.approx(1.0, rel=1e-12)
        assert claim >= 1


def test_pure_noise_is_discrete_laplace_of_scale_one_over_epsilon():
    noise = NoisyHistogram(epsilon=0.7, bounds=(0, 1), n_bins=100, random_state=1).fit(np.empty((0, 2))).counts_
    assert np.array_equal(noise, np.rint(noise))
    q = math.exp(-0.7)
    sample = noise.ravel().astype(int)
    accept(chi_square_integers(sample, lambda k: (1 - q) / (1 + q) * q ** abs(k), -8, 8), "noise of counts")


def test_gaussian_noise_has_the_stated_size():
    model = NoisyHistogram(epsilon=1.0, delta=1e-5, bounds=(0, 1), n_bins=100, random_state=1).fit(np.empty((0, 2)))
    noise = model.counts_.ravel() / model.privacy_.releases[0].mechanism.scale
    accept(stats.kstest(noise, "norm").pvalue, "noise of counts")
    assert model.privacy_.releases[0].mechanism.scale == pytest.approx(3.7306, rel=1e-3)


# --- post-processing -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanism", [DiscreteLaplaceMechanism(0.3, 1.0, 4096), GaussianMechanism(0.3, 1.0, 4096)], ids=["pure", "gaussian"]
)
def test_threshold_lets_as_few_empty_cells_pass_as_it_says(mechanism):
    rng = np.random.default_rng(0)
    n, trials = 4096, 200
    shape = (trials, n)
    if mechanism.name == "Gaussian":
        noise = mechanism.scale * rng.standard_normal(shape)
    else:
        q = math.exp(-1 / mechanism.scale)
        noise = (rng.geometric(1 - q, shape) - rng.geometric(1 - q, shape)).astype(float)
    passed = np.mean((noise > threshold(n, mechanism)).sum(axis=1))
    assert passed == pytest.approx(n**0.3 / 2, rel=0.2)


def test_threshold_is_near_its_probability_for_integers():
    for epsilon, least, most in ((0.1, 0.95, 1.05), (1.0, 0.5, 1.5), (5.0, 0.0, 2.0)):
        mechanism = DiscreteLaplaceMechanism(epsilon, 1.0, 1)
        for n_cells in range(2, 20_000, 7):
            first = math.floor(threshold(n_cells, mechanism)) + 1
            passing = math.exp(-first / mechanism.scale) / (1 + math.exp(-1 / mechanism.scale))
            assert least < passing / (0.5 * n_cells**-0.7) < most


def test_weights_keep_the_sum_and_are_not_negative():
    rng = np.random.default_rng(0)
    counts = np.where(rng.random(1000) < 0.05, 300.0, 0.0) + rng.integers(-9, 10, size=1000)
    mechanism = DiscreteLaplaceMechanism(1.0, 1.0, 1000)
    weights = postprocess_weights(counts, mechanism)
    assert np.all(weights >= 0)
    assert weights.sum() == pytest.approx(counts.sum())
    assert set(np.flatnonzero(weights)) == set(np.flatnonzero(counts > threshold(1000, mechanism)))
    assert not postprocess_weights(-np.ones(10), mechanism).any()
    assert not postprocess_weights(np.array([-500.0, 30.0]), mechanism).any()


def test_synthetic_rows_follow_the_weights_and_fill_their_bins():
    X, y = mixed(2000)
    model = NoisyHistogram(epsilon=INF, classes=[0, 1, 2], **MIXED).fit(X, y)
    rows, labels = model.sample(40_000, random_state=0)
    again = NoisyHistogram(epsilon=INF, classes=[0, 1, 2], **MIXED).fit(rows, labels)
    accept(chi_square(again.counts_.ravel(), model.weights_.ravel() / model.weights_.sum()), "drawn cells")
    accept(stats.kstest((rows[:, 1] * 4) % 1, "uniform").pvalue, "points within bins")
    same, _ = model.sample(40_000, random_state=0)
    np.testing.assert_array_equal(rows, same)
    assert np.any(model.sample(50)[0] != model.sample(50)[0])


def test_cells_stand_for_what_was_counted():
    X, y = data()
    model = NoisyHistogram(epsilon=INF, bounds=(-4, 4), n_bins=6, classes=list("abc")).fit(X, np.array(list("abc"))[y])
    rows, labels, weights = model.cells()
    assert weights.sum() == len(X)
    assert np.all(weights > 0)
    again = clone(model).fit(np.repeat(rows, weights.astype(int), axis=0), np.repeat(labels, weights.astype(int)))
    np.testing.assert_array_equal(again.counts_, model.counts_)
    assert NoisyHistogram(**BOX).fit(X).cells()[1] is None
    assert NoisyHistogram(**BOX).fit(X).sample(3)[1] is None


def test_a_histogram_of_nothing_but_noise_still_makes_data_and_models():
    empty = np.empty((0, 2)), np.empty(0)
    for seed in range(10):
        classifier = HistogramClassifier(**LABELS, random_state=seed).fit(*empty)
        assert set(classifier.estimator_.classes_) == {0, 1, 2}
        assert np.isfinite(classifier.predict_proba([[0.0, 0.0]])).all()
        regressor = HistogramRegressor(**BOX, bounds_y=(0, 1), random_state=seed).fit(*empty)
        assert np.isfinite(regressor.predict([[0.0, 0.0]])).all()
    nothing = NoisyHistogram(epsilon=INF, **BOX).fit(empty[0])
    assert len(nothing.cells()[0]) == 0
    assert np.abs(nothing.sample(1000)[0]).max() <= 4


def test_a_label_without_cells_is_known_and_rare():
    X, _ = data()
    model = HistogramClassifier(LogisticRegression(), epsilon=INF, **LABELS).fit(X, np.ones(len(X), dtype=int))
    assert model.estimator_.classes_.tolist() == [0, 1, 2]
    assert np.all(model.predict_proba(X)[:, 1] > 0.98)


class Keeper(LogisticRegression):
    """Keeps what it was fitted to."""

    def fit(self, X, y, sample_weight=None):
        self.seen_ = X, y, sample_weight
        return super().fit(X, y, sample_weight)


def test_labels_without_cells_get_one_record_each_on_distinct_places():
    X, _ = data()
    y = np.arange(len(X)) % 3
    declared = range(10)
    model = HistogramClassifier(Keeper(max_iter=5000), epsilon=INF, **BOX, classes=declared).fit(X, y)
    rows, labels, weights = model.estimator_.seen_
    places = model.weights_.sum(axis=2)
    assert len(rows) == np.count_nonzero(model.weights_) + 7 * np.count_nonzero(places)
    assert len(rows) <= model.counts_.size
    assert weights.sum() == pytest.approx(len(X) + 7)
    for label in range(3, 10):
        own = labels == label
        assert len(np.unique(rows[own], axis=0)) == own.sum()
        # Spread as all records are.
        again = NoisyHistogram(epsilon=INF, **BOX).fit(rows[own]).counts_
        np.testing.assert_array_equal(again, places > 0)
        np.testing.assert_allclose(weights[own], places[places > 0] / len(X))


# --- the grid --------------------------------------------------------------------------------------------------------


def test_number_of_bins_follows_public_numbers():
    X, y = data(50)
    shapes = {len(X[:n]): HistogramClassifier(bounds=(-4, 4), classes=[0, 1, 2]).fit(X[:n], y[:n]).counts_.shape
              for n in (0, 7, 50)}  # fmt: skip
    assert len(set(shapes.values())) == 1
    plain = {"noise": math.sqrt(2), "n_axes": 2, "fixed": 1}
    assert default_bins(10_000, **plain) > default_bins(1000, **plain) > default_bins(10, **plain) == 2
    assert default_bins(10_000, math.sqrt(2), 2, 1) > default_bins(10_000, 14.0, 2, 1)
    assert default_bins(10_000, math.sqrt(2), 2, 1) > default_bins(10_000, math.sqrt(2), 4, 1)
    assert default_bins(10_000, math.sqrt(2), 2, 1) > default_bins(10_000, math.sqrt(2), 2, 50)
    for n_axes in range(1, 12):
        bins = default_bins(10_000, math.sqrt(2), n_axes, 1)
        assert bins == 2 or bins**n_axes <= 5000
    assert NoisyHistogram(bounds=(0, 1), rows_per_group=10).fit(X, groups=np.arange(50)).counts_.size < (
        NoisyHistogram(bounds=(0, 1)).fit(X).counts_.size
    )
    assert HistogramRegressor(bounds=(0, 1), bounds_y=(0, 1), n_bins=3).fit(X, y).counts_.shape == (3, 3, 3)
    assert HistogramRegressor(bounds=(0, 1), bounds_y=(0, 1), n_bins_y=3).fit(X, y).counts_.shape[-1] == 3


@pytest.mark.parametrize("n_features", [21, 60])
def test_too_many_cells_are_refused_before_anything_is_spent(n_features):
    accountant = BudgetAccountant(1.0)
    X = np.zeros((5, n_features))
    for model, y in (
        (NoisyHistogram(bounds=(0, 1), accountant=accountant), None),
        (HistogramClassifier(bounds=(0, 1), classes=[0, 1], accountant=accountant), np.zeros(5)),
        (NoisyHistogram(categorical_features=range(n_features), n_categories=1, accountant=accountant), None),
    ):
        if model.bounds is None and n_features <= 32:
            continue
        with pytest.raises(ValueError, match="fewer columns"):
            model.fit(X, y)
        with pytest.raises(ValueError, match="fewer columns"):
            model.privacy_plan(n_features=n_features)
        with pytest.raises(NotFittedError):
            model.cells()
    assert len(accountant) == 0


@pytest.mark.parametrize(
    ("parameters", "error", "match"),
    [
        ({"n_bins": 1}, ValueError, "n_bins"),
        ({"n_bins": 2.0}, TypeError, "n_bins"),
        ({"n_bins": 10**7}, ValueError, "n_bins"),
        ({"bounds_y": (0, 1)}, ValueError, "only one"),
        ({"classes": None, "bounds_y": ([0, 0], [1, 1])}, ValueError, "bounds_y"),
        ({"classes": None, "bounds_y": (0, 1), "n_bins_y": 0}, ValueError, "n_bins_y"),
        ({"expected_n": 0}, ValueError, "expected_n"),
        ({"bounds": None}, ValueError, "bounds"),
        ({"categorical_features": [0]}, ValueError, "n_categories"),
    ],
    ids=str,
)
def test_bad_parameters(parameters, error, match):
    accountant = BudgetAccountant(5.0)
    model = NoisyHistogram(**{**LABELS, **parameters}, accountant=accountant)
    with pytest.raises(error, match=match):
        model.fit(*data())
    assert len(accountant) == 0


def test_targets_have_one_column():
    X, y = data()
    with pytest.raises(ValueError, match="1d") as failure:
        HistogramRegressor(**BOX, bounds_y=(0, 2)).fit(X, np.column_stack([y, y]))
    assert "500" not in str(failure.value)
    with pytest.raises(ValueError, match="bounds_y"):
        HistogramRegressor(**BOX).fit(X, y)
    for model in (NoisyHistogram(**LABELS), NoisyHistogram(**BOX, bounds_y=(0, 2))):
        with pytest.raises(ValueError, match="y must be given"):
            model.fit(X)


def test_narrow_types_of_targets_find_their_cells():
    y = np.array([-1.0, 1.0], dtype=np.float32)
    model = HistogramRegressor(epsilon=INF, bounds=(0, 1), n_bins=2, n_bins_y=2, bounds_y=(-1e100, 1e100))
    assert model.fit(np.zeros((2, 1)), y).counts_.tolist() == [[0, 2], [0, 0]]


# --- models ----------------------------------------------------------------------------------------------------------


def test_models_without_weights_are_fitted_to_synthetic_rows():
    X, y = data(3000)
    accountant = BudgetAccountant(10.0)
    model = HistogramClassifier(KNeighborsClassifier(), **LABELS, accountant=accountant)
    with pytest.raises(TypeError, match=r"NoisyHistogram\.sample"):
        model.fit(X, y)
    assert len(accountant) == 0
    histogram = NoisyHistogram(**LABELS, accountant=accountant).fit(X, y)
    rows, labels = histogram.sample(2000)
    search = GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2, 4]}, cv=3).fit(rows, labels)
    assert search.score(X, y) > 0.9
    assert search.best_params_["max_depth"] > 1
    # The search costs nothing more.
    assert accountant.total() == (1.0, 0.0)


def test_pipelines_hand_weights_to_their_last_step():
    X, y = data(3000)
    tree = HistogramClassifier(
        make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3, random_state=0)), **LABELS, random_state=0
    ).fit(X, y)
    rows, labels, weights = tree.cells()
    own = DecisionTreeClassifier(max_depth=3, random_state=0).fit(
        StandardScaler().fit_transform(rows), labels, sample_weight=weights
    )
    np.testing.assert_array_equal(own.tree_.value, tree.estimator_[-1].tree_.value)
    with pytest.raises(TypeError, match="sample_weight"):
        HistogramClassifier(make_pipeline(StandardScaler(), KNeighborsClassifier()), **LABELS).fit(X, y)
    with pytest.raises(TypeError, match="sample_weight"):
        HistogramClassifier(make_pipeline(StandardScaler(), "passthrough"), **LABELS).fit(X, y)
    with config_context(enable_metadata_routing=True):
        steps = make_pipeline(StandardScaler(), Ridge().set_fit_request(sample_weight=True))
        steps[0].set_fit_request(sample_weight=True)
        routed = HistogramRegressor(steps, **BOX, bounds_y=(0, 2)).fit(X, y)
        assert routed.score(X, y) > 0
        # The default needs no requests.
        assert HistogramClassifier(**LABELS).fit(X, y).score(X, y) > 0.8


def test_methods_are_those_of_the_model():
    model = HistogramClassifier(LinearSVC(), **LABELS)
    assert hasattr(model, "decision_function")
    assert not hasattr(model, "predict_proba")
    model.fit(*data())
    assert not hasattr(model, "predict_log_proba")
    forest = HistogramRegressor(RandomForestRegressor(5, random_state=0), **BOX, bounds_y=(0, 2))
    assert not hasattr(forest, "predict_proba")
    assert forest.fit(*data(5000)).score(*data(1000, 1)) > 0.5


def test_bad_models_cost_nothing():
    X, y = data()
    accountant = BudgetAccountant(1.0)
    inner = make_pipeline(DPNaiveBayes(bounds=(0, 1), accountant=accountant))
    for estimator, error, match in (
        (LogisticRegression, TypeError, "instance"),
        ("logistic", TypeError, "instance"),
        (inner, ValueError, "accountant"),
        (DPNaiveBayes(bounds=(0, 1)), ValueError, "sample_weight"),
    ):
        with pytest.raises(error, match=match):
            HistogramClassifier(estimator, **LABELS, accountant=accountant).fit(X, y)
    assert len(accountant) == 0


def test_models_that_cannot_be_fitted_cost_nothing():
    X, y = data()
    accountant = BudgetAccountant(1.0)
    parameters = {**LABELS, "accountant": accountant}
    for estimator, match in (
        (LogisticRegression(C=-1.0), "C"),
        (make_pipeline(StandardScaler(), LogisticRegression(penalty="l1", solver="lbfgs", l1_ratio=1.0)), "lbfgs"),
        (make_pipeline(PCA(7), LogisticRegression()), "n_components"),
    ):
        with pytest.raises(ValueError, match=match) as failure:
            HistogramClassifier(estimator, **parameters).fit(X, y)
        assert "nothing has been spent" in failure.value.__notes__[0]
    with pytest.raises(ValueError, match="alpha"):
        HistogramRegressor(Ridge(-1.0), **BOX, bounds_y=(0, 2), accountant=accountant).fit(X, y)
    with config_context(enable_metadata_routing=True), pytest.raises(ValueError, match="requested"):
        HistogramClassifier(make_pipeline(StandardScaler(), LogisticRegression()), **parameters).fit(X, y)
    assert len(accountant) == 0


@pytest.mark.parametrize("shape", [{"n_bins": 2}, {"n_bins": 6}, {"n_bins": 40}], ids=str)
def test_rehearsals_do_not_refuse_what_can_be_fitted(shape):
    X, y = data(20_000)
    parameters = {"bounds": (-4, 4), "epsilon": 100.0, **shape}
    selection = SelectFromModel(LogisticRegression(l1_ratio=1, solver="saga", C=10.0, max_iter=5000))
    estimators = [
        make_pipeline(selection, LogisticRegression(max_iter=5000)),
        make_pipeline(KBinsDiscretizer(4, encode="onehot-dense"), DecisionTreeClassifier()),
        CalibratedClassifierCV(GaussianNB(), cv=2),
        make_pipeline(KMeans(3 if shape["n_bins"] == 2 else 25, random_state=0), LogisticRegression(max_iter=5000)),
    ]
    for estimator in estimators:
        model = HistogramClassifier(estimator, **parameters, classes=[0, 1, 2])
        with warnings.catch_warnings():
            # Of the model, about released data.
            warnings.simplefilter("ignore")
            assert model.fit(X, y).predict(X[:3]).shape == (3,)
    forest = HistogramRegressor(RandomForestRegressor(5, max_leaf_nodes=50), **parameters, bounds_y=(0, 2), n_bins_y=50)
    assert forest.fit(X, y).predict(X[:3]).shape == (3,)


@pytest.mark.parametrize("n_classes", [2, 3, 300])
def test_rehearsals_have_rows_of_every_label_and_few_of_them(n_classes):
    for parameters in (
        {"bounds": (0, 1), "n_bins": 2},
        {"bounds": (0, 1), "n_bins": 30},
        {"categorical_features": [0, 1], "n_categories": 1},
    ):
        histogram = NoisyHistogram(**parameters, classes=range(n_classes)).fit(np.empty((0, 2)), [])
        rows = made_up_rows(histogram._axes)
        np.testing.assert_array_equal(rows, made_up_rows(histogram._axes))
        assert np.unique(rows[:, 2]).tolist() == list(range(n_classes))
        assert np.ptp(np.bincount(rows[:, 2].astype(int))) == 0
        assert len(rows) <= max(200, 10 * n_classes) + 2 * n_classes
        assert rows[:, :2].min() >= 0
        assert rows[:, :2].max() <= 1
        if "bounds" in parameters and n_classes == 2:
            assert np.corrcoef(rows.T)[2, :2].min() > 0


def test_callbacks_hear_of_the_fit_alone():
    if not hasattr(LogisticRegression, "set_callbacks"):
        pytest.skip("this version of scikit-learn has no callbacks")
    from sklearn.callback import ScoringMonitor

    X, y = data()
    monitor = ScoringMonitor(scoring="accuracy")
    inner = LogisticRegression().set_callbacks(monitor)
    for estimator in (inner, make_pipeline(StandardScaler(), inner)):
        HistogramClassifier(estimator, **LABELS).fit(X, y)
    assert len(monitor.get_logs(select="all")) == 2


def test_warnings_of_the_model_are_about_released_data_and_are_shown():
    with pytest.warns(ConvergenceWarning):
        HistogramClassifier(LogisticRegression(max_iter=1), **LABELS).fit(*data())


def test_the_model_sees_no_more_than_the_release(monkeypatch):
    X, y = data()
    seen = []

    class Spy(Ridge):
        def fit(self, X, y, sample_weight=None):
            seen.append((X, y, sample_weight))
            return super().fit(X, y, sample_weight)

    model = HistogramRegressor(Spy(), **BOX, bounds_y=(0, 2), random_state=0)
    fixed = {RANGE: np.zeros(1), LOCATION: np.zeros(4), COUNTS: np.arange(216.0)}
    monkeypatch.setattr(_base.ReleaseSession, "release", lambda self, label, value: fixed[label].copy())
    for n_rows in (0, 500):
        model.fit(X[:n_rows], y[:n_rows])
    # A rehearsal and a fit, twice.
    for one, other in zip(seen[:2], seen[2:], strict=True):
        for one_array, other_array in zip(one, other, strict=True):
            np.testing.assert_array_equal(one_array, other_array)
    assert seen[0][0].shape != seen[1][0].shape


def test_pipelines_searches_and_allocation_charge_the_histogram_alone():
    X, y = data(2000)
    accountant = BudgetAccountant(100.0)
    model = make_pipeline(
        BoundsScaler((-6, 6)), HistogramClassifier(DecisionTreeClassifier(), bounds=(-1, 1), classes=[0, 1, 2])
    )
    allocation = allocate(model, epsilon=3.0, accountant=accountant)
    assert list(allocation) == ["histogramclassifier"]
    assert allocation.not_private == ()
    assert model.fit(X, y).score(X, y) > 0.85
    assert accountant.total() == (3.0, 0.0)
    grid = {"histogramclassifier__estimator__max_depth": [2, 3], "histogramclassifier__n_bins": [4]}
    search = GridSearchCV(model.set_params(histogramclassifier__epsilon=1.0), grid, cv=2)
    with pytest.warns(PrivacyAssumptionWarning, match="cross-validation of scikit-learn"):
        search.fit(X, y)
    assert len(accountant) == 1 + 2 * 2 + 1
    assert accountant.total() == (8.0, 0.0)

"""SampleAggregate: known answers, sensitivity, what a block cannot do, and templates.

Tests of laws refuse a right one with probability 1e-6.
"""

import itertools
import math
import warnings

import numpy as np
import pytest
from scipy import special, stats
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import make_regression
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    BayesianRidge,
    ElasticNet,
    GammaRegressor,
    HuberRegressor,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    RidgeCV,
    SGDClassifier,
    TheilSenRegressor,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, LinearSVR
from sklearn.tree import DecisionTreeRegressor

from skdp import BudgetAccountant, SampleAggregate, allocate
from skdp.accounting import gaussian_mu
from skdp.ensemble._results import Region, block_result, cell_scores, made_up_rows
from skdp.ensemble._sample_aggregate import MEDIAN, SUM
from skdp.mechanisms import NoiseSource
from skdp.release.blocks import block_labels
from tests.ensemble.adversaries import MARK, Panic
from tests.linear_model.data import blobs
from tests.statistics import FALSE_ALARM

INF = math.inf


def regression(n_rows=400, n_features=3, noise=1.0):
    return make_regression(n_rows, n_features, noise=noise, random_state=0)


def model_of(estimator=None, **parameters):
    defaults = {"bounds": (-200, 200), "epsilon": INF, "n_blocks": 5, "random_state": 4}
    return SampleAggregate(LinearRegression() if estimator is None else estimator, **{**defaults, **parameters})


def blocks_of(n_rows, n_blocks=5, seed=4):
    labels = block_labels(n_rows, n_blocks, NoiseSource(seed).stream("blocks"))
    return [labels == b for b in range(n_blocks)]


# --- known answers ------------------------------------------------------------------------------------------------


def test_without_noise_it_is_the_mean_over_blocks():
    X, y = regression()
    model = model_of().fit(X, y)
    found = [LinearRegression().fit(X[b], y[b]) for b in blocks_of(len(X))]
    np.testing.assert_allclose(model.estimator_.coef_, np.mean([m.coef_ for m in found], axis=0), atol=1e-3)
    np.testing.assert_allclose(model.estimator_.intercept_, np.mean([m.intercept_ for m in found]), atol=1e-3)
    np.testing.assert_array_equal(model.result_, [*model.estimator_.coef_, model.estimator_.intercept_])
    np.testing.assert_allclose(model.predict(X), X @ model.estimator_.coef_ + model.estimator_.intercept_)
    assert model.score(X, y) == pytest.approx(LinearRegression().fit(X, y).score(X, y), abs=1e-3)


def test_without_noise_it_is_the_median_over_blocks():
    X, y = regression(noise=30.0)
    model = model_of(aggregator="median", grid_size=2**14).fit(X, y)
    found = [LinearRegression().fit(X[b], y[b]).coef_ for b in blocks_of(len(X))]
    np.testing.assert_allclose(model.estimator_.coef_, np.median(found, axis=0), atol=400 / 2**14)


def test_classifiers_keep_their_labels():
    X, y = blobs(3, 600, 4, 0)
    labels = np.array(["ash", "beech", "cedar"])[y]
    model = model_of(LogisticRegression(), bounds=(-20, 20), classes=["cedar", "ash", "beech"]).fit(X, labels)
    assert is_classifier(model)
    assert model.classes_.tolist() == model.estimator_.classes_.tolist() == ["ash", "beech", "cedar"]
    plain = LogisticRegression().fit(X, labels)
    assert model.score(X, labels) >= plain.score(X, labels) - 0.02
    assert model.predict_proba(X).shape == model.decision_function(X).shape == (600, 3)


def test_several_targets():
    X, y = make_regression(400, 3, n_targets=2, noise=1.0, random_state=0)
    model = model_of().fit(X, y)
    assert model.estimator_.coef_.shape == (2, 3)
    assert model.predict(X).shape == (400, 2)
    assert model.privacy_ == model.privacy_plan(n_features=3, n_targets=2)
    single = model_of().fit(X, y[:, :1])
    assert single.estimator_.coef_.shape == (1, 3)
    assert single.privacy_ == model.privacy_plan(n_features=3)


@pytest.mark.parametrize("statistic", [np.mean, lambda X: X.mean(axis=0), np.cov], ids=["number", "vector", "matrix"])
def test_statistics(statistic):
    X, _ = regression(n_rows=50)
    X = X[:, :1] if statistic is np.cov else X
    if statistic is np.cov:

        def statistic(X):
            return np.cov(X[:, 0], X[:, 0] ** 2)

    model = model_of(statistic, bounds=(-5, 5)).fit(X)
    expected = np.mean([np.ravel(statistic(X[b])) for b in blocks_of(len(X))], axis=0)
    np.testing.assert_allclose(model.result_, expected, atol=1e-4)
    assert model.estimator_ is None
    assert not hasattr(model, "predict")
    assert not is_classifier(model)
    assert not is_regressor(model)
    assert model.privacy_ == model.privacy_plan(n_features=X.shape[1])


def test_other_attributes():
    X, y = blobs(2, 900, 4, 0)
    bounds = {"theta_": (-4, 4), "var_": (0.01, 4), "class_prior_": (0, 1)}
    model = model_of(GaussianNB(), attributes=tuple(bounds), bounds=bounds, classes=[0, 1]).fit(X, y)
    np.testing.assert_allclose(model.estimator_.theta_, GaussianNB().fit(X, y).theta_, atol=0.05)
    assert model.score(X, y) >= GaussianNB().fit(X, y).score(X, y) - 0.02


def test_an_intercept_that_is_not_fitted_costs_nothing():
    X, y = regression()
    assert len(model_of(Ridge(fit_intercept=False)).fit(X, y).result_) == 3


def test_bounds_for_each_number():
    X, y = regression()
    bounds = {"coef_": ([-1, 0, -3], [1, 2, -1]), "intercept_": (0, 1)}
    model = model_of(bounds=bounds, epsilon=1.0).fit(X, y)
    assert np.all(model.result_ >= [-1, 0, -3, 0])
    assert np.all(model.result_ <= [1, 2, -1, 1])
    ball = model_of(bounds=None, radius=0.5, epsilon=1.0).fit(X, y)
    assert np.linalg.norm(ball.result_) <= 0.5 * (1 + 1e-9)


@pytest.mark.parametrize(("delta", "bounded"), [(0.0, False), (1e-5, True)])
def test_law_of_the_median(delta, bounded):
    # Three blocks say the first cell of two, two the second.
    counts = np.array([[3.0, 2.0]])
    model = model_of(lambda X: 0.0, aggregator="median", grid_size=2, epsilon=2.0, delta=delta)
    (release,) = model.privacy_plan(n_features=1).releases
    stream = NoiseSource(0).stream("x")
    second = sum(release.mechanism.release(cell_scores(counts), stream)[0] for _ in range(3000))
    # The scores are 0 and -1/2, of range 2.
    e = math.exp(-release.mechanism.epsilon / 4)
    law = e / (1 + e) if bounded else e / 2
    assert stats.binomtest(int(second), 3000, law).pvalue > FALSE_ALARM


@pytest.mark.parametrize("p", [1, 2, 7, 60])
def test_numbers_share_the_budget_of_a_median(p):
    def plan_of(delta):
        return model_of(lambda X: np.zeros(p), aggregator="median", epsilon=2.0, delta=delta).privacy_plan(n_features=1)

    (release,) = plan_of(0.0).releases
    assert 1.999 <= p * release.mechanism.epsilon <= 2.0
    plan = plan_of(1e-5)
    (release,) = plan.releases
    # An epsilon-bounded-range choice has the mu of epsilon / 2 in pure privacy.
    each = 2 * stats.norm.ppf(special.expit(release.mechanism.epsilon / 2))
    mu = gaussian_mu(2.0, 1e-5)
    assert 0.999 * mu <= math.sqrt(p) * each <= mu
    assert plan.cost.mu() == pytest.approx(mu)


# --- sensitivity --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ball", [False, True])
@pytest.mark.parametrize("p", [1, 2, 7, 60])
def test_one_block_moves_the_sum_as_far_as_claimed_and_no_further(p, ball):
    rng = np.random.default_rng(0)
    region = Region(rng.normal(size=p), rng.uniform(1, 3, size=1 if ball else p) * np.ones(p), ball)
    wild = [10.0 ** rng.integers(-5, 5) * rng.normal(size=p) for _ in range(300)]
    wild += [np.full(p, value) for value in (0.0, 1e-320, 1e308, -1e308)]
    far = 1e6 * np.ones(p)
    pairs = [*itertools.pairwise(wild), (far, -far)]
    moves = [(region.steps(one) - region.steps(other)) * 2.0**-20 for one, other in pairs]
    lengths = [np.linalg.norm(move) for move in moves]
    assert max(lengths) <= region.l2
    assert lengths[-1] >= 0.999 * region.l2


def test_one_block_moves_scores_as_far_as_claimed_and_no_further():
    rng = np.random.default_rng(0)
    widest = 0.0
    for _ in range(3000):
        q, cells = rng.integers(1, 9), rng.integers(2, 7)
        places = rng.integers(cells, size=q)
        other = places.copy()
        other[0] = rng.integers(cells)
        one, two = (cell_scores(np.bincount(p, minlength=cells)[None].astype(float)) for p in (places, other))
        assert one.max() == 0
        assert np.abs(one - two).max() <= 1
        widest = max(widest, np.ptp(one - two))
    # From one end to the other, past the median.
    assert widest == 2


class Turncoat(RegressorMixin, BaseEstimator):
    """Finds 1e9, or -1e9 if a marked record is in the block."""

    def fit(self, X, y):
        self.coef_ = np.full(X.shape[1], -1e9 if np.any(X == MARK) else 1e9)
        self.intercept_ = 0.0
        return self


@pytest.mark.parametrize("aggregator", ["mean", "median"])
def test_a_record_moves_one_block(aggregator, monkeypatch):
    from skdp.release.session import ReleaseSession

    seen = []
    release = ReleaseSession.release

    def spy(self, label, value):
        seen.append((label, np.array(value)))
        return release(self, label, value)

    monkeypatch.setattr(ReleaseSession, "release", spy)
    X, y = np.full((30, 2), 0.5), np.zeros(30)
    model = model_of(Turncoat(), aggregator=aggregator, grid_size=8)
    model.fit(X, y)
    model.fit(np.vstack([X, [[MARK, MARK]]]), np.append(y, 0.0))
    (label, one), (_, other) = seen
    assert label == (SUM if aggregator == "mean" else MEDIAN)
    assert np.abs(one - other).max() == (2 if aggregator == "mean" else 1)


# --- what a block cannot do ---------------------------------------------------------------------------------------


class Odd(RegressorMixin, BaseEstimator):
    """Does something else where a marked record is in the block."""

    def __init__(self, how="raise"):
        self.how = how

    def fit(self, X, y):
        self.coef_, self.intercept_ = np.ones(X.shape[1]), 1.0
        if np.any(X == MARK):
            warnings.warn("marked", UserWarning, stacklevel=1)
            if isinstance(self.how, type):
                raise self.how(f"row {X[0]}")
            self.coef_ = {
                "nan": np.full(X.shape[1], np.nan),
                "text": np.array(["a"] * X.shape[1]),
                "complex": np.ones(X.shape[1]) * 1j,
                "longer": np.ones(X.shape[1] + 1),
                "deeper": np.ones((1, X.shape[1])),
                "none": None,
            }[self.how]
        return self

    def predict(self, X):
        return X @ self.coef_ + self.intercept_


@pytest.mark.parametrize(
    "how", [Panic, SystemExit, MemoryError, ValueError, "nan", "text", "complex", "longer", "deeper", "none"]
)
def test_a_block_that_fails_says_the_middle(how, capsys):
    X, y = np.full((30, 2), 0.5), np.zeros(30)
    X[3] = MARK
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = model_of(Odd(how), bounds=(-2, 4)).fit(X, y)
    assert not seen
    # All blocks find ones, and so is the middle.
    np.testing.assert_allclose(model.result_, 1.0, atol=1e-5)
    assert capsys.readouterr() == ("", "")
    far = model_of(Odd(how), bounds=(-4, 2)).fit(X, y)
    np.testing.assert_allclose(far.result_, (4 * 1 - 1) / 5, atol=1e-5)


def test_an_interrupt_says_nothing():
    X, y = np.full((30, 2), MARK), np.zeros(30)
    with pytest.raises(KeyboardInterrupt) as failure:
        model_of(Odd(KeyboardInterrupt)).fit(X, y)
    assert "0.75" not in str(failure.value) + str(failure.value.__context__)


def test_a_block_that_lacks_a_class_gets_a_record_at_its_mean():
    rows, codes = made_up_rows(30, 2), np.arange(30) % 2
    arguments = (LogisticRegression(), ("coef_", "intercept_"), ((3, 2), (3,)), np.arange(3))
    completed = LogisticRegression().fit(np.vstack([rows, rows.mean(axis=0)]), np.append(codes, 2))
    expected = np.append(completed.coef_, completed.intercept_)
    np.testing.assert_allclose(block_result(*arguments, rows, codes, 0), expected)
    assert block_result(*arguments, rows, np.arange(30) % 3, 0).shape == (9,)
    with pytest.raises(ValueError, match=r"^$"):
        block_result(*arguments, rows[:0], codes[:0], 0)


@pytest.mark.parametrize("only", [0, 1])
def test_one_class_is_learned(only):
    """Blocks of one class said the middle of the bounds, and the noise decided about the label."""
    X = made_up_rows(1000, 3)
    for seed in range(3):
        model = SampleAggregate(
            LogisticRegression(), radius=5.0, n_blocks=20, epsilon=10.0, delta=1e-6, classes=[0, 1], random_state=seed
        ).fit(X, np.full(1000, only))
        assert np.mean(model.predict(X) == only) > 0.99


def test_the_template_has_seen_no_data():
    X, y = regression()
    one, two = (model_of(HuberRegressor()).fit(*data) for data in ((X, y), (3 * X, -y)))
    mine, theirs = vars(one.estimator_), vars(two.estimator_)
    same = {name for name in mine if np.array_equal(mine[name], theirs[name])}
    assert set(mine) - same == {"coef_", "intercept_"}
    assert not hasattr(model_of(HuberRegressor()).estimator, "coef_")


def test_processes_do_not_matter():
    X, y = regression()
    one, two = (model_of(n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.result_, two.result_)


# --- bad input, and company ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "error", "match"),
    [
        ({"estimator": LinearRegression}, TypeError, "estimator"),
        ({"estimator": "ridge"}, TypeError, "estimator"),
        ({"estimator": SVC(), "classes": [False, True]}, ValueError, "estimator .*coef_"),
        ({"estimator": DecisionTreeRegressor()}, ValueError, "estimator .*coef_"),
        ({"estimator": make_pipeline(StandardScaler(), Ridge())}, ValueError, "estimator .*coef_"),
        ({"estimator": model_of(accountant=BudgetAccountant(1.0))}, ValueError, "accountant"),
        ({"estimator": lambda X: 1 / 0}, ValueError, "estimator .*ZeroDivision"),
        ({"estimator": np.mean, "attributes": ("coef_",)}, ValueError, "attributes"),
        ({"attributes": "coef_"}, ValueError, "attributes"),
        ({"attributes": ()}, ValueError, "attributes"),
        ({"attributes": ("coef_", "coef_")}, ValueError, "attributes"),
        ({"aggregator": "mode"}, ValueError, "aggregator"),
        ({"bounds": None}, ValueError, "bounds"),
        ({"bounds": ([0, 0], [1, 1])}, ValueError, "bounds"),
        ({"bounds": {"coef_": (0, 1)}}, ValueError, "bounds"),
        ({"bounds": {"coef_": (1, 0), "intercept_": (0, 1)}}, ValueError, "bounds"),
        ({"bounds": {"coef_": ([0] * 4, [1] * 4), "intercept_": (0, 1)}}, ValueError, "bounds"),
        ({"radius": 1.0}, ValueError, "radius"),
        ({"bounds": None, "radius": 1.0, "aggregator": "median"}, ValueError, "radius"),
        ({"bounds": None, "radius": -1.0}, ValueError, "radius"),
        ({"n_blocks": 0}, ValueError, "n_blocks"),
        ({"grid_size": 1}, ValueError, "grid_size"),
        ({"expected_n": -1}, ValueError, "expected_n"),
    ],
)
def test_bad_parameter_is_named_and_costs_nothing(parameters, error, match):
    X, y = regression()
    accountant = BudgetAccountant(10.0)
    model = model_of(epsilon=1.0, random_state=None, accountant=accountant).set_params(**parameters)
    with pytest.raises(error, match=match):
        model.fit(X, y > 0 if isinstance(model.estimator, SVC) else y)
    assert len(accountant) == 0


@pytest.mark.parametrize(
    ("estimator", "attributes", "match"),
    [
        (PLSRegression(1), None, "predicts by more"),
        (KernelRidge(), ("dual_coef_",), "shapes"),
        (GaussianNB(), ("theta_", "var_"), "predicts by more"),
        (GaussianNB(), ("theta_", "class_prior_"), "predicts by more"),
        (lambda X: X[:, 0], None, "same number of values"),
    ],
    ids=["means", "shapes", "priors", "variances", "function"],
)
def test_what_predicts_by_more_than_the_result_is_refused(estimator, attributes, match):
    X, y = regression()
    accountant = BudgetAccountant(10.0)
    parameters = {"attributes": attributes, "classes": [0, 1] if isinstance(estimator, GaussianNB) else None}
    model = model_of(estimator, epsilon=1.0, random_state=None, accountant=accountant, **parameters)
    with pytest.raises(ValueError, match=match):
        model.fit(X, y > 0 if parameters["classes"] else y)
    assert len(accountant) == 0


@pytest.mark.parametrize(
    "estimator",
    [
        BayesianRidge(),
        ElasticNet(),
        GammaRegressor(),
        HuberRegressor(),
        LinearSVR(),
        PoissonRegressor(),
        RidgeCV(),
        TheilSenRegressor(max_subpopulation=50),
        LinearDiscriminantAnalysis(),
        LinearSVC(),
        LogisticRegression(),
        Perceptron(),
        RidgeClassifier(),
        SGDClassifier(loss="log_loss"),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_linear_models_are_taken(estimator):
    for classes in ([0, 1], ["a", "b", "c"]) if is_classifier(estimator) else [None]:
        plan = model_of(estimator, epsilon=1.0, classes=classes).privacy_plan(n_features=3)
        assert plan.epsilon == 1.0


def test_number_of_blocks_follows_public_numbers():
    X, y = regression()
    assert SampleAggregate(LinearRegression(), bounds=(0, 1)).fit(X, y).n_blocks_ == 100
    assert SampleAggregate(LinearRegression(), bounds=(0, 1), expected_n=8000).fit(X, y).n_blocks_ == 100
    assert SampleAggregate(LinearRegression(), bounds=(0, 1), expected_n=80).fit(X, y).n_blocks_ == 10


def test_noise_falls_as_one_over_blocks():
    X, _ = regression()
    spreads = []
    for q in (4, 40):
        # Each entry has noise of its own.
        model = SampleAggregate(lambda X: np.zeros(24), bounds=(-1, 1), epsilon=24 * 5.0, n_blocks=q)
        spreads.append(np.std([model.fit(X[:5]).result_ for _ in range(5)]))
    # Both within 40 per cent, seven standard errors.
    assert 6 <= spreads[0] / spreads[1] <= 16


def test_allocation_does_not_look_inside():
    model = model_of(LogisticRegression(), classes=[0, 1])
    allocation = allocate(model, 1.0, 1e-5)
    assert list(allocation) == [""]
    assert allocation.not_private == ()
    assert clone(model).epsilon == 1.0

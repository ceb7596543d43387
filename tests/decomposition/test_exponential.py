"""ExpMechPCA: known answers, the budget's division, sensitivities by brute force, the laws of components, rules.

Every stochastic test has a false-alarm probability of 1e-6 and a fixed seed (see `tests.statistics`).
"""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from skdp import DPPCA, BudgetAccountant, ExpMechPCA, ObjPertLogReg, allocate
from skdp.accounting import BoundedRangeEvent, Budget, GaussianEvent, PureEvent, gaussian_mu, renyi_budget
from skdp.decomposition import _exponential
from skdp.decomposition._base import postprocess_components, postprocess_variances
from skdp.decomposition._exponential import deflated
from skdp.exceptions import SeededNoiseWarning
from skdp.mechanisms import DiscreteLaplaceMechanism, GammaMechanism, GaussianMechanism, NoiseSource
from tests.decomposition.data import cloud
from tests.statistics import accept, reject

INF = math.inf


# --- without noise, scikit-learn's answer -------------------------------------------------------------------------


@pytest.mark.parametrize("k", [None, 1, 3, 5])
@pytest.mark.parametrize("whiten", [False, True])
def test_infinite_epsilon_with_its_own_mean_is_pca(k, whiten):
    X = cloud()
    ours = ExpMechPCA(k, epsilon=INF, data_norm=100, center="private", whiten=whiten).fit(X)
    theirs = PCA(k, whiten=whiten, svd_solver="full").fit(X)
    signs = np.sign((ours.components_ * theirs.components_).sum(axis=1))
    np.testing.assert_allclose(ours.components_, theirs.components_ * signs[:, None], atol=1e-9)
    for name in (
        "mean_",
        "explained_variance_",
        "explained_variance_ratio_",
        "singular_values_",
        "noise_variance_",
        "n_components_",
    ):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-9)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X) * signs, atol=1e-9)
    np.testing.assert_allclose(
        ours.inverse_transform(ours.transform(X)), theirs.inverse_transform(theirs.transform(X)), atol=1e-9
    )


@pytest.mark.parametrize("k", [1, 3, 5])
def test_infinite_epsilon_has_the_covariance_of_pca(k):
    X = cloud()
    ours = ExpMechPCA(k, epsilon=INF, data_norm=100, center="private").fit(X)
    theirs = PCA(k, svd_solver="full").fit(X)
    # The least variance is 0.04, and a hundredth here.
    np.testing.assert_allclose(ours.get_covariance(), theirs.get_covariance(), atol=1e-9)


def test_the_covariance_is_positive_definite_whatever_was_released():
    model = ExpMechPCA(2, epsilon=0.01, data_norm=2.0, random_state=0).fit(np.zeros((3, 5)))
    # The variances differ by a factor of up to ten millions.
    assert np.linalg.eigvalsh(model.get_covariance()).min() == pytest.approx(0.002**2, rel=0.1)


def test_infinite_epsilon_with_a_public_centre_has_mean_squares():
    X = cloud()
    ours = ExpMechPCA(2, epsilon=INF, data_norm=100, center=[0.4] * 5).fit(X)
    values, vectors = np.linalg.eigh((X - 0.4).T @ (X - 0.4) / len(X))
    np.testing.assert_allclose(ours.explained_variance_, values[:-3:-1], rtol=1e-12)
    np.testing.assert_allclose(np.abs((ours.components_ @ vectors)[[0, 1], [-1, -2]]), 1, rtol=1e-12)
    np.testing.assert_allclose(ours.noise_variance_, values[:3].mean(), rtol=1e-12)
    np.testing.assert_array_equal(ours.mean_, np.full(5, 0.4))


def test_little_noise_comes_close_to_no_noise():
    X = cloud(5000)
    sharp = ExpMechPCA(3, epsilon=1e7, data_norm=6, center="private", centered_norm=6, random_state=0).fit(X)
    plain = PCA(3).fit(X)
    np.testing.assert_allclose(np.abs((sharp.components_ * plain.components_).sum(axis=1)), 1, atol=1e-6)
    np.testing.assert_allclose(sharp.explained_variance_, plain.explained_variance_, rtol=1e-3)
    np.testing.assert_allclose(sharp.mean_, plain.mean_, atol=1e-4)


def test_rows_are_clipped_after_centring():
    X = cloud()
    far = X.copy()
    far[0] = 0.4 + 1e200 * (X[0] - 0.4)
    near = X.copy()
    near[0] = 0.4 + 3 * (X[0] - 0.4) / np.linalg.norm(X[0] - 0.4)
    models = [ExpMechPCA(2, epsilon=INF, data_norm=3, center=[0.4] * 5).fit(data) for data in (far, near)]
    np.testing.assert_allclose(models[0].components_, models[1].components_, atol=1e-9)
    models = [ExpMechPCA(2, epsilon=INF, data_norm=9, centered_norm=0.5, center="private").fit(data) for data in (X, X)]
    assert models[0].explained_variance_.sum() < 0.25


@pytest.mark.parametrize("seed", range(3))
def test_components_are_orthonormal_and_have_public_signs(seed):
    model = ExpMechPCA(epsilon=1.0, data_norm=3, random_state=seed).fit(cloud(d=8))
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(8), atol=1e-12)
    largest = np.abs(model.components_).argmax(axis=1)
    assert np.all(model.components_[np.arange(8), largest] > 0)
    assert np.all(np.diff(model.explained_variance_) <= 0)
    assert np.all(model.explained_variance_ >= 0)
    assert model.explained_variance_ratio_.sum() <= 1 + 1e-12


def test_deflation_is_the_restriction_to_what_is_left():
    rng = np.random.default_rng(0)
    S = rng.normal(size=(6, 6))
    S = S @ S.T
    gram, basis = S, np.eye(6)
    found = []
    for _ in range(4):
        x = rng.normal(size=len(gram))
        x /= np.linalg.norm(x)
        found.append(basis @ x)
        gram, basis = deflated(gram, basis, x)
        np.testing.assert_allclose(basis.T @ basis, np.eye(len(gram)), atol=1e-12)
        np.testing.assert_allclose(basis.T @ np.array(found).T, 0, atol=1e-12)
        np.testing.assert_allclose(gram, basis.T @ S @ basis, atol=1e-12)


def test_postprocessing_of_variances():
    found = postprocess_variances(np.array([4.0, 5.0, -1.0]), 2.0, 10.0, 5)
    np.testing.assert_allclose(found["singular_values_"] ** 2, [4.5, 4.5, 0.0])
    np.testing.assert_allclose(found["explained_variance_"], [0.45, 0.45, 0.0])
    np.testing.assert_allclose(found["explained_variance_ratio_"], [4.5 / 11, 4.5 / 11, 0])
    assert found["noise_variance_"] == 0.1
    empty = postprocess_variances(np.array([-1.0, -2.0]), -3.0, 1.0, 3)
    np.testing.assert_array_equal(empty["explained_variance_ratio_"], 0)
    assert empty["noise_variance_"] == 0
    np.testing.assert_array_equal(
        postprocess_components(np.array([[0.6, -0.8], [0.8, 0.6]])), [[-0.6, 0.8], [0.8, 0.6]]
    )


# --- how the budget is divided ------------------------------------------------------------------------------------


def plan_of(n_features=8, **parameters):
    return ExpMechPCA(**{"data_norm": 2.0, **parameters}).privacy_plan(n_features=n_features)


def test_pure_plan():
    plan = plan_of(n_components=3, center="private", variance_share=0.2, epsilon=2.0)
    assert [type(event) for event in plan.events] == [PureEvent, *[BoundedRangeEvent] * 3, PureEvent]
    np.testing.assert_allclose([event.epsilon for event in plan.events], [0.4, 0.4, 0.4, 0.4, 0.4])
    np.testing.assert_allclose([release.share for release in plan.releases], [0.2] * 5)
    assert [type(release.mechanism) for release in plan.releases][::4] == [GammaMechanism, DiscreteLaplaceMechanism]


@pytest.mark.parametrize("center", ["none", "private"])
def test_few_components_add_epsilons_and_many_add_concentrated_parameters(center):
    few = plan_of(n_components=1, center=center, delta=1e-5)
    assert few.events[-2].epsilon == pytest.approx(0.9 if center == "none" else 0.7)
    assert math.fsum(event.epsilon for event in few.events if hasattr(event, "epsilon")) <= 1 + 1e-12
    many = plan_of(n_components=7, center=center, delta=1e-5)
    order, divergence = renyi_budget(1.0, 1e-5)
    assert many.cost.rdp(order) == pytest.approx(divergence, rel=1e-6)
    assert many.cost.rdp(order) <= divergence
    assert many.events[-2].epsilon > 0.9 / 7
    assert all(isinstance(event, BoundedRangeEvent | GaussianEvent) for event in many.events)


def test_composed_plan_is_what_dp_accounting_says():
    cost = plan_of(n_components=7, delta=1e-5).cost
    assert cost.privacy_loss_distribution(1e-3).get_epsilon_for_delta(1e-5) <= 1.0


def test_the_mean_is_gaussian_where_that_is_less_noise():
    few_columns = plan_of(n_features=2, n_components=1, center="private", delta=1e-5)
    many_columns = plan_of(n_features=200, n_components=1, center="private", delta=1e-5)
    assert isinstance(few_columns.releases[0].mechanism, GammaMechanism)
    assert isinstance(many_columns.releases[0].mechanism, GaussianMechanism)


def test_the_last_of_all_components_is_free():
    assert len(plan_of(n_features=4, variance_share=0.0).releases) == 3
    assert plan_of(n_features=4, variance_share=0.0).events[0].epsilon == pytest.approx(1 / 3)
    # With a number of components, the cost does not depend on the number of columns.
    assert len(plan_of(n_features=4, n_components=4, variance_share=0.0).releases) == 4


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("center", ["none", "private"])
@pytest.mark.parametrize("share", [0.0, 0.1])
def test_one_column(delta, center, share):
    model = ExpMechPCA(delta=delta, data_norm=1.0, center=center, variance_share=share).fit(np.ones((50, 1)))
    assert model.components_.tolist() == [[1.0]]
    plan = model.privacy_
    assert sum(release.share for release in plan.releases) == pytest.approx(1)
    if delta and share and center == "private":
        assert plan.cost.mu() == pytest.approx(gaussian_mu(1.0, delta), rel=1e-9)


def test_more_columns_than_components_cost_the_same():
    model = ExpMechPCA(3, data_norm=1.0, center="private", delta=1e-5)
    assert model._fixed_cost() == model.privacy_plan(n_features=3).cost == model.privacy_plan(n_features=90).cost
    assert ExpMechPCA(data_norm=1.0)._fixed_cost() is None


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_many_components_can_be_charged(share):
    # Their epsilons add up to more than 1: a smaller one is proved by concentrated DP.
    accountant = BudgetAccountant(1.0, 1e-5)
    ExpMechPCA(12, delta=1e-5, data_norm=1.0, variance_share=share, accountant=accountant).fit(cloud(d=12))
    assert accountant.total().epsilon == pytest.approx(1.0)


# --- what one record can change -----------------------------------------------------------------------------------


def released_values(monkeypatch, X, **parameters):
    """What a fit hands to its mechanisms, by label, with components that do not depend on the data."""
    seen = {}

    def note(self, label, value):
        seen[label] = np.array(value)
        if label.startswith("component"):
            return np.random.default_rng(len(seen)).normal(size=len(value))
        return self._waiting[label].release(value, NoiseSource(0).stream(label)) * 0 + 1.0

    monkeypatch.setattr(_exponential.ReleaseSession, "release", note)
    ExpMechPCA(**parameters).fit(X)
    return seen


@pytest.mark.parametrize("center", ["none", "private", "public"])
@pytest.mark.parametrize(("k", "d"), [(1, 2), (2, 5), (None, 3)])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_releases_move_by_no_more_than_the_noise_is_made_for(center, k, d, delta, monkeypatch):
    rng = np.random.default_rng(d)
    vector = np.full(d, 0.1) if center == "public" else center
    # At this budget, seven components and more are composed; the shares do not matter here.
    parameters = {"n_components": k, "data_norm": 1.3, "center": vector, "delta": delta, "variance_share": 0.3}
    releases = {r.label: r for r in ExpMechPCA(**parameters).privacy_plan(n_features=d).releases}
    fixed = rng.normal(size=(30, d))
    base = released_values(monkeypatch, fixed, **parameters)
    largest = dict.fromkeys(releases, 0.0)
    for x in [*rng.normal(size=(25, d)), *(10 * rng.normal(size=(25, d))), *(9 * np.eye(d)), 5 * np.ones(d)]:
        more = released_values(monkeypatch, np.vstack([fixed, x]), **parameters)
        for label, release in releases.items():
            difference = more[label] - base[label]
            if label.startswith("component"):
                values = np.linalg.eigvalsh(difference)
                assert values[0] >= -1e-9, "one more record lowers no score"
                moved = values[-1]
            elif release.mechanism.norm == "L1":
                moved = np.abs(difference).sum()
            else:
                moved = np.linalg.norm(difference)
            largest[label] = max(largest[label], moved)
    for label, release in releases.items():
        assert largest[label] <= release.sensitivity * (1 + 1e-12), label
        # The L2 norm of energies is attained along a component, which none of these rows is.
        tight = 0.9 if not label.startswith("var") or release.mechanism.norm == "L1" else 0.75
        assert largest[label] >= tight * release.sensitivity, label


# --- the laws -----------------------------------------------------------------------------------------------------


def components(X, runs, seed=0, **parameters):
    model = ExpMechPCA(**parameters)
    return np.array([model.set_params(random_state=seed + i).fit(X).components_ for i in range(runs)])


def test_one_component_has_the_law_of_the_exponential_mechanism():
    # One record R e1 in the plane: density exp(eps (v.e1)^2), up to a part in 1024 of eps.
    v = components(np.array([[2.0, 0.0]]), 2500, n_components=1, epsilon=3.0, data_norm=2.0, variance_share=0.0)
    angle = 2 * np.arctan2(v[:, 0, 1], v[:, 0, 0])
    angle = (angle + np.pi) % (2 * np.pi) - np.pi
    accept(stats.kstest(angle, stats.vonmises(1.5).cdf).pvalue, "double angle")
    reject(stats.kstest(angle, stats.vonmises(3.0).cdf).pvalue, "the factor 2 of replaced records, twice")
    reject(stats.kstest(angle, stats.vonmises(0.75).cdf).pvalue, "the exponent for replaced records")


def test_second_component_has_the_law_of_what_is_left():
    # Whatever the first is, the second is drawn in the plane orthogonal to it, where the score of e3 is restricted.
    X = np.zeros((40, 3))
    X[:, 2] = 1.0
    epsilon = 2 * 0.2
    v = components(X, 2000, n_components=2, epsilon=epsilon, data_norm=1.0, variance_share=0.0)
    u, w = v[:, 0], v[:, 1]
    # In that plane the score is 40 (e3.w)^2, at most 40 (1 - (e3.u)^2): on the double angle, von Mises.
    rest = 1 - u[:, 2] ** 2
    other = np.cross(u, w)
    angle = 2 * np.arctan2(other[:, 2], w[:, 2])
    kappa = 40 * 0.2 * rest / 2
    angle = (angle + np.pi) % (2 * np.pi) - np.pi
    uniform = stats.vonmises(np.maximum(kappa, 1e-9)).cdf(angle)
    accept(stats.kstest(uniform, "uniform").pvalue, "second component")
    # (The first is close to e3, so that little is left to see.)
    flat = np.argsort(rest)[-200:]
    wrong = stats.vonmises(40 * kappa[flat] + 30).cdf(angle[flat])
    reject(stats.kstest(wrong, "uniform").pvalue, "without the restriction")


def test_without_data_components_are_uniform():
    v = components(np.empty((0, 4)), 1500, n_components=3, epsilon=1.0, data_norm=2.0, variance_share=0.0)
    for i in range(3):
        accept(stats.kstest(v[:, i, 1] ** 2, stats.beta(0.5, 1.5).cdf).pvalue, f"component {i + 1}")


# --- skdp's rules that are not in the common tests ----------------------------------------------------------------


def test_without_variances_there_are_no_attributes_of_them():
    model = ExpMechPCA(2, data_norm=1.0, variance_share=0).fit(cloud())
    assert not hasattr(model, "explained_variance_")
    assert not hasattr(model, "noise_variance_")
    assert not hasattr(model, "get_covariance")
    assert model.transform(cloud()).shape == (400, 2)
    assert len(model.privacy_.releases) == 2


def test_what_is_known_of_variances_follows_from_the_fit():
    X = cloud()
    without = ExpMechPCA(2, data_norm=1.0, variance_share=0).fit(X)
    coordinates = without.transform(X)
    without.set_params(variance_share=0.2, whiten=True, data_norm=None)
    assert not hasattr(without, "get_covariance")
    np.testing.assert_array_equal(without.transform(X), coordinates)
    np.testing.assert_allclose(without.transform(without.inverse_transform(np.eye(2))), np.eye(2), atol=1e-9)
    within = ExpMechPCA(2, data_norm=1.0).fit(X)
    covariance = within.get_covariance()
    within.set_params(variance_share=0, data_norm=1e6, n_components=None)
    np.testing.assert_array_equal(within.get_covariance(), covariance)
    assert not hasattr(ExpMechPCA(variance_share=0), "get_covariance")
    assert hasattr(ExpMechPCA(), "get_covariance")


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("model", [ExpMechPCA(2, data_norm=2.0), DPPCA(2, data_norm=2.0, delta=1e-5)])
def test_coordinates_are_validated_like_rows(model, whiten):
    fitted = clone(model).set_params(whiten=whiten).fit(cloud())
    for bad, message in [
        ([[7731.5, math.nan]], "NaN"),
        ([[7731.5, INF]], "infinity"),
        ([["7731.5x", 0.0]], "text"),
        ([7731.5, 7731.5], "2D"),
        ([[[7731.5, 0.0]]], "dim"),
        ([[7731.5] * 5], "2 components"),
        ([[7731.5, 0.0], [7731.5]], "same length"),
        ([[{"a": 7731.5}, 0.0]], "no numbers"),
        (np.array([[7731.5j, 0.0]]), "Complex"),
        (np.array([[1, 2]], dtype="M8[s]"), "datetime64"),
        (np.empty((0, 2)), "0 sample"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message) as failure:
            fitted.inverse_transform(bad)
        assert "7731" not in str(failure.value) + str(failure.value.__context__)
    frame = pd.DataFrame(np.eye(2), columns=fitted.get_feature_names_out())
    np.testing.assert_array_equal(fitted.inverse_transform(frame), fitted.inverse_transform(np.eye(2)))


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"n_components": 6}, "n_components"),
        ({"n_components": 0}, "n_components"),
        ({"n_components": -1}, "n_components"),
        ({"center": "mean"}, "center"),
        ({"center": [0.0, 1.0]}, "center"),
        ({"center": [0.0, 1.0, 2.0, 3.0, np.inf]}, "center"),
        ({"center": None}, "center"),
        ({"center": [[0.0] * 5]}, "center"),
        ({"data_norm": None}, "data_norm"),
        ({"centered_norm": 0.0}, "centered_norm"),
        ({"variance_share": -0.1}, "variance_share"),
        ({"variance_share": 0.95}, "variance_share"),
        ({"variance_share": 0.8, "center": "private"}, "variance_share"),
        ({"variance_share": 0.0, "whiten": True}, "whiten"),
        ({"expected_n": 0}, "expected_n"),
    ],
)
def test_bad_parameters_are_named(parameters, name):
    accountant = BudgetAccountant(10.0)
    model = ExpMechPCA(**{"n_components": 2, "data_norm": 1.0, "accountant": accountant, **parameters})
    with pytest.raises(ValueError, match=name):
        model.fit(cloud())
    with pytest.raises(ValueError, match=name):
        model.privacy_plan(n_features=5)
    assert len(accountant) == 0


@pytest.mark.parametrize("parameters", [{"n_components": 1.5}, {"n_components": "mle"}, {"whiten": 1}])
def test_bad_types_are_named(parameters):
    with pytest.raises(TypeError, match=next(iter(parameters))):
        ExpMechPCA(**{"data_norm": 1.0, **parameters}).fit(cloud())


def test_whitened_coordinates_have_unit_variance_but_are_not_blown_up():
    X = cloud(2000)
    model = ExpMechPCA(3, epsilon=INF, data_norm=9, center="private", whiten=True).fit(X)
    np.testing.assert_allclose(model.transform(X).std(axis=0, ddof=1), 1)
    np.testing.assert_allclose(model.transform(model.inverse_transform(np.eye(3))), np.eye(3), atol=1e-10)
    flat = ExpMechPCA(2, epsilon=INF, data_norm=9, whiten=True).fit(np.zeros((10, 5)))
    assert np.abs(flat.transform(np.ones((1, 5)))).max() <= 1000


def test_known_number_of_records():
    X = cloud(2000)
    model = ExpMechPCA(2, epsilon=INF, data_norm=9, expected_n=1000).fit(X)
    free = ExpMechPCA(2, epsilon=INF, data_norm=9).fit(X)
    np.testing.assert_allclose(model.explained_variance_, 2 * free.explained_variance_)
    assert len(model.privacy_plan(n_features=5).releases) == 3


def test_names_and_frames():
    X = pd.DataFrame(cloud(), columns=list("abcde"))
    model = ExpMechPCA(2, data_norm=2.0).fit(X).set_output(transform="pandas")
    assert model.get_feature_names_out().tolist() == ["expmechpca0", "expmechpca1"]
    assert model.transform(X).columns.tolist() == ["expmechpca0", "expmechpca1"]
    with pytest.raises(ValueError, match="2 components"):
        model.inverse_transform(np.ones((3, 5)))


def test_pipeline_and_allocation():
    X = cloud(800)
    y = (X[:, 0] > 0.4).astype(int)
    accountant = BudgetAccountant(3.0, 1e-5)
    pipeline = make_pipeline(ExpMechPCA(2, data_norm=3.0), ObjPertLogReg(data_norm=3.0, classes=[0, 1]))
    allocation = allocate(
        pipeline, epsilon=3.0, delta=1e-5, weights={"expmechpca": 1, "objpertlogreg": 2}, accountant=accountant
    )
    assert set(allocation) == {"expmechpca", "objpertlogreg"}
    pipeline.fit(X, y)
    assert len(accountant) == 2
    assert accountant.total().epsilon <= 3.0
    assert pipeline.predict(X).shape == y.shape


def test_ledger_keeps_bounded_range_events(tmp_path):
    path = tmp_path / "budget.db"
    accountant = BudgetAccountant(5.0, 1e-5, ledger=path)
    ExpMechPCA(2, data_norm=3.0, accountant=accountant).fit(cloud())
    (record,) = BudgetAccountant(5.0, 1e-5, ledger=path).records
    assert record.cost == accountant.records[0].cost
    assert isinstance(record.cost.events[0], BoundedRangeEvent)


def test_order_of_the_records_does_not_matter():
    X = cloud()
    order = np.random.default_rng(0).permutation(len(X))
    one, other = (clone(ExpMechPCA(data_norm=2.0, random_state=1)).fit(rows) for rows in (X, X[order]))
    np.testing.assert_array_equal(one.components_, other.components_)
    np.testing.assert_array_equal(one.explained_variance_, other.explained_variance_)


def test_memory_mapped_rows(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, cloud(3000))
    mapped = np.load(path, mmap_mode="r")
    one, other = (ExpMechPCA(2, data_norm=2.0, random_state=1).fit(rows) for rows in (mapped, np.asarray(mapped)))
    np.testing.assert_array_equal(one.components_, other.components_)


def test_a_second_fit_leaves_nothing_of_the_first():
    X = np.random.default_rng(0).normal(size=(50, 4))
    model = ExpMechPCA(2, data_norm=1.0).fit(X)
    model.set_params(variance_share=0).fit(X)
    assert not any("variance" in name and name.endswith("_") for name in vars(model))
    assert not hasattr(model, "singular_values_")


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3])
def test_plans_with_much_delta_are_admitted(share):
    # Losses in an interval that is longer than epsilon, as Gaussian DP proves for a large delta.
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (40, 3))
    model = ExpMechPCA(1, data_norm=1.0, variance_share=share, random_state=0)
    for epsilon, delta in ((0.3, 0.01), (0.011, 0.009), (2.0, 0.2)):
        accountant = BudgetAccountant(epsilon, delta)
        model.set_params(epsilon=epsilon, delta=delta, accountant=accountant)
        with pytest.warns(SeededNoiseWarning):
            model.fit(X)
        assert accountant.total() <= Budget(epsilon, delta)
        assert len(accountant) == 1

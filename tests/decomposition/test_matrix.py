"""DPPCA: known answers, sensitivities by brute force, the law of the noise, the choice of a solver, rules.

Every stochastic test has a false-alarm probability of 1e-6 and a fixed seed (see `tests.statistics`).
"""

import math
import tracemalloc

import numpy as np
import pytest
from scipy import stats
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from skdp import DPPCA, BudgetAccountant, ExpMechPCA, FunctionalMechLinReg, allocate
from skdp.accounting import BoundedRangeEvent, GaussianEvent, PureEvent, gaussian_mu
from skdp.decomposition import _matrix
from skdp.decomposition._base import Sums
from skdp.decomposition._exponential import MEAN
from skdp.decomposition._matrix import MOMENTS, pack, postprocess_moments, unpack, weights_of
from skdp.mechanisms import GammaMechanism, GaussianMechanism, NoiseSource
from tests.decomposition.data import captured, cloud
from tests.statistics import accept, reject

INF = math.inf


# --- without noise, scikit-learn's answer -------------------------------------------------------------------------


@pytest.mark.parametrize("k", [None, 1, 3, 5])
@pytest.mark.parametrize("centered_norm", [None, 90.0])
def test_infinite_epsilon_is_pca(k, centered_norm):
    X = cloud()
    ours = DPPCA(k, epsilon=INF, data_norm=100, centered_norm=centered_norm, whiten=True).fit(X)
    theirs = PCA(k, whiten=True, svd_solver="full").fit(X)
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
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X) * signs, atol=1e-8)


@pytest.mark.parametrize("center", ["none", "public"])
def test_infinite_epsilon_without_its_own_mean_has_mean_squares(center):
    X = cloud()
    shift = np.full(5, 0.4) if center == "public" else np.zeros(5)
    ours = DPPCA(2, epsilon=INF, data_norm=100, center="none" if center == "none" else shift).fit(X)
    values, vectors = np.linalg.eigh((X - shift).T @ (X - shift) / len(X))
    np.testing.assert_allclose(ours.explained_variance_, values[:-3:-1], rtol=1e-12)
    np.testing.assert_allclose(np.abs((ours.components_ @ vectors)[[0, 1], [-1, -2]]), 1, rtol=1e-12)
    np.testing.assert_array_equal(ours.mean_, shift)


@pytest.mark.parametrize("centered_norm", [None, 5.0])
def test_little_noise_comes_close_to_no_noise(centered_norm):
    X = cloud(5000)
    sharp = DPPCA(3, epsilon=1e7, delta=1e-5, data_norm=6, centered_norm=centered_norm, random_state=0).fit(X)
    plain = PCA(3).fit(X)
    np.testing.assert_allclose(np.abs((sharp.components_ * plain.components_).sum(axis=1)), 1, atol=1e-6)
    np.testing.assert_allclose(sharp.explained_variance_, plain.explained_variance_, rtol=1e-3)
    np.testing.assert_allclose(sharp.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=1e-3)
    np.testing.assert_allclose(sharp.noise_variance_, plain.noise_variance_, rtol=1e-3)
    np.testing.assert_allclose(sharp.mean_, plain.mean_, atol=1e-4)


@pytest.mark.parametrize(("center", "centered_norm"), [("none", None), ("private", None), ("private", 2.0)])
def test_packing_and_unpacking(center, centered_norm):
    X = cloud(d=4)
    weights = weights_of(DPPCA(data_norm=3.0, center=center, centered_norm=centered_norm)._check_parameters())
    sums = Sums(X.T @ X, X.sum(axis=0), float(len(X)))
    back = unpack(pack(sums, *weights), 4, *weights, len(X) if centered_norm else None)
    np.testing.assert_allclose(back.gram, sums.gram, rtol=1e-12)
    np.testing.assert_allclose(back.total, sums.total if center == "private" else 0, rtol=1e-12)
    assert back.count == pytest.approx(len(X))


def test_mean_is_kept_in_the_ball():
    mean, gram = postprocess_moments(Sums(np.eye(2), np.array([30.0, 40.0]), 10.0), 2.0)
    np.testing.assert_allclose(mean, [1.2, 1.6])
    np.testing.assert_allclose(gram, np.eye(2) - 10 * np.outer(mean, mean))


# --- what one record can change -----------------------------------------------------------------------------------


def released_values(monkeypatch, X, **parameters):
    """What a fit hands to its mechanisms, by label, with a mean that does not depend on the data."""
    seen = {}

    def note(self, label, value):
        seen[label] = np.array(value)
        return np.full(len(value), 0.2)

    monkeypatch.setattr(_matrix.ReleaseSession, "release", note)
    DPPCA(**parameters).fit(X)
    return seen


@pytest.mark.parametrize(
    ("center", "centered_norm", "expected_n"),
    [("none", None, None), ("none", None, 30), ("public", None, None), ("private", None, None), ("private", 0.6, None)],
)
@pytest.mark.parametrize("d", [1, 2, 6])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_releases_move_by_no_more_than_the_noise_is_made_for(center, centered_norm, expected_n, d, delta, monkeypatch):
    rng = np.random.default_rng(d)
    parameters = {
        "data_norm": 1.3,
        "center": np.full(d, 0.1) if center == "public" else center,
        "centered_norm": centered_norm,
        "expected_n": expected_n,
        "delta": delta,
        "solver": "matrix",
    }
    releases = {r.label: r for r in DPPCA(**parameters).privacy_plan(n_features=d).releases}
    assert set(releases) == ({MEAN, MOMENTS} if centered_norm else {MOMENTS})
    fixed = rng.normal(size=(30, d))
    base = released_values(monkeypatch, fixed, **parameters)
    largest = dict.fromkeys(releases, 0.0)
    for x in [*rng.normal(size=(25, d)), *(10 * rng.normal(size=(25, d))), *(9 * np.eye(d)), 5 * np.ones(d)]:
        more = released_values(monkeypatch, np.vstack([fixed, x]), **parameters)
        for label in releases:
            largest[label] = max(largest[label], np.linalg.norm(more[label] - base[label]))
    for label, release in releases.items():
        assert 0.999 * release.sensitivity <= largest[label] <= release.sensitivity, label


# --- the noise, and the plan --------------------------------------------------------------------------------------


def test_noise_is_a_symmetric_gaussian_matrix():
    model = DPPCA(epsilon=1.0, delta=1e-5, data_norm=2.0, center="none", expected_n=100)
    (release,) = model.privacy_plan(n_features=3).releases
    sigma = 4.0 / gaussian_mu(1.0, 1e-5)
    assert release.mechanism.scale == pytest.approx(sigma, rel=1e-3)
    seen = []
    weights = weights_of(model._check_parameters())
    for seed in range(900):
        released = release.mechanism.release(np.zeros(6), NoiseSource(seed).stream("x"))
        seen.append(unpack(released, 3, *weights, 100.0).gram)
    seen = np.array(seen)
    np.testing.assert_array_equal(seen, seen.transpose(0, 2, 1))
    for values, scale in ((seen[:, range(3), range(3)], sigma), (seen[:, *np.triu_indices(3, 1)], sigma / 2**0.5)):
        accept(stats.kstest(values.ravel(), stats.norm(scale=scale).cdf).pvalue, "noise")
        reject(stats.kstest(values.ravel(), stats.norm(scale=0.75 * scale).cdf).pvalue, "less noise")


def test_plans():
    one = DPPCA(epsilon=1.0, delta=1e-5, data_norm=2.0).privacy_plan(n_features=5)
    assert one.events == (GaussianEvent(gaussian_mu(1.0, 1e-5)),)
    assert isinstance(one.releases[0].mechanism, GaussianMechanism)
    two = DPPCA(epsilon=1.0, delta=1e-5, data_norm=2.0, centered_norm=1.0).privacy_plan(n_features=5)
    assert two.cost.mu() == pytest.approx(gaussian_mu(1.0, 1e-5), rel=1e-9)
    assert [release.share for release in two.releases] == [0.2, 0.8]
    pure = DPPCA(epsilon=1.0, data_norm=2.0, solver="matrix").privacy_plan(n_features=5)
    assert pure.events == (PureEvent(1.0),)
    assert isinstance(pure.releases[0].mechanism, GammaMechanism)


def test_pure_noise_is_less_than_laplace_noise_would_be():
    # On the upper triangle, Laplace noise has L1 sensitivity (d + 1) R^2 / 2; compare what is off the diagonal.
    for d in (2, 10, 60):
        (release,) = (
            DPPCA(data_norm=1.0, center="none", expected_n=9, solver="matrix").privacy_plan(n_features=d).releases
        )
        gamma = release.mechanism.scale * math.sqrt(release.mechanism.size + 1) / math.sqrt(2)
        assert gamma < math.sqrt(2) * (d + 1) / 2


def test_solver_is_chosen_by_public_numbers():
    def chosen(**parameters):
        model = DPPCA(**{"n_components": 2, "data_norm": 1.0, **parameters}).fit(cloud(20))
        drawn = any(isinstance(event, BoundedRangeEvent) for event in model.privacy_.events)
        assert drawn == (model.solver_ == "bingham")
        return model.solver_

    assert chosen(delta=1e-5) == "matrix"
    assert chosen() == "bingham"
    assert chosen(expected_n=100) == "bingham"
    assert chosen(expected_n=130) == "matrix"
    assert chosen(expected_n=130, epsilon=0.1) == "bingham"
    assert chosen(solver="matrix") == "matrix"
    assert chosen(solver="bingham", delta=1e-5) == "bingham"
    assert DPPCA(2, data_norm=1.0, epsilon=INF).fit(cloud(20)).solver_ == "matrix"


def test_bingham_is_exp_mech_pca():
    X = cloud()
    one = DPPCA(2, data_norm=2.0, solver="bingham", random_state=3).fit(X)
    other = ExpMechPCA(2, data_norm=2.0, center="private", random_state=3).fit(X)
    np.testing.assert_array_equal(one.components_, other.components_)
    np.testing.assert_array_equal(one.explained_variance_, other.explained_variance_)
    assert one.privacy_ == other.privacy_


def test_fixed_cost():
    assert DPPCA(data_norm=1.0, delta=1e-5)._fixed_cost() is not None
    assert DPPCA(data_norm=1.0)._fixed_cost() is None
    assert DPPCA(2, data_norm=1.0)._fixed_cost() == ExpMechPCA(2, data_norm=1.0, center="private")._fixed_cost()
    assert DPPCA(2, data_norm=1.0, expected_n=100)._fixed_cost() is None
    assert DPPCA(2, data_norm=1.0, expected_n=100, solver="matrix")._fixed_cost().events == (PureEvent(1.0),)


# --- rules --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"n_components": 6}, "n_components"),
        ({"center": [0.0]}, "center"),
        ({"solver": "svd"}, "solver"),
        ({"data_norm": None}, "data_norm"),
        ({"centered_norm": -1.0}, "centered_norm"),
        ({"expected_n": 0.5}, "expected_n"),
    ],
)
def test_bad_parameters_are_named(parameters, name):
    accountant = BudgetAccountant(10.0)
    model = DPPCA(**{"n_components": 2, "data_norm": 1.0, "accountant": accountant, **parameters})
    with pytest.raises(ValueError, match=name):
        model.fit(cloud())
    with pytest.raises(ValueError, match=name):
        model.privacy_plan(n_features=5)
    assert len(accountant) == 0


def test_memory_is_bounded_for_memory_mapped_rows(tmp_path):
    peaks = []
    for n_rows in (20_000, 80_000):
        path = tmp_path / f"{n_rows}.npy"
        np.save(path, np.ones((n_rows, 20)))
        rows = np.load(path, mmap_mode="r")
        model = DPPCA(2, delta=1e-5, data_norm=2.0, centered_norm=1.0)
        tracemalloc.start()
        model.fit(rows)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]
    assert peaks[0] < 4e6


def test_the_covariance_is_that_of_pca_without_noise():
    X = cloud()
    ours, theirs = DPPCA(2, epsilon=INF, data_norm=100).fit(X), PCA(2, svd_solver="full").fit(X)
    np.testing.assert_allclose(ours.get_covariance(), theirs.get_covariance(), atol=1e-9)


def test_number_of_components_costs_nothing():
    plans = [DPPCA(k, delta=1e-5, data_norm=1.0).privacy_plan(n_features=9) for k in (1, 4, 9, None)]
    assert plans == plans[:1] * 4


def test_more_epsilon_never_means_more_noise():
    for parameters in ({"delta": 1e-5}, {"delta": 0.0, "solver": "matrix"}, {"delta": 1e-5, "centered_norm": 1.0}):
        noise = [
            DPPCA(epsilon=float(epsilon), data_norm=2.0, **parameters)
            .privacy_plan(n_features=6)
            .releases[-1]
            .mechanism.scale
            for epsilon in np.logspace(-3, 3, 21)
        ]
        assert np.all(np.diff(noise) < 0)


def test_pipeline_and_allocation():
    X = cloud(2000)
    y = np.clip(X[:, 0], -3, 3)
    accountant = BudgetAccountant(2.0, 1e-5)
    pipeline = make_pipeline(
        DPPCA(2, data_norm=3.0), FunctionalMechLinReg(bounds=(-3, 3), bounds_y=(-3, 3))
    ).set_output(transform="pandas")
    allocate(pipeline, epsilon=2.0, delta=1e-5, accountant=accountant)
    pipeline.fit(X, y)
    assert len(accountant) == 2
    assert accountant.total().epsilon <= 2.0


def test_centring_first_helps_where_the_mean_is_long():
    X = cloud(1500, d=20) / 4 + 1.0
    plain, first = (
        np.mean(
            [
                captured(X, DPPCA(2, delta=1e-5, data_norm=6, centered_norm=norm, random_state=i).fit(X).components_)
                for i in range(10)
            ]
        )
        for norm in (None, 1.5)
    )
    assert first > 0.78
    assert first > plain + 0.1

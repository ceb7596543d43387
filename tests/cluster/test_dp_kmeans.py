"""DPKMeans: known answers, what is released, accuracy, and skdp's rules for clusterers.

Tests that could fail by chance have fixed seeds, and bounds that the worst of some dozens of draws keeps.
"""

import math
import os
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp import BudgetAccountant, DPKMeans, SampleAggKMeans, allocate
from skdp.accounting import GaussianEvent, PureEvent, gaussian_mu
from skdp.cluster import _refinement
from skdp.cluster._refinement import (
    COUNT_WEIGHT,
    Cells,
    Estimates,
    cells_of_clusters,
    deviation,
    divided,
    numbers_of_parts,
    plan,
    postprocess_cells,
    postprocess_means,
    shrunk,
    stages,
    whole,
)
from skdp.mechanisms import DiscreteLaplaceMechanism, GammaMechanism, GaussianMechanism, NoiseSource
from skdp.release.session import ReleaseSession
from skdp.sensitivity import RowLattice, cell_sums
from tests.cluster.data import inertia, mixture

INF = math.inf
both = pytest.mark.parametrize("cls", [DPKMeans, SampleAggKMeans])


def box(d, lower=0.0, upper=1.0):
    return RowLattice(np.full(d, lower), np.full(d, upper))


def stream(seed=0):
    return NoiseSource(seed).stream("test")


# --- without noise ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "k"), [(2, 4), (10, 6), (1, 3), (5, 1)])
def test_infinite_epsilon_finds_what_scikit_learn_finds(d, k):
    X = mixture(k, 5000, d)
    best = KMeans(k, n_init=10, random_state=0).fit(X).inertia_
    ours = DPKMeans(k, epsilon=INF, bounds=(0, 1), random_state=0).fit(X)
    assert inertia(X, ours.cluster_centers_) <= 1.02 * best


def test_last_release_without_noise_is_a_step_of_lloyds_algorithm(monkeypatch):
    X = mixture(4, 3000, 3)
    lattice = box(3)
    start = lattice.encode(np.random.default_rng(0).uniform(0, 1, (4, 3)))

    def fixed(*args):
        return Cells(start, np.ones(4), start, np.full(4, INF))

    monkeypatch.setattr(_refinement, "cells_of_clusters", fixed)
    ours = DPKMeans(4, epsilon=INF, bounds=(0, 1)).fit(X).cluster_centers_
    labels = ((X[:, None] - lattice.decode(start)) ** 2).sum(axis=2).argmin(axis=1)
    theirs = np.array([X[labels == j].mean(axis=0) for j in range(4)])
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_units_do_not_matter_and_distances_are_those_of_the_data():
    X = mixture(4, 5000, 2)
    reference = DPKMeans(4, epsilon=1.0, delta=1e-5, bounds=(0, 1), random_state=2).fit(X).cluster_centers_
    other = DPKMeans(4, epsilon=1.0, delta=1e-5, bounds=(7, 23), random_state=2).fit(16 * X + 7).cluster_centers_
    np.testing.assert_allclose(other, 16 * reference + 7, atol=1e-3)
    # The second feature is a hundred times as wide: it alone tells clusters apart, as for scikit-learn.
    rng = np.random.default_rng(0)
    wide = np.column_stack([rng.choice([0.0, 1.0], 4000), rng.choice([10.0, 90.0], 4000) + rng.normal(size=4000)])
    centres = DPKMeans(2, epsilon=INF, bounds=([0, 0], [1, 100]), random_state=0).fit(wide).cluster_centers_
    np.testing.assert_allclose(np.sort(centres[:, 1]), [10, 90], atol=0.5)


# --- what is released ---------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_events_compose_to_what_is_stated(cls, delta):
    guarantee = cls(5, epsilon=0.7, delta=delta, bounds=(0, 1)).privacy_plan(n_features=6)
    if delta:
        assert all(isinstance(event, GaussianEvent) for event in guarantee.events)
        assert guarantee.cost.mu() == pytest.approx(gaussian_mu(0.7, delta), rel=1e-9)
    else:
        assert all(isinstance(event, PureEvent) for event in guarantee.events)
        assert sum(event.epsilon for event in guarantee.events) == pytest.approx(0.7, rel=1e-12)
    for event, release in zip(guarantee.events, guarantee.releases, strict=True):
        mechanism = release.mechanism
        spent = event.mu() if delta else event.epsilon
        assert mechanism.sensitivity / mechanism.scale <= spent * (1 + 1e-12)
        assert mechanism.sensitivity / mechanism.scale >= spent * (1 - 1e-3)


def test_sizes_are_fixed_by_public_parameters():
    releases, _ = plan(1.0, 1e-5, 6, stages(5))
    assert [release.mechanism.size for release in releases] == [8, 16 * 8, 32 * 8, 5 * 8]
    assert [release.share for release in releases] == [0.1, 0.3, 0.25, 0.35]


@pytest.mark.parametrize("cls", [DPKMeans, SampleAggKMeans])
@pytest.mark.parametrize("k", [1, 4, 10])
@pytest.mark.parametrize("epsilon", [0.1, 1e6, INF])
def test_as_many_cells_are_released_as_public_parameters_say(cls, k, epsilon, monkeypatch):
    # Few rows make few cells: what is not used is released as noise.
    seen = []
    release = ReleaseSession.release

    def note(self, label, value):
        seen.append((label, np.shape(value), np.shape(release(self, label, value))))
        return np.zeros(np.shape(value)) if epsilon < INF else np.asarray(value)

    monkeypatch.setattr(ReleaseSession, "release", note)
    cells = [1, max(16, 3 * k), max(32, 6 * k), k]
    labels = ["centre and spread", "coarse cells", "fine cells", "clusters"]
    for X in (np.empty((0, 3)), np.full((1, 3), 0.3), np.full((50, 3), 0.3), mixture(4, 3000, 3)):
        seen.clear()
        cls(k, epsilon=epsilon, delta=1e-5, bounds=(0, 1)).fit(X)
        assert seen[:4] == [(label, (n, 5), (n, 5)) for label, n in zip(labels, cells, strict=True)]
        assert [shape for _, shape, _ in seen[4:]] == [(k, 3)] * (cls is SampleAggKMeans)


@pytest.mark.sample(every=6)
def test_the_smaller_noise_is_taken():
    for epsilon, d, cells in [(1.0, 2, 30), (0.1, 64, 1), (5.0, 64, 60), (2.0**-20, 10, 30)]:
        releases, _ = plan(epsilon, 0.0, d, stages(cells))
        for release in releases:
            mechanism = release.mechanism
            assert isinstance(mechanism, DiscreteLaplaceMechanism | GammaMechanism)
            noise = stream()
            squares = [np.mean(mechanism.release(np.zeros(mechanism.size), noise) ** 2) for _ in range(200)]
            assert np.sqrt(np.mean(squares)) == pytest.approx(deviation(mechanism), rel=0.3)
    gaussian = GaussianMechanism(0.5, 1.2, 5)
    assert deviation(gaussian) == gaussian.scale


def test_one_row_and_none_give_the_same_shapes():
    seen = []
    for X in (np.empty((0, 3)), np.ones((1, 3)), mixture(4, 500, 3)):
        model = DPKMeans(4, epsilon=1.0, delta=1e-5, bounds=(0, 1)).fit(X)
        seen.append((model.cluster_centers_.shape, sorted(vars(model)), repr(model.privacy_)))
    assert seen[0] == seen[1] == seen[2]


@both
def test_no_trace_of_the_rows(cls):
    model = cls(3, epsilon=1.0, delta=1e-5, bounds=(0, 1)).fit(mixture(3, 400))
    assert not {"labels_", "inertia_", "n_iter_", "_n_threads"} & set(vars(model))


# --- post-processing ----------------------------------------------------------------------------------------------


def test_means_from_exact_sums():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (300, 3))
    lattice = box(3)
    cells = whole(lattice)
    sums = cell_sums(lattice.encode, X, cells.centres, cells.radii, COUNT_WEIGHT, _refinement.SPREAD_WEIGHT)
    counts, means, errors, occupied = postprocess_means(sums, cells, 0.0)
    assert counts.tolist() == [300]
    assert occupied.all()
    np.testing.assert_array_equal(errors, 0)
    np.testing.assert_allclose(lattice.decode(means)[0], X.mean(axis=0), atol=1e-5)
    estimates = postprocess_cells(sums, cells, 0.0, lattice)
    spread = ((X - X.mean(axis=0)) ** 2).sum(axis=1).mean() / lattice.unit**2 * 4.0**lattice.bits
    np.testing.assert_allclose(estimates.spreads, spread, rtol=1e-4)


def test_noise_alone_makes_no_cells():
    lattice = box(4)
    cells = Cells(np.zeros((50, 4)), np.full(50, 9.0), np.zeros((50, 4)), np.full(50, INF))
    released = np.random.default_rng(0).normal(scale=3.0, size=(50, 6))
    estimates = postprocess_cells(released, cells, 3.0, lattice)
    assert 1 <= len(estimates.counts) < 8


def test_parts_are_given_to_what_spreads_most():
    estimates = Estimates(np.array([1000.0, 1000.0, 30.0]), np.zeros((3, 2)), np.array([1.0, 9.0, 9.0]), np.ones(3))
    number = numbers_of_parts(estimates, 1, 12, 25.0)
    assert number.sum() == 12
    assert number[1] > number[0] > number[2] == 1
    assert numbers_of_parts(estimates, 1, 12, 1e4).tolist() == [1, 1, 1]
    assert numbers_of_parts(estimates, 5, 12, 1e4).sum() == 5
    assert numbers_of_parts(estimates, 1, 3, 0.0).tolist() == [1, 1, 1]


def test_divided_cells_are_public_points_of_the_lattice():
    lattice = box(3)
    estimates = Estimates(np.array([900.0, 400.0]), np.full((2, 3), 5e5), np.array([1e11, 1e9]), np.ones(2))
    for most in (2, 3, 7):
        cells = divided(estimates, 1, most, 0.1, lattice, stream())
        assert len(cells.centres) == most
        np.testing.assert_array_equal(cells.centres, np.rint(cells.centres))
        assert np.all(np.abs(cells.centres) <= lattice.half)
        assert np.all(cells.radii >= 1)


def test_two_parts_lie_opposite_each_other():
    estimates = Estimates(np.array([900.0]), np.zeros((1, 3)), np.array([1e10]), np.ones(1))
    centres = divided(estimates, 1, 2, 0.1, box(3), stream()).centres
    np.testing.assert_array_equal(centres[0], -centres[1])
    assert np.linalg.norm(centres[0]) == pytest.approx(0.6e5, rel=1e-3)


def test_merging_few_cells_makes_as_many_as_clusters():
    lattice = box(2)
    for cells in (1, 3, 5, 9):
        estimates = Estimates(np.full(cells, 50.0), np.zeros((cells, 2)), np.full(cells, 1e9), np.ones(cells))
        clusters = cells_of_clusters(estimates, 5, lattice, stream())
        assert clusters.centres.shape == (5, 2)
        assert np.all(clusters.radii >= 1)


def test_shrinkage_helps_where_noise_is_large():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(200, 30))
    noisy = truth + 2 * rng.normal(size=truth.shape)
    better = shrunk(noisy, np.zeros_like(noisy), np.full(200, 4.0))
    assert ((better - truth) ** 2).sum() < 0.4 * ((noisy - truth) ** 2).sum()
    np.testing.assert_array_equal(shrunk(noisy, np.zeros_like(noisy), np.zeros(200)), noisy)


# --- accuracy -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("d", "epsilon", "delta", "most"),
    [
        (2, 0.1, 1e-5, 1.3),
        (2, 1.0, 1e-5, 1.03),
        (10, 0.1, 1e-5, 1.3),
        (10, 1.0, 1e-5, 1.03),
        (2, 1.0, 0.0, 1.05),
        (10, 1.0, 0.0, 1.1),
    ],
)
def test_mixtures(d, epsilon, delta, most):
    X = mixture(10, 50_000, d)
    best = KMeans(10, n_init=5, random_state=0).fit(X).inertia_
    ratios = [
        inertia(X, DPKMeans(10, epsilon=epsilon, delta=delta, bounds=(0, 1), random_state=seed).fit(X).cluster_centers_)
        for seed in range(4)
    ]
    assert np.mean(ratios) <= most * best


@pytest.mark.parametrize(("epsilon", "most"), [(0.1, 2.3), (0.5, 1.55), (1.0, 1.3), (3.0, 1.1)])
def test_digits(epsilon, most):
    X, _ = load_digits(return_X_y=True)
    best = KMeans(10, n_init=5, random_state=0).fit(X).inertia_
    ratios = [
        inertia(X, DPKMeans(10, epsilon=epsilon, delta=1e-5, bounds=(0, 16), random_state=seed).fit(X).cluster_centers_)
        for seed in range(10)
    ]
    assert np.mean(ratios) <= most * best


# --- scikit-learn's interface -------------------------------------------------------------------------------------


@both
def test_prediction_agrees_with_scikit_learns(cls):
    X = mixture(5, 3000, 3)
    model = cls(5, epsilon=1.0, delta=1e-5, bounds=(0, 1), random_state=0).fit(X)
    theirs = KMeans(5, init=model.cluster_centers_, n_init=1, max_iter=1).fit(X)
    theirs.cluster_centers_ = model.cluster_centers_.copy()
    np.testing.assert_array_equal(model.predict(X), theirs.predict(X))
    np.testing.assert_allclose(model.transform(X), theirs.transform(X), atol=1e-9)
    assert model.score(X) == pytest.approx(theirs.score(X))
    again = clone(model)
    np.testing.assert_array_equal(again.fit_predict(X), model.predict(X))
    np.testing.assert_allclose(clone(model).fit_transform(X), model.transform(X))


@both
def test_rows_in_single_precision(cls):
    # Single precision holds nothing beyond 3.4e38.
    X = np.repeat([[-1e30, 2e30], [1e30, -2e30]], 2000, axis=0)
    model = cls(2, epsilon=1e4, delta=1e-5, bounds=(-1e60, 1e60), random_state=0).fit(X)
    single = X[::500].astype(np.float32)
    np.testing.assert_array_equal(model.predict(single), model.predict(single.astype(np.float64)))
    np.testing.assert_array_equal(model.transform(single), model.transform(single.astype(np.float64)))
    assert np.all(np.isfinite(model.transform(single)))
    assert math.isfinite(model.score(single))
    # Of two centres that single precision takes for one, the nearer.
    model.cluster_centers_ = np.array([[1.0, 0.0], [1.0 + 1e-9, 0.0]])
    assert model.predict(np.array([[2.0, 0.0], [0.0, 0.0]], dtype=np.float32)).tolist() == [1, 0]


@both
def test_frames_and_names(cls):
    frame = pd.DataFrame(mixture(3, 500, 2), columns=["age", "weight"])
    model = cls(3, epsilon=1.0, delta=1e-5, bounds=([0, 0], [1, 1])).fit(frame)
    assert model.feature_names_in_.tolist() == ["age", "weight"]
    prefix = cls.__name__.lower()
    assert model.get_feature_names_out().tolist() == [f"{prefix}{i}" for i in range(3)]
    out = model.set_output(transform="pandas").transform(frame)
    assert out.columns.tolist() == [f"{prefix}{i}" for i in range(3)]


@both
def test_pipeline_and_allocation(cls):
    X = mixture(3, 2000, 2)
    accountant = BudgetAccountant(1.0, 1e-5)
    pipe = make_pipeline(FunctionTransformer(lambda X: 2 * X - 1), cls(3, bounds=(-1, 1)))
    allocate(pipe, epsilon=1.0, delta=1e-5, accountant=accountant)
    labels = pipe.fit(X).predict(X)
    assert set(labels) <= {0, 1, 2}
    assert len(accountant) == 1
    assert pipe[-1].delta == 1e-5


@both
@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("n_clusters", 0, ValueError),
        ("n_clusters", 2.0, TypeError),
        ("n_clusters", None, TypeError),
        ("bounds", None, ValueError),
    ],
)
def test_bad_parameter(cls, name, value, error):
    with pytest.raises(error, match=name):
        cls(bounds=(0, 1)).set_params(**{name: value}).fit(np.zeros((5, 2)))


def test_more_clusters_than_rows():
    model = DPKMeans(40, epsilon=1.0, delta=1e-5, bounds=(0, 1)).fit(mixture(3, 10, 2))
    assert model.cluster_centers_.shape == (40, 2)
    assert np.all((model.cluster_centers_ >= 0) & (model.cluster_centers_ <= 1))


def test_tight_clusters_in_wide_bounds():
    # Each release narrows the radii, so that bounds a hundred times too wide cost little.
    X = 0.01 * mixture(4, 50_000, 3)
    best = KMeans(4, n_init=5, random_state=0).fit(X).inertia_
    ours = DPKMeans(4, epsilon=1.0, delta=1e-5, bounds=(0, 1), random_state=0).fit(X)
    assert inertia(X, ours.cluster_centers_) <= 1.2 * inertia(X, X.mean(axis=0, keepdims=True))
    assert best > 0


@both
def test_memory_mapped_rows_are_not_copied(cls, tmp_path):
    path = os.path.join(tmp_path, "rows.npy")
    np.save(path, mixture(4, 200_000, 20))
    X = np.load(path, mmap_mode="r")
    model = cls(4, epsilon=1.0, delta=1e-5, bounds=(0, 1))
    model.fit(X[:2000])
    tracemalloc.start()
    model.fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.45 * X.nbytes


@both
def test_nothing_the_data_can_hold_fails_or_warns(cls):
    # An exception or a warning on the way from releases to centres would depend on the rows. Warnings are errors here.
    rng = np.random.default_rng(0)
    for seed in range(150):
        d, k, n_rows = (int(rng.choice(choice)) for choice in ([1, 2, 3, 10, 70], [1, 2, 8, 30], [0, 1, 2, 7, 300]))
        lower, upper = [(0, 1), (-1e100, 1e100), (-1e-99, 1e-99), (1e8, 1e8 + 1e-3)][rng.integers(4)]
        X = [
            rng.uniform(lower / 2, upper / 2, (n_rows, d)),
            rng.choice([lower, upper, 0.0], (n_rows, d)),
            rng.choice([1e308, -1e308, 1e-310], (n_rows, d)),
            np.full((n_rows, d), lower),
        ][rng.integers(4)]
        epsilon, delta = rng.choice([2.0**-20, 0.1, 1, 1e3, 1e9, INF]), rng.choice([0, 1e-5])
        model = cls(k, epsilon=float(epsilon), delta=float(delta), bounds=(lower, upper), random_state=seed).fit(X)
        assert model.cluster_centers_.shape == (k, d)
        assert np.all((model.cluster_centers_ >= lower) & (model.cluster_centers_ <= upper))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_mapped_rows_have_the_same_clusters(dtype, tmp_path):
    X = np.random.default_rng(0).normal(size=(9000, 3)).astype(dtype)
    mapped = np.memmap(tmp_path / "rows", dtype=dtype, mode="w+", shape=X.shape)
    mapped[:] = X
    model = DPKMeans(4, epsilon=1.0, bounds=(-3, 3), random_state=0)
    found = [model.fit(rows).cluster_centers_ for rows in (X, np.asfortranarray(X), mapped)]
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])

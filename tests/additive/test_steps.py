"""Lengths of gradient steps for classes, and sums over the cells of several terms at once."""

import math

import numpy as np
import pytest
from skdp.additive._sampling_noise import sampling_variances

from skdp import DPAdditiveClassifier
from skdp.additive._engines import LIMIT, GradientEngine
from skdp.additive._groups import MEAN_CURVATURE
from skdp.additive._joint import BLOCK, Bundles
from skdp.additive._terms import Layout
from skdp.schema.columns import code_type
from skdp.solvers.losses import LogLoss, SoftmaxLogLoss

CLASSIFIER = DPAdditiveClassifier(delta=1e-5, bounds=(0, 1), n_bins=16, categories={1: 3}, interactions=[(0, 2)])


def layout():
    return Layout.of(CLASSIFIER._check_parameters().table(4, None), 0.8)


def engine(loss, epsilon):
    return GradientEngine(epsilon, 1e-5, 0.02, layout(), loss, 300)


COUNTS = [np.linspace(0, 400, 16), np.array([900.0, -3.0, 2300.0]), np.full(16, 200.0), np.eye(16)[3] * 3200]


@pytest.mark.parametrize("loss", [LogLoss(), SoftmaxLogLoss(5)], ids=["two", "five"])
@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0])
def test_noise_in_scores_is_within_the_limit(loss, epsilon):
    found = engine(loss, epsilon).within(COUNTS, 3200.0)
    spectrum = found.layout.spectrum(COUNTS)
    sizes = found.sizes_along(MEAN_CURVATURE * 3200.0 * spectrum, 3200.0)
    noise = math.sqrt(spectrum @ sizes**2) * math.sqrt(min(loss.outputs, 2))
    # The result is an average of iterates, which has less noise than the last one.
    assert noise <= LIMIT
    assert noise > 0.4 * LIMIT


def test_steps_are_the_longest_stable_ones_where_noise_is_small():
    lengths = [
        engine(SoftmaxLogLoss(5), epsilon).within(COUNTS, 3200.0).rate for epsilon in (0.1, 1.0, 100.0, math.inf)
    ]
    assert lengths[0] < lengths[1] < lengths[2]
    assert lengths[2] == lengths[3]


def test_counts_that_are_noise_alone_give_steps():
    for counts in ([np.zeros(16), -np.ones(3), np.zeros(16), -np.ones(16)], [1e300 * own for own in COUNTS]):
        rate = engine(SoftmaxLogLoss(5), 1e-6).within(counts, 1.0).rate
        assert 0 < rate < math.inf


def test_eigenvalues_are_those_of_independent_records():
    plain = layout()
    shares = [np.maximum(own, 0) / np.maximum(own, 0).sum() for own in COUNTS]
    rng = np.random.default_rng(0)
    codes = np.stack([rng.choice(len(own), 200_000, p=own) for own in shares]).astype(np.int32)
    covariance = np.cov(plain.features(plain.codes(codes)).T)
    for where, part in zip(
        plain.slices, np.split(plain.spectrum(COUNTS), [s.stop for s in plain.slices[:-1]]), strict=True
    ):
        np.testing.assert_allclose(part, np.linalg.eigvalsh(covariance[where, where]), atol=0.01)


@pytest.mark.parametrize("sizes", [[7, 5000, 30, 2, 64, 100, 3], [7, 250, 30, 2, 64, 100, 3]])
def test_bundles_add_up_what_their_terms_do(sizes):
    rng = np.random.default_rng(1)
    codes = np.stack([rng.integers(size, size=BLOCK + 1000) for size in sizes]).astype(code_type(max(sizes)))
    bundles = Bundles(codes, sizes)
    assert len(bundles.sizes) < len(sizes)
    assert all(size <= 4096 or size == 5000 for size in bundles.sizes)
    tables = [rng.integers(-9, 9, (2, size)).astype(float) for size in sizes]
    joint = bundles.tables(np.hstack(tables).T)
    found = np.hstack([np.stack([block @ table for table in joint]) for block, _ in bundles.blocks])
    np.testing.assert_array_equal(found, sum(table[:, own] for table, own in zip(tables, codes, strict=True)))
    weights = rng.integers(-9, 9, codes.shape[1]).astype(float)
    parts = zip(bundles.blocks, np.split(weights, [BLOCK]), strict=True)
    sums = sum(transposed @ part for (_, transposed), part in parts)
    expected = [np.bincount(own, weights, size) for own, size in zip(codes, sizes, strict=True)]
    np.testing.assert_array_equal(bundles.by_cell(sums[None])[:, 0], np.concatenate(expected))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_sampling_moves_curves_as_far_as_is_computed(n_classes):
    # Labels say nothing, so that curves are sampling alone. Without noise, nothing is clipped. The mean variance over
    # 12 tables has a relative standard error of about a tenth.
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(12):
        X, y = rng.integers(8, size=(3000, 2)), rng.integers(n_classes, size=3000)
        model = DPAdditiveClassifier(
            epsilon=math.inf, delta=1e-5, categories={0: 8, 1: 8}, classes=list(range(n_classes)), solver="gradient",
            random_state=0,
        ).fit(X, y)  # fmt: skip
        counts, count = model.cell_counts_, model.n_samples_estimate_
        engine = model._engine.within(counts, count)
        tables = engine.layout.values(model._coef)
        for _, (sampling, whole, converged) in sampling_variances(engine, tables, model._offset, counts, count):
            assert converged > 0.9
            ratios.append(whole / sampling)
        assert np.all(model._kept < 0.8)
    assert 0.7 < np.mean(ratios) < 1.4


def test_curves_that_many_records_tell_are_kept():
    rng = np.random.default_rng(0)
    X = rng.integers(8, size=(20_000, 2))
    y = (X[:, 0] // 2 + (rng.random(20_000) < 0.3)) % 4
    model = DPAdditiveClassifier(
        epsilon=3.0, delta=1e-5, categories={0: 8, 1: 8}, classes=[0, 1, 2, 3], random_state=0
    ).fit(X, y)
    assert model._kept[0] > 0.99
    # The other column says nothing.
    assert np.ptp(model.terms_[1]) < 0.1 * np.ptp(model.terms_[0])

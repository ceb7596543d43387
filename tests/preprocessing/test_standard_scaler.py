"""Private standardisation: what one record moves, known answers, and noise that is allowed for."""

import math

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from skdp import DPStandardScaler
from skdp.accounting import gaussian_mu
from skdp.mechanisms import GaussianMechanism, NoNoise
from skdp.preprocessing import _scaling
from skdp.preprocessing._scaling import _expected_variances, _postprocess_sums, record_sums
from skdp.release.counts import class_sums_mechanism, moment_weight, noise_scale
from tests.linear_model.data import blobs

BOUNDS = ([-4.0, -6, -4, -5, -9], [4.0, 5, 6, 5, 7])


def mechanism_of(epsilon, delta, d):
    return class_sums_mechanism(epsilon, delta, 1, d, 1 + 2 * d)[0]


# --- the statistic ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 3, 20])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_one_record_moves_no_more_than_claimed_and_attains_it(d, delta):
    mechanism = mechanism_of(1.0, delta, d)
    norm = np.linalg.norm if delta else lambda z: np.abs(z).sum()
    rng = np.random.default_rng(0)
    centre, half = rng.normal(size=d), rng.uniform(0.1, 9, size=d)
    base = centre + half * rng.normal(size=(50, d))
    sums = record_sums(base, centre, half, mechanism)
    largest = 0.0
    records = [*(centre + half * rng.normal(0, 2, size=(200, d))), centre, centre + half, centre - half, centre + 9e9]
    for record in records:
        more = np.vstack([base, record])
        for other in (record_sums(more, centre, half, mechanism), record_sums(more[::-1], centre, half, mechanism)):
            largest = max(largest, norm(other - sums))
        removed = record_sums(np.delete(more, 7, axis=0), centre, half, mechanism)
        assert norm(record_sums(more, centre, half, mechanism) - removed) <= mechanism.sensitivity
    assert 0.999 * mechanism.sensitivity <= largest <= mechanism.sensitivity


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_sums_do_not_depend_on_the_order_and_lie_on_a_lattice(delta):
    mechanism = mechanism_of(1.0, delta, 5)
    centre, half = np.zeros(5), np.full(5, 4.0)
    X, _ = blobs(2, 9000, 5, 0)
    sums = record_sums(X, centre, half, mechanism)
    np.testing.assert_array_equal(sums, record_sums(X[::-1], centre, half, mechanism))
    np.testing.assert_array_equal(sums / 2.0**-23, np.rint(sums / 2.0**-23))
    v = np.clip(X / 4, -1, 1)
    plain = np.concatenate([[9000], v.sum(axis=0), moment_weight(mechanism) * (v**2 - 0.5).sum(axis=0)])
    np.testing.assert_allclose(sums, plain, atol=0.05)


# --- known answers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_without_noise_it_is_the_standard_scaler_of_clipped_data(dtype):
    X, _ = blobs(2, 3000, 5, 1)
    X = X.astype(dtype)
    scaler = DPStandardScaler(epsilon=math.inf, bounds=BOUNDS, clip=100.0).fit(X)
    reference = StandardScaler().fit(np.clip(X.astype(float), *BOUNDS))
    np.testing.assert_allclose(scaler.mean_, reference.mean_, rtol=1e-9)
    np.testing.assert_allclose(scaler.var_, reference.var_, rtol=1e-9)
    np.testing.assert_allclose(scaler.scale_, reference.scale_, rtol=1e-9)
    assert scaler.n_samples_estimate_ == 3000
    tolerance = 1e-5 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(scaler.transform(X), reference.transform(X), atol=tolerance)
    np.testing.assert_allclose(scaler.inverse_transform(scaler.transform(X)), X, atol=10 * tolerance)


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_constant_columns_are_not_blown_up(epsilon):
    X = np.tile([1.0, -2, 3, 0, 5], (1000, 1))
    scaler = DPStandardScaler(epsilon=epsilon, delta=1e-5, bounds=BOUNDS).fit(X)
    # Scale is at least that of the noise of the mean square, and far more than that of the mean.
    assert np.abs(scaler.transform(X)).max() < 2
    np.testing.assert_allclose(scaler.mean_, X[0], atol=0.5)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_mean_square_of_what_comes_out_is_about_one(delta):
    """Noise does not make features long, nor short."""
    X, _ = blobs(2, 400, 5, 2)
    for epsilon in (0.05, 0.2, 1.0, 10.0):
        scaler = DPStandardScaler(epsilon=epsilon, delta=delta, bounds=BOUNDS)
        squares = [np.mean(scaler.set_params(random_state=seed).fit_transform(X) ** 2) for seed in range(40)]
        assert 0.2 < np.mean(squares) < 1.7
        assert max(squares) < 3.5


def test_estimates_come_near_with_many_records():
    X, _ = blobs(2, 30_000, 5, 3)
    reference = StandardScaler().fit(np.clip(X, *BOUNDS))
    for delta in (0.0, 1e-5):
        scaler = DPStandardScaler(epsilon=1.0, delta=delta, bounds=BOUNDS, random_state=0).fit(X)
        # Noise of about 10 records of half a bounds' width each, at most.
        np.testing.assert_allclose(scaler.mean_, reference.mean_, atol=0.03)
        np.testing.assert_allclose(scaler.scale_, reference.scale_, rtol=0.05)
        assert scaler.n_samples_estimate_ == pytest.approx(30_000, rel=0.01)


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_without_records_values_count_as_evenly_spread(epsilon):
    scaler = DPStandardScaler(epsilon=epsilon, bounds=(0, 12), random_state=0).fit(np.empty((0, 2)))
    np.testing.assert_allclose(scaler.mean_, 6)
    np.testing.assert_allclose(scaler.scale_, np.sqrt(12))


@pytest.mark.parametrize("value", [3.0, 0.1, -1.0, 9.0])
def test_a_feature_that_does_not_vary_without_noise(value):
    """As the guide says: not as StandardScaler, which leaves its scale at 1."""
    X = np.full((500, 1), value)
    scaler = DPStandardScaler(epsilon=math.inf, bounds=(-1, 9)).fit(X)
    assert StandardScaler().fit(X).scale_ == 1
    np.testing.assert_allclose(scaler.scale_, 1e-6 * 5, rtol=1e-9)
    np.testing.assert_allclose(scaler.transform(X), 0, atol=1e-6)
    assert scaler.transform([[value + 0.001], [value - 0.001]]).tolist() == [[3.0], [-3.0]]


def test_postprocessing_by_hand():
    mechanism = NoNoise(1.0)
    a = moment_weight(mechanism)
    values = np.array([0.2, -0.5, 0.7])
    sums = np.array([3.0, values.sum(), a * (values**2 - 0.5).sum()])
    count, means, variances = _postprocess_sums(sums, mechanism)
    assert count == 3
    np.testing.assert_allclose([means[0], variances[0]], [values.mean(), values.var()])
    noisy = GaussianMechanism(1.0, 0.1, 3)
    error = noise_scale(noisy) / 3 * math.sqrt(1 / a**2 + 4 * values.mean() ** 2)
    expected = math.exp(expected_logarithm(values.var(), error))
    np.testing.assert_allclose(_postprocess_sums(sums, noisy)[2][0], expected, rtol=0.01)
    assert _postprocess_sums(np.array([-5.0, 1, 1]), noisy)[0] == 0


def expected_logarithm(noisy, error):
    """Of a variance in [0, 1], all as likely before it was seen with normal noise."""

    roots = (np.arange(1_000_000) + 0.5) / 1_000_000
    logarithms = -0.5 * ((roots**2 - noisy) / error) ** 2
    weights = roots * np.exp(logarithms - logarithms.max())
    return float(weights @ np.log(roots**2) / weights.sum())


@pytest.mark.parametrize("error", [1e-4, 0.01, 0.3, 5.0, 100.0])
@pytest.mark.parametrize("place", [-3.0, -0.5, 0.0, 0.5, 3.0, 30.0])
def test_expected_variances_by_integration(place, error):
    noisy = min(place * error, 1 + 3 * error)
    (got,) = _expected_variances(np.array([noisy]), np.array([error]))
    assert math.log(got) == pytest.approx(expected_logarithm(noisy, error), abs=0.02)


def test_expected_variances_at_the_ends():
    # Nothing is known; far beyond what noise does; no noise to speak of.
    got = _expected_variances(np.array([0.5, -1e6, 1e6, 0.25, 0.0]), np.array([1e9, 1.0, 1.0, 1e-300, 1e-300]))
    assert got[0] == pytest.approx(math.exp(-1), rel=0.01)
    assert 0 < got[1] < 0.5
    assert 0.5 < got[2] < 1
    np.testing.assert_allclose(got[3:], [0.25, 1e-12], rtol=1e-9)


# --- noise ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_noise_on_no_data_has_the_stated_scale(delta, monkeypatch):
    seen = []
    real = _scaling._postprocess_sums
    monkeypatch.setattr(_scaling, "_postprocess_sums", lambda s, m: seen.append(s) or real(s, m))
    scaler = DPStandardScaler(epsilon=1.0, delta=delta, bounds=(-1, 1))
    for seed in range(100):
        scaler.set_params(random_state=seed).fit(np.empty((0, 10)))
    z = np.concatenate(seen) / noise_scale(scaler.privacy_.releases[0].mechanism)
    # 2100 draws: the error of the mean square is sqrt(2/2100) or, for Laplace noise, sqrt(5/2100).
    assert np.mean(z**2) == pytest.approx(1, abs=4.9 * math.sqrt((2 if delta else 5) / z.size))
    d = 10
    expected = math.sqrt(1 + (1 + 1.375**2 / 4) * d) / gaussian_mu(1.0, 1e-5) if delta else 1 + 1.5 * d
    assert scaler.privacy_.releases[0].mechanism.scale == pytest.approx(expected, rel=1e-4)

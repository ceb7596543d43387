"""The functional mechanisms: known answers, sensitivities by brute force, the law of the noise, and skdp's rules.

Every stochastic test has a false-alarm probability of 1e-6 and a fixed seed.
"""

import math
import tracemalloc

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, Ridge

from skdp import BudgetAccountant, FunctionalMechLinReg, FunctionalMechLogReg
from skdp.accounting import gaussian_mu
from skdp.mechanisms import NoiseSource, l2_mechanism
from skdp.solvers import moments
from skdp.solvers.moments import Geometry, Moments, noise_of, plan
from skdp.solvers.regularised import Scaling
from tests.estimators import FUNCTIONAL, data_for, declared, name_of
from tests.linear_model.data import blobs

FALSE_ALARM = 1e-6
INF = math.inf
every = pytest.mark.parametrize("estimator", FUNCTIONAL, ids=name_of)


def regression(n_rows=400, n_features=4, n_targets=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform([-1, 0, 10, -5], [1, 2, 30, 5], size=(n_rows, 4))[:, :n_features]
    w = rng.normal(size=(n_features, n_targets or 1)) / [[1], [1], [10], [5]][:n_features]
    y = 3 + X @ w + 0.3 * rng.normal(size=(n_rows, n_targets or 1))
    return X, (y if n_targets else y[:, 0])


BOUNDS = [-1, 0, 10, -5], [1, 2, 30, 5]
WIDE_Y = (-30, 40)


def wide_accountant(**parameters):
    return BudgetAccountant(epsilon=1e8, delta=0.5, composition="basic", **parameters)


# --- without noise, scikit-learn's answer -------------------------------------------------------------------------


@pytest.mark.parametrize("n_targets", [None, 1, 3])
def test_infinite_epsilon_is_least_squares(n_targets):
    X, y = regression(n_targets=n_targets)
    ours = FunctionalMechLinReg(epsilon=INF, bounds=BOUNDS, bounds_y=WIDE_Y).fit(X, y)
    theirs = LinearRegression().fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-6)
    assert ours.coef_.shape == theirs.coef_.shape
    assert np.shape(ours.intercept_) == np.shape(theirs.intercept_)


@pytest.mark.parametrize("alpha", [0, 0.1, 10.0])
def test_infinite_epsilon_is_ridge_after_public_scaling(alpha):
    X, y = regression()
    ours = FunctionalMechLinReg(epsilon=INF, bounds=BOUNDS, bounds_y=WIDE_Y, alpha=alpha).fit(X, y)
    centre, half = np.mean(BOUNDS, axis=0), np.ptp(BOUNDS, axis=0) / 2
    theirs = Ridge(alpha=alpha, tol=1e-12).fit((X - centre) / half, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict((X - centre) / half), atol=1e-6)
    np.testing.assert_allclose(ours.coef_ * half, theirs.coef_, atol=1e-6)
    assert ours.alpha_ == alpha


def test_without_intercept_nothing_is_centred():
    X, y = regression()
    ours = FunctionalMechLinReg(epsilon=INF, bounds=BOUNDS, bounds_y=WIDE_Y, fit_intercept=False).fit(X, y)
    theirs = LinearRegression(fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    assert ours.intercept_ == 0


def test_a_shorter_norm_is_weighted_least_squares():
    X, y = regression()
    ours = FunctionalMechLinReg(epsilon=INF, bounds=BOUNDS, bounds_y=WIDE_Y, data_norm=0.8).fit(X, y)
    scaled = (X - np.mean(BOUNDS, axis=0)) / (np.ptp(BOUNDS, axis=0) / 2)
    weights = np.minimum(1, (0.8**2 + 0.2**2) / ((scaled**2).sum(axis=1) + 0.2**2))
    assert weights.min() < 0.5
    theirs = LinearRegression().fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)


def test_small_noise_comes_close_to_no_noise():
    # The lattice of the entries, not the noise, is what is left: a millionth.
    X, y = regression()
    sharp = FunctionalMechLinReg(epsilon=1e9, delta=1e-5, bounds=BOUNDS, bounds_y=WIDE_Y, data_norm=2, random_state=0)
    np.testing.assert_allclose(sharp.fit(X, y).predict(X), LinearRegression().fit(X, y).predict(X), atol=1e-3)


def test_features_and_targets_are_clipped():
    X, y = regression()
    beyond, far_y = X.copy(), y.copy()
    beyond[0], far_y[0] = 1e200, -1e200
    within, near_y = X.copy(), y.copy()
    within[0], near_y[0] = BOUNDS[1], WIDE_Y[0]
    far, near = (
        FunctionalMechLinReg(epsilon=INF, bounds=BOUNDS, bounds_y=WIDE_Y).fit(*data)
        for data in ((beyond, far_y), (within, near_y))
    )
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_lda_is_discriminant_analysis(n_classes):
    X, y = blobs(n_classes, n_rows=600)
    ours = FunctionalMechLogReg(epsilon=INF, bounds=(-10, 10), classes=range(n_classes)).fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_taylor_is_least_squares_on_signs():
    X, y = blobs()
    ours = FunctionalMechLogReg(epsilon=INF, bounds=(-10, 10), classes=[0, 1], calibration="taylor").fit(X, y)
    theirs = LinearRegression().fit(X, 2 * y - 1)
    np.testing.assert_allclose(ours.coef_[0], 2 * theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_[0], 2 * theirs.intercept_, atol=1e-6)


def test_taylor_minimises_the_polynomial_for_three_classes():
    X, y = blobs(3)
    model = FunctionalMechLogReg(epsilon=INF, bounds=(-10, 10), classes=range(3), calibration="taylor").fit(X, y)

    def loss(theta):
        u = np.column_stack([X, np.ones(len(X))]) @ theta
        mean = u.mean(axis=1)
        return np.sum(mean + ((u - mean[:, None]) ** 2).sum(axis=1) / 6 - u[np.arange(len(y)), y])

    theta = np.vstack([model.coef_.T, model.intercept_])
    rng = np.random.default_rng(0)
    assert all(loss(theta + 1e-3 * rng.normal(size=theta.shape)) > loss(theta) for _ in range(50))


# --- what one record can change -----------------------------------------------------------------------------------

GEOMETRIES = [
    (d, k, norm, intercept, one_hot, weights)
    for d in (1, 3, 30)
    for k, one_hot in ((1, False), (2, False), (4, True))
    for norm in (None, 0.4, 1e9)
    for intercept in (True, False)
    for weights in (moments.Weights(), moments.CLASS_WEIGHTS if one_hot else moments.REGRESSION_WEIGHTS)
]


def totals(X, y, geometry):
    box = np.array([-1.0] * X.shape[1]), np.array([1.0] * X.shape[1])
    features = Scaling.of(box, "bounds", X.shape[1], centred=True)
    return Moments(X, y, features, lambda block: block, geometry, private=True).totals


@pytest.mark.parametrize(("d", "k", "norm", "intercept", "one_hot", "weights"), GEOMETRIES)
@pytest.mark.parametrize("delta", [1e-5, 0.0])
def test_moments_move_by_no_more_than_the_noise_is_made_for(d, k, norm, intercept, one_hot, weights, delta):
    geometry = Geometry.of(d, k, norm, intercept, one_hot, private=True, weights=weights)
    guarantee = plan(1.0, delta, geometry)
    rng = np.random.default_rng(1)
    fixed = rng.uniform(-1, 1, size=(20, d)), rng.uniform(-1, 1, size=(20, k)) * (not one_hot)
    base = totals(*fixed, geometry)
    rows = [*rng.uniform(-1, 1, size=(20, d)), *rng.normal(size=(10, d)), np.ones(d), -np.ones(d), np.eye(d)[0]]
    rows += [c * np.ones(d) for c in (0.1, 0.3, 0.5, 0.7, 0.75, 0.9)]
    rows.append(geometry.data_norm / math.sqrt(d) * np.ones(d))
    claim = guarantee.releases[0].sensitivity
    moved = []
    for x in rows:
        for u in [np.eye(k)[0]] if one_hot else [np.ones(k), rng.uniform(-1, 1, size=k)]:
            more = np.vstack([fixed[0], x]), np.vstack([fixed[1], u])
            moved.append(np.linalg.norm(geometry.pack(totals(*more, geometry)) - geometry.pack(base)))
    assert 0.999 * claim <= max(moved) <= claim


def test_bounds_that_doubles_hardly_tell_apart_still_bound():
    lower, upper = 1e9, np.nextafter(1e9, np.inf) + 3e-7
    features = Scaling.of((np.array(lower), np.array(upper)), "bounds", 3, centred=True)
    out = np.empty((4, 3))
    features.apply(np.array([-1e300, lower, upper, 1e300])[:, None] * np.ones(3), out)
    assert np.abs(out).max() <= 1
    tiny = Scaling.of((np.array(1.0), np.array(1 + 2.0**-52)), "bounds", 3, centred=True)
    tiny.apply(np.array([0.0, 1.0, 1 + 2.0**-52, 2.0])[:, None] * np.ones(3), out)
    assert np.abs(out).max() <= 1


def test_rounding_costs_next_to_nothing():
    for size, epsilon in ((3, 0.01), (20, 1.0), (200, 0.01)):
        for delta in (1e-5, 0.0):
            geometry = Geometry.of(size, 1, None, True, False, private=True)
            mechanism = plan(epsilon, delta, geometry).releases[0].mechanism
            exact = geometry.longest**2 * math.sqrt(1 + 0.6**2)
            budget = gaussian_mu(epsilon, delta) if delta else epsilon
            assert exact / budget <= mechanism.scale <= 1.001 * exact / budget


# --- the noise ----------------------------------------------------------------------------------------------------


def on_no_data(delta, runs=400, d=3):
    geometry = Geometry.of(d, 1, None, True, False, private=True)
    guarantee = plan(1.0, delta, geometry)
    source = [NoiseSource(seed).stream("second moments") for seed in range(runs)]
    mechanism = guarantee.releases[0].mechanism
    released = [geometry.unpack(mechanism.release(np.zeros(geometry.size), stream)) for stream in source]
    return np.array(released), noise_of(mechanism, geometry), geometry


def test_gaussian_noise_is_half_as_large_off_the_diagonal():
    out, noise, geometry = on_no_data(1e-5)
    gram, cross = out[:, :, :4], out[:, :, 4]
    np.testing.assert_array_equal(gram, gram.transpose(0, 2, 1))
    diagonal = gram[:, range(4), range(4)].ravel()
    upper = gram[:, *np.triu_indices(4, 1)].ravel()
    sigma = geometry.longest**2 * math.sqrt(1.36) / gaussian_mu(1.0, 1e-5)
    assert noise.scale == pytest.approx(sigma, rel=1e-3)
    for values, scale in (
        (diagonal, sigma),
        (upper, sigma / math.sqrt(2)),
        (cross.ravel(), sigma / (0.6 * geometry.longest)),
    ):
        assert stats.kstest(values, stats.norm(scale=scale).cdf).pvalue > FALSE_ALARM, "false alarm 1e-6"
        assert stats.kstest(values, stats.norm(scale=0.7 * scale).cdf).pvalue < FALSE_ALARM
    largest = np.linalg.eigvalsh(gram)[:, -1]
    assert 0.4 * noise.largest_eigenvalue < largest.mean() < noise.largest_eigenvalue


def test_pure_noise_has_a_gamma_norm():
    out, _, geometry = on_no_data(0.0)
    gram, cross = out[:, :, :4], out[:, :, 4]
    weight = 0.6 * geometry.longest
    norm = np.sqrt((gram**2).sum(axis=(1, 2)) + weight**2 * (cross**2).sum(axis=1))
    scale = geometry.longest**2 * math.sqrt(1.36)
    assert stats.kstest(norm, stats.gamma(geometry.size, scale=scale).cdf).pvalue > FALSE_ALARM, "false alarm 1e-6"
    assert stats.kstest(norm, stats.gamma(geometry.size, scale=0.85 * scale).cdf).pvalue < FALSE_ALARM


# --- skdp's rules that are not in the common tests ----------------------------------------------------------------


@every
def test_more_epsilon_never_means_more_noise(estimator):
    for release in range(len(estimator.privacy_plan(n_features=6, n_classes=2).releases)):
        noise = [
            clone(estimator)
            .set_params(epsilon=float(epsilon))
            .privacy_plan(n_features=6, n_classes=2)
            .releases[release]
            .mechanism.scale
            for epsilon in np.logspace(-3, 3, 21)
        ]
        assert np.all(np.diff(noise) < 0)


@every
def test_order_of_the_records_does_not_matter(estimator):
    X, y = data_for(estimator)
    X = np.round(X * 4) / 4
    order = np.random.default_rng(0).permutation(len(X))
    one, other = (declared(estimator, random_state=1).fit(X[rows], y[rows]).coef_ for rows in (slice(None), order))
    np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:bounds_y are far too wide")
def test_the_ridge_is_a_public_number():
    X, y = data_for(FunctionalMechLinReg())
    fits = [FunctionalMechLinReg(**GOOD, delta=1e-5).fit(X[:n_rows], y[:n_rows] + n_rows) for n_rows in (0, 300)]
    assert fits[0].alpha_ == fits[1].alpha_


# --- parameters ---------------------------------------------------------------------------------------------------

GOOD = {"bounds": (-5, 5), "bounds_y": (-5, 5)}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"bounds": None}, "bounds must be given"),
        ({"bounds_y": None}, "bounds_y must be given"),
        ({"bounds": 3}, "bounds must be a pair"),
        ({"bounds": (1, 2, 3)}, "bounds must be a pair"),
        ({"bounds": ("a", "b")}, "bounds must be a pair"),
        ({"bounds": (1, 1)}, "below its upper"),
        ({"bounds": (2, 1)}, "below its upper"),
        ({"bounds": (0, math.inf)}, "below its upper"),
        ({"bounds": (math.nan, 1)}, "below its upper"),
        ({"bounds": ([0] * 3, [1] * 3)}, "bounds for 3 columns"),
        ({"bounds_y": ([0] * 2, [1] * 2)}, "bounds for 2 columns"),
        ({"bounds_y": (1, -1)}, "bounds_y"),
        ({"data_norm": 0}, "data_norm"),
        ({"data_norm": math.inf}, "data_norm"),
        ({"alpha": -1}, "alpha"),
        ({"alpha": math.nan}, "alpha"),
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 1}, "delta"),
    ],
    ids=str,
)
def test_bad_parameters_cost_nothing(parameters, message):
    X, y = data_for(FunctionalMechLinReg())
    accountant = wide_accountant()
    with pytest.raises(ValueError, match=message):
        FunctionalMechLinReg(**{**GOOD, **parameters}, accountant=accountant).fit(X, y)
    assert len(accountant) == 0


def test_bad_types_are_refused():
    X, y = data_for(FunctionalMechLinReg())
    for parameters in ({"alpha": "1"}, {"alpha": True}, {"fit_intercept": 1}, {"data_norm": "2"}, {"accountant": 3}):
        with pytest.raises(TypeError):
            FunctionalMechLinReg(**{**GOOD, **parameters}).fit(X, y)
    with pytest.raises(ValueError, match="calibration"):
        FunctionalMechLogReg(bounds=(0, 1), calibration="platt", classes=[0, 1]).fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="n_classes"):
        FunctionalMechLogReg(bounds=(0, 1)).privacy_plan(n_features=3)
    with pytest.raises(ValueError, match="sample_weight is given and max_weight is None"):
        FunctionalMechLinReg(**GOOD).fit(X, y, sample_weight=y)


def test_plan_knows_the_number_of_targets():
    model = FunctionalMechLinReg(bounds=(-5, 5), bounds_y=([-5, -5], [5, 5]), delta=1e-5)
    X, y = data_for(model)
    assert model.fit(X, np.column_stack([y, y])).privacy_ == model.privacy_plan(n_features=5)
    single = FunctionalMechLinReg(**GOOD, delta=1e-5)
    assert single.fit(X, np.column_stack([y, y])).privacy_ == single.privacy_plan(n_features=5, n_targets=2)


@pytest.mark.parametrize(
    "extreme",
    [
        {"epsilon": 1e-6},
        {"epsilon": 1e-6, "delta": 1e-30},
        {"epsilon": 50.0, "delta": 1e-30},
        {"epsilon": 1e9, "delta": 1e-5},
        {"epsilon": 1e6},
        {"delta": 0.999},
        {"bounds": (-1e99, 1e99)},
        {"bounds": (1e-99, 2e-99)},
        {"data_norm": 1e-6},
        {"data_norm": 1e100},
        {"alpha": 0.0},
        {"alpha": 1e100},
    ],
    ids=str,
)
def test_extreme_parameters_still_fit(extreme):
    X, y = data_for(FunctionalMechLinReg())
    for data in ((X, y), (X[:, :1], y), (np.hstack([X] * 10), y)):
        model = FunctionalMechLinReg(**{**GOOD, **extreme}).fit(*data)
        assert np.all(np.isfinite(model.coef_))
        labels = FunctionalMechLogReg(**{"bounds": (-5, 5), "classes": [0, 1], **extreme}).fit(data[0], data[1] > 0)
        assert np.all(np.isfinite(labels.coef_))


# --- memory -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_memory_mapped_rows_need_little_memory(tmp_path, dtype):
    n_rows, n_features = 200_000, 10
    X = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=dtype, shape=(n_rows, n_features))
    y = np.lib.format.open_memmap(tmp_path / "y.npy", mode="w+", dtype=np.float64, shape=(n_rows,))
    rng = np.random.default_rng(0)
    X[:] = rng.uniform(-1, 1, size=X.shape)
    y[:] = X[:, 0] / 2
    X, y = (np.load(tmp_path / name, mmap_mode="r") for name in ("X.npy", "y.npy"))
    model = FunctionalMechLinReg(epsilon=1.0, delta=1e-5, bounds=(-1, 1), bounds_y=(-1, 1), random_state=0)
    tracemalloc.start()
    try:
        model.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.15 * 8 * n_rows * n_features
    assert model.coef_[0] == pytest.approx(0.5, abs=0.01)


# --- allowances for rounding, each by its formula -----------------------------------------------------------------


def test_a_rows_norm_allows_for_the_rounding_of_its_entries():
    for norm in np.linspace(0.1, 0.99, 90):
        geometry = Geometry.of(1, 1, float(norm), False, False, private=True)
        # The lattice value next to the norm, on the far side.
        assert geometry.row_norm >= geometry.step * np.rint(norm / geometry.step)
        assert geometry.row_norm >= norm + geometry.step / 2


@pytest.mark.parametrize("delta", [1e-5, 0.0])
def test_mechanisms_allow_for_the_rounding_of_totals(delta):
    for size in (1, 30, 10_000):
        mechanism, _ = l2_mechanism(1.0, delta, 1.0, 2.0, size)
        assert mechanism.sensitivity >= 2.0 + mechanism.step * math.sqrt(size) / 2

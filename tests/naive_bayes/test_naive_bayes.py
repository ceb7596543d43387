"""Naive Bayes: known answers, sensitivities by brute force, the law of the noise, and skdp's rules.

Every stochastic test has a false-alarm probability of 1e-6 and a fixed seed.
"""

import math
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.naive_bayes import CategoricalNB, GaussianNB

from skdp import BudgetAccountant, DPNaiveBayes
from skdp.accounting import gaussian_mu
from skdp.mechanisms import DiscreteLaplaceMechanism, GaussianMechanism, NoiseSource
from skdp.naive_bayes import _naive_bayes
from skdp.naive_bayes._naive_bayes import Layout, plan, sums_by_class
from skdp.release.counts import moment_weight, noise_scale
from skdp.release.session import ReleaseSession
from skdp.schema.columns import Encoder, check_columns
from skdp.solvers import tables
from tests.difficult import difficult
from tests.estimators import NAIVE_BAYES, name_of, released
from tests.naive_bayes.data import MIXED, mixed
from tests.parameters import Parameters

FALSE_ALARM = 1e-6
INF = math.inf

VARIANTS = [
    DPNaiveBayes(epsilon=10.0, **MIXED, **variant)
    for variant in (
        {"delta": 1e-5},
        {"delta": 0.0},
        {"delta": 1e-5, "numeric": "gaussian"},
        {"delta": 0.0, "numeric": "gaussian"},
    )
]
every = pytest.mark.parametrize("estimator", VARIANTS, ids=name_of)


def declared(estimator, n_classes=3, **parameters):
    """A copy that neither warns nor depends on labels."""
    return clone(estimator).set_params(**{"classes": list(range(n_classes)), **parameters})


def wide_accountant(**parameters):
    return BudgetAccountant(epsilon=1e8, delta=0.5, composition="basic", **parameters)


# --- without noise, scikit-learn's answer -------------------------------------------------------------------------


def without_noise(**parameters):
    return DPNaiveBayes(**{"epsilon": INF, "dependence": 0, "var_smoothing": 0, "classes": [0, 1, 2], **parameters})


def test_gaussian_columns_are_gaussian_nb(monkeypatch):
    monkeypatch.setattr(_naive_bayes, "SAMPLING", 0.0)
    X, y = mixed()
    X = X[:, [1, 3]]
    ours = without_noise(bounds=([-1, 0], [0.5, 7]), numeric="gaussian").fit(X, y)
    clipped = np.clip(X, [-1, 0], [0.5, 7])
    theirs = GaussianNB(var_smoothing=0).fit(clipped, y)
    np.testing.assert_allclose(ours.theta_, theirs.theta_, rtol=1e-12)
    np.testing.assert_allclose(ours.var_, theirs.var_, rtol=1e-12)
    np.testing.assert_allclose(ours.class_prior_, theirs.class_prior_, rtol=1e-12)
    np.testing.assert_array_equal(ours.class_count_, theirs.class_count_)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(clipped), atol=1e-12)


@pytest.mark.parametrize("alpha", [1.0, 0.1, 1e-10])
def test_categorical_columns_are_categorical_nb(alpha):
    X, y = mixed()
    X = X[:, [0, 2]]
    ours = without_noise(categorical_features=[0, 1], n_categories=[3, 4], alpha=alpha).fit(X, y)
    theirs = CategoricalNB(alpha=alpha, min_categories=[3, 4]).fit(X, y)
    for mine, other in zip(ours.feature_log_prob_, theirs.feature_log_prob_, strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-12)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(np.exp(ours.predict_log_proba(X)), theirs.predict_proba(X), atol=1e-12)


def test_bins_are_categories():
    X, y = mixed()
    X = X[:, [1, 4]]
    edges = [0, 1, 10, 100, 1000]
    ours = without_noise(bounds=(-0.8, 0.8), n_bins=7, bin_edges={1: edges}).fit(X, y)
    assert ours.bin_edges_[0] == pytest.approx(np.linspace(-0.8, 0.8, 8))
    assert ours.bin_edges_[1].tolist() == edges
    cells = [np.digitize(X[:, j], ours.bin_edges_[j][1:-1]) for j in (0, 1)]
    theirs = CategoricalNB(min_categories=[7, 4]).fit(np.column_stack(cells), y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(np.column_stack(cells)), atol=1e-12)


def test_mixed_columns_multiply(monkeypatch):
    monkeypatch.setattr(_naive_bayes, "SAMPLING", 0.0)
    X, y = mixed()
    ours = without_noise(**{**MIXED, "bin_edges": None}, numeric="gaussian").set_params(bounds=(-1, 10))
    ours.fit(X, y)
    gauss = GaussianNB(var_smoothing=0).fit(np.clip(X[:, [1, 3, 4]], -1, 10), y)
    table = CategoricalNB(min_categories=[3, 4]).fit(X[:, [0, 2]], y)
    joint = (
        gauss.predict_joint_log_proba(np.clip(X[:, [1, 3, 4]], -1, 10))
        + table.predict_joint_log_proba(X[:, [0, 2]])
        - np.log(gauss.class_prior_)
    )
    expected = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
    np.testing.assert_allclose(ours.predict_proba(X), expected, atol=1e-12)


@pytest.mark.parametrize("numeric", ["binned", "gaussian"])
@pytest.mark.parametrize("delta", [1e-5, 0.0])
def test_little_noise_comes_close_to_none(numeric, delta):
    X, y = mixed()
    plain = without_noise(**MIXED, numeric=numeric).fit(X, y)
    sharp = without_noise(**MIXED, numeric=numeric, epsilon=1e9, delta=delta, random_state=0).fit(X, y)
    np.testing.assert_allclose(sharp.predict_proba(X), plain.predict_proba(X), atol=2e-3)


def test_values_beyond_the_bounds_count_as_the_bounds():
    X, y = mixed()
    for numeric in ("binned", "gaussian"):
        inside, beyond = X.copy(), X.copy()
        inside[0] = [0, 1, 0, 10, 1000]
        beyond[0] = [0, 1e300, 0, 11, 1e300]
        models = [without_noise(**MIXED, numeric=numeric).fit(data, y) for data in (inside, beyond)]
        np.testing.assert_array_equal(released(models[0]), released(models[1]))
        np.testing.assert_array_equal(models[0].predict_proba(inside), models[0].predict_proba(beyond))


@pytest.mark.parametrize("unknown", [3, -1, 0.5, 1e300, -1e300, 2.0000001])
def test_unknown_categories_are_counted_and_say_nothing(unknown):
    X, y = mixed()
    strange = X.copy()
    strange[:100, 0] = unknown
    model = without_noise(**MIXED).fit(strange, y)
    known = without_noise(**MIXED).fit(X[100:], y[100:])
    np.testing.assert_allclose(model.feature_log_prob_[0], known.feature_log_prob_[0], atol=1e-12)
    np.testing.assert_allclose(model.class_count_, np.bincount(y))
    without = without_noise(bounds=(0, 10), categorical_features=[0], n_categories=3).fit(X[:, [0]], y)
    np.testing.assert_allclose(
        without.predict_proba(strange[:100, [0]]), np.tile(without.class_prior_, (100, 1)), atol=1e-12
    )


def test_priors_are_used_as_they_are():
    X, y = mixed()
    plain = without_noise(**MIXED).fit(X, y)
    model = without_noise(**MIXED, priors=[0.5, 0.5, 0.0]).fit(X, y)
    assert model.class_prior_.tolist() == [0.5, 0.5, 0.0]
    odds = plain.predict_proba(X) / plain.class_prior_ * [0.5, 0.5, 0]
    np.testing.assert_allclose(model.predict_proba(X), odds / odds.sum(axis=1, keepdims=True), atol=1e-12)
    assert 2 not in model.predict(X)


@every
@pytest.mark.parametrize("epsilon", [1.0, INF])
def test_a_class_without_records_is_defined_and_rare(estimator, epsilon):
    X, y = mixed(4000)
    model = declared(estimator, 4, epsilon=epsilon, random_state=0).fit(X, y)
    probabilities = model.predict_proba(X)
    assert np.all(np.isfinite(probabilities))
    assert probabilities[:, 3].mean() < 0.02
    assert 0 < model.class_prior_[3] < 0.02


# --- the power of the evidence ------------------------------------------------------------------------------------


def test_exponent_is_that_of_as_many_equal_features():
    assert tables.exponent(np.full(5, 0.3), 0.25) == pytest.approx(1 / (1 + 0.25 * 4))
    assert tables.exponent(np.array([0.3, 0, 0, 0]), 0.25) == 1
    assert tables.exponent(np.zeros(7), 0.25) == 1
    assert tables.exponent(np.array([]), 0.25) == 1
    assert tables.exponent(np.full(5, 0.3), 0) == 1
    assert 1 / 1.8 < tables.exponent(np.array([0.3, 0.3, 0.01]), 0.75) + 1e-12 < 1


def test_exponent_is_the_best_for_equally_correlated_gaussian_evidence():
    # Log-likelihood ratios with means +-v/2 and variance v in each class, of correlation rho: by discriminant analysis.
    m, rho, v = 6, 0.3, 0.8
    covariance = v * ((1 - rho) * np.eye(m) + rho)
    best = np.linalg.solve(covariance, np.full(m, v))
    np.testing.assert_allclose(best, tables.exponent(np.ones(m), rho))


def test_copies_of_a_feature_make_naive_bayes_too_sure_and_dependence_mends_it():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=20_000)
    x = np.clip(rng.normal(y - 0.5, 1), -3, 3)
    X = np.column_stack([x] * 6)

    def loss(dependence):
        model = DPNaiveBayes(
            epsilon=1.0, delta=1e-5, bounds=(-3, 3), dependence=dependence, classes=[0, 1], random_state=0
        )
        return -model.fit(X, y).predict_log_proba(X)[np.arange(len(y)), y].mean()

    single = DPNaiveBayes(epsilon=INF, bounds=(-3, 3), classes=[0, 1]).fit(X[:, :1], y)
    best = -single.predict_log_proba(X[:, :1])[np.arange(len(y)), y].mean()
    assert loss(1.0) < best + 0.01 < loss(0.15) < loss(0.0) - 0.1


# --- the estimate, from released numbers --------------------------------------------------------------------------


def test_projection_is_the_nearest_point():
    rng = np.random.default_rng(0)
    cells = rng.normal(size=(3, 2, 5))
    totals = np.array([2.0, 0.7])
    out = tables.onto_simplex(cells, totals)
    np.testing.assert_allclose(out.sum(axis=-1), np.tile(totals, (3, 1)))
    assert out.min() >= 0
    for _ in range(300):
        other = rng.dirichlet(np.ones(5), size=(3, 2)) * totals[:, None]
        assert np.all(((other - cells) ** 2).sum(-1) >= ((out - cells) ** 2).sum(-1) - 1e-12)
    flat = np.full((1, 1, 4), 2.0)
    np.testing.assert_allclose(tables.onto_simplex(flat, np.array([8.0])), flat)


def test_counts_of_classes_combine_all_tables():
    columns = columns_of(2, n_bins=16, bounds=(0, 1), categorical_features=[0], n_categories=3)
    layout = Layout(columns, 2)
    rng = np.random.default_rng(0)
    truth = np.zeros((2, layout.width))
    truth[:, 0] = truth[:, 4] = [3000, 5000]
    noisy = (truth + 10 * rng.normal(size=truth.shape) for _ in range(2000))
    counts = np.array([_naive_bayes.class_totals(sums, layout, 10)[0] for sums in noisy])
    # Row sums of 4 and of 16 cells: the best combination has variance 100 / (1/4 + 1/16), a single table 400 or 1600.
    assert counts.mean(axis=0) == pytest.approx([3000, 5000], abs=3)
    chi_square = (counts - [3000, 5000]).ravel() ** 2 @ np.ones(4000) / 320
    assert stats.chi2(4000).sf(chi_square) > FALSE_ALARM, "false alarm 1e-6"
    assert stats.chi2(4000).cdf(chi_square) > FALSE_ALARM, "false alarm 1e-6"


def test_smoothing_removes_noise_and_leaves_structure():
    rng = np.random.default_rng(0)
    bins = np.arange(16)
    bell = 1000 * np.exp(-((bins - 7) ** 2) / 18)
    spike = np.where(bins == 0, 9000.0, 10.0)
    for truth, gain in ((bell, 0.5), (spike, 1.02)):
        cells = truth + rng.normal(0, 60, size=(200, 1, 16))
        out, left = tables.smoothed(cells, np.array([truth.sum()]), 60.0)
        assert ((out - truth) ** 2).mean() < gain * ((cells - truth) ** 2).mean()
        assert np.all(left <= 60)


# --- what one record can change -----------------------------------------------------------------------------------


def columns_of(n_features, n_bins=0, **given):
    return check_columns(Parameters(**given), n_bins=n_bins).resolve(n_features, None)


def setting(delta, numeric, epsilon=1.0, n_classes=3, **parameters):
    given = {**MIXED, **parameters}
    columns = columns_of(5, n_bins=16 if numeric == "binned" else 0, **given)
    layout = Layout(columns, n_classes)
    return layout, plan(epsilon, delta, layout).releases[0].mechanism


ONLY_NUMERIC = {"categorical_features": None, "n_categories": None, "bin_edges": None}


@pytest.mark.parametrize("delta", [1e-5, 0.0])
@pytest.mark.parametrize("numeric", ["binned", "gaussian"])
@pytest.mark.parametrize("parameters", [{}, ONLY_NUMERIC], ids=["mixed", "numeric"])
def test_sums_move_by_no_more_than_the_noise_is_made_for(delta, numeric, parameters):
    layout, mechanism = setting(delta, numeric, **parameters)
    rng = np.random.default_rng(1)
    X, y = mixed(50)
    rows = [*mixed(60, seed=7)[0], *rng.normal(scale=20, size=(40, 5))]
    rows += [[0, 1, 0, 10, 1e300], [2, -1, 3, 0, -1e300], [9, 1e300, -4, -1e300, 5], [1, 0, 1, 5, 0.5]]
    moved = []
    for row in rows:
        for label in range(3):
            more = sums_by_class(np.vstack([X, row]), np.append(y, label), layout, mechanism)
            change = more - sums_by_class(X, y, layout, mechanism)
            assert not np.delete(change, label, axis=0).any(), "another class's row moved"
            # Removing the record again, in another order of rows: exact sums.
            less = sums_by_class(np.vstack([row, X])[1:], np.append(label, y)[1:], layout, mechanism)
            np.testing.assert_array_equal(more - less, change)
            moved.append(np.abs(change).sum() if delta == 0 else np.linalg.norm(change))
    assert max(moved) <= mechanism.sensitivity
    assert max(moved) >= 0.99999 * mechanism.sensitivity


def test_sensitivity_does_not_know_the_number_of_classes():
    for delta in (1e-5, 0.0):
        two, many = (setting(delta, "gaussian", n_classes=k)[1] for k in (2, 50))
        assert two.sensitivity == many.sensitivity


@pytest.mark.parametrize("delta", [1e-5, 0.0])
def test_sums_are_exact_in_any_order(delta):
    layout, mechanism = setting(delta, "gaussian")
    X, y = mixed(9000)
    order = np.random.default_rng(0).permutation(len(X))
    whole = sums_by_class(X, y, layout, mechanism)
    np.testing.assert_array_equal(whole, sums_by_class(X[order], y[order], layout, mechanism))
    parts = sum(sums_by_class(X[part], y[part], layout, mechanism) for part in np.array_split(np.arange(9000), 7))
    np.testing.assert_array_equal(whole, parts)
    if isinstance(mechanism, DiscreteLaplaceMechanism):
        steps = whole / mechanism.step
        np.testing.assert_array_equal(steps, np.rint(steps))


def test_sums_are_what_they_are_said_to_be():
    X, y = mixed(500)
    layout, mechanism = setting(1e-5, "gaussian")
    sums = sums_by_class(X, y, layout, mechanism)
    for k in range(3):
        own = X[y == k]
        v = np.column_stack([own[:, 1], own[:, 3] / 5 - 1])
        expected = np.concatenate(
            [
                [*np.bincount(own[:, 0].astype(int), minlength=3), 0],
                [*np.bincount(own[:, 2].astype(int), minlength=4), 0],
                np.histogram(np.clip(own[:, 4], 0, 999), [0, 1, 10, 100, 1000])[0],
                v.sum(axis=0),
                1.375 * (v**2 - 0.5).sum(axis=0),
            ]
        )
        np.testing.assert_allclose(sums[k], expected, atol=1e-3)


@pytest.mark.parametrize("bounds", [(1e9, np.nextafter(1e9, np.inf) + 3e-7), (-1e99, 1e99), (1e-99, 2e-99)], ids=str)
def test_extreme_bounds_still_bound(bounds):
    for delta in (1e-5, 0.0):
        for numeric in ("binned", "gaussian"):
            layout, mechanism = setting(delta, numeric, **ONLY_NUMERIC, bounds=bounds)
            for value in (-1e300, bounds[0], np.mean(bounds), bounds[1], 1e300, 0.0, 5e-324):
                change = sums_by_class(np.full((1, 5), value), np.array([1]), layout, mechanism)
                moved = np.abs(change).sum() if delta == 0 else np.linalg.norm(change)
                assert 0 < moved <= mechanism.sensitivity


# --- the noise ----------------------------------------------------------------------------------------------------


def noise_alone(delta, numeric, runs=200, **parameters):
    layout, mechanism = setting(delta, numeric, **parameters)
    empty = sums_by_class(np.empty((0, 5)), np.empty(0, dtype=int), layout, mechanism)
    assert not empty.any()
    noise = [mechanism.release(empty, NoiseSource(seed).stream("x")) for seed in range(runs)]
    return np.ravel(noise), mechanism, layout


@pytest.mark.parametrize("numeric", ["binned", "gaussian"])
def test_gaussian_noise_has_the_stated_size(numeric):
    noise, mechanism, _ = noise_alone(1e-5, numeric)
    m, g = (5, 0) if numeric == "binned" else (3, 2)
    sigma = math.sqrt(m + g * (1 + 1.375**2 / 4)) / gaussian_mu(1.0, 1e-5)
    assert isinstance(mechanism, GaussianMechanism)
    assert mechanism.scale == pytest.approx(sigma, rel=1e-6)
    assert noise_scale(mechanism) == mechanism.scale
    assert stats.kstest(noise, stats.norm(scale=sigma).cdf).pvalue > FALSE_ALARM, "false alarm 1e-6"
    assert stats.kstest(noise, stats.norm(scale=0.85 * sigma).cdf).pvalue < FALSE_ALARM


def test_pure_noise_has_the_stated_law():
    noise, mechanism, _ = noise_alone(0.0, "gaussian")
    scale = 3 + 2 * 1.5
    assert mechanism.scale == pytest.approx(scale, rel=1e-6)
    assert moment_weight(mechanism) == 1
    assert stats.kstest(noise, stats.laplace(scale=scale).cdf).pvalue > FALSE_ALARM, "false alarm 1e-6"
    assert stats.kstest(noise, stats.laplace(scale=0.85 * scale).cdf).pvalue < FALSE_ALARM
    assert noise.std() == pytest.approx(noise_scale(mechanism), rel=0.1)


def test_counts_alone_get_integer_noise():
    noise, mechanism, _ = noise_alone(0.0, "binned", runs=200)
    assert mechanism.step == 1
    np.testing.assert_array_equal(noise, np.rint(noise))
    values, counts = np.unique(noise[np.abs(noise) <= 12], return_counts=True)
    a = 1 / 5
    mass = (1 - math.exp(-a)) / (1 + math.exp(-a)) * np.exp(-a * np.abs(values))
    expected = mass * len(noise)
    assert stats.chi2(len(values)).sf(((counts - expected) ** 2 / expected).sum()) > FALSE_ALARM, "false alarm 1e-6"


@pytest.mark.parametrize("epsilon", [2.0**-20, 1e-3, 1e9])
def test_pure_lattice_is_fine_enough_for_the_sampler(epsilon):
    noise, mechanism, _ = noise_alone(0.0, "gaussian", runs=1, epsilon=epsilon)
    assert np.all(np.isfinite(noise))
    assert mechanism.step <= 0.5
    assert mechanism.step < mechanism.scale or epsilon > 1e6


# --- the budget ---------------------------------------------------------------------------------------------------


def test_infinite_epsilon_is_recorded_as_no_privacy():
    model = without_noise(**MIXED, delta=1e-5)
    assert model.privacy_plan(n_features=5).cost == model._fixed_cost()
    assert "not private" in repr(model.fit(*mixed()).privacy_)


@every
def test_plan_does_not_need_names(estimator):
    named = declared(estimator, categorical_features=["a", "c"], bin_edges={"e": [0, 1, 10, 100, 1000]})
    X, y = mixed()
    frame = pd.DataFrame(X, columns=list("abcde"))
    assert named.fit(frame, y).privacy_ == named.privacy_plan(n_features=5)
    by_position = declared(estimator, random_state=0).fit(X, y)
    for form in (["a", "c"], pd.Index(["a", "c"]), ["a", 2], np.array([True, False, True, False, False]), (0, 2)):
        other = declared(estimator, categorical_features=form, random_state=0).fit(frame, y)
        np.testing.assert_array_equal(released(other), released(by_position))


@every
def test_more_budget_never_means_more_noise(estimator):
    def scale(**parameters):
        return declared(estimator, **parameters).privacy_plan(n_features=5).releases[0].mechanism.scale

    assert np.all(np.diff([scale(epsilon=float(e)) for e in np.logspace(-3, 3, 21)]) < 0)
    if estimator.delta:
        assert np.all(np.diff([scale(epsilon=1.0, delta=float(d)) for d in np.logspace(-15, -2, 14)]) < 0)


# --- what may be seen ---------------------------------------------------------------------------------------------


@every
def test_shapes_of_attributes(estimator):
    model = declared(estimator).fit(*mixed())
    shapes = [None if table is None else table.shape for table in model.feature_log_prob_]
    numeric = (3, 16) if model.numeric == "binned" else None
    assert shapes == [(3, 3), numeric, (3, 4), numeric, (3, 4)]
    for table in model.feature_log_prob_:
        if table is not None:
            np.testing.assert_allclose(np.exp(table).sum(axis=1), 1)
    gaussian = [False, numeric is None, False, numeric is None, False]
    for moment in (model.theta_, model.var_):
        np.testing.assert_array_equal(~np.isnan(moment), np.tile(gaussian, (3, 1)))
    assert [edges is None for edges in model.bin_edges_] == [True, numeric is None, True, numeric is None, False]
    assert model.class_prior_.sum() == pytest.approx(1)
    assert 0 < model.exponent_ <= 1


@every
def test_nothing_of_the_data_is_left_without_budget(estimator):
    # With next to no budget, models of different data cannot be told apart, attribute by attribute.
    X, y = mixed()
    data = (X, y), (mixed(seed=3)[0][:, ::-1], np.zeros(400, dtype=int))
    runs = [[declared(estimator, epsilon=1e-6, random_state=s).fit(*d) for s in range(200)] for d in data]
    for attribute in ("class_prior_", "exponent_"):
        a, b = (np.array([np.ravel(getattr(m, attribute))[0] for m in models]) for models in runs)
        assert stats.ks_2samp(a, b, method="asymp").pvalue > FALSE_ALARM, "false alarm 1e-6"
    a, b = (np.array([released(m) for m in models]) for models in runs)
    smallest = min(stats.ks_2samp(*pair, method="asymp").pvalue for pair in zip(a.T, b.T, strict=True))
    assert smallest > FALSE_ALARM / a.shape[1], "false alarm 1e-6"


@every
@pytest.mark.parametrize("epsilon", [2.0**-20, 0.01, 1.0, INF])
def test_nothing_warns_and_everything_is_finite(estimator, epsilon):
    X, y = mixed()
    far = 1e300 * (X - 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Of few records.
        warnings.filterwarnings("ignore", "the released counts|all released quantiles")
        for n_rows in (0, 1, 400):
            for data in (X, far):
                model = declared(estimator, epsilon=epsilon).fit(data[:n_rows], y[:n_rows])
                assert np.all(np.isfinite(released(model)))
                for rows in (X, far, X[:0] if n_rows == 0 else X[:1]):
                    if len(rows):
                        assert np.all(np.isfinite(model.predict_log_proba(rows)))
                        np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1)


@every
def test_form_and_order_of_the_data_do_not_matter(estimator):
    X, y = mixed()
    X = np.round(X * 4) / 4
    reference = released(declared(estimator, random_state=1).fit(X, y))
    order = np.random.default_rng(0).permutation(len(X))
    forms = [(X.tolist(), y), (X.astype(np.float32), y), (np.asfortranarray(X), y), (pd.DataFrame(X), pd.Series(y))]
    for form, target in [*forms, (X[order], y[order])]:
        np.testing.assert_array_equal(released(declared(estimator, random_state=1).fit(form, target)), reference)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8, np.uint8, np.uint64, bool])
@pytest.mark.parametrize("numeric", ["binned", "gaussian"])
def test_integers_are_read_as_floats_are(dtype, numeric):
    rng = np.random.default_rng(0)
    X = rng.integers(2 if dtype is bool else 5, size=(300, 3)).astype(dtype)
    y = rng.integers(2, size=300)
    model = DPNaiveBayes(
        bounds=(0, 3),
        categorical_features=[0],
        n_categories=3,
        bin_edges={2: [0, 1, 5]},
        numeric=numeric,
        classes=[0, 1],
        random_state=0,
    )
    other = clone(model).fit(X.astype(float), y)
    np.testing.assert_array_equal(released(model.fit(X, y)), released(other))
    np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(X.astype(float)))


def test_one_bin_and_one_category_say_nothing():
    X, y = mixed()
    model = DPNaiveBayes(categorical_features=[0], n_categories=1, bin_edges={1: [0, 1]}, classes=[0, 1, 2])
    model.fit(X[:, :2], y)
    np.testing.assert_allclose(model.predict_proba(X[:, :2]), np.tile(model.class_prior_, (len(X), 1)))


@every
def test_parameters_changed_after_the_fit_do_not_matter(estimator):
    X, y = mixed()
    model = declared(estimator).fit(X, y)
    before = model.predict_proba(X)
    model.set_params(categorical_features=None, n_categories=None, bin_edges=None, bounds=(0, 1), dependence=1.0)
    np.testing.assert_array_equal(model.predict_proba(X), before)


# --- parameters ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"bounds": None}, "bounds must be given"),
        ({"bounds": 3}, "bounds must be a pair"),
        ({"bounds": (1, 1)}, "below its upper"),
        ({"bounds": (0, INF)}, "below its upper"),
        ({"bounds": ([0] * 4, [1] * 4)}, "bounds for 4 columns"),
        ({"n_categories": None}, "n_categories must be given"),
        ({"n_categories": [3]}, "n_categories must have one entry"),
        ({"n_categories": [3, 0]}, "n_categories must be at least 1"),
        ({"n_categories": 10**7}, "n_categories must add up"),
        ({"categorical_features": None}, "n_categories"),
        ({"categorical_features": [0, 0]}, "categorical_features"),
        ({"categorical_features": [0, 4]}, "categorical_features"),
        ({"categorical_features": [0, 5]}, "categorical_features names the column 5"),
        ({"categorical_features": [0, -1]}, "categorical_features"),
        ({"categorical_features": [0, 1.5]}, "categorical_features"),
        ({"categorical_features": "ab"}, "categorical_features"),
        ({"categorical_features": [[0, 2]]}, "categorical_features"),
        ({"categorical_features": [True, False, True]}, "mask of 3 columns"),
        ({"numeric": "histogram"}, "numeric"),
        ({"n_bins": 1}, "n_bins"),
        ({"n_bins": 10**7}, "n_bins"),
        ({"bin_edges": {4: [0]}}, "bin_edges"),
        ({"bin_edges": {4: [0, 1, 1]}}, "bin_edges"),
        ({"bin_edges": {4: [0, INF]}}, "bin_edges"),
        ({"bin_edges": {4: "abc"}}, "bin_edges"),
        ({"bin_edges": {7: [0, 1]}}, "bin_edges names the column 7"),
        ({"bin_edges": {0: [0, 1]}}, "bin_edges"),
        ({"alpha": 0}, "alpha"),
        ({"alpha": -1.0}, "alpha"),
        ({"alpha": math.nan}, "alpha"),
        ({"var_smoothing": -1}, "var_smoothing"),
        ({"dependence": -0.1}, "dependence"),
        ({"dependence": 1.1}, "dependence"),
        ({"priors": [0.5, 0.5]}, "priors"),
        ({"priors": [0.5, 0.5, 0.5]}, "priors"),
        ({"priors": [1.5, 0.5, -1.0]}, "priors"),
        ({"priors": "abc"}, "priors"),
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"classes": [0]}, "classes"),
    ],
    ids=str,
)
def test_bad_parameters_are_named_and_cost_nothing(parameters, message):
    accountant = wide_accountant()
    model = DPNaiveBayes(**{**MIXED, "classes": [0, 1, 2], **parameters}, accountant=accountant)
    with pytest.raises(ValueError, match=message):
        model.fit(*mixed())
    with pytest.raises(ValueError, match=message):
        model.privacy_plan(n_features=5)
    assert len(accountant) == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("alpha", "1"),
        ("dependence", None),
        ("var_smoothing", True),
        ("n_bins", 2.5),
        ("n_categories", 2.5),
        ("n_categories", [2.5, 3]),
        ("n_categories", "ab"),
        ("bin_edges", [0, 1]),
        ("epsilon", "1"),
        ("accountant", 3),
    ],
    ids=str,
)
def test_bad_types_are_refused(name, value):
    with pytest.raises(TypeError, match=name):
        DPNaiveBayes(**{**MIXED, "classes": [0, 1, 2], name: value}).fit(*mixed())


def test_missing_names_and_sample_weights_are_refused():
    X, y = mixed()
    model = DPNaiveBayes(**{**MIXED, "categorical_features": ["a", "c"]}, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="categorical_features names the column 'a'"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="categorical_features"):
        DPNaiveBayes(**{**MIXED, "categorical_features": list("abc"), "n_categories": 3}).privacy_plan(
            n_features=2, n_classes=2
        )
    with pytest.raises(ValueError, match="n_classes"):
        model.set_params(classes=None).privacy_plan(n_features=5)
    with pytest.raises(ValueError, match="sample_weight is given and max_weight is None"):
        model.set_params(classes=[0, 1, 2], categorical_features=MIXED["categorical_features"]).fit(
            X, y, sample_weight=y
        )


def test_bounds_may_be_for_numeric_columns_alone_or_absent_without_them():
    X, y = mixed()
    whole = DPNaiveBayes(**MIXED, classes=[0, 1, 2], random_state=0).fit(X, y)
    short = DPNaiveBayes(**{**MIXED, "bounds": ([-1, 0], [1, 10])}, classes=[0, 1, 2], random_state=0).fit(X, y)
    np.testing.assert_array_equal(released(whole), released(short))
    numeric = DPNaiveBayes(**{**MIXED, "bounds": ([-1, 0, -9], [1, 10, 9])}, classes=[0, 1, 2], random_state=0)
    np.testing.assert_array_equal(released(whole), released(numeric.fit(X, y)))
    none = DPNaiveBayes(categorical_features=[0, 1], n_categories=[3, 4], classes=[0, 1, 2])
    assert none.fit(X[:, [0, 2]], y).predict(X[:, [0, 2]]).shape == y.shape
    edges = DPNaiveBayes(bin_edges={0: [0, 1, 1000]}, classes=[0, 1, 2])
    assert edges.fit(X[:, [4]], y).predict(X[:, [4]]).shape == y.shape


def test_many_cells_are_handled_in_larger_blocks():
    rng = np.random.default_rng(0)
    X = rng.integers(20_000, size=(30_000, 2))
    y = X[:, 0] % 2
    model = DPNaiveBayes(
        epsilon=INF, dependence=0, categorical_features=[0, 1], n_categories=20_000, classes=[0, 1], alpha=1e-3
    )
    theirs = CategoricalNB(alpha=1e-3, min_categories=20_000).fit(X, y)
    np.testing.assert_allclose(model.fit(X, y).predict_proba(X[:500]), theirs.predict_proba(X[:500]), atol=1e-9)


# --- memory -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("numeric", ["binned", "gaussian"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
def test_memory_mapped_rows_need_little_memory(tmp_path, dtype, numeric):
    n_rows, n_features = 200_000, 10
    X = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=dtype, shape=(n_rows, n_features))
    rng = np.random.default_rng(0)
    X[:] = 1000 * rng.uniform(-1, 1, size=X.shape)
    y = (X[:, 0] > 0).astype(int)
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = DPNaiveBayes(epsilon=1.0, delta=1e-5, bounds=(-1e3, 1e3), numeric=numeric, classes=[0, 1], random_state=0)
    tracemalloc.start()
    try:
        model.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
        model.predict(X)
        predicted = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * X.dtype.itemsize * n_rows * n_features
    assert predicted < 1.0 * X.dtype.itemsize * n_rows * n_features
    assert model.score(X[:1000], y[:1000]) > 0.9


@pytest.mark.parametrize("estimator", NAIVE_BAYES, ids=name_of)
def test_common_instances_are_of_both_kinds(estimator):
    assert isinstance(estimator, DPNaiveBayes)


# --- what one record, or one parameter, might have been confused with ---------------------------------------------


@pytest.mark.parametrize("form", [[1, 0], ["b", "a"], np.array([1, 0])], ids=str)
def test_categorical_columns_in_any_order(form):
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=2000)
    X = np.column_stack([np.where(rng.random(2000) < 0.9, y, rng.integers(5, size=2000)), rng.integers(2, size=2000)])
    frame = pd.DataFrame(X, columns=list("ab"))
    common = {"epsilon": INF, "classes": range(5), "dependence": 0}
    ordered = DPNaiveBayes(categorical_features=[0, 1], n_categories=[5, 2], **common).fit(frame, y)
    other = DPNaiveBayes(categorical_features=form, n_categories=[2, 5], **common).fit(frame, y)
    np.testing.assert_allclose(other.predict_proba(frame), ordered.predict_proba(frame))
    assert [table.shape for table in other.feature_log_prob_] == [(5, 5), (5, 2)]


def test_values_below_the_bounds_are_counted_in_the_lowest_bin():
    X = np.array([[-3.0], [-1e300], [0.01], [0.99], [5.0], [1e300]])
    columns = columns_of(1, n_bins=4, bounds=(0, 1))
    assert Encoder(columns).cells(X).ravel().tolist() == [0, 0, 0, 3, 3, 3]


def test_tables_that_say_nothing_are_nothing_to_warn_of():
    X, y = np.zeros((40, 1)), np.arange(40) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Of few records.
        warnings.filterwarnings("ignore", "the released counts|all released quantiles")
        for n_categories in (1, 2):
            for seed in range(60):
                DPNaiveBayes(
                    epsilon=0.5,
                    categorical_features=[0],
                    n_categories=n_categories,
                    classes=[0, 1],
                    random_state=seed,
                ).fit(X, y)


def test_attributes_are_not_what_the_model_reads_by():
    X, y = mixed()
    model = DPNaiveBayes(**MIXED, classes=[0, 1, 2]).fit(X, y)
    before = model.predict_proba(X)
    model.bin_edges_[4][1] += 0.5
    np.testing.assert_array_equal(model._columns.kinds[4], [0, 1, 10, 100, 1000])
    model.bin_edges_[4][1] -= 0.5
    np.testing.assert_array_equal(model.predict_proba(X), before)


@pytest.mark.parametrize("delta", [1e-5, 0.0])
@pytest.mark.parametrize("numeric", ["binned", "gaussian"])
def test_every_sum_gets_noise(delta, numeric, monkeypatch):
    seen = []
    release = ReleaseSession.release

    def spy(self, label, value):
        out = release(self, label, value)
        seen.append(out - value)
        return out

    monkeypatch.setattr(ReleaseSession, "release", spy)
    X, y = mixed()
    for _ in range(30):
        DPNaiveBayes(**MIXED, epsilon=0.05, delta=delta, numeric=numeric, classes=[0, 1, 2]).fit(X, y)
    # Each one is 0 with a probability of less than a fifth, so that 30 times happens once in 1e21.
    assert np.all(np.any(np.array(seen) != 0, axis=0))


def test_sums_beyond_what_doubles_hold_are_clipped(monkeypatch):
    columns = columns_of(2, bounds=(0, 1))
    layout = Layout(columns, 2)
    mechanism = plan(1.0, 1e-5, layout).releases[0].mechanism
    for size in (2**48, 2**49 + 1, 2**53 + 1, 2**62):
        for_size = np.full((2, layout.width), size)
        monkeypatch.setattr(_naive_bayes, "sum_over_rows", lambda *args, sums=for_size, **kw: sums)
        one = sums_by_class(np.zeros((1, 2)), np.zeros(1, dtype=int), layout, mechanism)
        monkeypatch.setattr(
            _naive_bayes, "sum_over_rows", lambda *args, size=size, **kw: np.full((2, layout.width), size + 1)
        )
        other = sums_by_class(np.zeros((1, 2)), np.zeros(1, dtype=int), layout, mechanism)
        # One unit of the lattice, weighted, or nothing: never a jump to the next double.
        assert np.all(other - one <= np.where(np.arange(layout.width) < 1, 1.0, 1.375 * 2.0**-20))


def test_many_classes_need_little_memory():
    n_classes = 3000
    X, y = np.zeros((9000, 2)), np.arange(9000) % n_classes
    model = DPNaiveBayes(numeric="gaussian", bounds=(-1, 1), classes=np.arange(n_classes))
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e8


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_variances_that_noise_sets_apart_are_equal(delta):
    """Ten columns that fill a hundredth of their bounds outvoted two that tell classes apart: 0.76 and 0.69."""
    rng = np.random.default_rng(0)
    y = (rng.random(3000) < 0.4).astype(int)
    X = np.hstack([0.2 * rng.standard_normal((3000, 10)), 4.0 * y[:, None] + 2.0 * rng.standard_normal((3000, 2))])
    scores = [
        declared(DPNaiveBayes(bounds=(-20, 20), numeric="gaussian", delta=delta), 2, random_state=seed)
        .fit(X, y)
        .score(X, y)
        for seed in range(10)
    ]
    assert np.mean(scores) > 0.85


@pytest.mark.parametrize("epsilon", [100.0, np.inf])
def test_variances_of_heavy_tails_are_equal(epsilon):
    """Lognormal columns that fill a hundredth of their bounds: 0.67 and 0.66, and 0.75 at epsilon 10."""
    table = difficult("heavy_tailed", 3000)
    model = declared(
        DPNaiveBayes(bounds=table.bounds, numeric="gaussian", delta=1e-6, epsilon=epsilon), 2, random_state=0
    )
    assert model.fit(table.X[:2000], table.y[:2000]).score(table.X[2000:], table.y[2000:]) > 0.75


def test_variances_far_apart_stay_so():
    counts = np.array([1000.0, 1000.0])
    second = counts[:, None] * (np.array([[0.01], [0.2]]) - 0.5)
    _, variances = _naive_bayes.moments(np.zeros((2, 1)), second, counts, 3.0, 3.0, 0.0)
    np.testing.assert_allclose(variances[:, 0], [0.01, 0.2], atol=0.008)
    _, variances = _naive_bayes.moments(
        np.zeros((2, 1)), counts[:, None] * (np.array([[0.01], [0.014]]) - 0.5), counts, 3.0, 3.0, 0.0
    )
    assert variances[0, 0] == variances[1, 0]

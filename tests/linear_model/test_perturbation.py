"""Output and objective perturbation: known answers, the law of the noise, sensitivities by brute force.

Every stochastic test has a false-alarm probability of 1e-6 and a fixed seed.
"""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import optimize, stats
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from skdp import BudgetAccountant, ObjPertLogReg, OutputPertLogReg
from skdp.accounting import (
    GAUSSIAN_RATIO,
    GaussianEvent,
    ObjectiveEvent,
    gaussian_delta,
    gaussian_mu,
    gaussian_noise_multiplier,
)
from skdp.mechanisms import DiscreteLaplaceMechanism, GaussianMechanism
from skdp.sensitivity import clip_rows
from skdp.solvers.losses import HuberHinge, MultinomialLogLoss
from skdp.solvers.regularised import INTERCEPT_CONSTANT, Geometry, largest_kappa, pure_price, shrunk, solve
from tests.estimators import PERTURBATION, declared, name_of
from tests.linear_model.data import blobs, saturating_pair

FALSE_ALARM = 1e-6
BOTH = pytest.mark.parametrize("estimator", [OutputPertLogReg, ObjPertLogReg])


# --- without noise, the optimum -----------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_infinite_epsilon_is_scikit_learns_optimum(estimator, n_classes, C):
    X, y = blobs(n_classes)
    ours = estimator(epsilon=math.inf, data_norm=10.0, C=C, fit_intercept=False, classes=range(n_classes)).fit(X, y)
    solver = {"solver": "newton-cholesky" if n_classes == 2 else "newton-cg", "tol": 1e-12, "max_iter": 1000}
    theirs = LogisticRegression(C=C, fit_intercept=False, **solver).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    assert ours.C_ == C


@BOTH
@pytest.mark.parametrize("n_classes", [2, 3])
def test_intercept_is_a_regularised_constant_feature(estimator, n_classes):
    X, y = blobs(n_classes)
    constant = INTERCEPT_CONSTANT * 10.0
    ours = estimator(epsilon=math.inf, data_norm=10.0, C=0.5, classes=range(n_classes)).fit(X, y)
    augmented = np.column_stack([X, np.full(len(X), constant)])
    theirs = LogisticRegression(C=0.5, fit_intercept=False, solver="newton-cg", tol=1e-12, max_iter=1000)
    theirs.fit(augmented, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_[:, :-1], atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, constant * theirs.coef_[:, -1], atol=1e-6)


@BOTH
def test_rows_are_clipped(estimator):
    X, y = blobs()
    clipped = X * np.minimum(1, 1 / np.linalg.norm(X, axis=1))[:, None]
    far = estimator(epsilon=math.inf, data_norm=1.0, C=1.0, classes=[0, 1]).fit(X, y)
    near = estimator(epsilon=math.inf, data_norm=1.0, C=1.0, classes=[0, 1]).fit(clipped, y)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-6)


@BOTH
def test_huber_hinge_separates(estimator):
    X, y = blobs(3)
    model = estimator(epsilon=math.inf, data_norm=5.0, C=1.0, loss="huber", classes=range(3)).fit(X, y)
    assert model.score(X, y) > 0.9
    for k in range(3):
        alone = estimator(epsilon=math.inf, data_norm=5.0, C=1.0, loss="huber", classes=[0, 1]).fit(X, y == k)
        np.testing.assert_allclose(model.coef_[k], alone.coef_[0], atol=1e-6)


@BOTH
def test_huber_hinge_is_minimised(estimator):
    X, y = blobs()
    model = estimator(epsilon=math.inf, data_norm=3.0, C=0.3, loss="huber", classes=[0, 1]).fit(X, y)
    rows, loss = clip_rows(X, 3.0, 0.9).array, HuberHinge()
    target = loss.encode(y)

    def objective(w):
        z = (rows @ w)[:, None]
        cost = 0.3 * loss.value(z, target).sum() + w @ w / 2
        return cost, 0.3 * (loss.derivative(z, target).T @ rows)[0] + w

    best = optimize.minimize(objective, np.zeros(rows.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    np.testing.assert_allclose(model.coef_[0], best[:-1], atol=1e-5)
    np.testing.assert_allclose(model.intercept_[0], 0.9 * best[-1], atol=1e-5)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "predict_log_proba")


@BOTH
def test_huber_hinge_predicts_as_the_hinge_of_scikit_learn(estimator):
    X, y = blobs(3)
    ours = estimator(epsilon=math.inf, data_norm=5.0, C=1.0, loss="huber", classes=range(3)).fit(X, y)
    theirs = LinearSVC(C=1.0, loss="hinge", max_iter=100_000).fit(X, y)
    assert ours.decision_function(X).shape == (len(X), 3)
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.95


def test_one_record_has_a_scalar_root():
    # a = C expit(-a |x|^2) for the minimiser a x.
    x = np.array([[0.6, 0.3]])
    model = OutputPertLogReg(epsilon=math.inf, data_norm=1.0, C=2.0, fit_intercept=False, classes=[0, 1])
    w = model.fit(x, [1]).coef_[0]
    a = w[0] / x[0, 0]
    assert a == pytest.approx(2.0 / (1 + math.exp(a * 0.45)), abs=1e-6)
    np.testing.assert_allclose(w, a * x[0], atol=1e-8)


# --- on no data, the noise alone ----------------------------------------------------------------------------------

# C=1 at epsilon=1 exceeds what objective perturbation admits; 0.5 is within.
EMPTY = {"epsilon": 1.0, "data_norm": 1.0, "C": 0.5, "fit_intercept": False, "classes": [0, 1]}


def on_no_data(estimator, n_features, n_runs, **parameters):
    model = estimator(**EMPTY, **parameters)
    empty = np.empty((0, n_features)), np.empty(0, dtype=int)
    return np.array([model.set_params(random_state=seed).fit(*empty).coef_[0] for seed in range(n_runs)])


@BOTH
def test_gaussian_noise_has_the_stated_law(estimator):
    # The entries of a fit are independent.
    w = on_no_data(estimator, 30, 200, delta=1e-5).ravel()
    scale = 0.5 * gaussian_noise_multiplier(1.0, 1e-5)
    assert stats.kstest(w, stats.norm(scale=scale).cdf).pvalue > FALSE_ALARM, "false alarm 1e-6"
    assert stats.kstest(w, stats.norm(scale=0.85 * scale).cdf).pvalue < FALSE_ALARM, "15 % less noise must be seen"


@BOTH
def test_pure_noise_has_the_stated_law(estimator):
    w = on_no_data(estimator, 3, 800)
    share = 1.0 if estimator is OutputPertLogReg else 0.995
    norm, scale = np.linalg.norm(w, axis=1), 0.5 / share
    assert stats.kstest(norm, stats.gamma(3, scale=scale).cdf).pvalue > FALSE_ALARM, "false alarm 1e-6"
    assert stats.kstest(norm, stats.gamma(3, scale=0.85 * scale).cdf).pvalue < FALSE_ALARM
    # In three dimensions, a coordinate of a uniform direction is uniform on [-1, 1].
    direction = w / norm[:, None]
    assert stats.kstest(direction[:, 0], stats.uniform(-1, 2).cdf).pvalue > FALSE_ALARM, "false alarm 1e-6"


@BOTH
def test_multinomial_noise_has_zero_sum(estimator):
    empty = np.empty((0, 4)), np.empty(0, dtype=int)
    model = estimator(epsilon=1.0, delta=1e-5, data_norm=1.0, classes=range(5), random_state=0).fit(*empty)
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0, atol=1e-12 * np.abs(model.coef_).max())


# --- what one record can change -----------------------------------------------------------------------------------


def minimiser(X, y, geometry, C, tau):
    rows = clip_rows(np.asarray(X, float), geometry.norm)
    return solve(rows, np.asarray(y), geometry, C, np.zeros(geometry.size), tau, 100)


def geometry_of(loss, n_classes, n_features):
    model = OutputPertLogReg(data_norm=1.5, loss=loss, fit_intercept=False)
    return Geometry.of(model._check_parameters(), n_features, n_classes)


CASES = [("log_loss", 2), ("log_loss", 4), ("huber", 2), ("huber", 3)]


@pytest.mark.parametrize(("loss", "n_classes"), CASES)
@pytest.mark.parametrize("C", [0.05, 0.5, 5.0])
def test_minimiser_moves_by_no_more_than_claimed(loss, n_classes, C):
    geometry = geometry_of(loss, n_classes, 3)
    tau = 1e-8 * C
    claim = C * geometry.joint_lipschitz + 2 * geometry.joint(tau)
    rng = np.random.default_rng(7)
    moved = []
    for n_rows in (0, 1, 5, 40):
        for _ in range(6):
            X = rng.normal(size=(n_rows + 1, 3)) * rng.choice([0.1, 1.0, 10.0])
            y = rng.integers(n_classes, size=n_rows + 1)
            whole, part = minimiser(X, y, geometry, C, tau), minimiser(X[:-1], y[:-1], geometry, C, tau)
            moved.append(np.linalg.norm(whole - part))
    assert max(moved) <= claim


@pytest.mark.parametrize(("loss", "n_classes"), CASES)
def test_the_claim_is_nearly_attained(loss, n_classes):
    C = 0.4
    geometry = geometry_of(loss, n_classes, 1)
    claim = C * geometry.joint_lipschitz
    part, whole = saturating_pair(C, 1.5, 1, n_classes, loss)
    moved = np.linalg.norm(minimiser(*whole, geometry, C, 1e-8) - minimiser(*part, geometry, C, 1e-8))
    assert 0.9 * claim <= moved <= claim


@pytest.mark.parametrize(("loss", "n_classes"), CASES)
def test_objective_noise_is_calibrated_to_the_gradient(loss, n_classes):
    # b_D(w) - b_D'(w) = C grad loss(w; z): at the saturating pair, nearly the claim.
    C, geometry = 0.4, geometry_of(loss, n_classes, 1)
    (X, y), (X1, y1) = saturating_pair(C, 1.5, 1, n_classes, loss)
    theta = minimiser(X, y, geometry, C, 1e-8)
    z = X1[-1:] @ theta.reshape(-1, 1).T
    if geometry.n_problems == 1:
        slopes = geometry.loss.derivative(z, geometry.loss.encode(y1[-1:]))
    else:
        codes = [np.array([int(y1[-1] == k)]) for k in range(n_classes)]
        slopes = np.array(
            [geometry.loss.derivative(z[:, [k]], geometry.loss.encode(c))[0] for k, c in enumerate(codes)]
        )
    shift = C * np.linalg.norm(slopes) * np.linalg.norm(X1[-1])
    assert 0.9 * C * geometry.joint_lipschitz <= shift <= C * geometry.joint_lipschitz


# --- the plan of objective perturbation ---------------------------------------------------------------------------


def objective_plan(n_features=20, n_classes=2, **parameters):
    return ObjPertLogReg(data_norm=1.0, **parameters).privacy_plan(n_features=n_features, n_classes=n_classes)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 10.0, 100.0])
def test_binary_log_loss_costs_no_more_than_the_gaussian_mechanism(epsilon):
    objective, solution = objective_plan(epsilon=epsilon, delta=1e-5).releases
    multiplier = objective.mechanism.scale / objective.sensitivity
    # 0.02 % is what hiding the solver's residual takes.
    assert multiplier == pytest.approx(gaussian_noise_multiplier(epsilon, 1e-5), rel=3e-4)
    assert solution.mechanism.scale < 1e-3 * objective.mechanism.scale


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("C", ["auto", 1e-6, 0.1, 1e6])
@pytest.mark.parametrize(("loss", "n_classes"), CASES)
def test_pure_plan_spends_exactly_epsilon(epsilon, C, loss, n_classes):
    model = ObjPertLogReg(epsilon=epsilon, data_norm=1.0, C=C, loss=loss)
    plan = model.privacy_plan(n_features=6, n_classes=n_classes)
    geometry = Geometry.of(model._check_parameters(), 6, n_classes)
    weight = model._weight(model._check_parameters(), geometry)
    *counts, noise, slack = (release.mechanism.epsilon for release in plan.releases)
    assert counts == ([pytest.approx(0.06 * epsilon)] if C == "auto" and (loss, n_classes) == ("log_loss", 4) else [])
    assert noise > 0.5 * epsilon
    assert sum(counts) + noise + pure_price(geometry, weight, noise) + slack == pytest.approx(epsilon)


@pytest.mark.parametrize("kappa", [0.1, 0.9, 1.0])
def test_pure_binary_price_is_nothing_up_to_kappa_equal_epsilon(kappa):
    # By search over what a record's slope can be, the sum of shift and determinant.
    u = np.linspace(0, 1, 100_001)
    assert np.max(1.0 * u + np.log1p(kappa * u * (1 - u))) == pytest.approx(1.0)
    assert np.max(1.0 * u + np.log1p(1.2 * u * (1 - u))) > 1.0, "the condition is needed"


@pytest.mark.parametrize("n_classes", [3, 5, 20])
def test_pure_multinomial_price_is_nothing_up_to_four_kappa_equal_epsilon(n_classes):
    def worst(kappa, epsilon):
        t = np.linspace(0, math.sqrt(2), 100_001)
        q = np.minimum(1, t * math.sqrt((n_classes - 1) / n_classes))
        rank = n_classes - 1
        return np.max(epsilon * t / math.sqrt(2) + rank * np.log1p(kappa * (2 * q - t**2) / rank))

    assert worst(0.25, 1.0) == pytest.approx(1.0)
    assert worst(0.35, 1.0) > 1.0, "the condition is needed"


@pytest.mark.parametrize(("loss", "n_classes"), CASES)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-6), (1.0, 1e-5), (10.0, 1e-9)])
def test_gaussian_plan_meets_its_delta(loss, n_classes, epsilon, delta):
    plan = objective_plan(epsilon=epsilon, delta=delta, loss=loss, n_classes=n_classes)
    *counts, objective, solution = plan.events
    if (loss, n_classes) == ("log_loss", 2):
        # All of it is Gaussian, and the accountant counts it as such.
        assert isinstance(objective, GaussianEvent)
        assert plan.cost.mu() <= gaussian_mu(epsilon, delta)
        total = float(gaussian_delta(epsilon, math.hypot(objective.noise_mu, solution.noise_mu)))
    else:
        others = math.hypot(solution.mu(), *(own.noise_mu for own in counts))
        total = objective.curve.delta(epsilon, objective.noise_mu, others)
    assert (1 - 1e-6) * delta <= total <= delta
    # An independent lower bound: Gaussian mechanisms with the same noise and no determinant.
    assert float(gaussian_delta(epsilon, math.hypot(*(own.mechanism.mu for own in plan.releases[:-1])))) <= delta


def test_counts_of_labels_are_released_for_three_labels_with_an_automatic_weight():
    labels = {
        (K, intercept, C, loss): [
            release.label
            for release in objective_plan(n_classes=K, fit_intercept=intercept, C=C, loss=loss, epsilon=1.0).releases
        ]
        for K in (2, 3)
        for intercept in (True, False)
        for C in ("auto", 0.1)
        for loss in ("log_loss", "huber")
    }
    expected = {key: (["counts of labels"] if key == (3, True, "auto", "log_loss") else []) for key in labels}
    assert labels == {key: [*first, "objective", "solution"] for key, first in expected.items()}


def test_the_penalty_shrinks_to_the_log_odds_of_the_counts():
    geometry = Geometry.of(ObjPertLogReg(data_norm=1.5)._check_parameters(), 2, 4)
    rng, C, strength = np.random.default_rng(0), 0.4, 3.0
    X, y = rng.normal(size=(50, 2)), rng.integers(4, size=50)
    added = np.array([1.5, -0.5, -1.5, 0.5])
    shifted = replace(geometry, loss=MultinomialLogLoss(4, added))
    rows, b = clip_rows(X, 1.5, geometry.constant), rng.normal(size=geometry.size)
    found = solve(rows, y, shifted, C, b, 1e-9, 100, strength)

    def naive(theta):
        logits = rows[:] @ theta.reshape(3, 3).T @ shifted.loss.basis.T + added
        losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(50), y]
        return C * losses.sum() + strength / 2 * theta @ theta + b @ theta

    best = optimize.minimize(naive, np.zeros(9), tol=1e-10)
    np.testing.assert_allclose(found.ravel(), best.x, atol=1e-4)


def test_a_few_records_have_a_stronger_penalty():
    parameters = ObjPertLogReg(epsilon=0.1, data_norm=1.0)._check_parameters()
    geometry = Geometry.of(parameters, 20, 5)
    C, mechanism = 0.02, DiscreteLaplaceMechanism(0.006, 1.0, 5)
    counts = np.array([900.0, 50.0, 30.0, -4.0, 20.0])
    logits, strength = shrunk(counts, mechanism, parameters, geometry, C)
    assert logits.sum() == pytest.approx(0)
    assert logits[0] - logits[1] == pytest.approx(0.5 * math.log(900 / math.sqrt(2) * 0.006), rel=1e-3)
    assert np.ptp(logits[1:]) == 0
    assert 1 < strength < shrunk(counts / 10, mechanism, parameters, geometry, C)[1]
    assert shrunk(1e6 * counts, mechanism, parameters, geometry, C)[1] == 1
    assert np.abs(shrunk(np.array([1e200, 0, 0, 0, 0]), mechanism, parameters, geometry, C)[0]).max() == 16


def test_gaussian_noise_in_counts_makes_no_class_likely():
    parameters = ObjPertLogReg(epsilon=1.0, delta=1e-6, data_norm=1.0)._check_parameters()
    geometry = Geometry.of(parameters, 20, 4)
    noise, counts = GaussianMechanism(0.1, 1.0, 4), 500 + np.array([8.0, 0.0, -12.0, 4.0])
    logits, strength = shrunk(counts, noise, parameters, geometry, 1e4)
    assert not logits.any()
    assert strength == 1, "few records are for delta=0"
    # Squares of distances sum to 4,800. The noise has a variance of 100 in each of three directions.
    counts = 500 + np.array([60.0, -20.0, -20.0, -20.0])
    logits, _ = shrunk(counts, noise, parameters, geometry, 0.02)
    kept = 1 - 300 / 4800
    assert logits[0] - logits[1] == pytest.approx(0.5 * math.log((500 + 60 * kept) / (500 - 20 * kept)), rel=1e-3)


@pytest.mark.parametrize("delta", [1e-5, 1e-6, 1e-9])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_a_large_weight_is_counted_by_the_curve(epsilon, delta):
    # C is cut where theorem 6 ends, or at .9 epsilon, whichever is more; a smaller C is booked as Gaussian.
    plan = objective_plan(epsilon=epsilon, delta=delta, C=1e6)
    objective, solution = plan.events
    beyond = 0.9 * epsilon > GAUSSIAN_RATIO * gaussian_mu(epsilon, delta)
    assert isinstance(objective, ObjectiveEvent if beyond else GaussianEvent)
    assert plan.releases[0].theorem.number == (2 if beyond else 6)
    if beyond:
        assert objective.curve.kappa == pytest.approx(0.9 * epsilon)
        assert objective.curve.delta(epsilon, objective.noise_mu, solution.mu()) <= delta
        # The corollary of theorem 8.
        assert objective.mu() <= objective.curve.kappa / GAUSSIAN_RATIO
    (slightly_less, _) = objective_plan(
        epsilon=epsilon, delta=delta, C=3.69 * gaussian_mu(epsilon, delta) / 1.09
    ).events
    assert isinstance(slightly_less, GaussianEvent)


def test_many_hinges_have_the_noise_of_theorem_7_where_it_is_less():
    # The sum over subsets of theorem 4 grows with the number of problems.
    for n_classes, theorem in ((2, 4), (3, 4), (20, 7)):
        plan = objective_plan(epsilon=1.0, delta=1e-5, loss="huber", n_classes=n_classes)
        n_problems = 1 if n_classes == 2 else n_classes
        mu, kappa = plan.releases[0].mechanism.mu, 0.1 / n_problems
        surplus = math.sqrt(math.pi / 2) * kappa
        assert plan.releases[0].theorem.number == theorem
        assert plan.events[0].mu() <= math.sqrt(n_problems) * (mu + surplus) * (1 + 1e-9)
        if theorem == 7:
            assert plan.cost.mu() == pytest.approx(gaussian_mu(1.0, 1e-5), rel=1e-9)
            assert plan.events[0].mu() == pytest.approx(math.sqrt(n_problems) * (mu + surplus), rel=1e-9)


@pytest.mark.parametrize(("loss", "n_classes"), CASES)
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_weight_is_used_as_given_within_what_the_proof_admits(loss, n_classes, delta):
    model = ObjPertLogReg(epsilon=1.0, delta=delta, data_norm=2.0, loss=loss, classes=range(n_classes))
    geometry = Geometry.of(model._check_parameters(), 5, n_classes)
    most = largest_kappa(model._check_parameters(), geometry, 0.0) / geometry.norm**2
    X, y = blobs(n_classes)
    used = [model.set_params(C=C).fit(X, y).C_ for C in (0.5 * most, 50.0)]
    assert used == [0.5 * most, most]
    assert 0 < model.set_params(C="auto").fit(X, y).C_ <= most


@BOTH
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_noise_scales_with_the_tolerance(estimator, delta):
    # tol is a privacy parameter: a looser solver pays with more noise.
    scales = []
    for tol in (1e-8, 1e-5, 1e-2):
        plan = estimator(epsilon=1.0, delta=delta, data_norm=1.0, C=0.2, tol=tol).privacy_plan(
            n_features=3, n_classes=2
        )
        scales.append(plan.releases[-1].mechanism.scale)
    assert all(a < b for a, b in pairwise(scales))
    if estimator is OutputPertLogReg:
        assert scales[-1] == pytest.approx(1.02 * scales[0], rel=1e-4)
    else:
        assert scales[-1] == pytest.approx(1e3 * scales[1], rel=1e-2)


def test_one_vs_rest_residual_is_joint():
    for estimator in (OutputPertLogReg, ObjPertLogReg):
        plans = [
            estimator(epsilon=1.0, delta=1e-5, data_norm=1.0, C=1e-3, loss="huber").privacy_plan(
                n_features=3, n_classes=k
            )
            for k in (2, 9)
        ]
        two, nine = (plan.releases[-1].sensitivity for plan in plans)
        # sqrt(9) problems' worth; rounding of the objective's noise adds a few per mille.
        assert nine == pytest.approx(3 * two, rel=0.02)


def test_automatic_weight_does_not_look_at_the_data():
    for estimator in (OutputPertLogReg, ObjPertLogReg):
        model = estimator(epsilon=1.0, delta=1e-5, data_norm=1.0, classes=[0, 1])
        weights = {model.fit(*blobs(n_rows=n, seed=n)).C_ for n in (10, 100, 1000)}
        assert len(weights) == 1


@BOTH
@pytest.mark.parametrize("loss", ["log_loss", "huber"])
@pytest.mark.parametrize(
    "extreme",
    [
        {"data_norm": 1e100},
        {"data_norm": 1e-100},
        {"C": 1e-100},
        {"epsilon": 1e-6},
        {"epsilon": 1e-6, "delta": 1e-30},
        {"epsilon": 50.0, "delta": 1e-30},
        {"epsilon": 1e9, "delta": 1e-5},
        {"delta": 0.999},
        {"tol": 1e-9},
    ],
    ids=str,
)
def test_extreme_parameters_still_fit(estimator, loss, extreme):
    X, y = blobs()
    parameters = {"epsilon": 1.0, "data_norm": 1.0, "loss": loss, "classes": [0, 1], **extreme}
    model = estimator(**parameters).fit(X * min(parameters["data_norm"], 1e90), y)
    assert np.all(np.isfinite(model.coef_))


@pytest.mark.parametrize("parameters", [{"C": 1e100}, {"C": 1e9}, {"C": 1.0, "data_norm": 1e5}], ids=str)
def test_a_weight_that_cannot_be_certified_is_refused(parameters):
    model = OutputPertLogReg(**{"epsilon": 1.0, "data_norm": 1.0, "classes": [0, 1], **parameters})
    with pytest.raises(ValueError, match="C must be at most"):
        model.fit(*blobs())


def test_a_weight_whose_residual_would_underflow_is_refused():
    # The square of the residual would be 0, and any point would pass for the minimiser.
    model = OutputPertLogReg(epsilon=1.0, delta=1e-5, data_norm=1e-80, C=1e-85, classes=[0, 1])
    with pytest.raises(ValueError, match="C is too small"):
        model.fit(np.full((3, 1), 1e-80), [1, 1, 1])


# --- parameters ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", PERTURBATION, ids=name_of)
def test_more_epsilon_or_delta_never_means_more_noise(estimator):
    # Relative to the weight C, because C="auto" moves with epsilon.
    def noise(**parameters):
        plan = declared(estimator, **parameters).privacy_plan(n_features=6)
        return plan.releases[0].mechanism.scale / plan.releases[0].sensitivity

    assert np.all(np.diff([noise(epsilon=float(epsilon), C="auto") for epsilon in np.logspace(-3, 2, 21)]) < 0)
    if estimator.delta > 0:
        assert np.all(np.diff([noise(epsilon=1.0, delta=float(delta)) for delta in np.logspace(-15, -2, 14)]) < 0)


@pytest.mark.parametrize("estimator", PERTURBATION, ids=name_of)
def test_probabilities_belong_to_the_log_loss(estimator):
    assert hasattr(declared(estimator).fit(*blobs()), "predict_proba") == (estimator.loss == "log_loss")


NAN, INF = float("nan"), float("inf")

BAD_PARAMETERS = [
    *[("data_norm", value, ValueError) for value in (None, 5e-324, 1e200)],
    *[("C", value, ValueError) for value in (0, -1, NAN, INF)],
    *[("C", value, TypeError) for value in ("automatic", None, True)],
    *[("loss", value, ValueError) for value in ("hinge", 3)],
    *[("tol", value, ValueError) for value in (0, -1e-6, NAN, 1.0)],
    *[("max_iter", value, ValueError) for value in (0, -1)],
    *[("max_iter", value, TypeError) for value in (2.5, "9", True)],
]


@pytest.mark.parametrize("estimator", PERTURBATION[::4], ids=name_of)
@pytest.mark.parametrize(("name", "value", "error"), BAD_PARAMETERS, ids=str)
def test_bad_parameter_is_named_and_costs_nothing(estimator, name, value, error):
    accountant = BudgetAccountant(epsilon=1e5, delta=0.5, composition="basic")
    model = declared(estimator, accountant=accountant).set_params(**{name: value})
    with pytest.raises(error, match=name):
        model.fit(*blobs())
    with pytest.raises(error, match=name):
        model.privacy_plan(n_features=3)
    assert len(accountant) == 0

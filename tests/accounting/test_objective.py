"""The privacy curve of objective perturbation: its formulas, and whether it bounds what really happens.

The tests marked `theorem` integrate the two densities of the output in one dimension
(tests/accounting/exact_objective.py) and compare with the curve. One test draws samples; its false-alarm probability
is at most 1e-6. Otherwise nothing is random but the choice of some data sets.
"""

import math

import numpy as np
import pytest
from scipy import signal, spatial, special, stats

from skdp.accounting import (
    ObjectiveCurve,
    ObjectiveEvent,
    binary_log_loss,
    gaussian_delta,
    gaussian_mu,
    huber_hinge,
    huber_price,
    multinomial_log_loss,
    multinomial_price,
)
from skdp.accounting._objective import _gdp
from tests.accounting import precise
from tests.accounting.exact_objective import density, exact_delta

KAPPAS = [0.05, 0.27, 0.9, 4.0, 20.0]
MULTIPLIERS = [0.4, 1.0, 3.73]


def loss_bound(g, c):
    """h_c of the module's docstring, by its three cases."""
    if c == 0:
        return np.maximum(g, 0.0)
    return np.where(g >= c, g, np.where(g <= -c, 0.0, (c + g) ** 2 / (4 * c)))


def normal_grid(mu, tilt=0.0, points=400_001):
    """Fine grid of the Gaussian privacy loss with the logarithm of its weights; wide enough for a tilt."""
    g = np.linspace(mu**2 / 2 - 14 * mu, mu**2 / 2 + tilt * mu**2 + 14 * mu, points)
    return g, stats.norm.logpdf(g, mu**2 / 2, mu) + math.log(g[1] - g[0])


def sum_of_positive_parts(n, mu, points=60_001):
    """Law of the sum of `n` independent max(0, G_j), by convolution on a grid; losses are rounded to nearest."""
    step = (mu**2 / 2 + 14 * mu) / points
    ends = stats.norm.cdf((np.arange(points) + 0.5) * step, mu**2 / 2, mu)
    single = total = np.diff(ends, prepend=0.0)
    for _ in range(n - 1):
        total = np.maximum(signal.fftconvolve(total, single), 0.0)
    return np.arange(len(total)) * step, total


# ---------------------------------------------------------------- formulas, against direct integration


@pytest.mark.parametrize("kappa", KAPPAS)
@pytest.mark.parametrize("mu", [0.05, 0.27, 1.0, 2.5])
def test_profile_of_the_log_loss_against_quadrature(kappa, mu):
    curve = binary_log_loss(kappa)
    c = max(0.0, kappa - mu**2 / 2)
    assert curve.threshold(mu) == pytest.approx(c)
    g, log_weight = normal_grid(mu)
    t = np.concatenate([np.array([0, 0.01, 0.3, 0.9, 1, 1.0001, 1.5, 3]) * max(c, 0.1), [8.0]])
    wanted = [np.sum(np.maximum(-np.expm1(e - loss_bound(g, c)), 0) * np.exp(log_weight)) for e in t]
    np.testing.assert_allclose(curve.profile(t, mu), wanted, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("kappa", [0.27, 4.0])
def test_profile_decreases_and_is_continuous_at_the_threshold(kappa):
    for curve in (binary_log_loss(kappa), multinomial_log_loss(kappa, 4), huber_hinge(kappa, 1.0, 2)):
        for mu in (0.1, 0.5):
            c = curve.threshold(mu)
            t = np.linspace(0, 2 * c + 1, 4001)
            profile = curve.profile(t, mu)
            assert np.all((profile >= 0) & (profile <= 1))
            assert np.all(np.diff(profile) <= 1e-12)
            just = curve.profile(np.array([c * (1 - 1e-12), c * (1 + 1e-12)]), mu)
            assert just[0] == pytest.approx(just[1], rel=1e-6, abs=1e-12)


def test_profile_is_not_negative():
    assert np.all(binary_log_loss(4.0).profile(np.linspace(0, 4, 4001), 0.1) >= 0)


@pytest.mark.parametrize("curve", [binary_log_loss(0.5), multinomial_log_loss(0.1, 5), huber_hinge(0.1, 1.0, 3)])
def test_delta_is_the_profile_from_the_threshold_on(curve):
    mu = 0.3
    for epsilon in curve.threshold(mu) + np.array([0.0, 0.1, 1.0, 2.5]):
        profile = float(curve.profile(np.array(epsilon), mu))
        assert min(1.0, curve.delta(epsilon, mu)) == pytest.approx(profile, rel=1e-9)


def test_terms_and_prices():
    assert binary_log_loss(0.7) == ObjectiveCurve(0.7, 0.0, ((1.0, 1.0),), tied=True)
    curve = multinomial_log_loss(0.2, 5)
    assert curve.terms == ((4.0, 1.0),)
    assert curve.shift == multinomial_price(0.2, 5) == pytest.approx(4 * math.log(1 + 0.2 / 5))
    curve = huber_hinge(0.2, 2.0, 3)
    assert curve.shift == huber_price(0.2, 2.0, 3) == pytest.approx(3 * math.log(1.4))
    assert curve.terms == ((3.0, 1.0), (3.0, math.sqrt(2)), (1.0, math.sqrt(3)))


@pytest.mark.parametrize("n_classes", [3, 4, 10])
@pytest.mark.parametrize("kappa", [0.1, 1.0, 30.0])
def test_multinomial_price_is_the_largest_determinant(n_classes, kappa):
    # log det(I + kappa (diag p - p p^T)) over the simplex, at random points, corners, and the centre.
    rng = np.random.default_rng(n_classes)
    points = [*rng.dirichlet(np.ones(n_classes), size=300), *rng.dirichlet(np.full(n_classes, 30.0), size=100)]
    values = []
    for p in [*points, np.full(n_classes, 1 / n_classes)]:
        values.append(np.linalg.slogdet(np.eye(n_classes) + kappa * (np.diag(p) - np.outer(p, p)))[1])
    price = multinomial_price(kappa, n_classes)
    assert max(values) <= price * (1 + 1e-12)
    assert values[-1] == pytest.approx(price)


@pytest.mark.parametrize("n_problems", [1, 2, 4])
def test_several_hinges_against_the_law_of_their_sum(n_problems):
    # The loss is at most s plus the sum of max(0, G_j): its exact hockey-stick lies below the curve, and not far.
    kappa, mu = 0.05, 0.4
    curve = huber_hinge(kappa, 1.0, n_problems)
    loss, weight = sum_of_positive_parts(n_problems, mu)
    assert weight.sum() == pytest.approx(1, abs=1e-9)
    for epsilon in curve.shift + np.array([0.0, 0.2, 0.7, 1.5]):
        exact = np.sum(weight * np.maximum(-np.expm1(epsilon - curve.shift - loss), 0))
        assert exact <= curve.delta(epsilon, mu) * (1 + 1e-4)
        if n_problems == 1:
            assert exact == pytest.approx(curve.delta(epsilon, mu), rel=1e-3)
        else:
            # The broken twin: as if the record entered one problem only.
            single = float(gaussian_delta(epsilon - curve.shift, mu))
            assert exact > single * 1.05


@pytest.mark.parametrize("correlation", [-0.5, 0.0, 0.5, 1.0])
def test_several_classes_against_any_joint_law(correlation):
    # max(0, G_1, ..., G_{K-1}) for jointly normal losses: the union bound holds whatever the correlation.
    n_classes, mu = 3, 0.6
    curve = multinomial_log_loss(0.05, n_classes)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 400_000))
    second = correlation * a + math.sqrt(1 - correlation**2) * b
    loss = curve.shift + np.maximum(0, np.maximum(a, second) * mu + mu**2 / 2)
    for epsilon in curve.shift + np.array([0.05, 0.3, 0.8]):
        sample = np.maximum(-np.expm1(epsilon - loss), 0)
        error = sample.std() / math.sqrt(sample.size)
        # Five standard errors: a false alarm has probability below 1e-6.
        assert sample.mean() <= curve.delta(epsilon, mu) + 5 * error, "false-alarm probability 3e-7"
        if correlation <= 0:
            # The factor K - 1 is needed: without it, it is no bound.
            assert sample.mean() > float(gaussian_delta(epsilon - curve.shift, mu)) + 5 * error


@pytest.mark.parametrize("order", [1.01, 1.5, 2.0, 6.0, 17.8, 60.0])
@pytest.mark.parametrize("mu", [0.05, 0.27, 1.0])
@pytest.mark.parametrize("kappa", [0.05, 0.9, 4.0])
def test_renyi_divergence_of_the_log_loss_against_integration(kappa, mu, order):
    curve = binary_log_loss(kappa)
    g, log_weight = normal_grid(mu, tilt=order)
    moment = special.logsumexp((order - 1) * loss_bound(g, max(0.0, kappa - mu**2 / 2)) + log_weight)
    got = ObjectiveEvent(curve, mu).rdp(order)
    exact = min(moment / (order - 1), order * max(mu, kappa / 3.7) ** 2 / 2)
    assert got == pytest.approx(exact, rel=1e-5, abs=1e-9)
    assert got >= exact - 1e-9
    # At least the Gaussian mechanism's: objective perturbation is never better than its noise.
    assert got >= order * mu**2 / 2 * (1 - 1e-12)


@pytest.mark.parametrize("order", [1.5, 6.0, 17.8])
@pytest.mark.parametrize("n_problems", [1, 3])
def test_renyi_divergence_of_hinges_against_integration(n_problems, order):
    mu = 0.3
    curve = huber_hinge(0.05, 1.0, n_problems)
    got = ObjectiveEvent(curve, mu).rdp(order)
    # E exp((order - 1) sum of max(0, G_j)) is a product.
    g, log_weight = normal_grid(mu, tilt=order)
    moment = n_problems * special.logsumexp((order - 1) * np.maximum(g, 0) + log_weight)
    exact = min(curve.shift + moment / (order - 1), order * n_problems * (mu + math.sqrt(math.pi / 2) * 0.05) ** 2 / 2)
    assert exact * (1 - 1e-9) <= got <= exact * (1 + 1e-5)


@pytest.mark.parametrize("order", [1.5, 6.0, 17.8])
def test_renyi_divergence_of_several_classes_is_a_union_bound(order):
    mu = 0.3
    curve = multinomial_log_loss(0.05, 4)
    g, log_weight = normal_grid(mu, tilt=order)
    single = math.exp(special.logsumexp((order - 1) * np.maximum(g, 0) + log_weight))
    exact = curve.shift + math.log1p(3 * (single - 1)) / (order - 1)
    assert ObjectiveEvent(curve, mu).rdp(order) == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize("order", [200.0, 8000.0, 1e6])
def test_renyi_divergence_of_high_orders_does_not_overflow(order):
    for curve in (binary_log_loss(0.9), multinomial_log_loss(0.1, 3), huber_hinge(0.1, 1.0, 2)):
        got = ObjectiveEvent(curve, 0.5).rdp(order)
        most = max(multiple for _, multiple in curve.terms) * 0.5
        assert order * most**2 / 2 * (1 - 1e-9) <= got <= order * most**2 / 2 + curve.shift + curve.kappa + 1


# ---------------------------------------------------------------- calibration


CURVES = {
    "log loss, .1": binary_log_loss(0.1),
    "log loss, .9": binary_log_loss(0.9),
    "3 classes": multinomial_log_loss(0.05, 3),
    "10 classes": multinomial_log_loss(0.1, 10),
    "hinge": huber_hinge(0.05, 1.0, 1),
    "5 hinges": huber_hinge(0.02, 1.0, 5),
}


def total_delta(curve, epsilon, mu, mu_slack):
    """The claimed sum, in decimal arithmetic: for the main losses and for what follows."""

    def delta(e, m):
        return float(precise.gaussian_delta(e, m))

    total = sum(w * delta(epsilon - curve.shift, math.hypot(k * mu, mu_slack)) for w, k in curve.terms)
    threshold = max(0.0, curve.kappa - mu**2 / 2) if curve.tied else curve.shift
    return total + (delta(epsilon - threshold, mu_slack) if mu_slack else 0.0)


@pytest.mark.parametrize("slack_share", [0.02, 0.2])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("name", CURVES)
def test_calibrated_noise_gives_the_guarantee_and_no_less_would(name, epsilon, delta, slack_share):
    curve = CURVES[name]
    if slack_share == 0.2 and name == "log loss, .9" and epsilon == 1.0:
        # The slack release alone loses more than what is between kappa and epsilon.
        assert total_delta(curve, epsilon, 1e-9, slack_share * gaussian_mu(epsilon, delta)) > delta
        with pytest.raises(ValueError, match="regularisation is too weak"):
            curve.calibrate(epsilon, delta, slack_share)
        return
    mu, mu_slack = curve.calibrate(epsilon, delta, slack_share)
    assert total_delta(curve, epsilon, mu, mu_slack) <= delta * (1 + 1e-12)
    # The twin with 1e-6 less noise is refused.
    assert total_delta(curve, epsilon, mu * (1 + 1e-6), mu_slack) > delta
    assert mu_slack == slack_share * gaussian_mu(epsilon, delta)
    assert mu < gaussian_mu(epsilon, delta)


@pytest.mark.parametrize("name", CURVES)
def test_noise_of_a_small_price_is_nearly_the_gaussian_mechanisms(name):
    curve = CURVES[name]
    mu, _ = curve.calibrate(2.0, 1e-5, 0.02)
    widest = max(multiple for _, multiple in curve.terms) * mu
    assert widest >= gaussian_mu(2.0, 1e-5) * (0.99 if curve.tied else 0.65)


@pytest.mark.parametrize(
    ("curve", "epsilon"),
    [
        (binary_log_loss(1.0), 1.0),
        (binary_log_loss(5.0), 1.0),
        (multinomial_log_loss(5.0, 3), 1.0),
        (multinomial_log_loss(0.2, 10), 0.1),
        (huber_hinge(1.0, 2.0, 1), 1.0),
        (huber_hinge(0.1, 1.0, 20), 1.0),
    ],
)
def test_a_price_above_epsilon_is_refused(curve, epsilon):
    with pytest.raises(ValueError, match="regularisation is too weak"):
        curve.calibrate(epsilon, 1e-5, 0.02)


def test_a_following_release_that_eats_delta_is_refused():
    # The slack release alone exceeds delta at what remains of epsilon.
    with pytest.raises(ValueError, match="regularisation is too weak"):
        binary_log_loss(0.9).calibrate(1.0, 1e-5, 0.9)


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_total_with_a_following_release_bounds_the_composition(share):
    # Exact: E[(1 - exp(eps - max(c, G) - S))_+] for independent Gaussian losses G, S.
    kappa, mu = 0.3, 0.5
    curve, mu_slack = binary_log_loss(kappa), share * 0.5
    c = curve.threshold(mu)
    g, log_weight = normal_grid(mu, points=40_001)
    for epsilon in (0.35, 0.8, 1.5):
        inner = gaussian_delta(epsilon - np.maximum(c, g), mu_slack)
        exact = np.sum(np.exp(log_weight) * inner)
        assert exact <= curve.delta(epsilon, mu, mu_slack) * (1 + 1e-9)
        # The following release is not free: without it, the sum is no bound.
        assert exact > curve.delta(epsilon, mu) or epsilon < 0.4


# ---------------------------------------------------------------- Gaussian differential privacy


GDP_CASES = [
    *((binary_log_loss(kappa), mu) for kappa, mu in [(0.02, 0.27), (0.27, 0.27), (0.9, 0.27), (0.09, 0.0325)]),
    *((binary_log_loss(kappa), mu) for kappa, mu in [(3.6, 0.92), (0.03, 0.4)]),
    *((multinomial_log_loss(kappa, k), mu) for kappa, k, mu in [(0.02, 3, 0.25), (0.1, 10, 0.2), (0.4, 4, 0.8)]),
    *((huber_hinge(kappa, 1.0, m), mu) for kappa, m, mu in [(0.05, 1, 0.25), (0.02, 4, 0.05), (0.3, 2, 0.3)]),
]


def naive_hull(x, y, at):
    """The lower convex hull of points, by the largest line through two neighbours of a hull that SciPy found."""
    corners = spatial.ConvexHull(np.column_stack([x, y])).vertices
    corners = corners[np.argsort(x[corners])]
    lower = [i for i in corners if y[i] <= np.interp(x[i], x[[0, -1]], y[[0, -1]]) + 1e-15]
    return np.interp(at, x[lower], y[lower])


@pytest.mark.parametrize(("curve", "mu"), GDP_CASES)
def test_hull_is_the_largest_convex_curve_below_the_profile(curve, mu):
    t = np.linspace(0, curve.threshold(mu) + 4 * mu, 800)
    corners, deltas = curve.hull(t, mu)
    epsilon = np.concatenate([-t[:0:-1], t])
    above = curve.profile(t, mu)
    bound = np.concatenate([(-np.expm1(-t) + np.exp(-t) * above)[:0:-1], above])
    hull = np.interp(np.exp(epsilon), np.exp(corners), deltas)
    assert np.all(hull <= bound + 1e-15)
    np.testing.assert_allclose(hull, naive_hull(np.exp(epsilon), bound, np.exp(epsilon)), rtol=1e-6, atol=1e-10)
    # Symmetric, as any bound in both directions is: the curve at -t follows from that at t.
    positive = np.interp(np.exp(t), np.exp(corners), deltas)
    negative = np.interp(np.exp(-t), np.exp(corners), deltas)
    np.testing.assert_allclose(negative, -np.expm1(-t) + np.exp(-t) * positive, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(("curve", "mu"), GDP_CASES)
def test_gdp_parameter_covers_the_hull_at_every_epsilon(curve, mu):
    parameter = _gdp(curve, mu)
    assert math.isfinite(parameter)
    assert parameter >= mu
    c = curve.threshold(mu)
    reach = c + mu**2 * 4 + 8 * math.sqrt(len(curve.terms)) * mu
    above, below = c + mu * np.geomspace(1e-9, 1, 999), c * np.linspace(0, 1, 5_003) ** 2
    t = np.unique(np.concatenate([[0.0], np.linspace(0, reach, 5_011), below, above]))
    corners, deltas = curve.hull(t, mu)
    hull = np.interp(np.exp(t), np.exp(corners), deltas)
    # In the closed form of the profile, 1e-16 may be left of cancelling terms. The library's own grid is coarser, and
    # its hull larger.
    assert np.all(hull <= gaussian_delta(t, parameter) * (1 + 1e-12) + 2e-16)
    # Not much larger than needed: the twin with 2 % less fails, as does the noise's own parameter.
    assert np.any(hull > gaussian_delta(t, 0.98 * parameter) * (1 + 1e-9) + 2e-16)
    if c > 0.05:
        assert np.any(hull > gaussian_delta(t, mu) * (1 + 1e-9) + 2e-16)


def test_gdp_parameter_is_below_that_of_the_profile():
    # At (1, 1e-5), relative to the noise's own, for kappa of .1, .2, .5, .9: what the loss gives without convexity.
    mu = gaussian_mu(1.0, 1e-5)
    for kappa, factor in ((0.1, 1.01), (0.2, 1.06), (0.5, 1.37), (0.9, 1.92)):
        assert 1 <= _gdp(binary_log_loss(kappa), mu) / mu <= factor
    assert _gdp(binary_log_loss(0.9), mu) / mu == pytest.approx(1.58, abs=0.01)


@pytest.mark.parametrize("mu", [0.05, 0.27, 1.0])
def test_gdp_parameter_is_the_least_of_what_is_proved(mu):
    for ratio in (1.0, 3.7, 4.0, 5.0, 40.0):
        curve = binary_log_loss(ratio * mu)
        assert curve.gdp(mu) == min(max(mu, curve.kappa / 3.7), _gdp(curve, mu))
        assert (curve.gdp(mu) == pytest.approx(mu, rel=1e-12)) == (ratio <= 3.7)
        # The inverse: noise with this parameter is enough for it, and there is none for less than kappa / 3.7.
        assert curve.noise_of_mu(curve.kappa) == curve.kappa
        assert curve.noise_of_mu(curve.kappa / 3.8) == 0
    for n in (1, 3, 10):
        for kappa in (0.01 * mu, 0.2 * mu):
            curve = huber_hinge(kappa, 1.0, n)
            single = min(mu + math.sqrt(math.pi / 2) * kappa, _gdp(huber_hinge(kappa, 1.0, 1), mu))
            proved = min(math.sqrt(n) * single, _gdp(curve, mu))
            assert proved <= curve.gdp(mu) <= proved * (1 + 1e-9)
            noise = curve.noise_of_mu(2 * math.sqrt(n) * mu)
            assert curve.mu_of_noise(noise) == pytest.approx(2 * math.sqrt(n) * mu, rel=1e-9)
            assert curve.mu_of_noise(noise) <= 2 * math.sqrt(n) * mu
            assert curve.noise_of_mu(kappa) == 0
    curve = multinomial_log_loss(0.1 * mu, 4)
    assert curve.gdp(mu) == _gdp(curve, mu)
    assert curve.noise_of_mu(100.0) == 0


@pytest.mark.parametrize(("curve", "mu"), GDP_CASES)
def test_distribution_is_that_of_the_hull(curve, mu):
    distribution = ObjectiveEvent(curve, mu).privacy_loss_distribution(1e-4)
    reach = curve.threshold(mu) + mu**2 + 5 * mu
    t = np.linspace(0, reach, 2_000)
    corners, deltas = curve.hull(t, mu)
    for at in np.linspace(0, reach, 12):
        hull = float(np.interp(np.exp(at), np.exp(corners), deltas))
        found = distribution.get_delta_for_epsilon(float(at))
        assert hull * 0.995 - 1e-12 <= found <= hull * 1.02 + 1e-9
        assert found <= float(curve.profile(np.array(at), mu)) * 1.01 + 1e-9


def test_gdp_without_a_price_is_the_noises_own():
    assert binary_log_loss(0.03).gdp(0.3) == 0.3


# ---------------------------------------------------------------- the theorems, by exact integration


RECORDS = {
    "empty": [],
    "a million short records": [(1e-3, 1e6)],
    "mixed": [(0.5, 3), (-0.8, 2), (0.05, 40), (-1.0, 1)],
    "contradicting": [(1.0, 20), (-1.0, 20)],
    "one copy": [(0.6, 1)],
}

EPSILONS = np.array([0.0, 0.02, 0.1, 0.3, 0.7, 0.999, 1.0, 1.5, 3.0, 5.0])


def random_records(seed):
    rng = np.random.default_rng(seed)
    return [(float(v), float(n)) for v, n in zip(rng.uniform(-1, 1, 6), rng.integers(1, 60, 6), strict=True)]


@pytest.mark.theorem
@pytest.mark.parametrize("loss", ["logistic", "huber"])
@pytest.mark.parametrize(
    ("kappa", "multiplier", "records", "added"),
    [(4.0, 1.0, [(0.5, 3), (-0.8, 2)], 1.0), (1.0, 2.0, [(0.01, 1000)], -1.0), (0.3, 0.7, [], 0.6)],
)
def test_the_integration_agrees_with_a_riemann_sum_of_densities(kappa, multiplier, records, added, loss):
    w = np.linspace(-1, 1, 2_000_001) * (45 * multiplier * kappa + 30)
    p = density(w, kappa, multiplier, records, loss=loss) * (w[1] - w[0])
    q = density(w, kappa, multiplier, [*records, (added, 1)], loss=loss) * (w[1] - w[0])
    assert p.sum() == pytest.approx(1, abs=1e-4)
    assert q.sum() == pytest.approx(1, abs=1e-4)
    adding, removing = exact_delta(0.5, kappa, multiplier, records, added, loss=loss)
    assert adding[0] == pytest.approx(np.maximum(q - math.exp(0.5) * p, 0).sum(), rel=1e-3, abs=1e-6)
    assert removing[0] == pytest.approx(np.maximum(p - math.exp(0.5) * q, 0).sum(), rel=1e-3, abs=1e-6)


def exceeds(bound, found):
    """Whether a lower bound of the truth exceeds a claimed upper bound, beyond rounding."""
    return np.any(found > bound * (1 + 1e-9) + 1e-13)


@pytest.mark.theorem
@pytest.mark.parametrize("name", [*RECORDS, "random 0", "random 1"])
@pytest.mark.parametrize("multiplier", MULTIPLIERS)
@pytest.mark.parametrize("kappa", KAPPAS)
def test_log_loss_never_exceeds_its_curve(kappa, multiplier, name):
    records = RECORDS[name] if name in RECORDS else random_records(int(name[-1]))
    mu, curve = 1 / multiplier, binary_log_loss(kappa)
    profile = curve.profile(EPSILONS, mu)
    for added in (1.0, -1.0, 0.35):
        for found in exact_delta(EPSILONS, kappa, multiplier, records, added):
            assert not exceeds(profile, found), (added, found / profile)
            for epsilon, value in zip(EPSILONS.tolist(), found.tolist(), strict=True):
                if epsilon >= curve.threshold(mu):
                    assert value <= curve.delta(epsilon, mu) * (1 + 1e-9) + 1e-13


@pytest.mark.theorem
@pytest.mark.parametrize("name", [*RECORDS, "random 0", "random 1"])
@pytest.mark.parametrize("multiplier", MULTIPLIERS)
@pytest.mark.parametrize("kappa", [0.05, 0.27, 0.9])
@pytest.mark.parametrize("width", [0.5, 0.1])
def test_huber_hinge_never_exceeds_its_curve(kappa, multiplier, name, width):
    records = RECORDS[name] if name in RECORDS else random_records(int(name[-1]))
    curve = huber_hinge(kappa, 1 / (2 * width), 1)
    profile = curve.profile(EPSILONS, 1 / multiplier)
    for added in (1.0, -1.0, 0.35):
        for found in exact_delta(EPSILONS, kappa, multiplier, records, added, loss="huber", width=width):
            assert not exceeds(profile, found), (added, found / profile)


@pytest.mark.theorem
@pytest.mark.parametrize("loss", ["logistic", "huber"])
@pytest.mark.parametrize("multiplier", MULTIPLIERS)
@pytest.mark.parametrize("kappa", [0.27, 0.9, 4.0])
def test_the_curve_is_attained_when_many_short_records_hold_the_solution(kappa, multiplier, loss):
    # A million records of size 1e-3 agree, and the added one contradicts them: its derivative is 1 throughout.
    mu = 1 / multiplier
    epsilons = np.array([0.5, 1.0, 2.0]) * max(mu, 1.0)
    epsilons = epsilons[gaussian_delta(epsilons, mu) > 1e-11]
    adding, removing = exact_delta(epsilons, kappa, multiplier, [(1e-3, 1e8)], -1.0, loss=loss, cells=40_000)
    for found in (adding, removing):
        assert np.all(found >= 0.999 * gaussian_delta(epsilons, mu))
        assert np.all(found <= gaussian_delta(epsilons, mu) * (1 + 1e-9))
    # Teeth: a curve for 10 % less sensitivity, or 10 % more noise, is refuted.
    assert exceeds(gaussian_delta(epsilons, mu / 1.1), adding)


@pytest.mark.theorem
def test_the_gaussian_delta_below_the_threshold_is_refuted():
    # The naive claim that objective perturbation is as private as its noise, at every epsilon.
    kappa, multiplier, epsilon = 4.0, 3.73, 0.3
    adding, _ = exact_delta(epsilon, kappa, multiplier, [], 1.0)
    naive = float(gaussian_delta(epsilon, 1 / multiplier))
    assert naive == pytest.approx(0.0205, abs=1e-4)
    assert adding[0] == pytest.approx(0.0413, abs=1e-4)
    assert exceeds(naive, adding)
    # What is claimed instead holds.
    assert not exceeds(binary_log_loss(kappa).profile(np.array([epsilon]), 1 / multiplier), adding)


@pytest.mark.theorem
def test_hinges_without_the_price_of_the_determinant_are_refuted():
    kappa, multiplier = 0.9, 3.73
    found = np.max([exact_delta(EPSILONS, kappa, multiplier, [], v, loss="huber")[0] for v in (1.0, -1.0)], axis=0)
    assert exceeds(gaussian_delta(EPSILONS, 1 / multiplier), found)
    assert not exceeds(huber_hinge(kappa, 1.0, 1).profile(EPSILONS, 1 / multiplier), found)


@pytest.mark.theorem
@pytest.mark.parametrize("kappa", [0.27, 0.9])
def test_removing_a_record_has_no_price(kappa):
    # The module's docstring: the loss of a removal is at most max(0, G).
    for multiplier in MULTIPLIERS:
        for records in RECORDS.values():
            for loss in ("logistic", "huber"):
                _, removing = exact_delta(EPSILONS, kappa, multiplier, records, 1.0, loss=loss)
                assert not exceeds(gaussian_delta(EPSILONS, 1 / multiplier), removing)


@pytest.mark.theorem
@pytest.mark.parametrize("kappa", [0.27, 0.9, 4.0])
@pytest.mark.parametrize("multiplier", [1.0, 3.73])
def test_gdp_and_renyi_statements_hold_for_the_exact_output(kappa, multiplier):
    mu, curve = 1 / multiplier, binary_log_loss(kappa)
    parameter = curve.gdp(mu)
    for records in RECORDS.values():
        for found in exact_delta(EPSILONS, kappa, multiplier, records, 1.0):
            assert not exceeds(gaussian_delta(EPSILONS, parameter), found)
    # Renyi divergences of the two densities, by a Riemann sum, in both directions.
    w = np.linspace(-1, 1, 1_000_001) * (30 * multiplier * kappa + 10)
    for records in ([], [(0.5, 3), (-0.8, 2)]):
        p = density(w, kappa, multiplier, records)
        q = density(w, kappa, multiplier, [*records, (1.0, 1)])
        with np.errstate(divide="ignore"):
            log_p, log_q = np.log(np.maximum(p, 1e-290)), np.log(np.maximum(q, 1e-290))
        for order in (2.0, 6.0):
            for a, b in ((log_p, log_q), (log_q, log_p)):
                moment = special.logsumexp(order * a + (1 - order) * b) + math.log(w[1] - w[0])
                assert moment / (order - 1) <= curve.rdp(order, mu) * (1 + 1e-6)

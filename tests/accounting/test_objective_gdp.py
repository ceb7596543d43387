"""Objective perturbation as Gaussian differential privacy: the computed parts of two theorems, and attacks.

Theorem 6 of the user guide says that the binary log loss with Gaussian noise is mu-GDP as long as kappa is at most
3.7 mu. Its proof ends in an inequality of two variables, which the first test checks on cells that cover its domain.
Theorem 8 is checked in the same way. The other tests do not use the proofs. They look for a data set, or for a
transport of the normal law, that is worse than the Gaussian mechanism. Every number that they compare is the delta of
an event, and therefore a lower bound of the true delta. Nothing is random but data sets and transports from fixed
seeds.
"""

import math

import numpy as np
import pytest
from scipy.special import erfcx, expit, logit, ndtr

from skdp.accounting import gaussian_delta
from tests.accounting.exact_objective import exact_delta

RATIO = 3.7

#: Far more than the rounding errors of a dozen double-precision operations with numbers below 300.
MARGIN = 1e-6


# ---------------------------------------------------------------- the computed part of the proof (lemma 8)


def bounds(cells, delta, rho):
    """Upper bound of eta(delta) and lower bound of Lambda(delta) over each cell of (tau, logit v)."""
    tau_0, tau_1, low, high = cells
    p_0, p_1, q = expit(-low), expit(-high), np.exp(-rho * delta)
    y_0, y_1 = 1 - p_0 * (1 - q), 1 - p_1 * (1 - q)
    eta = tau_1 * p_0 * (1 - q) + y_1 / tau_0 - delta - rho * p_1 * y_0 + rho * p_0 * q / y_0
    share = 1 - 1 / (rho * tau_1 * p_0)
    with np.errstate(divide="ignore", invalid="ignore"):
        penalty = np.where(share > 0, -np.log(share), np.inf)
    return eta, delta * (tau_0 - delta / 2 - rho) - 2 * np.log(y_1) + penalty


def root_of_eta(tau, logit, rho):
    """The zero of eta at the middle of each cell, by bisection. No rigour is needed here."""
    p, low, high = expit(-logit), np.zeros_like(tau), tau + rho
    for _ in range(50):
        delta = (low + high) / 2
        q = np.exp(-rho * delta)
        y = 1 - p * (1 - q)
        inside = tau * p * (1 - q) + y / tau - delta - rho * p * (y - q / y) > 0
        low, high = np.where(inside, delta, low), np.where(inside, high, delta)
    return high


def unproved_cells(rho, rounds, first=64):
    """Cells of the domain of lemma 8 for which no delta was found; cells are cut in half, up to `rounds` times."""
    tau = np.linspace(1 / rho, 3 * rho, first + 1)
    logit = np.linspace(-15.0, math.log(3 * rho**2 - 1) + 0.01, first + 1)
    tau_0, low = (a.ravel() for a in np.meshgrid(tau[:-1], logit[:-1]))
    tau_1, high = (a.ravel() for a in np.meshgrid(tau[1:], logit[1:]))
    cells = np.array([tau_0, tau_1, low, high])
    for _ in range(rounds):
        tau_0, tau_1, low, high = cells
        # Where tau rho (1 - v) <= 1 on the whole cell, there is nothing to prove.
        cells = cells[:, rho * tau_1 * expit(-low) > 1 - MARGIN]
        tau_0, tau_1, low, high = cells
        root = root_of_eta((tau_0 + tau_1) / 2, (low + high) / 2, rho)
        proved = np.zeros(len(root), dtype=bool)
        for factor in (0.0, 0.2, 0.5, 1.0, 2.0):
            eta, log_ratio = bounds(cells, root + factor * np.maximum(tau_1 - tau_0, high - low), rho)
            proved |= (eta <= -MARGIN) & (log_ratio >= MARGIN)
        cells = cells[:, ~proved]
        if cells.size == 0:
            break
        tau_0, tau_1, low, high = cells
        wide, tau, logit = 1.5 * (tau_1 - tau_0) > high - low, (tau_0 + tau_1) / 2, (low + high) / 2
        first_half = np.where(wide, [tau_0, tau, low, high], [tau_0, tau_1, low, logit])
        second_half = np.where(wide, [tau, tau_1, low, high], [tau_0, tau_1, logit, high])
        cells = np.concatenate([first_half, second_half], axis=1)
    return cells


@pytest.mark.theorem
def test_the_inequality_of_lemma_8_holds_on_cells_that_cover_its_domain():
    # The theorem needs it at 3.7. The difference to 3.71 is for noise that is a little larger than calibrated.
    assert unproved_cells(3.71, rounds=20).size == 0
    # The inequality is false from 3.73 on: near tau = 3.4, v = .11.
    assert unproved_cells(3.75, rounds=12).size > 0


@pytest.mark.theorem
def test_the_bounds_of_the_cells_hold_inside_them():
    rng = np.random.default_rng(0)
    tau_0, low = rng.uniform(0.3, 11, 400), rng.uniform(-15, 3, 400)
    cells = np.array([tau_0, tau_0 + rng.uniform(0, 0.3, 400), low, low + rng.uniform(0, 0.3, 400)])
    delta = rng.uniform(0, 8, 400)
    eta, log_ratio = bounds(cells, delta, RATIO)
    for a, b in rng.uniform(0, 1, (20, 2)):
        tau, logit = cells[0] + a * (cells[1] - cells[0]), cells[2] + b * (cells[3] - cells[2])
        # By the definitions: of h on the curve of growth, and of N(b) / N(s), in terms of u itself.
        v, u = expit(logit), expit(logit + RATIO * delta)
        zeta, t = v * (RATIO * (1 - v) + tau - 1 / tau), delta - tau
        assert np.all(RATIO * expit(-logit - RATIO * delta) - t - zeta / u <= eta + 1e-9 * (1 + zeta / u))
        inside = RATIO * tau * expit(-logit) > 1
        start = np.where(inside, v * (RATIO * expit(-logit) - 1 / tau), 1.0)
        found = (tau**2 - t**2) / 2 + np.log(RATIO * u * expit(-logit - RATIO * delta)) - np.log(start)
        assert np.all(found[inside] >= log_ratio[inside] - 1e-8)


# ---------------------------------------------------------------- the computed part of theorem 8 (lemma 10)

#: Ratio, factor of mu, and slope of the line in the law of growth.
BEYOND = [(3.8, 1.001, 3.3), (4.0, 1.005, 3.2), (4.5, 1.025, 2.9), (5.0, 1.06, 2.7), (6.0, 1.15, 2.7)]


class Growth:
    """The curve of lemma 9, by the time since it passed from the parabola to the line."""

    def __init__(self, rho, height, slope):
        self.rho, self.height, self.slope = rho, height, slope
        half = (rho + slope) / 2
        self.passage = (half + math.sqrt(half**2 - rho * slope / height)) * height / rho
        assert 0 < self.passage < height
        self.logit, self.rest = float(logit(self.passage / height)), 1 - self.passage

    def at(self, time):
        """Height and speed."""
        argument = self.logit + self.rho * np.minimum(time, 0)
        low, rest = self.height * expit(argument), self.rest * np.exp(-self.slope * np.maximum(time, 0))
        return np.where(time > 0, 1 - rest, low), np.where(
            time > 0, self.slope * rest, self.rho * low * expit(-argument)
        )

    def h(self, tau, time, delta):
        v, speed = self.at(time)
        later, later_speed = self.at(time + delta)
        y = v / later
        return tau * (1 - y) + y / tau - delta - speed / v * y + later_speed / later

    def bounds(self, cells, delta):
        """Upper bound of h(s + delta), lower bounds of Lambda there and at the passage, over cells of (tau, time)."""
        tau_0, tau_1, early, late = cells
        (v_0, speed_0), (v_1, speed_1) = self.at(early), self.at(late)
        (w_0, after_0), (w_1, after_1) = self.at(early + delta), self.at(late + delta)
        y_0, y_1 = v_0 / w_0, v_1 / w_1
        h = tau_1 * (1 - y_0) + y_1 / tau_0 - delta - speed_1 / v_1 * y_0 + after_0 / w_0
        peak = min(self.height / 2, self.passage)
        most = np.where((v_0 <= peak) & (peak <= v_1), self.rho * peak * (1 - peak / self.height), 0.0)
        most = np.log(np.maximum(most, np.maximum(speed_0, speed_1)))
        share = 1 - v_0 / (tau_1 * speed_0)
        with np.errstate(divide="ignore", invalid="ignore"):
            penalty = np.where(share > 0, -np.log(share), np.inf)
        growth = np.log(np.minimum(after_0, after_1)) - most
        growth = np.where(late + delta <= 0, -self.rho * delta - 2 * np.log(y_1), growth)
        log_ratio = delta * (tau_0 - delta / 2) + growth + penalty
        first, last = np.maximum(-late, 0), np.maximum(-early, 0)
        at_passage = np.minimum(first * (tau_0 - first / 2), last * (tau_0 - last / 2))
        at_passage += math.log(self.slope * self.rest) - most + penalty
        passes = (early < 0) & (late + delta > 0)
        return h, np.where(passes, np.minimum(log_ratio, at_passage), log_ratio)

    def rectangles(self, n):
        least = -(self.rho**2 + 2 - math.log(self.passage / self.height))
        yield np.linspace(1 / self.rho, 3 * self.rho, n), np.linspace((least - self.logit) / self.rho, 0, n)
        most = max(2 * self.slope, 1.0)
        end = math.log(self.rest * (1 + self.slope * most)) / self.slope
        start = self.passage / (self.slope * self.rest)
        if end > 0 and start < most:
            yield np.linspace(start * (1 - MARGIN), most, n), np.linspace(0, end + MARGIN, n)

    def unproved_cells(self, rounds, most=40_000):
        cells = [
            np.array(
                [part.ravel() for tau, time in ((t[:-1], x[:-1]), (t[1:], x[1:])) for part in np.meshgrid(tau, time)]
            )
            for t, x in self.rectangles(41)
        ]
        # From (tau_0, early, tau_1, late) to (tau_0, tau_1, early, late).
        cells = np.concatenate(cells, axis=1)[[0, 2, 1, 3]]
        for _ in range(rounds):
            v, speed = self.at(cells[2])
            cells = cells[:, cells[1] * speed > v * (1 - MARGIN)]
            tau_0, tau_1, early, late = cells
            tau, time = (tau_0 + tau_1) / 2, (early + late) / 2
            # The first zero of h at the middle of each cell. No rigour is needed here.
            steps = np.linspace(0, 1, 61)[1:, None] * (tau + self.rho)
            first = (self.h(tau, time, steps) <= 0).argmax(axis=0)
            high, low = steps[first, np.arange(len(tau))], np.where(first, steps[first - 1, np.arange(len(tau))], 0.0)
            for _ in range(40):
                delta = (low + high) / 2
                inside = self.h(tau, time, delta) > 0
                low, high = np.where(inside, delta, low), np.where(inside, high, delta)
            proved = np.zeros(len(tau), dtype=bool)
            for factor in (0.0, 0.3, 1.0, 3.0, 8.0, 25.0):
                h, log_ratio = self.bounds(cells, high + factor * np.maximum(tau_1 - tau_0, late - early))
                proved |= (h <= -MARGIN) & (log_ratio >= MARGIN)
            cells = cells[:, ~proved]
            if not 0 < cells.shape[1] < most:
                break
            tau_0, tau_1, early, late = cells
            wide, tau, time = 0.6 * (tau_1 - tau_0) > late - early, (tau_0 + tau_1) / 2, (early + late) / 2
            first_half = np.where(wide, [tau_0, tau, early, late], [tau_0, tau_1, early, time])
            second_half = np.where(wide, [tau, tau_1, early, late], [tau_0, tau_1, time, late])
            cells = np.concatenate([first_half, second_half], axis=1)
        return cells


@pytest.mark.theorem
@pytest.mark.parametrize(("rho", "factor", "slope"), BEYOND)
def test_the_inequalities_of_lemma_10_hold_on_cells_that_cover_their_domain(rho, factor, slope):
    assert Growth(rho, 1 / factor, slope).unproved_cells(rounds=14).size == 0


@pytest.mark.theorem
@pytest.mark.parametrize(("rho", "factor"), [(5.0, 1.03), (6.0, 1.08)])
def test_factors_that_are_too_small_are_not_proved(rho, factor):
    # The dynamic program needs 1.034 and 1.088 there.
    assert Growth(rho, 1 / factor, 2.7).unproved_cells(rounds=8).size > 0


@pytest.mark.theorem
def test_the_bounds_of_lemma_10_hold_inside_the_cells():
    rng = np.random.default_rng(0)
    growth = Growth(5.0, 1 / 1.06, 2.7)
    tau_0, early, delta = rng.uniform(0.5, 14, 500), rng.uniform(-8, 0.5, 500), rng.uniform(0, 15, 500)
    cells = np.array([tau_0, tau_0 + rng.uniform(0, 0.3, 500), early, early + rng.uniform(0, 0.2, 500)])
    cells[3] = np.where(early < 0, np.minimum(cells[3], 0), cells[3])
    h, log_ratio = growth.bounds(cells, delta)
    for a, b in rng.uniform(0, 1, (20, 2)):
        tau, time = cells[0] + a * (cells[1] - cells[0]), cells[2] + b * (cells[3] - cells[2])
        v, speed = growth.at(time)
        later, later_speed = growth.at(time + delta)
        zeta = speed + v * (tau - 1 / tau)
        assert np.all((later_speed - zeta) / later - (delta - tau) <= h + 1e-9 * (1 + np.abs(h)))
        inside = tau * speed > v
        start = np.where(inside, speed - v / tau, 1.0)
        found = (tau**2 - (tau - delta) ** 2) / 2 + np.log(later_speed) - np.log(start)
        assert np.all(found[inside] >= log_ratio[inside] - 1e-8)


@pytest.mark.theorem
def test_the_table_covers_weighted_records():
    # The corollary of theorem 8: at a ratio above 3.71, mu_z is at most 3.7 mu over the ratio.
    table = {rho: factor for rho, factor, _ in BEYOND}
    for least, most in [(3.71, 3.8), (3.8, 4.0), (4.0, 5.0), (5.0, 6.0)]:
        assert table[most] <= least / 3.7
    rho, xi = np.meshgrid(np.geomspace(6, 1e4, 200), np.linspace(0.98, 40, 2000))
    mills = math.sqrt(math.pi / 2) * erfcx(xi / math.sqrt(2))
    bracket = rho * mills / 4 + 0.5 + (mills + xi) / (4 * rho)
    assert np.all((bracket <= rho / 3.7) | (xi > rho))


# ---------------------------------------------------------------- attacks: transports of the normal law

SHIFTS = np.array([0.02, 0.3, 0.6, 0.9, 1.2, 1.6, 2.2, 3.0])


def normal_masses(ends):
    a, b = ends[:-1], ends[1:]
    return np.where(a > 0, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a))


def deltas_of_transport(t, u, mu, epsilons):
    """Deltas of adding and of removing, over the cells between the points t, where t goes to t + mu u(t)."""
    p, q = normal_masses(t + mu * u), normal_masses(t)
    factor = np.exp(epsilons)[:, None]
    return np.maximum(p - factor * q, 0).sum(axis=1), np.maximum(q - factor * p, 0).sum(axis=1)


def worst_transport(epsilon, mu, rho, dt=0.02, reach=8.0, largest_logit=16.0):
    """Largest delta of adding over transports whose logit stands still or grows at the rate rho, cell by cell."""
    logit = np.arange(-largest_logit, largest_logit, rho * dt)
    u = np.concatenate([[0.0], expit(logit), [1.0]])
    after = np.minimum(np.arange(len(u)) + 1, len(u) - 2)
    after[0], after[-1] = 0, len(u) - 1
    t = np.arange(-reach, reach + dt / 2, dt)
    shifted, here, future = ndtr(t[:, None] + mu * u), math.exp(epsilon) * ndtr(t), np.zeros(len(u))
    for k in range(len(t) - 2, -1, -1):
        price = here[k + 1] - here[k]
        stay = np.maximum(0, shifted[k + 1] - shifted[k] - price) + future
        grow = np.maximum(0, shifted[k + 1, after] - shifted[k] - price) + future[after]
        future = np.maximum(stay, grow)
    return future.max()


@pytest.mark.theorem
@pytest.mark.parametrize("mu", [0.02, 0.27, 1.0])
def test_no_transport_within_the_ratio_is_worse_than_the_gaussian_mechanism(mu):
    for shift in SHIFTS:
        gauss = float(gaussian_delta(shift * mu, mu))
        found = worst_transport(shift * mu, mu, RATIO)
        # The best is the shift by mu itself, up to the grid's cells.
        assert 0.999 * gauss <= found <= gauss * (1 + 1e-9)


@pytest.mark.theorem
@pytest.mark.parametrize(("mu", "excess"), [(0.02, 0.05), (0.27, 0.03)])
def test_a_transport_beyond_the_ratio_is_worse_than_the_gaussian_mechanism(mu, excess):
    shifts = np.array([0.9, 1.2, 1.6])
    found = np.array([worst_transport(shift * mu, mu, 5.0) for shift in shifts])
    assert np.max(found / gaussian_delta(shifts * mu, mu)) > 1 + excess
    # Theorem 8, and that its factor is not much larger than needed.
    assert np.all(found <= gaussian_delta(shifts * mu, 1.06 * mu))
    assert np.any(found > gaussian_delta(shifts * mu, (1.03 if mu < 0.1 else 1.005) * mu))


@pytest.mark.theorem
@pytest.mark.parametrize("share", [0.9, 0.5, 0.2])
def test_long_records_of_small_weight_are_within_the_gaussian_curve(share):
    # The corollary of theorem 8: a smaller shift, and a ratio that is larger by as much.
    mu = 0.1
    for shift in SHIFTS:
        found = worst_transport(shift * mu, share * mu, RATIO / share)
        assert found <= float(gaussian_delta(shift * mu, mu))


def random_transport(t, rho, rng):
    """A transport whose logit grows at rates between 0 and rho, in random intervals, from a random start."""
    switches = np.sort(rng.uniform(-6, 4, rng.integers(1, 40)))
    rates = rng.choice([0.0, 0.0, 0.5, 1.0, 1.0], len(switches) + 1) * rho
    logit = np.concatenate([[0.0], np.cumsum(np.diff(t) * rates[np.searchsorted(switches, t[:-1])])])
    return expit(logit - np.interp(rng.uniform(-5, 3), t, logit) + rng.normal())


@pytest.mark.theorem
@pytest.mark.parametrize("seed", range(24))
def test_random_transports_are_within_the_gaussian_curve_in_both_directions(seed):
    rng = np.random.default_rng(seed)
    mu, t = float(np.exp(rng.uniform(-4, 0.7))), np.linspace(-9, 9, 4001)
    u = random_transport(t, RATIO, rng)
    epsilons = mu * np.linspace(0, 3.5, 20)
    for found in deltas_of_transport(t, u, mu, epsilons):
        assert np.all(found <= gaussian_delta(epsilons, mu) * (1 + 1e-9) + 1e-14)


@pytest.mark.theorem
@pytest.mark.parametrize("seed", range(8))
def test_the_speed_of_any_event_is_at_most_that_of_a_half_line(seed):
    # Lemma 7 itself, for random transports and random unions of intervals: the flux of u phi through their ends.
    rng = np.random.default_rng(seed)
    t = np.linspace(-9, 9, 4001)
    u, density = random_transport(t, RATIO, rng), np.exp(-(t**2) / 2) / math.sqrt(2 * math.pi)
    flux, mass = np.diff(u * density), normal_masses(t)
    events = [flux > zeta * mass for zeta in np.linspace(-2, 3, 26)]
    for _ in range(30):
        ends = np.sort(rng.uniform(-4, 3, 2 * rng.integers(1, 6)))
        events.append(np.searchsorted(ends, (t[1:] + t[:-1]) / 2) % 2 == 1)
    for event in events:
        quantile = mass[event].sum()
        if 0 < quantile < 1:
            # The largest slope of lines that touch the Gaussian isoperimetric function, on a grid of zeta.
            zeta = np.linspace(-5, 5, 20_001)
            touching = np.exp(-(zeta**2) / 2) / math.sqrt(2 * math.pi) - zeta * ndtr(-zeta) + zeta * quantile
            assert flux[event].sum() <= touching.min() + 1e-6


# ---------------------------------------------------------------- attacks: data sets


def random_data_set(rng):
    """Records on a line, a few or many, agreeing or not, and the record that the neighbour has in addition."""
    size = rng.integers(0, 8)
    records = zip(rng.uniform(-1, 1, size), np.exp(rng.uniform(0, 7, size)).astype(int) + 1, strict=True)
    return [(float(v), float(n)) for v, n in records], float(rng.choice([-1.0, 1.0, rng.uniform(-1, 1)]))


@pytest.mark.theorem
@pytest.mark.parametrize("seed", range(12))
def test_random_data_sets_are_within_the_gaussian_curve_in_both_directions(seed):
    rng = np.random.default_rng(seed)
    mu = float(np.exp(rng.uniform(-3, 0.7)))
    records, added = random_data_set(rng)
    epsilons = mu * np.linspace(0, 4, 20)
    # The norm of the added record counts: a shorter one has a smaller mu, and a smaller ratio.
    bound = gaussian_delta(epsilons, mu * abs(added)) * (1 + 1e-7) + 1e-13
    for found in exact_delta(epsilons, RATIO * mu, 1 / mu, records, added, cells=3000):
        assert np.all(found <= bound)


@pytest.mark.theorem
def test_a_data_set_beyond_the_ratio_refutes_the_gaussian_curve():
    mu = 0.27
    epsilons = mu * np.array([0.3, 0.6, 0.9])
    adding, _ = exact_delta(epsilons, 6 * mu, 1 / mu, [(0.05, 200)], -1.0)
    assert np.max(adding / gaussian_delta(epsilons, mu)) > 1.01

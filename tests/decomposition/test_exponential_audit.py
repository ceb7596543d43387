"""Empirical lower bounds on what ExpMechPCA gives away, on pairs that its proofs call worst, in both directions.

One record of full norm against none. Every audit has a false-alarm probability of 1e-6 (two Clopper-Pearson limits of
5e-7 each) and fixed seeds. The event is fixed ahead, or chosen on runs of its own. Each audit also has to reject twins
that are broken on purpose: twice the exponent, no noise to speak of, no clipping.
"""

import numpy as np
import pytest
from scipy import integrate

from skdp import ExpMechPCA
from skdp.decomposition import _exponential, _moments
from skdp.mechanisms import BinghamMechanism, DiscreteLaplaceMechanism, GammaMechanism, GaussianMechanism
from skdp.sensitivity import clip_rows
from tests.auditing import epsilon_lower_bound, mu_lower_bound, separating_event, shift_over_spread

pytestmark = pytest.mark.audit

ERROR = 5e-7
CLAIM, RUNS = 3.0, 4000
NOTHING, RECORD = np.empty((0, 2)), np.array([[1.0, 0.0]])

# The squared cosine falls below 0.1, which it does less often with the record; or above 0.9, the other way round.
AWAY, TOWARDS = (-1.0, -0.1), (1.0, 0.9)


def cosines(X, runs, seed, **parameters):
    model = ExpMechPCA(**{"n_components": 1, "epsilon": CLAIM, "data_norm": 1.0, "variance_share": 0.0, **parameters})
    return np.array([model.set_params(random_state=seed + i).fit(X).components_[0, 0] ** 2 for i in range(runs)])


@pytest.fixture(scope="module")
def nothing():
    """Without data every direction is alike, whatever the noise and the clipping: one sample does for all audits."""
    return cosines(NOTHING, 2 * RUNS, 0)


def direction_bounds(nothing, record=RECORD, runs=RUNS):
    """Lower bounds on epsilon, from none to the record and back."""
    found = cosines(record, runs, 10**6)
    return (
        epsilon_lower_bound(nothing, found, AWAY, 0.0, ERROR),
        epsilon_lower_bound(found, nothing, TOWARDS, 0.0, ERROR),
    )


def scale_noise(monkeypatch, factor, *mechanisms):
    for mechanism in mechanisms:
        whole = mechanism.scale.fget
        monkeypatch.setattr(mechanism, "scale", property(lambda self, whole=whole: factor * whole(self)))


def test_what_the_events_can_show():
    # On the double angle, both laws are known; the losses in the two events are at most 2.0 and 1.0 of 3.
    def below(kappa, t):
        half = np.arccos(2 * t - 1)
        mass = integrate.quad(lambda a: np.exp(kappa * np.cos(a)), half, np.pi)[0]
        return mass / integrate.quad(lambda a: np.exp(kappa * np.cos(a)), 0, np.pi)[0]

    assert np.log(below(0, 0.1) / below(1.5, 0.1)) == pytest.approx(1.89, abs=0.01)
    assert np.log((1 - below(1.5, 0.9)) / (1 - below(0, 0.9))) == pytest.approx(0.86, abs=0.1)
    assert np.log(below(0, 0.1) / below(3.0, 0.1)) > 4


def test_direction_claim_stands_and_is_visible(nothing):
    away, towards = direction_bounds(nothing)
    assert away <= CLAIM, f"claim {CLAIM} exceeded: at least {away:.2f} (false alarm 1e-6)"
    assert towards <= CLAIM, f"claim {CLAIM} exceeded: at least {towards:.2f} (false alarm 1e-6)"
    assert away >= 0.4 * CLAIM, f"the audit sees only {away:.2f} of {CLAIM}: too blunt to mean anything"
    assert towards >= 0.15 * CLAIM


def test_direction_audit_rejects_twice_the_exponent(nothing, monkeypatch):
    # The exponent for one record, where the bound on its score is taken to be half of what it is.
    scale_noise(monkeypatch, 0.5, BinghamMechanism)
    assert max(direction_bounds(nothing, runs=2 * RUNS)) > CLAIM


def test_direction_audit_rejects_no_noise(nothing, monkeypatch):
    scale_noise(monkeypatch, 1e-3, BinghamMechanism)
    assert max(direction_bounds(nothing, runs=RUNS // 2)) > CLAIM


def test_direction_audit_rejects_missing_clipping(nothing, monkeypatch):
    assert max(direction_bounds(nothing, 2 * RECORD, RUNS // 4)) <= CLAIM

    monkeypatch.setattr(_moments, "clip_rows", lambda rows, norm, constant: clip_rows(rows, 1e9, constant))
    assert max(direction_bounds(nothing, 2 * RECORD)) > CLAIM


# --- the mean and the variances: noise on sums ----------------------------------------------------------------------


class Reader:
    """Fits on a record or on none, and reads one release along the difference that the record makes."""

    def __init__(self, monkeypatch, label, direction, **parameters):
        self.label, self.direction = label, direction
        self.model = ExpMechPCA(**{"n_components": 1, "epsilon": CLAIM, "data_norm": 1.0, **parameters})
        self.seen = []
        whole = _exponential.ReleaseSession.release

        def reading(session, label, value):
            released = whole(session, label, value)
            if label == self.label:
                self.seen.append(float(released @ self.direction))
            return released

        monkeypatch.setattr(_exponential.ReleaseSession, "release", reading)

    def outputs(self, X, runs, seed):
        self.seen.clear()
        for i in range(runs):
            self.model.set_params(random_state=seed + i).fit(X)
        return list(self.seen)

    def samples(self, runs, quantile, d):
        pair = np.empty((0, d)), np.eye(d)[:1]
        pilots = [self.outputs(X, runs // 3, 10**6 * (i + 1)) for i, X in enumerate(pair)]
        finals = [self.outputs(X, runs, 10**6 * (i + 5)) for i, X in enumerate(pair)]
        return separating_event(*pilots, quantile), finals


def variances_reader(monkeypatch):
    # With one column there is nothing to draw: all of the budget is for the energy, 1, and the count, 1/4.
    return Reader(monkeypatch, _exponential.VARIANCES, np.array([1.0, 0.25]), n_components=None)


def test_variances_claim_stands_and_is_nearly_used(monkeypatch):
    event, finals = variances_reader(monkeypatch).samples(1500, 0.8, 1)
    for pair in (finals, finals[::-1]):
        bound = epsilon_lower_bound(*pair, event if pair is finals else (-event[0], -event[1] - 0.5), 0.0, ERROR)
        assert bound <= CLAIM
    assert epsilon_lower_bound(*finals, event, 0.0, ERROR) >= 0.4 * CLAIM


def test_variances_audit_rejects_half_the_noise(monkeypatch):
    whole = DiscreteLaplaceMechanism.lattice_scale.fget
    monkeypatch.setattr(DiscreteLaplaceMechanism, "lattice_scale", property(lambda self: whole(self) / 2))
    event, finals = variances_reader(monkeypatch).samples(2500, 0.5, 1)
    assert epsilon_lower_bound(*finals, event, 0.0, ERROR) > CLAIM


def mean_reader(monkeypatch):
    # With one column and hardly anything for its variance, all of the budget is for the mean: the record adds (1, 1/2).
    budget = {"epsilon": 8.0, "delta": 1e-5, "variance_share": 1e-6}
    direction = np.array([1.0, 0.5])
    return Reader(monkeypatch, _exponential.MEAN, direction, n_components=None, center="private", **budget)


def test_mean_claim_stands_and_is_nearly_used(monkeypatch):
    reader = mean_reader(monkeypatch)
    claim = reader.model.privacy_plan(n_features=1).cost.mu()
    event, finals = reader.samples(1000, 0.2, 1)
    assert mu_lower_bound(*finals, event, ERROR) <= claim
    mu, error = shift_over_spread(*finals)
    assert 0.9 * claim - 4.9 * error <= mu <= claim + 4.9 * error


@pytest.mark.parametrize("factor", [0.5, 1e-3])
def test_mean_audit_rejects_too_little_noise(factor, monkeypatch):
    scale_noise(monkeypatch, factor, GaussianMechanism, GammaMechanism)
    reader = mean_reader(monkeypatch)
    claim = reader.model.privacy_plan(n_features=1).cost.mu()
    _, finals = reader.samples(700, 0.2, 1)
    mu, error = shift_over_spread(*finals)
    assert mu > claim + 4.9 * error

"""Empirical lower bounds on what the functional mechanism gives away, on the pair that the proof calls worst.

One record at the corner of the box against none. The reader of the release sees the noisy moments, of which all else
is post-processing, and projects them on the difference. Every audit has a false-alarm probability of 1e-6 (two
Clopper-Pearson limits of 5e-7 each) and fixed seeds. The event is chosen on runs of its own. Each audit also has to
reject twins that are broken on purpose: half the noise, no noise to speak of, no clipping, no reweighting.
"""

import numpy as np
import pytest

from skdp import FunctionalMechLinReg
from skdp.linear_model import _functional
from skdp.linear_model._moments import Geometry, Scaling
from skdp.mechanisms import GammaMechanism, GaussianMechanism
from tests.auditing import epsilon_lower_bound, mu_lower_bound, separating_event, shift_over_spread

pytestmark = pytest.mark.audit

ERROR = 5e-7
PURE, PURE_RUNS = 3.0, 1500
GAUSSIAN, GAUSSIAN_RUNS = 8.0, 700


class Reader:
    """Fits on a record or on none, and reads the release."""

    def __init__(self, monkeypatch, epsilon, delta, size=1.0, n_features=1, data_norm=None):
        self.seen = []
        self.model = FunctionalMechLinReg(
            epsilon=epsilon,
            delta=delta,
            bounds=(-1, 1),
            bounds_y=(-1, 1),
            data_norm=data_norm or n_features**0.5,
            fit_intercept=False,
        )
        self.pair = [(np.full((n, n_features), float(size)), np.full(n, float(size))) for n in (0, 1)]
        whole = _functional.postprocess

        def reading(gram, cross, *rest):
            # In the direction of the difference (x x', t x y), with t^2 = 0.6^2 ||x||^2.
            self.seen.append(gram.sum() + 0.36 * min(n_features, (data_norm or np.inf) ** 2) * cross.sum())
            return whole(gram, cross, *rest)

        monkeypatch.setattr(_functional, "postprocess", reading)

    def outputs(self, data, runs, first_seed):
        self.seen.clear()
        for i in range(runs):
            self.model.set_params(random_state=first_seed + i).fit(*data)
        return list(self.seen)

    def samples(self, runs, quantile=0.5):
        """Pilot and final samples on both data sets, from disjoint seeds."""
        pilot = runs // 3
        seeds = iter(np.cumsum([0, pilot, pilot, runs]))
        pilots = [self.outputs(data, pilot, int(next(seeds))) for data in self.pair]
        finals = [self.outputs(data, runs, int(next(seeds))) for data in self.pair]
        return separating_event(*pilots, quantile), finals


def scale_noise(monkeypatch, factor):
    for mechanism in (GaussianMechanism, GammaMechanism):
        whole = mechanism.scale.fget
        monkeypatch.setattr(mechanism, "scale", property(lambda self, whole=whole: factor * whole(self)))


def unclipped(self, values, out):
    out[...] = (values - self.centre) / self.half


def test_pure_claim_stands_and_is_nearly_used(monkeypatch):
    event, finals = Reader(monkeypatch, PURE, 0.0).samples(PURE_RUNS)
    bound = epsilon_lower_bound(*finals, event, 0.0, ERROR)
    assert bound <= PURE, f"claim {PURE} exceeded: at least {bound:.2f} (false alarm 1e-6)"
    assert bound >= 0.5 * PURE, f"the audit sees only {bound:.2f} of {PURE}: too blunt to mean anything"


@pytest.mark.parametrize("factor", [0.5, 1e-3])
def test_pure_audit_rejects_too_little_noise(factor, monkeypatch):
    scale_noise(monkeypatch, factor)
    event, finals = Reader(monkeypatch, PURE, 0.0).samples(PURE_RUNS)
    assert epsilon_lower_bound(*finals, event, 0.0, ERROR) > PURE


def test_pure_audit_rejects_missing_clipping(monkeypatch):
    event, finals = Reader(monkeypatch, PURE, 0.0, size=2.0).samples(PURE_RUNS // 3)
    assert epsilon_lower_bound(*finals, event, 0.0, ERROR) <= PURE
    monkeypatch.setattr(Scaling, "apply", unclipped)
    event, finals = Reader(monkeypatch, PURE, 0.0, size=2.0).samples(PURE_RUNS)
    assert epsilon_lower_bound(*finals, event, 0.0, ERROR) > PURE


def claim_of(reader):
    return reader.model.privacy_plan(n_features=len(reader.pair[0][0].T)).cost.mu()


@pytest.mark.parametrize("data_norm", [None, 1.0])
def test_gaussian_claim_stands_and_is_nearly_used(data_norm, monkeypatch):
    reader = Reader(monkeypatch, GAUSSIAN, 1e-5, n_features=2, data_norm=data_norm)
    claim = claim_of(reader)
    event, finals = reader.samples(GAUSSIAN_RUNS, 0.2)
    bound = mu_lower_bound(*finals, event, ERROR)
    assert bound <= claim, f"claim {claim:.3f} exceeded: at least {bound:.3f} (false alarm 1e-6)"
    mu, error = shift_over_spread(*finals)
    # A row that is scaled down takes its target along, and uses a little less.
    assert (0.9 if data_norm is None else 0.8) * claim - 4.9 * error <= mu <= claim + 4.9 * error


@pytest.mark.parametrize("factor", [0.5, 1e-3])
def test_gaussian_audit_rejects_too_little_noise(factor, monkeypatch):
    scale_noise(monkeypatch, factor)
    reader = Reader(monkeypatch, GAUSSIAN, 1e-5)
    _, finals = reader.samples(GAUSSIAN_RUNS)
    mu, error = shift_over_spread(*finals)
    assert mu > claim_of(reader) + 4.9 * error


def test_gaussian_audit_rejects_missing_reweighting(monkeypatch):
    monkeypatch.setattr(Geometry, "reweights", False)
    reader = Reader(monkeypatch, GAUSSIAN, 1e-5, n_features=2, data_norm=1.0)
    _, finals = reader.samples(2 * GAUSSIAN_RUNS)
    mu, error = shift_over_spread(*finals)
    assert mu > claim_of(reader) + 4.9 * error


def test_gaussian_black_box_rejects_half_the_noise(monkeypatch):
    scale_noise(monkeypatch, 0.5)
    reader = Reader(monkeypatch, GAUSSIAN, 1e-5)
    event, finals = reader.samples(2 * GAUSSIAN_RUNS, 0.2)
    assert mu_lower_bound(*finals, event, ERROR) > claim_of(reader)

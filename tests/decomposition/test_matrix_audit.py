"""Empirical lower bounds on what DPPCA gives away, on the pair that its proof calls worst, in both directions.

One record of full norm against none. The reader of the release projects it on the difference. Every audit has a
false-alarm probability of 1e-6 (two Clopper-Pearson limits of 5e-7 each) and fixed seeds. The event is chosen on runs
of its own. Each audit also has to reject twins that are broken on purpose: half the noise, none to speak of, no
clipping.
"""

import numpy as np
import pytest

from skdp import DPPCA
from skdp.decomposition import _matrix, _moments
from skdp.mechanisms import GammaMechanism, GaussianMechanism
from skdp.sensitivity import clip_rows
from tests.auditing import epsilon_lower_bound, mu_lower_bound, separating_event, shift_over_spread

pytestmark = pytest.mark.audit

ERROR = 5e-7
PURE, PURE_RUNS = 3.0, 1500
GAUSSIAN, GAUSSIAN_RUNS = 8.0, 700


class Reader:
    """Fits on a record or on none, and reads the release of the second moments."""

    def __init__(self, monkeypatch, epsilon, delta, size=1.0, d=2, **parameters):
        self.d = d
        self.model = DPPCA(epsilon=epsilon, delta=delta, data_norm=1.0, solver="matrix", **parameters)
        self.pair = np.empty((0, d)), size * np.eye(d)[:1]
        self.seen = []
        weights = self.model._check_parameters()
        # The record adds 1 to an entry of the diagonal, and its weights to the sum and to the number of rows.
        entries = d * (d + 1) // 2
        self.direction = np.zeros(entries + d * (weights.sum_weight > 0) + (weights.count_weight > 0))
        if weights.sum_weight:
            self.direction[entries] = weights.sum_weight
        if weights.count_weight:
            self.direction[-1] = weights.count_weight
        self.direction[0] = 1.0
        whole = _matrix.ReleaseSession.release

        def reading(session, label, value):
            released = whole(session, label, value)
            self.seen.append(float(released @ self.direction))
            return released

        monkeypatch.setattr(_matrix.ReleaseSession, "release", reading)

    @property
    def claim(self):
        return self.model.privacy_plan(n_features=self.d).cost.mu()

    def outputs(self, X, runs, seed):
        self.seen.clear()
        for i in range(runs):
            self.model.set_params(random_state=seed + i).fit(X)
        return list(self.seen)

    def samples(self, runs, quantile=0.5):
        pilots = [self.outputs(X, runs // 3, 10**6 * (i + 1)) for i, X in enumerate(self.pair)]
        finals = [self.outputs(X, runs, 10**6 * (i + 5)) for i, X in enumerate(self.pair)]
        return [separating_event(*pair, quantile) for pair in (pilots, pilots[::-1])], finals


def scale_noise(monkeypatch, factor):
    for mechanism in (GaussianMechanism, GammaMechanism):
        whole = mechanism.scale.fget
        monkeypatch.setattr(mechanism, "scale", property(lambda self, whole=whole: factor * whole(self)))


CENTRES = ["none", "private"]

# One column, and a known number of records: the release is one number, which shows all that there is to see.
ALONE = {"d": 1, "center": "none", "expected_n": 10}


@pytest.mark.parametrize("variant", [ALONE, {"center": "private"}], ids=["one number", "a matrix and a mean"])
def test_pure_claim_stands_and_is_visible(variant, monkeypatch):
    events, finals = Reader(monkeypatch, PURE, 0.0, **variant).samples(PURE_RUNS)
    for event, pair in zip(events, (finals, finals[::-1]), strict=True):
        bound = epsilon_lower_bound(*pair, event, 0.0, ERROR)
        assert bound <= PURE, f"claim {PURE} exceeded: at least {bound:.2f} (false alarm 1e-6)"
        # In many dimensions, the noise of the others hides the norm of the noise.
        least = 0.5 if variant is ALONE else 0.2
        assert bound >= least * PURE, f"the audit sees only {bound:.2f} of {PURE}: too blunt to mean anything"


@pytest.mark.parametrize("factor", [0.5, 1e-3])
def test_pure_audit_rejects_too_little_noise(factor, monkeypatch):
    scale_noise(monkeypatch, factor)
    events, finals = Reader(monkeypatch, PURE, 0.0, **ALONE).samples(PURE_RUNS)
    for event, pair in zip(events, (finals, finals[::-1]), strict=True):
        assert epsilon_lower_bound(*pair, event, 0.0, ERROR) > PURE


@pytest.mark.parametrize("center", CENTRES)
def test_gaussian_claim_stands_and_is_nearly_used(center, monkeypatch):
    reader = Reader(monkeypatch, GAUSSIAN, 1e-5, center=center)
    events, finals = reader.samples(GAUSSIAN_RUNS, 0.2)
    for event, pair in zip(events, (finals, finals[::-1]), strict=True):
        bound = mu_lower_bound(*pair, event, ERROR)
        assert bound <= reader.claim, f"claim {reader.claim:.3f} exceeded: at least {bound:.3f} (false alarm 1e-6)"
    mu, error = shift_over_spread(*finals)
    assert 0.95 * reader.claim - 4.9 * error <= mu <= reader.claim + 4.9 * error


@pytest.mark.parametrize("center", CENTRES)
@pytest.mark.parametrize("factor", [0.5, 1e-3])
def test_gaussian_audit_rejects_too_little_noise(center, factor, monkeypatch):
    scale_noise(monkeypatch, factor)
    reader = Reader(monkeypatch, GAUSSIAN, 1e-5, center=center)
    _, finals = reader.samples(GAUSSIAN_RUNS)
    mu, error = shift_over_spread(*finals)
    assert mu > reader.claim + 4.9 * error


def test_gaussian_audit_rejects_missing_clipping(monkeypatch):
    reader = Reader(monkeypatch, GAUSSIAN, 1e-5, size=2.0, center="none")
    _, finals = reader.samples(GAUSSIAN_RUNS)
    mu, error = shift_over_spread(*finals)
    assert mu <= reader.claim + 4.9 * error
    monkeypatch.setattr(_moments, "clip_rows", lambda rows, norm, constant: clip_rows(rows, 1e9, constant))
    _, finals = reader.samples(GAUSSIAN_RUNS)
    mu, error = shift_over_spread(*finals)
    assert mu > reader.claim + 4.9 * error

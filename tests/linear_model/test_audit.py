"""Empirical lower bounds on what the two classifiers give away, on the pair that the proofs call worst.

Every audit has a false-alarm probability of 1e-6 (two Clopper-Pearson limits of 5e-7 each) and fixed seeds. The event
is chosen on runs of its own. Each audit also has to reject twins that are broken on purpose: half the noise, no noise
to speak of, no clipping.
"""

import numpy as np
import pytest

from skdp import ObjPertLogReg, OutputPertLogReg
from skdp.linear_model import _logistic
from skdp.mechanisms import GammaMechanism, GaussianMechanism
from skdp.sensitivity import ClippedRows
from tests.auditing import epsilon_lower_bound, mu_lower_bound, separating_event, shift_over_spread
from tests.linear_model.data import saturating_pair

pytestmark = pytest.mark.audit

ERROR = 5e-7
BOTH = pytest.mark.parametrize("estimator", [OutputPertLogReg, ObjPertLogReg])


def model_and_pair(estimator, epsilon, delta, record_norm=1.0):
    model = estimator(epsilon=epsilon, delta=delta, data_norm=1.0, fit_intercept=False, classes=[0, 1])
    C = model.fit(np.zeros((0, 1)), np.zeros(0, dtype=int)).C_
    model.set_params(C=C)
    part, (X, y) = saturating_pair(C, 1.0)
    X = X.copy()
    X[-1] *= record_norm
    return model, part, (X, y)


def outputs(model, data, runs, first_seed):
    return [float(model.set_params(random_state=first_seed + i).fit(*data).coef_[0, 0]) for i in range(runs)]


def audit_samples(model, pair, runs, quantile=0.5):
    """Pilot and final samples on both data sets, from disjoint seeds."""
    pilot = runs // 3
    seeds = iter(np.cumsum([0, pilot, pilot, runs]))
    pilots = [outputs(model, data, pilot, int(next(seeds))) for data in pair]
    finals = [outputs(model, data, runs, int(next(seeds))) for data in pair]
    return separating_event(*pilots, quantile), finals


def scale_noise(monkeypatch, factor):
    for mechanism in (GaussianMechanism, GammaMechanism):
        whole = mechanism.scale.fget
        monkeypatch.setattr(mechanism, "scale", property(lambda self, whole=whole: factor * whole(self)))


PURE, PURE_RUNS = 3.0, 1500
GAUSSIAN, GAUSSIAN_RUNS = 8.0, 700


@BOTH
def test_pure_claim_stands_and_is_nearly_used(estimator):
    model, *pair = model_and_pair(estimator, PURE, 0.0)
    event, finals = audit_samples(model, pair, PURE_RUNS)
    bound = epsilon_lower_bound(*finals, event, 0.0, ERROR)
    assert bound <= PURE, f"claim {PURE} exceeded: at least {bound:.2f} (false alarm 1e-6)"
    assert bound >= 0.6 * PURE, f"the audit sees only {bound:.2f} of {PURE}: too blunt to mean anything"


@BOTH
@pytest.mark.parametrize("factor", [0.5, 1e-6])
def test_pure_audit_rejects_too_little_noise(estimator, factor, monkeypatch):
    model, *pair = model_and_pair(estimator, PURE, 0.0)
    scale_noise(monkeypatch, factor)
    event, finals = audit_samples(model, pair, PURE_RUNS)
    assert epsilon_lower_bound(*finals, event, 0.0, ERROR) > PURE


@BOTH
def test_pure_audit_rejects_missing_clipping(estimator, monkeypatch):
    model, *pair = model_and_pair(estimator, PURE, 0.0, record_norm=4.0)
    event, finals = audit_samples(model, pair, PURE_RUNS // 3)
    assert epsilon_lower_bound(*finals, event, 0.0, ERROR) <= PURE
    monkeypatch.setattr(_logistic, "clip_rows", lambda X, norm, constant: ClippedRows(X.copy(), norm))
    event, finals = audit_samples(model, pair, PURE_RUNS)
    assert epsilon_lower_bound(*finals, event, 0.0, ERROR) > PURE


def gaussian_claim(model):
    """The GDP parameter that the fit is charged, and that of the noise alone."""
    plan = model.privacy_plan(n_features=1)
    mechanism = plan.releases[0].mechanism
    return plan.cost.mu(), mechanism.sensitivity / mechanism.scale


@BOTH
def test_gaussian_claim_stands_and_is_nearly_used(estimator):
    model, *pair = model_and_pair(estimator, GAUSSIAN, 1e-5)
    claim, noise = gaussian_claim(model)
    event, finals = audit_samples(model, pair, GAUSSIAN_RUNS, 0.2)
    bound = mu_lower_bound(*finals, event, ERROR)
    assert bound <= claim, f"claim {claim:.3f} exceeded: at least {bound:.3f} (false alarm 1e-6)"
    # The grey-box reading is on the mark: the shift over the spread is the noise's own mu.
    mu, error = shift_over_spread(*finals)
    assert 0.9 * noise - 4.9 * error <= mu <= 1.02 * noise + 4.9 * error, f"{mu:.3f} for {noise:.3f}, false alarm 1e-6"


@BOTH
@pytest.mark.parametrize("factor", [0.5, 1e-6])
def test_gaussian_audit_rejects_too_little_noise(estimator, factor, monkeypatch):
    model, *pair = model_and_pair(estimator, GAUSSIAN, 1e-5)
    _, noise = gaussian_claim(model)
    scale_noise(monkeypatch, factor)
    _, finals = audit_samples(model, pair, GAUSSIAN_RUNS)
    mu, error = shift_over_spread(*finals)
    assert mu > 1.02 * noise + 4.9 * error


@BOTH
def test_gaussian_black_box_rejects_half_the_noise(estimator, monkeypatch):
    model, *pair = model_and_pair(estimator, GAUSSIAN, 1e-5)
    claim, _ = gaussian_claim(model)
    scale_noise(monkeypatch, 0.5)
    event, finals = audit_samples(model, pair, 2 * GAUSSIAN_RUNS, 0.2)
    assert mu_lower_bound(*finals, event, ERROR) > claim

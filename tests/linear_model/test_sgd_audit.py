"""Samples of noisy gradient descent: what a step releases is the mixture that the accountant is told.

The neighbours are no record, and one whose clipped gradient is as long as it may be. Every test has a false-alarm
probability of 1e-6 (4.9 standard errors) and fixed seeds.
"""

import math

import numpy as np
import pytest
from scipy import stats

from skdp import DPSGDClassifier
from skdp.accounting import SampledGaussianEvent
from skdp.mechanisms import SampledGaussianMechanism
from skdp.release.session import ReleaseSession

pytestmark = pytest.mark.audit

ERRORS = 4.9

# The record is on the wrong side of everything there is: at the start, its derivative is a half, beyond the clip.
NOBODY = (np.zeros((0, 1)), np.zeros(0, dtype=int))
CANARY = (np.ones((1, 1)), np.ones(1, dtype=int))


def estimator(**parameters):
    common = {"epsilon": 1.0, "data_norm": 1.0, "fit_intercept": False, "classes": [0, 1], "expected_n": 1}
    return DPSGDClassifier(**{**common, **parameters})


@pytest.fixture
def sums(monkeypatch):
    """Return a function that fits, and adds up what was released over the steps."""

    def released(model, data, runs, first_seed):
        out = []
        steps = ReleaseSession.steps

        def watched(self, label, n_rows, attributes=None):
            for rows, send in steps(self, label, n_rows, attributes):

                def note(total, send=send):
                    noisy = send(total)
                    out[-1].append(float(noisy.ravel()[0]))
                    return noisy

                yield rows, note

        with monkeypatch.context() as patch:
            patch.setattr(ReleaseSession, "steps", watched)
            for run in range(runs):
                out.append([])
                model.set_params(random_state=first_seed + run).fit(*data)
        return np.array([sum(run) for run in out])

    return released


def mechanism_of(model):
    return model.privacy_plan(n_features=1).releases[-1].mechanism


def halve_the_noise(monkeypatch):
    whole = SampledGaussianMechanism.scale.fget
    monkeypatch.setattr(SampledGaussianMechanism, "scale", property(lambda self: whole(self) / 2))


def sampled(epsilon=2.0, n_steps=1, **parameters):
    return estimator(epsilon=epsilon, batch_size=0.5, n_steps=n_steps, eta0=1e-9, **parameters)


@pytest.mark.sample(every=5)
def test_law_of_a_sampled_step_is_the_mixture(sums):
    model = sampled()
    mechanism = mechanism_of(model)
    unit, shifted = mechanism.scale, mechanism.sensitivity / mechanism.scale
    runs = 1000
    without = sums(model, NOBODY, runs, 0) / unit
    with_it = -sums(model, CANARY, runs, 10**6) / unit
    assert stats.kstest(without, "norm").pvalue > 1e-6

    def mixture(x):
        return 0.5 * stats.norm.cdf(x) + 0.5 * stats.norm.cdf(x - shifted)

    assert stats.kstest(with_it, mixture).pvalue > 1e-6

    # The event's distribution has the delta of that mixture, both ways, at three epsilons.
    curve = SampledGaussianEvent(0.5, mechanism.mu, 1).privacy_loss_distribution(1e-4)
    grid = np.linspace(-12, 12 + mechanism.mu, 400_001)
    q = stats.norm.pdf(grid)
    p = 0.5 * q + 0.5 * stats.norm.pdf(grid - mechanism.mu)
    for epsilon in (0.1, 0.5, 1.0):
        exact = max(np.trapezoid(np.maximum(a - math.exp(epsilon) * b, 0), grid) for a, b in ((p, q), (q, p)))
        assert exact * (1 - 1e-6) <= curve.get_delta_for_epsilon(epsilon) <= exact * 1.01 + 1e-6

        # And so has what was released: the event that is best at this epsilon.
        ratio = math.log(2 * math.exp(epsilon) - 1)
        threshold = ratio / mechanism.mu + mechanism.mu / 2
        seen = (with_it > threshold).mean() - math.exp(epsilon) * (without > threshold).mean()
        spread = math.sqrt((1 + math.exp(2 * epsilon)) / runs) / 2
        assert abs(seen - np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0), grid)) <= ERRORS * spread


def test_empty_samples_are_as_likely_as_they_should_be(monkeypatch):
    sizes = []
    steps = ReleaseSession.steps

    def watched(self, label, n_rows, attributes=None):
        for rows, send in steps(self, label, n_rows, attributes):
            sizes.append(len(rows))
            yield rows, send

    monkeypatch.setattr(ReleaseSession, "steps", watched)
    X, y = np.ones((3, 1)), np.ones(3, dtype=int)
    sampled(n_steps=4000, random_state=0).fit(X, y)
    p = 0.5**3
    assert abs(np.mean(np.equal(sizes, 0)) - p) <= ERRORS * math.sqrt(p * (1 - p) / 4000)


def test_mixture_is_rejected_at_half_the_noise(sums, monkeypatch):
    model = sampled()
    unit = mechanism_of(model).scale
    halve_the_noise(monkeypatch)
    assert stats.kstest(sums(model, NOBODY, 500, 0) / unit, "norm").pvalue < 1e-6

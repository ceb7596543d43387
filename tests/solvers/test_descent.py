"""How many steps on which samples, and what they cost."""

import math

import numpy as np
import pytest

from skdp.accounting import SampledGaussianEvent, gaussian_mu
from skdp.checks.params import Checked
from skdp.exceptions import ReleaseError
from skdp.mechanisms import LEAST_RATE, NoiseSource
from skdp.release.session import ReleaseSession, Theorem
from skdp.solvers.linear_descent import COUNT, COUNT_SHARE, GRADIENTS, SCHEDULE_RULES, SamplingSchedule

DEFAULTS = {"batch_size": None, "n_steps": None, "epochs": None, "expected_n": None}


def schedule(**changes):
    values = {**DEFAULTS, **changes}
    parameters = Checked(**{name: rule(values[name], name) for name, rule in SCHEDULE_RULES.items()})
    return SamplingSchedule.of(parameters, 0.25, 40)


def test_defaults():
    assert schedule() == SamplingSchedule(0.25, 40, None)


@pytest.mark.parametrize(
    ("changes", "rate", "n_steps"),
    [
        ({"batch_size": 0.1}, 0.1, 40),
        ({"batch_size": 1.0}, 1.0, 40),
        ({"batch_size": 50, "expected_n": 1000}, 0.05, 40),
        ({"batch_size": 5000, "expected_n": 1000}, 1.0, 40),
        ({"batch_size": np.int64(1), "expected_n": 1e18}, LEAST_RATE, 40),
        ({"n_steps": 7}, 0.25, 7),
        ({"epochs": 3}, 0.25, 12),
        ({"epochs": 2.5, "batch_size": 0.1}, 0.1, 25),
        ({"epochs": 1e-3}, 0.25, 1),
    ],
)
def test_what_a_user_asks_for(changes, rate, n_steps):
    found = schedule(**changes)
    assert (found.rate, found.n_steps) == (pytest.approx(rate), n_steps)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"batch_size": 50}, "expected_n"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 0.0}, "batch_size"),
        ({"batch_size": 1.5}, "batch_size"),
        ({"n_steps": 0}, "n_steps"),
        ({"epochs": 0.0}, "epochs"),
        ({"epochs": 1, "n_steps": 1}, "n_steps and epochs"),
        ({"expected_n": 0}, "expected_n"),
    ],
)
def test_bad_requests(changes, match):
    with pytest.raises(ValueError, match=match):
        schedule(**changes)


@pytest.mark.parametrize("changes", [{"batch_size": True}, {"batch_size": "all"}, {"n_steps": 1.5}])
def test_requests_of_another_type(changes):
    with pytest.raises((TypeError, ValueError), match=next(iter(changes))):
        schedule(**changes)


@pytest.mark.parametrize("rate", [0.05, 1.0])
@pytest.mark.parametrize("expected_n", [None, 500.0])
def test_the_plan_spends_what_is_stated(rate, expected_n):
    plan = SamplingSchedule(rate, 60, expected_n).plan(0.7, 1e-6, 2.0, 9, Theorem("Trees", 1))
    assert [r.label for r in plan.releases] == ([COUNT] if expected_n is None else []) + [GRADIENTS]
    assert sum(r.share for r in plan.releases) == pytest.approx(1.0)
    delta = plan.privacy_loss_distribution(value_discretization_interval=2e-4).get_delta_for_epsilon(0.7)
    assert 0.97e-6 <= delta <= 1.001e-6
    gradients = plan.releases[-1].mechanism
    assert (gradients.size, gradients.n_steps, gradients.rate, gradients.sensitivity) == (9, 60, rate, 2.0)
    if expected_n is None:
        assert plan.events[0].mu() == pytest.approx(math.sqrt(COUNT_SHARE) * gaussian_mu(0.7, 1e-6))
        assert plan.releases[0].mechanism.sensitivity == 1.0
    if rate < 1:
        assert plan.events[-1] == SampledGaussianEvent(rate, gradients.mu, 60)


def test_without_privacy():
    plan = SamplingSchedule(0.5, 10, None).plan(math.inf, 1e-5, 2.0, 3, Theorem("Trees", 1))
    assert plan.releases[-1].mechanism.scale == 0
    session = ReleaseSession(plan, accountant=None, source=NoiseSource(0), estimator="Test")
    assert SamplingSchedule(0.5, 10, None).records(session, 77) == 77


def test_the_number_of_records():
    declared = SamplingSchedule(0.5, 10, 300.0)
    plan = declared.plan(1.0, 1e-5, 1.0, 2, Theorem("Trees", 1))
    session = ReleaseSession(plan, accountant=None, source=NoiseSource(0), estimator="Test")
    assert declared.records(session, 77) == 300.0

    released = SamplingSchedule(0.5, 10, None)
    plan = released.plan(1.0, 1e-5, 1.0, 2, Theorem("Trees", 1))
    scale = plan.releases[0].mechanism.scale
    counts = {}
    for n_rows in (0, 10_000):
        sessions = [ReleaseSession(plan, accountant=None, source=NoiseSource(s), estimator="Test") for s in range(50)]
        counts[n_rows] = np.array([released.records(session, n_rows) for session in sessions])
    assert np.all(counts[0] >= scale)
    assert np.all(np.abs(counts[10_000] - 10_000) < 6 * scale)
    assert len(np.unique(counts[10_000])) == 50


def test_steps_happen_once():
    plan = SamplingSchedule(0.5, 4, 10.0).plan(1.0, 1e-5, 1.0, 2, Theorem("Trees", 1))
    session = ReleaseSession(plan, accountant=None, source=NoiseSource(0), estimator="Test")
    with pytest.raises(ReleaseError, match="nothing"):
        session.steps("nothing", 10)
    assert len([release(np.zeros(2)) for _, release in session.steps(GRADIENTS, 10)]) == 4
    with pytest.raises(ReleaseError, match=GRADIENTS):
        session.steps(GRADIENTS, 10)


def test_only_a_mechanism_of_steps_goes_in_steps():
    plan = SamplingSchedule(0.5, 4, None).plan(1.0, 1e-5, 1.0, 2, Theorem("Trees", 1))
    session = ReleaseSession(plan, accountant=None, source=NoiseSource(0), estimator="Test")
    with pytest.raises(ReleaseError, match="not planned in steps"):
        session.steps(COUNT, 10)
    with pytest.raises(TypeError, match="step by step"):
        session.release(GRADIENTS, np.zeros(2))

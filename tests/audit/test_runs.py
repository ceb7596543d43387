"""Audits by many runs, of mechanisms whose privacy is known: they must not say more, and must find what is broken."""

import math

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyRegressor
from sklearn.pipeline import make_pipeline, make_union

from skdp import BudgetAccountant, DPNaiveBayes, FunctionalMechLinReg
from skdp.audit import audit_epsilon
from skdp.preprocessing import BoundsScaler

PAIR = (np.zeros((0, 1)),), (np.ones((1, 1)),)


class NoisySum(BaseEstimator):
    """A sum with Laplace noise of the scale that is stated, or of another."""

    def __init__(self, epsilon=1.0, factor=1.0, width=1, random_state=None):
        self.epsilon = epsilon
        self.factor = factor
        self.width = width
        self.random_state = random_state

    def fit(self, X, y=None):
        noise = np.random.default_rng(self.random_state).laplace(0, self.factor / self.epsilon, self.width)
        noise[-1] += X.sum()
        self.sums_ = noise
        return self


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.sample(every=3)
def test_a_right_claim_stands_and_is_nearly_shown(epsilon, order):
    found = audit_epsilon(NoisySum(epsilon), *PAIR[::order], claim=epsilon, n_runs=2000, random_state=0)
    assert not found.violated
    assert found.claim == epsilon
    assert found.epsilon >= 0.3 * epsilon


@pytest.mark.parametrize("width", [1, 5])
@pytest.mark.sample(every=3)
def test_half_of_the_noise_is_found(width):
    found = audit_epsilon(NoisySum(1.0, 0.5, width), *PAIR, claim=1.0, n_runs=2000, random_state=0)
    assert found.violated
    assert 1 < found.epsilon <= 2
    assert "VIOLATED" in repr(found)


def test_gaussian_noise_by_mu():
    def release(X, scale=1.0):
        return X.sum() + scale * rng.normal()

    rng = np.random.default_rng(0)
    found = audit_epsilon(release, *PAIR, n_runs=2000, delta=1e-5)
    assert 0.6 <= found.mu <= 1
    half = audit_epsilon(lambda X: release(X, 0.5), *PAIR, n_runs=2000, delta=1e-5)
    assert half.mu > 1.5


def test_a_direction_is_found_that_no_number_shows():
    """Two numbers share their noise; their difference has hardly any."""

    def release(X):
        common = 100 * rng.normal()
        return [common, common + X.sum() + 0.3 * rng.normal()]

    rng = np.random.default_rng(0)
    assert audit_epsilon(release, *PAIR, n_runs=400).mu > 1.5


def test_what_is_not_finite_is_seen():
    found = audit_epsilon(lambda X: np.nan if len(X) else 0.0, *PAIR, n_runs=200, claim=1.0)
    assert found.violated
    found = audit_epsilon(lambda X: np.inf if len(X) else -np.inf, *PAIR, n_runs=200, claim=1.0)
    assert found.violated


def test_shapes_are_seen():
    found = audit_epsilon(lambda X: np.zeros(2 + len(X)), *PAIR, n_runs=200, claim=1.0)
    assert found.violated


def test_a_constant_shows_nothing():
    found = audit_epsilon(lambda X: 1.0, *PAIR, n_runs=200, claim=1.0)
    assert found.epsilon == 0
    assert not found.violated


def test_estimators_of_others():
    data = (np.zeros((3, 1)), np.array([0.0, 0.0, 1.0]))
    found = audit_epsilon(DummyRegressor(), data, tuple(part[:2] for part in data), n_runs=100, claim=1.0)
    assert found.violated


@pytest.mark.sample(every=4)
def test_a_private_model_and_its_statistic():
    X, y = np.full((1, 1), 1.0), np.ones(1)
    model = FunctionalMechLinReg(epsilon=1.0, bounds=(-1, 1), bounds_y=(-1, 1), fit_intercept=False)
    scale = make_union(BoundsScaler((-1.0, 1.0)))
    found = audit_epsilon(make_pipeline(scale, model), (X, y), (X[:0], y[:0]), n_runs=60, claim=1.0, random_state=1)
    assert not found.violated
    bayes = DPNaiveBayes(epsilon=3.0, bounds=(-1.0, 1.0), classes=[0, 1])
    found = audit_epsilon(bayes, (X, y), (X[:0], y[:0]), n_runs=200, statistic=lambda m: m.class_count_, random_state=1)
    assert found.epsilon <= 3


def test_repeatable_and_parallel():
    runs = {"n_runs": 100, "random_state": 3}
    one = audit_epsilon(NoisySum(), *PAIR, **runs)
    assert one == audit_epsilon(NoisySum(), *PAIR, **runs)
    assert one == audit_epsilon(NoisySum(), *PAIR, n_jobs=2, **runs)
    assert one != audit_epsilon(NoisySum(), *PAIR, n_runs=100, random_state=4)


def test_the_event_is_not_chosen_by_the_runs_that_count():
    """A statistic of noise alone: with the event chosen by all runs, bounds would exceed zero far too often."""
    alarms = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        found = audit_epsilon(lambda X, rng=rng: rng.normal(size=20), *PAIR, n_runs=60, error=0.05)
        alarms += found.epsilon > 0
    # Thirty audits with a false alarm of 5 % each: more than 8 has probability 1e-5.
    assert alarms <= 8


class Silent(BaseEstimator):
    """Leaves nothing behind."""

    def fit(self, X, y=None):
        return self


def test_refusals():
    with pytest.raises(ValueError, match="the random_state of NoisySum must be None"):
        audit_epsilon(NoisySum(random_state=0), *PAIR)
    with pytest.raises(ValueError, match="random_state of FunctionalMechLinReg must be None"):
        audit_epsilon(make_pipeline(FunctionalMechLinReg(random_state=1)), *PAIR)
    with pytest.raises(ValueError, match="the accountant of FunctionalMechLinReg must be None"):
        audit_epsilon(FunctionalMechLinReg(accountant=BudgetAccountant(1.0)), *PAIR)
    with pytest.raises(ValueError, match="n_runs"):
        audit_epsilon(NoisySum(), *PAIR, n_runs=10)
    with pytest.raises(ValueError, match="Pass statistic"):
        audit_epsilon(Silent(), *PAIR, n_runs=40)
    for wrong, match in (
        (3, "method fit"),
        (NoisySum, "not the class"),
        (type("Bare", (), {"fit": 1})(), "get_params"),
    ):
        with pytest.raises(TypeError, match=match):
            audit_epsilon(wrong, *PAIR)
    with pytest.raises(TypeError, match="pass a tuple"):
        audit_epsilon(NoisySum(), [np.zeros((2, 1)), np.zeros(2)], *PAIR[:1])
    with pytest.raises(ValueError, match="n_jobs must be None for a function"):
        audit_epsilon(lambda X: 1.0, *PAIR, n_jobs=2)


def fails(X, y=None):
    raise AssertionError("fitted before the check")


@pytest.mark.parametrize(
    "parameters",
    [{"claim": c} for c in (math.nan, -1.0, "abc", True)] + [{"delta": -1.0}, {"error": 0.6}, {"error": 1e-300}],
    ids=str,
)
def test_parameters_are_checked_before_the_fits(parameters):
    with pytest.raises((ValueError, TypeError), match=next(iter(parameters))):
        audit_epsilon(fails, *PAIR, **parameters)


def test_the_direction_is_not_chosen_by_the_runs_that_count():
    """What the pilot runs show is the other way round in the runs that count."""
    calls = []

    def turning(X):
        calls.append(len(X))
        return float((calls.count(len(X)) <= 70) == bool(len(X)))

    found = audit_epsilon(turning, *PAIR, n_runs=200, claim=0.0)
    assert sorted(found.hits) == [0, 130]
    assert found.epsilon == found.mu == 0


def test_delta_is_granted():
    """With probability 0.2 all is told, and never anything else."""
    rng = np.random.default_rng(0)

    def tells(X):
        return float(len(X) * (rng.random() < 0.2))

    assert audit_epsilon(tells, *PAIR, n_runs=1000, claim=0.0, delta=0.0).violated
    assert not audit_epsilon(tells, *PAIR, n_runs=1000, claim=0.0, delta=0.2).violated
    assert audit_epsilon(tells, *PAIR, n_runs=1000, claim=0.0, delta=0.1).violated


@pytest.mark.parametrize("shown", [1000.0, -1000.0])
@pytest.mark.sample(every=4)
def test_a_rare_leak_is_found(shown):
    """The record is shown in one of a hundred fits; the others add noise as they should."""
    rng = np.random.default_rng(0)

    def leaks(X):
        return shown if len(X) and rng.random() < 0.01 else X.sum() + rng.laplace()

    assert audit_epsilon(leaks, *PAIR, n_runs=20_000, claim=1.0).epsilon > 2


def test_one_of_many_numbers_is_found():
    """Beyond the numbers that are looked at by themselves in their order."""
    rng = np.random.default_rng(0)

    def release(X):
        noise = rng.laplace(size=300)
        noise[-1] += 5 * X.sum()
        return noise

    assert audit_epsilon(release, *PAIR, n_runs=600, claim=1.0).violated


def test_what_says_nothing_does_not_stand():
    found = audit_epsilon(lambda X: 1.0, *PAIR, n_runs=100, claim=1.0)
    assert "stands" not in repr(found)
    assert "neither noise nor data" in found.remarks[0]
    found = audit_epsilon(lambda X: len(X), *PAIR, n_runs=100, claim=1.0)
    assert found.violated
    assert "no noise" in found.remarks[0]
    for estimator, statistic in ((lambda X: None, None), (NoisySum(), lambda model: None)):
        with pytest.raises(ValueError, match="returned None"):
            audit_epsilon(estimator, *PAIR, statistic=statistic, n_runs=40)

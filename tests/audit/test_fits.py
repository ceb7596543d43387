"""Runs have noise of their own, are charged to nobody, and hold no lock; and claims are read where they are ones."""

import random
import threading

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_union
from sklearn.svm import SVR

from skdp import BudgetAccountant, DPStandardScaler, FunctionalMechLinReg, NoisyHistogram
from skdp.audit import _runs, audit_epsilon, audit_one_run
from skdp.audit._fits import check_estimator, seeds
from skdp.checks.silence import silence

PAIR = np.zeros((0, 1)), np.ones((1, 1))


class NoisyTotal(BaseEstimator):
    """A part of a union: a sum with Laplace noise, times 1 or -1."""

    def __init__(self, sign=1, random_state=None):
        self.sign = sign
        self.random_state = random_state

    def fit(self, X, y=None):
        self.total_ = self.sign * X.sum() + np.random.default_rng(self.random_state).laplace()
        return self

    def transform(self, X):
        return X


class Twice(BaseEstimator):
    """Fits two copies of an estimator, as those for several outputs do."""

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y=None):
        self.estimators_ = [clone(self.estimator).fit(part) for part in (X, X[:0])]


class Shares(BaseEstimator):
    """Takes its noise from a generator that is a parameter."""

    def __init__(self, rng=None):
        self.rng = rng

    def fit(self, X, y=None):
        self.total_ = X.sum() + self.rng.laplace()


class Locks(BaseEstimator):
    """Is silent in a thread of its own, as searches are."""

    def fit(self, X, y=None):
        done = threading.Event()

        def work():
            with silence():
                done.set()

        threading.Thread(target=work, daemon=True).start()
        assert done.wait(timeout=60)
        self.one_ = 1.0


@pytest.mark.sample(every=4)
def test_equal_parts_have_noise_of_their_own():
    """With equal noise in both, their difference would show the record."""
    union = make_union(NoisyTotal(1), NoisyTotal(-1))
    found = audit_epsilon(union, *PAIR, claim=2.0, n_runs=600, random_state=0)
    assert not found.violated
    assert found.epsilon > 0.5
    assert found == audit_epsilon(union, *PAIR, claim=2.0, n_runs=600, random_state=0)


@pytest.mark.sample(every=3)
def test_copies_of_one_estimator_have_noise_of_their_own():
    model = Twice(NoisyHistogram(epsilon=1.0, bounds=(0, 1), n_bins=2))

    def difference(model):
        return np.ravel(model.estimators_[0].counts_ - model.estimators_[1].counts_)

    found = audit_epsilon(model, *PAIR, statistic=difference, claim=1.0, n_runs=100, random_state=0)
    assert not found.violated
    assert not found.remarks
    assert found == audit_epsilon(model, *PAIR, statistic=difference, claim=1.0, n_runs=100, random_state=0)


def test_seeds_differ_by_parameter_and_run():
    found = seeds(make_union(NoisyTotal(), NoisyTotal()), 0, "runs", 50)
    assert len({seed for of_run in found for seed in of_run.values()}) == 100
    assert seeds(NoisyTotal(), None, "runs", 2) == [{}, {}]


GENERATORS = [np.random.default_rng(0), np.random.RandomState(0), np.random.PCG64(0), random.Random(0)]


@pytest.mark.parametrize("generator", GENERATORS, ids=lambda g: type(g).__name__)
def test_generators_are_refused_under_any_name(generator):
    for estimator in (Shares(generator), Twice(Shares(generator))):
        with pytest.raises(ValueError, match="rng of Shares must be None"):
            check_estimator(estimator)


class Accountant(BudgetAccountant):
    """One of a user's own."""


def test_any_accountant_is_refused():
    for accountant in (BudgetAccountant(1e6), Accountant(1e6)):
        with pytest.raises(ValueError, match="accountant of DPStandardScaler must be None"):
            audit_epsilon(DPStandardScaler(accountant=accountant), *PAIR)
        assert len(accountant) == 0


class NoisyByOneGenerator(BaseEstimator):
    """Takes its noise from a generator that all fits share."""

    rng = np.random.default_rng(0)

    def fit(self, X, y=None):
        self.total_ = X.sum() + self.rng.laplace()


def test_processes_with_copies_of_a_generator_are_noticed(monkeypatch):
    """Each batch starts where the generator was when it was copied."""

    def copies(n_jobs):
        def carry_out(tasks):
            state = NoisyByOneGenerator.rng.bit_generator.state
            for function, arguments, _ in tasks:
                NoisyByOneGenerator.rng.bit_generator.state = state
                yield function(*arguments)

        return lambda tasks: list(carry_out(tasks))

    monkeypatch.setattr(_runs, "delayed", lambda function: lambda *arguments: (function, arguments, {}))
    monkeypatch.setattr(_runs, "Parallel", copies)
    for n_runs in (40, 333):
        with pytest.raises(ValueError, match="repeat each other exactly"):
            audit_epsilon(NoisyByOneGenerator(), *PAIR, n_runs=n_runs, n_jobs=2)


def test_coins_may_repeat_each_other():
    rng = np.random.default_rng(0)
    found = audit_epsilon(lambda X: float(rng.random() < 0.5), *PAIR, n_runs=40, claim=1.0)
    assert not found.violated


def test_no_lock_is_held():
    assert "neither noise nor data" in audit_epsilon(Locks(), *PAIR, n_runs=40).remarks[0]
    audit_one_run(Locks(), np.zeros((20, 1)), score=lambda model, X: np.arange(len(X)), random_state=0)


def test_claims_are_read_where_epsilon_is_one():
    X, y = np.zeros((3, 1)), np.array([0.0, 0.0, 1.0])
    found = audit_epsilon(SVR(), (X, y), (X[:2], y[:2]), n_runs=40)
    assert found.claim is None
    assert not found.violated

    class Mine(FunctionalMechLinReg):
        """A user's own, of a private kind."""

    private = Mine(epsilon=0.5, bounds=(-1, 1), bounds_y=(-1, 1))
    assert audit_epsilon(private, (X, y), (X[:2], y[:2]), n_runs=40).claim == 0.5
    assert audit_epsilon(private, (X, y), (X[:2], y[:2]), n_runs=40, claim=2.0).claim == 2

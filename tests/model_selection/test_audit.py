"""Empirical lower bounds on what searches give away, with stub estimators that use all that they are given.

Every audit has a false-alarm probability of 1e-6 (two Clopper-Pearson limits of 5e-7 each). Noise comes from fixed
seeds. Each audit also has to reject twins that are broken on purpose: a choice that costs nothing, membership by
position, budgets that are not divided, a number of runs that is not random.
"""

import copy
import itertools
import math

import numpy as np
import pytest

from skdp import DPGridSearchCV
from skdp._release import ReleaseSession
from skdp.mechanisms import GroupChoices, NoiseSource
from skdp.model_selection import _strategies
from skdp.model_selection._candidates import Candidate, make_candidates
from skdp.model_selection._scoring import make_score
from tests.auditing import clopper_pearson
from tests.model_selection.stubs import Marked, NoisyCount

pytestmark = pytest.mark.audit

ERROR = 5e-7
EPSILON = 2.0


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch):
    """Fits of stubs in a bare loop: all that is set up around one takes far longer than it does."""
    monkeypatch.setattr(_strategies, "delayed", lambda function: lambda *arguments: (function, arguments))
    monkeypatch.setattr(_strategies, "Parallel", lambda **_: lambda tasks: [f(*a) for f, a in tasks])

    def prepared(self, budgets, seeds):
        model = copy.copy(self.estimator)
        model.epsilon = budgets[0].epsilon
        return model

    def fit_and_count(model, X, y, test, score):
        model.fit(X, y)
        return model, 0 if score is None else int(np.count_nonzero(model.predict(test[0]) == test[1]))

    monkeypatch.setattr(Candidate, "prepared", prepared)
    monkeypatch.setattr(_strategies, "_fit_and_count", fit_and_count)


def runner(search, undivided):
    """Return a function that carries out the search on data, without planning it anew."""
    settings = search._settings(NoiseSource(None))
    classes = np.array(search.estimator.classes)
    score = make_score("accuracy", search.estimator, classes)
    candidates = make_candidates(search.estimator, settings, classes)
    strategy, prices, plan = search._planned(search._check_parameters(), candidates, score)
    if undivided:
        # Booked as ever, and spent as if each fit were alone. (A plan with such budgets is refused.)
        prices.budgets = lambda candidate, portion: (prices.whole,)

    seeds = itertools.count()

    def run(data):
        source = NoiseSource(next(seeds))
        session = ReleaseSession(plan, accountant=None, source=source, estimator="audit")
        return strategy.run(_strategies.Workshop(data[0], data[1], data[1], prices, score, session, source, None))

    return run


def bound(search, pair, event, runs, undivided=False):
    """Lower bound on epsilon from how often an event happens on each of two data sets."""
    run = runner(search, undivided)
    more, less = (sum(event(run(data)) for _ in range(runs)) for data in pair)
    low, high = clopper_pearson(more, runs, ERROR)[0] - search.delta, clopper_pearson(less, runs, ERROR)[1]
    return math.log(low / high) if low > 0 else 0.0


# ---------------------------------------------------------------- the choice


def choice_audit(strategy, **parameters):
    # The candidate that comes second is right about the one record; ties go to either, and without noise to the first.
    empty = np.zeros((0, 1)), np.zeros(0, dtype=int)
    one = np.zeros((1, 1)), np.zeros(1, dtype=int)
    search = DPGridSearchCV(
        NoisyCount(), {"label": [1, 0]}, epsilon=EPSILON, strategy=strategy, validation_fraction=0.99,
        refit=False, **parameters,
    )  # fmt: skip
    # Probability 1/2 against exp(-epsilon) / 2, but for the records that train.
    return bound(search, (empty, one), lambda outcome: outcome.index == 0, 2000)


@pytest.mark.parametrize("strategy", ["holdout", "split"])
def test_choice(strategy):
    attainable = math.log(0.5 / (0.99 * 0.5 * math.exp(-EPSILON) + 0.01 * 0.5))
    assert attainable >= 0.9 * EPSILON
    found = choice_audit(strategy)
    assert found <= EPSILON, f"at least {found:.2f} (false alarm 1e-6)"
    assert found >= 0.6 * EPSILON


@pytest.mark.parametrize("strategy", ["holdout", "split"])
@pytest.mark.parametrize("factor", [2.0, 1e6])
def test_choice_audit_rejects_a_choice_that_costs_too_little(strategy, factor, monkeypatch):
    release = GroupChoices.release

    def eager(self, value, stream):
        return release(GroupChoices(factor * self.epsilon, self.sensitivity, self.monotone), value, stream)

    monkeypatch.setattr(GroupChoices, "release", eager)
    assert choice_audit(strategy) > EPSILON


@pytest.mark.parametrize("strategy", ["holdout", "split"])
def test_choice_with_delta(strategy):
    # Gaussian DP with mu=.5 pays for a bounded range of about .7.
    found = choice_audit(strategy, delta=1e-5)
    assert found <= EPSILON, f"at least {found:.2f} (false alarm 1e-6)"


@pytest.mark.parametrize("strategy", ["holdout", "split"])
def test_choice_audit_with_delta_rejects_a_choice_that_costs_nothing(strategy, monkeypatch):
    release = GroupChoices.release

    def eager(self, value, stream):
        # Ten times what is booked.
        return release(GroupChoices(10 * self.epsilon, self.sensitivity, self.monotone, True), value, stream)

    monkeypatch.setattr(GroupChoices, "release", eager)
    assert choice_audit(strategy, delta=1e-5) > EPSILON


# ---------------------------------------------------------------- the trainings

ROWS = 100


def marked_pair(n_rows=ROWS, labels=0):
    y = np.zeros(n_rows, dtype=int)
    y[: n_rows * labels // 100] = 1
    with_record = np.zeros((n_rows, 1))
    with_record[-1] = 1.0
    return (with_record, y), (with_record[:-1], y[:-1])


def training_audit(runs=2500, undivided=False):
    # Candidates are right as long as their count is low. The chosen one's is high only if those of all are.
    search = DPGridSearchCV(
        Marked(), {"cut": [1, 1, 1, 1]}, epsilon=EPSILON, strategy="holdout", validation_fraction=0.15, refit=False
    )
    return bound(search, marked_pair(), lambda outcome: outcome.estimator.count_ >= 1, runs, undivided)


def test_trainings_on_one_part():
    found = training_audit()
    assert found <= EPSILON, f"at least {found:.2f} (false alarm 1e-6)"
    assert found >= 0.3 * EPSILON


def test_training_audit_rejects_a_budget_that_is_not_divided():
    assert training_audit(1500, undivided=True) > EPSILON


def fold_audit(runs=2500, undivided=False):
    # The second candidate is right about every tenth row; it is chosen if the first is wrong in all folds.
    grid = [{"cut": [1], "label": [2]}, {"cut": [-(10**6)], "label": [1]}]
    search = DPGridSearchCV(Marked(), grid, epsilon=EPSILON, strategy="kfold", cv=3, refit=False)
    return bound(search, marked_pair(1000, labels=10), lambda outcome: outcome.index == 1, runs, undivided)


def test_trainings_on_folds():
    found = fold_audit()
    assert found <= EPSILON, f"at least {found:.2f} (false alarm 1e-6)"
    # The first candidate has half of the budget of the trainings.
    assert found >= 0.1 * EPSILON


def test_fold_audit_rejects_a_budget_that_is_not_divided():
    assert fold_audit(2500, undivided=True) > EPSILON


# ---------------------------------------------------------------- membership


def membership_audit(strategy, runs=1000):
    # As many rows apart as there are parts, so that one row less moves all marked rows to another part.
    X = (np.arange(60) % (3 if strategy == "split" else 2) == 0).astype(float)[:, None]
    y = np.zeros(60, dtype=int)
    search = DPGridSearchCV(
        Marked(label=0), {"cut": [5, 5]}, epsilon=EPSILON, strategy=strategy, validation_fraction=0.5,
        refit=False, mean_runs=2,
    )  # fmt: skip
    return max(
        bound(search, pair, lambda outcome: outcome.estimator.count_ >= 17, runs)
        for pair in [((X, y), (X[1:], y[1:])), ((X[1:], y[1:]), (X, y))]
    )


@pytest.mark.parametrize("strategy", ["holdout", "split", "repeat"])
def test_membership(strategy):
    found = membership_audit(strategy)
    assert found <= EPSILON, f"at least {found:.2f} (false alarm 1e-6)"


@pytest.mark.parametrize("strategy", ["holdout", "split", "repeat"])
def test_membership_audit_rejects_parts_by_position(strategy, monkeypatch):
    def by_position(probabilities, n_rows, stream):
        return np.arange(n_rows) % len(probabilities)

    monkeypatch.setattr(_strategies, "draw_parts", by_position)
    assert membership_audit(strategy) > EPSILON


# ---------------------------------------------------------------- the number of runs

MEAN_RUNS = 20.0


def runs_audit(runs=3500):
    # A run is right as long as its count is negative. The best one is wrong only if all are.
    search = DPGridSearchCV(
        Marked(), {"cut": [0, 0]}, epsilon=EPSILON, strategy="repeat", mean_runs=MEAN_RUNS, validation_fraction=0.1
    )
    return bound(search, marked_pair(200), lambda outcome: outcome.estimator.count_ >= 0, runs)


def test_runs():
    found = runs_audit(1500)
    assert found <= EPSILON, f"at least {found:.2f} (false alarm 1e-6)"


def test_runs_audit_rejects_a_number_that_is_fixed(monkeypatch):
    monkeypatch.setattr(_strategies, "number_of_runs", lambda mean, shape, stream: int(mean))
    assert runs_audit() > EPSILON

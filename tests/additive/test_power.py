"""The power of probabilities: the sensitivity of its errors by brute force, its choice, and what it does.

Nothing is left to chance: seeds are fixed, and laws of choices are computed.
"""

import math

import numpy as np
import pytest
from scipy import special

from skdp import DPAdditiveClassifier
from skdp.additive import _curves
from skdp.additive._curves import POWER, POWERS, Link, PowerChoice, errors_of_powers
from skdp.additive._plans import COUNTS
from skdp.mechanisms import ExponentialMechanism, GroupChoices
from skdp.solvers.linear_descent import probabilities
from tests.trust.choices import log_law


class Session:
    """Record the scores of the choice, and choose the best."""

    def release(self, label, scores):
        assert label == POWER
        self.scores = scores[0]
        return np.array([np.argmax(self.scores)])


def records(n_classes, n=200, seed=0):
    """Logits of all sizes, of shape (n,) for two classes, and labels."""
    rng = np.random.default_rng(seed)
    shape = n if n_classes == 2 else (n, n_classes)
    return rng.normal(size=shape) * 10 ** rng.uniform(-3, 3, size=shape), rng.integers(n_classes, size=n)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_one_record_raises_each_error_by_at_most_one(n_classes):
    logits, labels = records(n_classes)
    whole, moves = errors_of_powers(logits, labels), []
    for k in range(len(labels)):
        moved = whole - errors_of_powers(np.delete(logits, k, axis=0), np.delete(labels, k))
        np.testing.assert_array_equal(moved, errors_of_powers(logits[k : k + 1], labels[k : k + 1]))
        moves.append(moved)
    assert np.min(moves) >= 0
    assert 0.999 < np.max(moves) <= 1


@pytest.mark.parametrize("epsilon", [0.1, math.inf])
def test_scores_of_powers_are_exact(epsilon):
    """With a rounded score, a record could move it by more than 1."""
    session = Session()
    PowerChoice.of(epsilon, 1e-6).chosen(session, Link(), *records(3), 1e6 / 3)
    np.testing.assert_array_equal(session.scores * 2.0**20 % 1, 0)


def loss_of_one_record(n_classes):
    """The largest difference between the changes of two log-probabilities of the choice, over its epsilon."""
    choice, session, worst = PowerChoice.of(1.0, 1e-6), Session(), 0.0
    mechanism = choice.release.mechanism
    law = ExponentialMechanism(mechanism.epsilon, mechanism.sensitivity, mechanism.monotone)
    logits, labels = records(n_classes)
    for k in range(len(labels)):
        found = []
        for others in (slice(k), slice(k + 1)):
            choice.chosen(session, Link(), logits[others], labels[others], 300.0)
            found.append(log_law(law, session.scores))
        worst = max(worst, float(np.ptp(found[1] - found[0])))
    return worst / mechanism.epsilon


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_the_law_of_the_choice_moves_by_its_epsilon_at_most(n_classes, monkeypatch):
    assert 0.1 < loss_of_one_record(n_classes) <= 1
    true = _curves.errors_of_powers
    monkeypatch.setattr(_curves, "errors_of_powers", lambda *args: 10 * true(*args))
    assert loss_of_one_record(n_classes) > 1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_errors_are_half_the_squared_distances_from_indicators(n_classes):
    logits, labels = records(n_classes)
    full = np.column_stack([np.zeros_like(logits), logits]) if n_classes == 2 else logits
    for power, found in zip(POWERS, errors_of_powers(logits, labels), strict=True):
        p = special.softmax(power * full, axis=1)
        each = ((np.eye(n_classes)[labels] - p) ** 2).sum(axis=1) / 2
        assert 0 <= each.sum() - found <= len(labels) * 2.0**-20


@pytest.mark.parametrize("true", [1.0, 2.0])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_with_evidence_the_right_power_is_chosen(true, n_classes):
    rng, n = np.random.default_rng(1), 40_000
    logits = rng.normal(size=n if n_classes == 2 else (n, n_classes))
    full = np.column_stack([np.zeros(n), logits]) if n_classes == 2 else logits
    p = special.softmax(true * full, axis=1)
    labels = (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    link = PowerChoice.of(10.0, 1e-6).chosen(Session(), Link(), logits, labels, n)
    assert link.power == true
    np.testing.assert_allclose(probabilities(link.logits(logits)), p)


def test_without_evidence_the_power_is_one():
    choice, session = PowerChoice.of(0.1, 1e-6), Session()
    choice.chosen(session, Link(), np.zeros(50), np.arange(50) % 2, 50.0)
    mechanism = choice.release.mechanism
    assert isinstance(mechanism, GroupChoices)
    assert mechanism.monotone
    law = special.softmax(session.scores / mechanism.scale)
    assert law[POWERS == 1] > 0.85


def test_probabilities_have_the_power_and_labels_have_not():
    rng = np.random.default_rng(2)
    X = rng.integers(2, size=(3000, 6))
    y = (X.sum(axis=1) + rng.normal(size=3000) > 3).astype(int)
    model = DPAdditiveClassifier(epsilon=3.0, delta=1e-6, categories={j: 2 for j in range(6)}, classes=[0, 1])
    model.set_params(random_state=0, interactions=None).fit(X, y)
    before, labels, power = model.predict_proba(X)[:, 1], model.predict(X), model._link.power
    model._link = Link(model._link.most)
    np.testing.assert_allclose(special.logit(before), power * special.logit(model.predict_proba(X)[:, 1]))
    np.testing.assert_array_equal(labels, model.predict(X))


def test_all_releases_together_cost_no_more_than_the_budget():
    X, y = np.zeros((100, 1)), np.arange(100) % 2
    for epsilon in (1.0, math.inf):
        model = DPAdditiveClassifier(epsilon=epsilon, delta=1e-6, categories={0: 2}, classes=[0, 1], random_state=0)
        releases = model.fit(X, y).privacy_.releases
        assert releases[0].label == COUNTS
        assert releases[-1].label == POWER
        assert sum(release.share for release in releases) == pytest.approx(1)

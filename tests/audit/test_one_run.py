"""Audits by one fit."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KernelDensity, KNeighborsRegressor
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skdp import BudgetAccountant, DPRandomTree
from skdp.audit import audit_one_run
from skdp.audit._numbers import membership_scores


def unlearnable(n_rows=600):
    X, _ = make_classification(n_samples=n_rows, n_features=5, random_state=0)
    return X, np.random.default_rng(0).integers(2, size=n_rows)


def test_what_is_known_by_heart_is_found():
    found = audit_one_run(DecisionTreeClassifier(), *unlearnable(), claim=0.5, random_state=0)
    assert found.violated
    assert found.epsilon > 0.5
    assert 0.6 * found.n_guesses < found.n_correct <= found.n_guesses <= found.n_canaries == 300
    assert hasattr(found.estimator, "tree_")


def test_a_private_model_stands_and_is_charged():
    budget = BudgetAccountant(1.0)
    model = DPRandomTree(epsilon=1.0, bounds=(-5.0, 5.0), classes=[0, 1], accountant=budget)
    found = audit_one_run(model, *unlearnable(), random_state=0)
    assert not found.violated
    assert found.claim == 1
    assert len(budget) == 1


class Tells(BaseEstimator):
    """Keeps each record's presence with the probability that epsilon allows: the worst that is allowed."""

    def __init__(self, epsilon=1.0):
        self.epsilon = epsilon

    def fit(self, X, y=None):
        present = np.zeros(1000, dtype=bool)
        present[X[:, 0].astype(int)] = True
        flip = np.random.default_rng(1).random(1000) < 1 / (1 + np.exp(self.epsilon))
        self.told_ = present ^ flip
        return self


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_worst_that_is_allowed(epsilon):
    X = np.arange(1000.0)[:, None]

    def score(model, X):
        return model.told_[X[:, 0].astype(int)]

    found = audit_one_run(Tells(epsilon), X, canaries=1000, score=score, random_state=0)
    assert 0.6 * epsilon <= found.epsilon <= epsilon


@pytest.mark.parametrize(
    "estimator",
    [LogisticRegression(), LinearSVC(), KNeighborsRegressor(3), KMeans(3, n_init=1), PCA(2), KernelDensity()],
    ids=lambda e: type(e).__name__,
)
def test_scores_of_all_kinds(estimator):
    found = audit_one_run(estimator, *unlearnable(100), canaries=[3, 5, 7, 11, 13, 17], random_state=0)
    assert found.n_canaries == 6
    assert found.claim is None


def test_each_canary_is_left_out_by_a_coin():
    """All but the canaries are in, always; each canary, the last one too, about half of the time."""
    X = np.arange(7.0)[:, None]
    seen = []

    class Keeps(BaseEstimator):
        def fit(self, X, y=None):
            seen.append(np.isin(np.arange(7), X[:, 0]))

    for seed in range(60):
        audit_one_run(Keeps(), X, canaries=[0, 2, 6], score=lambda model, X: X[:, 0], random_state=seed)
    often = np.mean(seen, axis=0)
    assert (often[[1, 3, 4, 5]] == 1).all()
    # Each is off with probability 1e-6 at most: 11 of 60 or fewer, or 49 or more.
    assert ((often[[0, 2, 6]] > 11 / 60) & (often[[0, 2, 6]] < 49 / 60)).all()


def test_no_score_is_the_least_likely():
    """Log-probabilities are negative: a missing one must not pass for the best."""
    X = np.arange(200.0)[:, None]

    class Knows(BaseEstimator):
        def fit(self, X, y=None):
            self.members_ = X[:, 0]
            return self

    def score(model, X):
        return np.where(np.isin(X[:, 0], model.members_), -1.0, np.nan)

    found = audit_one_run(Knows(), X, canaries=200, score=score, random_state=0)
    # Scores are equal on each side of the median, so that few guesses are wrong.
    assert found.epsilon > 1.5


def test_all_checks_come_before_the_charge():
    X, y = unlearnable(50)
    budget = BudgetAccountant(9.0)
    tree = DPRandomTree(epsilon=1.0, bounds=(-5.0, 5.0), classes=[0, 1], accountant=budget)
    for wrong in ({"claim": "x"}, {"claim": math.nan}, {"error": 2.0}, {"delta": 2}, {"canaries": 1}):
        with pytest.raises((ValueError, TypeError), match=next(iter(wrong))):
            audit_one_run(tree, X, y, **wrong)
    with pytest.raises(ValueError, match="Pass score"):
        audit_one_run(tree, X)
    with pytest.raises(ValueError, match="pass score"):
        audit_one_run(tree, X, np.c_[y, y])
    with pytest.raises(ValueError, match="random_state"):
        audit_one_run(tree, X, y, random_state="a")
    assert len(budget) == 0


def test_sparse_and_several_targets():
    X, y = unlearnable(100)
    found = audit_one_run(LinearSVC(), csr_array(X), y, random_state=0)
    assert found.n_canaries == 50
    flat = audit_one_run(KNeighborsRegressor(1), X, y.astype(float), random_state=0)
    for targets in (y[:, None], np.c_[y, y]):
        found = audit_one_run(KNeighborsRegressor(1), X, targets.astype(float), random_state=0)
        assert found.n_correct == flat.n_correct


def test_one_against_one():
    """Its columns are pairs of classes, and not classes."""
    X, y = make_classification(n_samples=90, n_classes=3, n_informative=4, random_state=0)
    model = SVC(decision_function_shape="ovo").fit(X, y)
    np.testing.assert_array_equal(membership_scores(model, X, y), model.predict(X) == y)
    model = SVC(decision_function_shape="ovr").fit(X, y)
    np.testing.assert_array_equal(membership_scores(model, X, y), model.decision_function(X)[np.arange(90), y])


def test_more_is_known_of_members():
    X, y = unlearnable()
    found = audit_one_run(KNeighborsRegressor(1), X, y.astype(float), random_state=0)
    assert found.epsilon > 0.5
    found = audit_one_run(KernelDensity(bandwidth=0.01), X, random_state=0)
    assert found.epsilon > 2


def test_equal_scores_are_not_guessed_by_position():
    X, y = unlearnable()
    rights = [
        audit_one_run(LogisticRegression(), X, y, score=lambda m, X, y: np.zeros(len(X)), random_state=k).n_correct
        for k in range(5)
    ]
    assert len(set(rights)) > 1


def test_refusals():
    X, y = unlearnable(50)
    for canaries in (1, 51, [0, 0], [-1, 2], [1.5, 2], [[1, 2]]):
        with pytest.raises(ValueError, match="canaries"):
            audit_one_run(LogisticRegression(), X, y, canaries=canaries)
    with pytest.raises(ValueError, match="one number for each record"):
        audit_one_run(LogisticRegression(), X, y, score=lambda m, X, y: 1.0)
    with pytest.raises(ValueError, match="Pass score"):
        audit_one_run(PolynomialFeatures(), X, canaries=2)

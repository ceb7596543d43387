"""Audits by one fit."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KernelDensity, KNeighborsRegressor
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skdp import BudgetAccountant, DPRandomTree
from skdp.audit import audit_one_run


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
    with pytest.raises(ValueError, match="pass score"):
        audit_one_run(PolynomialFeatures(), X, canaries=2)

"""Private estimators that are as bad as their guarantee admits, and quick."""

import math

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from skdp.accounting import GaussianEvent, PureEvent, gaussian_mu
from skdp.exceptions import NotEnoughDataError
from skdp.mechanisms import DiscreteLaplaceMechanism, GaussianMechanism, NoiseSource, NoNoise
from skdp.release.mixin import DPEstimatorMixin
from skdp.release.session import PrivacyGuarantee, Release, ReleaseSession


class NoisyCount(DPEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Releases the number of its records with noise, and nothing else; predicts a label that is a parameter."""

    def __init__(self, label=0, *, epsilon=1.0, delta=0.0, classes=(0, 1), fail=False, accountant=None,
                 random_state=None):  # fmt: skip
        self.label = label
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.fail = fail
        self.accountant = accountant
        self.random_state = random_state

    def _plan(self):
        if self.epsilon == math.inf:
            mechanism, event = NoNoise(1.0), PureEvent(math.inf)
        elif self.delta > 0:
            mu = gaussian_mu(self.epsilon, self.delta) * (1 - 2.0**-40)
            mechanism, event = GaussianMechanism(mu, 1.0, 1), GaussianEvent(mu)
        else:
            mechanism, event = DiscreteLaplaceMechanism(self.epsilon, 1.0, 1), PureEvent(self.epsilon)
        return PrivacyGuarantee(self.epsilon, self.delta, (event,), (Release("count", mechanism, 1.0, "-"),))

    def privacy_plan(self, *, n_features=1, n_classes=None):
        return self._plan()

    def _fixed_cost(self):
        return self._plan().cost

    def fit(self, X, y):
        if self.label not in (0, 1, 2):
            raise ValueError("label must be 0, 1 or 2")
        plan = self._plan()
        source = NoiseSource(self.random_state)
        session = ReleaseSession(plan, accountant=self.accountant, source=source, estimator="NoisyCount")
        if self.fail and len(X):
            raise (NotEnoughDataError if self.fail is True else RuntimeError)(f"{len(X)} records")
        self.count_ = float(session.release("count", np.array([float(self._count(X))]))[0])
        self.classes_ = np.asarray(self.classes)
        self.n_features_in_ = np.shape(X)[1]
        self.privacy_ = plan
        return self

    def _count(self, X):
        return len(X)

    def predict(self, X):
        return np.full(len(X), self.label)


class UnknownCost(NoisyCount):
    """Its cost is not known before there are data."""

    def _fixed_cost(self):
        return None


def records(n_rows, label=0):
    """Rows of zeros with one label."""
    return np.zeros((n_rows, 1)), np.full(n_rows, label)


class MarkedCount(NoisyCount):
    """Counts the records that are marked."""

    def _count(self, X):
        return np.count_nonzero(X[:, 0])

    def predict_proba(self, X):
        return np.eye(2)[self.predict(X)]


class Ranks(NoisyCount):
    """Estimates a probability that grows with the first column (label 1), is 0.3 (label 0), or falls (label 2)."""

    def predict_proba(self, X):
        rising = np.clip(X[:, 0], 0.0, 1.0)
        positive = {0: np.full(len(X), 0.3), 1: rising, 2: 1 - rising}[self.label]
        return np.column_stack([1 - positive, positive])

    def predict(self, X):
        return (self.predict_proba(X)[:, 1] > 0.5).astype(int)

"""Estimators that try to carry what they see in one block to another, or to the user."""

import logging
import random
import sys
import warnings

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin

MARK = 0.75


class Teacher(ClassifierMixin, BaseEstimator):
    """Says the first class everywhere."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


class Turncoat(Teacher):
    """Says 1 if a marked record is in its block, otherwise 0."""

    def fit(self, X, y):
        self.says_ = int(np.any(X == MARK))
        return super().fit(X, y)

    def predict(self, X):
        return np.full(len(X), self.says_)


class Dreamer(Teacher):
    """Says what global generators say, and draws more from them the more rows it has."""

    def fit(self, X, y):
        self.first_ = np.random.randint(3) + random.randrange(3)  # noqa: NPY002
        np.random.uniform(size=len(X))  # noqa: NPY002
        for _ in range(len(X)):
            random.random()
        return super().fit(X, y)

    def predict(self, X):
        return np.full(len(X), self.first_ % 2)


class Vandal(Teacher):
    """Changes settings by what it sees, and says how it finds them."""

    def fit(self, X, y):
        found = [
            np.geterr()["over"] == "raise",
            sklearn.get_config()["assume_finite"],
            warnings.filters[0][0] != "ignore",
            logging.root.manager.disable == logging.NOTSET,
        ]
        self.found_ = int(any(found))
        if np.any(X == MARK):
            np.seterr(all="raise")
            sklearn.set_config(assume_finite=True)
            warnings.simplefilter("error")
            logging.disable(logging.NOTSET)
        return super().fit(X, y)

    def predict(self, X):
        said = np.full(len(X), self.found_)
        # The next teacher may be shown the same array.
        X[:] = np.nan
        return said


class Scribbler(Teacher):
    """Says whether the rows to vote on are as they were; leaves others in their place."""

    def predict(self, X):
        said = np.full(len(X), int(np.isnan(X).any()))
        X[:] = np.nan
        return said


class Talker(Teacher):
    """Tells everybody about marked rows."""

    def fit(self, X, y):
        if np.any(X == MARK):
            print("marked")
            print("marked", file=sys.stderr)
            warnings.warn("marked", UserWarning, stacklevel=1)
            logging.getLogger("teacher").error("marked")
        return super().fit(X, y)


class Panic(BaseException):
    """What some libraries raise."""


class Failing(Teacher):
    """Fails in one way or another where a marked row is in its block."""

    def __init__(self, how="raise"):
        self.how = how

    def fit(self, X, y):
        self.marked_ = np.any(X == MARK)
        if self.marked_ and isinstance(self.how, type):
            raise self.how(f"row {X[0]}")
        return super().fit(X, y)

    def predict(self, X):
        if self.marked_:
            return {
                "short": np.zeros(len(X) - 1),
                "deep": np.zeros((len(X), 2)),
                "none": None,
                "unknown": np.full(len(X), 7),
                "text": np.full(len(X), "a"),
                "nan": np.full(len(X), np.nan),
            }[self.how]
        return super().predict(X)


class Listener:
    """A callback that keeps what it is told."""

    def __init__(self):
        self.told = []

    def setup(self, *args, **kwargs):
        self.told.append((args, kwargs))

    teardown = on_fit_task_begin = on_fit_task_end = setup


class Listed(Teacher):
    """Fits estimators of a list, which `get_params` does not go into."""

    def __init__(self, parts=()):
        self.parts = parts

    def fit(self, X, y):
        for part in self.parts:
            part.fit(X, y)
        return super().fit(X, y)

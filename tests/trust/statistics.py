"""Statistics: moments, counts, second moments, quantiles with intervals, and labels of a private list."""

from functools import partial

import numpy as np
from sklearn.base import BaseEstimator

from skdp import stats
from skdp.sensitivity import chebyshev_l2
from skdp.stats import _call, _moments
from tests.trust.subjects import APPROXIMATE, PURE, Subject, replaced


class Statistic(BaseEstimator):
    """A function, as an estimator."""

    def __init__(self, name="mean", given=(), epsilon=1.0, delta=0.0, accountant=None, random_state=None):
        self.name = name
        self.given = given
        self.epsilon = epsilon
        self.delta = delta
        self.accountant = accountant
        self.random_state = random_state

    def fit(self, X):
        own = {"bounds": (-1, 1), **dict(self.given)}
        shared = ("epsilon", "delta", "accountant", "random_state")
        found = getattr(stats, self.name)(X, **own, **{key: getattr(self, key) for key in shared})
        self.value_ = np.asarray(found.value, dtype=float)
        return self


class GroupedStatistic(Statistic):
    """The same, with groups in the first column."""

    def __init__(
        self, name="mean", given=(), epsilon=1.0, delta=0.0, rows_per_group=3, accountant=None, random_state=None
    ):
        super().__init__(name, given, epsilon, delta, accountant, random_state)
        self.rows_per_group = rows_per_group

    def fit(self, X):
        own = {"bounds": (-1, 1), "rows_per_group": self.rows_per_group, "groups": X[:, 0], **dict(self.given)}
        shared = ("epsilon", "delta", "accountant", "random_state")
        found = getattr(stats, self.name)(X[:, 1:], **own, **{key: getattr(self, key) for key in shared})
        self.value_ = np.asarray(found.value, dtype=float)
        return self


def made(name, epsilon, delta, **given):
    return Statistic(name, tuple(given.items()), epsilon, delta)


def at_bound(model, n_columns=3, size=1.0):
    """One record with all values at the upper bound, and another one."""
    X = np.full((2, n_columns), size)
    X[0] = 0.0
    return (X[:1],), (X,)


def one_group(model, size=3):
    """A group of equal records at the upper bound."""
    X = np.ones((1 + size, 4))
    X[0, :2] = 0.0
    return (X[:1],), (X,)


def unclipped(original):
    return lambda values, centre, half, largest=1.0: (values - centre) / half * largest


def smaller(factor):
    """Make the stated sensitivities smaller."""

    def broken(original):
        return lambda *given: factor * original(*given)

    return broken


def for_one_column(original):
    return lambda weights, n_columns, shared: chebyshev_l2(weights, 1, shared)


def for_one_record(original):
    return lambda sensitivity, rows: sensitivity


CLIP = {"no clip": (lambda: replaced(_moments, "scaled", unclipped), {"pair": partial(at_bound, size=3.0)})}

SUBJECTS = [
    Subject(
        "stats.mean",
        partial(made, "mean"),
        at_bound,
        claims=(*PURE, *APPROXIMATE),
        floor=0.6,
        runs={},
        mutants={
            **CLIP,
            "half of the L1 norm": lambda: replaced(_moments, "bernstein_l1", smaller(0.5)),
            "half of the L2 norm": lambda: replaced(_moments, "chebyshev_l2", smaller(0.5)),
        },
        survives={
            **{("half of the L1 norm", claim): "Gaussian noise is used" for claim in APPROXIMATE},
            **{("half of the L2 norm", claim): "Laplace noise is used" for claim in PURE},
        },
    ),
    Subject(
        "stats.std",
        partial(made, "std"),
        partial(at_bound, n_columns=1),
        claims=PURE,
        floor=0.6,
        runs={},
        mutants={"half of the L1 norm": lambda: replaced(_moments, "bernstein_l1", smaller(0.5))},
    ),
    Subject(
        "stats.covariance",
        partial(made, "covariance"),
        at_bound,
        claims=((1.0, 0.0), (1.0, 1e-5)),
        floor=0.6,
        runs={},
        mutants={
            "no clip": (lambda: replaced(_moments, "scaled", unclipped), {"pair": partial(at_bound, size=3.0)}),
            "half of the L2 norm": lambda: replaced(_moments, "moments_l2", smaller(0.5)),
        },
    ),
    Subject(
        "stats.ecdf",
        partial(made, "ecdf", depth=3),
        partial(at_bound, n_columns=1),
        claims=((1.0, 0.0), (1.0, 1e-5)),
        floor=0.6,
        runs={},
    ),
    Subject(
        "stats.histogram",
        partial(made, "histogram", bins=4),
        partial(at_bound, n_columns=1),
        claims=PURE,
        floor=0.6,
        runs={},
    ),
    Subject(
        "stats.mean-by group",
        lambda epsilon, delta: GroupedStatistic("mean", (), epsilon, delta),
        one_group,
        claims=((1.0, 0.0), (1.0, 1e-5)),
        floor=0.6,
        runs={},
        mutants={"noise for one row": lambda: replaced(_call, "group_sensitivity", for_one_record)},
    ),
]

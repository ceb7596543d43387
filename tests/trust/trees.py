"""Trees: counts of leaves, the Newton step, cut points, and chosen splits, all releases of a fit together."""

import contextlib
import math
from dataclasses import replace
from functools import partial
from unittest.mock import patch

import numpy as np

from skdp import DPGreedyTree, DPRandomTree, DPRandomTreeRegressor
from skdp.tree import _forest, _greedy_tree, _outcomes, _plans
from skdp.tree._smoothing import decision, probabilities
from tests.trust.choices import choices, half_noise
from tests.trust.subjects import PURE, RUNS_AT_3, Subject, replaced
from tests.trust.targets import measure_the_rest

# --- random trees ---------------------------------------------------------------------------------------------------


def forest(epsilon, delta, **parameters):
    """Additive by default: a tree for each of the features."""
    return DPRandomTree(epsilon=epsilon, delta=delta, bounds=(0, 1), **parameters)


def surprising(model, n_features, last, categorical=()):
    """Many records that lie where their class does, so that trees are sure of it; and one more of another class.

    Its gradient at the first weights is longer than what counts, so that the Newton step moves by all that it may. It
    makes up for one record that the lower half has more than the upper one, so that medians move most as well.
    """
    n = 40 * math.ceil(n_features * (1 + 10 / model.epsilon)) + 1
    high = np.arange(n + 1) % 2 == 1
    X = np.tile(np.where(high, 0.9995, 0.0005)[:, None], n_features)
    X[:, list(categorical)] = np.rint(X[:, list(categorical)])
    y = np.where(high, last, 0)
    y[-1] = 0
    return (X[:-1], y[:-1]), (X, y)


def own_count(model):
    """The count that the record adds to; beyond 0 or 1 it says no more."""
    return model.leaf_counts_[0, model.apply(np.ones((1, 2)))[0, 0], 1].clip(0, 1)


def one_tree():
    """The sensitivity of the counts of one tree."""
    stack = contextlib.ExitStack()
    for name in ("leaf_counts_l1", "leaf_counts_l2"):
        stack.enter_context(patch.object(_outcomes, name, lambda n_trees: 1.0))
    return stack


def unscaled_terms(original):
    def terms(step, scores, base, weights, codes):
        assert step.n_scores == 1
        p = probabilities(decision(base, scores, weights))
        centred = np.concatenate([scores, np.ones((1, 1, len(codes)))])
        return centred * np.sqrt(p[0] * p[1]), centred[:, 0] * (codes - p[1])

    return terms


def undivided(original):
    """The mechanism of a share is made for the whole budget; what is recorded is the share."""

    def mechanism(epsilon, delta, share, *rest):
        return original(epsilon, delta, 1.0, *rest)[0], original(epsilon, delta, share, *rest)[1]

    return mechanism


def undivided_method(original):
    def mechanism(self, epsilon, delta, share, *rest):
        return original(self, epsilon, delta, 1.0, *rest)[0], original(self, epsilon, delta, share, *rest)[1]

    return mechanism


@contextlib.contextmanager
def structure_from_data():
    """Thresholds are where the data are."""
    read, grow = DPRandomTree._read, _forest.grow
    seen = []

    def noted(*args):
        seen[:] = [read(*args)]
        return seen[0]

    def grown(columns, n_seen, depth, stream, warps):
        # The lowest value of the least frequent class: one record moves it.
        X, codes, *_ = seen[0]
        middle = X[codes == codes.min()].max() if len(X) else 0.5
        return grow(columns, n_seen, depth, stream, {0: np.array([0.0, middle, 1.0])})

    with (
        patch.object(DPRandomTree, "_read", noted),
        patch.object(_forest, "grow", grown),
    ):
        yield


def even(model, n_features):
    """Records that are spread evenly, and so few that cuts are."""
    mechanism = model.privacy_plan(n_features=n_features).releases[0].mechanism
    n = math.ceil(12 / mechanism.epsilon)
    X = np.zeros((n, n_features))
    X[:, :2] = ((np.arange(n) + 0.5) / n)[:, None]
    return X, np.zeros(n, dtype=int)


NO_STEP = "with so much noise, there are few trees and no step, and the counts have the whole budget"

FORESTS = [
    Subject(
        "DPRandomTree-additive",
        partial(forest, classes=[0, 1], expected_n=400),
        partial(surprising, n_features=3, last=1),
        fits=120,
        runs={},
        mutants={
            "noise for one tree": one_tree,
            "no scaling down": lambda: replaced(_forest, "record_terms", unscaled_terms),
            "counts get the whole budget": lambda: replaced(_outcomes, "count_mechanism", undivided),
            "the step gets the whole budget": lambda: replaced(_plans, "l2_mechanism", undivided),
            "structure from the data": structure_from_data,
        },
        survives={
            ("no scaling down", (0.1, 0.0)): NO_STEP,
            ("counts get the whole budget", (0.1, 0.0)): NO_STEP,
            ("the step gets the whole budget", (0.1, 0.0)): NO_STEP,
        },
    ),
    Subject(
        "DPRandomTree-cut points",
        partial(
            forest,
            classes=[0, 1, 2],
            thresholds="quantile",
            # Choices of weights depend on noisy counts, which the laws of choices here do not allow for.
            weights="equal",
            categorical_features=[2, 3],
            n_categories=2,
            n_estimators=4,
            max_features=2,
            max_depth=2,
        ),
        partial(surprising, n_features=4, last=2, categorical=(2, 3)),
        reading=partial(choices, telling=partial(even, n_features=4), pick=np.argmin, most=1, copies=2),
        # Where cut points are extreme, trees of numbers know nothing.
        floor=0.85,
        fits=60,
        runs={},
        mutants={
            "half the noise": half_noise,
            "noise for one tree": one_tree,
            "cut points get the whole budget": lambda: replaced(_plans, "quantile_mechanism", undivided),
        },
        survives={
            ("cut points get the whole budget", (1.0, 1e-5)): "of a column, only the first of three cuts is looked at",
        },
    ),
    Subject(
        "DPRandomTree-one tree",
        partial(forest, classes=[0, 1], n_estimators=1, weights="equal"),
        lambda model: ((np.zeros((0, 2)), np.zeros(0, dtype=int)), (np.ones((1, 2)), np.ones(1, dtype=int))),
        fits=60,
        statistic=own_count,
        runs={(3.0, 0.0): RUNS_AT_3},
        run_floor={(3.0, 0.0): 0.35},
    ),
]


# --- random trees for numbers -----------------------------------------------------------------------------------------


def regressor(epsilon, delta, **parameters):
    return DPRandomTreeRegressor(epsilon=epsilon, delta=delta, bounds=(0, 1), bounds_y=(0, 1), **parameters)


def surprising_target(model, n_features, target=0.0, categorical=()):
    """Targets are at the end of their bounds where the columns are, but for the last one."""
    (_, _), (X, y) = surprising(model, n_features, 1, categorical)
    y = y.astype(float)
    y[-1] = target
    return (X[:-1], y[:-1]), (X, y)


def one_tree_of_shares():
    """The sensitivity of the sums of one tree."""
    stack = contextlib.ExitStack()
    for name in ("leaf_shares_l1", "leaf_shares_l2"):
        stack.enter_context(patch.object(_outcomes, name, lambda n_trees: 1.0))
    return stack


def unclipped():
    """Targets beyond their bounds count as they are."""
    return patch.object(_outcomes.Targets, "encoded", lambda self, X, y: (X, y, y))


def heavy_spread():
    """The sum of v(1 - v) weighs more than the sensitivity allows for."""
    stack = contextlib.ExitStack()
    stack.enter_context(patch.object(_outcomes, "spread_weight", lambda n_trees, norm: 8.0 * n_trees))
    stack.enter_context(patch.object(_outcomes, "leaf_shares_l1", lambda n_trees: n_trees * 33 / 32))
    return stack


FORESTS += [
    Subject(
        "DPRandomTreeRegressor-additive",
        partial(regressor, expected_n=400),
        partial(surprising_target, n_features=3),
        reading=measure_the_rest,
        fits=120,
        runs={},
        mutants={
            "noise for one tree": one_tree_of_shares,
            "targets are not clipped": (unclipped, {"pair": partial(surprising_target, n_features=3, target=-3.0)}),
            "any weight for v(1 - v)": (
                heavy_spread,
                {"pair": partial(surprising_target, n_features=3, target=0.5)},
            ),
            "no scaling down": lambda: replaced(_forest, "record_terms", unscaled_terms),
            "sums get the whole budget": lambda: patch.object(
                _outcomes.Targets, "mechanism", undivided_method(_outcomes.Targets.mechanism)
            ),
            "the step gets the whole budget": lambda: replaced(_plans, "l2_mechanism", undivided),
        },
        survives={
            ("no scaling down", (0.1, 0.0)): NO_STEP,
            ("sums get the whole budget", (0.1, 0.0)): NO_STEP,
            ("the step gets the whole budget", (0.1, 0.0)): NO_STEP,
        },
    ),
    Subject(
        "DPRandomTreeRegressor-first",
        # By default, the number of trees depends on the released range.
        partial(regressor, weights="equal", max_depth=2, n_estimators=3),
        partial(surprising_target, n_features=2),
        fits=120,
        runs={},
        mutants={"noise for one tree": one_tree_of_shares},
    ),
]


# --- the greedy tree ------------------------------------------------------------------------------------------------


def greedy(epsilon, delta):
    # Candidates are a threshold and a category.
    return DPGreedyTree(
        epsilon=epsilon,
        delta=delta,
        bounds=(0, 1),
        categorical_features=[1],
        n_categories=2,
        n_thresholds=1,
        max_depth=2,
        prune=False,
        classes=[0, 1],
    )


def odd_one(model):
    """The category tells the last record from all others, and the number does not.

    Without it, both candidates are as good; with it, only the category is. It is with the others again where the number
    was chosen, so that it moves the next level as well.
    """
    n = 3000
    X = np.full((n + 1, 2), [0.2, 0.0])
    X[-1, 1] = 1
    return (X[:-1], np.zeros(n, dtype=int)), (X, np.append(np.zeros(n, dtype=int), 1))


def uneven(model):
    """The category is better than the number, in all nodes, by so much that it is chosen four times out of five."""
    mechanism = model.privacy_plan(n_features=2).releases[0].mechanism
    n = math.ceil(1.5 * mechanism.scale)
    X = np.zeros((2 * n, 2))
    X[n:, 1] = 1
    X[: n // 2, 0] = 1
    y = (np.arange(2 * n) >= n).astype(int)
    return X, y


class Undivided(float):
    """A share that each of several gets as a whole."""

    def __truediv__(self, other):
        return Undivided(self)


@contextlib.contextmanager
def levels_get_the_whole():
    """Each level gets what is for all; what is recorded is the share."""
    plan = _greedy_tree.make_plan

    def generous(parameters, n_classes):
        with patch.object(_greedy_tree, "_SPLIT_SHARE", Undivided(_greedy_tree._SPLIT_SHARE)):
            broken = _unchecked(plan, parameters, n_classes)
        return replace(plan(parameters, n_classes), releases=broken)

    with patch.object(_greedy_tree, "make_plan", generous):
        yield


def _unchecked(plan, parameters, n_classes):
    with patch.object(_greedy_tree, "PrivacyGuarantee", lambda epsilon, delta, events, releases: releases):
        return plan(parameters, n_classes)


# Each of them is killed with delta 0.
BLUNT = "the counts alone would stay below, and the pair moves few choices as much as Gaussian composition allows for"

GREEDY = [
    Subject(
        "DPGreedyTree",
        greedy,
        odd_one,
        claims=(*PURE, (1.0, 1e-5)),
        reading=partial(choices, telling=uneven),
        # With a positive delta, the record does not always move the second level.
        floor=0.75,
        fits=150,
        runs={},
        mutants={
            "half the noise": half_noise,
            "half of the sensitivity": lambda: replaced(_greedy_tree, "SCORE_SENSITIVITY", lambda whole: whole / 2),
            "levels get the whole": levels_get_the_whole,
        },
        survives={
            ("half of the sensitivity", (1.0, 1e-5)): BLUNT,
            ("levels get the whole", (1.0, 1e-5)): BLUNT,
        },
    )
]

SUBJECTS = [*FORESTS, *GREEDY]

"""The fit of random trees with noisy sums in their leaves, for labels and for targets.

The trees are drawn from public numbers, or with ``thresholds="quantile"`` from the cut points that are released first.
Without `expected_n` and `n_estimators`, noisy sums over all records come next, and determine the number of trees and
their depth. The sums in the leaves of all trees are released at once. Distributions are smoothed by them from the root
of each tree down, and become scores. Unless ``weights="equal"``, a scale for equal weights is chosen privately. Unless
there is much noise, the sums for one step towards better weights and the length of this step are released, too (see
`_smoothing`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..accounting import PrivacyCost
from ..checks.params import Checked, Integer, OneOf, Or, Rules
from ..mechanisms import NoiseSource, coordinate_variance, is_gaussian, within_reach
from ..parts.arrays import in_memory, many_rows
from ..release.counts import column_part, label_parts, warn_of_mismatch
from ..release.estimator import PrivateEstimator, Records, Shape
from ..release.session import PrivacyGuarantee, ReleaseSession
from ..schema.columns import COLUMN_RULES, Columns, check_columns
from ._base import MOST_CATEGORIES, TreeModel
from ._outcomes import Labels, Outcome, Router, Targets
from ._plans import (
    COUNTS,
    CUTS,
    GRID,
    LENGTH,
    SCALE,
    STEP,
    TREES,
    Plan,
    Shares,
    Trees,
    features_of_trees,
    make_plan,
    plan_trees,
)
from ._smoothing import (
    LENGTHS,
    SCALES,
    Line,
    Step,
    class_distributions,
    decision,
    impurity_decreases,
    level_scores,
    line_scores,
    log_odds,
    newton_step,
    newton_sums,
    probabilities,
    record_terms,
    scores,
    totals_of,
)
from ._structure import ROUTED, Forest, grow, read_stored

Array = NDArray[np.float64]

# Number of scores that predictions add up at once.
_LOOKED_UP = 2**21

# Unit of the scores of a choice without noise.
_LEAST_UNIT = 2.0**-16

#: Ridge of the Newton step, in units of the largest eigenvalue of the noise.
_RIDGE = 0.5


def leaf_scores(route: Router, table: Array, X: NDArray) -> Iterator[Array]:
    """Look up the scores of rows, of shape (n_scores, n_rows), tree by tree."""
    for values, leaves in zip(table, route(X), strict=True):
        yield values.T.take(leaves, axis=1)


def node_scores(leaves: Array, inner: Array, prior: Array) -> Array:
    """Return the scores of leaves and inner nodes, numbered as routes number them."""
    return scores(np.concatenate([leaves, inner], axis=1), prior)


def _warn_of_counts(
    forest: Forest,
    counts: Array,
    noise: float,
    shape: Shape,
    first: tuple[Array, float] | None,
    declared: Collection[int],
    gaussian: bool,
) -> None:
    """Warn of declared labels and codes that hardly occur, by the released counts of trees."""
    # A tree counts each record with a declared label once, unless the record has an unknown code at a split. Therefore
    # trees that split by one categorical column only show how many records have its codes. Noise is independent in all
    # leaves. If class counts were released first, labels were compared by them. Columns in `declared` have codes for
    # other and missing values.
    categorical = set(forest.places if forest.depth else []) - set(declared)
    trees: dict[tuple[int, ...], list[int]] = {}
    for tree, (features, n_seen) in enumerate(zip(forest.features, forest.n_seen, strict=True)):
        trees.setdefault(tuple(sorted(categorical & set(features[:n_seen].tolist()))), []).append(tree)
    n_leaves, root = forest.reachable().sum(axis=1), math.sqrt(counts.shape[2])
    by_class, totals = first, {}
    for columns, group in trees.items():
        mean = counts[group].sum(axis=(0, 1)) / len(group)
        spread = noise * math.sqrt(n_leaves[group].sum()) / len(group)
        if len(columns) == 1:
            totals[columns[0]] = float(mean.sum()), (spread * root) ** 2
        elif not columns and first is None:
            by_class = mean, spread
    if by_class is None and not totals:
        return
    if by_class is not None:
        total, n_totals = (float(by_class[0].sum()), (by_class[1] * root) ** 2), 1
    else:
        total, n_totals = (max(n for n, _ in totals.values()), max(v for _, v in totals.values())), len(totals)
    of_labels, names = first is None and shape.classes is not None, shape.names
    messages = label_parts(shape.classes, *by_class) if of_labels and by_class is not None else []
    messages += [column_part(j if names is None else str(names[j]), known, total) for j, known in totals.items()]
    warn_of_mismatch(messages, labels=total if of_labels else None, n_totals=n_totals, gaussian=gaussian)


def _release_weights(
    session: ReleaseSession,
    trees: Trees,
    step: Step,
    weights: Array,
    base: Array,
    looked_up: Callable[[NDArray], Iterator[Array]],
    losses: Callable[[Array, NDArray], Array],
    X: NDArray,
    y: NDArray,
) -> Array:
    """Choose the scale of public weights, and if it is planned, release a step from there, and choose its length."""

    def choose(label: str, line: Line) -> Array:
        # Without noise, the odds decide between equal scores.
        unit = max(trees.mechanisms[label].scale, _LEAST_UNIT)
        values = line_scores(line, unit, base, looked_up, losses, X, y)
        return line.at(int(session.release(label, values)[0]))

    start = choose(SCALE, Line(np.zeros_like(weights), weights, *SCALES))
    mechanism = trees.mechanisms.get(STEP)
    if mechanism is None:
        return start

    def terms(rows: NDArray, outcomes: NDArray) -> tuple[Array, Array]:
        return record_terms(step, np.stack(list(looked_up(rows))), base, start, outcomes)

    released = session.release(STEP, within_reach(mechanism, newton_sums(step, terms, X, y)))
    noise = math.sqrt(coordinate_variance(mechanism))
    # The largest eigenvalue of a symmetric Gaussian matrix of this size.
    largest = noise * math.sqrt(2 * step.n_weights) * step.curvature
    change = newton_step(step, released, _RIDGE * largest, noise * step.gradient)
    return choose(LENGTH, Line(start, change, *LENGTHS))


class RandomTrees(TreeModel, PrivateEstimator):
    """Base of forests of random trees, for class probabilities and for shares of two ends."""

    _parameter_rules: ClassVar[Rules] = {
        **COLUMN_RULES,
        "n_estimators": Or(None, Integer(1, 10_000)),
        "max_depth": Or(None, Integer(0, 16)),
        "max_features": Or(None, Integer(1, 10_000)),
        "expected_n": Or(None, Integer(1, 10**12)),
        "thresholds": OneOf(("uniform", "quantile")),
        "weights": OneOf(("newton", "equal")),
        "structure_seed": Integer(0),
    }

    _counts_outside = ("entries",)
    _takes_parts = True
    _released = frozenset({"structure_", "leaf_counts_", "tree_weights_", "intercept_", "_decreases"})

    tree_weights_: Array
    _decreases: Array

    @abstractmethod
    def _outcome(self, shape: Shape) -> Outcome:
        """Return the outcome that leaves count."""

    def _plan(self, parameters: Checked, shape: Shape) -> tuple[PrivacyGuarantee, tuple[Columns, Plan, Outcome]]:
        columns = parameters.columns.resolve(shape.n_features, shape.names, named=shape.is_read)
        outcome = self._outcome(shape)
        plan = make_plan(parameters, shape.n_features, outcome, len(columns.numeric))
        return plan.guarantee, (columns, plan, outcome)

    def _measure(
        self, session: ReleaseSession, records: Records, parameters: Checked, design: tuple[Columns, Plan, Outcome]
    ) -> dict[str, Any]:
        columns, plan, outcome = design
        n_features, n_classes = records.shape.n_features, outcome.n_classes
        first = None
        if plan.target_range is not None:
            assert isinstance(outcome, Targets)
            outcome, first = outcome.within(plan.target_range.located(session, records.y, outcome.scaling))
        X, y, all_y = outcome.encoded(records.X, records.y)
        warps = {}
        if plan.has_cuts:
            cuts = session.release(CUTS, columns.grid.counts(X, columns.numeric))
            warps = dict(zip(columns.numeric.tolist(), columns.grid.edges(cuts), strict=True))
        trees = plan.trees
        if trees is None:
            if isinstance(outcome, Labels):
                first = outcome.first_totals(session, all_y)
            assert first is not None
            chosen = Shares(parameters.epsilon, parameters.delta)
            # The number of records is taken one standard deviation of its noise lower: too few trees do less harm.
            n_rows = max(float(first[0].sum()) - first[1] * math.sqrt(len(first[0])), 1.0)
            trees = plan_trees(parameters, n_features, outcome, n_rows, plan.remaining, chosen)
            session.refine(TREES, chosen.releases, chosen.events)
        assert trees is not None
        n_seen = features_of_trees(parameters, trees.n_trees, n_features)
        stream = NoiseSource(parameters.structure_seed).stream("structure of trees")
        forest = grow(columns, n_seen, trees.depth, stream, warps)
        reachable = forest.reachable()
        counter = trees.mechanisms[COUNTS]
        route: Router
        if in_memory(X) and forest.n_trees * forest.leaf_type.itemsize <= X.shape[1] * X.itemsize:
            # The leaves are found once. They take no more memory than the rows.
            X, route = forest.leaves_of(X), read_stored
        else:
            route = forest.router(many_rows(X))
        released = session.release(COUNTS, outcome.sums(counter, forest, X, y, route))
        counts = released[: reachable.size * n_classes].reshape(*reachable.shape, n_classes) * reachable[:, :, None]
        _warn_of_counts(forest, counts, trees.noise, records.shape, first, columns.declared, is_gaussian(counter))
        totals, spread = totals_of(counts, reachable, trees.noise, first)
        prior = outcome.prior(totals, spread)
        extra = released[reachable.size * n_classes :]
        dispersion, most = outcome.dispersion(extra, counter, trees.n_trees, totals, spread)
        few = trees.few and outcome.of_labels
        levels = class_distributions(counts, reachable, trees.noise, few, prior, dispersion, outcome.of_labels)
        inner = np.concatenate([np.empty((trees.n_trees, 0, n_classes)), *levels[:-1]], axis=1)
        distributions = np.array(levels[-1])

        step = Step(trees.n_trees, n_classes)
        step = replace(step, difference=outcome.difference(prior, most, step.n_weights))
        weights = step.first_weights(sum(n_seen) / n_features)
        if SCALE in trees.mechanisms:
            base, table = log_odds(np.log(prior)), node_scores(distributions, inner, prior)
            looked_up = partial(leaf_scores, route, table)
            losses = outcome.losses(prior, most)
            weights = _release_weights(session, trees, step, weights, base, looked_up, losses, X, y)
        return {
            "structure_": forest,
            "tree_weights_": weights[: trees.n_trees],
            "_decreases": impurity_decreases(forest, counts, reachable, trees.noise, n_features, dispersion),
            **self._fitted(outcome, counts, distributions, inner, prior, weights[trees.n_trees :]),
        }

    @abstractmethod
    def _fitted(
        self, outcome: Any, counts: Array, leaves: Array, inner: Array, prior: Array, intercept: Array
    ) -> dict[str, Any]:
        """Return the other fitted attributes."""

    @property
    def feature_importances_(self) -> Array:
        """Mean decreases of impurity by the splits of each column, divided by their sum, of shape (n_features,).

        They are computed from the released counts or sums in the leaves. The share of noise and sampling is subtracted.
        """
        check_is_fitted(self, "privacy_")
        return self._importances(self._decreases)

    def _cost_of(self, parameters: Checked) -> PrivacyCost | None:
        if parameters.thresholds == "quantile":
            # The plan depends on whether there is a numeric column.
            return None
        if parameters.weights == "newton" and parameters.expected_n is not None and parameters.private:
            # Whether there is a step depends on the numbers of features and classes.
            return None
        return make_plan(parameters, 1, self._outcome(Shape(1, 2)), 0).guarantee.cost

    def _check_together(self, parameters: Checked) -> None:
        parameters.columns = check_columns(self, n_cells=GRID, most=MOST_CATEGORIES)

    def _probabilities(self, X: NDArray, leaves: Array, inner: Array, prior: Array, intercept: Array) -> Array:
        """Return the probabilities of classes, of shape (n_classes, n_rows)."""
        table = node_scores(leaves, inner, prior)
        base = log_odds(np.log(prior))
        weights = np.concatenate([self.tree_weights_, intercept])
        if len(table) == 1:
            # All rows of a leaf have the same probabilities.
            return probabilities(decision(base, [table[0].T], weights)).take(self._leaves(X)[:, 0], axis=1)
        table *= self.tree_weights_[:, None, None]
        add_scores, level = self.structure_.router(len(X)).sums(table), level_scores(base, intercept)[:, None]
        out, size = np.empty((len(prior), len(X))), min(ROUTED, max(16, _LOOKED_UP // len(base)))
        for start in range(0, len(X), size):
            rows = slice(start, start + size)
            totals = np.repeat(level, len(X[rows]), axis=1)
            add_scores(X[rows], totals)
            out[:, rows] = probabilities(totals)
        return out

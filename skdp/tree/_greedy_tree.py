r"""A decision tree whose splits are chosen privately, level by level (Friedman and Schuster 2010).

Candidates are public: thresholds on a grid, and single categories. The nodes of one level hold disjoint records.
Therefore a level costs as much as the choice in one node. The splits of each level and the leaf counts are released.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..accounting import PrivacyCost
from ..checks.params import Checked, Integer, Or, Rules, check_boolean
from ..mechanisms import choice_mechanism, coordinate_variance, is_gaussian
from ..parts.arrays import in_memory
from ..release.counts import label_parts, warn_of_mismatch
from ..release.estimator import LabelsMixin, Records, Shape
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem
from ..schema.columns import COLUMN_RULES, Columns, check_columns
from ..schema.declared import Bins
from ..sensitivity import sum_over_rows
from ._base import MOST_CATEGORIES, TreeClassifier
from ._outcomes import count_mechanism, leaf_counts
from ._smoothing import class_distributions, class_prior, few_records, totals_of
from ._structure import ROUTED, read_stored, stored, walk_down

Array = NDArray[np.float64]

_COUNTS = "leaf counts"

#: Part of the budget for all splits together.
_SPLIT_SHARE = 0.6

_DEPTH = 5


def splits_of(level: int) -> str:
    """Return the label of the release of a level."""
    return f"splits of level {level}"


#: Bound on the change of the score of a split by one record, and on the range of the changes over candidates. A
#: millionth is added for rounding, which is enough for a thousand million records.
SCORE_SENSITIVITY = 2.0 * (1 + 2.0**-20)


def split_scores(left: Array, right: Array) -> Array:
    """Score splits by the class counts of their children, of shape (..., n_classes). Larger is better.

    The score is minus the weighted Gini impurity of both children. One record lowers it by between 0 and 2, for every
    candidate (user guide, "Trees", theorem 4).
    """
    total = np.zeros(left.shape[:-1])
    for child in (left, right):
        n = child.sum(axis=-1)
        total += (child**2).sum(axis=-1) / np.maximum(n, 1.0) - n
    return total


@dataclass(frozen=True, eq=False)
class Candidates:
    """The public splits: evenly spaced thresholds of numeric features, and one category against the others."""

    columns: Columns
    n_thresholds: int

    @property
    def widths(self) -> NDArray[np.intp]:
        """Number of bins of each feature: intervals between thresholds, or categories and one bin for unknown ones."""
        n = self.columns.n_categories
        return np.where(n > 0, n + 1, self.n_thresholds + 1)

    @property
    def counts(self) -> NDArray[np.intp]:
        """Number of candidates of each feature. Two categories have one candidate."""
        n = self.columns.n_categories
        return np.where(n == 2, 1, np.where(n > 0, n, self.n_thresholds))

    @property
    def n_candidates(self) -> int:
        return int(self.counts.sum())

    @cached_property
    def thresholds(self) -> dict[int, Array]:
        """Evenly spaced thresholds by numeric feature."""
        grid = replace(self.columns.grid, n_cells=self.n_thresholds + 1)
        # If the bounds are very close to each other, rounding could move a threshold out of them.
        inner = np.minimum(grid.every_edge()[:, 1:-1], np.nextafter(grid.upper, grid.lower)[:, None])
        return dict(zip(self.columns.numeric.tolist(), np.maximum.accumulate(inner, axis=1), strict=True))

    @cached_property
    def _numeric(self) -> dict[int, Bins]:
        return {j: Bins(edges, right=False) for j, edges in self.thresholds.items()}

    def bins(self, X: NDArray) -> Iterator[NDArray[np.intp]]:
        """Yield the bins of records, of shape (n_rows,), feature by feature."""
        for j, values in enumerate(np.ascontiguousarray(X.T)):
            yield self._numeric[j](values) if j in self._numeric else self.columns.cells(j, values)

    def all_bins(self, X: NDArray) -> NDArray:
        """Return the bins of all records, of shape (n_rows, n_features) and a small type."""
        return stored(X, X.shape[1], np.min_scalar_type(int(self.widths.max())), self.bins)

    def children(self, histogram: Array) -> tuple[Array, Array]:
        """Return class counts of the children of all candidates, from counts of shape (n_nodes, n_bins, n_classes)."""
        # Numbers up to the threshold, and all categories except the candidate's, go left.
        of_nodes = histogram[:, : self.widths[0]].sum(axis=1, keepdims=True)
        right_counts = []
        start = 0
        for n, width, count in zip(self.columns.n_categories, self.widths, self.counts, strict=True):
            counts = histogram[:, start : start + width]
            right_counts.append(counts[:, :count] if n else of_nodes - np.cumsum(counts, axis=1)[:, :-1])
            start += width
        right = np.concatenate(right_counts, axis=1)
        return of_nodes - right, right

    def split(self, chosen: NDArray[np.intp]) -> tuple[NDArray[np.intp], Array, NDArray[np.intp]]:
        """Return features, thresholds and categories of chosen candidates. Categories are -1 for numeric features."""
        features = np.repeat(np.arange(self.columns.n_features), self.counts)
        categories = np.arange(self.n_candidates) - np.repeat(np.cumsum(self.counts) - self.counts, self.counts)
        thresholds = np.zeros(self.n_candidates)
        for j, values in self.thresholds.items():
            thresholds[features == j] = values
            categories[features == j] = -1
        return features[chosen], thresholds[chosen], categories[chosen]


@dataclass(frozen=True, eq=False)
class Splits:
    """The released splits of a tree, level by level, without its leaves. `structure_` describes its arrays."""

    features: NDArray[np.intp]
    thresholds: Array
    categories: NDArray[np.intp]
    merged: NDArray[np.bool_]

    n_trees = 1

    @property
    def depth(self) -> int:
        return (len(self.features) + 1).bit_length() - 1

    @property
    def n_leaves(self) -> int:
        return len(self.features) + 1

    def reachable(self) -> NDArray[np.bool_]:
        """Leaves that some record could reach, of shape (1, n_leaves): a function of the released splits."""
        return np.array([[self._leads_to(leaf) for leaf in range(self.n_leaves)]])

    def _leads_to(self, leaf: int) -> bool:
        """Tell whether some record can reach a leaf."""
        sides: dict[tuple[int, bool], tuple[set[float], set[float]]] = {}
        for level in range(self.depth):
            i = 2**level - 1 + (leaf >> (self.depth - level))
            category = int(self.categories[i])
            value = float(self.thresholds[i]) if category < 0 else float(category)
            left_and_right = sides.setdefault((int(self.features[i]), category < 0), (set(), set()))
            left_and_right[leaf >> (self.depth - level - 1) & 1].add(value)
        return all(
            max(right, default=-math.inf) < min(left, default=math.inf)
            if numeric
            else len(right) < 2 and right.isdisjoint(left)
            for (_, numeric), (left, right) in sides.items()
        )

    def leaves(self, X: NDArray) -> NDArray[np.intp]:
        """Return the leaf of each row of a block, of shape (1, n_rows)."""
        categories = self.categories if np.any(self.categories >= 0) else None
        return walk_down(X, self.features, self.thresholds, categories)[None]

    def router(self, n_rows: int) -> Callable[[NDArray], NDArray[np.intp]]:
        """Return a function that finds the leaves of blocks of rows, as `Forest.router` does."""
        return self.leaves

    def grown(self, *level: NDArray) -> Splits:
        """Return the tree with the features, thresholds and categories of one more level."""
        above = self.features, self.thresholds, self.categories, self.merged
        added = (*level, np.zeros(len(level[0]), dtype=bool))
        return Splits(*(np.concatenate(pair) for pair in zip(above, added, strict=True)))

    def question(self, tree: int, level: int, node: int, names: list[str], decimals: int) -> tuple[str, str] | None:
        """Return the conditions for left and right at a node, or None if it is not split."""
        i = 2**level - 1 + node
        if self.merged[i]:
            return None
        name, category, threshold = names[self.features[i]], self.categories[i], self.thresholds[i]
        if category >= 0:
            return f"{name} is not {category}", f"{name} is {category}"
        return f"{name} <= {threshold:.{decimals}f}", f"{name} >  {threshold:.{decimals}f}"


def histogram(
    candidates: Candidates, splits: Splits, n_classes: int, X: NDArray, codes: NDArray[np.intp], *all_bins: NDArray
) -> Array:
    """Count classes by node of the last level and bin of each feature, of shape (n_nodes, n_bins, n_classes)."""
    # If the bins of all records were found before, they are the last argument.
    widths = candidates.widths.tolist()
    stops = np.cumsum(widths).tolist()

    def block(rows: NDArray, classes: NDArray, *bins_of_rows: NDArray) -> NDArray:
        bins = read_stored(bins_of_rows[0]) if bins_of_rows else candidates.bins(rows)
        out = np.empty((splits.n_leaves, stops[-1], n_classes), dtype=np.intp)
        leaves = splits.leaves(rows)[0]
        first = {width: leaves * (width * n_classes) + classes for width in set(widths)}
        for stop, width, cells in zip(stops, widths, bins, strict=True):
            cells *= n_classes
            cells += first[width]
            counts = np.bincount(cells, minlength=splits.n_leaves * width * n_classes)
            out[:, stop - width : stop] = counts.reshape(-1, width, n_classes)
        return out

    return sum_over_rows(block, X, codes, *all_bins, block_rows=ROUTED).astype(np.float64)


def gini_decreases(splits: Splits, counts: Array, n_features: int) -> Array:
    """Return by feature the decrease of Gini's impurity by its splits, from released counts (n_leaves, n_classes)."""

    def impurity(nodes: Array) -> Array:
        totals = nodes.sum(axis=1)
        return totals - (nodes**2).sum(axis=1) / np.maximum(totals, 1e-300)

    by_feature, below = np.zeros(n_features), np.maximum(counts, 0.0)
    while len(below) > 1:
        nodes = below.reshape(len(below) // 2, 2, -1).sum(axis=1)
        decreases = impurity(nodes) - impurity(below).reshape(-1, 2).sum(axis=1)
        level = slice(len(nodes) - 1, 2 * len(nodes) - 1)
        np.add.at(by_feature, splits.features[level], np.where(splits.merged[level], 0.0, np.maximum(decreases, 0.0)))
        below = nodes
    return by_feature


def make_plan(parameters: Checked, n_classes: int) -> PrivacyGuarantee:
    """Return the releases: one for each level, and the leaf counts."""
    epsilon, delta, depth = parameters.epsilon, parameters.delta, parameters.max_depth
    share, count_share = (_SPLIT_SHARE / depth, 1 - _SPLIT_SHARE) if depth else (0.0, 1.0)
    counts, count_event = count_mechanism(epsilon, delta, count_share, 1, 2**depth * n_classes)
    releases, events = [Release(_COUNTS, counts, count_share, Theorem("Trees", 1))], [count_event]
    if depth:
        choice, event = choice_mechanism(epsilon, delta, share, SCORE_SENSITIVITY)
        releases[:0] = [Release(splits_of(level), choice, share, Theorem("Trees", 4)) for level in range(depth)]
        events[:0] = [event] * depth
    return PrivacyGuarantee(epsilon, delta, tuple(events), tuple(releases))


class DPGreedyTree(TreeClassifier, ClassifierMixin, LabelsMixin, BaseEstimator):
    """Differentially private decision tree for interpretation.

    The exponential mechanism chooses the splits of a single tree among public candidates, level by level, and its
    leaves have noisy class counts. Use this tree to read it. `DPRandomTree` is more accurate.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1), far below one over the number of records. If 0, the fit is pure
        epsilon-DP. A positive `delta` lets the budgets of the levels compose more tightly.
    schema : Schema, default=None
        Declaration of the columns of X, in place of `bounds`, `classes`, `categorical_features` and `n_categories`.
        Explicit parameters override it.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.
    max_depth : int, default=None
        Number of splits from root to leaf, from 0 to 12. If None, it is 5, or less for an epsilon below 0.56. Each
        level takes a part of the budget.
    n_thresholds : int, default=31
        Number of candidate thresholds of each numeric feature, evenly spaced within its bounds.
    prune : bool, default=True
        Whether to undo splits of nodes that have too few records for the noise, according to the noisy counts.
    bounds : tuple (lower, upper)
        Public bounds of the numeric features: numbers, or one for each column of X or each numeric column. Values
        beyond are clipped.
    categorical_features : array-like, default=None
        Categorical columns, given by positions, names, or a mask. If None, there are none.
    n_categories : int or array-like of int, default=None
        Numbers of categories of these columns, which are coded 0, 1, ... Required with `categorical_features`. Any
        other value goes left at each split of the column.
    classes : array-like, default=None
        Public label set. Other rows are left out. If None, the labels in `y` count as public, with a warning.
    class_weight : dict or "balanced", default=None
        Public weights of the labels. ``"balanced"`` computes them from 4 % of the budget (see :ref:`weights`).
    max_weight : float, default=None
        Public upper bound on `sample_weight` in `fit`. Larger weights count as `max_weight`. Required with weights.

    Attributes
    ----------
    structure_ : object
        Released splits (:ref:`trees_greedy`), level by level. `export_text` prints them. The split at ``p`` is by
        ``features[p]``: values up to ``thresholds[p]`` go left, or, if ``categories[p]`` is not negative, all
        categories but this one. All leaves below a node with ``merged[p]`` have the same distribution.
    leaf_counts_ : ndarray of shape (1, n_leaves, n_classes)
        Noisy counts. 0 in leaves that no record can reach.
    leaf_proba_ : ndarray of shape (1, n_leaves, n_classes)
        Class distributions in the leaves, smoothed.
    classes_ : ndarray of shape (n_classes,)
        Label set, sorted.
    class_weight_ : ndarray of shape (n_classes,)
        Weights of the labels, at most 1, from the released counts. Only with ``class_weight="balanced"``.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit, with its mechanisms, sensitivities and noise scales.
    feature_importances_ : ndarray of shape (n_features,)
        Decreases of Gini's impurity by the splits of each column, from released counts, divided by their sum.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    DPRandomTree : A forest of random trees. It is more accurate.
    export_text : Export the tree as text.

    Notes
    -----
    **Privacy.** The nodes of a level hold disjoint records. Therefore one record changes the scores in one of them, by
    at most 2 (``"gini"``) or 1 (``"max"``), and all in one direction (:ref:`trees, theorem 4 <trees-theorem-4>`).
    Splits are chosen by the exponential mechanism, which composes under Gaussian DP (:ref:`theorem 5
    <trees-theorem-5>`), or with ``delta=0`` by permute-and-flip. A record adds 1 to one leaf count (:ref:`theorem 1
    <trees-theorem-1>`). The rest is post-processing.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPGreedyTree, Schema
    >>> from skdp.tree import export_text
    >>> k = np.arange(5000)
    >>> age, smokes = 18 + k % 72, np.where(k % 5 < 2, "yes", "no")
    >>> ill = age + 16 * (smokes == "yes") + 20 * np.sin(k) > 60
    >>> columns = {"age": (18, 90), "smokes": ["no", "yes"]}
    >>> schema = Schema(columns, target=[False, True])
    >>> model = DPGreedyTree(
    ...     max_depth=1, epsilon=1, delta=1e-6, schema=schema, random_state=0
    ... )
    >>> model = model.fit({"age": age, "smokes": smokes}, ill)
    >>> print(export_text(model))
    |--- age <= 50.91
    |   |--- class: False (0.83), counts [1927.12, 379.03]
    |--- age >  50.91
    |   |--- class: True (0.78), counts [587.81, 2114.60]
    """

    _parameter_rules: ClassVar[Rules] = {
        **COLUMN_RULES,
        "max_depth": Or(None, Integer(0, 12)),
        "n_thresholds": Integer(1, 4095),
        "prune": check_boolean,
    }
    _counts_outside = ("entries", "target")
    _takes_parts = True
    _released = frozenset({"structure_", "leaf_counts_", "leaf_proba_"})

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        max_depth: int | None = None,
        n_thresholds: int = 31,
        prune: bool = True,
        bounds: Any = None,
        categorical_features: Any = None,
        n_categories: Any = None,
        classes: Any = None,
        class_weight: Any = None,
        max_weight: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.max_depth = max_depth
        self.n_thresholds = n_thresholds
        self.prune = prune
        self.bounds = bounds
        self.categorical_features = categorical_features
        self.n_categories = n_categories
        self.classes = classes
        self.class_weight = class_weight
        self.max_weight = max_weight

    def _plan(self, parameters: Checked, shape: Shape) -> tuple[PrivacyGuarantee, Columns]:
        columns = parameters.columns.resolve(shape.n_features, shape.names, named=shape.is_read)
        return make_plan(parameters, shape.n_classes), columns

    def _measure(
        self, session: ReleaseSession, records: Records, parameters: Checked, columns: Columns
    ) -> dict[str, Any]:
        X, codes, classes = records.X, records.y, records.shape.classes
        counter = session.mechanism(_COUNTS)
        noise, gaussian = math.sqrt(coordinate_variance(counter)), is_gaussian(counter)
        candidates = Candidates(columns, parameters.n_thresholds)
        # Bins are found once. They take no more memory than the rows.
        bins = (candidates.all_bins(X),) if in_memory(X) else ()
        splits = Splits(np.empty(0, np.intp), np.empty(0), np.empty(0, np.intp), np.empty(0, bool))
        for level in range(parameters.max_depth):
            counted = histogram(candidates, splits, len(classes), X, codes, *bins)
            values = split_scores(*candidates.children(counted))
            chosen = session.release(splits_of(level), values).astype(np.intp)
            splits = splits.grown(*candidates.split(chosen))
        reachable = splits.reachable()
        counts = session.release(_COUNTS, leaf_counts(splits, X, codes, len(classes))) * reachable[:, :, None]

        by_class, spread = counts[0].sum(axis=0), noise * math.sqrt(np.count_nonzero(reachable))
        total = float(by_class.sum()), spread**2 * len(classes)
        warn_of_mismatch(label_parts(classes, by_class, spread), labels=total, gaussian=gaussian)
        prior = class_prior(*totals_of(counts, reachable, noise))
        levels = class_distributions(counts, reachable, noise, True, prior)
        merged = few_records(counts[0], noise) if parameters.prune else splits.merged
        proba = levels[0]
        for level, below in enumerate(levels[1:]):
            # All leaves below a merged node have the distribution of the highest one.
            above = merged[2**level - 1 : 2 ** (level + 1) - 1]
            proba = np.where(np.repeat(above, 2)[None, :, None], np.repeat(proba, 2, axis=1), below)
        return {"leaf_proba_": np.array(proba), "structure_": replace(splits, merged=merged), "leaf_counts_": counts}

    @property
    def feature_importances_(self) -> Array:
        """Decreases of Gini's impurity by the splits of each column, divided by their sum, of shape (n_features,)."""
        check_is_fitted(self, "privacy_")
        return self._importances(gini_decreases(self.structure_, self.leaf_counts_[0], self._n_columns))

    def _cost_of(self, parameters: Checked) -> PrivacyCost | None:
        return make_plan(parameters, 2).cost

    def _check_together(self, parameters: Checked) -> None:
        parameters.columns = check_columns(self, most=MOST_CATEGORIES)
        if parameters.max_depth is None:
            # With little epsilon, few leaves have less noise together.
            parameters.max_depth = max(1, _DEPTH + round(2 * math.log10(min(parameters.epsilon, 1.0))))

    def _proba(self, X: NDArray) -> Array:
        return self.leaf_proba_[0].take(self._leaves(X)[:, 0], axis=0)

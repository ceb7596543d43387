r"""Random trees with noisy leaf counts (Jagannathan, Pillaipakkamnatt and Wright 2009), and what can be made of them.

The trees are drawn from public numbers. Released: the class counts of all leaves of all trees, at once (see
``leaf_counts_l1`` and ``leaf_counts_l2``); by them, class distributions are smoothed from the root of each tree down,
and turned into scores. Released as well, unless ``weights="equal"``: the choice of a scale for equal weights, and,
unless there is much noise, the sums for one step from there towards better weights and the choice of its length (see
`_weights`). Without `expected_n` and `n_estimators`, noisy class counts come first, and the number of trees and their
depth follow from them. With ``thresholds="quantile"``, cut points of the numeric features come before everything else.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from ..accounting import (
    GaussianEvent,
    PrivacyCost,
    PrivacyEvent,
    PureEvent,
    check_delta,
    check_epsilon,
    gaussian_mu,
)
from ..checks.params import check_choice, check_integer
from ..checks.warn import warn
from ..exceptions import SchemaMismatchWarning
from ..mechanisms import (
    Mechanism,
    NoiseSource,
    NoNoise,
    coordinate_variance,
    even_levels,
    l2_mechanism,
    pure_share,
    quantile_mechanism,
    within_reach,
)
from ..release.estimator import LabelsMixin, Records, Shape
from ..release.mismatch import column_part, label_parts, warn_of_mismatch
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Reserved
from ..release.theorems import Theorem
from ..schema.columns import Columns, ColumnSpec, check_columns
from ._base import MOST_CATEGORIES, ROUTED, TreeClassifier, check_optional
from ._counts import choice_mechanism, class_counts, count_mechanism, leaf_counts
from ._growth import grow
from ._smoothing import class_distributions, log_odds, scores
from ._structure import Forest, Routes
from ._weights import (
    LENGTHS,
    SCALES,
    Line,
    Step,
    decision,
    line_scores,
    newton_step,
    newton_sums,
    probabilities,
    record_terms,
)

Array = NDArray[np.float64]

# Scores that are added up at once, in `predict_proba`.
_LOOKED_UP = 2**21

THRESHOLDS = ("uniform", "quantile")
WEIGHTS = ("newton", "equal")

_CUTS = "cut points"
_CLASSES = "class counts"
_TREES = "leaf counts and weights"
_COUNTS = "leaf counts"
_SCALE = "scale of the weights"
_STEP = "Newton step"
_LENGTH = "length of the step"

#: Shares of the budget, of epsilon or of the square of the GDP parameter; leaf counts get the rest.
_CUT_SHARE, _CLASS_SHARE, _SCALE_SHARE, _STEP_SHARE = 0.1, 0.04, 0.02, 0.2

#: Cut points: levels of bisection, and cells of the grid.
_LEVELS, _GRID = 3, 1024

#: Ridge of the Newton step, in units of the largest eigenvalue of the noise.
_RIDGE = 0.5

#: Depth where the number of trees is given and that of records is not, and the deepest that is chosen otherwise.
_DEPTH, _DEEPEST = 5, 8

#: How many records of a class, on average, there have to be for each standard deviation of the noise in a count.
_RECORDS_FOR_NOISE = 8

#: ... for a step of the weights to be worth its share.
_RECORDS_FOR_STEP = 16

#: Records of each class that count as much as one standard deviation of the noise, on average: labels are a sample.
_RECORDS_IN_LEAF = 2.0

#: The fewest trees, if nobody says otherwise.
_FEWEST = 4


@dataclass(frozen=True)
class Parameters:
    """The checked parameters of a fit, all public."""

    epsilon: float
    delta: float
    columns: ColumnSpec
    n_estimators: int | None
    max_depth: int | None
    max_features: int | None
    expected_n: int | None
    thresholds: str
    weights: str
    structure_seed: int

    @property
    def private(self) -> bool:
        return self.epsilon < math.inf

    def most_trees(self, n_features: int) -> int:
        """Return how many there are where noise is small."""
        if self.n_estimators is not None:
            return self.n_estimators
        if self.private and self.delta == 0:
            return min(n_features, 64)
        return min(2 * n_features, max(n_features, 64), 256)

    @property
    def adaptive(self) -> bool:
        """Whether noisy class counts say how many trees there are, and how deep."""
        return self.n_estimators is None and self.expected_n is None

    def n_trees(self, n_features: int, n_classes: int, n_rows: float | None, noise: Callable[[int], float]) -> int:
        """Return the largest number of trees for which each class has eight standard deviations of a count's noise."""
        most = self.most_trees(n_features)
        if n_rows is None or self.n_estimators is not None or not self.private:
            return most
        tolerable = n_rows / (_RECORDS_FOR_NOISE * n_classes)
        # At least four trees are used, because the accuracy of a single tree of random splits varies much.
        return max(min(_FEWEST, most), bisect.bisect_right(range(1, most + 1), tolerable, key=noise))

    def noisy(self, n_rows: float | None, n_classes: int, noise: float) -> bool:
        """Tell whether there is too much noise for a step of the weights."""
        if n_rows is None or self.n_estimators is not None or not self.private:
            return False
        return noise * _RECORDS_FOR_STEP * n_classes > n_rows

    def n_seen(self, n_trees: int, n_features: int) -> list[int]:
        """How many features each tree sees: all are seen, and trees that come on top of that see two."""
        if self.max_features is not None:
            return [min(self.max_features, n_features)] * n_trees
        fewest = -(-n_features // max(n_trees, 1))
        on_top = min(max(2, fewest), n_features)
        return [fewest if t < n_features else on_top for t in range(n_trees)]

    def depth(self, noise: float, n_features: int, n_classes: int, n_trees: int, n_rows: float | None) -> int:
        """Return a depth at which leaves of a balanced tree hold four standard deviations of the noise, as expected."""
        if self.max_depth is not None:
            return self.max_depth
        if n_rows is None:
            return _DEPTH
        # With fewer trees than features, more splits are needed to use the features, down to one standard deviation.
        held = 4 / min(max(n_features / n_trees, 1.0), 4.0)
        return min(
            max(math.floor(math.log2(max(n_rows / (held * max(noise, _RECORDS_IN_LEAF * n_classes)), 1.0))), 1),
            _DEEPEST,
        )


@dataclass(frozen=True)
class Shares:
    """Parts of the budget, by which mechanisms are made."""

    epsilon: float
    delta: float
    releases: list[Release] = field(default_factory=list)
    events: list[PrivacyEvent] = field(default_factory=list)

    def add(self, label: str, made: tuple[Mechanism, PrivacyEvent], share: float, theorem: int) -> None:
        self.releases.append(Release(label, made[0], share, Theorem("Trees", theorem)))
        self.events.append(made[1] if self.epsilon < math.inf else PureEvent(self.epsilon))

    def reserve(self, label: str, share: float) -> None:
        event: GaussianEvent | PureEvent = PureEvent(pure_share(self.epsilon, share))
        if self.epsilon < math.inf and self.delta > 0:
            # A little more than the sum of its parts, which rounding might exceed; `gaussian_mu` leaves more than that.
            event = GaussianEvent(gaussian_mu(self.epsilon, self.delta) * math.sqrt(share) * (1 + 2.0**-48))
        elif self.epsilon < math.inf:
            event = PureEvent(self.epsilon * share)
        self.add(label, (Reserved(event), event), share, 6)

    def guarantee(self) -> PrivacyGuarantee:
        return PrivacyGuarantee(self.epsilon, self.delta, tuple(self.events), tuple(self.releases))


@dataclass(frozen=True)
class Trees:
    """What is known of trees before they are drawn: functions of public and of released numbers."""

    n_trees: int
    depth: int
    few: bool  # because of the noise, or nearly
    mechanisms: dict[str, Mechanism]

    @property
    def noise(self) -> float:
        """Standard deviation of the noise in a leaf's count."""
        return math.sqrt(coordinate_variance(self.mechanisms[_COUNTS]))


def plan_trees(
    parameters: Parameters, n_features: int, n_classes: int, n_rows: float | None, share: float, shares: Shares
) -> Trees:
    """Add the leaf counts, and what the weights follow from, to the releases; together, they take `share`."""
    epsilon, delta = parameters.epsilon, parameters.delta

    # The size of the vector depends on the depth, and on it a little of the noise; the choices only on its scale.
    def noise(weight_share: float, n_trees: int) -> float:
        return math.sqrt(coordinate_variance(count_mechanism(epsilon, delta, share - weight_share, n_trees, 1)[0]))

    def trees(weight_share: float) -> int:
        return parameters.n_trees(n_features, n_classes, n_rows, partial(noise, weight_share))

    newton = parameters.weights == "newton"
    weight_share = 2 * _SCALE_SHARE + _STEP_SHARE if newton else 0.0
    n_trees = trees(weight_share)
    enough = min(n_features, parameters.most_trees(n_features))
    few = n_trees < enough or parameters.noisy(n_rows, n_classes, noise(weight_share, n_trees))
    if newton and few:
        # Noise costs trees already, or nearly: counts need the share more than weights do.
        weight_share = _SCALE_SHARE
        n_trees = trees(weight_share)
    depth = parameters.depth(noise(weight_share, n_trees), n_features, n_classes, n_trees, n_rows)
    before = len(shares.releases)
    count_share = share - weight_share
    size = n_trees * 2**depth * n_classes
    shares.add(_COUNTS, count_mechanism(epsilon, delta, count_share, n_trees, size), count_share, 1)
    if newton:
        shares.add(_SCALE, choice_mechanism(epsilon, delta, _SCALE_SHARE, 1.0), _SCALE_SHARE, 7)
    if weight_share > _SCALE_SHARE:
        step = Step(n_trees, n_classes)
        if parameters.private:
            made = l2_mechanism(epsilon, delta, _STEP_SHARE, step.sensitivity, step.size)
        else:
            made = NoNoise(step.sensitivity), PureEvent(epsilon)
        shares.add(_STEP, made, _STEP_SHARE, 2)
        shares.add(_LENGTH, choice_mechanism(epsilon, delta, _SCALE_SHARE, 1.0), _SCALE_SHARE, 7)
    mechanisms = {release.label: release.mechanism for release in shares.releases[before:]}
    return Trees(n_trees, depth, few, mechanisms)


@dataclass(frozen=True)
class Plan:
    """What is going to be released; the trees only if they depend on public numbers alone."""

    guarantee: PrivacyGuarantee
    rest: float
    trees: Trees | None

    def mechanism(self, label: str) -> Mechanism | None:
        return next((r.mechanism for r in self.guarantee.releases if r.label == label), None)


def make_plan(parameters: Parameters, n_features: int, n_classes: int, n_numeric: int) -> Plan:
    """Return the releases: cut points if wanted, class counts if the trees are to follow from them, and the trees'."""
    epsilon, delta = parameters.epsilon, parameters.delta
    shares = Shares(epsilon, delta)
    rest = 1.0
    if parameters.thresholds == "quantile" and n_numeric:
        rest -= _CUT_SHARE
        shares.add(
            _CUTS, quantile_mechanism(epsilon, delta, _CUT_SHARE, *even_levels(_LEVELS), n_numeric), _CUT_SHARE, 3
        )
    trees = None
    if parameters.adaptive:
        rest -= _CLASS_SHARE
        shares.add(_CLASSES, count_mechanism(epsilon, delta, _CLASS_SHARE, 1, n_classes + 1), _CLASS_SHARE, 1)
        shares.reserve(_TREES, rest)
    else:
        n_rows = parameters.expected_n
        trees = plan_trees(parameters, n_features, n_classes, n_rows, rest, shares)
    return Plan(shares.guarantee(), rest, trees)


def leaf_scores(route: Routes, table: Array, X: NDArray) -> Iterator[Array]:
    """Look up the scores of rows, of shape (n_scores, n_rows), tree by tree."""
    for values, leaves in zip(table, route(X), strict=True):
        yield values.T.take(leaves, axis=1)


def node_scores(leaves: Array, inner: Array, prior: Array) -> Array:
    """Return the scores of leaves and inner nodes, numbered as routes number them."""
    return scores(np.concatenate([leaves, inner], axis=1), prior)


def _postprocess_rows(counts: Array, spread: float) -> float:
    """Return the number of records, less one standard deviation of its noise: few trees for many do less harm."""
    return max(float(counts.sum()) - spread * math.sqrt(len(counts)), 1.0)


def _warn_of_labels(counted: Array, spread: float) -> None:
    """Warn if fewer than a tenth of the records can have a declared label, by released counts."""
    # If a tenth has, nine times their number is at least that of the others. The noise in the difference is symmetric
    # and log-concave, and hence below 7.3 standard deviations but for a probability of one in a thousand: for such
    # noise, the probability of more than t standard deviations is below exp(1 - t) for both sides together.
    declared, other = float(counted[:-1].sum()), float(counted[-1])
    if other - 9 * declared > 50 + 7.3 * spread * math.sqrt(81 * (len(counted) - 1) + 1):
        warn(
            "the released counts show that fewer than a tenth of the records have a label that is in classes. Check "
            "that the labels are spelled as y holds them, with the same type. The budget was charged",
            SchemaMismatchWarning,
        )


def _warn_of_counts(
    forest: Forest,
    counts: Array,
    noise: float,
    classes: NDArray,
    names: NDArray | None,
    first: tuple[Array, float] | None,
) -> None:
    """Warn of declared labels and codes that hardly occur, by the released counts of trees.

    A tree counts each record with a declared label once, unless the record has an unknown code where a level asks for
    one. Therefore trees that split by one categorical column alone show how many records have its codes. Noise is
    independent from leaf to leaf. Where there were class counts before, labels were compared by them.
    """
    categorical = set(forest.places if forest.depth else [])
    trees: dict[tuple[int, ...], list[int]] = {}
    for tree, (seen, n_seen) in enumerate(zip(forest.features, forest.n_seen, strict=True)):
        trees.setdefault(tuple(sorted(categorical & set(seen[:n_seen].tolist()))), []).append(tree)
    n_leaves = forest.reachable().sum(axis=1)
    found = {
        columns: (counts[own].sum(axis=(0, 1)) / len(own), noise * math.sqrt(n_leaves[own].sum()) / len(own))
        for columns, own in trees.items()
        if len(columns) < 2
    }
    every = found.pop((), None) if first is None else first
    root = math.sqrt(len(classes))
    totals = {columns[0]: (float(own.sum()), spread * root) for columns, (own, spread) in found.items() if columns}
    parts = [column_part(j if names is None else str(names[j]), *own) for j, own in totals.items()]
    if every is not None:
        labels = [] if first else label_parts(classes, *every)
        warn_of_mismatch(float(every[0].sum()), every[1] * root, [*labels, *parts], labels=first is None)
    elif totals:
        most, spread = (max(each) for each in zip(*totals.values(), strict=True))
        warn_of_mismatch(most, spread, parts, labels=True, n_totals=len(totals))


def _postprocess_step(mechanism: Mechanism, step: Step, released: Array) -> Array:
    """Return the change of the weights of the trees, and of constants, from the released sums."""
    spread = math.sqrt(coordinate_variance(mechanism))
    # The largest eigenvalue of a symmetric Gaussian matrix of this size.
    largest = spread * math.sqrt(2 * step.n_weights) * step.curvature
    return newton_step(step, released, _RIDGE * largest, spread * step.gradient)


class DPRandomTree(TreeClassifier, ClassifierMixin, LabelsMixin, BaseEstimator):
    r"""Differentially private forest of random trees with noisy leaf counts.

    The trees are drawn at random from public numbers. The class counts of all their leaves are released with noise, and
    then the sums for one step towards the trees' weights. It takes four passes over the data, in blocks of rows,
    whatever the number of classes, categories and features. By default, every feature has a tree of its own: the model
    is then additive in the features, as naive Bayes is, with weights that take into account what features share.

    Parameters
    ----------
    n_estimators : int, default=None
        Number of trees. None is the number of features, and at most 64 with ``delta=0``; otherwise at most 256, and
        twice as many trees as features if that does not exceed 64; but fewer, down to 4, where the noise in a count,
        which grows with the number of trees, would exceed an eighth of `expected_n` over the number of classes. If
        `expected_n` is None, a noisy count stands for it.
    epsilon : float, default=1.0
        Privacy budget of one fit, positive. ``inf`` adds no noise and gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1). With 0, the fit is pure epsilon-DP, with noise that grows with the number
        of trees; otherwise it is Gaussian, and grows with its square root. Choose it far below one over the number of
        records.
    bounds : tuple (lower, upper)
        Bounds of the numeric features, from public knowledge: numbers, or one for each column of X, or one for each
        numeric column. Values beyond are clipped, silently.
    categorical_features : array-like, default=None
        Categorical columns: positions, names, or a mask. None for none.
    n_categories : int or array-like of int, default=None
        Numbers of categories of these columns, in the same order; required with them. Categories are coded
        0, 1, ..., as by :class:`sklearn.preprocessing.OrdinalEncoder` with declared categories. Any other value is
        unknown: in `fit`, the record does not count in trees that split by this column; in `predict`, the row stays in
        the node that does, and takes its class distribution.
    max_depth : int, default=None
        Splits from root to leaf, from 0 to 16. None is a function of `expected_n`, or of the noisy count that stands
        for it, of the noise and of the numbers of classes, features and trees. If `n_estimators` is set and
        `expected_n` is None, it is 5.
    max_features : int, default=None
        Number of features that a tree sees. None is 1, and 2 in trees that come on top of one for each feature, or as
        many as it takes to see each feature once.
    expected_n : int, default=None
        Roughly the number of records, from public knowledge, to choose the number of trees and the depth by. It need
        not be right. With None, and unless `n_estimators` is set, 4 % of the budget is spent on noisy class counts,
        which are used instead.
    thresholds : {"uniform", "quantile"}, default="uniform"
        How numeric features are split: evenly within their bounds, at random, or evenly between cut points that take
        a tenth of the budget. ``"quantile"`` is for bounds that are far wider than what most records need.
    weights : {"newton", "equal"}, default="newton"
        ``"newton"`` spends 2 % of the budget on a choice between equal weights of several sizes, 0 included, and 22 %
        on a step from there to better ones, and on its length. Where there is much noise for the number of records,
        there is no step, and leaf counts get its part. ``"equal"`` spends nothing on weights, and has no safeguard
        against evidence that many columns repeat: it may be worse than a constant.
    structure_seed : int, default=0
        Seed of the trees' structure, which is public. It has nothing to do with the noise.
    classes : array-like, default=None
        The public label set, of at least two labels. Rows with other labels are left out. With None, the labels
        in `y` are taken to be public, with a warning.
    schema : Schema, default=None
        Public facts about the columns of a table, in place of `bounds`, `classes`, `categorical_features` and
        `n_categories`. A value that is given for `bounds` or `classes` counts instead of the schema's. X is
        then the table itself, with text and missing values.
    accountant : BudgetAccountant, default=None
        Budget that is charged before any noise is drawn. ``clone`` shares it.
    random_state : int, RandomState, Generator or None, default=None
        None takes noise from the operating system's cryptographic generator. Anything else makes noise that can
        be reproduced, and subtracted: for tests only.

    Attributes
    ----------
    structure_ : Forest
        The trees' structure; a function of public numbers, and of released cut points.
    leaf_counts_ : ndarray of shape (n_trees, n_leaves, n_classes)
        Noisy counts; 0 in leaves that no record can reach.
    leaf_proba_ : ndarray of shape (n_trees, n_leaves, n_classes)
        Class distributions in the leaves, smoothed.
    inner_proba_ : ndarray of shape (n_trees, n_leaves - 1, n_classes)
        Class distributions in the other nodes, level by level, for rows with unknown categories.
    class_prior_ : ndarray of shape (n_classes,)
        Noisy class frequencies.
    tree_weights_ : ndarray of shape (n_trees,)
        What the trees' scores are multiplied with.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Constants of the classes.
    classes_ : ndarray of shape (n_classes,)
        The label set, sorted.
    privacy_ : PrivacyGuarantee
        The guarantee, with mechanism, sensitivity and noise scale.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, where X has string names.

    See Also
    --------
    export_text : The trees, as text.

    Notes
    -----
    **Privacy.** The trees depend on public numbers only. One record adds 1 to one count of each of :math:`T` trees: it
    moves all counts together by :math:`T` in L1 norm and by :math:`\sqrt T` in L2 norm. Counts get discrete Laplace
    noise for the first, or Gaussian noise for the second. In the step, a record's curvature and gradient are scaled
    down to a public norm, together. The size of the weights and the length of the step are chosen by Brier scores,
    which one record moves by at most 1, all in one direction. Each cut point is drawn by the exponential mechanism. One
    record changes one class count by 1. The releases that depend on the class counts use the same part of the budget
    for all counts, because noise grows with the number of trees: composition is adaptive. Everything else is computed
    from what was released. A `SchemaMismatchWarning` is raised if hardly any record has a declared label, or a declared
    code of a categorical column. It is computed from the released counts. Not covered: that `fit` raises an error for
    values that are not finite, and how long it takes.

    References
    ----------
    .. [1] G. Jagannathan, K. Pillaipakkamnatt and R. N. Wright, "A Practical Differentially Private Random Decision
       Tree Classifier", ICDM Workshops 2009.
    .. [2] S. Fletcher and M. Z. Islam, "Decision Tree Classification with Differential Privacy: A Survey", ACM
       Computing Surveys 52, 2019.
    .. [3] H. Nori, R. Caruana, Z. Bu, J. H. Shen and J. Kulkarni, "Accuracy, Interpretability, and Differential Privacy
       via Explainable Boosting", ICML 2021.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skdp.tree import DPRandomTree
    >>> X, y = load_iris(return_X_y=True)
    >>> bounds = [4, 2, 1, 0], [8, 5, 7, 3]
    >>> model = DPRandomTree(epsilon=10.0, delta=1e-5, bounds=bounds, classes=[0, 1, 2], random_state=0)
    >>> model.fit(X, y).predict_proba(X).shape
    (150, 3)
    """

    _released = frozenset(
        {"structure_", "leaf_counts_", "leaf_proba_", "inner_proba_", "class_prior_", "tree_weights_", "intercept_"}
    )

    def __init__(
        self,
        *,
        n_estimators: int | None = None,
        epsilon: float = 1.0,
        delta: float = 0.0,
        bounds: Any = None,
        categorical_features: Any = None,
        n_categories: Any = None,
        max_depth: int | None = None,
        max_features: int | None = None,
        expected_n: int | None = None,
        thresholds: str = "uniform",
        weights: str = "newton",
        structure_seed: int = 0,
        classes: Any = None,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categorical_features = categorical_features
        self.n_categories = n_categories
        self.max_depth = max_depth
        self.max_features = max_features
        self.expected_n = expected_n
        self.thresholds = thresholds
        self.weights = weights
        self.structure_seed = structure_seed
        self.classes = classes
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state

    def _read(self, X: Any, y: Any, parameters: Parameters) -> tuple[Any, Any, None, Shape]:
        # Records with other labels count among the labels, and are left out afterwards.
        X, codes, _, shape = super()._read(X, y, parameters)
        return X, codes, None, shape

    def _plan(self, parameters: Parameters, shape: Shape) -> tuple[PrivacyGuarantee, tuple[Columns, Plan]]:
        columns = parameters.columns.resolve(shape.n_features, shape.names, named=shape.is_read)
        plan = make_plan(parameters, shape.n_features, shape.n_classes, len(columns.numeric))
        return plan.guarantee, (columns, plan)

    def _measure(
        self, session: ReleaseSession, records: Records, parameters: Parameters, design: tuple[Columns, Plan]
    ) -> dict[str, Any]:
        columns, plan = design
        X, all_codes, classes, n_features = records.X, records.y, records.shape.classes, records.shape.n_features
        codes, known = all_codes, all_codes >= 0
        if not known.all():
            X, codes = X[known], codes[known]
        warps = {}
        if plan.mechanism(_CUTS) is not None:
            cuts = session.release(_CUTS, columns.grid.counts(X, columns.numeric))
            warps = dict(zip(columns.numeric.tolist(), columns.grid.edges(cuts), strict=True))
        trees, first = plan.trees, None
        counter = plan.mechanism(_CLASSES)
        if trees is None and counter is not None:
            spread = math.sqrt(coordinate_variance(counter))
            counted = session.release(_CLASSES, class_counts(all_codes, len(classes)))
            _warn_of_labels(counted, spread)
            first = counted[:-1], spread
            chosen = Shares(parameters.epsilon, parameters.delta)
            n_rows = _postprocess_rows(*first)
            trees = plan_trees(parameters, n_features, len(classes), n_rows, plan.rest, chosen)
            session.refine(_TREES, chosen.releases, chosen.events)
        assert trees is not None
        n_seen = parameters.n_seen(trees.n_trees, n_features)
        stream = NoiseSource(parameters.structure_seed).stream("structure of trees")
        forest = grow(columns, n_seen, trees.depth, stream, warps)
        reachable = forest.reachable()
        counts = session.release(_COUNTS, leaf_counts(forest, X, codes, len(classes))) * reachable[:, :, None]
        _warn_of_counts(forest, counts, trees.noise, classes, records.shape.names, first)
        levels = class_distributions(counts, reachable, trees.noise, trees.few, first)
        inner = np.concatenate([np.empty((trees.n_trees, 0, len(classes))), *levels[:-1]], axis=1)
        distributions, prior = np.array(levels[-1]), np.array(levels[0][0, 0])

        step = Step(trees.n_trees, len(classes))
        weights = step.first_weights(sum(n_seen) / n_features)
        if _SCALE in trees.mechanisms:
            base, table = log_odds(np.log(prior)), node_scores(distributions, inner, prior)
            route = forest.router(len(X))

            def looked_up(rows: NDArray) -> Iterator[Array]:
                return leaf_scores(route, table, rows)

            def choose(label: str, line: Line) -> Array:
                found = line_scores(line, trees.mechanisms[label].scale, base, looked_up, X, codes)
                return line.at(int(session.release(label, found)[0]))

            weights = choose(_SCALE, Line(np.zeros_like(weights), weights, *SCALES))
            mechanism = trees.mechanisms.get(_STEP)
            if mechanism is not None:
                start = weights

                def terms(rows: NDArray, labels: NDArray[np.intp]) -> tuple[Array, Array]:
                    return record_terms(step, np.stack(list(looked_up(rows))), base, start, labels)

                released = session.release(_STEP, within_reach(mechanism, newton_sums(step, terms, X, codes)))
                change = _postprocess_step(mechanism, step, released)
                weights = choose(_LENGTH, Line(start, change, *LENGTHS))
        return {
            "structure_": forest,
            "leaf_counts_": counts,
            "leaf_proba_": distributions,
            "inner_proba_": inner,
            "class_prior_": prior,
            "tree_weights_": weights[: trees.n_trees],
            "intercept_": weights[trees.n_trees :],
        }

    def _fixed_cost(self) -> PrivacyCost | None:
        parameters = self._check_parameters()
        if parameters.thresholds == "quantile":
            # It matters whether there is a numeric column.
            return None
        if parameters.weights == "newton" and parameters.expected_n is not None and parameters.private:
            # Whether there is a step depends on the numbers of features and classes.
            return None
        return make_plan(parameters, 1, 2, 0).guarantee.cost

    def _check_parameters(self) -> Parameters:
        return Parameters(
            epsilon=check_epsilon(self.epsilon),
            delta=check_delta(self.delta),
            columns=check_columns(self, n_cells=_GRID, most=MOST_CATEGORIES),
            n_estimators=check_optional(self.n_estimators, "n_estimators", 1, 10_000),
            max_depth=check_optional(self.max_depth, "max_depth", 0, 16),
            max_features=check_optional(self.max_features, "max_features", 1, 10_000),
            expected_n=check_optional(self.expected_n, "expected_n", 1, 10**12),
            thresholds=check_choice(self.thresholds, "thresholds", THRESHOLDS),
            weights=check_choice(self.weights, "weights", WEIGHTS),
            structure_seed=check_integer(self.structure_seed, "structure_seed", least=0),
        )

    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        X = self._rows(X)
        table = node_scores(self.leaf_proba_, self.inner_proba_, self.class_prior_)
        base = log_odds(np.log(self.class_prior_))
        weights = np.concatenate([self.tree_weights_, self.intercept_])
        route, size = self.structure_.router(len(X)), min(ROUTED, max(16, _LOOKED_UP // len(base)))
        blocks = (X[start : start + size] for start in range(0, max(len(X), 1), size))
        return np.concatenate(
            [probabilities(decision(base, leaf_scores(route, table, rows), weights)).T for rows in blocks]
        )

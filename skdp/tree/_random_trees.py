r"""Forests of random trees with noisy leaves (Jagannathan, Pillaipakkamnatt and Wright 2009), for labels and targets.

A target between its bounds counts as shares of the two ends, and the rest is as for two classes: a fractional logistic
regression. `_forest` describes the fit, and `_outcomes` the sums in leaves, with their sensitivity.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from ..release.estimator import LabelsMixin, Shape, TargetsMixin
from ..solvers.regularised import Scaling
from ._base import TreeClassifier
from ._forest import RandomTrees
from ._outcomes import Labels, Targets

Array = NDArray[np.float64]


class DPRandomTree(TreeClassifier, ClassifierMixin, RandomTrees, LabelsMixin, BaseEstimator):
    r"""Differentially private forest of random trees with noisy leaf counts.

    The trees are drawn at random from public numbers. The class counts of all their leaves are released with noise, and
    then the sums for one step towards the weights of the trees. By default, every feature has its own tree.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        In [0, 1), far below one over the number of records. If 0, the fit is pure epsilon-DP, with more noise.
    schema : Schema, default=None
        Declaration of the columns of X, in place of `bounds`, `classes`, `categorical_features` and `n_categories`.
        Explicit parameters override it.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.
    n_estimators : int, default=None
        Number of trees. If None, public numbers, `expected_n` and a noisy count determine it: about one for each
        feature, and at most 256 (see :doc:`/user_guide/trees_algorithm`).
    max_depth : int, default=None
        Number of splits from root to leaf, from 0 to 16. If None, it follows from `expected_n` (or a noisy count) and
        the noise. If `n_estimators` is set and `expected_n` is None, it is 5.
    max_features : int, default=None
        Number of features of a tree. If None, it is 1, and 2 in additional trees, or as many as use each feature once.
    expected_n : int, default=None
        Publicly known, approximate number of records, from which the number of trees and the depth follow. If None, and
        unless `n_estimators` is set, 4 % of the budget is spent on noisy class counts.
    thresholds : {"uniform", "quantile"}, default="uniform"
        Splits of numeric features: even, or at cut points for a tenth of the budget, if the bounds are far too wide.
    weights : {"newton", "equal"}, default="newton"
        Weights of the trees. ``"newton"`` learns them from up to 24 % of the budget. ``"equal"`` spends nothing, but
        counts evidence several times if many columns repeat it.
    bounds : tuple (lower, upper)
        Public bounds of the numeric features: two numbers, or two arrays. Values beyond are clipped.
    categorical_features : array-like, default=None
        Categorical columns, given by positions, names, or a mask. If None, there are none.
    n_categories : int or array-like of int, default=None
        Numbers of categories of these columns, coded 0, 1, ... Required with `categorical_features`. `fit` does not
        count records with other values in trees that split by the column, and `predict` stops at such a node.
    classes : array-like, default=None
        Public label set. Other rows are left out. If None, the labels in `y` count as public, with a warning.
    class_weight : dict or "balanced", default=None
        Public weights of the labels. ``"balanced"`` computes them from 4 % of the budget (see :ref:`weights`).
    max_weight : float, default=None
        Public upper bound on `sample_weight` in `fit`. Larger weights count as `max_weight`. Required with weights.
    structure_seed : int, default=0
        Public seed of the structure of the trees. It does not affect the noise.

    Attributes
    ----------
    structure_ : object
        Structure of the trees, drawn from public numbers and released cut points (:ref:`trees_structure`).
        `export_text` prints it.
    leaf_counts_ : ndarray of shape (n_trees, n_leaves, n_classes)
        Noisy counts.
    leaf_proba_ : ndarray of shape (n_trees, n_leaves, n_classes)
        Class distributions in the leaves, smoothed.
    inner_proba_ : ndarray of shape (n_trees, n_leaves - 1, n_classes)
        Class distributions in the other nodes, level by level, for rows with unknown categories.
    class_prior_ : ndarray of shape (n_classes,)
        Noisy class frequencies.
    tree_weights_ : ndarray of shape (n_trees,)
        Factors of the scores of the trees.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Constants of the classes.
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
    DPRandomTreeRegressor : Regression by the same method.
    export_text : Export the trees as text.

    Notes
    -----
    **Privacy.** One record adds 1 to one count of each of :math:`T` trees, which moves all counts by :math:`T` in L1
    norm and by :math:`\sqrt T` in L2 norm (:ref:`trees, theorem 1 <trees-theorem-1>`). The weights of the trees
    (:ref:`theorems 2 <trees-theorem-2>` and :ref:`7 <trees-theorem-7>`) and cut points (:ref:`theorem 3
    <trees-theorem-3>`) are more releases, which :ref:`theorem 6 <trees-theorem-6>` composes. The rest is
    post-processing.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPRandomTree, Schema
    >>> k = np.arange(5000)
    >>> age, smokes = 18 + k % 72, np.where(k % 5 < 2, "yes", "no")
    >>> ill = age + 16 * (smokes == "yes") + 20 * np.sin(k) > 60
    >>> columns = {"age": (18, 90), "smokes": ["no", "yes"]}
    >>> schema = Schema(columns, target=[False, True])
    >>> model = DPRandomTree(epsilon=1, delta=1e-6, schema=schema, random_state=0)
    >>> model = model.fit({"age": age, "smokes": smokes}, ill)
    >>> people = {"age": [40, 60], "smokes": ["no", "yes"]}
    >>> model.predict_proba(people)[:, 1].round(1)
    array([0.1, 0.8])
    """

    _released = RandomTrees._released | {"leaf_proba_", "inner_proba_", "class_prior_"}

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        n_estimators: int | None = None,
        max_depth: int | None = None,
        max_features: int | None = None,
        expected_n: int | None = None,
        thresholds: str = "uniform",
        weights: str = "newton",
        bounds: Any = None,
        categorical_features: Any = None,
        n_categories: Any = None,
        classes: Any = None,
        class_weight: Any = None,
        max_weight: float | None = None,
        structure_seed: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.max_features = max_features
        self.expected_n = expected_n
        self.thresholds = thresholds
        self.weights = weights
        self.bounds = bounds
        self.categorical_features = categorical_features
        self.n_categories = n_categories
        self.classes = classes
        self.class_weight = class_weight
        self.max_weight = max_weight
        self.structure_seed = structure_seed

    def _read(self, X: Any, y: Any, parameters: Any) -> tuple[Any, Any, None, Shape]:
        # Records with other labels are counted as one more label, and are left out afterwards.
        X, codes, _, shape = super()._read(X, y, parameters)
        return X, codes, None, shape

    def _outcome(self, shape: Shape) -> Labels:
        return Labels(shape.n_classes)

    def _fitted(
        self, outcome: Any, counts: Array, leaves: Array, inner: Array, prior: Array, intercept: Array
    ) -> dict[str, Any]:
        return {
            "leaf_counts_": counts,
            "leaf_proba_": leaves,
            "inner_proba_": inner,
            "class_prior_": prior,
            "intercept_": intercept,
        }

    def _proba(self, X: NDArray) -> Array:
        return self._probabilities(X, self.leaf_proba_, self.inner_proba_, self.class_prior_, self.intercept_).T


class DPRandomTreeRegressor(RegressorMixin, RandomTrees, TargetsMixin, BaseEstimator):
    r"""Differentially private regression by a forest of random trees with noisy sums in their leaves.

    .. versionadded:: 0.2

    The trees are drawn at random from public numbers. The numbers of records and the sums of targets of all their
    leaves are released with noise, and then the sums for one step towards the weights of the trees. By default, every
    feature has its own tree.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        In [0, 1), far below one over the number of records. If 0, the fit is pure epsilon-DP, with more noise.
    schema : Schema, default=None
        Declaration of the columns of X, in place of `bounds`, `bounds_y`, `categorical_features` and `n_categories`.
        Explicit parameters override it.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.
    n_estimators : int, default=None
        Number of trees. If None, public numbers, `expected_n` and a noisy count determine it: about one for each
        feature, and at most 256 (see :doc:`/user_guide/trees_algorithm`).
    max_depth : int, default=None
        Number of splits from root to leaf, from 0 to 16. If None, it follows from `expected_n` (or a noisy count) and
        the noise. If `n_estimators` is set and `expected_n` is None, it is 5.
    max_features : int, default=None
        Number of features of a tree. If None, it is 1, and 2 in additional trees, or as many as use each feature once.
    expected_n : int, default=None
        Publicly known, approximate number of records, from which the number of trees and the depth follow. If None, the
        released number of records takes its place.
    thresholds : {"uniform", "quantile"}, default="uniform"
        Splits of numeric features: even, or at cut points for a tenth of the budget, if the bounds are far too wide.
    weights : {"newton", "equal"}, default="newton"
        Weights of the trees. ``"newton"`` learns them from up to 24 % of the budget. ``"equal"`` spends nothing, but
        counts evidence several times if many columns repeat it.
    bounds : tuple (lower, upper)
        Public bounds of the numeric features: two numbers, or two arrays. Values beyond are clipped.
    bounds_y : tuple (lower, upper)
        Public bounds of the targets, which may be generous (see :ref:`regression`). Targets beyond are clipped.
    categorical_features : array-like, default=None
        Categorical columns, given by positions, names, or a mask. If None, there are none.
    n_categories : int or array-like of int, default=None
        Numbers of categories of these columns, coded 0, 1, ... Required with `categorical_features`. `fit` does not
        count records with other values in trees that split by the column, and `predict` stops at such a node.
    max_weight : float, default=None
        Public upper bound on `sample_weight` in `fit`. Larger weights count as `max_weight`. Required with weights.
    structure_seed : int, default=0
        Public seed of the structure of the trees. It does not affect the noise.

    Attributes
    ----------
    structure_ : object
        Structure of the trees (:ref:`trees_structure`), as in :class:`DPRandomTree`. `export_text` prints it.
    leaf_counts_ : ndarray of shape (n_trees, n_leaves)
        Noisy numbers of records.
    leaf_sums_ : ndarray of shape (n_trees, n_leaves)
        Noisy sums of targets minus the middle of their released range.
    leaf_means_ : ndarray of shape (n_trees, n_leaves)
        Means of targets in the leaves, shrunk.
    inner_means_ : ndarray of shape (n_trees, n_leaves - 1)
        Means in the other nodes, level by level, for rows with unknown categories.
    mean_ : float
        Noisy mean of the targets.
    tree_weights_ : ndarray of shape (n_trees,)
        Factors of the scores of the trees.
    intercept_ : float
        Constant of the log-odds, in addition to those of the mean.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit, with its mechanisms, sensitivities and noise scales.
    feature_importances_ : ndarray of shape (n_features,)
        Decreases of the squared error by the splits of each column, from released sums, divided by their sum.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    DPRandomTree : Classification by the same method.
    skdp.additive.DPAdditiveRegressor : A curve for each column.
    export_text : Export the trees as text.

    Notes
    -----
    **Privacy.** A range of the targets, their mean in it and the number of records are released first
    (:ref:`regression, theorem 1 <regression-theorem-1>`). In one leaf of each of :math:`T` trees, a record adds to sums
    of its target, clipped to this range. One record moves all sums together by at most :math:`\sqrt T` in L2 norm and
    :math:`33T/32` in L1 norm (:ref:`trees, theorem 9 <trees-theorem-9>`). Weights and cut points are as in
    :class:`DPRandomTree`, with squared errors as losses (:ref:`theorems 2 <trees-theorem-2>`, :ref:`3
    <trees-theorem-3>` and :ref:`7 <trees-theorem-7>`). The rest is post-processing.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPRandomTreeRegressor, Schema
    >>> k = np.arange(5000)
    >>> age, smokes = 18 + k % 72, np.where(k % 5 < 2, "yes", "no")
    >>> cost = 200 + 10 * age + 500 * (smokes == "yes") + 100 * np.sin(k)
    >>> columns = {"age": (18, 90), "smokes": ["no", "yes"]}
    >>> schema = Schema(columns, target=(0, 3000))
    >>> model = DPRandomTreeRegressor(
    ...     epsilon=1, delta=1e-6, schema=schema, random_state=0
    ... )
    >>> model = model.fit({"age": age, "smokes": smokes}, cost)
    >>> people = {"age": [30, 70], "smokes": ["no", "yes"]}
    >>> model.predict(people).round(-2)
    array([ 500., 1400.])
    """

    _released = RandomTrees._released | {"leaf_sums_", "leaf_means_", "inner_means_", "mean_", "_shares", "_targets"}

    bounds_y: Any
    intercept_: float
    _shares: tuple[Array, Array, Array]
    _targets: Targets

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        n_estimators: int | None = None,
        max_depth: int | None = None,
        max_features: int | None = None,
        expected_n: int | None = None,
        thresholds: str = "uniform",
        weights: str = "newton",
        bounds: Any = None,
        bounds_y: Any = None,
        categorical_features: Any = None,
        n_categories: Any = None,
        max_weight: float | None = None,
        structure_seed: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.max_features = max_features
        self.expected_n = expected_n
        self.thresholds = thresholds
        self.weights = weights
        self.bounds = bounds
        self.bounds_y = bounds_y
        self.categorical_features = categorical_features
        self.n_categories = n_categories
        self.max_weight = max_weight
        self.structure_seed = structure_seed

    def _outcome(self, shape: Shape) -> Targets:
        return Targets(Scaling.of_target(self._declared("bounds_y"), True))

    def _fitted(
        self, outcome: Any, counts: Array, leaves: Array, inner: Array, prior: Array, intercept: Array
    ) -> dict[str, Any]:
        return {
            "leaf_counts_": counts.sum(axis=2),
            "leaf_sums_": outcome.scaling.half * (counts[:, :, 1] - counts[:, :, 0]),
            "leaf_means_": outcome.values(leaves[:, :, 1]),
            "inner_means_": outcome.values(inner[:, :, 1]),
            "mean_": float(outcome.values(prior[1])),
            "intercept_": float(intercept[0]),
            "_shares": (leaves, inner, prior),
            "_targets": outcome,
        }

    def predict(self, X: Any) -> Array:
        """Return predictions within the released range of the targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predictions.
        """
        X = self._rows(X)
        leaves, inner, prior = self._shares
        return self._targets.values(self._probabilities(X, leaves, inner, prior, np.array([self.intercept_]))[1])

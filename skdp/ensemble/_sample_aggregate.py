r"""Sample and aggregate, for any estimator or statistic (Nissim, Raskhodnikova and Smith 2007; Smith 2011).

Records are drawn into blocks independently and in secret. An estimator without privacy is fitted to each block. Its
results, clipped to public bounds, are aggregated. The release is the sum over blocks with noise (see ``blocks_l2`` and
``blocks_l1``), or a median that is chosen privately for each number (see `cell_scores`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from ..accounting import GaussianEvent, PrivacyCost, PrivacyEvent, PureEvent, bounded_range_epsilon, gaussian_mu
from ..checks.data import validate_quietly
from ..checks.params import (
    By,
    Checked,
    Integer,
    OneOf,
    Or,
    Real,
    Rules,
    anything,
    check_bounds,
    check_integer,
    check_n_jobs,
    columns_of,
    shown,
)
from ..mechanisms import GroupChoices, Mechanism, NoNoise, l2_mechanism, pure_share
from ..parts.arrays import count_rows, rowwise
from ..release.blocks import (
    MOST_BLOCKS,
    InnerScores,
    block_labels,
    block_seeds,
    check_inner,
    check_sent,
    offers,
    over_blocks,
    tried,
)
from ..release.estimator import LabelsMixin, OutcomesMixin, PrivateEstimator, Records, RowsMixin, Shape, TargetsMixin
from ..release.session import CallbackSupportMixin, Phases, PrivacyGuarantee, Release, ReleaseSession, Theorem
from ..sensitivity import SUM_BITS
from ._results import (
    Region,
    Template,
    as_numbers,
    block_result,
    cell_scores,
    fitted,
    made_up_rows,
    numbers_of,
    postprocess_mean,
    postprocess_model,
    predict_the_same,
    shapes_of,
)

Array = NDArray[np.float64]

ATTRIBUTES = ("coef_", "intercept_")

SUM = "results, summed over blocks"
MEDIAN = "medians over blocks"

#: Number of blocks if the number of records is not declared. Otherwise, a block has so many records for each number of
#: the result, if there are enough.
DEFAULT_BLOCKS, FEWEST_BLOCKS, ROWS_PER_NUMBER = 100, 10, 20

#: Largest grid for the median.
_MOST_CELLS = 2**20

#: Number of rows of a trial on made-up data.
_TRIAL_ROWS, _TRIAL_ROWS_PER_CLASS = 50, 10


def make_plan(parameters: Checked, region: Region) -> PrivacyGuarantee:
    """Return the one release."""
    epsilon, delta, p = parameters.epsilon, parameters.delta, region.size
    mechanism: Mechanism
    event: PrivacyEvent = PureEvent(epsilon)
    if parameters.aggregator == "mean":
        label, (mechanism, event) = SUM, l2_mechanism(epsilon, delta, 1.0, region.l2, p)
    elif epsilon == math.inf:
        label, mechanism = MEDIAN, NoNoise(1.0)
    elif delta > 0:
        event = GaussianEvent(gaussian_mu(epsilon, delta))
        each = bounded_range_epsilon(event.noise_mu / math.sqrt(p))
        label, mechanism = MEDIAN, GroupChoices(each, 1.0, bounded_range=True)
    else:
        label, mechanism = MEDIAN, GroupChoices(pure_share(epsilon, 1 / p), 1.0)
    release = Release(label, mechanism, 1.0, Theorem("Sample and aggregate", 1))
    return PrivacyGuarantee(epsilon, delta, (event,), (release,))


def check_names(value: Any, name: str) -> tuple[str, ...]:
    """Return names of attributes. Sets are refused, because they have no order."""
    listed = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    if listed and all(isinstance(n, str) for n in value) and 0 < len(value) == len(set(value)):
        return tuple(value)
    raise ValueError(f"{name} must be different names of fitted attributes, got {shown(value)}")


class SampleAggregate(InnerScores, CallbackSupportMixin, OutcomesMixin, BaseEstimator):
    r"""Differentially private average of an estimator or statistic over blocks of the records.

    The results of an estimator without privacy on disjoint blocks of the records, such as its coefficients, are clipped
    to public bounds and averaged with noise, or their median is chosen. Use it if there is no private estimator of the
    same model, which would be more accurate.

    Parameters
    ----------
    estimator : estimator or callable
        Estimator that is fitted to each block, or a function that maps the rows of a block to a number or an array of
        fixed shape. It must not remember anything (see :ref:`sample-aggregate`).
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1), far below one over the number of records. If 0, the fit is pure
        epsilon-DP.
    schema : Schema, default=None
        Declaration of the columns of X, in place of `classes`. Explicit parameters override it.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, noise and blocks are cryptographically secure. Other values are for tests only, and give no privacy.
    attributes : tuple of str, default=None
        Fitted attributes that make up the result, of public shapes. If None, they are ``("coef_", "intercept_")``, or
        ``("coef_",)`` if `estimator` has ``fit_intercept=False``.
    aggregator : {"mean", "median"}, default="mean"
        ``"mean"`` is the mean over blocks with noise. ``"median"`` chooses the median of each number among the cells of
        a grid. Use it for few numbers within wide bounds.
    radius : float, default=None
        Clipping bound in place of `bounds`: the largest L2 norm of the result. Only for the mean.
    n_blocks : int, default=None
        Number of blocks, at most a million. If None, it is chosen for 20 records of `expected_n` for each number of the
        result, and is at least 10. If `expected_n` is also None, it is 100.
    grid_size : int, default=256
        Number of cells between the bounds for the median, at most 2**20.
    expected_n : float, default=None
        Publicly known, approximate number of records. It only determines the number of blocks.
    bounds : tuple (lower, upper) or dict, default=None
        Public bounds of the result: numbers, or one for each number of the result. A dict has such a pair for each of
        `attributes`, by name. Results of a block beyond are clipped. A block that fails has the centre of the bounds.
    classes : array-like, default=None
        Public label set, if `estimator` is a classifier. Other rows are left out. If None, the labels in `y` count as
        public, with a warning.
    class_weight : dict or "balanced", default=None
        Public weights of the labels. ``"balanced"`` computes them from 4 % of the budget (see :ref:`weights`).
    max_weight : float, default=None
        Public upper bound on `sample_weight` in `fit`. Larger weights count as `max_weight`. Required with weights.
    n_jobs : int, default=None
        Number of processes that work on blocks. Threads are not used.
    verbose : int, default=0
        Lines of progress to print: 0 for none, 1 for about ten in each phase (see :doc:`/user_guide/progress`).

    Attributes
    ----------
    estimator_ : estimator
        Clone that was fitted to synthetic rows, with the private result in its `attributes`. None for a function.
    result_ : ndarray of shape (n_numbers,)
        Private result: all attributes, one after the other.
    n_blocks_ : int
        Number of blocks.
    classes_ : ndarray of shape (n_classes,)
        Label set, sorted, if `estimator` is a classifier.
    class_weight_ : ndarray of shape (n_classes,)
        Weights of the labels, at most 1, from the released counts. Only with ``class_weight="balanced"``.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit, with its mechanisms, sensitivities and noise scales.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    PATEClassifier : Votes in place of averages, for classifiers without parameters to average.
    skdp.cluster.SampleAggKMeans : The same method for centres of clusters, which have no order.

    Notes
    -----
    **Privacy.** Each record is drawn into a block independently. Therefore one record changes one block, whose result
    can move from any point of the bounds to any other. In units of half the widths, the sum over blocks of :math:`p`
    numbers moves by :math:`2\sqrt p` in L2 norm (by 2 within a ball), and the score of a cell for the median by 1
    (:ref:`sample and aggregate, theorem 1 <sample-aggregate-theorem-1>`). Estimators are isolated as in
    :class:`PATEClassifier`, and functions are deep copies. The guarantee does not cover files that estimators write, a
    process that is killed, and an estimator that remembers one block when it is fitted to the next.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import HuberRegressor
    >>> from skdp import SampleAggregate
    >>> k = np.arange(5000)
    >>> age = 18 + k % 72
    >>> cost = 200 + 10 * age + 100 * np.sin(k)
    >>> bounds = {"coef_": (0, 20), "intercept_": (0, 1000)}
    >>> model = SampleAggregate(
    ...     HuberRegressor(),
    ...     epsilon=1,
    ...     delta=1e-6,
    ...     bounds=bounds,
    ...     n_blocks=250,
    ...     random_state=0,
    ... )
    >>> model = model.fit(age[:, None], cost)
    >>> model.estimator_.coef_.round()
    array([11.])
    """

    _takes_parts = True
    _released = frozenset({"estimator_", "result_"})
    _public = frozenset({"n_blocks_"})
    _many_targets = True
    _parameter_rules: ClassVar[Rules] = {
        "estimator": anything,
        "attributes": Or(None, check_names),
        "aggregator": OneOf(("mean", "median")),
        "bounds": anything,
        "radius": Or(None, Real()),
        "n_blocks": Or(None, Integer(1, MOST_BLOCKS)),
        "grid_size": Integer(2, _MOST_CELLS),
        "expected_n": Or(None, Real(1)),
        "n_jobs": By(check_n_jobs),
    }

    def __init__(
        self,
        estimator: Any,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        attributes: Any = None,
        aggregator: str = "mean",
        radius: float | None = None,
        n_blocks: int | None = None,
        grid_size: int = 256,
        expected_n: float | None = None,
        bounds: Any = None,
        classes: Any = None,
        class_weight: Any = None,
        max_weight: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.attributes = attributes
        self.aggregator = aggregator
        self.radius = radius
        self.n_blocks = n_blocks
        self.grid_size = grid_size
        self.expected_n = expected_n
        self.bounds = bounds
        self.classes = classes
        self.class_weight = class_weight
        self.max_weight = max_weight
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if not self._is_statistic() and hasattr(self.estimator, "fit"):
            inner = get_tags(self.estimator)
            tags.estimator_type = inner.estimator_type
            tags.classifier_tags = deepcopy(inner.classifier_tags)
            tags.regressor_tags = deepcopy(inner.regressor_tags)
            tags.target_tags = deepcopy(inner.target_tags)
        return tags

    def _kind(self, parameters: Any) -> type[PrivateEstimator]:
        if self._is_statistic():
            return RowsMixin
        if is_classifier(self.estimator):
            return LabelsMixin
        return TargetsMixin if is_regressor(self.estimator) else RowsMixin

    def _plan(self, parameters: Checked, shape: Shape) -> tuple[PrivacyGuarantee, tuple[Template, Region]]:
        classes = np.arange(shape.n_classes) if shape.n_classes and shape.classes is None else shape.classes
        template = self._template(shape.n_features, classes, () if shape.n_targets is None else (shape.n_targets,))
        region = self._region(template)
        return make_plan(parameters, region), (template, region)

    def _phases(self, guarantee: PrivacyGuarantee, parameters: Checked, design: tuple[Template, Region]) -> Phases:
        return [(release.label, self._number_of_blocks(design[0].size)) for release in guarantee.releases]

    def _rehearse(self, parameters: Checked, shape: Shape, design: tuple[Template, Region]) -> None:
        check_sent(self._compute(design[0], shape.classes), "estimator", parameters.n_jobs, shape.in_parts)

    def _compute(self, template: Template, classes: NDArray | None) -> Any:
        return partial(block_result, self.estimator, template.attributes, template.shapes, classes)

    def _measure(
        self, session: ReleaseSession, records: Records, parameters: Checked, design: tuple[Template, Region]
    ) -> dict[str, Any]:
        template, region = design
        classes = records.shape.classes
        targets = records.y if classes is None else rowwise(partial(np.take, classes), records.y)
        n_blocks = self._number_of_blocks(template.size)
        labels = block_labels(count_rows(records.X), n_blocks, session.stream("blocks"))
        seeds = block_seeds(n_blocks, session.stream("seeds"))
        compute = self._compute(template, classes)
        how = parameters.n_jobs, session.progress
        results = over_blocks(compute, records.X, targets, n_blocks, labels, seeds, *how)
        # If the estimator fails on a block, the result of the block is the centre of the bounds.
        results = [region.centre if result is None else result for result in results]
        if parameters.aggregator == "mean":
            total = np.sum([region.steps(result) for result in results], axis=0)
            released = session.release(SUM, total * 2.0**-SUM_BITS)
            result = postprocess_mean(released, region, n_blocks)
        else:
            counts = np.zeros((region.size, parameters.grid_size))
            for result in results:
                counts[np.arange(region.size), region.cells(result, parameters.grid_size)] += 1
            released = session.release(MEDIAN, cell_scores(counts))
            cells = released.argmax(axis=1) if released.ndim == 2 else released
            result = region.centre + region.half * ((2 * cells + 1) / parameters.grid_size - 1)
        model = postprocess_model(template.model, result, template.attributes)
        return {"result_": result, "estimator_": model, "n_blocks_": n_blocks}

    @offers("score")
    def score(self, X: Any, y: Any = None) -> float:
        """Return the score of the estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Labels or targets.

        Returns
        -------
        score : float
            Accuracy of a classifier, coefficient of determination of a regressor.
        """
        check_is_fitted(self, "result_")
        return float(self.estimator_.score(validate_quietly(self, X, dtype=np.float64, reset=False), y))

    def privacy_plan(
        self, *, n_features: int | None = None, n_classes: int | None = None, n_targets: int = 1
    ) -> PrivacyGuarantee:
        """Return the guarantee that `fit` will give, without any data.

        Parameters
        ----------
        n_features : int, optional
            Number of columns of X. Ignored if `schema` is set.
        n_classes : int, optional
            Number of labels. Required for a classifier if `classes` is None.
        n_targets : int, default=1
            Number of columns of y, for a regressor.

        Returns
        -------
        plan : PrivacyGuarantee
            Equal to ``privacy_`` after a fit on such data.
        """
        n_targets = check_integer(n_targets, "n_targets", least=1)
        return self._planned_without_data(n_features, n_classes, n_targets=n_targets if n_targets > 1 else None)

    def _cost_of(self, parameters: Checked) -> PrivacyCost | None:
        # The numbers of columns and classes change sensitivities and dimensions only.
        return make_plan(parameters, Region(np.zeros(1), np.ones(1), ball=False)).cost

    def _is_statistic(self) -> bool:
        return callable(self.estimator) and not hasattr(self.estimator, "fit")

    def _check_together(self, parameters: Checked) -> None:
        if not self._is_statistic():
            check_inner(self.estimator, "estimator", "classifier, regressor or other estimator")
        elif parameters.attributes is not None:
            raise ValueError("attributes must be None if estimator is a function, because it returns its result")
        if parameters.radius is not None:
            if self.bounds is not None or parameters.aggregator == "median":
                raise ValueError("radius is for aggregator='mean' without bounds. Set radius or bounds to None")
        elif isinstance(self.bounds, Mapping):
            for name, pair in self.bounds.items():
                check_bounds(pair, f"bounds[{name!r}]", "the attribute")
        else:
            check_bounds(self.bounds, "bounds", "the result of a block")

    def _template(self, n_features: int, classes: NDArray | None, n_targets: tuple[int, ...]) -> Template:
        """Fit the estimator to made-up rows, twice, to find errors of the fit or the aggregation before any charge."""
        trials = [self._made_up(more, n_features, classes, n_targets) for more in (False, True)]
        if self._is_statistic():
            sizes = tried(lambda: [as_numbers(deepcopy(self.estimator)(rows)).size for rows, _ in trials], "estimator")
            if sizes[0] != sizes[1]:
                raise ValueError("estimator must return the same number of values for any number of rows")
            return Template(None, (), ((sizes[0],),))
        attributes = self.attributes
        if attributes is None:
            attributes = ATTRIBUTES if getattr(self.estimator, "fit_intercept", True) else ATTRIBUTES[:1]
        attributes = tuple(attributes)

        def trial() -> tuple[Template, bool, bool]:
            models = [fitted(self.estimator, 0, rows, targets) for rows, targets in trials]
            first, second = (Template(model, attributes, shapes_of(model, attributes)) for model in models)
            if first.shapes != second.shapes:
                return first, False, False
            result = numbers_of(first.model, attributes)
            models = [postprocess_model(model, result, attributes) for model in models]
            return first, True, predict_the_same(models, trials[0][0])

        template, same_shapes, same_predictions = tried(trial, "estimator")
        if not same_shapes:
            raise ValueError(f"attributes {attributes} of estimator must have shapes that do not depend on the data")
        if not same_predictions:
            raise ValueError(
                f"estimator predicts by more than its attributes {attributes}, but only these are kept. Name all the "
                "fitted attributes that its predictions use in attributes, or pass a function that returns the numbers"
            )
        return template

    def _made_up(
        self, more: bool, n_features: int, classes: NDArray | None, n_targets: tuple[int, ...]
    ) -> tuple[Array, NDArray | None]:
        """Return rows and targets of a trial, or more rows, elsewhere in the unit box, and unbalanced."""
        least = _TRIAL_ROWS if classes is None else max(_TRIAL_ROWS, _TRIAL_ROWS_PER_CLASS * len(classes))
        n = least + least // 2 if more else least
        rows = made_up_rows(n, n_features)
        targets = None
        if classes is not None:
            targets = classes[np.where(np.arange(n) < least, np.arange(n) % len(classes), 0)]
        elif self._kind(None) is TargetsMixin:
            targets = made_up_rows(n, 1 + math.prod(n_targets))[:, 1:].reshape(n, *n_targets)
            targets = (1 + targets) / 2 if more else targets
        return (1 + rows) / 2 if more else rows, targets

    def _region(self, template: Template) -> Region:
        """Return the bounds of a result of this shape."""
        p = template.size
        if self.radius is not None:
            return Region(np.zeros(p), np.full(p, float(self.radius)), ball=True)
        if isinstance(self.bounds, Mapping):
            if set(self.bounds) != set(template.attributes):
                raise ValueError(f"bounds must have the names {template.attributes}, got {tuple(self.bounds)}")
            pairs = [
                columns_of(check_bounds(self.bounds[name], "bounds", name), f"bounds[{name!r}]", math.prod(shape))
                for name, shape in zip(template.attributes, template.shapes, strict=True)
            ]
            lower, upper = (np.concatenate(ends) for ends in zip(*pairs, strict=True))
        else:
            lower, upper = columns_of(check_bounds(self.bounds, "bounds", "the result"), "bounds", p)
        return Region(lower / 2 + upper / 2, upper / 2 - lower / 2, ball=False)

    def _number_of_blocks(self, size: int) -> int:
        if self.n_blocks is not None:
            return int(self.n_blocks)
        if self.expected_n is None:
            return DEFAULT_BLOCKS
        return min(max(FEWEST_BLOCKS, round(float(self.expected_n) / (ROWS_PER_NUMBER * size))), MOST_BLOCKS)

r"""Evaluation of a model by private records, with noisy counts.

A record changes the table by at most 1, and the cells of a score with gains of at most :math:`G` by at most
:math:`17G/16` in L1 norm and :math:`G\sqrt{1+1/256}` in L2 norm (user guide, "Model selection", theorem 4; for groups,
"Units", theorem 1). All results and warnings are computed from the released cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ..accounting import (
    Budget,
    BudgetAccountant,
    GaussianEvent,
    PrivacyCost,
    PrivacyEvent,
    PureEvent,
    check_delta,
    check_epsilon,
)
from ..checks.data import check_quietly, encode_labels
from ..checks.params import check_classes, check_integer, check_n_jobs, warn
from ..checks.silence import discreet, silence
from ..exceptions import BudgetWarning, SchemaMismatchWarning
from ..mechanisms import (
    GENERATORS,
    DiscreteLaplaceMechanism,
    Mechanism,
    NoiseSource,
    NoNoise,
    coordinate_variance,
    is_gaussian,
    l2_mechanism,
    quantile_mechanism,
)
from ..release.counts import BEYOND_TARGETS, FALSE_ALARM, LARGEST_SHARE, SPELL_LABELS, margin, percent, warn_that
from ..release.estimates import Estimate
from ..release.mixin import DPEstimatorMixin
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem, check_accountant
from ..release.units import Unit
from ..schema.encoding import declared_target, target_of, unit_of
from ..schema.entries import entries_of
from ..schema.schema import columns_in_order
from ..sensitivity import group_sensitivity
from ._allocation import declared_classes, make_candidates
from ._scoring import (
    Score,
    Table,
    check_metric,
    make_measure,
    spread_of,
    with_baseline,
)
from ._stateless import columns_of, is_exact, numbers_in, read_targets, rows_for_steps, takes_text
from ._steps import bounds_of, children_of, labels_in, rows_of_table, schema_of, take, with_schema
from ._strategies import Prices, SearchContext, Sequence_, Task, events_of, settle, try_on_nothing

_SPELL = "Pass y with the labels of the model (classes_), of the same type."

#: Part of the budget of a cross-validation for the evaluation. The fits have the rest.
_TABLE_PORTION = Fraction(1, 10)


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Estimate):
    """The result of a private evaluation: an `Estimate` of ``skdp.stats``, with its table.

    ``float(evaluation)`` is the value of a score, and ``evaluation.confidence_interval()`` is a 95 % interval.

    Parameters
    ----------
    value : float or ndarray
        Score or table. In a confusion matrix, rows are true labels, and columns are predicted labels. In a histogram,
        rows are bins of the estimated probability, and columns are true labels.
    standard_error : float or ndarray
        Standard deviation of the noise alone, estimated from the released table. The sampling error of the rows is
        not included. ``confidence_interval`` covers both.
    privacy_ : PrivacyGuarantee
        Guarantee of the evaluation.
    names : tuple of str
        Labels of the columns of a table. Empty for a score.
    details : dict
        Empty.
    spread : object
        Object that computes the intervals.
    counts : ndarray
        Noisy table from which the value was computed. For a mean over records, it holds the sum of relative gains,
        between 0 and 1 for each record, and the sum of the gains that records lack. With a baseline, it holds the sums
        of what records gain more and less than by the baseline, and the rest. For F1 and recall, it is a confusion
        matrix with one more column, for records without a predicted label.
    classes : ndarray or None
        Label set.
    edges : ndarray or None
        Edges of the bins of a histogram, or released edges for an area.
    """

    counts: Any = None
    classes: NDArray | None = None
    edges: NDArray | None = None

    @property
    def _corner(self) -> str:  # type: ignore[override]
        return "true \\ predicted (± noise)" if self.edges is None else "probability \\ true (± noise)"


#: Part of the budget of an area for the edges of its bins.
_EDGES_PORTION = 0.25

_TABLE, _EDGES = "table", "edges of bins"


def _planned(
    measure: Score | Table, whole: Budget, share: float, rows: int, n_tables: int = 1
) -> tuple[list[Release], tuple[PrivacyEvent, ...]]:
    """Return the release of a table, after that of the edges of its bins if it is for an area, for part of a budget."""
    releases, events = [], []
    if isinstance(measure, Table) and measure.is_area:
        edges_share, n_bins = share * _EDGES_PORTION, measure.shape[0]
        edges, event = quantile_mechanism(*whole, edges_share, tuple(range(1, n_bins)), n_bins, 1, rows=rows)
        releases.append(Release(_EDGES, edges, edges_share, Theorem("Preprocessing", 2)))
        events.append(event)
        # This is less by more than the rounding of parts.
        share *= (1 - _EDGES_PORTION) * (1 - 2.0**-40)
    sensitivity = group_sensitivity(measure.released().moved(norm=1 if whole.delta == 0 else 2), rows)
    table, event = _table_mechanism(whole, share, sensitivity, math.prod(measure.shape) * n_tables + 2)
    return [*releases, Release(_TABLE, table, share, Theorem("Model selection", 4))], (*events, event)


def _released(
    session: ReleaseSession, measure: Score | Table, tallies: NDArray[np.int64]
) -> tuple[Score | Table, NDArray[np.int64]]:
    """Release one or more tallies. Return tables, with the measure in bins between released edges for an area."""
    tables = tallies[:, :-2].reshape(-1, *measure.shape)
    if isinstance(measure, Table) and measure.is_area:
        # Each record is in one cell of all tables together.
        counts = tables.sum(axis=(0, -1)).astype(np.float64)
        positions = session.release(_EDGES, counts[None])[0].astype(np.intp)
        measure, tables = measure.merged(tables, positions)
    exact = np.append(tables, tallies[:, -2:].sum(axis=0)).astype(np.float64)
    mechanism = session.mechanism(_TABLE)
    noisy = np.rint(session.release(_TABLE, exact)).astype(np.int64)
    _warn_of_records_apart(measure, noisy, mechanism)
    return measure, noisy[:-2].reshape(tables.shape)


def _warn_of_records_apart(measure: Score | Table, noisy: NDArray[np.int64], mechanism: Mechanism) -> None:
    """Warn if more than a tenth of the records have no declared target, or no valid prediction, by released sums."""
    # The number of records in the tables is at most their sum over the least contribution of a record.
    scales = np.array([measure.least, measure.apart, measure.apart], dtype=np.float64)
    numbers = np.array([noisy[:-2].sum(), *noisy[-2:]]) / scales
    variances = coordinate_variance(mechanism) * np.array([noisy.size - 2, 1, 1]) / scales**2
    every = np.array([True, *measure.elsewhere])
    for kind in (1, 2):
        form = -LARGEST_SHARE * every
        form[kind] += 1
        deviation = math.sqrt(form**2 @ variances)
        if form @ numbers > margin(deviation, FALSE_ALARM, is_gaussian(mechanism)):
            warn_that(f"{percent(numbers[kind], numbers[every].sum())} of the {_described(measure, kind)}")


def _described(measure: Score | Table, kind: int) -> str:
    """Describe records apart, and what to check."""
    if kind == 1 and isinstance(measure, Score) and measure.bounds is not None:
        return BEYOND_TARGETS
    effect = "They are left out" if measure.elsewhere[kind - 1] else "They count as wrong"
    if kind == 1:
        return f"records have a label that is not in classes. {effect}. {SPELL_LABELS}"
    return (
        f"records get no valid prediction from the model. {effect}. Check that the columns of X, their types and "
        "their entries are as in the fit of the model"
    )


def _without_weights(metric: str, label_weights: Any) -> str:
    """Return the score by counts for a balanced accuracy without known shares of labels."""
    return "recall_macro" if label_weights is None and metric == "balanced_accuracy" else metric


def _fact_of(estimator: Any, name: str) -> Any:
    """Return an attribute of a model, or of the last step of a pipeline that lacks it, or None."""
    value = getattr(estimator, name, None)
    if value is None and isinstance(estimator, Pipeline):
        return _fact_of(estimator.steps[-1][1], name)
    return value


def _check_fitted(estimator: Any) -> None:
    """Refuse a model of this library or of scikit-learn that is not fitted, or a pipeline with such a step."""
    if isinstance(estimator, FrozenEstimator):
        _check_fitted(estimator.estimator)
    elif isinstance(estimator, Pipeline):
        for _, step in estimator.steps:
            _check_fitted(step)
    elif type(estimator).__module__.partition(".")[0] in ("skdp", "sklearn"):
        check_is_fitted(estimator)


def _check_generators(model: Any) -> None:
    """Refuse a model that may draw from a generator of its own: the next draws would show the number of rows."""
    while isinstance(model, FrozenEstimator):
        model = model.estimator
    if not hasattr(model, "get_params") or is_exact(model):
        return
    for name, value in model.get_params().items():
        if isinstance(value, GENERATORS):
            raise ValueError(
                f"{name} of {type(model).__name__} is a generator, whose later draws would show the number of rows. "
                f"Use set_params({name}=None)"
            )
        if isinstance(value, FrozenEstimator):
            _check_generators(value)


def _check_columns_of_model(estimator: Any, X: Any) -> None:
    """Refuse a table whose names or number of columns do not fit the fitted model, from its columns alone."""
    reader, nothing = estimator, take(X, np.arange(0))
    while isinstance(reader, Pipeline | FrozenEstimator) or hasattr(reader, "best_estimator_"):
        if isinstance(reader, Pipeline):
            reader = next(step for _, step in reader.steps if not (step is None or isinstance(step, str)))
        else:
            reader = reader.estimator if isinstance(reader, FrozenEstimator) else reader.best_estimator_
    by_name = isinstance(reader, ColumnTransformer) and hasattr(reader, "feature_names_in_")
    columns = [keys for _, step, keys in reader.transformers_ if str(step) != "drop"] if by_name else []
    if not hasattr(X, "columns") and any(map(_is_named, columns)):
        raise ValueError(
            "X has no names of columns, by which the ColumnTransformer of the model finds them: pass a DataFrame"
        )
    if (schema := schema_of(reader)) is not None:
        columns_in_order(schema, nothing)
    elif by_name and hasattr(X, "columns"):
        # It does not need columns that it drops.
        if hasattr(X, "iloc"):
            named = nothing.reindex(columns=reader.feature_names_in_)
            if lacking := {name for keys in columns for name in columns_of(named, keys).columns} - set(X.columns):
                raise ValueError(f"X lacks columns of the model: {', '.join(map(repr, sorted(lacking)))}")
    elif isinstance(reader, DPEstimatorMixin | ColumnTransformer) or not (
        children_of(reader) or get_tags(reader).no_validation
    ):
        with silence():
            validate_data(reader, nothing, reset=False, skip_check_array=True)


def _is_named(columns: Any) -> bool:
    """Tell whether a ColumnTransformer finds some of these columns by name."""
    keys = [columns.start, columns.stop] if isinstance(columns, slice) else np.ravel(np.asarray(columns, dtype=object))
    return any(isinstance(key, str) for key in keys)


def _table_mechanism(whole: Budget, share: float, sensitivity: float, size: int) -> tuple[Mechanism, PrivacyEvent]:
    """Return integer noise for a table of this L1 sensitivity, or rounded Gaussian noise."""
    if whole.epsilon == math.inf:
        return NoNoise(sensitivity), PureEvent(math.inf)
    if whole.delta == 0:
        epsilon = whole.epsilon * share
        return DiscreteLaplaceMechanism(epsilon, sensitivity, size), PureEvent(epsilon)
    return l2_mechanism(*whole, share, sensitivity, size)


@partial(discreet, answers={"scoring": "Pass the name of a score as metric=..., for instance metric='roc_auc'"})
def private_score(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    metric: str | None = None,
    baseline: Any = None,
    epsilon: float = 1.0,
    delta: float | None = None,
    classes: Any = None,
    label_weights: Any = None,
    loss_bound: float = 5.0,
    bounds_y: Any = None,
    n_bins: int | None = None,
    rows_per_group: int | None = None,
    groups: Any = None,
    schema: Any = None,
    accountant: BudgetAccountant | None = None,
    random_state: Any = None,
) -> Evaluation:
    """Evaluate a fitted model by private records that it was not trained on.

    Parameters
    ----------
    estimator : estimator
        Fitted estimator. It must be public, or its fit must have been charged. Its predictions must not change it.
    X : array-like, DataFrame, Table or dict of shape (n_samples, n_features)
        Private features. A dict of columns or a Table of PyArrow needs a schema in the estimator or its first step.
    y : array-like of shape (n_samples,), default=None
        Private labels or targets. If None, they are the column of X that the schema declares as the target.
    metric : str, default=None
        Name of the metric. If None, it is ``"accuracy"`` for classifiers and ``"neg_mean_absolute_error"`` for
        regressors. ``"balanced_accuracy"`` (with `label_weights`), ``"neg_log_loss"`` and ``"neg_mean_squared_error"``
        are means over records, too. ``"confusion_matrix"`` and ``"histogram"`` are tables. The histogram counts how
        often the second of two labels occurs in each of `n_bins` bins of its estimated probability. ``"roc_auc"``,
        ``"average_precision"``, ``"f1"`` and ``"recall"`` (of the second of two labels), ``"f1_macro"`` and
        ``"recall_macro"`` (means over all labels) are computed from released tables. ``"balanced_accuracy"`` without
        `label_weights` is ``"recall_macro"``.
    baseline : estimator, label or number, default=None
        If not None, the result is the score of `estimator` minus the score of the baseline for the same records. The
        baseline is a fitted model with the same columns, or the label or number that it always predicts. It must be
        public, or its fit must have been charged. Rows that it refuses count as its errors. Only for metrics that are
        means over records.

        .. versionadded:: 0.3
    epsilon : float, default=1.0
        Privacy budget of the evaluation. Must be strictly positive.
    delta : float, default=None
        Privacy budget of the evaluation, in [0, 1). If None, it is the delta of the guarantee of `estimator`, or 0 for
        a model without a guarantee. Keep it if the budget has a delta. ``delta=0`` has less noise at the same epsilon,
        but uses more of such a budget.
    classes : array-like, default=None
        Label set. If None, it is ``classes_`` of the estimator. Records with other labels count as wrong, or in no
        cell. If the model refuses a record with one of these labels, the record counts as an error of its label: as a
        false negative in F1, and at the wrong end of the histogram for an area under a curve. Tables leave it out.
    label_weights : dict, default=None
        Public weights of the labels, for balanced accuracy with the noise of a single sum.
    loss_bound : float, default=5.0
        Clipping bound of the log loss of a record.
    bounds_y : pair of float, default=None
        Public bounds of the targets.
    n_bins : int, default=None
        Number of bins. If None, it is 10 for a histogram, whose bins have equal width, and 32 for an area under a
        curve, whose bins have nearly equal counts. More bins distinguish more probabilities, and add more noise.
    rows_per_group : int, default=None
        Public limit on the rows of one group, such as a person. Further rows of a group are left out at random. The
        guarantee is then for all rows of a group together. If None, the guarantee is for one row.
    groups : array-like of shape (n_samples,), default=None
        Group of each row, as a number or a text. Required with `rows_per_group`, unless `schema` declares it.
    schema : Schema, default=None
        Public facts about the columns of a table, from which `bounds_y`, `rows_per_group` and the groups follow unless
        they are given. If None, it is the schema of the estimator.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.

    Returns
    -------
    evaluation : Evaluation
        Score or table, with the noisy counts and the guarantee ``privacy_``.

    Raises
    ------
    BudgetError
        If the accountant does not admit the evaluation.

    Notes
    -----
    **Privacy.** The evaluation is (epsilon, delta)-DP for the records in `X` and `y`, or with `rows_per_group` for
    groups of them (:ref:`model selection, theorem 4 <model-selection-theorem-4>`). If the model was trained on the same
    records, the two costs add up, and the score is a score on training records. A model of another library that draws
    labels at random draws the same number for each row. Intervals are post-processing (:ref:`intervals_of_scores`).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import ObjPertLogReg, Schema
    >>> from skdp.model_selection import private_score
    >>> k = np.arange(5000)
    >>> age = {"age": 18 + k % 72}
    >>> ill = age["age"] + 20 * np.sin(k) > 60
    >>> schema = Schema({"age": (18, 90)}, target=[False, True])
    >>> model = ObjPertLogReg(schema=schema, random_state=0).fit(age, ill)
    >>> others = {"age": 18 + k % 71}
    >>> ill = others["age"] + 20 * np.cos(k) > 60
    >>> accuracy = private_score(model, others, ill, random_state=0)
    >>> round(float(accuracy), 2)
    0.83
    """
    models = (estimator, baseline) if hasattr(baseline, "predict") else (estimator,)
    for model in models:
        _check_fitted(model)
        _check_generators(model)
    metric = _without_weights(check_metric(metric, estimator), label_weights)
    check_accountant(accountant)
    whole = Budget(
        check_epsilon(epsilon),
        check_delta(getattr(_fact_of(estimator, "privacy_"), "delta", 0.0) if delta is None else delta),
    )
    declared = schema_of(estimator, schema)
    rows_per_group, groups = unit_of(declared, rows_per_group, groups, X)
    y = target_of(declared, X, y)
    bounds_y = bounds_of(declared, bounds_y, estimator)
    labels = None
    if is_classifier(estimator):
        if declared is not None and classes is None:
            declared_target(declared, "classes", estimator)
        labels = check_classes(estimator.classes_ if classes is None else classes)
        assert labels is not None
        if set(labels.tolist()).isdisjoint(np.ravel(getattr(estimator, "classes_", labels)).tolist()):
            raise ValueError("classes holds none of the labels of the model (classes_): spell them as they are there")
    given = label_weights, loss_bound, bounds_y, n_bins
    measure = make_measure(metric, estimator, labels, *given)
    if baseline is not None:
        measure = with_baseline(measure, baseline)
    unit = Unit.of(rows_per_group)
    numbers = unit.numbers(groups, X)
    targets = labels_in(declared, labels, y) if labels is not None else numbers_in(y)
    coded = targets if labels is None else encode_labels(targets, labels, _SPELL)
    X = rows_of_table(estimator, X)
    # In a list, the text of one record would convert all numbers to text. Rows of other formats cannot be selected.
    if not hasattr(X, "shape"):
        X = (
            entries_of(X)
            if takes_text(estimator) or schema_of(estimator) is not None
            else check_quietly(X, ensure_min_samples=0)
        )
    X = X.tocsr() if hasattr(X, "tocsr") else X
    if X.shape[0] != len(targets):
        raise ValueError("X and y must have the same number of rows")
    for model in models:
        _check_columns_of_model(model, X)
    members = unit.members(numbers, coded)[2]
    releases, events = _planned(measure, whole, 1.0, unit.rows)
    plan = unit.stated(PrivacyGuarantee(*whole, events, tuple(releases)))
    source = NoiseSource(random_state)
    if accountant is None and any(_fact_of(model, "accountant") is not None for model in (estimator, baseline)):
        warn(
            "the fit was charged, and this score is charged to none. Pass accountant=, unless these are other records",
            BudgetWarning,
        )
    session = ReleaseSession(plan, accountant=accountant, source=source, estimator="private_score")
    if members is not None:
        rows, coded = unit.counted(source, members, np.arange(len(coded)), coded)
        X = take(X, rows)
    measure = measure.released()
    measure, (counts,) = _released(session, measure, measure.tally(estimator, X, coded)[None])
    error, spread = spread_of(measure, counts, releases[-1].mechanism)
    return Evaluation(
        measure.value(counts),
        error,
        plan,
        names=() if labels is None or np.ndim(error) == 0 else tuple(map(str, labels)),
        spread=spread,
        counts=counts if isinstance(measure, Table) else counts / measure.most,
        classes=labels,
        edges=getattr(measure, "edges", None),
    )


@partial(discreet, answers={"metric": "Pass the name of a score as scoring=..., for instance scoring='roc_auc'"})
def private_cross_val_score(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    cv: int = 5,
    scoring: str | None = None,
    epsilon: float = 1.0,
    delta: float = 0.0,
    label_weights: Any = None,
    loss_bound: float = 5.0,
    bounds_y: Any = None,
    n_bins: int | None = None,
    rows_per_group: int | None = None,
    groups: Any = None,
    schema: Any = None,
    accountant: BudgetAccountant | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> NDArray[np.float64]:
    """Cross-validate a private estimator, with one budget for fits and scores.

    Parameters
    ----------
    estimator : estimator
        Private estimator without an accountant, or a pipeline with private steps. Its epsilon and delta are set.
    X : array-like, DataFrame, Table or dict of shape (n_samples, n_features)
        Private features. A dict of columns or a Table of PyArrow needs a schema in the estimator or its first step.
    y : array-like of shape (n_samples,), default=None
        Private labels or targets. If None, they are the column of X that the schema declares as the target.
    cv : int, default=5
        Number of folds. Each record, or group, is assigned to a fold independently.
    scoring : str, default=None
        Score, as the metric of `private_score` without tables.
    epsilon : float, default=1.0
        Privacy budget of all fits and scores together. Must be strictly positive.
    delta : float, default=0.0
        Privacy budget of all fits and scores together, in [0, 1).
    label_weights : dict, default=None
        Public weights of the labels, for balanced accuracy.
    loss_bound : float, default=5.0
        Clipping bound of the log loss of a record.
    bounds_y : pair of float, default=None
        Public bounds of the targets.
    n_bins : int, default=None
        Number of bins for areas under curves, the same bins in all folds. If None, it is 32.
    rows_per_group : int, default=None
        Public limit on the rows of one group, such as a person, in a score. Further rows of a group are left out at
        random. It must be set for the private steps as well, where it may be another number. All rows of a group are in
        one fold, and the guarantee is for all of them together. If None, the guarantee is for one row.
    groups : array-like of shape (n_samples,), default=None
        Group of each row, as a number or a text. Required with `rows_per_group`, unless `schema` declares it.
    schema : Schema, default=None
        Public facts about the columns of a table, for the estimator or the first step of the pipeline. X is then the
        table itself. `bounds_y`, `rows_per_group` and the groups follow from the schema unless they are given.
        If None, it is the schema of the estimator.
    accountant : BudgetAccountant, default=None
        Accountant that is charged once, before any noise is drawn. If None, no charge is recorded.
    n_jobs : int, default=None
        Number of parallel fits.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.

    Returns
    -------
    scores : ndarray of shape (cv,)
        Noisy score of each fold.

    Raises
    ------
    BudgetError
        If the accountant does not admit the cross-validation.

    Notes
    -----
    **Privacy.** A record trains in all folds but one and is counted in that one (:ref:`model selection, theorem 3
    <model-selection-theorem-3>`, and :ref:`theorem 4 <model-selection-theorem-4>` for the counts). Nine tenths of the
    budget are divided by composition among ``cv - 1`` fits. Therefore the scores are those of noisier models than one
    with the whole budget.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import ObjPertLogReg, Schema
    >>> from skdp.model_selection import private_cross_val_score
    >>> k = np.arange(5000)
    >>> age = {"age": 18 + k % 72}
    >>> ill = age["age"] + 20 * np.sin(k) > 60
    >>> schema = Schema({"age": (18, 90)}, target=[False, True])
    >>> model = ObjPertLogReg(schema=schema)
    >>> scores = private_cross_val_score(
    ...     model, age, ill, cv=3, epsilon=4.0, delta=1e-6, random_state=0
    ... )
    >>> scores.round(1)
    array([0.8, 0.8, 0.8])
    """
    check_accountant(accountant)
    whole = Budget(check_epsilon(epsilon), check_delta(delta))
    n_folds = check_integer(cv, "cv", least=2)
    check_n_jobs(n_jobs)
    scoring = _without_weights(check_metric(scoring, estimator, "scoring"), label_weights)
    estimator = with_schema(estimator, schema)
    declared = schema_of(estimator)
    rows_per_group, groups = unit_of(declared, rows_per_group, groups, X)
    y = target_of(declared, X, y)
    bounds_y = bounds_of(declared, bounds_y, estimator)
    unit = Unit.of(rows_per_group)
    classes = declared_classes(estimator) if is_classifier(estimator) else None
    numbers = unit.numbers(groups, X)
    X = rows_for_steps(estimator, rows_of_table(estimator, X))
    y, targets, members, classes = read_targets(estimator, classes, y, X.shape[0], unit, numbers)
    measure = make_measure(scoring, estimator, classes, label_weights, loss_bound, bounds_y, n_bins)
    candidates = make_candidates(estimator, [{}], classes, unit)
    most = group_sensitivity(float(measure.most), unit.rows)
    training = (1 - _TABLE_PORTION) / (n_folds - 1)

    def noisy_table(prices: Prices) -> tuple[list[Release], tuple[PrivacyEvent, ...]]:
        share = float(_TABLE_PORTION) * (prices.scale**2 if whole.delta > 0 and prices.scale > 0 else 1.0)
        # If the fits are composed by sums only, the table takes a part of epsilon.
        budget = whole if prices.scale > 0 else Budget(whole.epsilon, 0.0)
        return _planned(measure, budget, share * (1 - 2.0**-40), unit.rows, n_folds)

    def sequence(prices: Prices) -> Sequence_:
        events = noisy_table(prices)[1]
        # Gaussian noise needs a pair. The pair of the whole budget is more than enough.
        gaussian = any(isinstance(event, GaussianEvent) for event in events)
        pair = whole if gaussian else (math.fsum(event.pure_epsilon() for event in events), 0.0)
        cost = PrivacyCost(*pair, events)
        return (*prices.fit(0, training) * (n_folds - 1), cost)

    prices = settle(Prices(candidates, whole, most), sequence)
    if prices is None:
        raise ValueError("the fits cannot be proved to keep within epsilon and delta")
    plan = PrivacyGuarantee(*whole, events_of(sequence(prices)), tuple(noisy_table(prices)[0]))
    plan = unit.stated(plan, "a score")
    fits = f"{n_folds} fits, of which a {plan.unit} takes part in {n_folds - 1}: share {float(training):.3g} each"
    plan = replace(plan, fits=(fits,))
    try_on_nothing(prices, [training], X, targets, members)
    source = NoiseSource(random_state)
    session = ReleaseSession(plan, accountant=accountant, source=source, estimator="private_cross_val_score")
    context = SearchContext(X, y, targets, prices, measure, session, source, n_jobs, unit, members)
    folds = context.divide((1 / n_folds,) * n_folds)
    every = np.arange(len(y))
    fitted = context.fit(Task(0, training, np.setdiff1d(every, fold, assume_unique=True), None) for fold in folds)
    warned = [fit.mismatches for fit in fitted if fit.mismatches]
    # One fit may warn falsely. At least half of them do so with at most twice the probability.
    if 2 * len(warned) >= n_folds:
        for message in warned[0]:
            warn(message, SchemaMismatchWarning)
    tallies, measure = [], measure.released()
    for fold, fit in zip(folds, fitted, strict=True):
        rows = context.scored(fold)
        tallies.append(measure.tally(fit.model, take(X, rows), y[rows]))
    measure, counts = _released(session, measure, np.array(tallies))
    return np.array([measure.value(fold) for fold in counts])

"""One budget for a whole pipeline: each private step is told what it may spend.

The list of private steps, and how often each is fitted, is public: it follows from the parameters of the pipeline and
of scikit-learn's meta-estimators. The budget is split so that all these fits together cost no more than was given.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_clusterer, is_outlier_detector, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler, SkewedChi2Sampler
from sklearn.model_selection import GridSearchCV, ParameterGrid, PredefinedSplit, RandomizedSearchCV, check_cv
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder, OrdinalEncoder, PolynomialFeatures, SplineTransformer
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.utils import get_tags

from ..accounting import (
    GROUP_SUPPORT_HINT,
    Budget,
    BudgetAccountant,
    PrivacyCost,
    check_delta,
    check_epsilon,
    check_same_unit,
    gaussian_epsilon,
    gaussian_mu,
    largest_epsilon,
    largest_share,
)
from ..checks.values import shown
from ..exceptions import BudgetError, PrivacyAssumptionWarning
from ..release.session import check_accountant

_PRIVATE = frozenset({"epsilon", "delta", "accountant"})
_UNIT = "rows_per_group"


@dataclass(frozen=True)
class Step:
    """A private step, and what it got.

    Attributes
    ----------
    name : str
        Its name, as in `get_params`; empty for the estimator itself.
    estimator : str
        Its class.
    n_fits : int
        How often it is fitted when the whole is fitted once.
    weight : float
        Its part of the budget, of all fits together.
    budget : Budget
        What one fit of it may spend.
    """

    name: str
    estimator: str
    n_fits: int
    weight: float
    budget: Budget


class Allocation(Mapping[str, Budget]):
    """What each private step of a pipeline may spend in one fit of it.

    A mapping from the steps' names to budgets.

    Attributes
    ----------
    steps : tuple of Step
        The private steps.
    total : Budget
        What one fit of the whole costs at most.
    not_private : tuple of str
        What else depends on the data, and is not private: steps that learn from them, the choice that a search makes
        by its scores, and folds by row numbers, in which one record moves others.
    """

    def __init__(self, steps: tuple[Step, ...], total: Budget, not_private: tuple[str, ...]) -> None:
        self.steps = steps
        self.total = total
        self.not_private = not_private

    def __getitem__(self, name: str) -> Budget:
        return {step.name: step.budget for step in self.steps}[name]

    def __iter__(self) -> Iterator[str]:
        return iter(step.name for step in self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        lines = [f"Allocation of (epsilon={self.total.epsilon:g}, delta={self.total.delta:g})"]
        width = max(len(step.name or step.estimator) for step in self.steps)
        for step in self.steps:
            name = (step.name or step.estimator).ljust(width)
            fits = "" if step.n_fits == 1 else f", in each of {step.n_fits} fits"
            lines.append(
                f"  {name}  epsilon={step.budget.epsilon:.6g}, delta={step.budget.delta:.3g}"
                f" (weight {step.weight:.3g}{fits})"
            )
        if sum(step.n_fits * step.budget.epsilon for step in self.steps) > self.total.epsilon * (1 + 1e-9):
            lines.append("  The epsilons of all fits add up to more than the total, because their costs compose.")
        lines += [f"  {name}  depends on the data, and is not private" for name in self.not_private]
        return "\n".join(lines)


def allocate(
    estimator: Any,
    epsilon: float,
    delta: float = 0.0,
    weights: Mapping[str, float] | None = None,
    accountant: BudgetAccountant | None = None,
) -> Allocation:
    """Split one budget over all private steps of an estimator, and set it.

    Parameters
    ----------
    estimator : estimator
        A private estimator, or a Pipeline, ColumnTransformer, FeatureUnion or meta-estimator that holds some, nested
        as deep as you like. The parameters `epsilon` and `delta` of its private steps are set.
    epsilon : float
        What one fit of the whole may cost, positive.
    delta : float, default=0.0
        The same, in [0, 1). With 0, all steps are pure.
    weights : dict of str to float, default=None
        Positive weights of the steps, by their names as in `get_params` (``"pca"``, ``"union__pca"``,
        ``"estimator__clf"``). A step that is not named has weight 1.
    accountant : BudgetAccountant, default=None
        Set on all private steps, unless None. It has to admit the whole.

    Returns
    -------
    allocation : Allocation
        What each step got, and which steps are not private.

    Raises
    ------
    ValueError
        If there is no private step, if a weight names none, if it cannot be told how often a step is fitted (or, in
        the local model, handed rows), or if some steps count rows and others groups of rows.
    BudgetError
        If the accountant does not have as much left, or is about another unit. Nothing is set then.

    Warns
    -----
    PrivacyAssumptionWarning
        If anything else depends on the data: another step that learns from them, the choice that a search makes, or
        folds by row numbers. The whole is private only if what these learn or choose is public. The warning names the
        option with which a step learns nothing, if there is one: ``OneHotEncoder`` and ``OrdinalEncoder`` with given
        `categories` and a `handle_unknown` other than ``"error"``, for instance. Also if a `Normalizer` comes before a
        step with bins or trees, because its last bit can depend on how many rows there are.

    Notes
    -----
    **Privacy.** One fit of the whole costs at most (epsilon, delta). With ``delta=0`` epsilon is split in proportion to
    the weights. Otherwise it is split by the composition of the accountant, or the best one if that is open: in
    proportion, or so that the squares of Gaussian-DP parameters or the Rényi divergences of all fits add up to those of
    (epsilon, delta). Each step then has more than its proportional part, and the epsilons of all fits add up to more
    than the whole. An accountant whose rule is open settles on the one of the split. A single step that is fitted once
    gets the whole budget under every rule, and leaves the rule open. If the accountant does not admit the whole, the
    step gets the largest part that is admitted.

    A transformer of the local model (:mod:`skdp.local`) charges what it transforms: once when the whole is fitted, and
    again whenever the whole predicts. What comes after it in a pipeline, and has no use for labels, sees reports alone:
    it is private, and gets no part. That is known of scikit-learn's clusterers, outlier detectors, densities and
    transformers. Anything else may see labels as they are, and is named as not private.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import Normalizer
    >>> from skdp import ObjPertLogReg, allocate
    >>> model = make_pipeline(Normalizer(), ObjPertLogReg(data_norm=1.0, classes=[0, 1]))
    >>> allocate(model, epsilon=0.5, delta=1e-6)
    Allocation of (epsilon=0.5, delta=1e-06)
      objpertlogreg  epsilon=0.5, delta=1e-06 (weight 1)
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    check_accountant(accountant)
    found = list(_walk(estimator, "", 1, [{}]))
    private = [place for place in found if _is_private(place.estimator)]
    not_private = tuple(place.name or type(place.estimator).__name__ for place in found if place not in private)
    if not private:
        raise ValueError(f"{type(estimator).__name__} has no private step: none with epsilon, delta and accountant")
    if len({id(place.estimator) for place in private}) < len(private):
        raise ValueError("one object is a private step at two places; make one of them a clone")
    _check_units(private, accountant)
    _check_coded(estimator)
    parts = _parts(private, weights)
    budgets, rule = _split(private, parts, Budget(epsilon, delta), accountant)
    if not_private:
        warnings.warn(
            f"not private, and a function of the data: {', '.join(not_private)}. The whole is private only if what "
            f"these learn or choose is public{_advice([place for place in found if place not in private])}",
            PrivacyAssumptionWarning,
            stacklevel=2,
        )
    inexact = list(_inexact(estimator, ""))
    if inexact:
        warnings.warn(
            f"not exact row by row, before bins: {', '.join(inexact)}. The last bit of what Normalizer makes of a row "
            "can depend on how many rows there are, and move the row to another bin. Use NormClipper instead, or "
            "put the pipeline into a DPGridSearchCV or a DPRandomizedSearchCV, which divide rows exactly",
            PrivacyAssumptionWarning,
            stacklevel=2,
        )
    if accountant is not None and rule is not None:
        accountant._settle(rule)
    for place, budget in zip(private, budgets, strict=True):
        values: dict[str, Any] = {"epsilon": budget.epsilon, "delta": budget.delta}
        if accountant is not None:
            values["accountant"] = accountant
        _set(place.estimator, **values)
    steps = tuple(
        Step(place.name, type(place.estimator).__name__, place.n_fits, float(part), budget)
        for place, part, budget in zip(private, parts, budgets, strict=True)
    )
    return Allocation(steps, Budget(epsilon, delta), not_private)


def largest_budget(accountant: BudgetAccountant, estimator: Any, k: int, n_features: int | None) -> Budget:
    """Return the largest budget at which `accountant` admits `k` equal fits of `estimator`."""
    # For a private estimator the result is an epsilon at its own delta; for others, `allocate` can be given the result.
    private = [place for place in _walk(estimator, "", 1, [{}]) if _is_private(place.estimator)]
    if not private:
        raise ValueError(f"{type(estimator).__name__} has no private step: none with epsilon, delta and accountant")
    _check_units(private, accountant)
    generic = accountant.remaining(k)
    if _is_private(estimator):
        delta = check_delta(getattr(estimator, "delta", 0.0))
        columns = getattr(estimator, "n_features_in_", None) if n_features is None else n_features

        def costs_at(epsilon: float) -> tuple[CountedCosts, str | None] | None:
            if not hasattr(estimator, "_cost_at"):
                return [(PrivacyCost.of_pair(epsilon, delta), k)], None
            cost = estimator._cost_at(epsilon, columns)
            return None if cost is None else ([(cost, k)], None)

    else:
        delta = generic.delta if accountant.composition == "basic" else accountant.delta
        parts = _parts(private, None)
        single = len(private) == private[0].n_fits == 1

        def costs_at(epsilon: float) -> tuple[CountedCosts, str | None] | None:
            budgets, rule = [Budget(epsilon, delta)], None
            if not single:
                budgets, rule = _split(private, parts, budgets[0], accountant)
            costs = _costs(private, budgets, accountant) or _pairs(private, budgets)
            return [(cost, count * k) for cost, count in costs], rule

    reasons: list[Exception] = []

    def portion(epsilon: float) -> float | None:
        try:
            found = costs_at(epsilon)
        except BudgetError:
            return math.inf
        except ValueError as error:
            reasons[:] = [error]
            return None
        return None if found is None else accountant._portion(*found)

    if accountant.composition == "plan":
        return generic
    largest = largest_epsilon(portion, accountant.epsilon, generic.epsilon)
    if largest is None:
        raise ValueError(
            f"the cost of {type(estimator).__name__} depends on what is not known yet. Declare the classes of "
            "classifiers and give what a search tries as lists; some estimators need n_features as well"
        ) from (reasons[0] if reasons else None)
    return Budget(largest, delta)


# --- where the private steps are, and how often each is fitted --------------------------------------------------------


@dataclass(frozen=True)
class _Place:
    """Where a step is, how often it is fitted, and with which other parameters; None if they cannot be listed."""

    name: str
    estimator: Any
    n_fits: int
    variants: Variants


Variants = list[dict[str, Any]] | None


def _is_private(estimator: Any) -> bool:
    if not hasattr(estimator, "get_params"):
        return False
    # Estimators of the local model have pure privacy, and no parameter delta.
    delta = getattr(estimator, "delta", None)
    pure = {"delta"} if isinstance(delta, int | float) and delta == 0 else set()
    return set(estimator.get_params(deep=False)) | pure >= _PRIVATE


def _set(estimator: Any, **values: Any) -> Any:
    own = estimator.get_params(deep=False)
    return estimator.set_params(**{name: value for name, value in values.items() if name in own})


def _randomizes_rows(estimator: Any) -> bool:
    """Whether this randomises each row by itself, so that what sees its output alone learns nothing else."""
    return _is_private(estimator) and getattr(estimator, "_randomizes_rows", False)


def _holds_randomizer(estimator: Any) -> bool:
    return _randomizes_rows(estimator) or any(_holds_randomizer(child) for child in _children(estimator).values())


#: Transformers and others of scikit-learn that ignore labels, by package. Any other class is assumed to use labels.
_UNLABELLED = {
    "cluster": "FeatureAgglomeration",
    "covariance": "EmpiricalCovariance GraphicalLasso GraphicalLassoCV LedoitWolf MinCovDet OAS ShrunkCovariance",
    "decomposition": (
        "DictionaryLearning FactorAnalysis FastICA IncrementalPCA KernelPCA LatentDirichletAllocation "
        "MiniBatchDictionaryLearning MiniBatchNMF MiniBatchSparsePCA NMF PCA SparsePCA TruncatedSVD"
    ),
    "ensemble": "RandomTreesEmbedding",
    "feature_selection": "VarianceThreshold",
    "impute": "IterativeImputer KNNImputer MissingIndicator SimpleImputer",
    "kernel_approximation": "AdditiveChi2Sampler Nystroem PolynomialCountSketch RBFSampler SkewedChi2Sampler",
    "manifold": "Isomap LocallyLinearEmbedding MDS SpectralEmbedding TSNE",
    "neighbors": "KernelDensity KNeighborsTransformer NearestNeighbors RadiusNeighborsTransformer",
    "neural_network": "BernoulliRBM",
    "preprocessing": (
        "Binarizer KBinsDiscretizer KernelCenterer MaxAbsScaler MinMaxScaler Normalizer OneHotEncoder OrdinalEncoder "
        "PolynomialFeatures PowerTransformer QuantileTransformer RobustScaler SplineTransformer StandardScaler"
    ),
    "random_projection": "GaussianRandomProjection SparseRandomProjection",
}


def _leaves_labels_alone(step: Any) -> bool:
    """Whether `fit` of this is known to make nothing of labels, which a pipeline hands to all of its steps."""
    library, package, *_ = [*type(step).__module__.split("."), "", ""]
    if library != "sklearn" or is_classifier(step) or is_regressor(step) or _children(step):
        return False
    density = get_tags(step).estimator_type == "density_estimator"
    listed = type(step).__name__ in _UNLABELLED.get(package, "").split()
    return listed or density or is_clusterer(step) or is_outlier_detector(step)


def _sees_reports_alone(pipeline: Any) -> set[str]:
    """Steps of a pipeline that learn from rows that were randomised, and from nothing else."""
    found: set[str] = set()
    randomized = False
    for name, step in pipeline.steps if isinstance(pipeline, Pipeline) else ():
        if randomized and hasattr(step, "fit") and not _holds_private(step) and _leaves_labels_alone(step):
            found.add(name)
        randomized = randomized or _randomizes_rows(step)
    return found


def _unit_of(estimator: Any) -> str:
    return "record" if getattr(estimator, _UNIT, None) is None else "group"


def _fitted_by_search(search: Any) -> Iterator[Any]:
    """Yield the private steps that a private search fits, unless its settings decide what they count."""
    settings = [getattr(search, name, None) for name in ("param_grid", "param_distributions")]
    if all(each is None for each in settings) or _UNIT in str(settings):
        return
    waiting = list(_children(search).values())
    while waiting:
        step = waiting.pop()
        if _is_private(step):
            yield step
        else:
            waiting += _children(step).values()


def _check_units(private: list[_Place], accountant: BudgetAccountant | None) -> None:
    """Refuse steps whose guarantees are about different units: their sum would be about none."""
    units: dict[str, list[str]] = {"record": [], "group": []}
    for place in private:
        for estimator in (place.estimator, *_fitted_by_search(place.estimator)):
            own = estimator is place.estimator
            units[_unit_of(estimator)].append((own and place.name) or type(estimator).__name__)
    if all(units.values()):
        of_rows, of_groups = (list(dict.fromkeys(names)) for names in units.values())
        raise ValueError(
            f"{', '.join(of_rows)} would count rows, and {', '.join(of_groups)} groups of rows: set rows_per_group in "
            f"all of them, or in none. {GROUP_SUPPORT_HINT}"
        )
    if accountant is not None:
        for place in private:
            unit = _unit_of(place.estimator)
            check_same_unit(unit, accountant.unit, type(place.estimator).__name__)


def _check_coded(estimator: Any, name: str = "", meta: str = "") -> None:
    """Refuse declared labels of text where a meta-estimator hands positions of labels to its parts."""
    classes = getattr(estimator, "classes", None) if meta and _is_private(estimator) else None
    if classes is not None and np.asarray(classes).dtype.kind in "OUST":
        raise ValueError(
            f"{name}: {meta} hands positions of labels to the estimators inside, and their classes hold text. Set "
            f"classes={list(range(len(classes)))} on {type(estimator).__name__}; {meta} still predicts text"
        )
    if isinstance(estimator, VotingClassifier | StackingClassifier):
        meta = type(estimator).__name__
    for part, child in _children(estimator).items():
        _check_coded(child, _join(name, part), meta)


def _children(estimator: Any) -> dict[str, Any]:
    return {
        name: value
        for name, value in estimator.get_params(deep=True).items()
        if "__" not in name and hasattr(value, "fit") and hasattr(value, "get_params") and not isinstance(value, type)
    }


def _holds_private(estimator: Any) -> bool:
    return _is_private(estimator) or any(_holds_private(child) for child in _children(estimator).values())


def _walk(estimator: Any, name: str, n_fits: int, variants: Variants, within: Any = None) -> Iterator[_Place]:
    """Yield the private steps, and the other steps that learn from the data."""
    # `within` is the innermost meta-estimator around the step that may do more with rows than fit each part once.
    if n_fits == 0 or isinstance(estimator, FrozenEstimator):
        # A step that is not fitted releases nothing, unless it releases in `transform`.
        if _holds_randomizer(estimator):
            raise _handed_on(estimator if within is None else within, name)
        return
    if _is_private(estimator):
        if within is not None and _randomizes_rows(estimator):
            raise _handed_on(within, name)
        yield _Place(name, estimator, n_fits, variants)
        return
    children = _children(estimator)
    if isinstance(estimator, Pipeline) and estimator.memory is not None and _holds_randomizer(estimator):
        raise ValueError(
            "a pipeline with memory hands out the report of the first row again for every equal row, which tells that "
            "they are equal: set memory=None where rows are randomised"
        )
    for part in _defaults(estimator, children):
        yield _Place(_join(name, part), estimator, n_fits, variants)
    if not any(_holds_private(child) for child in children.values()) and not isinstance(estimator, _ONCE):
        # Some models that learn say that they need no fit: they have a prior.
        learns = get_tags(estimator).requires_fit or is_classifier(estimator) or is_regressor(estimator)
        if learns and not _learns_nothing(estimator, variants):
            yield _Place(name, estimator, n_fits, variants)
        return
    free = _sees_reports_alone(estimator)
    for child_name, child in children.items():
        if child_name in free:
            continue
        times = _times_fitted(estimator, child_name)
        below = _below(variants, child_name)
        if isinstance(estimator, _SEARCHES):
            below = _searched(estimator, below)
        # Targets are transformed once more, because scikit-learn checks the inverse.
        targets = isinstance(estimator, TransformedTargetRegressor) and child_name == "transformer"
        around = within if isinstance(estimator, _ONCE) and not targets else estimator
        yield from _walk(child, _join(name, child_name), n_fits * times, below, around)
    for part in _by_products(estimator):
        yield _Place(_join(name, part), estimator, n_fits, variants)


def _inexact(estimator: Any, name: str) -> Iterator[str]:
    """Yield each `Normalizer` before a step with bins or trees, outside of the searches of skdp."""
    children = {} if _is_private(estimator) else _children(estimator)
    for child_name, child in children.items():
        yield from _inexact(child, _join(name, child_name))
    if isinstance(estimator, Pipeline):
        steps = [(_join(name, step_name), step) for step_name, step in estimator.steps]
        for position, (step_name, step) in enumerate(steps):
            if type(step) is Normalizer and any(_has_bins(later) for _, later in steps[position + 1 :]):
                yield step_name


def _has_bins(estimator: Any) -> bool:
    return hasattr(estimator, "get_params") and any(
        name.rpartition("__")[2] in ("n_bins", "thresholds", "max_depth") for name in estimator.get_params()
    )


def _handed_on(within: Any, name: str) -> ValueError:
    return ValueError(
        f"it cannot be told how often {type(within).__name__} hands rows to {name!r}, and each time is a release; "
        "randomise the rows once, before, and search or stack on the reports"
    )


def _learns_nothing(estimator: Any, variants: Variants) -> bool:
    """Whether this is a step that could learn, and whose parameters say that it does not."""
    if _has_public_categories(estimator, variants) or _has_public_fill(estimator, variants):
        return True
    condition = _ONLY_COLUMNS.get(type(estimator))
    return condition is not None and variants is not None and all(map(condition, _each(estimator, variants)))


#: What learns only the number and types of columns from rows, with such parameters. Each was read in its `fit`.
_ONLY_COLUMNS: dict[type, Callable[[dict[str, Any]], bool]] = {
    PolynomialFeatures: lambda given: True,
    PolynomialCountSketch: lambda given: True,
    SkewedChi2Sampler: lambda given: True,
    RBFSampler: lambda given: not isinstance(given["gamma"], str),
    GaussianRandomProjection: lambda given: not isinstance(given["n_components"], str),
    SparseRandomProjection: lambda given: not isinstance(given["n_components"], str),
    MissingIndicator: lambda given: given["features"] == "all",
    SplineTransformer: lambda given: not isinstance(given["knots"], str),
    CountVectorizer: lambda given: given["vocabulary"] is not None,
    TfidfTransformer: lambda given: not given["use_idf"],
    TfidfVectorizer: lambda given: given["vocabulary"] is not None and not given["use_idf"],
}

#: What to do where a step learns from rows.
_INSTEAD = {
    "OneHotEncoder": "set categories, and handle_unknown='ignore'",
    "OrdinalEncoder": "set categories, and handle_unknown='use_encoded_value' with unknown_value",
    "SimpleImputer": "set strategy='constant', keep_empty_features=True and add_indicator=False",
    "RBFSampler": "set gamma to a number",
    "GaussianRandomProjection": "set n_components to a number, because 'auto' counts the rows",
    "SparseRandomProjection": "set n_components to a number, because 'auto' counts the rows",
    "MissingIndicator": "set features='all'",
    "SplineTransformer": "set knots to an array",
    "CountVectorizer": "set vocabulary, or use HashingVectorizer",
    "TfidfTransformer": "set use_idf=False",
    "TfidfVectorizer": "set vocabulary and use_idf=False, or use HashingVectorizer",
    "StandardScaler": "use DPStandardScaler, or BoundsScaler",
    "MinMaxScaler": "use BoundsScaler",
    "MaxAbsScaler": "use BoundsScaler",
    "RobustScaler": "use DPStandardScaler, or BoundsScaler",
    "KBinsDiscretizer": "use DPQuantileBinner, or PublicBinner",
    "QuantileTransformer": "use DPQuantileBinner",
    "PCA": "use DPPCA",
}


def _advice(places: list[_Place]) -> str:
    """Name an alternative to each step that learns."""
    kinds = {type(place.estimator).__name__: place for place in places}
    advice = [f"{kind}: {_INSTEAD[kind]}" for kind in kinds if kind in _INSTEAD]
    return f". Instead: {'; '.join(advice)}" if advice else ""


def _each(estimator: Any, variants: list[dict[str, Any]]) -> list[dict[str, Any]]:
    own = estimator.get_params(deep=False)
    return [{**own, **variant} for variant in variants]


def _has_public_fill(estimator: Any, variants: Variants) -> bool:
    """Whether this imputer fills in a constant and keeps all columns, also those without any value."""
    if not isinstance(estimator, SimpleImputer) or variants is None:
        return False
    return all(
        given["strategy"] == "constant" and given["keep_empty_features"] and not given["add_indicator"]
        for given in _each(estimator, variants)
    )


def _has_public_categories(estimator: Any, variants: Variants) -> bool:
    """Whether this is an encoder whose categories are given, and which lets others pass: it learns nothing."""
    if not isinstance(estimator, OneHotEncoder | OrdinalEncoder) or variants is None:
        return False
    return all(
        not isinstance(given["categories"], str)
        and given["handle_unknown"] != "error"
        and given["min_frequency"] is None
        and given["max_categories"] is None
        for given in _each(estimator, variants)
    )


def _join(name: str, part: str) -> str:
    return f"{name}__{part}" if name else part


def _defaults(meta: Any, children: dict[str, Any]) -> list[str]:
    """Parts that a meta-estimator makes itself where none is given; they are not private."""
    kinds = {
        "final_estimator": (StackingClassifier, StackingRegressor),
        "regressor": (TransformedTargetRegressor,),
        "estimator": (CalibratedClassifierCV,),
    }
    return [part for part, kind in kinds.items() if isinstance(meta, kind) and getattr(meta, part) is None]


def _by_products(meta: Any) -> list[str]:
    """Name the things that a meta-estimator learns or chooses from the data in addition to its parts."""
    found = []
    if isinstance(meta, CalibratedClassifierCV):
        found.append("calibrator")
    if isinstance(meta, VotingClassifier | StackingClassifier):
        # Its parts are fitted to numbers of labels: a label that one record brings renumbers the others.
        found.append("label encoder")
    if isinstance(meta, _SEARCHES) and _n_candidates(meta) > 1:
        found.append("choice")
    stacked = isinstance(meta, StackingClassifier | StackingRegressor) and not isinstance(meta.cv, str)
    if (stacked or isinstance(meta, (*_SEARCHES, CalibratedClassifierCV))) and not isinstance(meta.cv, PredefinedSplit):
        found.append("folds")
    return found


def _below(variants: Variants, child: str) -> Variants:
    """The settings of one part, each once."""
    if variants is None:
        return None
    found: list[dict[str, Any]] = []
    for variant in variants:
        own = {key[len(child) + 2 :]: value for key, value in variant.items() if key.startswith(f"{child}__")}
        if not any(_same(own, other) for other in found):
            found.append(own)
    return found


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    try:
        return one == other
    except ValueError:
        # Arrays do not compare to one truth value.
        return False


def _searched(search: Any, variants: Variants) -> Variants:
    """The settings that a search tries, on top of those that reach it."""
    grids = search.param_grid if isinstance(search, GridSearchCV) else search.param_distributions
    try:
        settings = ParameterGrid(grids)
    except TypeError:
        # The search draws from a distribution.
        return None
    if variants is None or len(settings) * len(variants) > _MOST_VARIANTS:
        return None
    return [{**variant, **setting} for variant in variants for setting in settings]


#: Steps of the search for the largest budgets.
_HALVINGS = 14

_NINE_DIGITS = Context(prec=9, rounding=ROUND_DOWN)

#: A little more than the least epsilon that `check_epsilon` accepts.
_LEAST_EPSILON = 1e-6

#: The cost of each setting is computed only up to this number of settings.
_MOST_VARIANTS = 500

#: Meta-estimators that fit each of their parts once, and learn nothing else.
_ONCE = (
    Pipeline,
    FeatureUnion,
    ColumnTransformer,
    TransformedTargetRegressor,
    VotingClassifier,
    VotingRegressor,
)


_SEARCHES = (GridSearchCV, RandomizedSearchCV)


def _times_fitted(meta: Any, child: str) -> int:
    """How often one fit of `meta` fits this part, from public parameters."""
    if isinstance(meta, _ONCE):
        return 1
    for kinds, count in _COUNTS:
        if isinstance(meta, kinds):
            return count(meta, child)
    raise ValueError(
        f"it cannot be told how often {type(meta).__name__} fits {child!r}; set epsilon and delta of its private steps "
        "by hand, with an accountant that has the whole budget as its ceiling"
    )


def _refuse_bagging(meta: Any, child: str) -> int:
    raise ValueError(
        f"{type(meta).__name__} seeds the noise of its estimators and keeps the seeds, and a bootstrap sample holds a "
        "record several times: its fits do not have the guarantee that they state"
    )


def _splits(meta: Any) -> int:
    if hasattr(meta.cv, "__next__"):
        raise ValueError(f"the splits of {type(meta).__name__} cannot be counted: cv is a generator; make it a list")
    try:
        return int(check_cv(meta.cv).get_n_splits())
    except (TypeError, ValueError):
        # The number of splits depends on the data.
        message = f"the number of splits of {type(meta).__name__} depends on the data; give cv as a number"
    raise ValueError(message)


def _n_candidates(search: Any) -> int:
    return len(ParameterGrid(search.param_grid)) if isinstance(search, GridSearchCV) else int(search.n_iter)


def _search_fits(search: Any, child: str) -> int:
    grids = search.param_grid if isinstance(search, GridSearchCV) else search.param_distributions
    for grid in grids if isinstance(grids, list | tuple) else [grids]:
        for name, values in grid.items():
            _check_searched(search.estimator, name, values)
    return _n_candidates(search) * _splits(search) + bool(search.refit)


def _check_searched(estimator: Any, name: str, values: Any) -> None:
    """Refuse what would change budgets, how often something is fitted, or what is."""
    *path, last = name.split("__")
    for part in path:
        estimator = _children(estimator).get(part)
    # What a private step holds is fitted to what it has released.
    holds_steps = estimator is not None and _children(estimator) and not _is_private(estimator)
    if estimator is None or holds_steps or last in _PRIVATE | {_UNIT} or _holds_estimators(values):
        raise ValueError(
            f"the search sets {name!r}: a search may set plain parameters of a pipeline's steps, but not their "
            "budgets, nor whom they are about, nor what is fitted, nor how often"
        )


def _holds_estimators(values: Any) -> bool:
    if isinstance(values, dict):
        return any(_holds_estimators(value) for value in values.values())
    if isinstance(values, np.ndarray):
        values = values.ravel().tolist()
    if isinstance(values, list | tuple):
        return any(_holds_estimators(value) for value in values)
    return hasattr(values, "fit") and hasattr(values, "get_params")


def _stacking_fits(meta: Any, child: str) -> int:
    if child == "final_estimator":
        return 1
    return 0 if isinstance(meta.cv, str) else _splits(meta) + 1


def _calibration_fits(meta: Any, child: str) -> int:
    # The ensemble has no further fit on everything.
    return _splits(meta) + (meta.ensemble is False)


_COUNTS: tuple[tuple[Any, Callable[[Any, str], int]], ...] = (
    ((BaggingClassifier, BaggingRegressor), _refuse_bagging),
    (_SEARCHES, _search_fits),
    ((StackingClassifier, StackingRegressor), _stacking_fits),
    (CalibratedClassifierCV, _calibration_fits),
    (SelectFromModel, lambda meta, child: 0 if meta.prefit else 1),
)


# --- how the budget is split ------------------------------------------------------------------------------------------


def _parts(private: list[_Place], weights: Mapping[str, float] | None) -> list[Fraction]:
    """Return each step's part of the budget; they add up to 1."""
    given = dict(weights or {})
    names = [place.name for place in private]
    unknown = sorted(set(given) - set(names))
    if unknown:
        raise ValueError(f"weights name no private step: {', '.join(unknown)}; the private steps are {names}")
    for name, weight in given.items():
        if isinstance(weight, bool) or not 0 < weight < math.inf:
            raise ValueError(f"the weight of {name!r} must be positive, got {shown(weight)}")
    shares = [Fraction(repr(float(given.get(name, 1.0)))) for name in names]
    return [share / sum(shares) for share in shares]


def _split(
    private: list[_Place], parts: list[Fraction], whole: Budget, accountant: BudgetAccountant | None
) -> tuple[list[Budget], str | None]:
    """Return the budget of one fit of each step, and the rule that counts them, if that matters."""
    portions = [part / place.n_fits for place, part in zip(private, parts, strict=True)]
    proportional = [
        Budget(largest_share(whole.epsilon, portion), largest_share(whole.delta, portion)) for portion in portions
    ]
    for place, budget in zip(private, proportional, strict=True):
        try:
            check_epsilon(budget.epsilon)
        except ValueError as error:
            raise ValueError(f"the budget leaves too little for step {place.name!r}: {error}") from None
    if len(private) == private[0].n_fits == 1:
        costs = None if accountant is None else _costs(private, proportional, accountant)
        if accountant is None or (costs is not None and accountant._after(costs) is not None):
            # Nothing is split. The rule stays open, as for a fit without `allocate`.
            return proportional, None
    pairs = _pairs(private, proportional)
    if whole.delta == 0 or whole.epsilon == math.inf:
        if accountant is not None and accountant._after(pairs) is None:
            raise BudgetError(_refusal(whole, accountant))
        return proportional, None
    rule = "auto" if accountant is None else accountant.composition
    if rule == "plan":
        raise ValueError("the accountant has a declared plan: its entries say what each fit may spend")
    counter = BudgetAccountant(*whole, composition=rule)
    if accountant is not None and rule != "basic" and _costs(private, proportional, counter) is None:
        # Otherwise an open accountant would count by basic composition from then on.
        raise ValueError(
            f"under {rule!r} composition the cost of a step has to be known without the data, and it is not: declare "
            "the classes of classifiers, and lists of what a search tries, or use "
            'BudgetAccountant(..., composition="basic")'
        )
    found: list[tuple[float, list[Budget], str]] = []
    for candidate in ("gdp", "rdp", "basic") if rule == "auto" else (rule,):
        if candidate == "basic":
            fits = accountant is None or accountant._after(pairs, "basic") is not None
            budgets = proportional if fits else None
        else:
            budgets = _by_composition(private, portions, whole, candidate, accountant)
        if budgets is not None:
            mu = min(gaussian_mu(*b) / math.sqrt(portion) for b, portion in zip(budgets, portions, strict=True))
            price = 1.0
            if accountant is not None and rule == "auto":
                # The rule stays, and decides how much the rest of the budget is worth.
                costs = pairs if candidate == "basic" else _costs(private, budgets, accountant)
                price = accountant._used(costs or pairs, candidate)
            found.append((mu**2 / price, budgets, candidate))
    if found:
        _, budgets, candidate = max(found, key=lambda option: option[0])
        return budgets, candidate
    assert accountant is not None
    raise BudgetError(_refusal(whole, accountant))


def _refusal(whole: Budget, accountant: BudgetAccountant) -> str:
    left = accountant.remaining()
    of = " for a Gaussian release" if accountant.composition in ("gdp", "rdp") else ""
    return (
        f"the accountant does not admit a further (epsilon={whole.epsilon:g}, delta={whole.delta:g}); "
        f"(epsilon={left.epsilon:.6g}, delta={left.delta:.6g}) remains{of}"
    )


CountedCosts = list[tuple[PrivacyCost, int]]


def _pairs(private: list[_Place], budgets: list[Budget]) -> CountedCosts:
    """What the steps charge if nothing but their budgets is known."""
    return [(PrivacyCost.of_pair(*budget), place.n_fits) for place, budget in zip(private, budgets, strict=True)]


def _costs(private: list[_Place], budgets: list[Budget], counter: BudgetAccountant) -> CountedCosts | None:
    """What the steps will charge at most, as `counter` counts; None if it depends on the data or on what is drawn."""
    costs = []
    for place, budget in zip(private, budgets, strict=True):
        variants = place.variants or []
        known = [cost for variant in variants if (cost := _cost(place.estimator, variant, budget)) is not None]
        if not known or len(known) < len(variants):
            return None
        costs.append((max(known, key=counter._measure), place.n_fits))
    return costs


def _cost(estimator: Any, variant: dict[str, Any], budget: Budget) -> PrivacyCost | None:
    """What one fit with these parameters will charge."""
    if not hasattr(estimator, "_fixed_cost"):
        return None
    step = _set(clone(estimator).set_params(**variant), epsilon=budget.epsilon, delta=budget.delta)
    cost: PrivacyCost | None = step._fixed_cost()
    return cost


def _by_composition(
    private: list[_Place],
    portions: list[Fraction],
    whole: Budget,
    rule: str,
    accountant: BudgetAccountant | None,
) -> list[Budget] | None:
    """Return the largest budgets that compose to the whole, each with its portion of the squared GDP parameter."""
    # They compose to the whole under the rule with the whole as its ceiling, and also by the count of the accountant if
    # it is empty. (An accountant with a larger ceiling counts Rényi divergences at another order.)
    mu = gaussian_mu(*whole)
    own = BudgetAccountant(*whole, composition=rule)
    ample = accountant is not None and accountant.total() == (0, 0) and _holds(accountant, whole)

    def budgets(scale: float) -> list[Budget]:
        return [
            Budget(_digits(gaussian_epsilon(scale * mu * math.sqrt(portion), whole.delta)), whole.delta)
            for portion in portions
        ]

    def admitted(scale: float) -> bool:
        found = budgets(scale)
        if min(budget.epsilon for budget in found) < _LEAST_EPSILON:
            return False
        costs = _costs(private, found, own)
        if costs is None or own._after(costs) is None:
            return False
        after = counted(found) if ample else None
        return not ample or (after is not None and after.epsilon <= whole.epsilon)

    def counted(found: list[Budget]) -> Budget | None:
        assert accountant is not None
        # Which setting costs most may depend on the order.
        costs = _costs(private, found, accountant)
        return None if costs is None else accountant._after(costs, rule)

    low, high = 0.0, 1.0
    if admitted(high):
        low = high
    for _ in range(_HALVINGS if low < high else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if admitted(middle) else (low, middle)
    if low == 0 or (accountant is not None and counted(budgets(low)) is None):
        return None
    return budgets(low)


def _holds(accountant: BudgetAccountant, whole: Budget) -> bool:
    return accountant.epsilon >= whole.epsilon and accountant.delta >= whole.delta


def _digits(value: float) -> float:
    """Round down to nine digits, which are enough to read."""
    return float(_NINE_DIGITS.create_decimal(value))

"""The private steps of a pipeline, and the steps that learn from the data or learn nothing.

All of it follows from classes and parameters. So does the schema of searches and scores, which may be that of a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier, is_clusterer, is_outlier_detector, is_regressor
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler, SkewedChi2Sampler
from sklearn.linear_model import RANSACRegressor
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder, OrdinalEncoder, PolynomialFeatures, SplineTransformer
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.utils import get_tags

from ..accounting import GROUP_SUPPORT_HINT, Budget, BudgetAccountant, PrivacyCost, check_same_unit
from ..checks.data import is_sparse, labels_of, refuse_lazy
from ..schema import Schema
from ..schema.encoding import declared_target, known_classes
from ..schema.entries import labels_by
from ..schema.schema import as_schema, read_rows


def declared(estimator: Any, name: str) -> Any:
    """Return a public parameter of an estimator, given or from its schema."""
    return estimator._declared(name) if hasattr(estimator, "_declared") else getattr(estimator, name, None)


def first_step(estimator: Any) -> Any:
    """Return the step that reads a table, inside pipelines and searches."""
    while True:
        if isinstance(estimator, Pipeline):
            estimator = estimator.steps[0][1]
        elif hasattr(estimator, "_model"):
            # A search passes its schema to its estimator.
            estimator = estimator._model()
        else:
            return estimator


def schema_of(estimator: Any, given: Any = None) -> Schema | None:
    """Return the given schema, or that of the step which reads the table, or None."""
    schema = getattr(first_step(estimator), "schema", None) if given is None else given
    return None if schema is None else as_schema(schema)


def rows_of_table(estimator: Any, X: Any) -> Any:
    """Read a dict of columns or a table of PyArrow by the schema of the estimator. Return other rows as they are."""
    refuse_lazy(X)
    # The result allows selecting rows as arrays do, which these tables do not.
    of_arrow = type(X).__module__.partition(".")[0] == "pyarrow"
    # Sparse rows by keys are mappings, too.
    of_columns = isinstance(X, Mapping) and not is_sparse(X)
    if not (of_arrow or of_columns or getattr(getattr(X, "dtype", None), "names", None)):
        return X
    schema = schema_of(estimator)
    if schema is None:
        raise TypeError(
            f"X is a {type(X).__name__} of columns, which only an estimator or a first step with a schema reads, and "
            f"{type(first_step(estimator)).__name__} has none. Set schema, or pass a DataFrame or an array"
        )
    return read_rows(schema, X)


def take(X: Any, rows: NDArray[np.intp]) -> Any:
    """Return some rows of an array, sparse matrix or dataframe, in the form of `X`."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows]


def with_schema(estimator: Any, given: Any) -> Any:
    """Return the estimator with the given schema in the step that reads the table."""
    if given is None:
        return estimator
    estimator = clone(estimator)
    step = first_step(estimator)
    parameters = step.get_params(deep=False) if hasattr(step, "get_params") else {}
    if "schema" not in parameters:
        name = type(step).__name__
        raise ValueError(f"schema is set, and {name}, which reads the table first, has no such parameter")
    if parameters["schema"] is None:
        step.set_params(schema=as_schema(given))
    elif as_schema(parameters["schema"]) != as_schema(given):
        raise ValueError(f"schema is not the same as that of {type(step).__name__}: set one of them to None")
    return estimator


def bounds_of(schema: Schema | None, bounds_y: Any, estimator: Any) -> Any:
    """Return the given range of targets, or that of the schema."""
    return bounds_y if bounds_y is not None or schema is None else declared_target(schema, "bounds_y", estimator)


def labels_in(schema: Schema | None, classes: NDArray | None, y: Any) -> NDArray:
    """Return labels as they are compared with the label set, by the rules of the schema if there is one."""
    if schema is None:
        return labels_of(y)
    return labels_by(known_classes(classes), y)


PRIVATE = frozenset({"epsilon", "delta", "accountant"})

UNIT = "rows_per_group"


def is_private(estimator: Any) -> bool:
    if not hasattr(estimator, "get_params"):
        return False
    # Estimators of the local model have pure privacy, and no parameter delta.
    delta = getattr(estimator, "delta", None)
    pure = {"delta"} if isinstance(delta, int | float) and delta == 0 else set()
    return set(estimator.get_params(deep=False)) | pure >= PRIVATE


def is_shared(estimator: Any) -> bool:
    """Tell whether the private steps of a pipeline share its budget, and are charged one by one."""
    return isinstance(estimator, Pipeline) and is_private(estimator)


def set_own(estimator: Any, **values: Any) -> Any:
    """Set those of the parameters that the estimator has."""
    known = estimator.get_params(deep=False)
    return estimator.set_params(**{name: value for name, value in values.items() if name in known})


def randomizes_rows(estimator: Any) -> bool:
    """Tell whether the estimator randomises each row separately. Steps that see only its output are private, too."""
    return is_private(estimator) and getattr(estimator, "_randomizes_rows", False)


def holds_randomizer(estimator: Any) -> bool:
    return randomizes_rows(estimator) or any(holds_randomizer(child) for child in children_of(estimator).values())


#: Transformers and other estimators of scikit-learn that ignore labels, by package. Other classes may use labels.
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


def ignores_labels(step: Any) -> bool:
    """Tell whether `fit` is known to ignore labels, which a pipeline passes to all of its steps."""
    library, package, *_ = [*type(step).__module__.split("."), "", ""]
    if library != "sklearn" or is_classifier(step) or is_regressor(step) or children_of(step):
        return False
    density = get_tags(step).estimator_type == "density_estimator"
    listed = type(step).__name__ in _UNLABELLED.get(package, "").split()
    return listed or density or is_clusterer(step) or is_outlier_detector(step)


def children_of(estimator: Any) -> dict[str, Any]:
    """Return the parameters that are estimators. Some transformers have fit_transform only."""
    methods = ("fit", "fit_transform", "transform")
    return {
        name: value
        for name, value in estimator.get_params(deep=True).items()
        if "__" not in name
        and hasattr(value, "get_params")
        and any(hasattr(value, method) for method in methods)
        and not isinstance(value, type)
    }


def holds_private(estimator: Any) -> bool:
    return is_private(estimator) or any(holds_private(child) for child in children_of(estimator).values())


def has_bins(estimator: Any) -> bool:
    return hasattr(estimator, "get_params") and any(
        name.rpartition("__")[2] in ("n_bins", "thresholds", "max_depth") for name in estimator.get_params()
    )


def learns_nothing(estimator: Any) -> bool:
    """Tell whether the step could learn from data, but its parameters exclude it."""
    kind = next((kind for kind in _OF_SUBCLASSES if isinstance(estimator, kind)), type(estimator))
    return kind in ONLY_COLUMNS and ONLY_COLUMNS[kind](estimator.get_params(deep=False))


def has_public_categories(given: dict[str, Any]) -> bool:
    """Tell whether an encoder has given categories, and accepts other values without a word."""
    return (
        not isinstance(given["categories"], str)
        and given["handle_unknown"] not in ("error", "warn")
        and given["min_frequency"] is None
        and given["max_categories"] is None
    )


#: Steps that learn only the number and types of columns from rows, under a condition on their parameters. This was
#: checked in the source of each `fit`. An imputer must keep all columns, also those without any value.
ONLY_COLUMNS: dict[type, Callable[[dict[str, Any]], bool]] = {
    # With `drop`, the encoder warns of other values.
    OneHotEncoder: lambda given: has_public_categories(given) and given["drop"] is None,
    OrdinalEncoder: has_public_categories,
    SimpleImputer: lambda given: (
        given["strategy"] == "constant" and given["keep_empty_features"] and not given["add_indicator"]
    ),
    PolynomialFeatures: lambda given: True,
    PolynomialCountSketch: lambda given: True,
    SkewedChi2Sampler: lambda given: True,
    RBFSampler: lambda given: not isinstance(given["gamma"], str),
    GaussianRandomProjection: lambda given: not isinstance(given["n_components"], str),
    SparseRandomProjection: lambda given: not isinstance(given["n_components"], str),
    MissingIndicator: lambda given: given["features"] == "all",
    # Sparse rows get the splines of the smallest number of other rows where a number is missing.
    SplineTransformer: lambda given: (
        not isinstance(given["knots"], str)
        and not (given["sparse_output"] and given.get("handle_missing", "error") != "error")
    ),
    CountVectorizer: lambda given: given["vocabulary"] is not None,
    TfidfTransformer: lambda given: not given["use_idf"],
    TfidfVectorizer: lambda given: given["vocabulary"] is not None and not given["use_idf"],
}

#: Of these, no bit of a row of the result depends on other rows. Products of matrices are not exact in this sense.
EXACT_IF_NOTHING_IS_LEARNED = (SimpleImputer, PolynomialFeatures, MissingIndicator, SplineTransformer)

#: Of these, which add up products in an order that depends on the number of rows, the last bit of a row can change.
_INEXACT = (Normalizer, RBFSampler, SkewedChi2Sampler, GaussianRandomProjection)

#: The conditions of these hold for subclasses, too.
_OF_SUBCLASSES = (OneHotEncoder, OrdinalEncoder, SimpleImputer)

#: Alternatives to steps that learn from rows.
_INSTEAD = {
    "OneHotEncoder": "set categories, and handle_unknown='ignore' without drop, or use TableEncoder",
    "OrdinalEncoder": "set categories, and handle_unknown='use_encoded_value' with unknown_value, or use TableEncoder",
    "SimpleImputer": "set strategy='constant', keep_empty_features=True and add_indicator=False",
    "RBFSampler": "set gamma to a number",
    "GaussianRandomProjection": "set n_components to a number, because 'auto' counts the rows",
    "SparseRandomProjection": "set n_components to a number, because 'auto' counts the rows",
    "MissingIndicator": "set features='all'",
    "SplineTransformer": "set knots to an array, and sparse_output=False with handle_missing='zeros'",
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


def advice(estimators: list[Any]) -> str:
    """Name an alternative to each step that learns."""
    kinds = dict.fromkeys(type(estimator).__name__ for estimator in estimators)
    advice = [f"{kind}: {_INSTEAD[kind]}" for kind in kinds if kind in _INSTEAD]
    return f". Instead: {'; '.join(advice)}" if advice else ""


@dataclass(frozen=True)
class CountedStep:
    """A step, which is fitted once in one fit of the whole."""

    name: str  # As in `get_params`. Empty for the estimator itself.
    estimator: Any

    @property
    def title(self) -> str:
        """Name of the step, or else of its class."""
        return self.name or type(self.estimator).__name__

    def known_cost(self, budget: Budget) -> PrivacyCost | None:
        """Return the cost of one fit with this budget, or None if it depends on the shape of the data."""
        if not hasattr(self.estimator, "_fixed_cost"):
            return None
        cost: PrivacyCost | None = set_own(
            copy(self.estimator), epsilon=budget.epsilon, delta=budget.delta
        )._fixed_cost()
        return cost


#: Meta-estimators that fit each of their parts once.
_ONCE = (
    *(Pipeline, FeatureUnion, ColumnTransformer, TransformedTargetRegressor),
    *(VotingClassifier, VotingRegressor, SelectFromModel),
)

_RESAMPLING = (BaggingClassifier, BaggingRegressor, AdaBoostClassifier, AdaBoostRegressor, RANSACRegressor)


def _sees_reports_alone(pipeline: Any) -> set[str]:
    """Return the steps of a pipeline that learn from randomised rows only."""
    names: set[str] = set()
    randomized = False
    for name, step in pipeline.steps if isinstance(pipeline, Pipeline) else ():
        if randomized and hasattr(step, "fit") and not holds_private(step) and ignores_labels(step):
            names.add(name)
        randomized = randomized or randomizes_rows(step)
    return names


def _unit_of(estimator: Any) -> str:
    if hasattr(estimator, "_unit"):
        return "record" if estimator._unit().rows_per_group is None else "group"
    if is_shared(estimator):
        # The fit of a pipeline with both refuses them.
        return "group" if units_in(Pipeline(estimator.steps)) == {"group"} else "record"
    return "record" if declared(estimator, UNIT) is None else "group"


def units_in(estimator: Any) -> set[str]:
    """Return the units of privacy of all private steps."""
    return {_unit_of(step.estimator) for step in counted_steps(estimator) if is_private(step.estimator)}


def _fitted_by_search(search: Any) -> Iterator[Any]:
    """Yield the private steps that a private search fits, unless its settings change their `rows_per_group`."""
    settings = [getattr(search, name, None) for name in ("param_grid", "param_distributions")]
    if all(each is None for each in settings) or UNIT in str(settings):
        return
    waiting = [search._model()]
    while waiting:
        step = waiting.pop()
        if is_private(step):
            yield step
        else:
            waiting += children_of(step).values()


def private_steps(estimator: Any) -> tuple[list[CountedStep], list[CountedStep]]:
    """Return the private steps, of which there must be one or more, and the other steps that learn from the data."""
    steps = list(counted_steps(estimator))
    private = [step for step in steps if is_private(step.estimator)]
    if not private:
        raise ValueError(f"{type(estimator).__name__} has no private step: none with epsilon, delta and accountant")
    if len({id(step.estimator) for step in private}) < len(private):
        raise ValueError("one object is a private step at two places; make one of them a clone")
    return private, [step for step in steps if not is_private(step.estimator)]


def check_units(private: list[CountedStep], accountant: BudgetAccountant | None) -> None:
    """Refuse steps whose guarantees have different units, because these cannot be added up."""
    units: dict[str, list[str]] = {"record": [], "group": []}
    for step in private:
        units[_unit_of(step.estimator)].append(step.title)
        for estimator in _fitted_by_search(step.estimator):
            units[_unit_of(estimator)].append(type(estimator).__name__)
    if all(units.values()):
        of_rows, of_groups = (list(dict.fromkeys(names)) for names in units.values())
        raise ValueError(
            f"{', '.join(of_rows)} would count rows, and {', '.join(of_groups)} groups of rows: set rows_per_group in "
            f"all of them, or in none. {GROUP_SUPPORT_HINT}"
        )
    if accountant is not None:
        for step in private:
            check_same_unit(_unit_of(step.estimator), accountant.unit, type(step.estimator).__name__)


def check_coded(estimator: Any, name: str = "", meta: str = "") -> None:
    """Refuse declared labels of text if a meta-estimator passes positions of labels to its parts."""
    classes = declared(estimator, "classes") if meta and is_private(estimator) else None
    if classes is not None and np.asarray(classes).dtype.kind in "OUST":
        raise ValueError(
            f"{name}: {meta} hands positions of labels to the estimators inside, and their classes hold text. Set "
            f"classes={list(range(len(classes)))} on {type(estimator).__name__}; {meta} still predicts text"
        )
    if isinstance(estimator, VotingClassifier):
        meta = type(estimator).__name__
    for child_name, child in children_of(estimator).items():
        check_coded(child, join(name, child_name), meta)


def counted_steps(estimator: Any, name: str = "") -> Iterator[CountedStep]:
    """Yield the private steps, and the other steps that learn from the data."""
    if isinstance(estimator, FrozenEstimator) or (isinstance(estimator, SelectFromModel) and estimator.prefit):
        # A step that is not fitted releases nothing, except in `transform`.
        _check_not_handed_on(estimator, estimator, name)
        return
    if is_private(estimator):
        yield CountedStep(name, estimator)
        return
    children = children_of(estimator)
    if isinstance(estimator, Pipeline) and estimator.memory is not None and holds_randomizer(estimator):
        raise ValueError(
            "memory of the pipeline must be None if rows are randomised: a cache has one report for equal rows"
        )
    if not isinstance(estimator, _ONCE):
        if any(holds_private(child) for child in children.values()):
            raise _not_once(estimator)
        # Some models that learn have the tag that they need no fit, because they have a prior.
        learns = get_tags(estimator).requires_fit or is_classifier(estimator) or is_regressor(estimator)
        if learns and not learns_nothing(estimator):
            yield CountedStep(name, estimator)
        return
    if isinstance(estimator, TransformedTargetRegressor) and estimator.regressor is None:
        # The default part is not private.
        yield CountedStep(join(name, "regressor"), estimator)
    free = _sees_reports_alone(estimator)
    for child_name, child in children.items():
        if child_name in free:
            continue
        if isinstance(estimator, TransformedTargetRegressor) and child_name == "transformer":
            # Targets are transformed once more, because scikit-learn checks the inverse.
            _check_not_handed_on(estimator, child, join(name, child_name))
        yield from counted_steps(child, join(name, child_name))
    if isinstance(estimator, ColumnTransformer) and any(callable(columns) for _, _, columns in estimator.transformers):
        # One entry of text changes the type of a column.
        yield CountedStep(join(name, "columns"), estimator)
    if isinstance(estimator, SelectFromModel) and callable(estimator.max_features):
        # The function receives all rows.
        yield CountedStep(join(name, "max_features"), estimator)
    if isinstance(estimator, VotingClassifier):
        # Its parts are fitted to positions of labels. One record with a new label changes the positions of others.
        yield CountedStep(join(name, "label encoder"), estimator)


def learning_classes(estimator: Any) -> list[str]:
    """Return the names of classes of scikit-learn that learn from the records without privacy."""
    steps = []
    # Some meta-estimators are refused by `allocate`, and may be fitted.
    with suppress(ValueError):
        steps = [step.estimator for step in counted_steps(estimator) if not is_private(step.estimator)]
    # A meta-estimator around a private step is named elsewhere.
    outer = {type(step) for step in steps if not holds_private(step)}
    return sorted(kind.__name__ for kind in outer if kind.__module__.startswith("sklearn."))


def inexact_before_bins(estimator: Any, name: str) -> Iterator[str]:
    """Yield each inexact step before a step with bins or trees, outside of the searches of skdp."""
    children = {} if is_private(estimator) else children_of(estimator)
    for child_name, child in children.items():
        yield from inexact_before_bins(child, join(name, child_name))
    if isinstance(estimator, Pipeline):
        steps = [(join(name, step_name), step) for step_name, step in estimator.steps]
        for position, (step_name, step) in enumerate(steps):
            if type(step) in _INEXACT and any(has_bins(later) for _, later in steps[position + 1 :]):
                yield step_name


def _check_not_handed_on(within: Any, estimator: Any, name: str) -> None:
    """Refuse an estimator of the local model to which `within` passes rows in addition to a fit."""
    if holds_randomizer(estimator):
        raise ValueError(
            f"the number of times that {type(within).__name__} passes rows to {name!r} is not known, and each "
            "time is a release. Randomise the rows once beforehand, and fit to the reports"
        )


def join(name: str, parameter: str) -> str:
    """Return the name of a parameter of a step. The name of the step may be empty."""
    return f"{name}__{parameter}" if name else parameter


def _not_once(meta: Any) -> ValueError:
    """Return the error for a meta-estimator that fits its private parts otherwise than once to all records."""
    kind = type(meta).__name__
    if isinstance(meta, _RESAMPLING):
        return ValueError(
            f"{kind} seeds the noise of its estimators and keeps the seeds, and a sample holds a record "
            "several times or depends on all records. Therefore its fits do not have the guarantee that they state. "
            "Use PATEClassifier, SampleAggregate or DPRandomTree instead"
        )
    if isinstance(meta, GridSearchCV | RandomizedSearchCV):
        return ValueError(
            f"{kind} compares candidates by exact scores of private records. Use DPGridSearchCV or "
            "DPRandomizedSearchCV, which divide one budget over all fits and the choice"
        )
    once = ", ".join(kind.__name__ for kind in _ONCE)
    return ValueError(
        f"{kind} is not known to fit each of its parts once. A budget is divided over the private steps of {once} "
        f"only. Set epsilon and delta of the private steps in {kind} yourself, with an accountant that has the whole "
        "budget as its ceiling"
    )

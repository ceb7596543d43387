"""The private steps of a pipeline, the number of their fits, and the other steps that learn from the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import RANSACRegressor
from sklearn.model_selection import GridSearchCV, ParameterGrid, PredefinedSplit, RandomizedSearchCV, check_cv
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils import get_tags

from ..accounting import (
    GROUP_SUPPORT_HINT,
    BudgetAccountant,
    check_same_unit,
)
from ._kinds import (
    PRIVATE,
    UNIT,
    Variants,
    children_of,
    has_bins,
    holds_private,
    holds_randomizer,
    ignores_labels,
    is_private,
    is_shared,
    learns_nothing,
    randomizes_rows,
)
from ._tables import declared


@dataclass(frozen=True)
class Place:
    """The position of a step, the number of its fits, and its other settings, or None if they cannot be listed."""

    name: str
    estimator: Any
    n_fits: int
    variants: Variants


#: Meta-estimators that fit each of their parts once, and learn nothing from the data.
_ONCE = (
    Pipeline,
    FeatureUnion,
    ColumnTransformer,
    TransformedTargetRegressor,
    VotingClassifier,
    VotingRegressor,
)

_SEARCHES = (GridSearchCV, RandomizedSearchCV)


def _sees_reports_alone(pipeline: Any) -> set[str]:
    """Return the steps of a pipeline that learn from randomised rows only."""
    found: set[str] = set()
    randomized = False
    for name, step in pipeline.steps if isinstance(pipeline, Pipeline) else ():
        if randomized and hasattr(step, "fit") and not holds_private(step) and ignores_labels(step):
            found.add(name)
        randomized = randomized or randomizes_rows(step)
    return found


def _unit_of(estimator: Any) -> str:
    if hasattr(estimator, "_unit"):
        return "record" if estimator._unit().rows_per_group is None else "group"
    if is_shared(estimator):
        # The fit of a pipeline with both refuses them.
        return "group" if units_in(Pipeline(estimator.steps)) == {"group"} else "record"
    return "record" if declared(estimator, UNIT) is None else "group"


def units_in(estimator: Any) -> set[str]:
    """Return the units of privacy of all private steps."""
    return {_unit_of(place.estimator) for place in walk(estimator, "", 1, [{}]) if is_private(place.estimator)}


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


def check_units(private: list[Place], accountant: BudgetAccountant | None) -> None:
    """Refuse steps whose guarantees have different units, because these cannot be added up."""
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


def check_coded(estimator: Any, name: str = "", meta: str = "") -> None:
    """Refuse declared labels of text if a meta-estimator passes positions of labels to its parts."""
    classes = declared(estimator, "classes") if meta and is_private(estimator) else None
    if classes is not None and np.asarray(classes).dtype.kind in "OUST":
        raise ValueError(
            f"{name}: {meta} hands positions of labels to the estimators inside, and their classes hold text. Set "
            f"classes={list(range(len(classes)))} on {type(estimator).__name__}; {meta} still predicts text"
        )
    if isinstance(estimator, VotingClassifier | StackingClassifier):
        meta = type(estimator).__name__
    for part, child in children_of(estimator).items():
        check_coded(child, _join(name, part), meta)


def walk(estimator: Any, name: str, n_fits: int, variants: Variants, within: Any = None) -> Iterator[Place]:
    """Yield the private steps, and the other steps that learn from the data."""
    # `within` is the innermost meta-estimator around the step that may do more than fit each part once.
    if n_fits == 0 or isinstance(estimator, FrozenEstimator):
        # A step that is not fitted releases nothing, except in `transform`.
        if holds_randomizer(estimator):
            raise _handed_on(estimator if within is None else within, name)
        return
    if is_private(estimator):
        if within is not None and holds_randomizer(estimator):
            raise _handed_on(within, name)
        yield Place(name, estimator, n_fits, variants)
        return
    children = children_of(estimator)
    if isinstance(estimator, Pipeline) and estimator.memory is not None and holds_randomizer(estimator):
        raise ValueError(
            "memory of the pipeline must be None if rows are randomised. A cache returns the same report for "
            "equal rows, which discloses that they are equal"
        )
    for part in _defaults(estimator, children):
        yield Place(_join(name, part), estimator, n_fits, variants)
    if not any(holds_private(child) for child in children.values()) and not isinstance(estimator, _ONCE):
        # Some models that learn have the tag that they need no fit, because they have a prior.
        learns = get_tags(estimator).requires_fit or is_classifier(estimator) or is_regressor(estimator)
        if learns and not learns_nothing(estimator, variants):
            yield Place(name, estimator, n_fits, variants)
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
        yield from walk(child, _join(name, child_name), n_fits * times, below, around)
    for part in _by_products(estimator):
        yield Place(_join(name, part), estimator, n_fits, variants)


def inexact_before_bins(estimator: Any, name: str) -> Iterator[str]:
    """Yield each `Normalizer` before a step with bins or trees, outside of the searches of skdp."""
    children = {} if is_private(estimator) else children_of(estimator)
    for child_name, child in children.items():
        yield from inexact_before_bins(child, _join(name, child_name))
    if isinstance(estimator, Pipeline):
        steps = [(_join(name, step_name), step) for step_name, step in estimator.steps]
        for position, (step_name, step) in enumerate(steps):
            if type(step) is Normalizer and any(has_bins(later) for _, later in steps[position + 1 :]):
                yield step_name


def _handed_on(within: Any, name: str) -> ValueError:
    return ValueError(
        f"the number of times that {type(within).__name__} passes rows to {name!r} is not known, and each "
        "time is a release. Randomise the rows once beforehand, and search or stack on the reports"
    )


def _join(name: str, part: str) -> str:
    return f"{name}__{part}" if name else part


def _defaults(meta: Any, children: dict[str, Any]) -> list[str]:
    """Return the parts that a meta-estimator makes by default. They are not private."""
    kinds = {
        "final_estimator": (StackingClassifier, StackingRegressor),
        "regressor": (TransformedTargetRegressor,),
        "estimator": (CalibratedClassifierCV,),
    }
    return [part for part, kind in kinds.items() if isinstance(meta, kind) and getattr(meta, part) is None]


def _by_products(meta: Any) -> list[str]:
    """Return the results that a meta-estimator learns or chooses from the data in addition to its parts."""
    found = []
    if isinstance(meta, CalibratedClassifierCV):
        found.append("calibrator")
    if isinstance(meta, ColumnTransformer) and any(callable(columns) for _, _, columns in meta.transformers):
        # One entry of text changes the type of a column.
        found.append("columns")
    if isinstance(meta, VotingClassifier | StackingClassifier):
        # Its parts are fitted to positions of labels. One record with a new label changes the positions of others.
        found.append("label encoder")
    if isinstance(meta, _SEARCHES) and _n_candidates(meta) > 1:
        found.append("choice")
    stacked = isinstance(meta, StackingClassifier | StackingRegressor) and not isinstance(meta.cv, str)
    if (stacked or isinstance(meta, (*_SEARCHES, CalibratedClassifierCV))) and not isinstance(meta.cv, PredefinedSplit):
        found.append("folds")
    return found


def _below(variants: Variants, child: str) -> Variants:
    """Return the settings of one part, each once."""
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
        # The comparison of arrays is not a single truth value.
        return False


def _searched(search: Any, variants: Variants) -> Variants:
    """Return the settings that a search tries, in addition to those that are passed to it."""
    grids = search.param_grid if isinstance(search, GridSearchCV) else search.param_distributions
    try:
        settings = ParameterGrid(grids)
    except TypeError:
        # The search draws from a distribution.
        return None
    if variants is None or len(settings) * len(variants) > _MOST_VARIANTS:
        return None
    return [{**variant, **setting} for variant in variants for setting in settings]


#: The cost of each setting is computed only up to this number of settings.
_MOST_VARIANTS = 500


def _times_fitted(meta: Any, child: str) -> int:
    """Return the number of fits of this part in one fit of `meta`, from public parameters."""
    if isinstance(meta, _ONCE):
        return 1
    for kinds, count in _COUNTS:
        if isinstance(meta, kinds):
            return count(meta, child)
    raise ValueError(
        f"the number of fits of {child!r} in {type(meta).__name__} is not known. Set epsilon and delta of "
        "its private steps yourself, with an accountant that has the whole budget as its ceiling"
    )


def _refuse_resampling(meta: Any, child: str) -> int:
    raise ValueError(
        f"{type(meta).__name__} seeds the noise of its estimators and keeps the seeds, and a sample holds a record "
        "several times or depends on all records. Therefore its fits do not have the guarantee that they state. Use "
        "PATEClassifier, SampleAggregate or DPRandomTree instead"
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
    """Refuse settings that would change budgets, the number of fits, or the fitted steps."""
    *path, last = name.split("__")
    for part in path:
        estimator = children_of(estimator).get(part)
    # The parts of a private step are fitted to its releases.
    holds_steps = estimator is not None and children_of(estimator) and not is_private(estimator)
    if estimator is None or holds_steps or last in PRIVATE | {UNIT} or _holds_estimators(values):
        raise ValueError(
            f"the search sets {name!r}. A search may set plain parameters of a pipeline's steps, but not "
            "their budgets, their units, the fitted estimators or the number of fits"
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
    # The ensemble has no further fit to all records.
    return _splits(meta) + (meta.ensemble is False)


_RESAMPLING = (BaggingClassifier, BaggingRegressor, AdaBoostClassifier, AdaBoostRegressor, RANSACRegressor)

_COUNTS: tuple[tuple[Any, Callable[[Any, str], int]], ...] = (
    (_RESAMPLING, _refuse_resampling),
    (_SEARCHES, _search_fits),
    ((StackingClassifier, StackingRegressor), _stacking_fits),
    (CalibratedClassifierCV, _calibration_fits),
    (SelectFromModel, lambda meta, child: 0 if meta.prefit else 1),
)

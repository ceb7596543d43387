"""The candidates of a search: the private steps of each setting, and checks of their estimators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin, clone, is_classifier
from sklearn.pipeline import Pipeline

from ..accounting import GROUP_SUPPORT_HINT, Budget, PrivacyCost, PureEvent
from ..checks.params import check_classes
from ..release.mixin import DPEstimatorMixin
from ..release.units import ONE_RECORD, Unit
from ._allocation import parts_of_budget
from ._stateless import check_steps, without_records
from ._steps import is_private, is_shared, walk
from ._tables import declared

_BUDGET = frozenset({"epsilon", "delta", "accountant", "random_state"})


@dataclass(frozen=True)
class PrivateStep:
    """A private step of a candidate, the number of its fits in one fit of the candidate, and their part of a budget."""

    name: str  # As in `get_params`. Empty for the estimator itself.
    estimator: Any
    n_fits: int
    part: Fraction

    def cost(self, budget: Budget) -> PrivacyCost:
        """Return the cost of one fit with this budget, as a bare pair if the events depend on the shape of the data."""
        if budget.epsilon == float("inf"):
            return PrivacyCost(budget.epsilon, budget.delta, (PureEvent(budget.epsilon),))
        known = None
        if hasattr(self.estimator, "_fixed_cost"):
            known = clone(self.estimator).set_params(epsilon=budget.epsilon, delta=budget.delta)._fixed_cost()
        return known or PrivacyCost.of_pair(*budget)


@dataclass(frozen=True)
class Candidate:
    """One setting: its parameters, an estimator that is never fitted, and its private steps."""

    parameters: dict[str, Any]
    estimator: Any
    steps: tuple[PrivateStep, ...]

    def prepared(self, budgets: tuple[Budget, ...], seeds: Iterable[int | None]) -> Any:
        """Return an unfitted copy by `without_records`, with these budgets, its own noise and no accountant."""
        model = clone(self.estimator)
        for step, budget, seed in zip(self.steps, budgets, seeds, strict=True):
            values = {"epsilon": budget.epsilon, "delta": budget.delta}
            if "random_state" in step.estimator.get_params(deep=False):
                values["random_state"] = seed  # type: ignore[assignment]
            model.set_params(**{join(step.name, name): value for name, value in values.items()})
        return without_records(model)


def join(name: str, part: str) -> str:
    """Return the name of a parameter of a step. The name of the step may be empty."""
    return f"{name}__{part}" if name else part


def make_candidates(
    estimator: Any, settings: Iterable[Mapping[str, Any]], classes: NDArray | None, unit: Unit = ONE_RECORD
) -> tuple[Candidate, ...]:
    """Return the candidates, or raise an error that names the step that is not private."""
    # `classes` is the label set for steps without one. Each private step must count the unit of the search.
    found = []
    for setting in settings:
        for name in setting:
            if name.split("__")[-1] in _BUDGET:
                raise ValueError(f"a search cannot set {name!r}, because it divides the budget and the noise itself")
        model = clone(estimator).set_params(**clone(dict(setting), safe=False))
        weights = getattr(model, "weights", None) if is_shared(model) else None
        check_steps(model)
        model = _with_own_budgets(model)
        places = list(walk(model, "", 1, [{}]))
        learned = [place.name or type(place.estimator).__name__ for place in places if not is_private(place.estimator)]
        if learned:
            raise ValueError(
                f"not private, and a function of the data: {', '.join(learned)}. Every step of a searched "
                "estimator must be private or learn nothing. Encoders need their categories, and handle_unknown "
                "other than 'error'"
            )
        for place in places:
            if not isinstance(place.estimator, DPEstimatorMixin) or isinstance(place.estimator, MetaEstimatorMixin):
                kind = type(place.estimator).__name__
                raise ValueError(
                    f"a search cannot take {kind}, which is no private estimator of skdp, or divides a budget itself. "
                    "Search the estimator inside"
                )
            if place.estimator._local:
                raise ValueError(
                    f"a search cannot take {type(place.estimator).__name__}, which protects the contents of each "
                    "record and not the number of records. A search protects both"
                )
        if not places:
            raise ValueError(f"{type(estimator).__name__} has no private step: none with epsilon, delta and accountant")
        if len({id(place.estimator) for place in places}) < len(places):
            raise ValueError("one object is a private step at two places; make one of them a clone")
        n_fits = [place.n_fits for place in places]
        for place in places:
            if place.estimator.accountant is not None:
                raise ValueError(
                    f"step {place.name or type(place.estimator).__name__!r} has an accountant; pass it to the search, "
                    "which charges it once for everything"
                )
            _check_unit(place.estimator, unit)
            if classes is not None and _wants_classes(place.estimator):
                place.estimator.set_params(classes=classes)
        parts = parts_of_budget(places, weights) if weights else [Fraction(n, sum(n_fits)) for n in n_fits]
        steps = tuple(
            PrivateStep(place.name, place.estimator, place.n_fits, part)
            for place, part in zip(places, parts, strict=True)
        )
        found.append(Candidate(dict(setting), model, steps))
    if not found:
        raise ValueError("there is no candidate to try")
    return tuple(found)


def _with_own_budgets(estimator: Any) -> Any:
    """Return a plain pipeline in the place of a private one, because a search divides the budget itself."""
    if not is_shared(estimator):
        return estimator
    if estimator.accountant is not None:
        raise ValueError(
            f"{type(estimator).__name__} has an accountant; pass it to the search, which charges it once for everything"
        )
    return Pipeline(estimator.steps)


def _check_unit(step: Any, unit: Unit) -> None:
    """Refuse a step whose guarantee is about another unit than that of the search."""
    kind = type(step).__name__
    parameters = step.get_params(deep=False)
    by_group = declared(step, "rows_per_group") is not None
    if by_group and unit.rows_per_group is None:
        raise ValueError(
            f"{kind} counts groups, and the search around it counts records. Set rows_per_group of the search "
            "as well, which is the number of rows of a group in a score, and pass groups to it"
        )
    if unit.rows_per_group is None or by_group:
        return
    if "rows_per_group" in parameters:
        raise ValueError(
            f"rows_per_group is set, and must be set for {kind} as well, which would count records otherwise"
        )
    raise ValueError(
        f"rows_per_group is set, and {kind}, which counts records, has no such parameter. {GROUP_SUPPORT_HINT}"
    )


def _wants_classes(step: Any) -> bool:
    parameters = step.get_params(deep=False)
    return is_classifier(step) and "classes" in parameters and declared(step, "classes") is None


def declared_classes(estimator: Any) -> NDArray | None:
    """Return the label set that the classifier among the private steps declares, or None."""
    check_steps(estimator)
    plain = Pipeline(estimator.steps) if is_shared(estimator) else estimator
    for place in walk(clone(plain), "", 1, [{}]):
        if is_private(place.estimator) and is_classifier(place.estimator):
            return check_classes(declared(place.estimator, "classes"))
    return None

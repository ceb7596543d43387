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
from ._steps import UNIT, counted_steps, is_private, is_shared, join, private_steps
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


def make_candidates(
    estimator: Any, settings: Iterable[Mapping[str, Any]], classes: NDArray | None, unit: Unit = ONE_RECORD
) -> tuple[Candidate, ...]:
    """Return the candidates, or raise an error that names the step that is not private."""
    # `classes` is the label set for steps without one. Each private step must count the unit of the search.
    candidates = []
    for setting in settings:
        for name in setting:
            if name.split("__")[-1] in _BUDGET:
                raise ValueError(f"a search cannot set {name!r}, because it divides the budget and the noise itself")
        model = clone(estimator).set_params(**clone(dict(setting), safe=False))
        weights = getattr(model, "weights", None) if is_shared(model) else None
        check_steps(model)
        if is_shared(model):
            # A search divides the budget itself.
            _check_no_accountant(model, type(model).__name__)
            model = Pipeline(model.steps)
        # All other steps learn nothing.
        private, _ = private_steps(model)
        for step in private:
            kind = type(step.estimator).__name__
            if not isinstance(step.estimator, DPEstimatorMixin) or isinstance(step.estimator, MetaEstimatorMixin):
                raise ValueError(
                    f"a search cannot take {kind}, which is no private estimator of skdp, or divides a budget itself. "
                    "Search the estimator inside"
                )
            if step.estimator._local:
                raise ValueError(
                    f"a search cannot take {kind}, which protects the contents of each record and not the number of "
                    "records. A search protects both"
                )
        for step in private:
            _check_no_accountant(step.estimator, f"step {step.title!r}")
            _check_unit(step.estimator, unit)
            takes_classes = is_classifier(step.estimator) and "classes" in step.estimator.get_params(deep=False)
            if classes is not None and takes_classes and declared(step.estimator, "classes") is None:
                step.estimator.set_params(classes=classes)
        n_fits = sum(step.n_fits for step in private)
        parts = parts_of_budget(private, weights) if weights else [Fraction(s.n_fits, n_fits) for s in private]
        steps = tuple(
            PrivateStep(step.name, step.estimator, step.n_fits, part) for step, part in zip(private, parts, strict=True)
        )
        candidates.append(Candidate(dict(setting), model, steps))
    if not candidates:
        raise ValueError("there is no candidate to try")
    return tuple(candidates)


def _check_no_accountant(estimator: Any, title: str) -> None:
    if estimator.accountant is not None:
        raise ValueError(f"{title} has an accountant; pass it to the search, which charges it once for everything")


def _check_unit(step: Any, unit: Unit) -> None:
    """Refuse a step whose guarantee is about another unit than that of the search."""
    kind = type(step).__name__
    by_group = declared(step, UNIT) is not None
    if by_group and unit.rows_per_group is None:
        raise ValueError(
            f"{kind} counts groups, and the search around it counts records. Set rows_per_group of the search "
            "as well, which is the number of rows of a group in a score, and pass groups to it"
        )
    if unit.rows_per_group is None or by_group:
        return
    if UNIT in step.get_params(deep=False):
        raise ValueError(
            f"rows_per_group is set, and must be set for {kind} as well, which would count records otherwise"
        )
    raise ValueError(
        f"rows_per_group is set, and {kind}, which counts records, has no such parameter. {GROUP_SUPPORT_HINT}"
    )


def declared_classes(estimator: Any) -> NDArray | None:
    """Return the label set that the classifier among the private steps declares, or None."""
    check_steps(estimator)
    plain = Pipeline(estimator.steps) if is_shared(estimator) else estimator
    for step in counted_steps(clone(plain)):
        if is_private(step.estimator) and is_classifier(step.estimator):
            return check_classes(declared(step.estimator, "classes"))
    return None

"""Division of one budget over the private steps of a pipeline, and the candidates of a search.

The list of private steps is public, because it follows from the parameters of the pipeline.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, Context
from fractions import Fraction
from functools import partial
from typing import Any

from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin, clone, is_classifier
from sklearn.pipeline import Pipeline

from ..accounting import (
    GROUP_SUPPORT_HINT,
    Budget,
    BudgetAccountant,
    PrivacyCost,
    PureEvent,
    check_delta,
    check_epsilon,
    gaussian_epsilon,
    gaussian_mu,
    largest_epsilon,
    largest_share,
)
from ..checks.params import check_classes, misspelling, shown
from ..exceptions import BudgetError, PrivacyAssumptionWarning
from ..release.mixin import DPEstimatorMixin
from ..release.session import check_accountant
from ..release.units import ONE_RECORD, Unit
from ._stateless import check_steps, without_records
from ._steps import (
    UNIT,
    CountedStep,
    advice,
    check_coded,
    check_units,
    counted_steps,
    declared,
    inexact_before_bins,
    is_private,
    is_shared,
    join,
    private_steps,
    set_own,
)


@dataclass(frozen=True)
class Step:
    """A private step and its budget.

    Attributes
    ----------
    name : str
        Name of the step, as in `get_params`. Empty for the estimator itself.
    estimator : str
        Class of the step.
    weight : float
        Part of the budget for the step.
    budget : Budget
        Budget of the step in one fit of the whole.
    """

    name: str
    estimator: str
    weight: float
    budget: Budget


class Allocation(Mapping[str, Budget]):
    """The budgets of the private steps of a pipeline for one fit of the pipeline.

    A mapping from the names of the steps to budgets.

    Attributes
    ----------
    steps : tuple of Step
        Private steps.
    total : Budget
        Largest cost of one fit of the whole.
    not_private : tuple of str
        Other parts that depend on the data and are not private: steps that learn from the data, and labels that are
        renumbered.
    """

    def __init__(self, steps: tuple[Step, ...], total: Budget, not_private: tuple[str, ...]) -> None:
        self.steps = steps
        self.total = total
        self.not_private = not_private

    def __setstate__(self, state: dict[str, Any]) -> None:
        # skops reads budgets as tuples.
        steps = tuple(replace(step, budget=Budget(*step.budget)) for step in state["steps"])
        vars(self).update(state, steps=steps, total=Budget(*state["total"]))

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
            lines.append(
                f"  {name}  epsilon={step.budget.epsilon:.6g}, delta={step.budget.delta:.3g} (weight {step.weight:.3g})"
            )
        if sum(step.budget.epsilon for step in self.steps) > self.total.epsilon * (1 + 1e-9):
            lines.append("  The epsilons of all steps add up to more than the total, because their costs compose.")
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
        A private estimator, or a Pipeline, ColumnTransformer, FeatureUnion, vote, TransformedTargetRegressor or
        SelectFromModel that contains private estimators at any depth. The parameters `epsilon` and `delta` of its
        private steps are set.
    epsilon : float
        Privacy budget of one fit of the whole. Must be strictly positive.
    delta : float, default=0.0
        Privacy budget of one fit of the whole, in [0, 1). If 0, all steps are pure epsilon-DP.
    weights : dict of str to float, default=None
        Positive weights of the steps, by their names as in `get_params` (``"pca"``,
        ``"union__pca"``). Other steps have weight 1.
    accountant : BudgetAccountant, default=None
        Accountant that is set on all private steps. It must admit the whole. If None, the steps keep theirs.

    Returns
    -------
    allocation : Allocation
        Budget of each step, and the list of steps that are not private.

    Raises
    ------
    ValueError
        If there is no private step, if a weight has the name of no private step, if a private step is in another
        meta-estimator, which may fit it several times, or if some steps count rows and others groups of rows.
    BudgetError
        If the accountant does not admit the whole, or is about another unit. Nothing is set then.

    Warns
    -----
    PrivacyAssumptionWarning
        If something else depends on the data: another step that learns from them, or labels that are renumbered. The
        whole is private only if the results of these are public. The warning names an option that makes a step learn
        nothing, if there is one. The warning is also raised if a `Normalizer`, `RBFSampler`, `SkewedChi2Sampler` or
        `GaussianRandomProjection` comes before a step with bins or trees, because the last bit of its result can depend
        on the number of rows.

    Notes
    -----
    **Privacy.** One fit of the whole costs at most (epsilon, delta). With ``delta=0``, epsilon is split in proportion
    to the weights. Otherwise, it is split by the composition of the accountant, or by the best one if that is open. The
    split is proportional, or such that the squares of Gaussian-DP parameters or the Rényi divergences of all steps
    add up to those of (epsilon, delta). Then each step has more than its proportional part, and the epsilons of all
    steps add up to more than the whole. An accountant whose rule is open settles on the rule of the split. A single
    step gets the whole budget, or the largest part that the accountant admits, and leaves the rule open.

    A transformer of the local model (:mod:`skdp.local`) charges each transformation: once when the whole is fitted, and
    again for each prediction. Later clusterers, outlier detectors, densities and transformers of scikit-learn receive
    only its reports. They are therefore private, and get no part of the budget. Other steps may receive the original
    labels, and are listed as not private.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import Normalizer
    >>> from skdp import ObjPertLogReg, allocate
    >>> model = make_pipeline(
    ...     Normalizer(), ObjPertLogReg(data_norm=1.0, classes=[0, 1])
    ... )
    >>> allocate(model, epsilon=0.5, delta=1e-6)
    Allocation of (epsilon=0.5, delta=1e-06)
      objpertlogreg  epsilon=0.5, delta=1e-06 (weight 1)
    """
    # The warning points to the caller of `allocate`.
    complain = partial(warnings.warn, category=PrivacyAssumptionWarning, stacklevel=3)
    return allocation_of(estimator, epsilon, delta, weights, accountant, complain)


def allocation_of(
    estimator: Any,
    epsilon: float,
    delta: float,
    weights: Mapping[str, float] | None,
    accountant: BudgetAccountant | None,
    complain: Callable[[str], None],
) -> Allocation:
    """Split a budget as `allocate` does, and call `complain` about everything else that depends on the data."""
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    check_accountant(accountant)
    private, learning = private_steps(estimator)
    not_private = tuple(step.title for step in learning)
    check_units(private, accountant)
    check_coded(estimator)
    parts = parts_of_budget(private, weights)
    budgets, rule = _split_budget(private, parts, Budget(epsilon, delta), accountant)
    if not_private:
        complain(
            f"not private, and a function of the data: {', '.join(not_private)}. The whole is private only if "
            f"their results are public{advice([step.estimator for step in learning])}. "
            "make_private_pipeline refuses such steps"
        )
    inexact = list(inexact_before_bins(estimator, ""))
    if inexact:
        complain(
            f"not exact row by row, before bins: {', '.join(inexact)}. The last bit of a row of the result can depend "
            "on the number of rows, and move the row to another bin. Instead of Normalizer, use NormClipper, or put "
            "the pipeline into a DPGridSearchCV or a DPRandomizedSearchCV, which divide rows exactly"
        )
    if accountant is not None and rule is not None:
        accountant._settle(rule)
    for step, budget in zip(private, budgets, strict=True):
        values: dict[str, Any] = {"epsilon": budget.epsilon, "delta": budget.delta}
        if accountant is not None:
            values["accountant"] = accountant
        set_own(step.estimator, **values)
    steps = tuple(
        Step(step.name, type(step.estimator).__name__, float(weight), budget)
        for step, weight, budget in zip(private, parts, budgets, strict=True)
    )
    return Allocation(steps, Budget(epsilon, delta), not_private)


def largest_budget(accountant: BudgetAccountant, estimator: Any, k: int, n_features: int | None) -> Budget:
    """Return the largest budget at which `accountant` admits `k` equal fits of `estimator`."""
    # For a private estimator, the result is an epsilon at its own delta. For others, it is for `allocate`.
    weights = None
    if isinstance(estimator, Pipeline):
        # A PrivatePipeline charges its steps one by one.
        weights = getattr(estimator, "weights", None)
        estimator = Pipeline(estimator.steps)
    private, _ = private_steps(estimator)
    check_units(private, accountant)
    generic = accountant.remaining(k)
    if is_private(estimator):
        delta = check_delta(getattr(estimator, "delta", 0.0))
        columns = getattr(estimator, "n_features_in_", None) if n_features is None else n_features

        def costs_at(epsilon: float) -> tuple[CountedCosts, str | None] | None:
            if not hasattr(estimator, "_cost_at"):
                return [(PrivacyCost.of_pair(epsilon, delta), k)], None
            cost = estimator._cost_at(epsilon, columns)
            return None if cost is None else ([(cost, k)], None)

    else:
        delta = generic.delta if accountant.composition == "basic" else accountant.delta
        parts = parts_of_budget(private, weights)
        single = len(private) == 1

        def costs_at(epsilon: float) -> tuple[CountedCosts, str | None] | None:
            budgets, rule = [Budget(epsilon, delta)], None
            if not single:
                budgets, rule = _split_budget(private, parts, budgets[0], accountant)
            costs = _costs(private, budgets) or _pairs(budgets)
            return [(cost, count * k) for cost, count in costs], rule

    reasons: list[Exception] = []

    def portion(epsilon: float) -> float | None:
        try:
            costs = costs_at(epsilon)
        except BudgetError:
            return math.inf
        except ValueError as error:
            reasons[:] = [error]
            return None
        return None if costs is None else accountant._portion(*costs)

    if accountant.composition == "plan":
        return generic
    largest = largest_epsilon(portion, accountant.epsilon, generic.epsilon)
    if largest is None:
        raise ValueError(
            f"the cost of {type(estimator).__name__} is not known yet. Declare the classes of classifiers, "
            "pass the settings of a search as lists, and pass n_features, which some estimators need"
        ) from (reasons[0] if reasons else None)
    return Budget(largest, delta)


#: Steps of the search for the largest scale of budgets: for an allocation, and for a search of models, which tries each
#: scale on all of its candidates.
ALLOCATION_HALVINGS, SEARCH_HALVINGS = 14, 9

#: Budgets are rounded down to numbers that are easy to read.
_NINE_DIGITS = Context(prec=9, rounding=ROUND_DOWN)

#: Slightly more than the smallest epsilon that `check_epsilon` accepts.
_LEAST_EPSILON = 1e-6


def parts_of_budget(private: list[CountedStep], weights: Mapping[str, float] | None) -> list[Fraction]:
    """Return the part of the budget of each step. The parts add up to 1."""
    given = dict(weights or {})
    names = [step.name for step in private]
    unknown = sorted(set(given) - set(names))
    if unknown:
        raise ValueError(f"weights name no private step: {', '.join(unknown)}; the private steps are {names}")
    for name, weight in given.items():
        if isinstance(weight, bool) or not 0 < weight < math.inf:
            raise ValueError(f"the weight of {name!r} must be positive, got {shown(weight)}")
    shares = [Fraction(repr(float(given.get(name, 1.0)))) for name in names]
    return [share / sum(shares) for share in shares]


def _split_budget(
    private: list[CountedStep], parts: list[Fraction], whole: Budget, accountant: BudgetAccountant | None
) -> tuple[list[Budget], str | None]:
    """Return the budget of one fit of each step, and the rule that counts them, if it matters."""
    proportional = [Budget(largest_share(whole.epsilon, part), largest_share(whole.delta, part)) for part in parts]
    for step, budget in zip(private, proportional, strict=True):
        try:
            check_epsilon(budget.epsilon)
        except ValueError as error:
            raise ValueError(f"the budget leaves too little for step {step.name!r}: {error}") from None
    if len(private) == 1:
        costs = None if accountant is None else _costs(private, proportional)
        if accountant is None or (costs is not None and accountant._after(costs) is not None):
            # There is nothing to split. The rule stays open, as for a fit without `allocate`.
            return proportional, None
    pairs = _pairs(proportional)
    if whole.delta == 0 or whole.epsilon == math.inf:
        if accountant is not None and accountant._after(pairs) is None:
            raise BudgetError(_refusal(whole, accountant))
        return proportional, None
    rule = "auto" if accountant is None else accountant.composition
    if rule == "plan":
        raise ValueError("the accountant has a declared plan, whose entries determine the budget of each fit")
    if accountant is not None and rule != "basic" and _costs(private, proportional) is None:
        # Otherwise, an open accountant would use basic composition from then on.
        raise ValueError(
            f"under {rule!r} composition, the cost of each step must be known without the data. Declare the classes of "
            "classifiers, pass the settings of a search as lists, or use an accountant with composition='basic'"
        )
    options: list[tuple[float, list[Budget], str]] = []
    for candidate in ("gdp", "rdp", "basic") if rule == "auto" else (rule,):
        if candidate == "basic":
            fits = accountant is None or accountant._after(pairs, "basic") is not None
            budgets = proportional if fits else None
        else:
            budgets = _by_composition(private, parts, whole, candidate, accountant)
        if budgets is not None:
            mu = min(gaussian_mu(*b) / math.sqrt(part) for b, part in zip(budgets, parts, strict=True))
            price = 1.0
            if accountant is not None and rule == "auto":
                # The rule stays, and determines how much the rest of the budget is worth.
                costs = pairs if candidate == "basic" else _costs(private, budgets)
                price = accountant._used(costs or pairs, candidate)
            options.append((mu**2 / price, budgets, candidate))
    if options:
        _, budgets, candidate = max(options, key=lambda option: option[0])
        if candidate == "gdp" and rule == "auto" and accountant is not None:
            # If there is enough, later charges may be of other kinds.
            costs = _costs(private, budgets)
            candidate = candidate if costs is None or accountant._after(costs, "mixed") is None else "mixed"
        return budgets, candidate
    assert accountant is not None
    raise BudgetError(_refusal(whole, accountant))


def _refusal(whole: Budget, accountant: BudgetAccountant) -> str:
    left = accountant.remaining()
    of = " for a Gaussian release" if accountant.composition in ("gdp", "rdp", "mixed") else ""
    return (
        f"the accountant does not admit a further (epsilon={whole.epsilon:g}, delta={whole.delta:g}); "
        f"(epsilon={left.epsilon:.6g}, delta={left.delta:.6g}) remains{of}"
    )


CountedCosts = list[tuple[PrivacyCost, int]]


def _pairs(budgets: list[Budget]) -> CountedCosts:
    """Return the charges of the steps if only their budgets are known."""
    return [(PrivacyCost.of_pair(*budget), 1) for budget in budgets]


def _costs(private: list[CountedStep], budgets: list[Budget]) -> CountedCosts | None:
    """Return the charges of the steps, or None if they are not known in advance."""
    costs: CountedCosts = []
    for step, budget in zip(private, budgets, strict=True):
        cost = step.known_cost(budget)
        if cost is None:
            return None
        costs.append((cost, 1))
    return costs


def _by_composition(
    private: list[CountedStep],
    parts: list[Fraction],
    whole: Budget,
    rule: str,
    accountant: BudgetAccountant | None,
) -> list[Budget] | None:
    """Return the largest budgets that compose to the whole, each with its part of the squared GDP parameter."""
    # They compose to the whole under the rule with the whole as its ceiling, and also in an empty accountant. (An
    # accountant with a larger ceiling counts Rényi divergences at another order.)
    mu = gaussian_mu(*whole)
    counter = BudgetAccountant(*whole, composition=rule)
    ample = (
        accountant is not None
        and accountant.total() == (0, 0)
        and accountant.epsilon >= whole.epsilon
        and accountant.delta >= whole.delta
    )

    def budgets(scale: float) -> list[Budget]:
        return [
            Budget(nine_digits(gaussian_epsilon(scale * mu * math.sqrt(part), whole.delta)), whole.delta)
            for part in parts
        ]

    def admitted(scale: float) -> bool:
        scaled = budgets(scale)
        if min(budget.epsilon for budget in scaled) < _LEAST_EPSILON:
            return False
        costs = _costs(private, scaled)
        if costs is None or counter._after(costs) is None:
            return False
        if accountant is None or not ample:
            return True
        after = accountant._after(costs, rule)
        return after is not None and after.epsilon <= whole.epsilon

    scale = 1.0 if admitted(1.0) else largest_admitted(admitted, ALLOCATION_HALVINGS)
    if scale == 0:
        return None
    settled = budgets(scale)
    if accountant is not None:
        costs = _costs(private, settled)
        if costs is None or accountant._after(costs, rule) is None:
            return None
    return settled


def largest_admitted(admitted: Callable[[float], bool], n_halvings: int) -> float:
    """Return nearly the largest number in [0, 1) that is admitted, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(n_halvings):
        middle = (low + high) / 2
        low, high = (middle, high) if admitted(middle) else (low, middle)
    return low


def nine_digits(value: float) -> float:
    """Round down to nine digits, which are easy to read."""
    return float(_NINE_DIGITS.create_decimal(value))


#: Parameters of steps that a search sets.
_BUDGET = frozenset({"epsilon", "delta", "accountant", "random_state"})


@dataclass(frozen=True)
class PrivateStep(CountedStep):
    """A private step of a candidate, with its part of a budget."""

    part: Fraction

    def cost(self, budget: Budget) -> PrivacyCost:
        """Return the cost of one fit with this budget, as a bare pair if the events depend on the shape of the data."""
        if budget.epsilon == math.inf:
            return PrivacyCost(budget.epsilon, budget.delta, (PureEvent(budget.epsilon),))
        return self.known_cost(budget) or PrivacyCost.of_pair(*budget)


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
        _check_names(estimator, setting)
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
                raise ValueError(f"a search cannot take {kind}, which does not protect the number of records")
        for step in private:
            _check_no_accountant(step.estimator, f"step {step.title!r}")
            _check_unit(step.estimator, unit)
            takes_classes = is_classifier(step.estimator) and "classes" in step.estimator.get_params(deep=False)
            if classes is not None and takes_classes and declared(step.estimator, "classes") is None:
                step.estimator.set_params(classes=classes)
        parts = parts_of_budget(private, weights)
        steps = tuple(PrivateStep(step.name, step.estimator, part) for step, part in zip(private, parts, strict=True))
        candidates.append(Candidate(dict(setting), model, steps))
    if not candidates:
        raise ValueError("there is no candidate to try")
    return tuple(candidates)


def _check_names(estimator: Any, setting: Mapping[str, Any]) -> None:
    """Refuse the name of a parameter that the estimator does not have. A step of the setting checks its own names."""
    known = {name for name in estimator.get_params() if name.split("__")[-1] not in _BUDGET}
    for name in setting:
        text = str(name)
        if name in known or text.split("__")[-1] in _BUDGET or any(text.startswith(f"{step}__") for step in setting):
            continue
        step = text.rpartition("__")[0]
        step = step if step in known else ""
        others = sorted(each for each in known if each.rpartition("__")[0] == step)
        kind = type(estimator.get_params()[step] if step else estimator).__name__
        raise ValueError(
            f"{shown(name)} is no parameter of {kind} that a search can set.{misspelling(text, known)} The parameters "
            f"are {', '.join(others)}"
        )


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

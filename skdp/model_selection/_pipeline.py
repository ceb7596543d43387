"""Pipelines whose private steps share one budget, and whose other steps must not learn from the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, Self

from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline

from ..accounting import Budget, BudgetAccountant, PrivacyCost, Relation, gaussian_epsilon, renyi_epsilon
from ..checks.params import refusals
from ..preprocessing import TableEncoder
from ..release.session import PrivacyGuarantee, check_accountant
from ..schema.encoding import TakesSchema, target_of
from ..schema.entries import check_index
from ._allocation import Allocation, Candidate, Step, allocation_of
from ._stateless import check_steps
from ._steps import counted_steps, is_private, join, randomizes_rows, schema_of, units_in


def _fitted_by(name: str, summary: str, returned: str, description: str) -> Any:
    """Return a method that fits all steps by a method of `Pipeline`, and returns its result."""

    def method(self: Any, X: Any, y: Any = None, **params: Any) -> Any:
        return self._fit_all(getattr(super(PrivatePipeline, self), name), X, y, **params)

    method.__name__ = name
    method.__doc__ = f"""{summary}

        Parameters
        ----------
        X : array-like or table
            Rows that the first step accepts.
        y : array-like of shape (n_samples,), default=None
            Labels or targets. If None, they are the column of X that the first step's schema declares as the target.
        **params : dict of str to object
            Parameters of the methods of the steps, as in `Pipeline`.

        Returns
        -------
        {returned}
            {description}
        """
    return method


class PrivatePipeline(Pipeline):
    """A pipeline whose private steps share one budget, and whose other steps must not learn from the data.

    .. versionadded:: 0.2

    This is a `Pipeline` of scikit-learn. Each fit first checks all steps as `allocate` does, and divides the budget.

    Parameters
    ----------
    steps : list of tuple (name, estimator)
        Steps, as for `Pipeline`. Each fit sets their parameters `epsilon`, `delta` and `accountant`.
    epsilon : float, default=1.0
        Privacy budget of one fit of the whole pipeline. Must be strictly positive.
    delta : float, default=0.0
        Privacy budget of one fit of the whole pipeline, in [0, 1). If 0, all steps are pure epsilon-DP.
    accountant : BudgetAccountant, default=None
        Accountant that each private step charges. It must admit all steps together before the first step is fitted.
        After the fit, the steps no longer hold it. Only steps of the local model keep it, because they charge each
        prediction.
    weights : dict of str to float, default=None
        Positive weights of the private steps by name. Other steps have weight 1.
    verbose : bool, default=False
        Whether to print the time that each step takes.

    Attributes
    ----------
    allocation_ : Allocation
        The budget of each private step.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit: the composition of the guarantees of its private steps. The label of each release starts
        with the name of its step.

    See Also
    --------
    skdp.make_private_pipeline : Makes such a pipeline without names of steps.
    skdp.allocate : Divides a budget over the steps of any estimator.

    Notes
    -----
    **Privacy.** One fit has the guarantee (epsilon, delta), by the composition of the fits of the private steps
    (:ref:`model selection, theorem 5 <model-selection-theorem-5>`). Steps that learn from the records, such as
    `StandardScaler`, are refused before anything is charged. Functions of your own, for instance in a
    `FunctionTransformer`, must map each row separately. This is not checked.

    A step directly behind a `TableEncoder` spends 0.02 or 0.005 of its budget on warnings about entries that the schema
    of the encoder does not declare.

    If a step belongs to the local model (:mod:`skdp.local`), ``privacy_`` is about replacing one record, and its
    epsilon is larger than `epsilon`. A private search divides its own budget over the steps by `weights`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import ObjPertLogReg, Schema, make_private_pipeline
    >>> from skdp.preprocessing import TableEncoder
    >>> k = np.arange(5000)
    >>> age = 18 + k % 72
    >>> ill = age + 20 * np.sin(k) > 60
    >>> encoder = TableEncoder(Schema({"age": (18, 90)}, target=[False, True]))
    >>> model = make_private_pipeline(
    ...     encoder,
    ...     ObjPertLogReg(**encoder.parameters(ObjPertLogReg)),
    ...     epsilon=2.0,
    ...     delta=1e-6,
    ... )
    >>> model.fit({"age": age}, ill).allocation_.total
    Budget(epsilon=2.0, delta=1e-06)
    """

    def __init__(
        self,
        steps: Any,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        accountant: BudgetAccountant | None = None,
        weights: Mapping[str, float] | None = None,
        verbose: bool = False,
    ) -> None:
        # A cache would keep private rows, and return one release several times.
        super().__init__(steps, memory=None, verbose=verbose)
        self.epsilon = epsilon
        self.delta = delta
        self.accountant = accountant
        self.weights = weights

    def __getitem__(self, index: Any) -> Any:
        """Return a step, or a pipeline of several steps."""
        return Pipeline(self.steps)[index]

    def _divided(self) -> tuple[list[tuple[Any, Any]], Allocation]:
        """Refuse steps that learn from the data without a charge, divide the budget, and return earlier accountants."""
        check_accountant(self.accountant)
        plain = Pipeline(self.steps)
        if self.memory is not None:
            _refuse("memory would keep private rows on disk: leave it at None")
        try:
            check_steps(plain, searched=False)
        except ValueError as error:
            _refuse(str(error))
        _check_bounds_given(plain)
        schema = schema_of(plain)
        if schema is not None and schema.group is not None and "record" in units_in(plain):
            _refuse(
                "the schema declares groups of records, and a step protects single records: give all private steps the "
                "schema, or rows_per_group"
            )
        private = [step.estimator for step in counted_steps(plain) if is_private(step.estimator)]
        declared = [(step, step.accountant) for step in private]
        return declared, allocation_of(plain, self.epsilon, self.delta, self.weights, self.accountant, _refuse)

    def _fit_all(self, fit: Callable[..., Any], *args: Any, **params: Any) -> Any:
        """Fit all steps by a method of `Pipeline`. A step directly behind an encoder knows its schema meanwhile."""
        X, y = args
        encoded = [
            (encoder, step)
            for (_, encoder), (_, step) in pairwise(self.steps)
            if isinstance(encoder, TableEncoder) and isinstance(step, TakesSchema)
        ]
        try:
            # Other threads and processes may charge, if several steps are fitted at once.
            with refusals(check_accountant(self.accountant), "Nothing was charged", lambda: len(self.accountant or ())):
                schema = schema_of(Pipeline(self.steps))
                if y is None and schema is not None and schema.target_name is not None:
                    y = target_of(schema, X) if is_classifier(self) or is_regressor(self) else None
                check_index(X, y, "y")
                # The step warns of entries that the encoder's schema does not declare, as if it had this schema itself.
                for encoder, step in encoded:
                    encoder._marks, step._encoded_by = step._marks, encoder._encoding()
                return self._fit_steps(fit, X, y, **params)
        finally:
            for encoder, step in encoded:
                encoder._marks, step._encoded_by = False, None

    def _fit_steps(self, fit: Callable[..., Any], *args: Any, **params: Any) -> Any:
        """Divide the budget, fit all steps by a method of `Pipeline`, and state their guarantees together."""
        declared, allocation = self._divided()
        if hasattr(self, "privacy_"):
            del self.privacy_
        self.allocation_ = allocation
        try:
            result = fit(*args, **params)
        finally:
            if self.accountant is not None:
                # A fitted model can be published without the path of its ledger, and a fit does not change parameters.
                for _, step in _private_steps(Pipeline(self.steps)):
                    _release_accountant(step, None)
                for step, accountant in declared:
                    _release_accountant(step, accountant)
        self.privacy_: PrivacyGuarantee = _composed(Pipeline(self.steps), allocation.total)
        return result

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Divide the budget over the private steps, and fit all steps.

        Parameters
        ----------
        X : array-like or table
            Rows that the first step accepts.
        y : array-like of shape (n_samples,), default=None
            Labels or targets. If None, they are the column of X that the first step's schema declares as the target.
        **params : dict of str to object
            Parameters of the methods of the steps, as in `Pipeline`.

        Returns
        -------
        self : object
            The fitted pipeline.

        Raises
        ------
        ValueError
            If a step learns from the data without a charge. Nothing is charged then.
        BudgetError
            If the accountant does not admit the whole. Nothing is charged then.
        """
        self._fit_all(super().fit, X, y, **params)
        return self

    fit_transform = _fitted_by(
        "fit_transform",
        "Fit as `fit` does, and return the rows that the last step transformed.",
        "transformed : ndarray of shape (n_samples, n_features_out)",
        "The transformed rows. They are as sensitive as the rows.",
    )
    fit_predict = _fitted_by(
        "fit_predict",
        "Fit as `fit` does, and return the predictions of the last step for the rows.",
        "predicted : ndarray of shape (n_samples,)",
        "Predictions.",
    )


def _private_steps(step: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the private steps in order, by name."""
    if is_private(step):
        yield name, step
    elif isinstance(step, Pipeline | FeatureUnion | ColumnTransformer):
        # If the fit failed, a ColumnTransformer has no fitted steps.
        attributes = ("steps", "transformer_list", "transformers_", "transformers")
        children = next(getattr(step, attribute) for attribute in attributes if hasattr(step, attribute))
        for child_name, child, *_ in children:
            yield from _private_steps(child, join(name, child_name))


#: What errors about bounds of rows start with.
_MISSING = ("data_norm must be given", "bounds must be given")


def _check_bounds_given(pipeline: Pipeline) -> None:
    """Refuse a step that lacks a bound on the rows of an earlier step, before the earlier step is charged."""
    positions = {name: position for position, (name, _) in enumerate(pipeline.steps)}
    for step in counted_steps(pipeline):
        if not is_private(step.estimator):
            continue
        try:
            step.estimator.privacy_plan(n_features=1, n_classes=2)
        except (AttributeError, TypeError, ValueError) as error:
            message = str(error)
            # Other errors may be due to the number of columns.
            if message.partition(": ")[0] in _MISSING:
                message = _missing_bound(pipeline, positions[step.name.partition("__")[0]], message)
                _refuse(f"step {step.name!r} of the pipeline, {type(step.estimator).__name__}: {message}")


def _missing_bound(pipeline: Pipeline, position: int, message: str) -> str:
    """Describe a missing bound on the rows that a step of the pipeline gets."""
    if position == 0:
        return message
    bound = message.split()[0]
    before, step = pipeline.steps[position - 1]
    kind = type(pipeline.steps[position][1]).__name__
    value, why = "...", "with a public bound of these rows"
    norm = getattr(step, "data_norm", None)
    if isinstance(step, TableEncoder):
        return f"{bound} must be given. Pass {kind}(**encoder.parameters({kind})), where encoder is the step {before!r}"
    if isinstance(norm, int | float) and not getattr(step, "whiten", False):
        value = f"{norm:g}" if bound == "data_norm" else f"({-norm:g}, {norm:g})"
        why = f"for instance, which follows from data_norm={norm:g} of {before!r}"
    return (
        f"{bound} must be given, which bounds the rows that the step {before!r} makes. A schema of an earlier step "
        f"does not describe them. Pass {kind}({bound}={value}), {why}. Rows beyond are clipped"
    )


def _release_accountant(step: Any, accountant: BudgetAccountant | None) -> None:
    """Set the accountant of a fitted step. Steps that randomise rows still charge predictions, and keep theirs."""
    if not randomizes_rows(step):
        step.set_params(accountant=accountant)


def _composed(fitted: Pipeline, whole: Budget | None = None) -> PrivacyGuarantee:
    """Return the composition of the guarantees of the private steps, which together cost `whole` if it is known."""
    stated = {name: _stated(step) for name, step in _private_steps(fitted)}
    relations = {guarantee.relation for guarantee in stated.values()}
    relation = Relation.REPLACE_RECORD if Relation.REPLACE_RECORD in relations else relations.pop()
    if relation is Relation.REPLACE_RECORD:
        stated = {name: _of_replacement(guarantee) for name, guarantee in stated.items()}
    events = tuple(event for guarantee in stated.values() for event in guarantee.events)
    if whole is None or relations - {relation}:
        whole = _least_budget(list(stated.values()), events)
    limits = {name: guarantee.limit for name, guarantee in stated.items() if guarantee.limit}
    same = len(set(limits.values())) <= 1
    return PrivacyGuarantee(
        *whole,
        events,
        tuple(
            replace(release, label=f"{name}: {release.label}")
            for name, guarantee in stated.items()
            for release in guarantee.releases
        ),
        relation,
        tuple(f"{name}: {line}" for name, guarantee in stated.items() for line in guarantee.fits),
        next(iter(limits.values()), "") if same else ", ".join(f"{limit} in {name}" for name, limit in limits.items()),
        max(guarantee.rows for guarantee in stated.values()),
    )


def _stated(step: Any) -> PrivacyGuarantee:
    """Return the guarantee of a fitted step. For a private estimator of another package, it is only a pair."""
    guarantee = getattr(step, "privacy_", None)
    if isinstance(guarantee, PrivacyGuarantee):
        return guarantee
    cost = PrivacyCost.of_pair(step.epsilon, getattr(step, "delta", 0.0))
    return PrivacyGuarantee(cost.epsilon, cost.delta, cost.events, ())


def _of_replacement(guarantee: PrivacyGuarantee) -> PrivacyGuarantee:
    """Return the guarantee for replacing one record."""
    if guarantee.relation is Relation.REPLACE_RECORD:
        return guarantee
    cost = PrivacyCost.of_pair(*guarantee.replace_one)
    return replace(
        guarantee, epsilon=cost.epsilon, delta=cost.delta, events=cost.events, relation=Relation.REPLACE_RECORD
    )


def _least_budget(guarantees: list[PrivacyGuarantee], events: tuple[Any, ...]) -> Budget:
    """Return a proved guarantee of these releases together: the sum, or the composition at the largest delta."""
    epsilon, delta = (math.fsum(values) for values in zip(*((g.epsilon, g.delta) for g in guarantees), strict=True))
    largest = max(guarantee.delta for guarantee in guarantees)
    if largest == 0 or epsilon == math.inf:
        return Budget(epsilon, delta)
    mu = math.sqrt(math.fsum(event.mu() ** 2 for event in events)) * (1 + 2.0**-50)
    together = min(renyi_epsilon(events, largest), gaussian_epsilon(mu, largest))
    return Budget(together, largest) if together <= epsilon else Budget(epsilon, delta)


def private_again(pipeline: PrivatePipeline, candidate: Candidate, fitted: Pipeline) -> PrivatePipeline:
    """Return a private pipeline with the steps that a search fitted in a plain one, and with their guarantee."""
    private = clone(pipeline).set_params(**clone(candidate.parameters, safe=False))
    private.steps = fitted.steps
    private.privacy_ = _composed(fitted)
    private.set_params(epsilon=private.privacy_.epsilon, delta=private.privacy_.delta)
    budgets = {name: Budget(step.epsilon, step.delta) for name, step in _private_steps(fitted)}
    steps = tuple(
        Step(step.name, type(step.estimator).__name__, float(step.part), budgets[step.name]) for step in candidate.steps
    )
    private.allocation_ = Allocation(steps, Budget(private.epsilon, private.delta), ())
    return private


def _refuse(message: str) -> None:
    raise ValueError(f"{message.removesuffix('.')}. Nothing was charged")


def make_private_pipeline(
    *steps: Any,
    epsilon: float = 1.0,
    delta: float = 0.0,
    weights: Mapping[str, float] | None = None,
    accountant: BudgetAccountant | None = None,
    verbose: bool = False,
) -> PrivatePipeline:
    """Make a `PrivatePipeline` whose steps are named after their classes.

    .. versionadded:: 0.2

    Parameters
    ----------
    *steps : list of estimator
        Steps, in order.
    epsilon : float, default=1.0
        Privacy budget of one fit of the whole pipeline. Must be strictly positive.
    delta : float, default=0.0
        Privacy budget of one fit of the whole pipeline, in [0, 1). If 0, all steps are pure epsilon-DP.
    weights : dict of str to float, default=None
        Positive weights of the private steps by name. Other steps have weight 1.
    accountant : BudgetAccountant, default=None
        Accountant that each private step charges. It must admit all steps together before the first step is fitted.
    verbose : bool, default=False
        Whether to print the time that each step takes.

    Returns
    -------
    pipeline : PrivatePipeline
        The pipeline, not fitted.

    Notes
    -----
    **Privacy.** The guarantee is that of `PrivatePipeline`. Making the pipeline does not use any budget.

    Examples
    --------
    >>> from skdp import ObjPertLogReg, Schema, make_private_pipeline
    >>> from skdp.preprocessing import TableEncoder
    >>> encoder = TableEncoder(Schema({"age": (18, 90)}, target=[0, 1]))
    >>> logistic = ObjPertLogReg(**encoder.parameters(ObjPertLogReg))
    >>> model = make_private_pipeline(encoder, logistic, delta=1e-6)
    >>> model.fit({"age": list(range(20, 80))}, [0] * 30 + [1] * 30).classes_
    array([0, 1])

    A step that learns without noise is refused:

    >>> from sklearn.preprocessing import StandardScaler
    >>> try:
    ...     make_private_pipeline(StandardScaler(), logistic).fit([[0.0]], [0])
    ... except ValueError as error:
    ...     print(str(error).partition(",")[0])
    step 'standardscaler'
    """
    named = make_pipeline(*steps).steps
    return PrivatePipeline(named, epsilon=epsilon, delta=delta, weights=weights, accountant=accountant, verbose=verbose)

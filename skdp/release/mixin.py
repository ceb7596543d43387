"""The base class of all private estimators, which states the guarantee before there are data.

The other methods come from scikit-learn (`BaseEstimator` and its mixins) or belong to the algorithm. Families with more
common code, such as linear classifiers, keep it in their own package.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from functools import wraps
from inspect import BoundArguments, Signature, signature
from typing import Any, ClassVar

import numpy as np
from sklearn.base import is_classifier, is_regressor

from ..accounting import BudgetAccountant, PrivacyCost, largest_epsilon
from ..checks.data import FLOATS, check_quietly, is_sparse, refuse_wide
from ..checks.params import check_integer, refusals, warn
from ..checks.silence import DiscreetMethods, by_partition
from ..exceptions import BudgetError, BudgetWarning, NotEnoughDataError
from ..parts import lowered
from ..parts.arrays import is_collection
from ..schema.encoding import TakesSchema, check_target, groups_column, target_of
from ..schema.entries import check_index
from ..schema.schema import as_schema
from .session import PrivacyGuarantee

#: Reasons why an argument or a parameter does not exist.
_REASONS = {
    "sample_weight": (
        "Classifiers and regressors of the central model take sample_weight. Searches do not pass it on, because their "
        "scores have no weights. For other estimators, leave out records by a public rule"
    ),
    "class_weight": (
        "Classifiers of the central model take class_weight, a dict of public weights or 'balanced'. For other "
        "estimators, move the threshold on predict_proba or decision_function after the fit, which uses no budget"
    ),
    "verbose": "Estimators whose fits take long have it, and print public numbers. Other estimators print nothing",
    "rows_per_group": (
        "It is a parameter of DPNaiveBayes, functional mechanisms, DPTableGenerator, DPStandardScaler and others (user "
        "guide, Multiple rows per person)"
    ),
    "warm_start": "Each fit is a release of its own and starts anew",
    "early_stopping": "A rule that looks at scores of private records would be a release at each step",
}


def _bound(call: str, signature: Signature, estimator: Any, args: Any, kwargs: Any) -> BoundArguments:
    """Return the arguments by name. Refuse others with the name of the public class and the reason."""
    try:
        return signature.bind(estimator, *args, **kwargs)
    except TypeError as error:
        message = str(error)
    unknown = [name for name in kwargs if name not in signature.parameters]
    if unknown:
        known = ", ".join(list(signature.parameters)[1:])
        reason = _REASONS.get(unknown[0], f"The arguments are {known}")
        message = f"got an unexpected keyword argument {unknown[0]!r}. {reason}"
    elif message == "too many positional arguments":
        named = signature.parameters.items()
        by_position = [name for name, each in named if each.kind is each.POSITIONAL_OR_KEYWORD][1:]
        message = f"takes by position {', '.join(by_position) or 'nothing'}. Pass other arguments by keyword"
    raise TypeError(f"{type(estimator).__name__}{call} {message}{'. Nothing was charged' * (call != '()')}")


def _by_public_name(init: Callable[..., None]) -> Callable[..., None]:
    """Let a constructor refuse parameters with the name of the class that the user called."""
    parameters = signature(init)

    @wraps(init)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:
        _bound("()", parameters, self, args, kwargs)
        init(self, *args, **kwargs)

    return wrapper


def all_or_nothing(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Let a fit that fails leave the estimator as it was."""
    # Validation stores the number and the names of the columns before the accountant has admitted the fit. An earlier
    # fit stays complete, and refused data leave no trace.

    parameters = signature(fit)

    @wraps(fit)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = _bound(f".{fit.__name__}()", parameters, self, args, kwargs)
        if fit.__name__ == "fit":
            _warn_of_refit(self)
        before = dict(vars(self))
        try:
            # A user may have set NumPy to warn of underflow, which would depend on the data.
            statement = f"This fit of {type(self).__name__} was not charged"
            with np.errstate(all="ignore"), refusals(getattr(self, "accountant", None), statement):
                X, schema = given.arguments.get("X"), getattr(self, "schema", None)
                check_target(None if schema is None else as_schema(schema), X, given.arguments.get("y"))
                check_index(X, given.arguments.get("sample_weight"), "sample_weight")
                given.arguments.update(_columns_of(self, parameters, given.arguments))
                result = fit(*given.args, **given.kwargs)
                vars(self).pop("_was_charged", None)
                if getattr(self, "accountant", None) is not None:
                    self._was_charged = True
                return result
        except NotEnoughDataError:
            # The releases are an outcome, which the estimator keeps.
            raise
        except MemoryError:
            _put_back(self, before)
        except BudgetError as error:
            message = _with_advice(str(error), self)
            _put_back(self, before)
            error.args = (message,)
            raise
        except BaseException:
            _put_back(self, before)
            raise
        # NumPy's message holds the number of rows. Outside the handler, it is not kept as the context.
        raise MemoryError("there is too little memory for this fit")

    return wrapper


def _warn_of_refit(estimator: Any) -> None:
    """Warn before a second charge for the same estimator."""
    earlier, accountant = vars(estimator).get("privacy_"), getattr(estimator, "accountant", None)
    if not isinstance(earlier, PrivacyGuarantee):
        return
    name, why = type(estimator).__name__, ""
    if accountant is None and estimator._was_charged:
        why = (
            "Now its accountant is None, as in a model that was saved without one, and no budget records this fit. Set "
            "its accountant before the fit, unless the records are public"
        )
    elif isinstance(accountant, BudgetAccountant) and any(
        (record.estimator, record.cost) == (name, earlier.cost) for record in accountant.records
    ):
        why = (
            f"Another fit costs (epsilon={estimator.epsilon:g}, delta={getattr(estimator, 'delta', 0.0):g}) in "
            "addition, even if the records are the same, and replaces this model. To keep the model, save it"
        )
    if why:
        cost = f"(epsilon={earlier.epsilon:g}, delta={earlier.delta:g})"
        warn(f"{name} has been fitted, and its budget was charged {cost}. {why}", BudgetWarning)


def _columns_of(estimator: Any, parameters: Signature, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the declared columns of X that are not given, and collections of Dask as arrays in parts."""
    in_parts, schema = any(map(is_collection, given.values())), getattr(estimator, "schema", None)
    if in_parts and not getattr(estimator, "_takes_parts", False):
        raise TypeError(
            f"{type(estimator).__name__} needs all rows in one place, and got a collection of Dask. Pass X.compute(), "
            "or use an estimator that is fitted to partitions (user guide, Dask). Apply encoders by map_partitions"
        )
    columns = {}
    if schema is not None and "X" in given:
        readers = {"groups": groups_column}
        if is_classifier(estimator) or is_regressor(estimator):
            readers["y"] = target_of
        lacking = [name for name in readers if name in parameters.parameters and given.get(name) is None]
        columns = {name: readers[name](as_schema(schema), given["X"]) for name in lacking}
    if in_parts:
        rows = {**given, **columns}
        names = [name for name in ("X", "y", "groups", "sample_weight") if rows.get(name) is not None]
        columns |= dict(zip(names, lowered(*(rows[name] for name in names)), strict=True))
    return columns


def _put_back(estimator: Any, before: dict[str, Any]) -> None:
    for name in vars(estimator).keys() - before.keys():
        delattr(estimator, name)
    vars(estimator).update(before)


#: A smaller part of the ceiling is too little for any fit, and is not named.
_LEAST_PORTION = 1e-3


def _with_advice(message: str, estimator: Any) -> str:
    """Add the largest epsilon at which a refused fit would be admitted to a message, from public parameters only."""
    accountant, n_features = estimator.accountant, getattr(estimator, "n_features_in_", None)

    if accountant is None:
        # An accountant of an estimator inside refused the charge.
        return message

    def portion(epsilon: float) -> float | None:
        cost = estimator._cost_at(epsilon, n_features)
        return None if cost is None else accountant._portion([(cost, 1)])

    if portion(estimator.epsilon) != math.inf:
        # The refusal was not due to the budget.
        return message
    delta, less = getattr(estimator, "delta", 0.0), float(f"{accountant.delta / 10:.3g}")
    other = copy(estimator).set_params(delta=less) if "delta" in estimator.get_params(deep=False) else estimator
    if delta > accountant.delta:
        estimator, delta = other, less
    most = largest_epsilon(portion, accountant.epsilon, accountant.remaining().epsilon)
    if most:
        # What remains for other releases is another number. A smaller delta than that of the budget may admit more.
        most = min(most, estimator.epsilon, accountant.epsilon)
        advice = f"This fit is admitted with epsilon={most:.6g} or less, and {delta=:g}"
        if most < _LEAST_PORTION * accountant.epsilon:
            advice = f"Hardly anything is left for such a fit with {delta=:g}. Earlier results stay usable"
        message = f"{message.partition('; ')[0]}. {advice}"
    if delta == 0 < accountant.delta and other is not estimator:
        estimator = other
        if portion(estimator.epsilon) not in (None, math.inf):
            message += f". Or pass delta={less:g}: then epsilon={estimator.epsilon:g} is admitted"
    return message if "charged" in message else f"{message}. This fit was not charged"


class DPEstimatorMixin(TakesSchema, DiscreetMethods, ABC):
    """Mixin of differentially private estimators.

    A subclass has the parameters `epsilon`, `delta`, `accountant` and `random_state`, and after `fit` the attribute
    ``privacy_``, equal to what `privacy_plan` returns. A `fit` or `partial_fit` (in the local model, `fit_reports` or
    `randomize`) that raises leaves the estimator as it was.
    """

    #: Fitted attributes that are functions of released numbers, and those of public facts only.
    _released: ClassVar[frozenset[str]] = frozenset()
    _public: ClassVar[frozenset[str]] = frozenset()

    #: Whether rows may be a collection of Dask.
    _takes_parts: ClassVar[bool] = False

    #: Whether records are protected one by one, and their number is public.
    _local: ClassVar[bool] = False

    #: Whether the last fit had an accountant.
    _was_charged = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("fit", "partial_fit", "fit_reports", "randomize"):
            if name in vars(cls):
                setattr(cls, name, all_or_nothing(vars(cls)[name]))
        for name in {"fit_transform", "fit_predict"} & set(dir(cls)):
            # Methods of private base classes do so already.
            private = [base for base in cls.__bases__ if issubclass(base, DPEstimatorMixin) and hasattr(base, name)]
            if name in vars(cls) or not private:
                setattr(cls, name, by_partition(getattr(cls, name)))
        if "__init__" in vars(cls):
            cls.__init__ = _by_public_name(cls.__init__)  # type: ignore[method-assign]

    @abstractmethod
    def privacy_plan(self, *, n_features: int | None = None, n_classes: int | None = None) -> PrivacyGuarantee:
        """Return the guarantee that `fit` will give, without any data.

        Parameters
        ----------
        n_features : int, optional
            Number of columns of X. Ignored if `schema` is set.
        n_classes : int, optional
            Number of labels. Required for a classifier unless `classes` is set.

        Returns
        -------
        plan : PrivacyGuarantee
            Equal to ``privacy_`` after a fit on such data.
        """

    def _planned_features(self, n_features: Any) -> int:
        """Return the number of columns of a plan."""
        encoding = self._encoding()
        if encoding is not None:
            return len(encoding.layout)
        if n_features is None:
            raise TypeError("n_features must be given, since there is no schema")
        return check_integer(n_features, "n_features", least=1)

    def _check_rows(self, X: Any) -> None:
        """Refuse rows that `fit` would refuse because of their entries."""
        rows = self._encoded(X, reset=False)
        if is_sparse(rows) and rows.ndim == 2 and not self._takes_sparse:
            refuse_wide(rows, type(self).__name__)
        check_quietly(rows, dtype=list(FLOATS), ensure_min_samples=0, accept_sparse=True)

    def _fixed_cost(self) -> PrivacyCost | None:
        """Return the charge of a fit if it is the same for data of every shape, else None."""
        return None

    def _cost_at(self, epsilon: float, n_features: int | None = None) -> PrivacyCost | None:
        """Return the charge of a fit with this epsilon, or None if it is not known, or no such fit is possible."""
        step: Any = copy(self)
        step.set_params(epsilon=epsilon)
        try:
            cost: PrivacyCost | None = step._fixed_cost()
            if cost is None and n_features is not None:
                cost = step.privacy_plan(n_features=n_features).cost
        except (TypeError, ValueError):
            # The epsilon is too small to be divided, or settings or classes are not declared.
            return None
        return cost

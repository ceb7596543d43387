"""The life cycle of a fit, for all estimators that release in one session.

`fit` checks the parameters, reads the data, makes a plan from public facts, and charges the accountant for the whole
plan. Only then, the estimator receives the records, and measures them by the releases of the plan. Its results become
the fitted attributes. `privacy_plan` calls the same `_plan`, so that the two cannot differ.

An estimator defines

- `_parameter_rules`: the values that each parameter may have;
- `_check_together`, if there are rules about several parameters, or about what a schema declares;
- `_plan`: from these and a `Shape`, return the guarantee and other results of public facts;
- `_stated`, if it may continue an earlier fit;
- `_rehearse`, if errors after the charge can be found without the records;
- `_measure`: release, post-process, and return the fitted attributes in a dict;
- `_released` and `_public`: the names of these attributes, which depend on releases or on public facts.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor

from ..accounting import PrivacyCost, check_delta, check_epsilon
from ..checks.data import FLOATS, known_labels, labelled_data, regression_data, single_target, validate_quietly
from ..checks.params import (
    Bounds,
    By,
    Checked,
    Integer,
    Or,
    Real,
    Rules,
    anything,
    check_bounds,
    check_classes,
    check_data_norm,
    check_integer,
    check_parameters,
    warn,
)
from ..exceptions import BudgetWarning
from ..mechanisms import NoiseSource
from ..parts.arrays import PartedArray, row_check
from .counts import ENTRIES, check_entries
from .mixin import DPEstimatorMixin
from .session import (
    Phases,
    PrivacyGuarantee,
    Progress,
    ReleaseSession,
    Reserved,
    check_accountant,
    phases_of,
    with_callbacks,
)
from .units import (
    BEFORE,
    MOST_ROWS_PER_GROUP,
    ReleaseBeforeFit,
    Unit,
    balance,
    chances,
    check_class_weight,
    class_weights,
    is_balanced,
    relative_weights,
    releases_before_fit,
    rows_at,
    with_releases_before,
)

#: Classes that were remarked on because of delta=0, and the ratio of noise scales from which they are.
_REMARKED: set[type] = set()
_FAR_MORE = 2.0

# Parameters that a schema may declare.
_DECLARED = frozenset({"bounds", "bounds_y", "classes", "data_norm", "rows_per_group"})


@dataclass(frozen=True, eq=False)
class Shape:
    """The public facts about the records of a fit: numbers of columns, classes and targets, and names."""

    # `n_classes` is 0 without labels. `n_targets` is None for targets of one dimension. Before there are data, names
    # are not known, and `is_read` is False. `in_parts` is True for collections of Dask.

    n_features: int
    n_classes: int = 0
    n_targets: int | None = None
    names: NDArray | None = None
    classes: Any = None
    is_read: bool = True
    in_parts: bool = False


@dataclass(frozen=True, eq=False)
class Records:
    """The counted records: rows, and codes of labels, targets, or None."""

    # Without weights, `known` tells which of all rows have a declared label, before the rows of groups are limited.

    X: Any
    y: Any
    shape: Shape
    known: Any = None


class PrivateEstimator(DPEstimatorMixin):
    """Base of estimators whose fit is one plan, one charge and one session."""

    #: Types of rows that are kept.
    _dtypes: ClassVar[Sequence[type]] = FLOATS
    #: Whether there may be several targets.
    _many_targets: ClassVar[bool] = False
    #: Whether ``class_weight="balanced"`` is applied to released numbers, so that no records are left out.
    _balances_itself: ClassVar[bool] = False

    #: Whether plans compose their steps with Gaussian releases before the fit, which take `share_before` of the budget.
    _composes_before: ClassVar[bool] = False

    #: Whether the charge is the same for any number of columns and of labels, which change dimensions only.
    _fixes_cost: ClassVar[bool] = False

    #: Rules of parameters that many estimators have. A subclass adds those of its other parameters.
    _parameter_rules: ClassVar[Rules] = {
        "epsilon": By(check_epsilon),
        "delta": By(check_delta),
        "data_norm": By(check_data_norm),
        "bounds": Bounds("the features"),
        "bounds_y": Bounds("the targets"),
        "classes": check_classes,
        "rows_per_group": Or(None, Integer(1, MOST_ROWS_PER_GROUP)),
        "class_weight": By(check_class_weight),
        "max_weight": Or(None, Real()),
        "schema": anything,
        "accountant": By(check_accountant),
        "random_state": anything,
        "verbose": Integer(0),
    }

    accountant: Any
    random_state: Any

    def _check_parameters(self, epsilon: float | None = None, share_before: float = 0.0) -> Any:
        """Check parameters as far as possible without data. Return them, with another epsilon if it is given."""
        parameters = check_parameters(self, _DECLARED)
        parameters.share_before = share_before
        if epsilon is not None:
            parameters.epsilon = epsilon
        self._check_together(parameters)
        return parameters

    def _check_together(self, parameters: Checked) -> None:
        """Check rules about several parameters, and store what follows from several, such as kinds of columns."""

    @abstractmethod
    def _plan(self, parameters: Any, shape: Shape) -> tuple[PrivacyGuarantee, Any]:
        """Return the guarantee of a fit to data of this shape, and other results of public facts."""

    def _rehearse(self, parameters: Any, shape: Shape, design: Any) -> None:
        """Find errors that would occur after the charge, with public or made-up rows."""

    @abstractmethod
    def _measure(self, session: ReleaseSession, records: Records, parameters: Any, design: Any) -> dict[str, Any]:
        """Release, post-process, and return the fitted attributes. `design` is the second part of the plan.

        Releases may come before: numbers of undeclared entries (with a schema), and counts of labels for balanced
        weights (`releases_before_fit`).
        """

    @abstractmethod
    def _read(self, X: Any, y: Any, parameters: Any) -> tuple[Any, Any, NDArray[np.bool_] | None, Shape]:
        """Return validated rows and targets, which of them count, and their shape."""

    def _declared_shape(self, parameters: Any, n_features: int, n_classes: int | None) -> Shape:
        """Return the shape of data that have not been read yet."""
        return Shape(n_features, is_read=False)

    def _stated(self, guarantee: PrivacyGuarantee, parameters: Any) -> PrivacyGuarantee:
        """Return the value of ``privacy_``: the guarantee of this fit together with the fits that it continues."""
        return guarantee

    def _phases(self, guarantee: PrivacyGuarantee, parameters: Any, design: Any) -> Phases:
        """Return the phases of a fit in order, from public parameters only."""
        return phases_of(guarantee.releases)

    @with_callbacks  # type: ignore[untyped-decorator]
    def _fit(
        self, X: Any, y: Any = None, groups: Any = None, parameters: Any = None, sample_weight: Any = None
    ) -> Self:
        """Fit. If `parameters` are given, they have been checked, and may name a fit to continue."""
        # Check the parameters, and read the data.
        accountant, progress = check_accountant(self.accountant), Progress(self)
        balanced, continues = is_balanced(self), parameters is not None
        if not continues:
            parameters = self._check_parameters()
        elif balanced:
            raise ValueError(
                "partial_fit does not take class_weight='balanced', because weights would differ. Pass a dict of them"
            )
        source = NoiseSource(self.random_state)
        unit = Unit(getattr(parameters, "rows_per_group", None))
        numbers = unit.numbers(groups, X)
        relative = relative_weights(sample_weight, getattr(self, "max_weight", None))
        y = self._labels(y, getattr(parameters, "classes", None))
        if is_regressor(self):
            # A schema with another target is refused before its labels are read as numbers.
            self._declared("bounds_y")
        X, y, known, shape = self._read(X, y, parameters)
        shape = replace(shape, in_parts=isinstance(X, PartedArray))
        probabilities = chances(relative, class_weights(getattr(self, "class_weight", None), shape.classes), X, y)
        if known is not None:
            probabilities = rows_at(probabilities, known)
        X, y, members = unit.members(numbers, X, y, known)

        # Plan from public facts.
        before = [] if continues else releases_before_fit(self, shape.n_classes)
        guarantee, design, parameters = self._planned(parameters, shape, before)
        self._remark_on_delta(guarantee, shape)
        stated = self._stated(guarantee, parameters)
        self._rehearse(parameters, shape, design)
        others = tuple(release for release in guarantee.releases if release.label not in BEFORE)
        phases = [
            *phases_of(guarantee.releases[: len(guarantee.releases) - len(others)]),
            *self._phases(replace(guarantee, releases=others), parameters, design),
        ]
        progress.set_up(phases, {release.label for release in others if isinstance(release.mechanism, Reserved)})

        # Charge, and release.
        session = ReleaseSession(
            guarantee,
            accountant=accountant,
            source=source,
            estimator=type(self).__name__,
            progress=progress,
            validate=row_check(X, y, members, probabilities),
        )
        progress.begin()
        X, y = unit.counted(source, members, X, y, probabilities)
        # Weights, also balanced ones, leave out records of any label. Then `known` does not fit the rows.
        known, weights = known if probabilities is None else None, None
        if any(release.label == ENTRIES for release in guarantee.releases):
            check_entries(session, *self._outside(), X, known)
        if balanced:
            known = None
            X, y, weights = balance(session, source, X, y, shape.n_classes)
        fitted = self._measure(session, Records(X, y, shape, known), parameters, design)

        for name in (self._released | self._public | {"classes_", "class_weight_"}) & vars(self).keys():
            # An attribute of an earlier fit may not exist after this one.
            delattr(self, name)
        if shape.classes is not None:
            self.classes_ = shape.classes
        if weights is not None:
            self.class_weight_ = weights
        vars(self).update(fitted, privacy_=stated)
        # A callback receives a complete copy of this estimator.
        progress.end(dict)
        return self

    def _remark_on_delta(self, guarantee: PrivacyGuarantee, shape: Shape) -> None:
        """Warn once for each class if delta=0 needs far more noise than a small part of the budget's delta."""
        delta = 0.0 if self.accountant is None else float(f"{self.accountant.delta / 10:.3g}")
        if getattr(self, "delta", None) != 0 or delta == 0 or type(self) in _REMARKED:
            return
        _REMARKED.add(type(self))
        changed: Any = copy(self)
        try:
            changed.set_params(delta=delta)
            other, _ = changed._plan(changed._check_parameters(), shape)
        except (TypeError, ValueError):
            # The estimator needs another setting for a positive delta, or the delta of the budget is too small.
            return
        scales = {release.label: release.mechanism.scale for release in other.releases}
        for release in guarantee.releases:
            larger = release.mechanism.scale / (scales.get(release.label) or math.inf)
            if larger >= _FAR_MORE:
                return warn(
                    f"{type(self).__name__} has delta=0, and its budget has delta={self.accountant.delta:g}. With "
                    f"delta={delta:g}, the noise of the release {release.label!r} would be {larger:.1f} times smaller. "
                    "Set delta, unless the fit has to be pure",
                    BudgetWarning,
                )

    def _planned(
        self, parameters: Any, shape: Shape, before: Sequence[ReleaseBeforeFit]
    ) -> tuple[PrivacyGuarantee, Any, Any]:
        """Return the guarantee with the releases before the fit, and the design and parameters of the fit itself."""
        if not before:
            return *self._plan(parameters, shape), parameters

        def rest(epsilon: float, share_before: float) -> tuple[PrivacyGuarantee, Any, Any]:
            parameters = self._check_parameters(epsilon, share_before)
            return *self._plan(parameters, shape), parameters

        return with_releases_before(before, self, rest)

    def _planned_without_data(
        self, n_features: int | None, n_classes: int | None, **known: int | None
    ) -> PrivacyGuarantee:
        """Return the guarantee of a fit to data of this shape."""
        parameters = self._check_parameters()
        shape = replace(self._expected_shape(parameters, n_features, n_classes), **known)  # type: ignore[arg-type]
        return self._planned(parameters, shape, releases_before_fit(self, shape.n_classes))[0]

    def _fixed_cost(self) -> PrivacyCost | None:
        parameters = self._check_parameters()
        # The cost does not depend on the number of labels.
        before = releases_before_fit(self, 2)
        if not before:
            return self._cost_of(parameters)
        cost: PrivacyCost | None
        (cost,) = with_releases_before(before, self, lambda *rest: (self._cost_of(self._check_parameters(*rest)),))
        return cost

    def _cost_of(self, parameters: Any) -> PrivacyCost | None:
        """Return the charge of a fit with these parameters if it is the same for data of every shape, else None."""
        if not self._fixes_cost:
            return None
        # Bounds may hold one number for each column.
        bounds = self._declared("bounds") if hasattr(self, "bounds") else None
        n_features = 1 if bounds is None else max(check_bounds(bounds, "bounds", "the features")[0].size, 1)
        return self._plan(parameters, self._expected_shape(parameters, n_features, 2))[0].cost

    def _expected_shape(self, parameters: Any, n_features: Any, n_classes: int | None) -> Shape:
        return self._declared_shape(parameters, self._planned_features(n_features), n_classes)

    def privacy_plan(self, *, n_features: int | None = None, n_classes: int | None = None) -> PrivacyGuarantee:
        return self._planned_without_data(n_features, n_classes)


class RowsMixin(PrivateEstimator):
    """Fits of rows without targets."""

    def _read(self, X: Any, y: Any, parameters: Any) -> tuple[Any, Any, NDArray[np.bool_] | None, Shape]:
        X = validate_quietly(self, X, dtype=list(self._dtypes), ensure_min_samples=0)
        return X, None, None, Shape(X.shape[1], names=self._names())

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the estimator to private data, and spend epsilon and delta.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows of finite numbers, or a table for `schema`. For sparse rows, see :doc:`/user_guide/sparse_rows`.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        BudgetError
            If the accountant does not admit the fit. Nothing is computed from the data then.
        """
        return self._fit(X)


class OutcomesMixin(PrivateEstimator):
    """Fits of rows with labels or targets, which `_kind` decides if it depends on parameters."""

    def _kind(self, parameters: Any) -> type[PrivateEstimator]:
        """Return the mixin that reads the rows."""
        raise NotImplementedError

    def _read(self, X: Any, y: Any, parameters: Any) -> tuple[Any, Any, NDArray[np.bool_] | None, Shape]:
        return self._kind(parameters)._read(self, X, y, parameters)

    def _declared_shape(self, parameters: Any, n_features: int, n_classes: int | None) -> Shape:
        return self._kind(parameters)._declared_shape(self, parameters, n_features, n_classes)

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Fit the model to private data, and spend epsilon and delta.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows of finite numbers, or a table for `schema`. For sparse rows, see :doc:`/user_guide/sparse_rows`.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Labels or finite targets. If None, they are the column of X that `schema` declares as the target.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights of the records (see :ref:`weights`), which must not depend on other records. They
            require `max_weight`.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        BudgetError
            If the accountant does not admit the fit. Nothing is computed from the data then.
        """
        return self._fit(X, y, sample_weight=sample_weight)


class LabelsMixin(OutcomesMixin):
    """Fits of rows with labels."""

    classes: Any

    def _read(self, X: Any, y: Any, parameters: Any) -> tuple[Any, Any, NDArray[np.bool_] | None, Shape]:
        X, codes, classes = labelled_data(self, X, y, check_classes(self._declared("classes")), self._dtypes)
        return X, codes, known_labels(codes), Shape(X.shape[1], len(classes), names=self._names(), classes=classes)

    def _declared_shape(self, parameters: Any, n_features: int, n_classes: int | None) -> Shape:
        classes = check_classes(self._declared("classes"))
        if classes is not None:
            n_classes = len(classes)
        elif n_classes is None:
            raise ValueError(
                "n_classes must be given, since classes is None and no schema declares a target, as in n_classes=2"
            )
        n_classes = check_integer(n_classes, "n_classes", least=2)
        return Shape(n_features, n_classes, classes=classes, is_read=False)


class GroupsMixin(PrivateEstimator):
    """Fits of rows with labels or targets, with a limit on the rows of a group. Other mixins read the rows."""

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to private data, and spend epsilon and delta.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows of finite numbers, or a table for `schema`. For sparse rows, see :doc:`/user_guide/sparse_rows`.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Labels or finite targets. If None, they are the column of X that `schema` declares as the target.
        groups : array-like of shape (n_samples,), default=None
            Group of each row, as a number or a text. Required with `rows_per_group`, unless `schema` declares it.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights of the records (see :ref:`weights`), which must not depend on other records. They
            require `max_weight`.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        BudgetError
            If the accountant does not admit the fit. Nothing is computed from the data then.
        """
        return self._fit(X, y, groups, sample_weight=sample_weight)


class TargetsMixin(OutcomesMixin):
    """Fits of rows with numeric targets."""

    def _read(self, X: Any, y: Any, parameters: Any) -> tuple[Any, Any, NDArray[np.bool_] | None, Shape]:
        X, y = regression_data(self, X, y)
        y = y if self._many_targets else single_target(y)
        n_targets = None if y.ndim == 1 else y.shape[1]
        return X, y, None, Shape(X.shape[1], n_targets=n_targets, names=self._names())

    def _declared_shape(self, parameters: Any, n_features: int, n_classes: int | None) -> Shape:
        return Shape(n_features, is_read=False)


class ManyTargetsMixin(TargetsMixin):
    """Fits of rows with one target or several."""

    _many_targets = True

    bounds_y: Any

    def privacy_plan(
        self, *, n_features: int | None = None, n_classes: int | None = None, n_targets: int | None = None
    ) -> PrivacyGuarantee:
        """Return the guarantee that `fit` will give, without any data.

        Parameters
        ----------
        n_features : int, optional
            Number of columns of X. Ignored if `schema` is set.
        n_classes : int, optional
            Ignored.
        n_targets : int, optional
            Number of columns of y. If None, it is the number of bounds in `bounds_y`.

        Returns
        -------
        plan : PrivacyGuarantee
            Equal to ``privacy_`` after a fit on such data.
        """
        known = {} if n_targets is None else {"n_targets": check_integer(n_targets, "n_targets", least=1)}
        return self._planned_without_data(n_features, n_classes, **known)

    def _declared_shape(self, parameters: Any, n_features: int, n_classes: int | None) -> Shape:
        n_targets = max(check_bounds(self._declared("bounds_y"), "bounds_y", "the targets")[0].size, 1)
        return Shape(n_features, n_targets=n_targets, is_read=False)

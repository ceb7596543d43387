"""The base of the local model: the guarantee of a row's report, and transformers that randomise rows."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..accounting import PrivacyCost, PureEvent, Relation, check_epsilon
from ..checks.data import check_quietly
from ..checks.params import By, Checked, Rules, anything, check_integer, check_parameters, shown
from ..mechanisms import CategoryChannel, LocalMechanism, NoiseSource
from ..release.mixin import DPEstimatorMixin
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem, check_accountant
from ..schema.entries import has_one_type

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

REPORTS = "reports"
THEOREM = Theorem("Local privacy", 1)


#: Rules of parameters of the local model.
LOCAL_RULES: Rules = {
    "epsilon": By(check_epsilon),
    "n_reported": anything,
    "schema": anything,
    "accountant": By(check_accountant),
    "random_state": anything,
}


def guarantee(epsilon: float, mechanism: LocalMechanism) -> PrivacyGuarantee:
    """Return the guarantee of each row's report."""
    release = Release(REPORTS, mechanism, 1.0, THEOREM)
    return PrivacyGuarantee(epsilon, 0.0, (PureEvent(epsilon),), (release,), relation=Relation.REPLACE_RECORD)


def portion(epsilon: float, n_reported: int) -> Fraction | float:
    """Return the guarantee of each reported column. The guarantees add up to epsilon exactly."""
    return epsilon if epsilon == math.inf else Fraction(epsilon) / n_reported


def check_n_reported(value: Any, n_features: int, epsilon: float, error: Callable[[float], Sequence[float]]) -> int:
    """Return the number of columns that a row reports."""
    # For "auto", `error` maps the guarantee of one column to the mean squared error of each column per report.
    if isinstance(value, str):
        if value == "all" or (value == "auto" and epsilon == math.inf):
            return n_features
        if value == "auto":
            # A row reports a column with probability k / d.
            costs = [sum(error(epsilon / k)) / k for k in range(1, n_features + 1)]
            return int(np.argmin(costs)) + 1
        raise ValueError(f'n_reported must be "all", "auto" or a number of columns, got {shown(value)}')
    k = check_integer(value, "n_reported", least=1)
    if k > n_features:
        raise ValueError(f"n_reported must be at most the number of columns, {n_features}, got {shown(value)}")
    return k


def mechanism_for(
    epsilon: float, sizes: Sequence[int], n_reported: Any, channel: Callable[[Any, int], CategoryChannel]
) -> LocalMechanism:
    """Return the mechanism for columns of categories, where `channel` makes the channel of each."""

    def error(of_column: float) -> list[float]:
        squares = {size: channel(of_column, size).mean_square for size in set(sizes)}
        return [squares[size] for size in sizes]

    k = check_n_reported(n_reported, len(sizes), epsilon, error)
    channels = {size: channel(portion(epsilon, k), size) for size in set(sizes)}
    return LocalMechanism(tuple(channels[size] for size in sizes), k)


class LocalTransformer(DPEstimatorMixin, TransformerMixin, BaseEstimator):
    """Randomise rows separately. Nothing is learned from values."""

    _local = True
    _parameter_rules: ClassVar[Rules] = LOCAL_RULES

    #: The mechanisms are pure.
    delta: ClassVar[float] = 0.0

    #: Whether the reports are charged, and not the fit.
    _randomizes_rows: ClassVar[bool] = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.non_deterministic = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    @abstractmethod
    def _mechanism(self, n_features: int) -> LocalMechanism:
        """Check parameters for a number of columns, and return the mechanism."""

    @abstractmethod
    def _codes(self, X: NDArray) -> Integers:
        """Return the codes of values."""

    @abstractmethod
    def _reports(self, released: NDArray, mechanism: LocalMechanism) -> NDArray:
        """Return the output for the reports of the mechanism."""

    @abstractmethod
    def _rows(self, X: Any, *, reset: bool) -> NDArray:
        """Validate rows."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check parameters, and store the number and names of the columns. Values are not used, and nothing is charged.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. There may be none.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The transformer.
        """
        NoiseSource(self.random_state)
        self._mechanism(self._rows(X, reset=True).shape[1])
        return self

    def transform(self, X: Any) -> NDArray:
        """Randomise rows, and spend epsilon. Each call is a further release of its rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        reports : ndarray of shape (n_samples, n_features_out)
            One report for each row, drawn independently.

        Raises
        ------
        BudgetError
            If the accountant does not admit the call. Nothing is drawn then.
        """
        accountant = check_accountant(self.accountant)
        source = NoiseSource(self.random_state)
        X = self._rows(X, reset=False)
        mechanism = self._mechanism(X.shape[1])
        plan = guarantee(self._checked().epsilon, mechanism)
        name = type(self).__name__
        session = ReleaseSession(plan, accountant=accountant, source=source, estimator=name, label="transform")
        return self._reports(session.release(REPORTS, self._codes(X)), mechanism)

    @property
    def privacy_(self) -> PrivacyGuarantee:
        """The guarantee of each row, for one call of `transform` with the current parameters.

        The records of the accountant have the costs of earlier calls.
        """
        check_is_fitted(self, "n_features_in_")
        return self.privacy_plan(n_features=self._n_columns)

    def privacy_plan(self, *, n_features: int | None = None, n_classes: int | None = None) -> PrivacyGuarantee:
        """Return the guarantee of each row in one call of `transform`, without any data.

        Parameters
        ----------
        n_features : int, optional
            Number of columns of X. Ignored if `schema` is set.
        n_classes : int, optional
            Ignored.

        Returns
        -------
        plan : PrivacyGuarantee
            Equal to ``privacy_`` after a fit to such data.
        """
        n_features = self._planned_features(n_features)
        return guarantee(self._checked().epsilon, self._mechanism(n_features))

    def _checked(self) -> Checked:
        return check_parameters(self, ("bounds",))

    def _fixed_cost(self) -> PrivacyCost:
        epsilon = self._checked().epsilon
        return PrivacyCost(epsilon, 0.0, (PureEvent(epsilon),))

    def _read(self, Z: Any, mechanism: LocalMechanism) -> NDArray:
        """Read reports, which are public."""
        width = self._n_features_out
        dtype = None if has_one_type(Z) else object
        Z = check_quietly(Z, dtype=dtype, ensure_all_finite=False, ensure_min_samples=0)
        if Z.shape[1] != width:
            raise ValueError(f"Z has {Z.shape[1]} columns, and reports have {width}")
        return Z

    @property
    def _n_features_out(self) -> int:
        check_is_fitted(self, "n_features_in_")
        return self._mechanism(self._n_columns).starts[-1]

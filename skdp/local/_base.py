"""The base of the local model: the guarantee of a row's report, and transformers that randomise rows."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..accounting import PrivacyCost, PureEvent, Relation, check_epsilon
from ..checks.data import FLOATS, check_quietly, validate_quietly
from ..checks.params import (
    Bounds,
    By,
    Checked,
    Rules,
    anything,
    check_boolean,
    check_integer,
    check_parameters,
    columns_of,
    real_numbers,
    shown,
)
from ..mechanisms import UNKNOWN, CategoryChannel, LocalMechanism, NoiseSource, NumberChannel
from ..release.mixin import DPEstimatorMixin
from ..release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem, check_accountant
from ..schema.entries import Categories, check_categories, has_one_type, read_entries
from ..solvers.tables import onto_simplex

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

REPORTS = "reports"

_NO_REPORTS = "Z must hold reports as transform returns them"

# Number of steps of a lattice between the bounds. There are fewer steps if the noise is large.
_BITS = 20
_SCALE_BITS = 44

# Rows of a block.
_ROWS = 2**14


def portion(epsilon: float, n_reported: int) -> Fraction | float:
    """Return the guarantee of each reported column. The guarantees add up to epsilon exactly."""
    return epsilon if epsilon == math.inf else Fraction(epsilon) / n_reported


def mechanism_for(
    epsilon: float,
    sizes: Sequence[int],
    n_reported: Any,
    channel: Callable[[Any, int], Any],
    error: Callable[[Any], float] = lambda channel: channel.mean_square,
) -> LocalMechanism:
    """Return the mechanism for columns, where `channel` makes the channel of each for its guarantee and its size."""
    # For "auto", `error` is the mean squared error per report of a column with this channel.
    n_columns = k = len(sizes)
    if isinstance(n_reported, str):
        if n_reported not in ("all", "auto"):
            raise ValueError(f'n_reported must be "all", "auto" or a number of columns, got {shown(n_reported)}')
        if n_reported == "auto" and epsilon < math.inf:
            costs = []
            for count in range(1, n_columns + 1):
                errors = {size: error(channel(epsilon / count, size)) for size in set(sizes)}
                # A row reports a column with probability k / d.
                costs.append(sum(errors[size] for size in sizes) / count)
            k = int(np.argmin(costs)) + 1
    else:
        k = check_integer(n_reported, "n_reported", least=1)
        if k > n_columns:
            raise ValueError(f"n_reported must be at most the number of columns, {n_columns}, got {shown(n_reported)}")
    channels = {size: channel(portion(epsilon, k), size) for size in set(sizes)}
    return LocalMechanism(tuple(channels[size] for size in sizes), k)


class LocalMixin(DPEstimatorMixin):
    """Estimators that randomise rows separately."""

    _local = True
    _parameter_rules: ClassVar[Rules] = {
        "epsilon": By(check_epsilon),
        "n_reported": anything,
        "schema": anything,
        "accountant": By(check_accountant),
        "random_state": anything,
    }

    epsilon: float
    accountant: Any
    random_state: Any

    #: The mechanisms are pure.
    delta: ClassVar[float] = 0.0

    def _guarantee(self, mechanism: LocalMechanism) -> PrivacyGuarantee:
        """Return the guarantee of each row's report."""
        epsilon, release = check_epsilon(self.epsilon), Release(REPORTS, mechanism, 1.0, Theorem("Local privacy", 1))
        return PrivacyGuarantee(epsilon, 0.0, (PureEvent(epsilon),), (release,), relation=Relation.REPLACE_RECORD)

    def _session(self, mechanism: LocalMechanism, label: str) -> ReleaseSession:
        """Charge the accountant for one report of each row."""
        return ReleaseSession(
            self._guarantee(mechanism),
            accountant=check_accountant(self.accountant),
            source=NoiseSource(self.random_state),
            estimator=type(self).__name__,
            label=label,
        )

    def _fixed_cost(self) -> PrivacyCost:
        epsilon = check_epsilon(self.epsilon)
        return PrivacyCost(epsilon, 0.0, (PureEvent(epsilon),))


class LocalTransformer(LocalMixin, TransformerMixin, BaseEstimator):
    """Randomise rows separately. Nothing is learned from values."""

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

    def _reports(self, released: NDArray, mechanism: LocalMechanism) -> NDArray:
        """Return the output for the reports of the mechanism."""
        return released

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
        X = self._rows(X, reset=False)
        mechanism = self._mechanism(X.shape[1])
        session = self._session(mechanism, "transform")
        return self._reports(session.release(REPORTS, self._codes(X)), mechanism)

    @property
    def privacy_(self) -> PrivacyGuarantee:
        """The guarantee of each row, for one call of `transform` with the current parameters."""
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
        return self._guarantee(self._mechanism(self._planned_features(n_features)))

    def _checked(self) -> Checked:
        return check_parameters(self, ("bounds",))

    def _read(self, Z: Any) -> NDArray:
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


class CategoryTransformer(LocalTransformer):
    """Randomise categories, and estimate their frequencies."""

    _schema_form = "categories"

    _parameter_rules: ClassVar[Rules] = {"categories": anything}

    def __init__(
        self,
        categories: Any = None,
        *,
        epsilon: float = 1.0,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        n_reported: Any = "all",
    ) -> None:
        self.categories = categories
        self.epsilon = epsilon
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.n_reported = n_reported

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        return tags

    def _rows(self, X: Any, *, reset: bool) -> NDArray:
        return read_entries(self, X, reset=reset)

    @abstractmethod
    def _channel(self, epsilon: Any, n_categories: int) -> CategoryChannel:
        """Return the channel of a column."""

    def _categories(self, n_features: int) -> tuple[Categories, ...]:
        return check_categories(self._declared("categories"), n_features)

    def _mechanism(self, n_features: int) -> LocalMechanism:
        sizes = [column.size for column in self._categories(n_features)]
        return mechanism_for(self._checked().epsilon, sizes, self.n_reported, self._channel)

    def _codes(self, X: NDArray) -> Integers:
        columns = self._categories(X.shape[1])
        return np.column_stack([column.encode(X[:, j]) for j, column in enumerate(columns)])

    def _symbols(self, Z: NDArray, mechanism: LocalMechanism) -> list[NDArray]:
        """Return the reports of each column, without missing ones."""
        starts, symbols = mechanism.starts, []
        for j, channel in enumerate(mechanism.channels):
            reports = Z[:, starts[j] : starts[j + 1]]
            reports = reports[reports[:, 0] != UNKNOWN]
            limit = 2 if channel.width > 1 else getattr(channel, "n_reports", 2)
            codes = np.full(reports.shape, -1)
            with suppress(TypeError, ValueError, OverflowError), np.errstate(all="ignore"):
                codes = reports.astype(np.int64)
            if not np.all((codes == reports) & (codes >= 0) & (codes < limit)):
                raise ValueError(_NO_REPORTS)
            symbols.append(codes if channel.width > 1 else codes[:, 0])
        return symbols

    def frequencies(self, Z: Any, *, project: bool = False, return_std: bool = False) -> Any:
        """Estimate the frequencies of the categories of each column from reports.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_features_out)
            Reports of this transformer, or of others with the current parameters. Reports with other parameters, such
            as another epsilon, give wrong estimates.
        project : bool, default=False
            If False, the estimates are unbiased, and some may be negative. If True, they are the nearest probabilities,
            which have less error, but are biased.
        return_std : bool, default=False
            Whether to return standard errors as well.

        Returns
        -------
        frequencies : list of ndarray of shape (n_categories,)
            For each column, in the order of its categories. Without any report of a column, they are 0.
        std : list of ndarray of shape (n_categories,)
            Standard errors of the unbiased estimates, for the population that the rows are drawn from. They cover noise
            and sampling. Only if `return_std` is True.
        """
        check_boolean(project, "project")
        check_boolean(return_std, "return_std")
        check_is_fitted(self, "n_features_in_")
        mechanism = self._mechanism(self._n_columns)
        symbols = self._symbols(self._read(Z), mechanism)
        frequencies, errors = [], []
        for channel, reports in zip(mechanism.channels, symbols, strict=True):
            assert isinstance(channel, CategoryChannel)
            n = len(reports)
            if n == 0:
                frequencies.append(np.zeros(channel.n_categories))
                errors.append(np.full(channel.n_categories, np.inf))
                continue
            counts = channel.counts(reports)
            estimate = channel.scores(counts, n) / n
            spread = np.maximum(channel.squares(counts, n) / n - estimate**2, 0.0)
            frequencies.append(onto_simplex(estimate[None], np.ones(1))[0] if project else estimate)
            errors.append(np.sqrt(spread / n))
        return (frequencies, errors) if return_std else frequencies


class NumberTransformer(OneToOneFeatureMixin, LocalTransformer):
    """Randomise numbers between public bounds, and estimate their means."""

    _schema_form = "values"

    _parameter_rules: ClassVar[Rules] = {"bounds": Bounds("the features")}

    def __init__(
        self,
        bounds: Any = None,
        *,
        epsilon: float = 1.0,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        n_reported: Any = "auto",
    ) -> None:
        self.bounds = bounds
        self.epsilon = epsilon
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.n_reported = n_reported

    @abstractmethod
    def _channel(self, epsilon: Any, largest: int) -> NumberChannel:
        """Return the channel of a column."""

    def _rows(self, X: Any, *, reset: bool) -> NDArray:
        return validate_quietly(self, X, dtype=list(FLOATS), ensure_min_samples=0, reset=reset)

    def _bounds(self, n_features: int) -> tuple[Array, Array]:
        return columns_of(self._checked().bounds, "bounds", n_features)

    def _mechanism(self, n_features: int) -> LocalMechanism:
        self._bounds(n_features)

        def error(channel: NumberChannel) -> float:
            # A column that is not reported has the middle of its bounds. The weight of a report makes up for this.
            return (channel.deviation / (channel.largest / 2)) ** 2 + 1

        def channel(epsilon: Any, size: int) -> NumberChannel:
            return self._channel(epsilon, _largest(epsilon))

        # The columns have the same channel, and no size.
        return mechanism_for(self._checked().epsilon, [0] * n_features, self.n_reported, channel, error)

    def _codes(self, X: NDArray) -> Integers:
        lower, upper = self._bounds(X.shape[1])
        channel = self._mechanism(X.shape[1]).channels[0]
        assert isinstance(channel, NumberChannel)
        codes = np.empty(X.shape, dtype=np.int64)
        for start in range(0, len(X), _ROWS):
            rows = np.clip(X[start : start + _ROWS].astype(np.float64), lower, upper)
            with np.errstate(all="ignore"):
                steps = np.rint((rows - lower) / (upper - lower) * channel.largest)
            codes[start : start + _ROWS] = np.clip(steps, 0, channel.largest)
        return codes

    def _reports(self, released: NDArray, mechanism: LocalMechanism) -> Array:
        channel = mechanism.channels[0]
        assert isinstance(channel, NumberChannel)
        n_features = released.shape[1]
        lower, upper = self._bounds(n_features)
        out = np.empty(released.shape)
        for start in range(0, len(released), _ROWS):
            block = released[start : start + _ROWS]
            distance = (channel.estimate(block) - channel.largest / 2) * (n_features / mechanism.n_reported)
            distance[block == channel.missing] = 0.0
            out[start : start + _ROWS] = lower / 2 + upper / 2 + (upper - lower) * (distance / channel.largest)
        return out

    def means(self, Z: Any, *, return_std: bool = False) -> Any:
        """Estimate the means of the columns from reports, for values that are clipped to the bounds.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_features)
            Reports of this transformer, or of others with the current bounds.
        return_std : bool, default=False
            Whether to return standard errors as well.

        Returns
        -------
        means : ndarray of shape (n_features,)
            Unbiased estimates. Without any report, the middle of the bounds.
        std : ndarray of shape (n_features,)
            Standard errors of the estimates for the population that the rows are drawn from. They cover noise and
            sampling. Only if `return_std` is True.
        """
        check_boolean(return_std, "return_std")
        check_is_fitted(self, "n_features_in_")
        n_features = self._n_columns
        Z = real_numbers(self._read(Z))
        if Z is None or not np.all(np.isfinite(Z)):
            raise ValueError(_NO_REPORTS)
        lower, upper = self._bounds(n_features)
        means = Z.mean(axis=0) if len(Z) else lower / 2 + upper / 2
        if not return_std:
            return means
        if len(Z) < 2:
            return means, np.full(n_features, np.inf)
        return means, Z.std(axis=0, ddof=1) / math.sqrt(len(Z))


def _largest(epsilon: Any) -> int:
    """Return the number of steps of the lattice between the bounds, from public numbers."""
    if epsilon == math.inf:
        return 2**_BITS
    return 2 ** min(_BITS, _SCALE_BITS + math.frexp(float(epsilon))[1])

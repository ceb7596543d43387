"""Local reports of bounded numbers: Laplace noise, and the piecewise mechanism."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from ..checks.data import FLOATS, validate_quietly
from ..checks.params import Bounds, Rules, columns_of
from ..mechanisms import LatticeLaplaceChannel, LocalMechanism, NumberChannel, WindowChannel
from ._base import Array, Integers, LocalTransformer, check_n_reported, portion

# Number of steps of a lattice between the bounds. There are fewer steps if the noise is large.
_BITS = 20
_SCALE_BITS = 44

_ROWS = 2**14


class NumberTransformer(OneToOneFeatureMixin, LocalTransformer):
    """Randomise numbers between public bounds, and estimate their means."""

    _schema_form = "values"

    _parameter_rules: ClassVar[Rules] = {"bounds": Bounds("the features")}

    def __init__(
        self,
        bounds: Any = None,
        *,
        epsilon: float = 1.0,
        n_reported: Any = "auto",
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
    ) -> None:
        self.bounds = bounds
        self.epsilon = epsilon
        self.n_reported = n_reported
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state

    @abstractmethod
    def _channel(self, epsilon: Any, largest: int) -> NumberChannel:
        """Return the channel of a column."""

    def _rows(self, X: Any, *, reset: bool) -> NDArray:
        return validate_quietly(self, X, dtype=list(FLOATS), ensure_min_samples=0, reset=reset)

    def _bounds(self, n_features: int) -> tuple[Array, Array]:
        return columns_of(self._checked().bounds, "bounds", n_features)

    def _mechanism(self, n_features: int) -> LocalMechanism:
        epsilon = self._checked().epsilon
        self._bounds(n_features)

        def error(of_column: float) -> list[float]:
            largest = _largest(of_column)
            # A column that is not reported has the middle of its bounds. The weight of a report makes up for this.
            return [(self._channel(of_column, largest).deviation / (largest / 2)) ** 2 + 1]

        k = check_n_reported(self.n_reported, n_features, epsilon, error)
        of_column = portion(epsilon, k)
        return LocalMechanism((self._channel(of_column, _largest(of_column)),) * n_features, k)

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
        check_is_fitted(self, "n_features_in_")
        n_features = self._n_columns
        Z = self._read(Z, self._mechanism(n_features)).astype(np.float64)
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


class LocalLaplace(NumberTransformer):
    r"""Add Laplace noise to the numbers of each row.

    Parameters
    ----------
    bounds : tuple (lower, upper)
        Public bounds of the columns: numbers, or one for each column. Values beyond are clipped, without a warning.
    epsilon : float, default=1.0
        Privacy budget of one row, over all of its columns, for each call of `transform`. Must be strictly positive.
        Smaller values add more noise. ``inf`` gives no privacy.
    n_reported : "all", "auto" or int, default="auto"
        Number of columns that each row reports, with an equal part of `epsilon` for each. If it is less than all, the
        columns of each row are drawn at random. The other columns have the middle of their bounds, and the reported
        numbers are moved away from the middle by a factor that keeps each number unbiased. ``"auto"`` has the least
        error.
    schema : Schema, default=None
        Public facts about the columns of a table, in place of `bounds`. A parameter that is set takes precedence over
        the schema. X is then the table. All of its columns must be declared as `Number`, with ``missing="error"``.
    accountant : BudgetAccountant, default=None
        Accountant that each call of `transform` charges. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy. With an
        int, each call draws the same noise.

    Attributes
    ----------
    privacy_ : PrivacyGuarantee
        Guarantee of each row, for one call of `transform` with the current parameters.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    PiecewiseMechanism : Less error, and bounded reports.

    Notes
    -----
    The scale of the noise is the distance of the bounds over epsilon. It is discrete Laplace noise on a lattice of
    :math:`2^{20}` steps between the bounds. Its standard deviation is public, and is the same for all values.

    **Privacy.** The report of each row is epsilon-DP with respect to that row (:ref:`local privacy, theorem 1
    <local-theorem-1>`). With any other row in its place, no report is more than :math:`e^\varepsilon` times as likely.
    The number of rows is public. `fit` learns nothing. Each call of `transform` is a release of its rows and is
    charged, also within a pipeline. Values are rounded to a lattice between the bounds, and reports lie on another
    lattice, so that low-order bits disclose nothing.

    The index of a data frame is not randomised, and is part of the output if the output is pandas. Do not use a
    ``Pipeline`` with `memory`, because it would return the same report again for an equal row.

    References
    ----------
    .. [1] J. Duchi, M. Jordan and M. Wainwright, "Minimax Optimal Procedures for Locally Private Estimation", Journal
       of the American Statistical Association 113, 2018.

    Examples
    --------
    >>> from skdp.local import LocalLaplace
    >>> ages = [[20 + k % 60] for k in range(10_000)]
    >>> laplace = LocalLaplace((0, 100), epsilon=1.0, random_state=0)
    >>> means, std = laplace.means(laplace.fit_transform(ages), return_std=True)
    >>> abs(means - 49.5)[0] < 3 * std[0]
    np.True_
    >>> std.round(1)
    array([1.4])
    """

    def _channel(self, epsilon: Any, largest: int) -> NumberChannel:
        return LatticeLaplaceChannel(epsilon, largest)


class PiecewiseMechanism(NumberTransformer):
    r"""Report a number near the row's own number, or anywhere in a bounded range.

    Parameters
    ----------
    bounds : tuple (lower, upper)
        Public bounds of the columns: numbers, or one for each column. Values beyond are clipped, without a warning.
    epsilon : float, default=1.0
        Privacy budget of one row, over all of its columns, for each call of `transform`. Must be strictly positive.
        Smaller values add more noise. ``inf`` gives no privacy.
    n_reported : "all", "auto" or int, default="auto"
        Number of columns that each row reports, with an equal part of `epsilon` for each. If it is less than all, the
        columns of each row are drawn at random. The other columns have the middle of their bounds, and the reported
        numbers are moved away from the middle by a factor that keeps each number unbiased. ``"auto"`` has the least
        error.
    schema : Schema, default=None
        Public facts about the columns of a table, in place of `bounds`. A parameter that is set takes precedence over
        the schema. X is then the table. All of its columns must be declared as `Number`, with ``missing="error"``.
    accountant : BudgetAccountant, default=None
        Accountant that each call of `transform` charges. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy. With an
        int, each call draws the same noise.

    Attributes
    ----------
    privacy_ : PrivacyGuarantee
        Guarantee of each row, for one call of `transform` with the current parameters.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    LocalLaplace : Noise with the same distribution for all values.

    Notes
    -----
    For values scaled to [-1, 1], reports lie in :math:`[-C, C]`, :math:`C =
    (e^{\varepsilon/2}+1)/(e^{\varepsilon/2}-1)`. With probability :math:`e^{\varepsilon/2}/ (e^{\varepsilon/2}+1)`, a
    report comes from a window of length :math:`C - 1` that moves with the value. Otherwise, it comes from the rest. The
    variance is smallest for values in the middle of the bounds.

    **Privacy.** The report of each row is epsilon-DP with respect to that row (:ref:`local privacy, theorem 1
    <local-theorem-1>`). With any other row in its place, no report is more than :math:`e^\varepsilon` times as likely.
    The number of rows is public. `fit` learns nothing. Each call of `transform` is a release of its rows and is
    charged, also within a pipeline. Values are rounded to a lattice between the bounds, and reports lie on another
    lattice, so that low-order bits disclose nothing.

    The index of a data frame is not randomised, and is part of the output if the output is pandas. Do not use a
    ``Pipeline`` with `memory`, because it would return the same report again for an equal row.

    References
    ----------
    .. [1] N. Wang, X. Xiao, Y. Yang, J. Zhao, S. C. Hui, H. Shin, J. Shin and G. Yu, "Collecting and Analyzing
       Multidimensional Data with Local Differential Privacy", ICDE 2019.

    Examples
    --------
    >>> from skdp.local import PiecewiseMechanism
    >>> ages = [[20 + k % 60] for k in range(10_000)]
    >>> piecewise = PiecewiseMechanism((0, 100), epsilon=3.0, random_state=0)
    >>> means, std = piecewise.means(piecewise.fit_transform(ages), return_std=True)
    >>> abs(means - 49.5)[0] < 3 * std[0]
    np.True_
    >>> std.round(1)
    array([0.3])
    """

    def _channel(self, epsilon: Any, largest: int) -> NumberChannel:
        return WindowChannel.best(epsilon, largest)

r"""Bins between private quantiles, with about equally many records, for any range.

The quantiles of each column are released. They are edges of a public grid, drawn by the exponential mechanism.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from ..accounting import PrivacyCost, check_delta, check_epsilon
from ..release.estimator import Records, RowsMixin, Shape
from ..release.session import PrivacyGuarantee, ReleaseSession
from ..schema.grid import Grid, check_grid, check_n_bins
from ._base import Array
from ._binning import MOST_BINS, BinTransformer
from ._quantiles import QUANTILE_SCALES, QUANTILES, check_cells, quantile_plan, warn_of_one_cell


@dataclass(frozen=True)
class Parameters:
    """The checked parameters of a fit, all public."""

    epsilon: float
    delta: float
    n_bins: int
    grid: Grid

    def plan(self, n_features: int) -> PrivacyGuarantee:
        levels = tuple(range(1, self.n_bins))
        return quantile_plan(QUANTILES, self.epsilon, self.delta, levels, self.n_bins, n_features)


class DPQuantileBinner(RowsMixin, BinTransformer):
    r"""Map values to bins with about equally many records, between differentially private quantiles.

    Use this transformer for features that are skewed, or whose range is unknown. `bounds` may be much wider than the
    data. The output is always bounded.

    Parameters
    ----------
    n_bins : int, default=8
        Number of bins of each column.
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1). If 0, the fit is pure epsilon-DP, and epsilon is divided by the number of
        columns times the depth of the search, :math:`\lceil\log_2 n_\mathrm{bins}\rceil`. Otherwise, composition under
        Gaussian DP divides it by about the square root. Choose a value far below one over the expected number of
        records.
    bounds : tuple (lower, upper)
        Public bounds of the edges: numbers, or one for each column. Values beyond are in the outer bins.
    scale : {"auto", "linear", "log", "symlog"}, default="auto"
        How the cells of the grid are spaced. ``"linear"`` spaces the cells evenly. ``"log"`` spaces the cells evenly in
        logarithms and needs positive bounds. ``"symlog"`` spaces the cells evenly in the inverse hyperbolic sine of
        values over `unit`, for wide bounds of any sign. ``"auto"`` takes half of the edges from ``"linear"`` and half
        from ``"symlog"``, so that bounds may be much wider than the data. The cells depend on `bounds`, `unit` and
        `grid_size` only.
    unit : float, default=1.0
        Size of values at which ``"symlog"`` changes from linear to logarithmic. With ``"auto"``, the smaller of `unit`
        and ``2**-24`` times the largest bound is used.
    grid_size : int, default=1024
        Number of cells of the grid. Edges of bins are edges of eighths of these cells.
    encode : {"onehot", "ordinal"}, default="onehot"
        ``"onehot"`` returns one indicator for each bin, for linear models. ``"ordinal"`` returns the number of the bin,
        for trees and naive Bayes (``categorical_features``, with ``n_categories=n_bins``).
    schema : Schema, default=None
        Public facts about the columns of a table, in place of `bounds`. A parameter that is set takes precedence over
        the schema. X is then the table. All of its columns must be declared as `Number`, with ``missing="error"``.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, random bits are cryptographically secure. Other values are for tests only, and give no privacy.

    Attributes
    ----------
    bin_edges_ : ndarray of shape (n_features, n_bins + 1)
        Edges of the bins. The outer ones are the bounds. If many records share a value, several edges lie within one
        cell of the grid, and the bins between them may be empty.
    data_norm_ : float
        Bound on the L2 norm of transformed rows, for the `data_norm` of a later step. Each row has as many indicators
        of 1 as there are columns, so that all rows have the same norm.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit, with its mechanism and share.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    PublicBinner : Public edges, which use no budget.
    private_quantiles : Quantiles without binning.

    Notes
    -----
    **Privacy.** The quantiles of a column are drawn by the exponential mechanism among the edges of a public grid, by
    ranks. The middle quantile is drawn first, and then those of the records on either side (:ref:`preprocessing,
    theorem 2 <preprocessing-theorem-2>`). The rest is post-processing. The guarantee covers neither an error for values
    that are not finite nor the time that `fit` takes.

    References
    ----------
    .. [1] A. Smith, "Privacy-preserving Statistical Estimation with Optimal Convergence Rates", STOC 2011.
    .. [2] H. Kaplan, S. Schnapp and U. Stemmer, "Differentially Private Approximate Quantiles", ICML 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import DPQuantileBinner
    >>> X = np.linspace(0, 1, 10_000)[:, None] ** 4 * 50_000
    >>> binner = DPQuantileBinner(4, epsilon=1.0, bounds=(0, 1e9), scale="symlog", random_state=0)
    >>> binner.fit_transform(X).mean(axis=0).round(1).tolist()
    [0.2, 0.3, 0.3, 0.3]
    """

    _takes_parts = True
    _released = frozenset({"bin_edges_"})

    def __init__(
        self,
        n_bins: int = 8,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        bounds: Any = None,
        scale: str = "auto",
        unit: float = 1.0,
        grid_size: int = 1024,
        encode: str = "onehot",
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_bins = n_bins
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.scale = scale
        self.unit = unit
        self.grid_size = grid_size
        self.encode = encode
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state

    def _plan(self, parameters: Parameters, shape: Shape) -> tuple[PrivacyGuarantee, Grid]:
        return parameters.plan(shape.n_features), parameters.grid.of(shape.n_features)

    def _measure(self, session: ReleaseSession, records: Records, parameters: Parameters, grid: Grid) -> dict[str, Any]:
        positions = grid.positions(session.release(QUANTILES, grid.shares(records.X)))
        warn_of_one_cell(positions)
        return {"bin_edges_": grid.edges(positions)}

    def _fixed_cost(self) -> PrivacyCost:
        # More columns share the same budget.
        return self._check_parameters().plan(1).cost

    def _check_parameters(self) -> Parameters:
        self._checked_encoding()
        return Parameters(
            epsilon=check_epsilon(self.epsilon),
            delta=check_delta(self.delta),
            n_bins=check_n_bins(self.n_bins, MOST_BINS),
            grid=check_grid(
                self._declared("bounds"), check_cells(self.grid_size), self.scale, self.unit, QUANTILE_SCALES
            ),
        )

    def _edges(self, n_features: int) -> list[Array]:
        check_is_fitted(self, "privacy_")
        return list(self.bin_edges_)

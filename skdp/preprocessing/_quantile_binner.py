r"""Bins between private quantiles: about equally many records in each, whatever the range.

Released: the quantiles of each column, as edges of a public grid, drawn by the exponential mechanism.
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
    r"""Puts values into bins that hold about equally many records, between differentially private quantiles.

    For features that are skewed, or whose range is unknown: `bounds` may be much wider than the data. What comes out is
    bounded, whatever went in.

    Parameters
    ----------
    n_bins : int, default=8
        Number of bins of each column.
    epsilon : float, default=1.0
        Privacy budget of one fit, positive. ``inf`` gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1). With 0, the fit is pure epsilon-DP, and epsilon is divided by the number
        of columns times the depth of the search, :math:`\lceil\log_2 n_\mathrm{bins}\rceil`. Otherwise, composition
        under Gaussian DP divides it by about the square root.
    bounds : tuple (lower, upper)
        Between which edges are sought: numbers, or one for each column, from public knowledge. Values beyond are in the
        outer bins.
    scale : {"auto", "linear", "log", "symlog"}, default="auto"
        How the cells of the grid are spaced. ``"linear"`` spaces the cells evenly. ``"log"`` spaces the cells evenly in
        logarithms and needs positive bounds. ``"symlog"`` spaces the cells evenly in the inverse hyperbolic sine of
        values over `unit`, for wide bounds of any sign. ``"auto"`` takes half of the edges from ``"linear"`` and half
        from ``"symlog"``, so that bounds may be much wider than the data. The cells depend on `bounds`, `unit` and
        `grid_size` only.
    unit : float, default=1.0
        Where ``"symlog"`` turns from linear to logarithmic. With ``"auto"``, the least of `unit` and ``2**-24`` times
        the largest bound is used.
    grid_size : int, default=1024
        Number of cells of the grid. Edges of bins are edges of eighths of these cells.
    encode : {"onehot", "ordinal"}, default="onehot"
        One indicator for each bin, as linear models want it, or the number of the bin, as trees and naive Bayes do
        (``categorical_features``, with ``n_categories=n_bins``).
    schema : Schema, default=None
        Public facts about the columns of a table, in place of `bounds`. A value that is given for `bounds`
        counts instead of the schema's. X is then the table itself, of which all columns must be declared as
        `Number`, with ``missing="error"``.
    accountant : BudgetAccountant, default=None
        Budget that is charged before anything is drawn. ``clone`` shares it.
    random_state : int, RandomState, Generator or None, default=None
        None takes random bits from the operating system's cryptographic generator. Anything else makes draws that can
        be reproduced: for tests only.

    Attributes
    ----------
    bin_edges_ : ndarray of shape (n_features, n_bins + 1)
        Edges, of which the outer ones are the bounds. Where many records share a value, several edges lie within one
        cell of the grid, and the bins between them may be empty. The number of columns is public.
    data_norm_ : float
        Bound on the L2 norm of what comes out, for the `data_norm` of what follows. Each row has as many indicators of
        1 as there are columns: all have the same norm.
    privacy_ : PrivacyGuarantee
        The guarantee, with mechanism and share.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, where X has string names.

    See Also
    --------
    PublicBinner : Public edges, which cost nothing.
    private_quantiles : The quantiles alone.

    Notes
    -----
    **Privacy.** The quantiles of a column are drawn by the exponential mechanism among the edges of a public grid, by
    ranks: the middle one first, then those of the records on either side. See the user guide. Everything else is
    computed from them. Not covered: that `fit` raises an error for values that are not finite, and how long it takes.

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

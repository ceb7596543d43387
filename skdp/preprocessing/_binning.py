"""Binning of values, to numbers of bins or indicators. Rows are mapped one by one.

Edges are public or released. Released edges are quantiles of each column on a public grid, drawn by the exponential
mechanism.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from ..checks.params import Checked, Integer, OneOf, Real, Rules, anything, check_parameters, increasing_edges, is_list
from ..release.estimator import Records, RowsMixin, Shape
from ..release.session import PrivacyGuarantee, ReleaseSession
from ..schema.declared import SCALES, Bins, Grid, check_grid
from ..schema.encoding import norm_of_entries
from ._quantiles import MOST_CELLS, QUANTILE_SCALES, QUANTILES, quantile_plan, warn_of_cells
from ._scaling import Array, NumericTransformer, PublicTransformer, by_rows

MOST_BINS = 10**4

_ENCODING = OneOf(("onehot", "ordinal"))


class BinTransformer(NumericTransformer):
    """Base of the binners, which differ in the source of the edges."""

    _parameter_rules: ClassVar[Rules] = {"encode": _ENCODING}

    encode: Any

    @abstractmethod
    def _edges(self, n_features: int) -> list[Array]:
        """Return the edges of the bins of each column."""

    def _is_ordinal(self) -> bool:
        return _ENCODING(self.encode, "encode") == "ordinal"

    @property
    def data_norm_(self) -> float:
        """Bound on the L2 norm of transformed rows, at least 1. For indicators, it is the norm of every row."""
        check_is_fitted(self, "n_features_in_")
        largest: Any = 1.0
        if self._is_ordinal():
            largest = [len(edges) - 2 for edges in self._edges(self.n_features_in_)]
        # If no column has a second bin, all numbers are 0, and any norm is valid, but later steps would refuse 0.
        return max(norm_of_entries(largest, self.n_features_in_), 1.0)

    def transform(self, X: Any) -> NDArray:
        """Map values to bins.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite rows. Values beyond the outer edges are in the outer bins.

        Returns
        -------
        bins : ndarray of shape (n_samples, n_features) or (n_samples, n_indicators)
            Numbers of bins from 0, or one indicator for each bin of each column.
        """
        X = self._rows(X, reset=False)
        every = self._edges(X.shape[1])
        sizes = [len(edges) - 1 for edges in every]
        starts = np.cumsum([0, *sizes])

        inner = [Bins(edges[1:-1], right=True) for edges in every]

        def bins(rows: Array) -> Array:
            return np.column_stack([number(values) for number, values in zip(inner, rows.T, strict=True)])

        def indicators(rows: Array) -> Array:
            out = np.zeros((len(rows), starts[-1]))
            np.put_along_axis(out, bins(rows) + starts[:-1], 1.0, axis=1)
            return out

        if self._is_ordinal():
            return by_rows(bins, X, X.shape[1])
        return by_rows(indicators, X, int(starts[-1]))

    def inverse_transform(self, X: Any) -> NDArray:
        """Return the centres of bins.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, n_indicators)
            Output of `transform`.

        Returns
        -------
        values : ndarray of shape (n_samples, n_features)
            One value for each feature.
        """
        check_is_fitted(self, "n_features_in_")
        every = self._edges(self.n_features_in_)
        sizes = [len(edges) - 1 for edges in every]
        ordinal = self._is_ordinal()
        X = self._transformed_rows(X, len(every) if ordinal else sum(sizes))
        starts = np.cumsum([0, *sizes])

        def middles(rows: Array) -> Array:
            out = np.empty((len(rows), len(every)))
            for j, edges in enumerate(every):
                if ordinal:
                    number = np.clip(np.rint(rows[:, j]), 0, sizes[j] - 1).astype(np.intp)
                else:
                    number = rows[:, starts[j] : starts[j + 1]].argmax(axis=1)
                out[:, j] = (edges[:-1] / 2 + edges[1:] / 2)[number]
            return out

        return by_rows(middles, X, len(every))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """Return the names of the columns after the transformation.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns before. If None, those seen in `fit`.

        Returns
        -------
        names : ndarray of str objects
            The same names for numbers of bins. For indicators, the number of the bin is appended.
        """
        names = OneToOneFeatureMixin.get_feature_names_out(self, input_features)
        if self._is_ordinal():
            return np.asarray(names, dtype=object)
        every = self._edges(self.n_features_in_)
        return np.array(
            [f"{name}_{k}" for name, edges in zip(names, every, strict=True) for k in range(len(edges) - 1)],
            dtype=object,
        )


class PublicBinner(BinTransformer, PublicTransformer):
    """Map values to bins with public edges.

    Parameters
    ----------
    bin_edges : array-like or list of array-like, default=None
        Edges of the bins, increasing: one sequence for all columns, or a list with one for each column. Values beyond
        the outer edges are counted in the outer bins. If None, bins are between `bounds`.
    schema : Schema, default=None
        Public facts about the columns of a table, in place of `bounds`. X is then the table. All of its columns must be
        declared as `Number`, with ``missing="error"``.
    n_bins : int, default=8
        Number of bins of each column, if `bin_edges` is None.
    scale : {"linear", "log", "symlog"}, default="linear"
        How bins are spaced. ``"linear"`` spaces them evenly. ``"log"`` spaces them evenly in logarithms, and needs
        positive bounds. ``"symlog"`` spaces them evenly in the inverse hyperbolic sine of values over `unit`, which is
        linear near 0 and logarithmic far from 0, for both signs.
    unit : float, default=1.0
        Size of values at which ``"symlog"`` changes from linear to logarithmic.
    encode : {"onehot", "ordinal"}, default="onehot"
        ``"onehot"`` returns one indicator for each bin, for linear models. ``"ordinal"`` returns the number of the bin,
        for trees and naive Bayes (``categorical_features``, with ``n_categories=n_bins``).
    bounds : tuple (lower, upper)
        Public bounds between which bins are spaced, if `bin_edges` is None: numbers, or one for each column.

    Attributes
    ----------
    bin_edges_ : list of ndarray
        Edges of the bins of each column.
    data_norm_ : float
        Bound on the L2 norm of transformed rows, for the `data_norm` of a later step. Each row has as many indicators
        of 1 as there are columns, so that all rows have the same norm.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    DPQuantileBinner : Private bins with about equally many records.

    Notes
    -----
    **Privacy.** Each row is mapped separately by public numbers. Therefore neighbouring data sets stay neighbours, and
    no budget is used. Nothing is learned from values.

    Examples
    --------
    >>> from skdp import Number, Schema
    >>> from skdp.preprocessing import PublicBinner
    >>> schema = Schema({"income": Number(1, 1000, missing="error")})
    >>> binner = PublicBinner(n_bins=3, schema=schema, scale="log")
    >>> binner.fit_transform({"income": [7, 250, 3000]}).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
    """

    _parameter_rules: ClassVar[Rules] = {
        "bin_edges": anything,
        "n_bins": Integer(2, MOST_BINS),
        "bounds": anything,
        "scale": OneOf(SCALES),
        "unit": Real(),
        "schema": anything,
    }

    def __init__(
        self,
        bin_edges: Any = None,
        *,
        schema: Any = None,
        n_bins: int = 8,
        scale: str = "linear",
        unit: float = 1.0,
        encode: str = "onehot",
        bounds: Any = None,
    ) -> None:
        self.bin_edges = bin_edges
        self.schema = schema
        self.n_bins = n_bins
        self.scale = scale
        self.unit = unit
        self.encode = encode
        self.bounds = bounds

    def _check(self, n_features: int) -> None:
        self._edges(n_features)

    def _edges(self, n_features: int) -> list[Array]:
        parameters = check_parameters(self, ("bin_edges", "bounds"))
        if parameters.bin_edges is not None:
            return check_edges(parameters.bin_edges, n_features)
        grid = check_grid(parameters.bounds, parameters.n_bins, parameters.scale, parameters.unit)
        return list(grid.of(n_features).every_edge())

    @property
    def bin_edges_(self) -> list[Array]:
        """Edges of the bins of each column."""
        check_is_fitted(self, "n_features_in_")
        return self._edges(self.n_features_in_)


class DPQuantileBinner(RowsMixin, BinTransformer):
    """Map values to bins with about equally many records, between differentially private quantiles.

    Use this transformer for features that are skewed, or whose range is unknown. `bounds` may be much wider than the
    data. The output is always bounded.

    Parameters
    ----------
    n_bins : int, default=8
        Number of bins of each column.
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=0.0
        Privacy budget of one fit, in [0, 1), far below one over the number of records. If 0, the fit is pure
        epsilon-DP. A positive `delta` composes the quantiles of many columns more tightly.
    schema : Schema, default=None
        Declaration of the columns of X, in place of `bounds`, all declared as `Number` with ``missing="error"``.
        Explicit parameters override it.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, the noise is cryptographically secure. Other values are for tests only, and give no privacy.
    scale : {"auto", "linear", "log", "symlog"}, default="auto"
        How the cells of the grid are spaced: evenly, evenly in logarithms (for positive bounds), or evenly in the
        inverse hyperbolic sine of values over `unit` (for wide bounds of any sign). ``"auto"`` takes half of the edges
        from ``"linear"`` and half from ``"symlog"``, so that bounds may be much wider than the data.
    unit : float, default=1.0
        Size of values at which ``"symlog"`` changes from linear to logarithmic. With ``"auto"``, the smaller of `unit`
        and ``2**-24`` times the largest bound is used.
    grid_size : int, default=1024
        Number of cells of the grid. Edges of bins are edges of eighths of these cells.
    encode : {"onehot", "ordinal"}, default="onehot"
        ``"onehot"`` returns one indicator for each bin, for linear models. ``"ordinal"`` returns the number of the bin,
        for trees and naive Bayes (``categorical_features``, with ``n_categories=n_bins``).
    bounds : tuple (lower, upper)
        Public bounds of the edges: numbers, or one for each column. Values beyond are in the outer bins.

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
    skdp.stats.quantile : Quantiles without binning.

    Notes
    -----
    **Privacy.** The quantiles of a column are drawn by the exponential mechanism among the edges of a public grid, by
    ranks. The middle quantile is drawn first, and then those of the records on either side (:ref:`preprocessing,
    theorem 2 <preprocessing-theorem-2>`). The rest is post-processing.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPQuantileBinner, Number, Schema
    >>> income = {"income": np.geomspace(1000, 1_000_000, 5000)}
    >>> schema = Schema({"income": Number(0, 10_000_000, missing="error")})
    >>> binner = DPQuantileBinner(4, epsilon=1.0, schema=schema, random_state=0)
    >>> binner.fit_transform(income).mean(axis=0).round(1)
    array([0.2, 0.2, 0.3, 0.2])
    """

    _parameter_rules: ClassVar[Rules] = {
        "n_bins": Integer(2, MOST_BINS),
        "scale": OneOf(QUANTILE_SCALES),
        "unit": Real(),
        "grid_size": Integer(2, MOST_CELLS),
    }
    _takes_parts = True
    _fixes_cost = True
    _released = frozenset({"bin_edges_"})

    def __init__(
        self,
        n_bins: int = 8,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        scale: str = "auto",
        unit: float = 1.0,
        grid_size: int = 1024,
        encode: str = "onehot",
        bounds: Any = None,
    ) -> None:
        self.n_bins = n_bins
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.scale = scale
        self.unit = unit
        self.grid_size = grid_size
        self.encode = encode
        self.bounds = bounds

    def _plan(self, parameters: Checked, shape: Shape) -> tuple[PrivacyGuarantee, Grid]:
        p, (lower, upper) = parameters, parameters.bounds
        grid = Grid(lower, upper, p.grid_size, p.scale, p.unit).of(shape.n_features)
        levels = tuple(range(1, p.n_bins))
        return quantile_plan(QUANTILES, p.epsilon, p.delta, levels, p.n_bins, shape.n_features), grid

    def _measure(self, session: ReleaseSession, records: Records, parameters: Checked, grid: Grid) -> dict[str, Any]:
        positions = grid.positions(session.release(QUANTILES, grid.shares(records.X)))
        names = range(len(positions)) if records.shape.names is None else records.shape.names
        warn_of_cells(names, positions, np.arange(1, parameters.n_bins) / parameters.n_bins, grid)
        return {"bin_edges_": grid.edges(positions)}

    def _edges(self, n_features: int) -> list[Array]:
        check_is_fitted(self, "privacy_")
        return list(self.bin_edges_)


def check_edges(value: Any, n_features: int) -> list[Array]:
    """Return edges by column."""
    message = "bin_edges must hold two finite edges or more, increasing: one sequence, or one for each column"
    whole = increasing_edges(value)
    if whole is not None:
        return [whole] * n_features
    every = [increasing_edges(edges) for edges in value] if is_list(value) else []
    checked = [edges for edges in every if edges is not None]
    if not checked or len(checked) < len(every):
        raise ValueError(message)
    if len(checked) != n_features:
        raise ValueError(f"bin_edges has edges for {len(checked)} columns, and there are {n_features}")
    return checked

"""Binning of values, to numbers of bins or indicators. Rows are mapped one by one. Edges are public or released."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from ..checks.params import check_choice, increasing_edges, is_list
from ..schema.bins import Bins
from ..schema.encoding import norm_of_entries
from ..schema.grid import check_grid, check_n_bins
from ._base import Array, NumericTransformer, PublicTransformer, by_rows

ENCODINGS = ("onehot", "ordinal")

MOST_BINS = 10**4


class BinTransformer(NumericTransformer):
    """Base of the binners, which differ in the source of the edges."""

    encode: Any

    @abstractmethod
    def _edges(self, n_features: int) -> list[Array]:
        """Return the edges of the bins of each column."""

    def _checked_encoding(self) -> str:
        return check_choice(self.encode, "encode", ENCODINGS)

    @property
    def data_norm_(self) -> float:
        """Bound on the L2 norm of transformed rows, at least 1. For indicators, it is the norm of every row."""
        check_is_fitted(self, "n_features_in_")
        largest: Any = 1.0
        if self._checked_encoding() == "ordinal":
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
            return np.column_stack([own(values) for own, values in zip(inner, rows.T, strict=True)])

        def indicators(rows: Array) -> Array:
            out = np.zeros((len(rows), starts[-1]))
            np.put_along_axis(out, bins(rows) + starts[:-1], 1.0, axis=1)
            return out

        if self._checked_encoding() == "ordinal":
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
        ordinal = self._checked_encoding() == "ordinal"
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
        if self._checked_encoding() == "ordinal":
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
    n_bins : int, default=8
        Number of bins of each column, if `bin_edges` is None.
    bounds : tuple (lower, upper)
        Public bounds between which bins are spaced, if `bin_edges` is None: numbers, or one for each column.
    scale : {"linear", "log", "symlog"}, default="linear"
        How bins are spaced. ``"linear"`` spaces them evenly. ``"log"`` spaces them evenly in logarithms, and needs
        positive bounds. ``"symlog"`` spaces them evenly in the inverse hyperbolic sine of values over `unit`, which is
        linear near 0 and logarithmic far from 0, for both signs.
    unit : float, default=1.0
        Size of values at which ``"symlog"`` changes from linear to logarithmic.
    encode : {"onehot", "ordinal"}, default="onehot"
        ``"onehot"`` returns one indicator for each bin, for linear models. ``"ordinal"`` returns the number of the bin,
        for trees and naive Bayes (``categorical_features``, with ``n_categories=n_bins``).
    schema : Schema, default=None
        Public facts about the columns of a table, in place of `bounds`. X is then the table. All of its columns must be
        declared as `Number`, with ``missing="error"``.

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
    >>> from skdp.preprocessing import PublicBinner
    >>> PublicBinner([0, 10, 100, 1000]).fit_transform([[7], [250], [-3]]).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """

    def __init__(
        self,
        bin_edges: Any = None,
        *,
        n_bins: int = 8,
        bounds: Any = None,
        scale: str = "linear",
        unit: float = 1.0,
        encode: str = "onehot",
        schema: Any = None,
    ) -> None:
        self.bin_edges = bin_edges
        self.n_bins = n_bins
        self.bounds = bounds
        self.scale = scale
        self.unit = unit
        self.encode = encode
        self.schema = schema

    def _check(self, n_features: int) -> list[Array]:
        self._checked_encoding()
        if self._declared("bin_edges") is not None:
            return check_edges(self._declared("bin_edges"), n_features)
        grid = check_grid(self._declared("bounds"), check_n_bins(self.n_bins, MOST_BINS), self.scale, self.unit)
        return list(grid.of(n_features).every_edge())

    def _edges(self, n_features: int) -> list[Array]:
        return self._check(n_features)

    @property
    def bin_edges_(self) -> list[Array]:
        """Edges of the bins of each column."""
        check_is_fitted(self, "n_features_in_")
        return self._edges(self.n_features_in_)


def check_edges(value: Any, n_features: int) -> list[Array]:
    """Return edges by column."""
    message = "bin_edges must hold two finite edges or more, increasing: one sequence, or one for each column"
    whole = increasing_edges(value)
    if whole is not None:
        return [whole] * n_features
    every = [increasing_edges(edges) for edges in value] if is_list(value) else []
    found = [edges for edges in every if edges is not None]
    if not found or len(found) < len(every):
        raise ValueError(message)
    if len(found) != n_features:
        raise ValueError(f"bin_edges has edges for {len(found)} columns, and there are {n_features}")
    return found

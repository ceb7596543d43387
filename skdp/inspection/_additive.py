"""The display of the curves of an additive model, and of the effect of the noise on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from ..checks.params import check_integer, check_positive, warn
from ..schema import Category, Number
from ..schema.declared import MISSING_CELL as MISSING
from ..schema.declared import grid_of
from ._displays import output_names_of, pyplot

Array = NDArray[np.float64]

# More panels could not be read in one figure.
_MOST_PANELS = 36

# Opacity of the dark and of the light band.
_ALPHA, _MOST_ALPHA = 0.35, 0.12

# Points of categories, and of missing values.
_POINT, _HOLLOW = {"marker": "o", "markersize": 3.5, "linestyle": ""}, {"markerfacecolor": "none"}

# Width and height of a panel, width of an entry of the legend, and height of the legend, in inches.
_PANEL, _ENTRY, _LEGEND = (2.9, 2.3), 2.9, 0.8

# Names of terms in the legend.
_MOST_NAMES = 3


@dataclass(kw_only=True, eq=False, repr=False)
class AdditiveTermsDisplay:
    """Display of the curves of a private additive model within the noise, with one panel for each column.

    Use `from_estimator` to make one. Steps are bins, points are categories, and hollow points are missing values. The
    dark band is an estimate of the interval of the noise, and the light band is for the largest effect of the noise.
    Neither covers the sampling error of the records, or the bias of smoothing, clipping, shrinkage and the penalty. An
    arrow marks a band that leaves a panel.

    Parameters
    ----------
    terms : list of ndarray of shape (n_cells, n_outputs)
        Curves of the terms of one column.
    noise, most_noise : list of ndarray of shape (n_cells, n_outputs)
        Standard deviations of the noise in the curves, and the largest possible ones.
    level : float
        Level of the intervals.
    term_names : list of str
        Titles of the panels.
    cell_names : list of list of str
        Names of the cells.
    bin_edges : list of ndarray or None
        Edges of the bins. None for categories.
    output_names : list of str
        Labels, or the target.
    estimator_name : str, default=None
        Name in the title.
    x_scales : list of dict, default=None
        Arguments of ``Axes.set_xscale``, such as ``{"value": "log"}``, for each panel. If None, all axes are linear.
    records : str, default="independent columns"
        For which records the dark band is, in the legend.
    tables : list of str, default=()
        Names of the terms of several columns, which are not drawn. The legend states them.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        Panels.
    figure_ : matplotlib Figure
        Figure with the panels.

    See Also
    --------
    CoefficientUncertaintyDisplay : The same display for linear models.

    Notes
    -----
    **Privacy.** The display uses released numbers, the public distribution of the noise, and the rows that are passed
    to `from_estimator`. The picture is a function of these rows. Therefore use public rows, or keep the picture
    private.

    The dark band needs the second derivative of the loss at the released model, which is computed from the given rows,
    or from pseudo-records with the released counts and independent columns. If columns are correlated, pseudo-records
    make it too narrow, by up to 5.6 times on Adult (:ref:`additive-bands`). The light band assumes a second derivative
    of 0. Neither covers the noise in the counts, which moves a whole curve. Therefore read shapes, not levels.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skdp import DPAdditiveClassifier
    >>> from skdp.inspection import AdditiveTermsDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> bounds = [5, 5, 40, 100], [30, 40, 190, 2600]
    >>> model = DPAdditiveClassifier(
    ...     delta=1e-5, bounds=bounds, classes=[0, 1], random_state=0
    ... ).fit(X[:, :4], y)
    >>> display = AdditiveTermsDisplay.from_estimator(model, plot=False)
    >>> [len(curve) for curve in display.terms]
    [256, 256, 256, 256]
    """

    terms: list[Array]
    noise: list[Array]
    most_noise: list[Array]
    level: float
    term_names: list[str]
    cell_names: list[list[str]]
    bin_edges: list[Array | None]
    output_names: list[str]
    estimator_name: str | None = None
    x_scales: list[dict[str, Any]] | None = None
    records: str = "independent columns"
    tables: Sequence[str] = ()

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        columns: Any = None,
        level: float = 0.95,
        plot: bool = True,
        **kwargs: Any,
    ) -> Self:
        """Compute the curves of a model and their noise, and draw them.

        Parameters
        ----------
        estimator : estimator
            Fitted `DPAdditiveClassifier` or `DPAdditiveRegressor`.
        X : array-like of shape (n_samples, n_features), default=None
            Some thousand rows that represent the records. They must be public if the picture will be public. If None,
            pseudo-records with independent columns are used.
        columns : array-like of int or str, default=None
            Columns to draw, by position or name. If None, all columns, up to 36, with a warning that names the others.
            Terms of several columns are not drawn.
        level : float, default=0.95
            Level of the intervals, in (0, 1).
        plot : bool, default=True
            Whether to draw the picture.
        **kwargs : dict
            Arguments of `plot`.

        Returns
        -------
        display : AdditiveTermsDisplay
        """
        check_is_fitted(estimator)
        find = getattr(estimator, "_term_noise", None)
        if find is None:
            got = type(estimator).__name__
            raise TypeError(f"estimator must be a DPAdditiveClassifier or a DPAdditiveRegressor, got {got}")
        level = check_positive(level, "level", most=1.0)
        if level == 1:
            raise ValueError("level must be less than 1, because no interval is certain")
        noise, most = find(X)
        names = estimator.term_names_[: estimator._n_columns]
        chosen = range(min(len(names), _MOST_PANELS)) if columns is None else [_position(c, names) for c in columns]
        if columns is None and len(names) > _MOST_PANELS:
            warn(
                f"The display has the first {_MOST_PANELS} of {len(names)} columns. These columns are left out: "
                f"{', '.join(names[_MOST_PANELS:])}. Pass columns to choose the columns of the display",
                UserWarning,
            )
        outputs = np.size(estimator.intercept_)
        prediction = "root of the prediction" if getattr(estimator, "link_", "") == "sqrt" else "prediction"

        def curves(values: list[Array]) -> list[Array]:
            return [values[j].reshape(-1, outputs) for j in chosen]

        edges_and_scales = [_edges(estimator, j) for j in chosen]
        display = cls(
            terms=curves(estimator.terms_),
            noise=curves(noise),
            most_noise=curves(most),
            level=level,
            term_names=[names[j] for j in chosen],
            cell_names=[estimator.cell_names_[j] for j in chosen],
            bin_edges=[edges for edges, _ in edges_and_scales],
            output_names=output_names_of(estimator, outputs, [prediction]),
            estimator_name=type(estimator).__name__,
            x_scales=[scale for _, scale in edges_and_scales],
            records="independent columns" if X is None else "the given rows",
            tables=estimator.term_names_[estimator._n_columns :],
        )
        return display.plot(**kwargs) if plot else display

    @property
    def reach(self) -> float:
        """Half width of the dark band, in standard deviations."""
        return float(stats.norm.isf((1 - self.level) / 2))

    @property
    def most_reach(self) -> float:
        """Half width of the light band, in largest standard deviations."""
        return math.sqrt(2 * math.log(2 / (1 - self.level)))

    def plot(self, axes: Any = None, *, n_cols: int = 4, sharey: bool = True, bound: bool = True) -> Self:
        """Draw a panel for each column.

        Parameters
        ----------
        axes : array-like of matplotlib Axes, default=None
            Axes of the panels. If None, a figure is made.
        n_cols : int, default=4
            Number of panels in a row of this figure.
        sharey : bool, default=True
            Whether the panels of this figure have the same scale.
        bound : bool, default=True
            Whether to draw the light band. The vertical axis follows the curves. Arrows mark bands that it cuts off.

        Returns
        -------
        self : AdditiveTermsDisplay
            The display, with ``axes_`` and ``figure_``.
        """
        given = axes is not None
        if not given:
            axes = _panels(len(self.terms), check_integer(n_cols, "n_cols", least=1), sharey)
        axes = np.ravel(np.asarray(axes, dtype=object))
        if len(axes) < len(self.terms):
            raise ValueError(f"axes must be {len(self.terms)} panels, got {len(axes)}")
        self.axes_, self.figure_ = axes[: len(self.terms)], axes[0].figure
        cells = [self._panel(j, ax, bound) for j, ax in enumerate(self.axes_)]
        # Panels with a common scale have their limits after all of them are drawn.
        cut = [self._mark(j, ax, cells[j], bound) for j, ax in enumerate(self.axes_)]
        of_numbers = self.output_names in (["prediction"], ["root of the prediction"])
        added_to = f"the {self.output_names[0]}" if of_numbers else f"the score of {self.output_names[0]}"
        if len(self.output_names) > 1:
            added_to = "the score"
        self.figure_.supylabel(f"added to {added_to}", y=0.98, va="top", fontsize="small")
        style = {"handles": self._handles(bound, any(cut)), "fontsize": "x-small", "title_fontsize": "x-small"}
        if self.tables:
            names = ", ".join(self.tables[:_MOST_NAMES]) + (", ..." if len(self.tables) > _MOST_NAMES else "")
            style["title"] = f"Not drawn, see terms_: {len(self.tables)} of several columns,\n{names}"
        # A figure that is not ours may have no space outside of its axes.
        if given:
            axes[0].legend(**style)
        else:
            columns = max(1, int(self.figure_.get_figwidth() / _ENTRY))
            self.figure_.legend(**style, loc="outside lower center", ncols=columns)
        return self

    def _handles(self, bound: bool, cut: bool) -> list[Any]:
        """Return the entries of the legend."""
        plt, several = pyplot(), len(self.output_names) > 1
        color = "0.4" if several else "C0"
        handles = [plt.Line2D([], [], color=f"C{k}", label=name) for k, name in enumerate(self.output_names) if several]
        noise = f"{self.level:.0%} interval of the noise alone, estimated\nfor {self.records}; not the curve's error"
        handles.append(plt.Rectangle((0, 0), 1, 1, color=color, alpha=_ALPHA, label=noise))
        if bound:
            most = "largest interval of the noise alone\nfor any records"
            handles.append(plt.Rectangle((0, 0), 1, 1, color=color, alpha=_MOST_ALPHA, label=most))
        points = [(_HOLLOW, MISSING)] * any(names[-1] == MISSING for names in self.cell_names)
        points += [({"marker": "^"}, "band goes on")] * cut
        handles += [plt.Line2D([], [], **_POINT | style, color=color, label=label) for style, label in points]
        return handles

    def _bands(self, j: int, bound: bool) -> list[tuple[Array, float]]:
        """Return half widths and opacities of the bands, the widest first."""
        most = [(self.most_noise[j] * self.most_reach, _MOST_ALPHA)]
        return most * bound + [(self.noise[j] * self.reach, _ALPHA)]

    def _mark(self, j: int, ax: Any, cells: Array, bound: bool) -> bool:
        """Mark where a band leaves a panel the farthest, and return whether one does."""
        curves, half, (low, high), lines = self.terms[j], self._bands(j, bound)[0][0], ax.get_ylim(), len(ax.lines)
        for beyond, at, marker in ((curves + half - high, 0.97, "^"), (low - curves + half, 0.03, "v")):
            cell, k = np.unravel_index(np.argmax(beyond), beyond.shape)
            if beyond[cell, k] > 0:
                style = {"marker": marker, "markersize": 5, "color": f"C{k}", "transform": ax.get_xaxis_transform()}
                ax.plot(cells[cell], at, **style)
        return len(ax.lines) > lines

    def _panel(self, j: int, ax: Any, bound: bool) -> Array:
        """Draw the curves of a column, and return the positions of its cells on the axis."""
        edges, names = self.bin_edges[j], self.cell_names[j]
        # The bin for missing values comes after all others.
        n_bins = len(names) - 1 if names[-1] == MISSING else len(names)
        n_steps = 0 if edges is None else n_bins
        scale = self.x_scales[j] if self.x_scales is not None and edges is not None else {"value": "linear"}
        if scale != {"value": "linear"}:
            ax.set_xscale(**scale)
            # Labels of negative and positive powers would overlap.
            ax.locator_params(axis="x", numticks=5)
        bands = self._bands(j, bound)
        n_outputs, across = self.terms[j].shape[1], np.empty(0)
        for k in range(n_outputs):
            curve, color = self.terms[j][:, k], f"C{k}"
            if edges is not None:
                of_steps = edges[: n_steps + 1]
                ax.stairs(curve[:n_steps], of_steps, color=color, baseline=None, linewidth=1.2)
                for half, alpha in bands:
                    low, high = (curve - half[:, k])[:n_steps], (curve + half[:, k])[:n_steps]
                    ax.stairs(high, of_steps, baseline=low, fill=True, color=color, alpha=alpha, linewidth=0)
                # The point is slightly to the right, on the scale of the axis.
                to_scale = ax.xaxis.get_transform()
                left, right = to_scale.transform(of_steps[[0, -1]])
                (point,) = to_scale.inverted().transform([right + 0.06 * (right - left)])
                across = np.full(len(curve) - n_steps, point)
            else:
                across = np.arange(len(curve)) + 0.6 * (k - (n_outputs - 1) / 2) / n_outputs
            points, halves = curve[n_steps:], [(half[n_steps:, k], alpha) for half, alpha in bands]
            for half, alpha in halves:
                ax.vlines(across, points - half, points + half, color=color, alpha=alpha, linewidth=4)
            for cell, (position, point) in enumerate(zip(across, points, strict=True), n_steps):
                style = _HOLLOW if names[cell] == MISSING else {}
                ax.plot(position, point, **_POINT | style, color=color, clip_on=False)
        if edges is None and len(names) <= 16:
            ax.set_xticks(np.arange(len(names)), names, rotation=90)
        elif edges is None:
            ax.set_xticks([])
            ax.set_xlabel(f"{len(names)} categories", fontsize="x-small")
        ax.axhline(0.0, color="0.6", linestyle=":", linewidth=1, zorder=0)
        # The axis follows the curves, because wide bands would make them flat.
        ax.dataLim.intervaly = min(0.0, self.terms[j].min()), max(0.0, self.terms[j].max())
        ax.margins(y=0.08)
        ax.autoscale_view(scalex=False)
        ax.set_title(self.term_names[j], fontsize="small")
        ax.tick_params(labelsize="x-small")
        return np.append([] if edges is None else (edges[:n_steps] + edges[1 : n_steps + 1]) / 2, across)


def _edges(estimator: Any, j: int) -> tuple[Array | None, dict[str, Any]]:
    """Return the edges of the bins of a column, in its own units, and the scale of its axis."""
    # Categories have no edges, even if they are ordered.
    linear = {"value": "linear"}
    table = estimator._used()
    column = None if table is None else table.schema.get(table.names[j])
    edges: Array | None = estimator.bin_edges_[j]
    if isinstance(column, Category) or edges is None:
        return None, linear
    if not isinstance(column, Number) or column.scale == "linear":
        return edges, linear
    grid = grid_of(column)
    if table.form != "cells":
        edges = np.clip(grid.unwarp(edges), column.low, column.high)
    if grid.scale == "log" and edges[0] > 0:
        return edges, {"value": "log"}
    return edges, {"value": "symlog", "linthresh": grid.unit}


def _position(column: Any, names: list[str]) -> int:
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, str):
        raise ValueError(f"columns names {column!r}, which the model does not have")
    return check_integer(column, "columns", least=0, most=len(names) - 1)


def _panels(count: int, n_cols: int, sharey: bool) -> Any:
    n_cols = min(n_cols, max(count, 1))
    n_rows = max(1, math.ceil(count / n_cols))
    size = _PANEL[0] * n_cols, _PANEL[1] * n_rows + _LEGEND
    axes = pyplot().subplots(n_rows, n_cols, figsize=size, squeeze=False, sharey=sharey, layout="constrained")[1]
    for ax in axes.flat[count:]:
        ax.set_visible(False)
    return axes

"""The display of released counts of a synthetic table, with the counts of the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..checks.params import check_positive
from ._displays import axes_of


@dataclass(kw_only=True, eq=False, repr=False)
class MarginalsDisplay:
    """Display of the counts of some columns: those that were released, with intervals of the noise, and the model's.

    Use `from_estimator` to make one. The distribution of the noise is public. An interval contains the number of
    records in a cell, and says nothing about sampling.

    Parameters
    ----------
    released : ndarray of shape (n_cells,) or None
        Released counts. None if no released table has the columns.
    lower, upper : ndarray of shape (n_cells,) or None
        Ends of the intervals of the released counts.
    model : ndarray of shape (n_cells,)
        Counts of the model, from which synthetic rows are drawn.
    cells : list of str
        Names of the cells.
    columns : list of str
        Names of the columns.
    level : float
        Probability with which each interval contains the number of records.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the picture.
    figure_ : matplotlib Figure
        Figure of the axes.

    Notes
    -----
    **Privacy.** The display uses only released numbers and the public distribution of the noise.

    Examples
    --------
    >>> from skdp import DPTableGenerator, Schema
    >>> from skdp.inspection import MarginalsDisplay
    >>> schema = Schema({"age": (18, 90), "work": ["private", "state"]})
    >>> generator = DPTableGenerator(schema=schema, delta=1e-6, random_state=0).fit(schema.sample(1000))
    >>> display = MarginalsDisplay.from_estimator(generator, "work", plot=False)
    >>> bool((display.lower < display.upper).all())
    True
    """

    released: NDArray[np.float64] | None
    lower: NDArray[np.float64] | None
    upper: NDArray[np.float64] | None
    model: NDArray[np.float64]
    cells: list[str]
    columns: list[str]
    level: float

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        columns: Any,
        *,
        level: float = 0.95,
        plot: bool = True,
        ax: Any = None,
    ) -> Self:
        """Compare the released counts of some columns with those of the model.

        Parameters
        ----------
        estimator : DPTableGenerator
            Fitted generator.
        columns : str or list of str
            Names of columns.
        level : float, default=0.95
            Level of the intervals, in (0, 1).
        plot : bool, default=True
            Whether to draw the picture.
        ax : matplotlib Axes, default=None
            Axes to draw on. If None, a figure is made.

        Returns
        -------
        display : MarginalsDisplay
        """
        level = check_positive(level, "level", most=1.0)
        estimate = estimator.marginal(columns)
        cells = [""]
        for names in estimate.details["cells"]:
            cells = [f"{before} / {name}" if before else name for before in cells for name in names]
        released = lower = upper = None
        if estimate.details["released"]:
            released = np.ravel(estimate.value)
            lower, upper = (np.ravel(end) for end in estimate.confidence_interval(level, of="noise"))
        display = cls(
            released=released,
            lower=lower,
            upper=upper,
            model=np.ravel(estimate.details["model"]),
            cells=cells,
            columns=[columns] if isinstance(columns, str) else list(columns),
            level=level,
        )
        return display.plot(ax=ax) if plot else display

    def plot(self, ax: Any = None) -> Self:
        """Draw a bar for each cell of the model, and an interval for each released count.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. If None, a figure is made.

        Returns
        -------
        self : MarginalsDisplay
            The display, with ``ax_`` and ``figure_``.
        """
        ax = axes_of(ax)
        rows = np.arange(len(self.cells))[::-1]
        ax.barh(rows, self.model, color="0.8", label="model")
        if self.released is not None and self.lower is not None and self.upper is not None:
            middle, half = (self.lower + self.upper) / 2, (self.upper - self.lower) / 2
            ax.errorbar(middle, rows, xerr=half, fmt="none", capsize=3, label=f"released, {self.level:.0%} interval")
            ax.plot(np.maximum(self.released, 0.0), rows, "o", color="C0", markersize=4)
        ax.set_yticks(rows, self.cells)
        ax.set(xlabel="number of records", title=", ".join(self.columns))
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self

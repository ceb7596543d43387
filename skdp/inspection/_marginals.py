"""The display of released counts of a synthetic table, with the counts of the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..release.estimates import Estimate, check_level
from ._displays import axes_of


@dataclass(kw_only=True, eq=False, repr=False)
class MarginalsDisplay:
    """Display of the counts of some columns: those of the model, and those that were released, with their noise.

    Use `from_estimator` to make one. An interval contains the number of records in a cell, and says nothing about
    sampling.

    Parameters
    ----------
    estimate : Estimate
        Result of ``DPTableGenerator.marginal``.
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
    >>> generator = DPTableGenerator(
    ...     schema=schema, delta=1e-6, random_state=0
    ... ).fit(schema.sample(1000))
    >>> MarginalsDisplay.from_estimator(
    ...     generator, "work", plot=False
    ... ).estimate.value.ndim
    1
    """

    estimate: Estimate
    columns: list[str]
    level: float

    @classmethod
    def from_estimator(
        cls, estimator: Any, columns: Any, *, level: float = 0.95, plot: bool = True, ax: Any = None
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
        names = [columns] if isinstance(columns, str) else list(columns)
        display = cls(estimate=estimator.marginal(names), columns=names, level=check_level(level))
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
        ax, details = axes_of(ax), self.estimate.details
        cells = [""]
        for names in details["cells"]:
            cells = [f"{before} / {name}" if before else name for before in cells for name in names]
        rows = np.arange(len(cells))[::-1]
        ax.barh(rows, np.ravel(details["model"]), color="0.8", label="model")
        if details["released"]:
            low, high = map(np.ravel, self.estimate.confidence_interval(self.level, of="noise"))
            label = f"released, {self.level:.0%} interval"
            ax.errorbar((low + high) / 2, rows, xerr=(high - low) / 2, fmt="o", capsize=3, markersize=4, label=label)
        ax.set_yticks(rows, cells)
        ax.set(xlabel="number of records", title=", ".join(self.columns))
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self

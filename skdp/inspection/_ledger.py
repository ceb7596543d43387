"""The display of a budget over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..accounting import Budget, BudgetAccountant, running_totals
from ..checks.params import check_choice
from ._axes import axes_of


class LedgerDisplay:
    """Display of the spent budget after each charge, up to its ceiling.

    Use `from_accountant` to make one.

    Parameters
    ----------
    spent : ndarray of shape (n_charges,)
        Proved epsilon of the charges up to each, at the ceiling's delta.
    summed : ndarray of shape (n_charges,)
        Sum of their epsilons, as under basic composition.
    ceiling : Budget
        Ceiling of the budget.
    names : sequence of str
        Descriptions of the charges.
    times : sequence of datetime
        Times of the charges, in UTC.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the picture.
    figure_ : matplotlib Figure
        Figure of the axes.
    line_, ceiling_line_ : matplotlib Line2D
        Lines of the spent budget, and of the ceiling.

    See Also
    --------
    skdp.accounting.BudgetAccountant.to_frame : The same records as a table.

    Notes
    -----
    **Privacy.** A ledger holds public quantities only.

    Examples
    --------
    >>> from skdp import BudgetAccountant
    >>> from skdp.inspection import LedgerDisplay
    >>> accountant = BudgetAccountant(epsilon=3.0)
    >>> accountant.spend(0.5, label="a mean")
    >>> accountant.spend(1.0, label="a model")
    >>> LedgerDisplay.from_accountant(accountant, plot=False).spent
    array([0.5, 1.5])
    """

    def __init__(
        self,
        *,
        spent: NDArray[np.float64],
        summed: NDArray[np.float64],
        ceiling: Budget,
        names: Sequence[str],
        times: Sequence[datetime],
    ) -> None:
        self.spent = spent
        self.summed = summed
        self.ceiling = ceiling
        self.names = names
        self.times = times

    @classmethod
    def from_accountant(cls, accountant: BudgetAccountant, *, plot: bool = True, ax: Any = None, **kwargs: Any) -> Self:
        """Read the records of an accountant.

        Parameters
        ----------
        accountant : BudgetAccountant
            Accountant, in memory or with a ledger.
        plot : bool, default=True
            Whether to draw the picture.
        ax : matplotlib Axes, default=None
            Axes to draw on. If None, a figure is made.
        **kwargs : dict
            Arguments of `plot`.

        Returns
        -------
        display : LedgerDisplay
        """
        if not isinstance(accountant, BudgetAccountant):
            raise TypeError(f"accountant must be a BudgetAccountant, got {type(accountant).__name__}")
        records = accountant.records
        display = cls(
            spent=running_totals(accountant, records),
            summed=np.cumsum([record.cost.epsilon for record in records]),
            ceiling=Budget(accountant.epsilon, accountant.delta),
            names=[" ".join(filter(None, (record.estimator, record.label))) for record in records],
            times=[record.time for record in records],
        )
        return display.plot(ax=ax, **kwargs) if plot else display

    def plot(self, ax: Any = None, *, x: str = "charge", name: str | None = None, **kwargs: Any) -> Self:
        """Draw the spent budget as steps, and the ceiling.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. If None, a figure is made.
        x : {"charge", "time"}, default="charge"
            Horizontal axis: numbers of charges, or times.
        name : str, default=None
            Name in the legend.
        **kwargs : dict
            Arguments of matplotlib's `step`.

        Returns
        -------
        self : LedgerDisplay
            The display, with ``ax_``, ``figure_``, ``line_`` and ``ceiling_line_``.
        """
        check_choice(x, "x", ("charge", "time"))
        ax = axes_of(ax)
        across: Any = np.arange(1, len(self.spent) + 1) if x == "charge" else self.times
        (self.line_,) = ax.step(across, self.spent, where="post", **{"marker": "o", "label": name or "spent", **kwargs})
        if not np.allclose(self.summed, self.spent):
            ax.step(across, self.summed, where="post", color="0.6", linewidth=1, label="sum of the charges", zorder=0)
        self.ceiling_line_ = None
        if self.ceiling.epsilon < math.inf:
            self.ceiling_line_ = ax.axhline(self.ceiling.epsilon, color="tab:red", linestyle="--", label="ceiling")
        ax.set(xlabel=x, ylabel=f"epsilon (delta = {self.ceiling.delta:g})")
        ax.set_ylim(bottom=0.0)
        if x == "charge":
            ax.xaxis.get_major_locator().set_params(integer=True)
        else:
            ax.tick_params(axis="x", labelrotation=30)
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self

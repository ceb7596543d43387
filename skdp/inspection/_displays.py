"""Displays of a budget over time, and of coefficients with the effect of the noise on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..accounting import Budget, BudgetAccountant, running_totals
from ..checks.params import check_choice, check_integer, check_positive
from ..mechanisms import NoiseSource


def pyplot() -> Any:
    """Return matplotlib.pyplot, or raise an error that names the package."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install matplotlib") from None
    return plt


def axes_of(ax: Any) -> Any:
    """Return `ax`, or new axes if it is None."""
    return pyplot().subplots(layout="constrained")[1] if ax is None else ax


@dataclass(kw_only=True, eq=False, repr=False)
class CoefficientUncertaintyDisplay:
    """Display of the coefficients of a private linear model, with intervals of the noise.

    Use `from_estimator` to make one. The distribution of the noise is public. Therefore the effect of the noise on a
    coefficient can be computed without any budget. The interval covers only the noise, and not the sampling error of
    the records, or the bias of clipping and the penalty.

    Parameters
    ----------
    coef : ndarray of shape (n_outputs, n_features)
        Released coefficients.
    lower, upper : ndarray of shape (n_outputs, n_features)
        Ends of the intervals.
    level : float
        Probability with which each interval contains the coefficient without noise.
    feature_names : list of str
        Names of the columns.
    output_names : list of str
        Labels or targets, one for each row of coefficients.
    estimator_name : str, default=None
        Name in the title.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the picture.
    figure_ : matplotlib Figure
        Figure of the axes.
    bars_ : list of matplotlib ErrorbarContainer
        Bars, one container for each row of coefficients.

    See Also
    --------
    PrivacyUtilityDisplay : Effect of the noise on a score.

    Notes
    -----
    **Privacy.** The display uses only released numbers and the public distribution of the noise.

    With output perturbation, noise is added to the coefficients, and the interval is exact except for the number of
    draws. With the functional mechanism, noise is added to second moments. Coefficients are computed many times from
    the released moments with further noise of the same distribution, and the interval is that of the differences [1]_.
    It is correct to first order in the noise. Therefore it is not correct if the noise is so large that the ridge
    penalty dominates. The automatic penalty grows with the noise, and so does its bias. For correlated columns, the
    bias may be a third of the noise.

    References
    ----------
    .. [1] C. Ferrando, S. Wang and D. Sheldon, "Parametric Bootstrap for Differentially Private Confidence Intervals",
       AISTATS 2022.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from skdp import FunctionalMechLinReg
    >>> from skdp.inspection import CoefficientUncertaintyDisplay
    >>> X, y = make_regression(n_samples=5000, n_features=3, random_state=0)
    >>> model = FunctionalMechLinReg(bounds=(-4, 4), bounds_y=(-300, 300), delta=1e-6, random_state=0).fit(X, y)
    >>> display = CoefficientUncertaintyDisplay.from_estimator(model, random_state=0, plot=False)
    >>> bool((display.lower < display.upper).all())
    True
    """

    coef: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    level: float
    feature_names: list[str]
    output_names: list[str]
    estimator_name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        level: float = 0.95,
        n_draws: int = 500,
        feature_names: Any = None,
        random_state: Any = None,
        plot: bool = True,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw noise of the same distribution, and compute its effect on the coefficients.

        Parameters
        ----------
        estimator : estimator
            Fitted `OutputPertLogReg`, `OutputPertSVC` or `FunctionalMechLinReg`. In other models, the effect of the
            noise depends on private numbers, or on steps that were not released.
        level : float, default=0.95
            Level of the intervals, in (0, 1).
        n_draws : int, default=500
            Number of draws of the noise.
        feature_names : array-like of str, default=None
            Names of the columns. If None, they are ``feature_names_in_``, or numbers.
        random_state : int, RandomState, Generator or None, default=None
            Seed of the draws, which are independent of the fit.
        plot : bool, default=True
            Whether to draw the picture.
        ax : matplotlib Axes, default=None
            Axes to draw on. If None, a figure is made.
        **kwargs : dict
            Arguments of `plot`.

        Returns
        -------
        display : CoefficientUncertaintyDisplay
        """
        check_is_fitted(estimator)
        level = check_positive(level, "level", most=1.0)
        n_draws = check_integer(n_draws, "n_draws", least=20)
        redraw = getattr(estimator, "_coef_with_other_noise", None)
        if redraw is None:
            raise TypeError(
                "estimator must be an OutputPertLogReg, OutputPertSVC or FunctionalMechLinReg, because the "
                "effect of the noise on the coefficients of other models is not known, got "
                f"{type(estimator).__name__}"
            )
        source = NoiseSource(random_state)
        coef = np.atleast_2d(estimator.coef_)
        moves = np.array([np.atleast_2d(redraw(source.stream(f"draw {k}"))) - coef for k in range(n_draws)])
        tail = (1 - level) / 2
        low, high = np.quantile(moves, [tail, 1 - tail], axis=0)
        if feature_names is None:
            known = estimator._names()
            feature_names = [f"x{j}" for j in range(coef.shape[1])] if known is None else known
        feature_names = [str(name) for name in feature_names]
        if len(feature_names) != coef.shape[1]:
            raise ValueError(f"feature_names must be {coef.shape[1]} names, got {len(feature_names)}")
        classes = getattr(estimator, "classes_", None)
        if classes is None:
            output_names = [f"target {k}" for k in range(len(coef))]
        else:
            output_names = [str(label) for label in (classes if len(coef) == len(classes) else classes[-1:])]
        display = cls(
            coef=coef,
            lower=coef - high,
            upper=coef - low,
            level=level,
            feature_names=feature_names,
            output_names=output_names,
            estimator_name=type(estimator).__name__,
        )
        return display.plot(ax=ax, **kwargs) if plot else display

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw a point and an interval for each coefficient.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. If None, a figure is made.
        **kwargs : dict
            Arguments of matplotlib's `errorbar`.

        Returns
        -------
        self : CoefficientUncertaintyDisplay
            The display, with ``ax_``, ``figure_`` and ``bars_``.
        """
        ax = axes_of(ax)
        rows = np.arange(self.coef.shape[1])[::-1]
        several = len(self.coef) > 1
        self.bars_ = []
        for k, (name, coef) in enumerate(zip(self.output_names, self.coef, strict=True)):
            offset = 0.6 * (k - (len(self.coef) - 1) / 2) / len(self.coef)
            widths = np.abs(np.array([self.lower[k], self.upper[k]]) - coef)
            style = {"fmt": "o", "capsize": 3, "markersize": 4, "label": name if several else None, **kwargs}
            self.bars_.append(ax.errorbar(coef, rows - offset, xerr=widths, **style))
        ax.axvline(0.0, color="0.6", linestyle=":", linewidth=1, zorder=0)
        ax.set_yticks(rows, self.feature_names)
        ax.set(xlabel=f"coefficient, and {self.level:.0%} interval of the noise", title=self.estimator_name or "")
        if several:
            ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self


@dataclass(kw_only=True, eq=False, repr=False)
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

    spent: NDArray[np.float64]
    summed: NDArray[np.float64]
    ceiling: Budget
    names: Sequence[str]
    times: Sequence[datetime]

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

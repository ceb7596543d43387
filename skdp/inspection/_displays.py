"""Displays of coefficients with the effect of the noise, and of released counts with those of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..checks.params import check_integer, check_positive
from ..mechanisms import NoiseSource
from ..release.estimates import Estimate, check_level


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


def output_names_of(estimator: Any, n_outputs: int, otherwise: list[str]) -> list[str]:
    """Return the labels of the outputs of a classifier, which may have one output for the second of two labels."""
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        return otherwise
    return [str(label) for label in (classes if n_outputs == len(classes) else classes[-1:])]


@dataclass(kw_only=True, eq=False, repr=False)
class CoefficientUncertaintyDisplay:
    """Display of the coefficients of a private linear model, with intervals of the noise.

    Use `from_estimator` to make one. The distribution of the noise is public. Therefore its effect on a coefficient can
    be computed without any budget. The interval covers neither the sampling error of the records, nor the bias of
    clipping and the penalty.

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

    Notes
    -----
    **Privacy.** The display uses only released numbers and the public distribution of the noise.

    With output perturbation, noise is added to the coefficients, and the interval is exact except for the number of
    draws. With the functional mechanism, coefficients are computed many times from the released moments with further
    noise of the same distribution, and the interval is that of the differences [1]_. It is correct to first order in
    the noise, and not if the ridge penalty dominates. For correlated columns, the bias of the automatic penalty may be
    a third of the noise.

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
    >>> model = FunctionalMechLinReg(
    ...     bounds=(-4, 4), bounds_y=(-300, 300), delta=1e-6, random_state=0
    ... ).fit(X, y)
    >>> display = CoefficientUncertaintyDisplay.from_estimator(
    ...     model, random_state=0, plot=False
    ... )
    >>> (display.upper - display.lower).round()
    array([[14., 12., 15.]])
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
            Fitted `OutputPertLogReg` or `FunctionalMechLinReg`.
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
                "estimator must be an OutputPertLogReg or FunctionalMechLinReg, because the effect of the noise on the "
                f"coefficients of other models is not known, got {type(estimator).__name__}"
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
        display = cls(
            coef=coef,
            lower=coef - high,
            upper=coef - low,
            level=level,
            feature_names=feature_names,
            output_names=output_names_of(estimator, len(coef), [f"target {k}" for k in range(len(coef))]),
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
class MarginalsDisplay:
    """Display of the counts of some columns: those of the model, and those that were released, with their noise.

    .. versionadded:: 0.2

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

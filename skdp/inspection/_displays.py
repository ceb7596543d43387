"""Displays of scores against epsilon, of a budget over time, and of coefficients with the effect of the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv, cross_val_score
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from ..accounting import Budget, BudgetAccountant, check_epsilon, running_totals
from ..checks.params import check_choice, check_integer, check_positive
from ..checks.silence import parts_of
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

    See Also
    --------
    PrivacyUtilityDisplay : Effect of the noise on a score.

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
            Fitted `OutputPertLogReg`, `OutputPertSVC` or `FunctionalMechLinReg`.
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


@dataclass(kw_only=True, eq=False, repr=False)
class PrivacyUtilityDisplay:
    """Display of a score of an estimator at several epsilons: its mean, and its spread over noise and splits.

    Use `from_estimator` to make one.

    Parameters
    ----------
    epsilons : ndarray of shape (n_epsilons,)
        Values of epsilon, increasing.
    scores : ndarray of shape (n_epsilons, n_fits)
        Score of each fit.
    baseline : ndarray of shape (n_splits,) or None
        Scores without privacy.
    score_name : str, default=None
        Name of the axis.
    estimator_name : str, default=None
        Name in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the picture.
    figure_ : matplotlib Figure
        Figure of the axes.
    line_, band_ : matplotlib artists
        Mean scores, and the band of the middle part of the scores.
    baseline_line_ : matplotlib Line2D or None
        Mean score without privacy.

    See Also
    --------
    skdp.model_selection.private_score : A private score that is charged.

    Notes
    -----
    **Privacy.** The display is not private, because all scores are exact. Use it for public or synthetic records. For
    private records, use :class:`~skdp.model_selection.DPGridSearchCV` and
    :func:`~skdp.model_selection.private_score`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skdp import DPNaiveBayes
    >>> from skdp.inspection import PrivacyUtilityDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPNaiveBayes(bounds=(0, 5000), classes=[0, 1])
    >>> display = PrivacyUtilityDisplay.from_estimator(
    ...     model, X, y, epsilons=[0.1, 10.0], n_repeats=2, data_are_public=True, random_state=0, plot=False
    ... )
    >>> display.scores.shape
    (2, 10)
    """

    epsilons: NDArray[np.float64]
    scores: NDArray[np.float64]
    baseline: NDArray[np.float64] | None = None
    score_name: str | None = None
    estimator_name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        epsilons: ArrayLike = (0.1, 0.3, 1.0, 3.0, 10.0),
        scoring: Any = None,
        cv: Any = None,
        n_repeats: int = 3,
        baseline: Any = None,
        parameter: str = "epsilon",
        data_are_public: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        plot: bool = True,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Fit and score at each epsilon, on several splits and with several draws of noise.

        Parameters
        ----------
        estimator : estimator
            Unfitted private estimator without an accountant, or a pipeline of such estimators, with `parameter`.
        X : array-like of shape (n_samples, n_features)
            Records that are not private.
        y : array-like of shape (n_samples,), default=None
            Labels or targets.
        epsilons : array-like, default=(0.1, 0.3, 1.0, 3.0, 10.0)
            Values of epsilon. Must be strictly positive and finite.
        scoring : str or callable, default=None
            Score as in scikit-learn. If None, the method `score` of the estimator is used.
        cv : int or splitter, default=None
            Splits as in scikit-learn. If None, there are five folds.
        n_repeats : int, default=3
            Number of fits at each epsilon on each split.
        baseline : estimator, default=None
            Estimator without privacy, for a line at its score. If None, it is the same estimator at ``epsilon=inf``. If
            ``False``, there is no line.
        parameter : str, default="epsilon"
            Name of the parameter that is set, for instance ``"model__epsilon"``.
        data_are_public : bool, default=False
            Must be True, as a confirmation that no record is private.
        n_jobs : int, default=None
            Number of processes, as in joblib.
        random_state : int or None, default=None
            Seed of the noise, for pictures that can be repeated.
        plot : bool, default=True
            Whether to draw the picture.
        ax : matplotlib Axes, default=None
            Axes to draw on. If None, a figure is made.
        **kwargs : dict
            Arguments of `plot`.

        Returns
        -------
        display : PrivacyUtilityDisplay
        """
        if data_are_public is not True:
            raise ValueError(
                "data_are_public must be True, because exact scores of private records would be releases. Use "
                "public or synthetic records here, and DPGridSearchCV and private_score for private ones"
            )
        values = np.unique(np.array([check_epsilon(epsilon) for epsilon in np.ravel(epsilons).tolist()]))
        if values.size == 0 or values[-1] == math.inf:
            raise ValueError(
                "epsilons must hold one or more finite numbers. Use baseline for the score without privacy"
            )
        n_repeats = check_integer(n_repeats, "n_repeats", least=1)
        for step in parts_of(estimator):
            if getattr(step, "accountant", None) is not None:
                raise ValueError("the accountant of estimator must be None, because the records are public")
        if parameter not in estimator.get_params():
            others = ", ".join(f"parameter={name!r}" for name in estimator.get_params() if name.endswith("__epsilon"))
            hint = f": set {others}" if others else "; see parameter"
            raise ValueError(f"{type(estimator).__name__} has no parameter {parameter!r}{hint}")
        splits = list(check_cv(cv, y, classifier=is_classifier(estimator)).split(X, y))
        fits = [
            (clone(estimator).set_params(**{parameter: value}), split)
            for value in values.tolist()
            for split in splits
            for _ in range(n_repeats)
        ]
        if baseline is not False:
            reference = clone(estimator).set_params(**{parameter: math.inf}) if baseline is None else baseline
            fits += [(clone(reference), split) for split in splits]
        if random_state is not None:
            first = check_integer(random_state, "random_state", least=0)
            for k, (model, _) in enumerate(fits):
                names = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
                model.set_params(**dict.fromkeys(names, first + k))
        scores = np.ravel(
            Parallel(n_jobs=n_jobs)(
                delayed(cross_val_score)(model, X, y, cv=[split], scoring=scoring, error_score="raise")
                for model, split in fits
            )
        )
        n_private = len(values) * len(splits) * n_repeats
        display = cls(
            epsilons=values,
            scores=np.reshape(scores[:n_private], (len(values), -1)),
            baseline=scores[n_private:] if len(scores) > n_private else None,
            score_name=scoring if isinstance(scoring, str) else None,
            estimator_name=type(estimator).__name__,
        )
        return display.plot(ax=ax, **kwargs) if plot else display

    def plot(self, ax: Any = None, *, name: str | None = None, level: float = 0.8, **kwargs: Any) -> Self:
        """Draw the means with a band, over epsilon on a logarithmic axis.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. If None, a figure is made.
        name : str, default=None
            Name in the legend.
        level : float, default=0.8
            Fraction of the scores in the band, in (0, 1].
        **kwargs : dict
            Arguments of matplotlib's `plot`.

        Returns
        -------
        self : PrivacyUtilityDisplay
            The display, with ``ax_``, ``figure_``, ``line_``, ``band_`` and ``baseline_line_``.
        """
        ax = axes_of(ax)
        label = name or self.estimator_name
        (self.line_,) = ax.plot(self.epsilons, self.scores.mean(axis=1), **{"marker": "o", "label": label, **kwargs})
        low, high = np.quantile(self.scores, [(1 - level) / 2, (1 + level) / 2], axis=1)
        colour = self.line_.get_color()
        self.band_ = ax.fill_between(self.epsilons, low, high, color=colour, alpha=0.15, linewidth=0)
        self.baseline_line_ = None
        if self.baseline is not None:
            style = {"color": colour, "linestyle": ":", "label": f"{label}, no privacy"}
            self.baseline_line_ = ax.axhline(self.baseline.mean(), **style)
        ax.set(xscale="log", xlabel="epsilon", ylabel=self.score_name or "score")
        ax.set_xticks(self.epsilons, [f"{epsilon:g}" for epsilon in self.epsilons])
        ax.minorticks_off()
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self

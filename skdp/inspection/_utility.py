"""The display of a score against epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv, cross_val_score
from sklearn.utils.parallel import Parallel, delayed

from ..accounting import check_epsilon
from ..checks.params import check_integer
from ..checks.silence import parts_of
from ._displays import axes_of


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
    **Privacy.** The display is not private. All scores are exact, and compare private models on the same records. Use
    it for public or synthetic records. For private records, choose by :class:`~skdp.model_selection.DPGridSearchCV`,
    and evaluate by :func:`~skdp.model_selection.private_score`.

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
        scores = Parallel(n_jobs=n_jobs)(delayed(_score)(model, X, y, split, scoring) for model, split in fits)
        n_private = len(values) * len(splits) * n_repeats
        display = cls(
            epsilons=values,
            scores=np.reshape(scores[:n_private], (len(values), -1)),
            baseline=np.array(scores[n_private:]) if len(scores) > n_private else None,
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


def _score(model: Any, X: Any, y: Any, split: Any, scoring: Any) -> float:
    return float(cross_val_score(model, X, y, cv=[split], scoring=scoring, error_score="raise")[0])

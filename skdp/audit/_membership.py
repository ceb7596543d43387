"""Membership inference: how well an attacker distinguishes the training records from other records, as a curve."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import auc, roc_curve
from sklearn.utils.parallel import Parallel, delayed

from ..checks.params import check_integer
from ._fits import as_data_set, check_estimator, claimed, coins, number_of_records, quiet, runner, seeds, take
from ._numbers import check_can_score, membership_scores, ranks


@dataclass(kw_only=True, eq=False, repr=False)
class MembershipInferenceDisplay:
    """Display of membership inference by a threshold on the fit of a model to a record.

    Use `from_estimator` to make one. The attack is simple, so that its failure proves nothing. The claim of privacy is
    a line. No attack can be above it, on average over fits. The curve is an estimate and may be above the line by
    chance, in particular because the scores of one fit depend on each other. For proofs, use `audit_epsilon` and
    `audit_one_run`.

    Parameters
    ----------
    fpr, tpr : ndarray of shape (n_thresholds,)
        Rates of false and true positives. A positive is a record that the attack takes for a training record.
    roc_auc : float
        Area under the curve. Guessing has 1/2.
    epsilon, delta : float or None
        Claim of the estimator.
    estimator_name : str, default=None
        Name in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the picture.
    figure_ : matplotlib Figure
        Figure of the axes.
    line_, bound_ : matplotlib Line2D
        Curve of the attack, and line of the claim, or None if there is no claim.

    See Also
    --------
    audit_one_run : A lower bound on epsilon from such scores.

    References
    ----------
    .. [1] S. Yeom, I. Giacomelli, M. Fredrikson and S. Jha, "Privacy Risk in Machine Learning", CSF 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skdp.audit import MembershipInferenceDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> display = MembershipInferenceDisplay.from_estimator(DecisionTreeClassifier(), X, y, random_state=0, plot=False)
    >>> display.roc_auc > 0.5
    True
    """

    fpr: NDArray[np.float64]
    tpr: NDArray[np.float64]
    roc_auc: float
    epsilon: float | None = None
    delta: float | None = None
    estimator_name: str | None = None

    @property
    def advantage(self) -> float:
        """Largest difference of the two rates. The claim allows ``(e^epsilon - 1 + 2 delta) / (e^epsilon + 1)``."""
        return float((self.tpr - self.fpr).max())

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        score: Callable[..., ArrayLike] | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        n_repeats: int = 10,
        n_jobs: int | None = None,
        random_state: Any = None,
        plot: bool = True,
        ax: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Fit to random halves of the records, and distinguish training records from others.

        Parameters
        ----------
        estimator : estimator
            Unfitted estimator, of this library or any other, without an accountant and without a seed of its own,
            because the fits need independent noise.
        X : array-like of shape (n_samples, n_features)
            Records that are not private, because the result is not private.
        y : array-like of shape (n_samples,), default=None
            Labels or targets.
        score : callable, default=None
            Function that maps a fitted model, records and their labels to a number for each record. If None, as in
            `audit_one_run`.
        epsilon, delta : float, default=None
            Claim of privacy. If None, as in `audit_epsilon`.
        n_repeats : int, default=10
            Number of fits, each to another half.
        n_jobs : int, default=None
            Number of processes, as in joblib.
        random_state : int, RandomState, Generator or None, default=None
            Seed of the halves, and of the fits.
        plot : bool, default=True
            Whether to draw the picture.
        ax : matplotlib Axes, default=None
            Axes to draw on. If None, a figure is made.
        name : str, default=None
            Name in the legend. If None, it is the class of the estimator.
        **kwargs : dict
            Arguments of matplotlib's `plot`.

        Returns
        -------
        display : MembershipInferenceDisplay
        """
        n_repeats = check_integer(n_repeats, "n_repeats", least=1)
        epsilon, delta = claimed(estimator, epsilon, delta)
        check_estimator(estimator, n_jobs)
        if score is None:
            check_can_score(estimator, y)
        data = as_data_set((X,) if y is None else (X, y))
        n_rows = number_of_records(data)
        run = runner(estimator)
        read = membership_scores if score is None else score
        inside = [coins(random_state, f"half {k}", n_rows) for k in range(n_repeats)]
        with quiet():
            scores = Parallel(n_jobs=n_jobs)(
                delayed(_scored)(run, read, data, members, seeds_of_run)
                for members, seeds_of_run in zip(inside, seeds(estimator, random_state, "fits", n_repeats), strict=True)
            )
        fpr, tpr, _ = roc_curve(np.concatenate(inside), ranks(np.concatenate(scores)))
        display = cls(
            fpr=fpr,
            tpr=tpr,
            roc_auc=float(auc(fpr, tpr)),
            epsilon=epsilon,
            delta=delta,
            estimator_name=name or type(estimator).__name__,
        )
        return display.plot(ax=ax, **kwargs) if plot else display

    def allowed(self, fpr: ArrayLike) -> NDArray[np.float64]:
        """Return the largest rate of true positives that any attack can have under the claim.

        Parameters
        ----------
        fpr : array-like
            Rates of false positives.

        Returns
        -------
        tpr : ndarray
            The smaller of :math:`e^\\varepsilon f+\\delta` and :math:`1-e^{-\\varepsilon}(1-\\delta-f)`, or 1 if there
            is none.
        """
        fpr = np.asarray(fpr, dtype=np.float64)
        if self.epsilon is None or self.epsilon == math.inf:
            return np.ones_like(fpr)
        ratio, delta = math.exp(min(self.epsilon, 700.0)), self.delta or 0.0
        return np.clip(np.minimum(ratio * fpr + delta, 1 - (1 - delta - fpr) / ratio), 0.0, 1.0)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the curve of the attack, and the line of the claim.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. If None, a figure is made.
        name : str, default=None
            Name in the legend.
        **kwargs : dict
            Arguments of matplotlib's `plot`.

        Returns
        -------
        self : MembershipInferenceDisplay
            The display, with ``ax_``, ``figure_``, ``line_`` and ``bound_``.
        """
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots()
        name = name or self.estimator_name or "attack"
        (self.line_,) = ax.plot(self.fpr, self.tpr, **{"label": f"{name} (AUC {self.roc_auc:.3f})", **kwargs})
        self.bound_ = None
        if self.epsilon is not None and self.epsilon < math.inf:
            grid = np.unique(np.concatenate([np.geomspace(1e-4, 1, 200), np.linspace(0, 1, 201)]))
            label = f"most that epsilon={self.epsilon:g} allows"
            style = {"color": self.line_.get_color(), "linestyle": "--", "linewidth": 1, "label": label}
            (self.bound_,) = ax.plot(grid, self.allowed(grid), **style)
        ax.set(
            xlabel="others taken for members",
            ylabel="members found",
            xlim=(-0.01, 1.01),
            ylim=(-0.01, 1.01),
            aspect="equal",
        )
        ax.plot([0, 1], [0, 1], color="0.6", linestyle=":", linewidth=1, zorder=0)
        ax.legend(loc="lower right")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _scored(run: Any, read: Any, data: tuple[Any, ...], members: NDArray, seeds: Any) -> NDArray[np.float64]:
    with quiet():
        scores = np.asarray(read(run(take(data, members), seeds), *data), dtype=np.float64)
    if scores.shape != members.shape:
        raise ValueError(f"score must give one number for each record, got shape {scores.shape}")
    return scores

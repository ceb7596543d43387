"""Membership inference: how well an attacker distinguishes the training records from others, by many fits or by one.

The audit by one fit includes many records, each by a fair coin, and guesses the coins.
"""

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
from ..mechanisms import NoiseSource
from ._bounds import one_run_epsilon
from ._fits import (
    Verdict,
    as_data_set,
    check_can_be_fitted,
    check_error,
    check_estimator,
    claimed,
    coins,
    number_of_records,
    quiet,
    runner,
    seeds,
    take,
)
from ._numbers import check_can_score, membership_scores, ranks


@dataclass(kw_only=True, eq=False, repr=False)
class MembershipInferenceDisplay:
    """Display of membership inference by a threshold on the fit of a model to a record.

    Use `from_estimator` to make one. The attack is simple, so that its failure proves nothing. The line of the claim
    holds on average over fits, and the curve may be above it by chance. For proofs, use `audit_epsilon` and
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
            Unfitted estimator, of this library or any other, without an accountant and without a seed of its own.
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

        ax = plt.subplots()[1] if ax is None else ax
        name = name or self.estimator_name or "attack"
        (self.line_,) = ax.plot(self.fpr, self.tpr, **{"label": f"{name} (AUC {self.roc_auc:.3f})", **kwargs})
        self.bound_ = None
        if self.epsilon is not None and self.epsilon < math.inf:
            grid = np.unique(np.concatenate([np.geomspace(1e-4, 1, 200), np.linspace(0, 1, 201)]))
            label = f"most that epsilon={self.epsilon:g} allows"
            style = {"color": self.line_.get_color(), "linestyle": "--", "linewidth": 1, "label": label}
            (self.bound_,) = ax.plot(grid, self.allowed(grid), **style)
        limits = (-0.01, 1.01)
        ax.set(xlabel="others taken for members", ylabel="members found", xlim=limits, ylim=limits, aspect="equal")
        ax.plot([0, 1], [0, 1], color="0.6", linestyle=":", linewidth=1, zorder=0)
        ax.legend(loc="lower right")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _scored(run: Any, read: Any, data: tuple[Any, ...], members: NDArray, seeds: Any) -> NDArray[np.float64]:
    with quiet():
        return _read(read, run(take(data, members), seeds), data)


def _read(read: Any, model: Any, data: tuple[Any, ...]) -> NDArray[np.float64]:
    """Return the score of each record."""
    scores = np.asarray(read(model, *data), dtype=np.float64)
    if scores.shape != (number_of_records(data),):
        raise ValueError(f"score must give one number for each record, got shape {scores.shape}")
    return scores


# Fractions of the canaries that are guessed, those with the most extreme scores.
_FRACTIONS = (1.0, 0.5, 0.25, 0.125)


@dataclass(frozen=True)
class OneRunAudit(Verdict):
    """The result of an audit by one fit.

    Parameters
    ----------
    epsilon : float
        The fit is not (epsilon', delta)-DP for any smaller epsilon', except with the probability of a false alarm.
    delta : float
        Claimed delta.
    false_alarm : float
        Probability that the bound is above the true epsilon.
    claim : float or None
        Claimed epsilon of the estimator.
    n_canaries, n_guesses, n_correct : int
        Number of records with a coin, number of guesses for the bound, and number of correct guesses.
    estimator : estimator
        Fitted model.
    """

    epsilon: float
    delta: float
    false_alarm: float
    claim: float | None
    n_canaries: int
    n_guesses: int
    n_correct: int
    estimator: Any

    def __repr__(self) -> str:
        return (
            f"epsilon >= {self.epsilon:.3g} at delta={self.delta:g} (false alarm {self.false_alarm:g})"
            f"{self._of_claim()}; "
            f"{self.n_correct} of {self.n_guesses} guesses right, {self.n_canaries} canaries"
        )


def audit_one_run(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    canaries: Any = None,
    score: Callable[..., ArrayLike] | None = None,
    claim: float | None = None,
    delta: float | None = None,
    error: float = 0.05,
    random_state: Any = None,
) -> OneRunAudit:
    """Fit once, to data from which each canary was left out with probability 1/2, and guess which ones were included.

    Parameters
    ----------
    estimator : estimator
        Unfitted estimator, of this library or any other. It is fitted once. If it has an accountant, that is charged.
    X : array-like of shape (n_samples, n_features)
        Records, including the canaries.
    y : array-like of shape (n_samples,), default=None
        Labels or targets.
    canaries : int or array-like of int, default=None
        Number of canaries (the first records), or their positions. If None, half of all records. Unusual records give
        larger bounds: rare ones, mislabelled ones, ones at the bounds.
    score : callable, default=None
        Function that maps a fitted model, records and their labels to a number for each record, larger if it is more
        likely to be included. NaN is the least likely. If None, it is the first of these that the estimator has: the
        log-probability of the label, minus the squared error, ``score_samples``, or minus the distance to the nearest
        cluster centre.
    claim : float, default=None
        Claimed epsilon. If None, it is ``estimator.epsilon`` of an estimator of skdp or diffprivlib.
    delta : float, default=None
        Claimed delta. If None, it is ``estimator.delta`` of the same estimators, or 0.
    error : float, default=0.05
        Probability of a false alarm, at most 0.5.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the coins. The noise of the fit comes from the estimator.

    Returns
    -------
    audit : OneRunAudit
        Result, with ``epsilon``, ``claim`` and ``violated``.

    See Also
    --------
    audit_epsilon : Many fits and one record, with bounds closer to the true epsilon.

    Notes
    -----
    All canaries, and the half, quarter and eighth of them with the most extreme scores, are guessed, each with a fourth
    of the error. The largest bound counts (:doc:`/user_guide/auditing`, theorem 2). The claim must be about adding or
    removing a record. The result for private records is not private, although the fit is.

    References
    ----------
    .. [1] T. Steinke, M. Nasr and M. Jagielski, "Privacy Auditing with One (1) Training Run", NeurIPS 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skdp.audit import audit_one_run
    >>> X, _ = load_breast_cancer(return_X_y=True)
    >>> y = np.arange(len(X)) % 2  # labels that can only be known by heart
    >>> audit_one_run(DecisionTreeClassifier(), X, y, random_state=0).epsilon > 0.5
    True
    """
    error = check_error(error)
    claim, delta = claimed(estimator, claim, delta)
    # All errors are raised before the fit, which may be charged.
    check_can_be_fitted(estimator)
    if score is None:
        check_can_score(estimator, y)
    data = as_data_set((X,) if y is None else (X, y))
    n_rows = number_of_records(data)
    chosen = _positions(canaries, n_rows)
    heads = coins(random_state, "canaries", len(chosen))
    included = np.ones(n_rows, dtype=bool)
    included[chosen[~heads]] = False
    model = runner(estimator)(take(data, included), {})
    scores = _read(membership_scores if score is None else score, model, take(data, chosen))
    # The order is random, because equal scores must not be guessed by position.
    shuffled = np.argsort(NoiseSource(random_state).stream("ties").words(len(chosen)))
    order = shuffled[np.argsort(ranks(scores)[shuffled], kind="stable")]
    audits = []
    for n_guesses in sorted({2 * max(1, int(fraction * len(chosen)) // 2) for fraction in _FRACTIONS}):
        half = n_guesses // 2
        right = int(np.count_nonzero(heads[order[-half:]]) + np.count_nonzero(~heads[order[:half]]))
        bound = one_run_epsilon(len(chosen), n_guesses, right, delta=delta, error=error / len(_FRACTIONS))
        audits.append((bound, n_guesses, right))
    bound, n_guesses, right = max(audits)
    return OneRunAudit(bound, delta, error, claim, len(chosen), n_guesses, right, model)


def _positions(canaries: Any, n_rows: int) -> NDArray[np.intp]:
    if canaries is None:
        canaries = n_rows // 2
    if np.ndim(canaries) == 0:
        number = check_integer(canaries, "canaries", least=2)
        if number > n_rows:
            raise ValueError("canaries must be at most the number of records")
        return np.arange(number)
    positions = np.asarray(canaries)
    if positions.ndim != 1 or positions.dtype.kind not in "iu" or len(positions) < 2:
        raise ValueError("canaries must be a number, or positions of two records or more")
    if len(np.unique(positions)) < len(positions) or positions.min() < 0 or positions.max() >= n_rows:
        raise ValueError("canaries must be different positions among the records")
    return positions.astype(np.intp)

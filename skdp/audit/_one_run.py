"""The audit by one fit, which includes many records, each by a fair coin, and guesses the coins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..checks.params import check_integer
from ..mechanisms import NoiseSource
from ._bounds import one_run_epsilon
from ._fits import (
    Verdict,
    as_data_set,
    check_can_be_fitted,
    check_error,
    claimed,
    coins,
    number_of_records,
    runner,
    take,
)
from ._numbers import check_can_score, membership_scores, ranks

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
    >>> audit = audit_one_run(DecisionTreeClassifier(), X, y, random_state=0)
    >>> audit.epsilon > 0.5
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
    read = membership_scores if score is None else score
    scores = np.asarray(read(model, *take(data, chosen)), dtype=np.float64)
    if scores.shape != chosen.shape:
        raise ValueError(f"score must give one number for each record, got shape {scores.shape}")
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

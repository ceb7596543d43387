"""The audit by many runs: how often an event happens on each of two neighbouring data sets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.utils.parallel import Parallel, delayed

from .._params import check_integer, check_positive
from .._silence import silence
from ..accounting import check_delta
from ._bounds import epsilons, mus
from ._data import as_data_set, check_fresh_noise, fitted_numbers, runner, seeds

# Of the runs, these choose the event; the others count.
_PILOT = 0.35
_QUANTILES = np.linspace(0.02, 0.98, 49)
# Statistics with more numbers than these are looked at along one direction only.
_MOST_COORDINATES = 64
_BATCHES = 32


@dataclass(frozen=True)
class EpsilonAudit:
    """What an audit found.

    Parameters
    ----------
    epsilon : float
        The fit is not (epsilon', delta)-DP for any epsilon' below, but for a false alarm.
    delta : float
        What was granted.
    mu : float
        The same bound for Gaussian DP.
    false_alarm : float
        Probability that a bound is more than the truth; each of the two by itself.
    claim : float or None
        The epsilon that the estimator states.
    hits : tuple of int
        How often the event that shows `epsilon` happened on the two data sets.
    n_runs : int
        Number of counted runs on each; those that chose the event are not among them.
    """

    epsilon: float
    delta: float
    mu: float
    false_alarm: float
    claim: float | None
    hits: tuple[int, int]
    n_runs: int

    @property
    def violated(self) -> bool:
        """Whether the bound is more than the claim."""
        return self.claim is not None and self.epsilon > self.claim

    def __repr__(self) -> str:
        claim = "" if self.claim is None else f", claim {self.claim:g}: {'VIOLATED' if self.violated else 'stands'}"
        return (
            f"epsilon >= {self.epsilon:.3g} at delta={self.delta:g}, mu >= {self.mu:.3g} "
            f"(false alarm {self.false_alarm:g}){claim}; event in {self.hits[0]} and {self.hits[1]} "
            f"of {self.n_runs} runs each"
        )


def audit_epsilon(
    estimator: Any,
    D: Any,
    D_prime: Any,
    *,
    statistic: Callable[[Any], ArrayLike] | None = None,
    n_runs: int = 1000,
    claim: float | None = None,
    delta: float | None = None,
    error: float = 1e-3,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> EpsilonAudit:
    """Fit many times to each of two neighbouring data sets, and bound from below what the fit gives away.

    Parameters
    ----------
    estimator : estimator or callable
        Unfitted, of this library or any other; or a function of the data set that returns what is released.
    D, D_prime : tuple of array-like, or array-like
        ``(X, y)`` or X: two data sets, one of which has one record more. (For estimators that claim something about
        replaced records, one record may differ.) Made up for the audit, or public.
    statistic : callable, default=None
        Maps the fitted model to a number or a vector. None takes all numbers among the fitted attributes.
    n_runs : int, default=1000
        Number of fits to each data set, 40 or more. About a third of them choose the event.
    claim : float, default=None
        The epsilon that is claimed; None reads ``estimator.epsilon``, if there is one.
    delta : float, default=None
        The delta that is claimed; None reads ``estimator.delta``, or takes 0.
    error : float, default=1e-3
        Probability of a false alarm, in (0, 1).
    n_jobs : int, default=None
        Processes, as in joblib.
    random_state : int, RandomState, Generator or None, default=None
        For an audit that can be repeated: seeds of the runs.

    Returns
    -------
    audit : EpsilonAudit
        With ``epsilon``, ``mu``, ``claim`` and ``violated``.

    Raises
    ------
    ValueError
        If runs would share their noise, or if there are too few.

    See Also
    --------
    audit_one_run : One fit, with many records at a time.
    brute_force_sensitivity : The part before the noise.

    Notes
    -----
    The pilot runs choose a coordinate of the statistic, or a linear discriminant of all, and a threshold: the event
    with the largest bound. The other runs count how often it happens. A claim that is violated is wrong, but for a
    false alarm; a claim that stands may be wrong all the same: choose data sets and a statistic that make one record
    count as much as it can. What is found is a function of the data sets, without noise: an audit of private records
    is not a release.

    References
    ----------
    .. [1] M. Jagielski, J. Ullman and A. Oprea, "Auditing Differentially Private Machine Learning: How Private is
       Private SGD?", NeurIPS 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import FunctionalMechLinReg
    >>> from skdp.audit import audit_epsilon
    >>> model = FunctionalMechLinReg(epsilon=1.0, bounds=(-1, 1), bounds_y=(-1, 1), fit_intercept=False)
    >>> X, y = np.zeros((0, 1)), np.zeros(0)
    >>> found = audit_epsilon(model, (X, y), (np.ones((1, 1)), np.ones(1)), n_runs=100, random_state=0)
    >>> found.violated
    False
    """
    n_runs = check_integer(n_runs, "n_runs", least=40)
    error = check_positive(error, "error", least=1e-300, most=0.5)
    claim = getattr(estimator, "epsilon", None) if claim is None else claim
    delta = check_delta(getattr(estimator, "delta", 0.0) if delta is None else delta)
    check_fresh_noise(estimator)
    run = runner(estimator)
    read = fitted_numbers if statistic is None else statistic
    pair = as_data_set(D), as_data_set(D_prime)
    samples = [
        _sample(run, read, data, seeds(random_state, f"runs {k}", n_runs), n_jobs) for k, data in enumerate(pair)
    ]
    if max(sample.shape[1] for sample in samples) == 0:
        raise ValueError("there are no numbers among the fitted attributes; pass statistic, a function of the model")
    if samples[0].shape[1] != samples[1].shape[1]:
        # That alone tells the two apart; numbers that are not there are as good as infinite.
        width = max(sample.shape[1] for sample in samples)
        samples = [np.pad(s, ((0, 0), (0, width - s.shape[1])), constant_values=np.inf) for s in samples]
    n_pilot = math.ceil(_PILOT * n_runs)
    counted = n_runs - n_pilot
    bounds = [partial(epsilons, runs=counted, delta=delta, error=error), partial(mus, runs=counted, error=error)]
    found = []
    for bound, event in zip(bounds, _choose([sample[:n_pilot] for sample in samples], bounds, counted), strict=True):
        hits = [int(np.count_nonzero(event.happens(sample[n_pilot:]))) for sample in samples]
        found.append((float(bound(*(hits if event.of_first else hits[::-1]))), (hits[0], hits[1])))
    (epsilon, hits_of_epsilon), (mu, _) = found
    return EpsilonAudit(
        epsilon=epsilon,
        delta=delta,
        mu=mu,
        false_alarm=error,
        claim=None if claim is None else float(claim),
        hits=hits_of_epsilon,
        n_runs=counted,
    )


def _sample(run: Any, read: Any, data: tuple[Any, ...], run_seeds: list[int | None], n_jobs: int | None) -> NDArray:
    batches = np.array_split(np.arange(len(run_seeds)), min(_BATCHES, len(run_seeds)))
    parts = Parallel(n_jobs=n_jobs)(
        delayed(_batch)(run, read, data, [run_seeds[position] for position in batch]) for batch in batches
    )
    rows = [row for part in parts for row in part]
    width = max(len(row) for row in rows)
    # Models of different sizes: what is missing is told from what is there.
    return np.array([np.pad(row, (0, width - len(row)), constant_values=np.inf) for row in rows])


def _batch(run: Any, read: Any, data: tuple[Any, ...], run_seeds: list[int | None]) -> list[NDArray]:
    # Once for all of them: to be silent takes longer than some fits do.
    with silence():
        return [np.ravel(np.asarray(read(run(data, seed)), dtype=np.float64)) for seed in run_seeds]


@dataclass(frozen=True)
class _Event:
    """A linear function of the statistic is beyond a threshold; likelier on the first data set, or on the second."""

    weights: NDArray[np.float64]
    threshold: float
    above: bool
    of_first: bool

    def happens(self, sample: NDArray) -> NDArray[np.bool_]:
        values = _finite(sample) @ self.weights
        return values > self.threshold if self.above else values <= self.threshold


def _finite(sample: NDArray) -> NDArray[np.float64]:
    """Numbers that are not finite, as numbers that are far away: they are part of what is seen."""
    return np.nan_to_num(sample, nan=-1e100, posinf=1e99, neginf=-1e99)


def _directions(first: NDArray, second: NDArray) -> NDArray[np.float64]:
    width = first.shape[1]
    found = list(np.eye(width)[: min(width, _MOST_COORDINATES)])
    stacked = np.vstack([first, second])
    spread = stacked.std(axis=0)
    moving = (spread > 0) & (spread < 1e50)
    if width > 1 and moving.any():
        labels = np.repeat([0, 1], [len(first), len(second)])
        scaled = (stacked[:, moving] - stacked[:, moving].mean(axis=0)) / spread[moving]
        # Without shrinkage, numbers that share their noise are told apart; with it, many numbers can be looked at.
        for shrinkage in ("auto", *([None] if len(stacked) > 10 * width else [])):
            weights = np.zeros(width)
            with silence(), np.errstate(all="ignore"):
                fitted = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage).fit(scaled, labels)
                weights[moving] = fitted.coef_[0] / spread[moving]
            if np.isfinite(weights).all() and weights.any():
                found.append(weights)
    return np.array(found)


def _choose(pilots: list[NDArray], bounds: Sequence[Callable[..., NDArray]], counted: int) -> list[_Event]:
    """Choose for each bound the event that makes it largest, as if the pilot runs were as many as those that count."""
    first, second = (_finite(pilot) for pilot in pilots)
    directions = _directions(first, second)
    thresholds, shares = [], []
    for weights in directions:
        values = first @ weights, second @ weights
        ends = np.quantile(np.concatenate(values), _QUANTILES, method="lower")
        beyond = [1 - np.searchsorted(np.sort(v), ends, side="right") / len(v) for v in values]
        thresholds.append(ends)
        shares.append([beyond, [1 - b for b in beyond]])
    # By direction, side, data set, threshold.
    table = np.array(shares)
    counts = np.rint(counted * table).astype(np.int64)
    more, less = counts.max(axis=2), counts.min(axis=2)
    events = []
    for bound in bounds:
        # Where nothing can be proved, the largest difference.
        worth = bound(more, less) + 1e-9 * (more - less) / counted
        which, side, end = np.unravel_index(np.argmax(worth), worth.shape)
        of_first = bool(table[which, side, 0, end] >= table[which, side, 1, end])
        events.append(_Event(directions[which], float(thresholds[which][end]), side == 0, of_first))
    return events

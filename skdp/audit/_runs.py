"""The audit by many runs, which counts an event on each of two neighbouring data sets."""

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

from ..checks.params import check_integer
from ._bounds import epsilons, mus
from ._fits import Verdict, as_data_set, check_error, check_estimator, claimed, quiet, runner, seeds
from ._numbers import numbers_of

# Fraction of the runs that choose the event. The others are counted.
_PILOT = 0.35
# Thresholds of an event are these quantiles of the pilot runs.
_QUANTILES = np.linspace(0.02, 0.98, 49)
# Beyond these quantiles, there are thresholds with so many pilot runs beyond them, and twice, four times, ...
_LEAST_BEYOND = 4
# Number of coordinates that are used separately, and together: those that differ most in the pilot runs.
_MOST_COORDINATES = 64
_MOST_TOGETHER = 256
# Number of tasks of the runs on one data set, for the processes to share.
_BATCHES = 32
# Equal batches with so many different results in them occur by chance for at most one in 1e10 pairs.
_TELLING = 10


@dataclass(frozen=True)
class EpsilonAudit(Verdict):
    """The result of an audit by many runs.

    Parameters
    ----------
    epsilon : float
        The fit is not (epsilon', delta)-DP for any smaller epsilon', except with the probability of a false alarm.
    delta : float
        Claimed delta.
    mu : float
        The same bound for Gaussian DP.
    false_alarm : float
        Probability that a bound is above the true value, for each of the two bounds.
    claim : float or None
        Claimed epsilon of the estimator.
    hits : tuple of int
        Counts of the event for `epsilon` on the two data sets.
    n_counted : int
        Number of counted runs on each data set, without those that chose the event.
    remarks : tuple of str
        Reasons why the audit may have missed a violation, and unusual observations.
    """

    epsilon: float
    delta: float
    mu: float
    false_alarm: float
    claim: float | None
    hits: tuple[int, int]
    n_counted: int
    remarks: tuple[str, ...] = ()

    def __repr__(self) -> str:
        claim = self._of_claim("nothing found" if self.remarks else "stands")
        remarks = "".join(f"; {remark}" for remark in self.remarks)
        return (
            f"epsilon >= {self.epsilon:.3g} at delta={self.delta:g}, mu >= {self.mu:.3g} "
            f"(false alarm {self.false_alarm:g}){claim}; event in {self.hits[0]} and {self.hits[1]} "
            f"of {self.n_counted} runs each{remarks}"
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
    """Fit many times to each of two neighbouring data sets, and return lower bounds on the privacy loss.

    Parameters
    ----------
    estimator : estimator or callable
        Unfitted estimator, of this library or any other, or a function of the data set that returns the release.
    D, D_prime : tuple of array-like, or array-like
        ``(X, y)`` or X. Two data sets, one of which has one record more. (If the claim is about replaced records, one
        record may differ.) They must be public or synthetic.
    statistic : callable, default=None
        Function that maps the fitted model to a number or a vector. If None, all numbers in the fitted model are used
        (see :doc:`/user_guide/auditing`).
    n_runs : int, default=1000
        Number of fits to each data set, at least 40. About a third of them choose the event.
    claim : float, default=None
        Claimed epsilon. If None, it is ``estimator.epsilon`` of an estimator of skdp or diffprivlib. Other estimators,
        such as pipelines, then have no claim.
    delta : float, default=None
        Claimed delta. If None, it is ``estimator.delta`` of the same estimators, or 0.
    error : float, default=1e-3
        Probability of a false alarm, at most 0.5.
    n_jobs : int, default=None
        Number of processes, as in joblib. A function of the data set takes one process.
    random_state : int, RandomState, Generator or None, default=None
        Seeds of the runs. Each parameter ``random_state`` gets its own seeds. With an int, audits of estimators with
        such parameters can be repeated. Noise from other sources differs between audits.

    Returns
    -------
    audit : EpsilonAudit
        Result, with ``epsilon``, ``mu``, ``claim``, ``violated`` and ``remarks``.

    Raises
    ------
    ValueError
        If runs share their noise, or seem to; or if there are too few runs, or no numbers to compare.

    See Also
    --------
    audit_one_run : One fit, with many records at a time.
    brute_force_sensitivity : The sensitivity before the noise.

    Notes
    -----
    The pilot runs choose a coordinate of the statistic, or a linear discriminant of all coordinates, and a threshold,
    such that the event has the largest bound. The other runs count this event (:doc:`/user_guide/auditing`, theorem 1).
    A claim that is not violated may still be wrong. Therefore choose data sets and a statistic for which one record has
    a large effect. The result for private records is not private.

    For transformers that release in `transform`, such as `LocalLaplace`, a fit shows nothing. Pass a function of the
    data set instead, such as ``lambda X: LocalLaplace(bounds=(0, 1)).fit_transform(X)``.

    References
    ----------
    .. [1] M. Jagielski, J. Ullman and A. Oprea, "Auditing Differentially Private Machine Learning: How Private is
       Private SGD?", NeurIPS 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import FunctionalMechLinReg
    >>> from skdp.audit import audit_epsilon
    >>> model = FunctionalMechLinReg(
    ...     epsilon=1.0, bounds=(-1, 1), bounds_y=(-1, 1), fit_intercept=False
    ... )
    >>> X, y = np.zeros((0, 1)), np.zeros(0)
    >>> audit = audit_epsilon(
    ...     model,
    ...     (X, y),
    ...     (np.ones((1, 1)), np.ones(1)),
    ...     n_runs=100,
    ...     random_state=0,
    ... )
    >>> audit.violated
    False
    """
    n_runs = check_integer(n_runs, "n_runs", least=40)
    error = check_error(error)
    claim, delta = claimed(estimator, claim, delta)
    check_estimator(estimator, n_jobs)
    run = runner(estimator)
    samples: list[NDArray[np.float64]] = []
    unread: set[str] = set()
    for k, data in enumerate((as_data_set(D), as_data_set(D_prime))):
        sample, unread_of_sample = _sample(
            run, statistic, data, seeds(estimator, random_state, f"runs {k}", n_runs), n_jobs
        )
        samples.append(sample)
        unread |= unread_of_sample
    if max(sample.shape[1] for sample in samples) == 0:
        raise ValueError("there are no numbers among the fitted attributes. Pass statistic, a function of the model")
    if samples[0].shape[1] != samples[1].shape[1]:
        # This alone distinguishes the data sets. Missing numbers count as infinite.
        width = max(sample.shape[1] for sample in samples)
        samples = [np.pad(s, ((0, 0), (0, width - s.shape[1])), constant_values=np.inf) for s in samples]
    # Numbers that are not finite are part of the observation.
    samples = [np.nan_to_num(sample, nan=-1e100, posinf=1e99, neginf=-1e99) for sample in samples]
    n_pilot = math.ceil(_PILOT * n_runs)
    counted = n_runs - n_pilot
    bounds = [partial(epsilons, runs=counted, delta=delta, error=error), partial(mus, runs=counted, error=error)]
    results = []
    for bound, event in zip(bounds, _choose([sample[:n_pilot] for sample in samples], bounds, counted), strict=True):
        hits = [int(np.count_nonzero(event.happens(sample[n_pilot:]))) for sample in samples]
        results.append((float(bound(*(hits if event.of_first else hits[::-1]))), (hits[0], hits[1])))
    (epsilon, hits_of_epsilon), (mu, _) = results
    return EpsilonAudit(
        epsilon=epsilon,
        delta=delta,
        mu=mu,
        false_alarm=error,
        claim=claim,
        hits=hits_of_epsilon,
        n_counted=counted,
        remarks=_remarks(samples, unread),
    )


def _remarks(samples: list[NDArray], unread: set[str]) -> tuple[str, ...]:
    first, second = samples
    remarks = []
    if all((sample == sample[0]).all() for sample in samples):
        if (first[0] == second[0]).all():
            remarks.append("all runs were equal: the compared numbers depend on neither noise nor data")
        else:
            remarks.append("all runs on the same data were equal: there was no noise, or the same noise in each run")
    if unread:
        remarks.append(f"not compared: something in {', '.join(sorted(unread))}")
    return tuple(remarks)


def _sample(
    run: Any, statistic: Any, data: tuple[Any, ...], run_seeds: list[dict[str, int]], n_jobs: int | None
) -> tuple[NDArray[np.float64], set[str]]:
    batches = np.array_split(np.arange(len(run_seeds)), min(_BATCHES, len(run_seeds) // _TELLING))
    with quiet():
        results = Parallel(n_jobs=n_jobs)(
            delayed(_batch)(run, statistic, data, [run_seeds[position] for position in batch]) for batch in batches
        )
    _check_not_repeated([rows for rows, _ in results])
    rows = [row for rows_of_batch, _ in results for row in rows_of_batch]
    width = max(len(row) for row in rows)
    # Models may have different sizes. Missing numbers are distinguished from present ones.
    sample = np.array([np.pad(row, (0, width - len(row)), constant_values=np.inf) for row in rows])
    return sample, set().union(*(unread for _, unread in results))


def _batch(
    run: Any, statistic: Any, data: tuple[Any, ...], run_seeds: list[dict[str, int]]
) -> tuple[list[NDArray[np.float64]], set[str]]:
    rows = []
    unread: set[str] = set()
    # The samples are shared once for all of them, and once more in each process.
    with quiet():
        for seeds_of_run in run_seeds:
            model = run(data, seeds_of_run)
            numbers, unread_of_model = numbers_of(model if statistic is None else statistic(model))
            rows.append(numbers)
            unread |= unread_of_model
    return rows, unread


def _check_not_repeated(batches: list[list[NDArray[np.float64]]]) -> None:
    """Refuse runs of several processes with copies of one generator."""
    shortest = min(len(batch) for batch in batches)
    seen = set()
    for batch in batches:
        key = tuple(row.tobytes() for row in batch[:shortest])
        if key in seen and len(set(key)) >= _TELLING:
            raise ValueError(
                "runs repeat each other exactly, because each process has a copy of the generator of the noise. "
                "Use n_jobs=None, or make a generator in each fit"
            )
        seen.add(key)


@dataclass(frozen=True)
class _Event:
    """A linear function of the statistic is beyond a threshold, which is more likely on one of the two data sets."""

    weights: NDArray[np.float64]
    threshold: float
    above: bool
    of_first: bool

    def happens(self, sample: NDArray) -> NDArray[np.bool_]:
        values = sample @ self.weights
        return values > self.threshold if self.above else values <= self.threshold


def _separation(first: NDArray, second: NDArray) -> NDArray[np.float64]:
    """Return for each coordinate the largest difference of the two distribution functions."""
    stacked = np.vstack([first, second])
    order = np.argsort(stacked, axis=0)
    steps = np.where(order < len(first), 1 / len(first), -1 / len(second)).cumsum(axis=0)
    ordered = np.take_along_axis(stacked, order, axis=0)
    # There is no threshold between equal values.
    steps[:-1][ordered[:-1] == ordered[1:]] = 0
    return np.abs(steps).max(axis=0)


def _directions(first: NDArray, second: NDArray) -> NDArray[np.float64]:
    width = first.shape[1]
    stacked = np.vstack([first, second])
    best = np.flatnonzero((stacked != stacked[0]).any(axis=0))
    if len(best) > _MOST_COORDINATES:
        best = best[np.argsort(-_separation(first[:, best], second[:, best]), kind="stable")]
    directions = [np.eye(1, width, k)[0] for k in (best[:_MOST_COORDINATES] if len(best) else [0])]
    with np.errstate(over="ignore"):
        spread = stacked.std(axis=0)
    moving = best[(spread[best] > 0) & (spread[best] < 1e50)][:_MOST_TOGETHER]
    if len(moving) > 1:
        labels = np.repeat([0, 1], [len(first), len(second)])
        scaled = (stacked[:, moving] - stacked[:, moving].mean(axis=0)) / spread[moving]
        # Without shrinkage, numbers with common noise are distinguished. With shrinkage, many numbers can be used.
        for shrinkage in ("auto", *([None] if len(stacked) > 10 * len(moving) else [])):
            weights = np.zeros(width)
            with quiet(), np.errstate(all="ignore"):
                fitted = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage).fit(scaled, labels)
                weights[moving] = fitted.coef_[0] / spread[moving]
            if np.isfinite(weights).all() and weights.any():
                directions.append(weights)
    return np.array(directions)


def _thresholds(values: NDArray) -> NDArray[np.float64]:
    """Return quantiles, and beyond them order statistics as far out as the size of the sample allows."""
    ordered = np.sort(values)
    beyond = _LEAST_BEYOND * 2 ** np.arange(40)
    beyond = beyond[beyond < _QUANTILES[0] * len(ordered)]
    quantiles = np.quantile(ordered, _QUANTILES, method="lower")
    # Above the quantiles, the value itself must be among those beyond the threshold.
    return np.concatenate([quantiles, ordered[beyond - 1], np.nextafter(ordered[-beyond], -np.inf)])


def _choose(pilots: list[NDArray], bounds: Sequence[Callable[..., NDArray]], counted: int) -> list[_Event]:
    """Choose for each bound the event that makes it largest, as if there were as many pilot runs as counted runs."""
    first, second = pilots
    directions = _directions(first, second)
    thresholds, shares = [], []
    for weights in directions:
        values = first @ weights, second @ weights
        limits = _thresholds(np.concatenate(values))
        beyond = [1 - np.searchsorted(np.sort(v), limits, side="right") / len(v) for v in values]
        thresholds.append(limits)
        shares.append([beyond, [1 - b for b in beyond]])
    # The axes are direction, side, data set, threshold.
    table = np.array(shares)
    counts = np.rint(counted * table).astype(np.int64)
    larger, smaller = counts.max(axis=2), counts.min(axis=2)
    events = []
    for bound in bounds:
        # If nothing can be proved, the largest difference is chosen.
        worth = bound(larger, smaller) + 1e-9 * (larger - smaller) / counted
        which, side, threshold = np.unravel_index(np.argmax(worth), worth.shape)
        of_first = bool(table[which, side, 0, threshold] >= table[which, side, 1, threshold])
        events.append(_Event(directions[which], float(thresholds[which][threshold]), side == 0, of_first))
    return events

"""Lower bounds on privacy parameters from counts. Each is wrong with a chosen probability."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.stats import beta, binom, norm

from ..accounting import check_delta
from ..checks.params import check_integer
from ._fits import check_epsilon, check_error

# Larger epsilons are reported as this one, because no number of runs can distinguish them.
_MOST_EPSILON = 60.0


def proportion_limits(successes: ArrayLike, runs: int, error: float) -> tuple[NDArray, NDArray]:
    """Return lower and upper Clopper-Pearson limits of probabilities, each wrong with probability `error`."""
    k, positions = np.unique(successes, return_inverse=True)
    with np.errstate(invalid="ignore"):
        low = np.where(k == 0, 0.0, beta.ppf(error, k, runs - k + 1))
        high = np.where(k == runs, 1.0, beta.isf(error, k + 1, runs - k))
    positions = positions.reshape(np.shape(successes))
    return low[positions], high[positions]


def epsilons(hits: ArrayLike, others: ArrayLike, runs: int, delta: float, error: float) -> NDArray[np.float64]:
    """Return a lower bound on epsilon for each event, from its counts in `runs` runs on each of two data sets."""
    low, high = proportion_limits(hits, runs, error / 2)[0] - delta, proportion_limits(others, runs, error / 2)[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(low > high, np.log(low / high), 0.0)


def mus(hits: ArrayLike, others: ArrayLike, runs: int, error: float) -> NDArray[np.float64]:
    """Return a lower bound on the Gaussian-DP parameter for each event, from its counts on two data sets."""
    low, high = proportion_limits(hits, runs, error / 2)[0], proportion_limits(others, runs, error / 2)[1]
    return np.where(low > high, norm.ppf(low) - norm.ppf(high), 0.0)


def epsilon_lower_bound(hits: int, other_hits: int, n_runs: int, *, delta: float = 0.0, error: float = 1e-3) -> float:
    """Return a lower bound on epsilon from the counts of an event on two neighbouring data sets.

    Parameters
    ----------
    hits, other_hits : int
        Counts of the event on the two data sets.
    n_runs : int
        Number of runs on each data set.
    delta : float, default=0.0
        Claimed delta, in [0, 1).
    error : float, default=1e-3
        Probability of a false alarm, which is a bound above the true epsilon. At most 0.5.

    Returns
    -------
    epsilon : float
        At least 0.

    Notes
    -----
    With the limits of Clopper and Pearson, :math:`p_-\\le p` and :math:`q_+\\ge q`, each wrong with half of the error,
    :math:`\\varepsilon\\ge\\log((p_--\\delta)/q_+)`. The event must not have been chosen by these runs.

    References
    ----------
    .. [1] Z. Ding, Y. Wang, G. Wang, D. Zhang and D. Kifer, "Detecting Violations of Differential Privacy", CCS 2018.

    Examples
    --------
    >>> from skdp.audit import epsilon_lower_bound
    >>> round(epsilon_lower_bound(500, 50, 1000), 2)
    1.76
    """
    hits, other_hits, n_runs = _checked(hits, other_hits, n_runs)
    return float(epsilons(hits, other_hits, n_runs, check_delta(delta), check_error(error)))


def mu_lower_bound(hits: int, other_hits: int, n_runs: int, *, error: float = 1e-3) -> float:
    """Return a lower bound on the Gaussian-DP parameter from the counts of an event on neighbouring data sets.

    Use it instead of a bound on epsilon for mechanisms with a claim of Gaussian DP.

    Parameters
    ----------
    hits, other_hits : int
        Counts of the event on the two data sets.
    n_runs : int
        Number of runs on each data set.
    error : float, default=1e-3
        Probability of a false alarm, at most 0.5.

    Returns
    -------
    mu : float
        At least 0.

    References
    ----------
    .. [1] M. Nasr et al., "Tight Auditing of Differentially Private Machine Learning", USENIX Security 2023.

    Examples
    --------
    >>> from skdp.audit import mu_lower_bound
    >>> round(mu_lower_bound(500, 50, 1000), 2)
    1.3
    """
    hits, other_hits, n_runs = _checked(hits, other_hits, n_runs)
    return float(mus(hits, other_hits, n_runs, check_error(error)))


def _checked(hits: int, other_hits: int, n_runs: int) -> tuple[int, int, int]:
    n_runs = check_integer(n_runs, "n_runs", least=1)
    hits, other_hits = (check_integer(count, "hits", least=0) for count in (hits, other_hits))
    if max(hits, other_hits) > n_runs:
        raise ValueError(f"hits must be at most n_runs, got {max(hits, other_hits)} of {n_runs}")
    return hits, other_hits, n_runs


def one_run_p_value(n_canaries: int, n_guesses: int, n_correct: int, *, epsilon: float, delta: float = 0.0) -> float:
    """Return an upper bound on the probability of so many correct guesses, if one fit is (epsilon, delta)-DP.

    Parameters
    ----------
    n_canaries : int
        Number of records that were included or left out by a fair coin each.
    n_guesses : int
        Number of guesses of the auditor.
    n_correct : int
        Number of correct guesses.
    epsilon : float
        Claimed epsilon, under adding or removing a record.
    delta : float, default=0.0
        Claimed delta, in [0, 1).

    Returns
    -------
    p_value : float
        In [0, 1].

    Notes
    -----
    Under pure DP, the number of correct guesses is stochastically at most binomial with probability
    :math:`e^\\varepsilon/(1+e^\\varepsilon)`. A positive delta adds :math:`2m\\delta\\max_i\\frac1i P(v-i\\le B<v)`
    (theorem 5.2 of [1]_).

    References
    ----------
    .. [1] T. Steinke, M. Nasr and M. Jagielski, "Privacy Auditing with One (1) Training Run", NeurIPS 2023.

    Examples
    --------
    >>> from skdp.audit import one_run_p_value
    >>> f"{one_run_p_value(100, 100, 90, epsilon=1.0):.0e}"
    '3e-05'
    """
    for name, count in (("n_canaries", n_canaries), ("n_guesses", n_guesses), ("n_correct", n_correct)):
        check_integer(count, name, least=0)
    if not n_correct <= n_guesses <= n_canaries:
        raise ValueError("n_correct must be at most n_guesses, and n_guesses at most n_canaries")
    epsilon, delta = check_epsilon(epsilon, "epsilon"), check_delta(delta)
    right = 1 / (1 + math.exp(-epsilon))
    tail = float(binom.sf(n_correct - 1, n_guesses, right))
    if delta == 0 or n_correct == 0:
        return min(1.0, tail)
    below = binom.pmf(np.arange(n_correct - 1, -1, -1), n_guesses, right)
    steps = np.arange(1, n_correct + 1)
    return min(1.0, tail + 2 * n_canaries * delta * float((np.cumsum(below) / steps).max()))


def one_run_epsilon(
    n_canaries: int, n_guesses: int, n_correct: int, *, delta: float = 0.0, error: float = 0.05
) -> float:
    """Return a lower bound on epsilon from the correct guesses about one fit.

    Parameters
    ----------
    n_canaries, n_guesses, n_correct : int
        As in `one_run_p_value`.
    delta : float, default=0.0
        Claimed delta, in [0, 1).
    error : float, default=0.05
        Probability of a false alarm, at most 0.5.

    Returns
    -------
    epsilon : float
        At least 0.

    Examples
    --------
    >>> from skdp.audit import one_run_epsilon
    >>> round(one_run_epsilon(100, 100, 90), 2)
    1.63
    """
    error = check_error(error)

    def excess(epsilon: float) -> float:
        return one_run_p_value(n_canaries, n_guesses, n_correct, epsilon=epsilon, delta=delta) - error

    if excess(0.0) >= 0:
        return 0.0
    if excess(_MOST_EPSILON) < 0:
        return _MOST_EPSILON
    # The lower end is used, so that rounding does not raise the bound.
    return max(0.0, float(brentq(excess, 0.0, _MOST_EPSILON, xtol=1e-9)) - 1e-6)

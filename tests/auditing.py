"""Limits of probabilities, and of shifts."""

import numpy as np
from scipy import stats


def clopper_pearson(successes, runs, error):
    """One-sided lower and upper confidence limits of a probability, each wrong with probability `error`."""
    low = 0.0 if successes == 0 else stats.beta.ppf(error, successes, runs - successes + 1)
    high = 1.0 if successes == runs else stats.beta.isf(error, successes + 1, runs - successes)
    return low, high


def shift_over_spread(sample, neighbour):
    """Estimate mu of a statistic that is Gaussian with equal spread under both, and its standard error."""
    a, b = np.asarray(sample), np.asarray(neighbour)
    spread = np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2)
    mu = abs(a.mean() - b.mean()) / spread
    return mu, np.sqrt(2 / len(a) + mu**2 / (4 * len(a)))

"""Lower bounds on epsilon and mu from runs on two neighbouring data sets."""

import numpy as np
from scipy import stats


def clopper_pearson(successes, runs, error):
    """One-sided lower and upper confidence limits of a probability, each wrong with probability `error`."""
    low = 0.0 if successes == 0 else stats.beta.ppf(error, successes, runs - successes + 1)
    high = 1.0 if successes == runs else stats.beta.isf(error, successes + 1, runs - successes)
    return low, high


def separating_event(pilot, pilot_neighbour, quantile=0.5):
    """Choose, on pilot runs, a direction, and a threshold at a quantile of the sample that lies further along it."""
    sign = 1.0 if np.mean(pilot) > np.mean(pilot_neighbour) else -1.0
    return sign, float(np.quantile(sign * np.asarray(pilot), quantile))


def rates(sample, neighbour, event):
    """How often each sample falls into the event."""
    sign, threshold = event
    return [int(np.count_nonzero(sign * np.asarray(s) > threshold)) for s in (sample, neighbour)]


def epsilon_lower_bound(sample, neighbour, event, delta, error):
    """Epsilon that the mechanism exceeds, but for a false alarm of probability 2 * error."""
    hits, neighbour_hits = rates(sample, neighbour, event)
    low = clopper_pearson(hits, len(sample), error)[0] - delta
    high = clopper_pearson(neighbour_hits, len(neighbour), error)[1]
    return float(np.log(low / high)) if low > 0 else 0.0


def mu_lower_bound(sample, neighbour, event, error):
    """Gaussian-DP parameter that the mechanism exceeds, but for a false alarm of probability 2 * error."""
    hits, neighbour_hits = rates(sample, neighbour, event)
    low = clopper_pearson(hits, len(sample), error)[0]
    high = clopper_pearson(neighbour_hits, len(neighbour), error)[1]
    return float(stats.norm.ppf(low) - stats.norm.ppf(high))


def shift_over_spread(sample, neighbour):
    """Estimate mu of a statistic that is Gaussian with equal spread under both, and its standard error."""
    a, b = np.asarray(sample), np.asarray(neighbour)
    spread = np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2)
    mu = abs(a.mean() - b.mean()) / spread
    return mu, np.sqrt(2 / len(a) + mu**2 / (4 * len(a)))

"""Goodness-of-fit tests that say how often they are wrong.

A stochastic test of this suite computes a p-value with one of these functions and passes it to `accept`. With the
p-values exact or conservative, a correct law is refused with probability at most ``FALSE_ALARM`` over the choice of
the seed; the seeds are fixed, so that a run either always passes or never does. Every such test also passes samples
of a deliberately wrong law to the same function and to `reject`.
"""

import numpy as np
from scipy import stats

#: Probability with which one test refuses a correct law.
FALSE_ALARM = 1e-6

# Cells of a chi-square test that expect fewer are pooled, so that its approximation holds far out in the tail.
_LEAST_EXPECTED = 30


def accept(p_value, what, false_alarm=FALSE_ALARM):
    """Fail if `p_value` is below the false-alarm probability."""
    assert p_value >= false_alarm, (
        f"{what}: p-value {p_value:.3g}; a correct law fails here with probability {false_alarm:g}"
    )


def reject(p_value, what):
    """Fail if a wrong law passes the test that the right one has to pass."""
    assert p_value < FALSE_ALARM, f"{what}: a wrong law passes, with p-value {p_value:.3g}; the test has no teeth"


def pool(observed, expected, least=_LEAST_EXPECTED):
    """Merge neighbouring cells from both ends and in between until each expects at least `least`."""
    counts, sizes = [], []
    count = size = 0.0
    for o, e in zip(observed, expected, strict=True):
        count, size = count + o, size + e
        if size >= least:
            counts.append(count)
            sizes.append(size)
            count = size = 0.0
    if counts:
        counts[-1] += count
        sizes[-1] += size
    return np.array(counts), np.array(sizes)


def chi_square(observed, probabilities):
    """P-value of cell counts under given cell probabilities; what these leave over is one more cell."""
    observed = np.asarray(observed, dtype=float)
    probabilities = np.asarray(probabilities, dtype=float)
    total = observed.sum()
    assert np.all(probabilities >= 0)
    assert probabilities.sum() == np.float64(1) or abs(probabilities.sum() - 1) < 1e-9
    impossible = observed[probabilities == 0].sum()
    if impossible:
        return 0.0
    counts, sizes = pool(observed, probabilities * total)
    assert len(counts) >= 2, "fewer than two cells are left after pooling"
    statistic = np.sum((counts - sizes) ** 2 / sizes)
    return float(stats.chi2.sf(statistic, len(counts) - 1))


def chi_square_integers(sample, pmf, low, high):
    """P-value of integers against ``pmf(k)`` on ``low <= k <= high``, with everything else in one more cell."""
    cells = np.arange(low, high + 1)
    inside = (sample >= low) & (sample <= high)
    observed = np.bincount(np.asarray(sample)[inside] - low, minlength=len(cells))
    probabilities = np.array([pmf(int(k)) for k in cells])
    return chi_square(
        np.append(observed, np.count_nonzero(~inside)), np.append(probabilities, max(0.0, 1 - probabilities.sum()))
    )


def chi_square_buckets(sample, below, edges):
    """P-value of a sample in buckets ``(edges[i], edges[i+1]]``, by ``below(x) = P(X <= x)``."""
    edges = np.asarray(edges)
    observed = np.bincount(np.searchsorted(edges, sample, side="left"), minlength=len(edges) + 1)
    cumulative = np.concatenate([[0.0], [below(e) for e in edges.tolist()], [1.0]])
    return chi_square(observed, np.diff(cumulative))


def independence(first, second, cells=6):
    """P-value of independence of two samples of the same length, by a table of their quantile cells."""

    def code(x):
        inner = np.quantile(x, np.linspace(0, 1, cells + 1)[1:-1])
        return np.searchsorted(np.unique(inner), x, side="left")

    a, b = code(first), code(second)
    table = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(table, (a, b), 1)
    return float(stats.chi2_contingency(table, correction=False).pvalue)


def clopper_pearson(successes, trials, error=FALSE_ALARM):
    """Two-sided confidence interval of a probability that misses it with probability at most `error`."""
    low = stats.beta.ppf(error / 2, successes, trials - successes + 1) if successes else 0.0
    high = stats.beta.isf(error / 2, successes + 1, trials - successes) if successes < trials else 1.0
    return float(low), float(high)


def binomial(successes, trials, probability):
    """Exact two-sided p-value of a number of successes."""
    return float(stats.binomtest(int(successes), int(trials), probability).pvalue)

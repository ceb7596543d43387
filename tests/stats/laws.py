"""Laws of columns, skewed and not, as values with probabilities, and coverage of intervals for records drawn from them.

Records are drawn as the numbers of times that each value occurs, so that a million of them take no longer than a
hundred.
"""

import math

import numpy as np
from scipy import stats as laws

from skdp.accounting import Budget
from skdp.release.estimates import drawn_noise
from skdp.stats._moments import means, moment_design, variances

WIDTHS, SIZES = (1, 10, 1000), (100, 1000, 10_000, 1_000_000)


def _values(law, share=1.0):
    """Values at evenly spaced levels, and at finer levels in the upper tail; zeros for the other records."""
    levels = np.concatenate([np.linspace(0, 1, 4001)[:-1], 1 - np.geomspace(1 / 4000, 1e-9, 200)[1:]])
    levels = np.append(levels, 1.0)
    values = law.ppf((levels[:-1] + levels[1:]) / 2)
    return np.append(values, 0.0), np.append(share * np.diff(levels), 1 - share)


#: Values, their probabilities, and bounds of a width of 1.
LAWS = {
    "normal": (*_values(laws.norm(5, 1)), (0.0, 10.0)),
    "exponential": (*_values(laws.expon()), (0.0, laws.expon().ppf(0.999))),
    "reversed exponential": (10 - np.minimum(_values(laws.expon())[0], 10), _values(laws.expon())[1], (0.0, 10.0)),
    "lognormal": (*_values(laws.lognorm(1.5)), (0.0, laws.lognorm(1.5).ppf(0.999))),
    "Pareto": (*_values(laws.pareto(1.5)), (0.0, laws.pareto(1.5).ppf(0.999))),
    "95 % zeros": (*_values(laws.lognorm(1.0), 0.05), (0.0, laws.lognorm(1.0).ppf(0.999))),
    "2 % ones": (np.array([0.0, 1.0]), np.array([0.98, 0.02]), (0.0, 1.0)),
    "integers": (np.arange(6.0), np.full(6, 1 / 6), (0.0, 6.0)),
    "constant": (np.array([3.0]), np.ones(1), (0.0, 10.0)),
}


def column(name, width):
    """The values within bounds that are `width` times as wide, their probabilities, and the bounds."""
    values, probabilities, (low, high) = LAWS[name]
    high = low + width * (high - low)
    return np.clip(values, low, high), probabilities / probabilities.sum(), (low, high)


def moment_coverage(statistic, name, width, n, epsilon, runs, rng, delta=0.0, of="total", described=False, rows=1):
    """How many intervals at 95 % of a mean or a standard deviation hold, in units of half the width of the bounds.

    In a description, means and standard deviations of two columns with missing values are one release. Each person has
    `rows` equal rows.
    """
    values, probabilities, (low, high) = column(name, width)
    scaled = (2 * values - low - high) / (high - low)
    degree = 4 if described or statistic == "std" else 2
    design = moment_design(Budget(epsilon, delta), 1.0, degree, 1 + described, 1, described, rows)
    exact = rows * rng.multinomial(n // rows, probabilities, size=runs) @ np.vander(scaled, degree + 1, increasing=True)
    sums = exact + drawn_noise(design.mechanism, runs, degree + 1, rng) @ design.powers.T
    rules = means(design, sums) if statistic == "mean" else variances(design, sums, 0.5)
    if of == "noise":
        mean = exact[:, 1] / n
        true = mean if statistic == "mean" else np.sqrt(np.maximum(exact[:, 2] / n - mean**2, 0))
    else:
        mean = probabilities @ scaled
        true = np.full(runs, mean if statistic == "mean" else math.sqrt(probabilities @ (scaled - mean) ** 2))
    ends = np.array([rule.interval(0.95, rows * (of == "total")) for rule in rules])
    return int(np.sum((ends[:, 0] <= true + 1e-12) & (true - 1e-12 <= ends[:, 1])))

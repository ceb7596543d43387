"""How much a fit gives away, measured: what one record moves in each release, over the noise that is really added.

The record's part is exact: the fit is repeated on the neighbour with the same released values. The noise is what comes
out less what went in, over many fits; only the family of its law is taken for granted (other tests compare it with its
law). An upper confidence limit of its scale gives a lower one of epsilon, which is wrong with probability `error` for
each release. Choices have no noise that could be seen: `choices` and `redrawn` measure how sharply they are made.
"""

import math

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import stats

from skdp.accounting import gaussian_epsilon
from skdp.mechanisms import (
    DiscreteLaplaceMechanism,
    GammaMechanism,
    GaussianMechanism,
    NoNoise,
    SampledGaussianMechanism,
)
from tests.auditing import clopper_pearson

GAUSSIAN = (GaussianMechanism, SampledGaussianMechanism)
# Beyond it nothing is private in any sense.
HOPELESS = 1e6


def gaussian_scale(noise, error):
    squares = float(np.sum(noise**2))
    return math.sqrt(squares / noise.size), math.sqrt(squares / stats.chi2.ppf(error, noise.size))


def gamma_scale(noise, error):
    """Of noise whose density falls with its L2 norm; a row for each release."""
    lengths = np.linalg.norm(noise, axis=1)
    return lengths.sum() / noise.size, lengths.sum() / stats.gamma.ppf(error, noise.size)


def laplace_scale(noise, error):
    """Of discrete Laplace noise in steps: the factor between neighbouring probabilities is exp(1 / scale)."""

    def scale(mean):
        return 1 / math.asinh(1 / mean) if mean > 0 else 0.0

    sizes = np.abs(noise)
    mean = sizes.mean()
    # Its spread is at most that of a law with this mean on the integers which is as wide: sizes are nearly geometric.
    limit = mean + stats.norm.isf(error) * math.sqrt((mean**2 + mean) / sizes.size)
    return scale(mean), scale(limit)


def loss_of(mechanism, noise, move, error):
    """Return an estimate of what the release gives away, and a lower limit: of mu for Gaussian noise, or of epsilon."""
    if isinstance(mechanism, DiscreteLaplaceMechanism):
        scales, size = laplace_scale(noise / mechanism.step, error), np.abs(np.rint(move / mechanism.step)).sum()
    elif isinstance(mechanism, GammaMechanism):
        scales, size = gamma_scale(noise, error), np.linalg.norm(move)
    elif isinstance(mechanism, GAUSSIAN):
        scales, size = gaussian_scale(noise, error), np.linalg.norm(move)
    else:
        raise TypeError(f"no noise of {type(mechanism).__name__} to be seen")
    return [min(HOPELESS, size / scale) if scale > 0 else HOPELESS * (size > 0) for scale in scales]


def epsilon_of(mu, pure, delta):
    """Return the epsilon of a Gaussian release together with pure ones, rounded down: limits stay lower ones."""
    if mu == 0 or mu >= 100:
        return sum(pure) + (HOPELESS if mu else 0.0)
    if not pure:
        return gaussian_epsilon(mu, delta)
    down = {"pessimistic_estimate": False, "use_connect_dots": False}
    whole = pld.from_gaussian_mechanism(1 / mu, **down)
    for epsilon in pure:
        whole = whole.compose(pld.from_laplace_mechanism(1 / epsilon, **down))
    return whole.get_epsilon_for_delta(delta)


def log_ratio(hits, other_hits, n_runs, error):
    """Return a lower limit of the logarithm of the ratio of two probabilities, from as many runs of each."""
    low = clopper_pearson(hits, n_runs, error / 2)[0]
    high = clopper_pearson(other_hits, n_runs, error / 2)[1]
    return math.log(low / high) if low > 0 else -math.inf


def measured_epsilon(moves, noises, delta, error):
    """Return an estimate of epsilon and a lower limit.

    Parameters
    ----------
    moves : dict
        By label, a list of steps: each a pair of a mechanism and of what the record moved.
    noises : dict
        By label, noise of many releases, one a row.
    delta : float
        What is granted.
    error : float
        Probability of a false alarm.
    """
    found = []
    for which in range(2):
        squares, pure = 0.0, []
        for label, steps in moves.items():
            for mechanism, move in steps:
                if isinstance(mechanism, NoNoise):
                    return HOPELESS, HOPELESS
                loss = loss_of(mechanism, noises[label], move, error / len(moves))[which]
                if isinstance(mechanism, GAUSSIAN):
                    squares += loss**2
                elif loss:
                    pure.append(loss)
        found.append(epsilon_of(math.sqrt(squares), pure, delta))
    return tuple(found)

"""What choices give away: the laws of all that may be chosen, and how sharply scores are really turned into choices.

the law that its mechanism's parameters imply for the scores that it is handed. How sharply it really chooses is a
factor on the scores, 1 for a right sampler. It is estimated from choices and their scores, on data where it shows, and
its lower confidence limit goes into the laws. Noise that is released besides is measured as anywhere else.
"""

import contextlib
import math
from functools import partial
from unittest.mock import patch

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import optimize, special

from skdp.mechanisms import ExponentialMechanism, GridQuantiles, GroupChoices, PermuteAndFlip
from skdp.release.session import ReleaseSession
from tests.trust.measured import GAUSSIAN, loss_of
from tests.trust.subjects import ERROR, FIRST_SEED, Reading, recorded_epsilon
from tests.trust.transcripts import transcript

#: Mechanisms whose releases are choices, made by `select`.
CHOICES = (GroupChoices, GridQuantiles)

# A lower limit stays one.
LOW = {"pessimistic_estimate": False, "value_discretization_interval": 1e-3}

# For polynomials of degree 63.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)

# Factors on scores that are tried.
_SHARPNESS = np.geomspace(0.5, 4.0, 13)

#: How often each choice is made, to see how sharp it is; the last one counts.
DRAWS = 10

# Choices by further laws are left out.
_MOST_LAWS = 100


def log_law(mechanism, scores, sharpness=1.0):
    """Return logarithms of the probabilities of all candidates; by permute-and-flip, of up to 64."""
    rate = sharpness * mechanism.epsilon / mechanism.score_range
    gaps = rate * (scores - np.max(scores))
    if isinstance(mechanism, ExponentialMechanism):
        return gaps - special.logsumexp(gaps)
    # Candidates come at random times, each with a coin; the first one with heads is chosen.
    tails = 1 - (_NODES[:, None] + 1) / 2 * np.exp(gaps)
    no_other = np.prod(tails, axis=1, keepdims=True) / tails
    return gaps + np.log(_WEIGHTS / 2 @ no_other)


@contextlib.contextmanager
def choosing(decide):
    """Within it, ``decide(mechanism, scores, own)`` makes each choice; `own` makes it as the library does."""
    with contextlib.ExitStack() as stack:
        for kind in (ExponentialMechanism, PermuteAndFlip):

            def select(mechanism, scores, stream, real=kind.select):
                return decide(mechanism, np.asarray(scores, dtype=float), lambda: real(mechanism, scores, stream))

            stack.enter_context(patch.object(kind, "select", select))
        yield


class _EnoughError(Exception):
    """Those choices have been made that are looked at."""


def first_choices(fit):
    """Return a function that makes the choices of the first such release of a fit once more, and nothing else."""
    release, found = ReleaseSession.release, []

    def note(session, label, value):
        mechanism = session.mechanism(label)
        if isinstance(mechanism, CHOICES) and not found:
            found.append((mechanism, np.array(value, dtype=float)))
        return release(session, label, value)

    with patch.object(ReleaseSession, "release", note):
        fit()
    mechanism, value = found[0]
    return partial(mechanism.release, value, None)


def all_laws(fit, most=math.inf):
    """Return, by all that the first `most` choices may be, their laws: pairs of a mechanism and scores.

    Where the law of the last of `most` is there and its choice is not, it may be any.
    """
    found, waiting = {}, [()]
    choose = fit if most == math.inf else first_choices(fit)
    while waiting:
        start = waiting.pop()
        path, laws = [], []

        def decide(mechanism, scores, own, start=start, path=path, laws=laws):
            laws.append((mechanism, scores))
            if len(laws) == most:
                raise _EnoughError
            if len(path) >= len(start):
                waiting.extend((*path, other) for other in range(1, len(scores)))
            path.append(start[len(path)] if len(path) < len(start) else 0)
            return path[-1]

        with choosing(decide), contextlib.suppress(_EnoughError):
            choose()
        found[tuple(path)] = laws
    return found


def laws_along(fit, pick):
    """The same for one sequence of choices: `pick` makes them of the scores."""
    path, laws = [], []

    def decide(mechanism, scores, own):
        path.append(pick(scores))
        laws.append((mechanism, scores))
        return path[-1]

    with choosing(decide):
        fit()
    return {tuple(path): laws}


def log_probabilities(laws, sharpness):
    """Return the logarithms of the probabilities of all sequences of choices."""
    known = {}

    def law(mechanism, scores):
        key = mechanism, scores.tobytes()
        if key not in known:
            known[key] = log_law(mechanism, scores, sharpness)
        return known[key]

    found = []
    for path, steps in laws.items():
        made = sum(law(*step)[k] for step, k in zip(steps, path, strict=False))
        found.append(np.atleast_1d(made + law(*steps[-1]) if len(path) < len(steps) else made))
    return np.concatenate(found)


def sharpness_of(made, error):
    """Return an estimate of the factor on scores, and a lower limit, from choices with their mechanisms and scores.

    Under any factor, the mean of the likelihood ratios of others has expectation 1: by Markov's inequality, it is above
    one over the error with at most that probability (Robbins 1970).
    """
    counts = {}
    for mechanism, scores, chosen in made:
        key = mechanism, scores.tobytes()
        if key in counts or len(counts) < _MOST_LAWS:
            counts.setdefault(key, (mechanism, scores, np.zeros(len(scores))))[2][chosen] += 1

    def log_likelihood(sharpness):
        return sum(count @ log_law(mechanism, scores, sharpness) for mechanism, scores, count in counts.values())

    tried = np.array([log_likelihood(sharpness) for sharpness in _SHARPNESS])
    near = _SHARPNESS[np.clip(tried.argmax() + np.array([-1, 1]), 0, len(tried) - 1)]
    options = {"bounds": near, "method": "bounded", "options": {"xatol": 1e-2}}
    best = optimize.minimize_scalar(lambda sharpness: -log_likelihood(sharpness), **options).x
    least = special.logsumexp(tried) - math.log(len(tried)) - math.log(1 / error)
    if log_likelihood(1e-3) >= least:
        return best, 0.0
    return best, optimize.brentq(lambda sharpness: log_likelihood(sharpness) - least, 1e-3, best, xtol=1e-3)


def epsilon_of_laws(one, other, copies, mu, pure, delta):
    """Return the epsilon of choices by two laws, so many times, with a Gaussian release and with pure ones."""
    if delta == 0:
        return copies * np.abs(one - other).max() + sum(pure) + (math.inf if mu else 0.0)
    assert not pure
    found = []
    one, other = (dict(enumerate(law)) for law in (one, other))
    for laws in ((one, other), (other, one)):
        whole = pld.from_two_probability_mass_functions(*laws, **LOW).self_compose(copies)
        if mu:
            whole = whole.compose(pld.from_gaussian_mechanism(1 / mu, use_connect_dots=False, **LOW))
        found.append(whole.get_epsilon_for_delta(delta))
    return max(found)


def choices(subject, epsilon, delta, *, telling, pick=None, most=math.inf, copies=1):
    """Return a reading of an estimator whose releases are choices, or choices and noise.

    Parameters
    ----------
    subject : Subject
        What is audited.
    epsilon, delta : float
        The claim.
    telling : callable
        Maps the estimator to data on which choices tell how sharply they are made.
    pick : callable, optional
        Maps scores to a choice. With delta 0, a single sequence of choices says all, if it is the worst.
    most : int, optional
        With a positive delta, all sequences of so many first choices are looked at.
    copies : int, default=1
        So many columns with equal values make choices of the same laws, of which the first one's are looked at then.
    """
    estimator = subject.make(epsilon, delta)
    pair = subject.pair(estimator)
    recorded = recorded_epsilon(estimator, pair[0], delta)
    made, noises = [], {}

    def note(mechanism, scores, own):
        made.extend((mechanism, scores, own()) for _ in range(DRAWS))
        return made[-1][-1]

    data = telling(estimator)
    with choosing(note):
        for k in range(subject.taken(subject.fits)):
            found = transcript(estimator.set_params(random_state=FIRST_SEED + k), data)
            for label, _, value, out in noisy(found):
                noises.setdefault(label, []).append(np.ravel(out - value))
    error = ERROR / (1 + len(noises))
    sharpness = sharpness_of(made, error)

    if delta == 0 and pick is not None:
        laws, copies = [laws_along(partial(estimator.fit, *rows), pick) for rows in pair], 1
    else:
        laws = [all_laws(partial(estimator.fit, *rows), most) for rows in pair]
    assert laws[0].keys() == laws[1].keys()
    moves = moved(estimator, pair)
    results = []
    for which in range(2):
        squares, pure = 0.0, []
        for label, mechanism, move in moves:
            loss = loss_of(mechanism, np.array(noises[label]), move, error)[which]
            if isinstance(mechanism, GAUSSIAN):
                squares += loss**2
            else:
                pure.append(loss)
        both = (log_probabilities(own, sharpness[which]) for own in laws)
        results.append(epsilon_of_laws(*both, copies, math.sqrt(squares), pure, delta))
    return Reading(results[1], results[0], recorded)


def noisy(found):
    """Yield what a transcript says of releases with noise."""
    for release in found.values():
        if not isinstance(release.mechanism, CHOICES):
            yield release.label, release.mechanism, release.value, release.out


def moved(estimator, pair):
    """Return what the record moves in releases with noise, when the first candidate is chosen each time."""
    with choosing(lambda mechanism, scores, own: 0):
        one = transcript(estimator, pair[0])
        other = transcript(estimator, pair[1], one)
    both = zip(noisy(one), noisy(other), strict=True)
    return [(label, mechanism, value - before) for (label, mechanism, before, _), (_, _, value, _) in both]


@contextlib.contextmanager
def less_noise(factor):
    """Add so much of the noise only, and choose as much more sharply."""
    release = ReleaseSession.release

    def less(session, label, value):
        choice = isinstance(session.mechanism(label), CHOICES)
        out = release(session, label, value)
        return out if choice else (1 - factor) * np.asarray(value, dtype=float) + factor * out

    with contextlib.ExitStack() as stack:
        stack.enter_context(patch.object(ReleaseSession, "release", less))
        for kind in (ExponentialMechanism, PermuteAndFlip):

            def sharper(mechanism, scores, stream, real=kind.select):
                return real(mechanism, np.asarray(scores) / factor, stream)

            stack.enter_context(patch.object(kind, "select", sharper))
        yield


half_noise = partial(less_noise, 0.5)

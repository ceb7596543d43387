"""What a fit gives away, measured by two fits: for slow fits, and for releases that are choices.

One fit of each data set is led along the same history: at each release the mechanism draws many times, each time with
another seed, and then the outcome of the history is handed on, whatever was drawn. So what goes into a release is the
same each time, and few fits make many draws. The history may be the worst one, which is rare in fits that are left
alone; what comes after it has to be private all the same.

Noise is measured as in `tests.trust.measured`. Of a choice, only the family of its law is taken for granted: that of
the exponential mechanism, of permute-and-flip, or a Bingham law about one direction, of some exponent. A lower limit of
the exponent is where the likelihood of the draws falls to `error` times its maximum: Chernoff's bound, for one draw
from an exponential family or for many. What the choice gives away then follows from its law on the two data sets. On
pairs where a record adds to what is chosen anyhow, it grows with the exponent.
"""

import contextlib
import functools
import math
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import optimize, special

from skdp.checks.silence import silence
from skdp.mechanisms import BinghamMechanism, GroupChoices, NoiseSource
from skdp.release.session import ReleaseSession
from tests.trust.measured import GAUSSIAN, epsilon_of, loss_of
from tests.trust.subjects import ERROR, FIRST_SEED, RUNS_AT_1, Reading, recorded_epsilon, replaced, scaled_noise

CHOICES = BinghamMechanism, GroupChoices
_MOST_FACTOR = 64.0
_ANGLES = 1000


@dataclass(frozen=True)
class Visit:
    """A release: what went in, all that was drawn, and what was handed on."""

    label: str
    mechanism: Any
    value: np.ndarray
    draws: list
    handed: np.ndarray


def led(estimator, data, seed, n_draws, history, side=0):
    """Fit, and return the visits. Fits with the same seed have the same blocks; the draws of each side are its own.

    ``history(number, label, mechanism, value)`` returns what is handed on, or None for the first draw.
    """
    visits = []
    release = ReleaseSession.release

    def lead(session, label, value):
        mechanism, source = session.mechanism(label), session._source
        value = np.array(value, dtype=float)
        draws = []
        for k in range(n_draws):
            session._waiting[label] = mechanism
            session._source = NoiseSource((3 * seed + side << 32) + k)
            draws.append(release(session, label, value.copy()))
        session._source = source
        handed = history(len(visits), label, mechanism, value)
        handed = np.array(draws[0] if handed is None else handed)
        visits.append(Visit(label, mechanism, value, draws, handed))
        return handed

    with patch.object(ReleaseSession, "release", lead), silence():
        estimator.set_params(random_state=seed).fit(*data)
    return visits


# --- laws of choices ------------------------------------------------------------------------------------------------


def about_one_direction(value, exponent):
    """Return the one direction of a score, its exponent, and the logarithm of the integral of the density."""
    sizes, vectors = np.linalg.eigh(value)
    assert np.all(np.abs(sizes[:-1]) <= 1e-6 * max(sizes[-1], 1)), "a score in more than one direction"
    kappa = sizes[-1] * exponent
    return vectors[:, -1], kappa, math.log(special.hyp1f1(0.5, len(value) / 2, kappa))


def choices(mechanism, value, factor):
    """Return the logarithms of the probabilities of candidates, a row for each group."""
    exponents = factor * value / mechanism.scale
    if mechanism.bounded_range:
        return special.log_softmax(exponents, axis=1)
    # Permute-and-flip visits candidates at random times, and takes the first that is accepted.
    times, weights = np.polynomial.legendre.leggauss(64)
    times, weights = (times + 1) / 2, weights / 2
    exponents = exponents - exponents.max(axis=1, keepdims=True)
    refused = np.log1p(-np.exp(exponents)[:, :, None] * times)
    others = refused.sum(axis=1, keepdims=True) - refused
    return exponents + np.log(np.exp(others) @ weights)


def log_likelihood(visits, factor):
    """Return that of all draws, if exponents are so many times as large as mechanisms say."""
    total = 0.0
    for visit in visits:
        if isinstance(visit.mechanism, BinghamMechanism):
            along, kappa, log_integral = about_one_direction(visit.value, factor / visit.mechanism.scale)
            draws = np.array(visit.draws)
            cosines = draws @ along / np.linalg.norm(draws, axis=1)
            total += np.sum(kappa * cosines**2 - log_integral)
        else:
            law = choices(visit.mechanism, visit.value, factor)
            chosen = np.array(visit.draws, dtype=int)
            total += law[np.arange(len(law)), chosen].sum()
    return total


def factors(visits, error):
    """Return the likeliest factor, and a lower limit of it."""
    best = math.exp(
        optimize.minimize_scalar(
            lambda log: -log_likelihood(visits, math.exp(log)), bounds=(-7, math.log(_MOST_FACTOR)), method="bounded"
        ).x
    )
    least = log_likelihood(visits, best) - math.log(1 / error)

    def above(factor):
        return log_likelihood(visits, factor) - least

    return best, optimize.brentq(above, 1e-6, best) if above(1e-6) < 0 else 0.0


def log_ratio(visit, other, factor):
    """Return by how much the logarithm of the probability of what is handed on changes."""
    if isinstance(visit.mechanism, BinghamMechanism):
        exponent = factor / visit.mechanism.scale
        score = visit.handed @ (other.value - visit.value) @ visit.handed / (visit.handed @ visit.handed)
        return (
            exponent * score
            - about_one_direction(other.value, exponent)[2]
            + about_one_direction(visit.value, exponent)[2]
        )
    laws = [choices(v.mechanism, v.value, factor) for v in (visit, other)]
    chosen = np.arange(len(laws[0])), visit.handed.astype(int)
    return float(np.sum(laws[1][chosen] - laws[0][chosen]))


def both_laws(visit, other, factor):
    """Yield the logarithms of probabilities on the one data set and on the other."""
    if isinstance(visit.mechanism, BinghamMechanism):
        # Cells of the angle with the direction that both have: what is seen of more than that says nothing.
        angles = (np.arange(_ANGLES) + 0.5) * np.pi / 2 / _ANGLES
        laws, directions = [], []
        for v in (visit, other):
            along, kappa, _ = about_one_direction(v.value, factor / v.mechanism.scale)
            directions.append(along)
            density = kappa * np.cos(angles) ** 2 + (len(along) - 2) * np.log(np.sin(angles))
            laws.append(density - special.logsumexp(density))
        # Without rows, any direction will do.
        assert not np.any(visit.value) or abs(directions[0] @ directions[1]) > 1 - 1e-6
        yield tuple(laws)
    else:
        yield from zip(*(choices(v.mechanism, v.value, factor) for v in (visit, other)), strict=True)


# --- the reading ----------------------------------------------------------------------------------------------------


def composed(mu, pure, laws, delta):
    """Return no more than the epsilon of a Gaussian release, pure ones and choices."""
    if not laws or mu >= 100 or max(pure, default=0.0) >= 100:
        return epsilon_of(mu, pure, delta)
    parts = [pld.from_gaussian_mechanism(1 / mu, pessimistic_estimate=False, use_connect_dots=False)] if mu else []
    parts += [
        pld.from_laplace_mechanism(1 / epsilon, pessimistic_estimate=False, use_connect_dots=False)
        for epsilon in pure
        if epsilon
    ]
    parts += [
        pld.from_two_probability_mass_functions(
            dict(enumerate(one)), dict(enumerate(other)), pessimistic_estimate=False
        )
        for one, other in laws
    ]
    return float(functools.reduce(lambda whole, part: whole.compose(part), parts).get_epsilon_for_delta(delta))


def given_away(visits, others, noises, exponents, delta, which, error):
    """Return epsilon, or a lower limit of it."""
    squares, pure, ratio, laws = 0.0, [], 0.0, []
    for visit, other in zip(visits, others, strict=True):
        assert (visit.label, visit.mechanism) == (other.label, other.mechanism)
        if isinstance(visit.mechanism, CHOICES):
            factor = exponents[visit.label][which]
            if delta:
                laws.extend(both_laws(visit, other, factor))
            else:
                ratio += log_ratio(visit, other, factor)
            continue
        loss = loss_of(visit.mechanism, noises[visit.label], np.ravel(other.value - visit.value), error)[which]
        if isinstance(visit.mechanism, GAUSSIAN):
            squares += loss**2
        else:
            pure.append(loss)
    if delta or squares:
        return composed(math.sqrt(squares), pure, laws, delta)
    return abs(ratio) + sum(pure)


def no_history(number, label, mechanism, value):
    return None


def redrawn(subject, epsilon, delta, *, draws=100, histories=1, history=no_history, evidence=None):
    """Return the reading by fits that are led along so many histories.

    ``evidence(estimator)`` returns a data set whose fit tells more of the exponents of choices, to be drawn from too.
    """
    estimator = subject.make(epsilon, delta)
    pair = subject.pair(estimator)
    recorded = recorded_epsilon(estimator, pair[0], delta)
    draws, found = subject.taken(draws, least=10), []
    for k in range(histories):
        seed = FIRST_SEED + k
        visits = led(estimator, pair[0], seed, draws, history)
        handed = [visit.handed for visit in visits]
        again = led(estimator, pair[1], seed, draws, lambda number, *_, handed=handed: handed[number], side=1)
        found.append((visits, again))
    fits = [visits for pair in found for visits in pair]
    if evidence is not None:
        more = led(estimator, evidence(estimator), FIRST_SEED, 4 * draws, history, side=2)
        fits.append([visit for visit in more if isinstance(visit.mechanism, CHOICES)])
    by_label = {}
    for visit in (visit for visits in fits for visit in visits):
        by_label.setdefault(visit.label, []).append(visit)
    error = ERROR / len(by_label)
    noises, exponents = {}, {}
    for label, visits in by_label.items():
        if isinstance(visits[0].mechanism, CHOICES):
            exponents[label] = factors(visits, error)
        else:
            noises[label] = np.array([np.ravel(out - visit.value) for visit in visits for out in visit.draws])
    limits = [[given_away(*pair, noises, exponents, delta, which, error) for pair in found] for which in (0, 1)]
    return Reading(max(limits[1]), max(limits[0]), recorded)


@contextlib.contextmanager
def half_noise():
    """Half of the noise, or choices with twice the exponent."""
    whole = ReleaseSession.release
    with scaled_noise(0.5):
        half = ReleaseSession.release

        def release(session, label, value):
            if isinstance(session.mechanism(label), CHOICES):
                return whole(session, label, 2 * np.asarray(value))
            return half(session, label, value)

        with patch.object(ReleaseSession, "release", release):
            yield


#: A run that sees what leaves a fit past its releases; more often, it would see little more of the releases.
FEW_RUNS = {(1.0, 0.0): RUNS_AT_1}


#: Of mutants that change no release.
BY_RUNS = {"reading": None}


def row_count_kept(kind):
    """Leave the number of rows on the fitted model, past all releases."""

    def change(fit):
        def whole(self, X, y=None):
            fit(self, X, y)
            self.n_rows_ = len(X)
            return self

        return whole

    return replaced(kind, "fit", change)


def unseen_without_runs(name, claims, runs):
    return {(name, claim): "no release has changed, and there are no runs" for claim in claims if claim not in runs}

"""What is audited: an estimator, two neighbouring data sets on which one record counts as much as it can, and mutants.

Two readings, each a lower limit of epsilon that is wrong with probability `ERROR`:

measured
    `tests.trust.measured`: what the record moves in each release, over the noise that is really added. It sees factors
    at any epsilon, with few fits, and all releases of a fit together. It does not see what leaves a fit past them.
runs
    `skdp.audit.audit_epsilon` on the fitted model, whatever is in it. It needs no knowledge of the fit, and many fits.

A claim is what the accountant recorded for the fit. It has to stand in every reading. A mutant is the library, broken
on purpose; a reading has to be above what was recorded.
"""

import contextlib
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.base import clone

from skdp import BudgetAccountant
from skdp.audit import audit_epsilon
from skdp.mechanisms import GroupChoices
from skdp.release.session import ReleaseSession
from tests.trust.measured import measured_epsilon
from tests.trust.transcripts import transcript

#: Probability of a false alarm of each reading.
ERROR = 1e-6

#: `make audit-long` multiplies the runs, and takes seeds that nobody chose.
TIMES = int(os.environ.get("SKDP_AUDIT_TIMES", "1"))
FIRST_SEED = int(os.environ.get("SKDP_AUDIT_SEED", "0"))

PURE = ((0.1, 0.0), (1.0, 0.0), (3.0, 0.0))
APPROXIMATE = ((0.1, 1e-5), (1.0, 1e-5), (3.0, 1e-5))

#: As many as it takes for a total leak to be more than a claim of 1, or of 3, at this probability of a false alarm.
RUNS_AT_1, RUNS_AT_3 = 80, 480

#: How many fits show what the record moves, since it may depend on what was released before.
_REPLAYED = 6


@dataclass(frozen=True)
class Subject:
    """One estimator under audit.

    Attributes
    ----------
    name : str
        Test id; unique.
    make : callable
        Maps epsilon and delta to an unfitted estimator.
    pair : callable
        Maps that estimator to ``D, D_prime``, tuples ``(X,)`` or ``(X, y)``; the second has one record more, the last.
    claims : tuple of (epsilon, delta)
        What it is audited at.
    reading : callable or None
        Maps the subject, epsilon and delta to a `Reading`, at every claim: `measure`, or one of its own for releases
        without noise to be seen. None if there are runs only.
    floor : float
        Part of the claim that this reading has to see.
    fits : int
        Number of fits that it takes.
    part : float
        It makes do with this part of its fits or draws.
    moves : callable, optional
        Maps the estimator, the pair and a transcript of a fit to D to what the record moves, by label, as a list of
        steps ``(mechanism, move)``. None repeats the fit on D_prime with the same released values.
    statistic : callable, optional
        What of the fitted model the runs look at; None looks at all its numbers.
    runs : dict
        Number of runs by claim; claims that are not in it are not audited by runs.
    run_floor : dict
        By claim: part of it that the runs have to see.
    mutants : dict
        Besides `COMMON_MUTANTS`; by name, a function that makes a context in which the library is broken, or a tuple
        of it and a dict: other attributes of the subject, as ``pair``, that it shows with.
    survives : dict
        By name of a mutant, why no reading can see it; or, by ``(name, claim)``, why none can at that claim.
    """

    name: str
    make: Callable[[float, float], Any]
    pair: Callable[[Any], tuple[tuple, tuple]]
    claims: tuple = (*PURE, (1.0, 1e-5))
    reading: Callable[..., Any] | None = field(default_factory=lambda: measure)
    floor: float = 0.9
    fits: int = 200
    part: float = 1.0
    moves: Callable[..., Any] | None = None
    statistic: Callable[[Any], Any] | None = None
    runs: dict = field(default_factory=lambda: {(1.0, 0.0): RUNS_AT_1})
    run_floor: dict = field(default_factory=dict)
    mutants: dict = field(default_factory=dict)
    survives: dict = field(default_factory=dict)

    def taken(self, n, least=4):
        """Return how many of n fits or draws a reading takes, few of them at least."""
        return TIMES * max(min(n, least), math.ceil(self.part * n))

    def readings(self, epsilon, delta):
        """Yield what there is to be read at a claim; the first is the subject's own."""
        if self.reading is not None:
            yield self.reading(self, epsilon, delta)
        if (epsilon, delta) in self.runs:
            yield run(self, epsilon, delta)

    def is_violated(self, epsilon, delta):
        """Return whether a reading objects. A part of the fits or draws mostly suffices to see a mutant."""
        parts = () if self.reading is None else (1 / 24, 1 / 8, 1 / 3)
        return any(self.reading(replace(self, part=part), epsilon, delta).violated for part in parts) or any(
            reading.violated for reading in self.readings(epsilon, delta)
        )

    def all_mutants(self):
        """Return names of mutants, each with what breaks the library and the subject that it shows with."""
        found = {}
        for name, mutant in (COMMON_MUTANTS | self.mutants).items():
            breakage, changes = mutant if isinstance(mutant, tuple) else (mutant, {})
            found[name] = breakage, replace(self, **changes)
        return found


@dataclass(frozen=True)
class Reading:
    """A lower limit of epsilon, an estimate if there is one, and what was recorded."""

    at_least: float
    estimate: float
    recorded: float

    @property
    def violated(self):
        return self.at_least > self.recorded * (1 + 1e-9)


def recorded_epsilon(estimator, data, delta):
    """Return the epsilon that an accountant has recorded after a fit."""
    unit = "record" if getattr(estimator, "rows_per_group", None) is None else "group"
    accountant = BudgetAccountant(1e6, 0.5, composition="basic", unit=unit)
    private = clone(estimator).set_params(accountant=accountant)
    with np.errstate(all="ignore"):
        private.fit(*data)
    total = accountant.total()
    assert total.delta <= delta
    return float(total.epsilon)


def replayed(estimator, pair, found):
    """Return what the record moves in each release, by label."""
    other = transcript(estimator, pair[1], found)
    assert other.keys() == found.keys()
    moves = {}
    for place, release in found.items():
        if isinstance(release.mechanism, GroupChoices):
            continue
        moves.setdefault(release.label, []).append((release.mechanism, other[place].value - release.value))
    return moves


def measure(subject, epsilon, delta):
    """Return the measured reading."""
    estimator = subject.make(epsilon, delta)
    pair = subject.pair(estimator)
    recorded = recorded_epsilon(estimator, pair[0], delta)
    noises, estimates, limits, all_moves = {}, [], [], []
    for k in range(subject.taken(subject.fits)):
        # Both data sets have to get the noise.
        data = pair[k % 2]
        estimator.set_params(random_state=FIRST_SEED + k)
        found = transcript(estimator, data)
        for release in found.values():
            # Few of the releases of trees are choices; what a record moves in their scores is tested with the trees.
            if not isinstance(release.mechanism, GroupChoices):
                noises.setdefault(release.label, []).append(np.ravel(release.out - release.value))
        if k % 2 == 0 and len(all_moves) < _REPLAYED:
            all_moves.append((subject.moves or replayed)(estimator, pair, found))
    noises = {label: np.array(rows) for label, rows in noises.items()}
    for moves in all_moves:
        estimate, limit = measured_epsilon(moves, noises, delta, ERROR)
        estimates.append(estimate)
        limits.append(limit)
    return Reading(max(limits), max(estimates), recorded)


def run(subject, epsilon, delta):
    """Return the reading of the runs."""
    estimator = subject.make(epsilon, delta)
    pair = subject.pair(estimator)
    recorded = recorded_epsilon(estimator, pair[0], delta)
    found = audit_epsilon(
        estimator,
        *pair,
        statistic=subject.statistic,
        n_runs=subject.runs[epsilon, delta] * TIMES,
        claim=epsilon,
        delta=delta,
        error=ERROR,
        random_state=FIRST_SEED,
    )
    return Reading(found.epsilon, found.epsilon, recorded)


# --- mutants that any estimator can be broken by --------------------------------------------------------------------


@contextlib.contextmanager
def scaled_noise(factor):
    """Add so much of the noise only."""
    release, steps = ReleaseSession.release, ReleaseSession.steps

    def less(session, label, value):
        if isinstance(session.mechanism(label), GroupChoices):
            return release(session, label, value)
        value = np.asarray(value, dtype=float)
        return value + factor * (release(session, label, value) - value)

    def less_each(session, label, n_rows, attributes=None):
        for rows, send in steps(session, label, n_rows, attributes):
            yield rows, lambda total, send=send: np.array(total) + factor * (send(np.array(total)) - np.array(total))

    with patch.object(ReleaseSession, "release", less), patch.object(ReleaseSession, "steps", less_each):
        yield


def half_noise():
    return scaled_noise(0.5)


@contextlib.contextmanager
def no_charge():
    """Forget to tell the accountant."""
    with patch.object(BudgetAccountant, "charge", lambda self, *args, **kwargs: None):
        yield


@contextlib.contextmanager
def replaced(owner, name, make):
    """Put ``make(original)`` in the place of a function."""
    with patch.object(owner, name, make(getattr(owner, name))):
        yield


class _WithoutClip:
    """NumPy, but for one function."""

    def __getattr__(self, name):
        return getattr(np, name)

    @staticmethod
    def clip(values, *_):
        return values


def no_clipping(module):
    """Leave out whatever a module clips with NumPy."""
    return patch.object(module, "np", _WithoutClip())


# To see that something was not recorded takes few fits.
COMMON_MUTANTS = {"half the noise": half_noise, "no charge": (no_charge, {"fits": 10})}

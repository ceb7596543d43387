"""What a fit releases: recorded, and replayed on other data with the same released values."""

import contextlib
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

from skdp.release.session import ReleaseSession


@dataclass(frozen=True)
class Released:
    """One release, or one step of it: what went in, and what came out."""

    label: str
    mechanism: Any
    value: np.ndarray
    out: np.ndarray


def as_they_are(value, mechanism):
    return np.array(value, dtype=float)


@contextlib.contextmanager
def watched(note, forced=None, numbers=as_they_are, sample=None):
    """Within it, each release and each step calls `note`; values in `forced`, by place, come out instead of their own.

    ``sample(mechanism, rows, n_rows, number)`` may replace the rows of a step.
    """
    release, steps = ReleaseSession.release, ReleaseSession.steps
    places = {}

    def send(session, label, number, mechanism, value, own):
        # Searches have several sessions with the same labels.
        place = places.setdefault(id(session), (len(places), session))[0], label, number
        value = numbers(value, mechanism)
        out = own() if forced is None or place not in forced else forced[place].copy()
        note(place, Released(label, mechanism, value, np.array(out)))
        return out

    def one(session, label, value):
        mechanism = session.mechanism(label)

        def own():
            return release(session, label, value)

        out = send(session, label, 0, mechanism, value, own)
        # A replayed session keeps its books as well.
        session._waiting.pop(label, None)
        return out

    def many(session, label, n_rows, attributes=None):
        mechanism = session.mechanism(label)
        for number, (rows, own) in enumerate(steps(session, label, n_rows, attributes)):

            def once(total, number=number, own=own):
                return send(session, label, number, mechanism, total, lambda: own(total))

            yield rows if sample is None else sample(mechanism, rows, n_rows, number), once

    with patch.object(ReleaseSession, "release", one), patch.object(ReleaseSession, "steps", many):
        yield


def transcript(estimator, data, forced=None, **options):
    """Fit, and return all that was released, by place; `forced` is a transcript whose outcomes are repeated."""
    found = {}
    outcomes = None if forced is None else {place: released.out for place, released in forced.items()}
    with watched(found.__setitem__, outcomes, **options):
        estimator.fit(*data)
    return found

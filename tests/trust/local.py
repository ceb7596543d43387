"""Reports of local privacy: one record is replaced by another, and how many there are is public.

The reading takes the larger of two numbers. One is the loss that the channels' probabilities imply, for the codes that
really went in: exact. The other is a lower limit from how often reports came out that tell the two records apart best:
rows are independent, so that one call draws as many reports of a record as are needed, at any epsilon.
"""

import math
from functools import partial

import numpy as np
from sklearn.base import clone

from skdp import BudgetAccountant
from skdp.local import (
    HadamardResponse,
    LocalDPNaiveBayes,
    LocalLaplace,
    PiecewiseMechanism,
    RandomizedResponse,
    UnaryEncoder,
    _base,
    _naive_bayes,
)
from skdp.mechanisms import LocalMechanism, channels
from skdp.mechanisms.channels import KaryChannel, LatticeLaplaceChannel, Mixture, UnaryChannel, WindowChannel
from tests.mechanisms.reports import reports_of
from tests.trust.measured import log_ratio
from tests.trust.subjects import ERROR, FIRST_SEED, PURE, Reading, Subject, no_clipping, replaced
from tests.trust.transcripts import watched


def randomised(model, record, n_rows):
    """Return what is released for so many rows, each of which is this record."""
    found = []
    model = clone(model)
    with watched(lambda place, release: found.append(release)):
        rows = [np.repeat(part, n_rows, axis=0) for part in record]
        (model.fit if len(rows) == 2 else model.transform)(*rows)
    (release,) = found
    return release


def charged(model, record):
    accountant = BudgetAccountant(1e6, 0.5, composition="basic")
    randomised(clone(model).set_params(accountant=accountant, random_state=None), record, 1)
    return float(accountant.total().epsilon)


def loss(channel, code, other):
    """The logarithm of the largest ratio of probabilities."""
    if code == other:
        return 0.0
    if isinstance(channel, LatticeLaplaceChannel):
        return float(abs(code - other) / channel.lattice_scale) if channel.lattice_scale else math.inf
    if isinstance(channel, UnaryChannel):
        p, q = channel.rates
        return math.log(p * (1 - q)) - math.log(q * (1 - p)) if p < 1 else math.inf
    within = not isinstance(channel, WindowChannel) or max(code, other) <= channel.largest
    weight = channel.weight
    if weight == 1 or not within:
        return math.inf
    return math.log1p(weight * channel.n_reports / ((1 - weight) * channel.set_size))


def is_telling(channel, reports, code, other):
    """Whether each report is one of those that speak most for a code, and against the other; or is missing."""
    if code == other:
        found = np.ones(len(reports), dtype=bool)
    elif isinstance(channel, LatticeLaplaceChannel):
        found = reports[:, 0] <= code if code < other else reports[:, 0] >= code
    elif isinstance(channel, UnaryChannel):
        found = (reports[:, code] == 1) & (reports[:, other] == 0)
    elif isinstance(channel, WindowChannel):
        own, others = ((start <= reports[:, 0]) & (reports[:, 0] < start + channel.window) for start in (code, other))
        found = own & ~others
    else:
        assert isinstance(channel, Mixture)
        found = np.isin(reports[:, 0], list(set(reports_of(channel, code)) - set(reports_of(channel, other))))
    return found | (reports[:, 0] == channel.missing)


def reported(subject, epsilon, delta):
    model = subject.make(epsilon, delta)
    pair = subject.pair(model)
    n_rows = subject.taken(300_000 if epsilon < 1 else 40_000)
    releases = [randomised(model.set_params(random_state=FIRST_SEED + i), pair[i], n_rows) for i in range(2)]
    mechanism = releases[0].mechanism
    codes = [release.value[0].astype(int) for release in releases]
    losses = [loss(*column) for column in zip(mechanism.channels, *codes, strict=True)]
    implied = sum(sorted(losses)[-mechanism.n_reported :])
    starts = mechanism.starts
    limits = []
    for side in range(2):
        hits = []
        for release in releases:
            telling = np.ones(n_rows, dtype=bool)
            for j, channel in enumerate(mechanism.channels):
                part = release.out[:, starts[j] : starts[j + 1]]
                telling &= is_telling(channel, part, codes[side][j], codes[1 - side][j])
            hits.append(int(telling.sum()))
        limits.append(log_ratio(hits[side], hits[1 - side], n_rows, ERROR / 2))
    return Reading(max(implied, *limits), implied, charged(model, pair[0]))


# --- mutants --------------------------------------------------------------------------------------------------------


def undivided(module):
    return partial(replaced, module, "portion", lambda portion: lambda epsilon, k: portion(epsilon, 1))


def twice_epsilon(name):
    """Of what turns a guarantee into probabilities."""
    return partial(replaced, channels, name, lambda of: lambda epsilon, *rest: of(2 * epsilon, *rest))


def other_parts(parts):
    """As if all reports were so many sets."""
    return partial(replaced, channels, "mixture_weight", lambda of: lambda epsilon, _: of(epsilon, parts))


def loaded_coins():
    """They show heads twice as often as the channels say."""
    return replaced(channels, "coins", lambda toss: lambda heads, *rest: toss(2 * heads, *rest))


def smaller_steps():
    """Noise of half the scale that the channels say."""
    return replaced(channels, "discrete_laplace", lambda draw: lambda scale, *rest: draw(scale / 2, *rest))


def every_column():
    """Reported, where one was to be."""
    return replaced(LocalMechanism, "_choose", lambda _: lambda self, n, stream: np.ones((n, 2), dtype=bool))


def bare_label():
    def make(best):
        return lambda epsilon, size: KaryChannel(math.inf, size) if size == 2 else best(epsilon, size)

    return replaced(_naive_bayes, "best_channel", make)


def row(*values):
    return (np.array([values]),)


def rows_apart(model):
    return row(0, 0), row(1, 1)


def numbers_apart(model, upper=1.0):
    return row(0.0, 0.0), row(upper, upper)


def labelled_rows(model):
    return (*row(0.0, 0.0), np.array([0])), (*row(1.0, 1.0), np.array([1]))


def transformer(of, domain, epsilon, delta, n_reported="all", **parameters):
    return of(domain, epsilon=epsilon, n_reported=n_reported, **parameters)


def naive_bayes(epsilon, delta):
    return LocalDPNaiveBayes(
        epsilon=epsilon, categorical_features=[0, 1], n_categories=[2, 3], classes=[0, 1], n_reported="all"
    )


local = partial(Subject, claims=PURE, reading=reported, floor=0.999, runs={})

coined = {"half the noise": twice_epsilon("mixture_weight"), "loaded coins": loaded_coins}
divided = {"budget not divided among columns": undivided(_base)}
numeric = {
    "budget not divided among columns": undivided(_base),
    "no clip": (partial(no_clipping, _base), {"pair": partial(numbers_apart, upper=10.0)}),
}

SUBJECTS = [
    local(
        "RandomizedResponse",
        partial(transformer, RandomizedResponse, 3),
        rows_apart,
        mutants={
            **coined,
            **divided,
            "keep-probability of two categories": other_parts(2),
        },
    ),
    local(
        "RandomizedResponse, one column of two",
        partial(transformer, RandomizedResponse, 3, n_reported=1),
        rows_apart,
        mutants={**coined, "all columns reported": every_column},
    ),
    local(
        "UnaryEncoder",
        partial(transformer, UnaryEncoder, 3),
        rows_apart,
        mutants={**divided, "half the noise": twice_epsilon("least_flip"), "loaded coins": loaded_coins},
    ),
    local(
        "HadamardResponse",
        partial(transformer, HadamardResponse, 5),
        rows_apart,
        mutants={**coined, **divided, "size of the sets forgotten": other_parts(1)},
    ),
    local(
        "LocalLaplace",
        partial(transformer, LocalLaplace, (0, 1)),
        numbers_apart,
        mutants={
            **numeric,
            "half the noise": twice_epsilon("DiscreteLaplaceMechanism"),
            "noise of half the scale that is said": smaller_steps,
        },
    ),
    local(
        "PiecewiseMechanism",
        partial(transformer, PiecewiseMechanism, (0, 1)),
        numbers_apart,
        mutants={**coined, **numeric, "size of the window forgotten": other_parts(1)},
    ),
    local(
        "LocalDPNaiveBayes",
        naive_bayes,
        labelled_rows,
        mutants={
            **coined,
            "budget not divided among tables": undivided(_base),
            "bare label": bare_label,
        },
    ),
]

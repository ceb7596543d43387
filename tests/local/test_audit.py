"""What reports tell about a row, measured: no more than epsilon, and nearly that for the worst pair of rows.

Each audit draws reports of two rows, many at once (rows are independent), and takes the event that tells them apart
best, by the exact law. Twins that are broken on purpose have to be caught. A right mechanism fails an audit with
probability 1e-6 at most: two Clopper-Pearson limits at 5e-7.
"""

import math

import numpy as np
import pytest

from skdp.local import (
    HadamardResponse,
    LocalDPNaiveBayes,
    LocalLaplace,
    PiecewiseMechanism,
    RandomizedResponse,
    UnaryEncoder,
)
from skdp.mechanisms import LocalMechanism
from tests.auditing import clopper_pearson

pytestmark = pytest.mark.audit

ERROR = 0.5e-6
RUNS = 200_000
EPSILON = 3.0


def lower_bound(hits, neighbour_hits):
    low = clopper_pearson(int(hits), RUNS, ERROR)[0]
    high = clopper_pearson(int(neighbour_hits), RUNS, ERROR)[1]
    return math.log(low / high)


def reports_of(transformer, row, seed):
    rows = np.repeat(np.asarray(row)[None], RUNS, axis=0)
    return transformer.set_params(random_state=seed).transform(rows)


# For each: the transformer, the row and its neighbour, and the event.
CASES = {
    "randomised response": (RandomizedResponse(3), [0, 0], [1, 1], lambda Z: (Z == 0).all(axis=1)),
    "symmetric bits": (
        UnaryEncoder(3, kind="symmetric"),
        [0, 0],
        [1, 1],
        lambda Z: (Z[:, [0, 3]] == 1).all(axis=1) & (Z[:, [1, 4]] == 0).all(axis=1),
    ),
    "optimised bits": (
        UnaryEncoder(3),
        [0, 0],
        [1, 1],
        lambda Z: (Z[:, [0, 3]] == 1).all(axis=1) & (Z[:, [1, 4]] == 0).all(axis=1),
    ),
    "Laplace": (LocalLaplace((0, 1), n_reported="all"), [0, 0], [1, 1], lambda Z: (Z < 0).all(axis=1)),
    "one column of two": (
        RandomizedResponse(3, n_reported=1),
        [0, 0],
        [1, 1],
        lambda Z: ((Z == 0) | np.isnan(Z)).all(axis=1),
    ),
}


def measured(case, transformer=None):
    own, row, other, event = CASES[case]
    transformer = transformer or own
    return lower_bound(event(reports_of(transformer, row, 1)).sum(), event(reports_of(transformer, other, 2)).sum())


@pytest.mark.parametrize("case", CASES)
def test_reports_tell_epsilon(case):
    found = measured(case, CASES[case][0].set_params(epsilon=EPSILON))
    assert found <= EPSILON
    assert found >= 0.85 * EPSILON


@pytest.mark.parametrize("case", CASES)
def test_a_column_forgotten_in_the_split_is_caught(case, monkeypatch):
    transformer = CASES[case][0].set_params(epsilon=EPSILON)
    module = {LocalLaplace: "skdp.local._numeric"}.get(type(transformer), "skdp.local._categorical")
    if transformer.n_reported == 1:
        # All columns are reported, where one was to be.
        monkeypatch.setattr(LocalMechanism, "_choose", lambda self, n, stream: np.ones((n, 2), dtype=bool))
    else:
        monkeypatch.setattr(f"{module}.portion", lambda epsilon, k: epsilon / (k - 1))
    assert measured(case, transformer) > EPSILON


@pytest.mark.parametrize("kind", [HadamardResponse, PiecewiseMechanism])
def test_sets_tell_epsilon_and_twins_are_caught(kind, monkeypatch):
    parameters = {"n_reported": "all", "epsilon": EPSILON}
    transformer = kind(3, **parameters) if kind is HadamardResponse else kind((0, 1), **parameters)
    channel = transformer.privacy_plan(n_features=1).releases[0].mechanism.channels[0]
    ends = (0, 1) if kind is HadamardResponse else (0.0, 1.0)
    only = set(channel.own(0)) - set(channel.own(1 if kind is HadamardResponse else channel.largest))

    def bound():
        sets = []
        for seed, value in enumerate(ends):
            codes = transformer._codes(np.full((RUNS, 1), value))
            mechanism = transformer._mechanism(1)
            released = mechanism.release(codes, transformer_stream(seed))
            sets.append(np.isin(released[:, 0], np.fromiter(only, dtype=np.int64)).sum())
        return lower_bound(*sets)

    def transformer_stream(seed):
        from skdp.mechanisms import NoiseSource

        return NoiseSource(seed).stream("audit")

    assert 0.85 * EPSILON <= bound() <= EPSILON
    # A probability that is off: a mixture weight for a fifth more.
    name = "skdp.local._categorical.portion" if kind is HadamardResponse else "skdp.local._numeric.portion"
    monkeypatch.setattr(name, lambda epsilon, k: 1.2 * epsilon / k)
    wider = transformer._mechanism(1).channels[0]
    only = set(wider.own(0)) - set(wider.own(1 if kind is HadamardResponse else wider.largest))
    assert bound() > EPSILON


def test_reports_of_naive_bayes_tell_epsilon(monkeypatch):
    def bound():
        local = LocalDPNaiveBayes(
            epsilon=EPSILON, categorical_features=[0], n_categories=2, classes=[0, 1], n_reported="all"
        )
        hits = []
        for seed, (x, label) in enumerate([(0, 0), (1, 1)]):
            X, y = np.full((RUNS, 1), x), np.full(RUNS, label)
            reports = local.set_params(random_state=seed).randomize(X, y)
            # The pair of both firsts is the first symbol, or one of its set; the label's first symbol likewise.
            channels = local.privacy_plan(n_features=1).releases[0].mechanism.channels
            inside = [np.isin(column, channel.own(0)) for column, channel in zip(reports.T, channels, strict=True)]
            hits.append(np.all(inside, axis=0).sum())
        return lower_bound(*hits)

    assert 0.8 * EPSILON <= bound() <= EPSILON
    monkeypatch.setattr("skdp.local._naive_bayes.portion", lambda epsilon, k: epsilon)
    assert bound() > EPSILON

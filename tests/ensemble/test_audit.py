"""Empirical lower bounds on what the ensembles give away, on the pairs that the proofs call worst.

PATE: a record that makes its teacher turn on every row. With Gaussian noise the reader sees all noisy votes and all
noisy sizes of the largest vote. With pure noise, one row on which two teachers disagree, or agree because of the
record. SampleAggregate: a record that turns the result of its block from one corner of the bounds to the opposite one.
Every audit has a false-alarm probability of 1e-6 (two Clopper-Pearson limits of 5e-7 each, or 4.9 standard errors) and
fixed seeds; events are chosen on runs of their own. Each also rejects twins that are broken on purpose.
"""

import contextlib
import math

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin

from skdp import PATEClassifier, SampleAggregate, _blocks
from skdp._blocks import over_blocks
from skdp._release import ReleaseSession
from skdp.ensemble import _pate, _sample_aggregate
from skdp.mechanisms import DiscreteLaplaceMechanism, GroupChoices
from skdp.mechanisms._rounded import RoundedMechanism
from tests.auditing import epsilon_lower_bound, mu_lower_bound, separating_event, shift_over_spread
from tests.ensemble.adversaries import MARK, Teacher, Turncoat

pytestmark = pytest.mark.audit

ERROR = 5e-7
PURE, PURE_RUNS = 3.0, 1000
GAUSSIAN, GAUSSIAN_RUNS = 8.0, 300


class Fixed(Teacher):
    """A student that learns nothing."""

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


def hasten(monkeypatch):
    """Leave out what takes time and says nothing here."""
    monkeypatch.setattr(_blocks, "silence", contextlib.nullcontext)
    monkeypatch.setattr(PATEClassifier, "_try_out", lambda *_: None)
    found = {}

    def remembered(compute, X, *rest):
        # The blocks are fixed, and the estimators not random.
        if len(X) not in found:
            found[len(X)] = over_blocks(compute, X, *rest)
        return found[len(X)]

    for module in (_pate, _sample_aggregate):
        monkeypatch.setattr(module, "over_blocks", remembered)


class PATEReader:
    """Fits with a record or without, and reads all that is released."""

    def __init__(self, monkeypatch, epsilon, delta, **parameters):
        hasten(monkeypatch)
        self.model = PATEClassifier(
            Turncoat(),
            student=Fixed(),
            public_X=np.zeros((6, 1)),
            epsilon=epsilon,
            delta=delta,
            n_teachers=2,
            classes=[0, 1],
            **parameters,
        )
        # Blocks as the rows say; both classes in each.
        rows = np.array([[0.0], [0.0], [1.0], [1.0]])
        self.pair = [(rows, [0, 1, 0, 1]), (np.vstack([rows, [[MARK]]]), [0, 1, 0, 1, 0])]
        self.seen = []
        release = ReleaseSession.release

        def reading(this, label, value):
            out = release(this, label, value)
            self.seen.append((label, out))
            return out

        monkeypatch.setattr(ReleaseSession, "release", reading)
        monkeypatch.setattr(_pate, "block_labels", lambda n_rows, n_blocks, stream: np.array([0, 0, 1, 1, 1][:n_rows]))

    def score(self):
        """What is released along the change, each release in units of its noise; or what is chosen."""
        if self.model.delta == 0:
            return float(self.seen[0][1][0])
        total = 0.0
        for label, out in self.seen:
            scale = next(r.mechanism.scale for r in self.plan.releases if r.label == label)
            move = np.sum(out) if label == _pate.AGREEMENT else np.sum(out[:, 0] - out[:, 1])
            # By how much each entry moves: 1.
            total += move / scale**2
        return total

    def outputs(self, data, runs, first_seed):
        found = []
        self.plan = self.model.privacy_plan(n_features=1)
        for i in range(runs):
            self.seen.clear()
            self.model.set_params(random_state=first_seed + i).fit(*data)
            found.append(self.score())
        return found


class CornerTurncoat(RegressorMixin, BaseEstimator):
    """Finds one corner of the bounds, or the opposite one if a marked record is in the block."""

    def fit(self, X, y):
        self.coef_ = np.full(X.shape[1], 9.0 if np.any(X == MARK) else -9.0)
        return self


class BlockReader:
    """Fits on rows with the record or without, and reads the release."""

    def __init__(self, monkeypatch, epsilon, delta, **parameters):
        hasten(monkeypatch)
        size = 3 if delta else 1
        parameters = {"bounds": (-1, 1), "n_blocks": 2, **parameters}
        self.model = SampleAggregate(
            CornerTurncoat(), attributes=("coef_",), epsilon=epsilon, delta=delta, **parameters
        )
        rows = np.full((4, size), 0.25)
        self.pair = [(rows, np.zeros(4)), (np.vstack([rows, np.full((1, size), MARK)]), np.zeros(5))]
        self.seen = []
        release = ReleaseSession.release

        def reading(this, label, value):
            out = release(this, label, value)
            self.seen.append(float(out.sum()))
            return out

        monkeypatch.setattr(ReleaseSession, "release", reading)
        monkeypatch.setattr(
            _sample_aggregate, "block_labels", lambda n_rows, n_blocks, stream: np.array([0, 0, 1, 1, 1][:n_rows])
        )

    def outputs(self, data, runs, first_seed):
        self.seen.clear()
        for i in range(runs):
            self.model.set_params(random_state=first_seed + i).fit(*data)
        return list(self.seen)


def samples(reader, runs, quantile=0.5):
    """An event from pilot runs, and final samples on both data sets, from disjoint seeds."""
    pilot = runs // 3
    seeds = iter(np.cumsum([0, pilot, pilot, runs]))
    pilots = [reader.outputs(data, pilot, int(next(seeds))) for data in reader.pair]
    finals = [reader.outputs(data, runs, int(next(seeds))) for data in reader.pair]
    return separating_event(*pilots, quantile), finals


def half_noise(monkeypatch):
    for mechanism in (RoundedMechanism, DiscreteLaplaceMechanism):
        whole = mechanism.release

        def release(self, value, stream, whole=whole):
            return value + 0.5 * (whole(self, value, stream) - value)

        monkeypatch.setattr(mechanism, "release", release)


def narrow_votes(monkeypatch):
    """One for each row instead of the square root of 2."""
    monkeypatch.setattr(_pate, "votes_l2", math.sqrt)


def only_answered_are_charged(monkeypatch):
    """Tests of agreement as if there were no more than answers."""
    monkeypatch.setattr(_pate, "agreement_l2", lambda n_queries: 1.0)


TRUE_CLAIM = PATEClassifier(public_X=np.zeros((6, 1)), classes=[0, 1], epsilon=GAUSSIAN, delta=1e-5).privacy_plan(
    n_features=1
)
CONFIDENT = {"threshold": 0.5, "max_queries": 1, "threshold_share": 0.9}


@pytest.mark.parametrize("parameters", [{}, CONFIDENT], ids=["votes", "confident"])
def test_pate_gaussian_claim_stands_and_is_nearly_used(parameters, monkeypatch):
    reader = PATEReader(monkeypatch, GAUSSIAN, 1e-5, **parameters)
    claim = TRUE_CLAIM.cost.mu()
    event, finals = samples(reader, GAUSSIAN_RUNS, 0.2)
    bound = mu_lower_bound(*finals, event, ERROR)
    assert bound <= claim, f"claim {claim:.3f} exceeded: at least {bound:.3f} (false alarm 1e-6)"
    mu, error = shift_over_spread(*finals)
    # Which row is answered, if any, is noise as well.
    least = 0.75 if parameters else 0.9
    assert least * claim - 4.9 * error <= mu <= claim + 4.9 * error


@pytest.mark.parametrize(
    ("breakage", "parameters"),
    [(half_noise, {}), (narrow_votes, {}), (half_noise, CONFIDENT), (only_answered_are_charged, CONFIDENT)],
    ids=["half the noise", "1 instead of sqrt 2", "confident, half the noise", "unanswered rows not charged"],
)
def test_pate_gaussian_audit_rejects(breakage, parameters, monkeypatch):
    breakage(monkeypatch)
    _, finals = samples(PATEReader(monkeypatch, GAUSSIAN, 1e-5, **parameters), GAUSSIAN_RUNS)
    mu, error = shift_over_spread(*finals)
    assert mu > TRUE_CLAIM.cost.mu() + 4.9 * error


# The class that nobody says any more.
LOSER = (-1.0, -0.5)


def test_pate_pure_claim_stands_and_is_nearly_used(monkeypatch):
    # The two teachers differ, or, by the record, agree.
    reader = PATEReader(monkeypatch, PURE, 0.0, max_queries=1)
    reader.model.set_params(teacher=Turncoat())
    reader.pair[0][0][0] = MARK
    reader.pair[1][0][0] = MARK
    _, finals = samples(reader, PURE_RUNS)
    bound = epsilon_lower_bound(*finals, LOSER, 0.0, ERROR)
    assert bound <= PURE, f"claim {PURE} exceeded: at least {bound:.2f} (false alarm 1e-6)"
    assert bound >= 0.6 * PURE, f"the audit sees only {bound:.2f} of {PURE}: too blunt to mean anything"


def monotone_choices(monkeypatch):
    """Scores as if they were counts of records, which only rise."""
    whole = GroupChoices.__init__

    def monotone(self, epsilon, sensitivity, monotone=False, bounded_range=False):
        whole(self, epsilon, sensitivity, True, bounded_range)

    monkeypatch.setattr(GroupChoices, "__init__", monotone)


def test_pate_pure_audit_rejects_a_range_of_one(monkeypatch):
    monotone_choices(monkeypatch)
    reader = PATEReader(monkeypatch, PURE, 0.0, max_queries=1)
    for X, _ in reader.pair:
        X[0] = MARK
    _, finals = samples(reader, 3 * PURE_RUNS)
    assert epsilon_lower_bound(*finals, LOSER, 0.0, ERROR) > PURE


# --- SampleAggregate ----------------------------------------------------------------------------------------------


def claim_of(reader):
    return reader.model.privacy_plan(n_features=3).cost.mu()


@pytest.mark.parametrize("bounds", [{}, {"bounds": None, "radius": 1.0}], ids=["box", "ball"])
def test_mean_gaussian_claim_stands_and_is_nearly_used(bounds, monkeypatch):
    reader = BlockReader(monkeypatch, GAUSSIAN, 1e-5, **bounds)
    claim = claim_of(reader)
    event, finals = samples(reader, GAUSSIAN_RUNS, 0.2)
    bound = mu_lower_bound(*finals, event, ERROR)
    assert bound <= claim, f"claim {claim:.3f} exceeded: at least {bound:.3f} (false alarm 1e-6)"
    mu, error = shift_over_spread(*finals)
    assert 0.9 * claim - 4.9 * error <= mu <= claim + 4.9 * error


def half_constant(monkeypatch):
    """The radius instead of the diameter."""
    whole = _sample_aggregate.blocks_l2
    monkeypatch.setattr(_sample_aggregate, "blocks_l2", lambda k, d: whole(k, d) / 2)


def no_clipping(monkeypatch):
    monkeypatch.setattr(_sample_aggregate.Region, "clip", lambda self, moves: moves)


@pytest.mark.parametrize("breakage", [half_noise, half_constant, no_clipping])
def test_mean_gaussian_audit_rejects(breakage, monkeypatch):
    breakage(monkeypatch)
    reader = BlockReader(monkeypatch, GAUSSIAN, 1e-5)
    _, finals = samples(reader, GAUSSIAN_RUNS)
    mu, error = shift_over_spread(*finals)
    assert mu > claim_of(reader) + 4.9 * error


def test_mean_pure_claim_stands_and_is_nearly_used(monkeypatch):
    event, finals = samples(BlockReader(monkeypatch, PURE, 0.0), PURE_RUNS)
    bound = epsilon_lower_bound(*finals, event, 0.0, ERROR)
    assert bound <= PURE, f"claim {PURE} exceeded: at least {bound:.2f} (false alarm 1e-6)"
    assert bound >= 0.5 * PURE, f"the audit sees only {bound:.2f} of {PURE}: too blunt to mean anything"


@pytest.mark.parametrize("breakage", [half_noise, half_constant])
def test_mean_pure_audit_rejects(breakage, monkeypatch):
    breakage(monkeypatch)
    event, finals = samples(BlockReader(monkeypatch, PURE, 0.0), PURE_RUNS)
    assert epsilon_lower_bound(*finals, event, 0.0, ERROR) > PURE


# Results of four blocks on a grid of 552 cells. The one at the left end goes to the right end, by a record: 500 empty
# cells lose 1, 50 others gain 1, out of few that are chosen by the law of the first.
LEFT, RIGHT = ([0, 0, 501, 551], [0, 501, 551, 551])


def median_samples(monkeypatch, runs=1500):
    hasten(monkeypatch)
    model = SampleAggregate(
        lambda X: 0.0, aggregator="median", bounds=(0, 552), grid_size=552, n_blocks=4, epsilon=PURE
    )
    finals = []
    for first, cells in ((0, LEFT), (runs, RIGHT)):
        blocks = [np.array([cell + 0.5]) for cell in cells]
        monkeypatch.setattr(_sample_aggregate, "over_blocks", lambda *_, blocks=blocks: blocks)
        chosen = [float(model.set_params(random_state=first + i).fit([[0.0]]).result_[0]) for i in range(runs)]
        finals.append([502 <= cell < 551 for cell in chosen])
    # Which event it is was computed, not chosen.
    return epsilon_lower_bound(*np.array(finals[::-1], dtype=float), (1.0, 0.5), 0.0, ERROR)


def test_median_claim_stands_and_is_nearly_used(monkeypatch):
    bound = median_samples(monkeypatch)
    assert bound <= PURE, f"claim {PURE} exceeded: at least {bound:.2f} (false alarm 1e-6)"
    assert bound >= 0.5 * PURE, f"the audit sees only {bound:.2f} of {PURE}: too blunt to mean anything"


def test_median_audit_rejects_a_range_of_one(monkeypatch):
    monotone_choices(monkeypatch)
    assert median_samples(monkeypatch) > PURE

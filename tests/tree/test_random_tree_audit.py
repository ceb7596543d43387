"""Empirical lower bounds on what random trees give away, on the pairs that the proofs call worst.

One record against none, with trees that both data sets share. The reader of the leaf counts adds up those of the
record's leaves and class; the reader of the Newton step projects its sums on the difference. Every audit has a
false-alarm probability of 1e-6 (two Clopper-Pearson limits of 5e-7 each) and fixed seeds. The event is chosen on runs
of its own. Each audit also has to reject twins that are broken on purpose: half the noise, no noise to speak of, noise
for one tree only, trees that look at the data, no scaling down.
"""

from fractions import Fraction

import numpy as np
import pytest

from skdp import DPRandomTree
from skdp.accounting import GaussianEvent
from skdp.mechanisms import DiscreteLaplaceMechanism, GammaMechanism, GaussianMechanism, NoiseSource
from skdp.tree import _counts, _random_tree
from skdp.tree._counts import leaf_counts
from skdp.tree._weights import Step, decision, newton_sums, probabilities, record_terms
from tests.auditing import epsilon_lower_bound, mu_lower_bound, separating_event, shift_over_spread

pytestmark = pytest.mark.audit

ERROR = 5e-7
PURE, PURE_RUNS = 3.0, 4000
GAUSSIAN, GAUSSIAN_RUNS = 8.0, 700
TREES = 4
ROW = np.array([[0.3, 0.8]])


class Reader:
    """Releases of the leaf counts of a record, or of none, by the planned mechanism."""

    def __init__(self, epsilon, delta):
        self.model = DPRandomTree(
            epsilon=epsilon,
            delta=delta,
            bounds=(0, 1),
            n_estimators=TREES,
            max_depth=2,
            classes=[0, 1],
            weights="equal",
        )
        self.pair = [(ROW[:n], np.ones(n, dtype=int)) for n in (0, 1)]
        (self.claim,) = self.model.privacy_plan(n_features=2).events
        self.mechanism = self.model.privacy_plan(n_features=2).releases[0].mechanism
        forest = self.model.fit(*self.pair[0]).structure_
        self.counts = [leaf_counts(forest, *data, 2) for data in self.pair]
        self.ties = np.random.default_rng(0)
        self.place = range(TREES), forest.leaves(ROW)[:, 0], 1

    def read(self, released):
        """Sum the record's counts; with Laplace noise, a count beyond 0 or 1 says no more than 0 or 1."""
        own = released[self.place]
        if isinstance(self.claim, GaussianEvent):
            return float(own.sum())
        # A fraction breaks ties, so that an event can be chosen among few values.
        return float(own.clip(0, 1).sum() + 1e-3 * self.ties.uniform())

    def outputs(self, which, runs, first_seed):
        return [
            self.read(self.mechanism.release(self.counts[which], NoiseSource(first_seed + i).stream("leaf counts")))
            for i in range(runs)
        ]

    def fitted(self, which, runs, first_seed):
        return [
            self.read(self.model.set_params(random_state=first_seed + i).fit(*self.pair[which]).leaf_counts_)
            for i in range(runs)
        ]

    def samples(self, runs, quantile=0.5):
        """Pilot and final samples on both data sets, from disjoint seeds."""
        pilot = runs // 3
        seeds = iter(np.cumsum([0, pilot, pilot, runs]))
        pilots = [self.outputs(which, pilot, int(next(seeds))) for which in (0, 1)]
        finals = [self.outputs(which, runs, int(next(seeds))) for which in (0, 1)]
        return separating_event(*pilots, quantile), finals


class StepReader(Reader):
    """Releases of the Newton sums of a record that is scaled down, or of none."""

    def __init__(self, epsilon, delta, terms=record_terms):
        model = DPRandomTree(epsilon=epsilon, delta=delta, bounds=(0, 1), n_estimators=TREES, classes=[0, 1])
        plan = model.privacy_plan(n_features=2)
        self.claim, self.mechanism = plan.events[-1], plan.releases[-1].mechanism
        step, table, base = Step(TREES, 2), np.full((TREES, 1, 1), 3.0), np.full(1, -9.0)
        start = step.first_weights(1.0)
        self.counts = [
            newton_sums(step, lambda r: terms(step, table[:, :, : len(r)], base, start, 1 + r), np.zeros(n, dtype=int))
            for n in (0, 1)
        ]
        self.direction = self.counts[1] / np.linalg.norm(self.counts[1])

    def read(self, released):
        return float(released @ self.direction)


def scale_noise(monkeypatch, factor):
    """Less noise than the plan says."""
    for mechanism in (GaussianMechanism, GammaMechanism):
        whole = mechanism.scale.fget
        monkeypatch.setattr(mechanism, "scale", property(lambda self, whole=whole: factor * whole(self)))
    laplace = DiscreteLaplaceMechanism.lattice_scale.fget
    monkeypatch.setattr(
        DiscreteLaplaceMechanism,
        "lattice_scale",
        property(lambda self: Fraction(factor).limit_denominator() * laplace(self)),
    )


def one_tree(monkeypatch):
    """The sensitivity of one tree, for all of them."""
    monkeypatch.setattr(_counts, "leaf_counts_l1", lambda n_trees: 1.0)
    monkeypatch.setattr(_counts, "leaf_counts_l2", lambda n_trees: 1.0)


# --- leaf counts, pure --------------------------------------------------------------------------------------------


def test_pure_claim_stands_and_is_nearly_used():
    # That all four of the record's counts are positive: the log-ratio is 4 times that of one, which is epsilon / 4.
    one = np.exp(-np.abs(np.arange(-400, 401)) * PURE / TREES)
    assert TREES * np.log(one[400:].sum() / one[401:].sum()) == pytest.approx(PURE)
    event, finals = Reader(PURE, 0.0).samples(PURE_RUNS, 0.75)
    bound = epsilon_lower_bound(*finals, event, 0.0, ERROR)
    assert bound <= PURE, f"claim {PURE} exceeded: at least {bound:.2f} (false alarm 1e-6)"
    assert bound >= 0.5 * PURE, f"the audit sees only {bound:.2f} of {PURE}: too blunt to mean anything"


@pytest.mark.parametrize("factor", [0.5, 1e-2])
def test_pure_audit_rejects_too_little_noise(factor, monkeypatch):
    scale_noise(monkeypatch, factor)
    event, finals = Reader(PURE, 0.0).samples(PURE_RUNS, 0.5)
    assert epsilon_lower_bound(*finals, event, 0.0, ERROR) > PURE


def test_pure_audit_rejects_noise_for_one_tree(monkeypatch):
    one_tree(monkeypatch)
    event, finals = Reader(PURE, 0.0).samples(PURE_RUNS, 0.1)
    assert epsilon_lower_bound(*finals, event, 0.0, ERROR) > PURE


# --- leaf counts, Gaussian ----------------------------------------------------------------------------------------


def test_gaussian_claim_stands_and_is_nearly_used():
    reader = Reader(GAUSSIAN, 1e-5)
    event, finals = reader.samples(GAUSSIAN_RUNS, 0.2)
    claim = reader.claim.mu()
    bound = mu_lower_bound(*finals, event, ERROR)
    assert bound <= claim, f"claim {claim:.3f} exceeded: at least {bound:.3f} (false alarm 1e-6)"
    mu, error = shift_over_spread(*finals)
    assert 0.95 * claim - 4.9 * error <= mu <= claim + 4.9 * error


def test_fitted_attributes_show_no_more_than_the_release():
    reader = Reader(GAUSSIAN, 1e-5)
    claim = reader.claim.mu()
    mu, error = shift_over_spread(reader.fitted(0, 300, 0), reader.fitted(1, 300, 300))
    assert 0.95 * claim - 4.9 * error <= mu <= claim + 4.9 * error


@pytest.mark.parametrize("factor", [0.5, 1e-2])
def test_gaussian_audit_rejects_too_little_noise(factor, monkeypatch):
    scale_noise(monkeypatch, factor)
    reader = Reader(GAUSSIAN, 1e-5)
    _, finals = reader.samples(GAUSSIAN_RUNS)
    mu, error = shift_over_spread(*finals)
    assert mu > reader.claim.mu() + 4.9 * error


def test_gaussian_audit_rejects_noise_for_one_tree(monkeypatch):
    one_tree(monkeypatch)
    reader = Reader(GAUSSIAN, 1e-5)
    _, finals = reader.samples(GAUSSIAN_RUNS)
    mu, error = shift_over_spread(*finals)
    assert mu > reader.claim.mu() + 4.9 * error


def test_structure_from_the_data_is_seen(monkeypatch):
    """Trees are alike on both data sets; a twin whose trees follow the data gives it away without any statistics."""
    reader = Reader(GAUSSIAN, 1e-5)
    one, other = (reader.model.fit(*data).structure_.thresholds for data in reader.pair)
    np.testing.assert_array_equal(one, other)
    whole = _random_tree.grow
    twins = []
    for data in reader.pair:
        middle = np.array([0, 0.1 + data[0].sum() / 2, 1])
        monkeypatch.setattr(_random_tree, "grow", lambda *args, middle=middle: whole(*args[:-1], {0: middle}))
        twins.append(reader.model.fit(*data).structure_.thresholds)
    assert not np.array_equal(*twins)


# --- the Newton step ----------------------------------------------------------------------------------------------


def test_claim_of_the_newton_step_stands_and_is_nearly_used():
    reader = StepReader(2 * GAUSSIAN, 1e-5)
    event, finals = reader.samples(GAUSSIAN_RUNS, 0.2)
    claim = reader.claim.mu()
    assert mu_lower_bound(*finals, event, ERROR) <= claim
    mu, error = shift_over_spread(*finals)
    assert 0.95 * claim - 4.9 * error <= mu <= claim + 4.9 * error


def test_audit_of_the_newton_step_rejects_half_the_noise(monkeypatch):
    scale_noise(monkeypatch, 0.5)
    reader = StepReader(2 * GAUSSIAN, 1e-5)
    _, finals = reader.samples(GAUSSIAN_RUNS)
    mu, error = shift_over_spread(*finals)
    assert mu > reader.claim.mu() + 4.9 * error


def test_audit_of_the_newton_step_rejects_missing_scaling():
    def unscaled(step, scores, base, weights, codes):
        p = probabilities(decision(base, scores, weights))
        centred = np.concatenate([scores, np.ones((1, 1, len(codes)))])
        return centred * np.sqrt(p[0] * p[1]), centred[:, 0] * ((codes == 1) - p[1])

    reader = StepReader(2 * GAUSSIAN, 1e-5, unscaled)
    _, finals = reader.samples(GAUSSIAN_RUNS)
    mu, error = shift_over_spread(*finals)
    assert mu > reader.claim.mu() + 4.9 * error


def test_pure_claim_of_the_newton_step(monkeypatch):
    reader = StepReader(5 * PURE, 0.0)
    claim = reader.claim.epsilon
    assert claim == pytest.approx(PURE)
    event, finals = reader.samples(PURE_RUNS)
    assert epsilon_lower_bound(*finals, event, 0.0, ERROR) <= claim
    scale_noise(monkeypatch, 0.1)
    event, finals = reader.samples(PURE_RUNS)
    assert epsilon_lower_bound(*finals, event, 0.0, ERROR) > claim

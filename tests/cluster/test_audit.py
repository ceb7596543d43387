"""Empirical lower bounds on what the k-means estimators give away, on the pairs that the proofs call worst.

DPKMeans: a tight cluster, and one record more at a corner of the bounds, far beyond every radius. The reader sees all
four releases, and knows, from the public centres and radii of each, what they are without the record, and what it
adds. SampleAggKMeans: a record that turns the centres of its block from one end of a diameter to the other. Every
audit has a false-alarm probability of 1e-6 (two Clopper-Pearson limits of 5e-7 each, or 4.9 standard errors) and fixed
seeds; events are chosen on runs of their own. Each also rejects twins that are broken on purpose: half the noise, no
clipping of differences, half the constant, division by true counts or by the true number of blocks.
"""

import contextlib

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from skdp import DPKMeans, SampleAggKMeans
from skdp.cluster import _refinement, _sample_aggregate
from skdp.mechanisms import DiscreteLaplaceMechanism
from skdp.mechanisms._rounded import RoundedMechanism
from skdp.sensitivity import nearest
from tests.auditing import epsilon_lower_bound, mu_lower_bound, separating_event, shift_over_spread

pytestmark = pytest.mark.audit

ERROR = 5e-7
PURE, PURE_RUNS = 3.0, 1000
GAUSSIAN, GAUSSIAN_RUNS = 8.0, 300

exact_sums = _refinement.cell_sums


def unclipped_sums(lattice, X, centres, radii, a, b):
    """What a record adds if its difference is not clipped."""
    points = lattice.encode(X)
    cells = nearest(points, centres)
    moves = (points - centres[cells]) / radii[cells][:, None]
    squares = np.minimum(1.0, np.einsum("ij,ij->i", moves, moves))
    sums = np.zeros((len(centres), centres.shape[1] + 2))
    np.add.at(sums, cells, np.column_stack([np.full(len(points), a), moves, b * squares]))
    return sums


class SeenEnoughError(Exception):
    """The rest of the fit is not needed."""


class CellReader:
    """Fits with a record or without, and weighs what is released.

    With Gaussian noise, all four releases: each is projected on what the record would have added, and weighted by its
    part of mu, so that the noise in the weighted sum has variance one whatever the cells. With pure noise, one of them:
    the log likelihood ratio, which is bounded by that release's epsilon.
    """

    def __init__(self, monkeypatch, epsilon, delta, only=None, rows=500):
        self.model = DPKMeans(1 if only is not None else 2, epsilon=epsilon, delta=delta, bounds=(-1, 1))
        self.n_features = 1 if only is not None else 2
        cluster = np.full((rows, self.n_features), -0.5)
        mechanisms = [r.mechanism for r in self.model.privacy_plan(n_features=self.n_features).releases]
        record = np.ones((1, self.n_features))
        self.pair = [cluster, np.vstack([cluster, record])]
        self.added, self.scores = [], []
        sums, session = _refinement.cell_sums, _refinement.ReleaseSession
        release_privately = session.release

        def watched(*arguments):
            lattice, X, *rest = arguments
            whole, own = sums(*arguments), sums(lattice, record, *rest)
            self.added.append((whole - own if len(X) > rows else whole, own))
            return whole

        def release(this, label, value):
            out = release_privately(this, label, value)
            without, own = self.added[-1]
            seen, mechanism = out[: len(own)] - without, mechanisms[len(self.added) - 1]
            if delta:
                self.scores.append(
                    np.sum(seen * own) / np.linalg.norm(own) * mechanism.sensitivity / mechanism.scale**2
                )
            else:
                self.scores.append(np.sum(np.abs(seen) - np.abs(seen - own)) / mechanism.scale)
            if only == len(self.scores) - 1:
                raise SeenEnoughError
            return out

        self.weigh = np.sum if only is None else lambda scores: scores[only]
        monkeypatch.setattr(_refinement, "cell_sums", watched)
        monkeypatch.setattr(session, "release", release)

    def outputs(self, data, runs, first_seed):
        found = []
        for i in range(runs):
            self.added, self.scores = [], []
            with contextlib.suppress(SeenEnoughError):
                self.model.set_params(random_state=first_seed + i).fit(data)
                assert len(self.scores) == 4
            found.append(float(self.weigh(self.scores)))
        return found


class Turncoat(BaseEstimator):
    """Puts all centres at one corner of the bounds, or at the opposite one if a given record is in the block."""

    def __init__(self, n_clusters=2):
        self.n_clusters = n_clusters

    def fit(self, X, y=None):
        self.cluster_centers_ = np.full((self.n_clusters, X.shape[1]), 1.0 if np.any(X == 0.75) else -1.0)
        return self


class BlockReader:
    """Fits on rows with the record or without, and reads the release."""

    def __init__(self, monkeypatch, epsilon, delta, n_blocks=2, radius=None):
        # In one dimension, the worst case of Laplace noise is seen half of the time.
        size = 2 if delta else 1
        self.model = SampleAggKMeans(
            size,
            epsilon=epsilon,
            delta=delta,
            bounds=(-1, 1),
            n_blocks=n_blocks,
            reference=np.zeros((size, size)),
            radius=radius,
            estimator=Turncoat(size),
        )
        rows = np.full((40, size), 0.25)
        self.pair = [rows, np.vstack([rows, np.full((1, size), 0.75)])]
        self.seen = []
        whole = _sample_aggregate.postprocess_mean

        def reading(released, *rest):
            self.seen.append(released.sum())
            return whole(released, *rest)

        monkeypatch.setattr(_sample_aggregate, "postprocess_mean", reading)

    def outputs(self, data, runs, first_seed):
        self.seen.clear()
        for i in range(runs):
            self.model.set_params(random_state=first_seed + i).fit(data)
        return list(self.seen)


def samples(reader, runs, quantile=0.5):
    """An event from pilot runs, and final samples on both data sets, from disjoint seeds."""
    pilot = runs // 3
    seeds = iter(np.cumsum([0, pilot, pilot, runs]))
    pilots = [reader.outputs(data, pilot, int(next(seeds))) for data in reader.pair]
    finals = [reader.outputs(data, runs, int(next(seeds))) for data in reader.pair]
    return separating_event(*pilots, quantile), finals


def scale_noise(monkeypatch, factor):
    """Draw so much less noise than is stated."""
    for mechanism in (RoundedMechanism, DiscreteLaplaceMechanism):
        whole = mechanism.release

        def release(self, value, stream, whole=whole):
            return value + factor * (whole(self, value, stream) - value)

        monkeypatch.setattr(mechanism, "release", release)


def claim_of(reader):
    return reader.model.privacy_plan(n_features=2).cost.mu()


# --- DPKMeans -----------------------------------------------------------------------------------------------------


def test_cells_gaussian_claim_stands_and_is_nearly_used(monkeypatch):
    reader = CellReader(monkeypatch, GAUSSIAN, 1e-5)
    claim = claim_of(reader)
    event, finals = samples(reader, GAUSSIAN_RUNS, 0.2)
    bound = mu_lower_bound(*finals, event, ERROR)
    assert bound <= claim, f"claim {claim:.3f} exceeded: at least {bound:.3f} (false alarm 1e-6)"
    mu, error = shift_over_spread(*finals)
    assert 0.85 * claim - 4.9 * error <= mu <= claim + 4.9 * error


@pytest.mark.parametrize("factor", [0.5, 1e-2])
def test_cells_gaussian_audit_rejects_too_little_noise(factor, monkeypatch):
    scale_noise(monkeypatch, factor)
    reader = CellReader(monkeypatch, GAUSSIAN, 1e-5)
    _, finals = samples(reader, GAUSSIAN_RUNS)
    mu, error = shift_over_spread(*finals)
    assert mu > claim_of(reader) + 4.9 * error


def test_cells_gaussian_audit_rejects_missing_clipping(monkeypatch):
    monkeypatch.setattr(_refinement, "cell_sums", unclipped_sums)
    reader = CellReader(monkeypatch, GAUSSIAN, 1e-5)
    _, finals = samples(reader, GAUSSIAN_RUNS)
    mu, error = shift_over_spread(*finals)
    assert mu > claim_of(reader) + 4.9 * error


def test_cells_gaussian_audit_rejects_division_by_true_counts(monkeypatch):
    # Means of cells instead of sums, with noise for a guess of 20 rows a cell; there are fewer.
    def divided(*arguments):
        sums = exact_sums(*arguments)
        sums[:, 1:] *= 20 / np.maximum(sums[:, :1] / arguments[4], 1)
        return sums

    monkeypatch.setattr(_refinement, "cell_sums", divided)
    reader = CellReader(monkeypatch, GAUSSIAN, 1e-5, rows=0)
    _, finals = samples(reader, GAUSSIAN_RUNS)
    mu, error = shift_over_spread(*finals)
    assert mu > claim_of(reader) + 4.9 * error


# The first release, of one cell, and the last; with so much in all that each has an epsilon of 3.
SHARES = {0: 0.1, 3: 0.35}


@pytest.mark.parametrize("stage", SHARES)
def test_cells_pure_claim_stands_and_is_partly_used(stage, monkeypatch):
    runs = PURE_RUNS // (2 if stage else 1)
    event, finals = samples(CellReader(monkeypatch, PURE / SHARES[stage], 0.0, stage), runs)
    bound = epsilon_lower_bound(*finals, event, 0.0, ERROR)
    assert bound <= PURE, f"claim {PURE} exceeded: at least {bound:.2f} (false alarm 1e-6)"
    # Laplace noise in two or three coordinates is seldom as telling as its worst case.
    assert bound >= 0.3 * PURE, f"the audit sees only {bound:.2f} of {PURE}: too blunt to mean anything"


@pytest.mark.parametrize("factor", [0.3, 1e-2])
def test_cells_pure_audit_rejects_too_little_noise(factor, monkeypatch):
    scale_noise(monkeypatch, factor)
    event, finals = samples(CellReader(monkeypatch, PURE / SHARES[0], 0.0, 0), PURE_RUNS)
    assert epsilon_lower_bound(*finals, event, 0.0, ERROR) > PURE


# --- SampleAggKMeans ----------------------------------------------------------------------------------------------


def test_blocks_gaussian_claim_stands_and_is_nearly_used(monkeypatch):
    reader = BlockReader(monkeypatch, GAUSSIAN, 1e-5)
    claim = claim_of(reader)
    event, finals = samples(reader, GAUSSIAN_RUNS, 0.2)
    bound = mu_lower_bound(*finals, event, ERROR)
    assert bound <= claim, f"claim {claim:.3f} exceeded: at least {bound:.3f} (false alarm 1e-6)"
    mu, error = shift_over_spread(*finals)
    assert 0.9 * claim - 4.9 * error <= mu <= claim + 4.9 * error


def half_constant(monkeypatch):
    """The radius r sqrt(k) / q instead of the diameter 2 r sqrt(k) / q."""
    for name in ("blocks_l1", "blocks_l2"):
        whole = getattr(_sample_aggregate, name)
        monkeypatch.setattr(_sample_aggregate, name, lambda k, d, whole=whole: whole(k, d) / 2)


def true_blocks(monkeypatch):
    """Divide by the number of blocks with rows, for a public number of blocks that most are empty of."""
    whole = _sample_aggregate.block_sum

    def divided(X, labels, n_blocks, *rest):
        return whole(X, labels, n_blocks, *rest) * n_blocks / max(len(np.unique(labels)), 1)

    monkeypatch.setattr(_sample_aggregate, "block_sum", divided)


def no_clipping(monkeypatch):
    def differences(centres, reference, radii):
        return np.rint((centres - reference) / radii[:, None] * 2.0**20).astype(np.int64)

    monkeypatch.setattr(_sample_aggregate, "clipped_differences", differences)


@pytest.mark.parametrize(
    ("breakage", "parameters"),
    [
        (half_constant, {}),
        (lambda monkeypatch: scale_noise(monkeypatch, 0.5), {}),
        (no_clipping, {"radius": 0.5}),
        (true_blocks, {"n_blocks": 40}),
    ],
    ids=["half the constant", "half the noise", "no clipping", "division by the true number of blocks"],
)
def test_blocks_gaussian_audit_rejects(breakage, parameters, monkeypatch):
    breakage(monkeypatch)
    reader = BlockReader(monkeypatch, GAUSSIAN, 1e-5, **parameters)
    whole = SampleAggKMeans(**reader.model.get_params(deep=False) | {"estimator": None})
    monkeypatch.undo()
    claim = whole.privacy_plan(n_features=2).cost.mu()
    breakage(monkeypatch)
    reader = BlockReader(monkeypatch, GAUSSIAN, 1e-5, **parameters)
    if breakage is true_blocks:
        # Two rows a block, so that the record's block may have rows enough.
        reader.pair = [np.full((2, 2), 0.25), np.array([[0.25, 0.25], [0.25, 0.25], [0.75, 0.75]])]
        monkeypatch.setattr(
            _sample_aggregate, "block_labels", lambda n_rows, n_blocks, stream: np.zeros(n_rows, dtype=np.intp)
        )
    _, finals = samples(reader, GAUSSIAN_RUNS)
    mu, error = shift_over_spread(*finals)
    assert mu > claim + 4.9 * error


def test_blocks_pure_claim_stands_and_is_nearly_used(monkeypatch):
    event, finals = samples(BlockReader(monkeypatch, PURE, 0.0), PURE_RUNS)
    bound = epsilon_lower_bound(*finals, event, 0.0, ERROR)
    assert bound <= PURE, f"claim {PURE} exceeded: at least {bound:.2f} (false alarm 1e-6)"
    assert bound >= 0.5 * PURE, f"the audit sees only {bound:.2f} of {PURE}: too blunt to mean anything"


@pytest.mark.parametrize("breakage", [half_constant, lambda monkeypatch: scale_noise(monkeypatch, 0.5)])
def test_blocks_pure_audit_rejects(breakage, monkeypatch):
    breakage(monkeypatch)
    event, finals = samples(BlockReader(monkeypatch, PURE, 0.0), PURE_RUNS)
    assert epsilon_lower_bound(*finals, event, 0.0, ERROR) > PURE

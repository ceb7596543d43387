"""Empirical lower bounds on what naive Bayes gives away, on the pairs that the proof calls worst.

One record against none. The reader of the release sees the noisy sums, of which all else is post-processing, and knows
by how much the record moves each of them. Every audit has a false-alarm probability of 1e-6 (two Clopper-Pearson limits
of 5e-7 each) and fixed seeds. The event is chosen on runs of its own. Each audit also has to reject twins that are
broken on purpose: half the noise, no noise to speak of, no clipping, and noise for one feature where there are more.
"""

import contextlib

import numpy as np
import pytest

from skdp import DPNaiveBayes, _class_sums
from skdp._tables import Reader, columns_for
from skdp.mechanisms import DiscreteLaplaceMechanism, GaussianMechanism
from skdp.naive_bayes import _naive_bayes
from skdp.naive_bayes._sums import Layout, sums_by_class
from tests.auditing import epsilon_lower_bound, mu_lower_bound, separating_event, shift_over_spread

pytestmark = pytest.mark.audit

ERROR = 5e-7
PURE, PURE_RUNS = 3.0, 1500
GAUSSIAN, GAUSSIAN_RUNS = 8.0, 500

COUNTS = {"categorical_features": [0], "n_categories": 2}
TWO_TABLES = {"categorical_features": [0, 1], "n_categories": 2}
MOMENTS = {"bounds": (-1, 1), "numeric": "gaussian"}
MIXED = {**COUNTS, "bounds": (-1, 1), "numeric": "gaussian"}
BINNED = {**COUNTS, "bounds": (-1, 1), "n_bins": 2}


class _SeenEnoughError(Exception):
    """Raised when the release was read: what follows is post-processing."""


class Auditor:
    """Fits on a record or on none, and reads the release."""

    def __init__(self, monkeypatch, epsilon, delta, parameters, n_features, value=1.0):
        self.model = DPNaiveBayes(epsilon=epsilon, delta=delta, classes=[0, 1], **parameters)
        self.pair = [(np.full((n, n_features), value), np.zeros(n, dtype=int)) for n in (0, 1)]
        self.seen = []
        self.mechanism = self.model.privacy_plan(n_features=n_features).releases[0].mechanism
        layout = Layout(columns_for(self.model._check_parameters().columns, n_features, None), 2)

        def reading(sums, *rest):
            self.seen.append(sums.ravel())
            raise _SeenEnoughError

        monkeypatch.setattr(_naive_bayes, "estimate", reading)
        self.difference = sums_by_class(*self.pair[1], layout, self.mechanism).ravel()

    def statistic(self, sums):
        """Log-likelihood ratio of the pair, for noise of the stated law."""
        if isinstance(self.mechanism, GaussianMechanism):
            return sums @ self.difference
        ratio = np.abs(sums).sum() - np.abs(sums - self.difference).sum()
        return ratio / self.mechanism.scale

    def outputs(self, data, runs, first_seed):
        self.seen.clear()
        for i in range(runs):
            with contextlib.suppress(_SeenEnoughError):
                self.model.set_params(random_state=first_seed + i).fit(*data)
        return [self.statistic(sums) for sums in self.seen]

    def samples(self, runs, quantile=0.5):
        """Pilot and final samples on both data sets, from disjoint seeds."""
        pilot = runs // 4
        seeds = iter(np.cumsum([0, pilot, pilot, runs]))
        pilots = [self.outputs(data, pilot, int(next(seeds))) for data in self.pair]
        finals = [self.outputs(data, runs, int(next(seeds))) for data in self.pair]
        sign, threshold = separating_event(*pilots, quantile)
        # Values that are equal to the threshold belong to the event: the noise of counts is discrete.
        return (sign, threshold - 1e-9), finals


def scale_noise(monkeypatch, factor):
    gaussian, laplace = GaussianMechanism.scale.fget, DiscreteLaplaceMechanism.lattice_scale.fget
    monkeypatch.setattr(GaussianMechanism, "scale", property(lambda self: factor * gaussian(self)))

    def lattice_scale(self):
        return laplace(self) * int(1000 * factor) / 1000

    monkeypatch.setattr(DiscreteLaplaceMechanism, "lattice_scale", property(lattice_scale))


def unclipped(self, X, largest=1.0):
    return X * largest


def forget_features(monkeypatch):
    for name in ("class_sums_l1", "class_sums_l2"):
        monkeypatch.setattr(_class_sums, name, lambda n_cells, n_moments, weight: 1.0)


# --- pure ---------------------------------------------------------------------------------------------------------


def attainable(auditor):
    """Log ratio of the event that no touched number is below what the record alone would make it."""
    return np.abs(auditor.difference).sum() / auditor.mechanism.scale


@pytest.mark.parametrize(
    ("parameters", "n_features"), [(COUNTS, 1), (TWO_TABLES, 2), (BINNED, 2), (MOMENTS, 1), (MIXED, 2)], ids=str
)
def test_pure_claim_stands_and_is_nearly_used(parameters, n_features, monkeypatch):
    auditor = Auditor(monkeypatch, PURE, 0.0, parameters, n_features)
    assert attainable(auditor) >= 0.999 * PURE
    event, finals = auditor.samples(PURE_RUNS)
    bound = epsilon_lower_bound(*finals, event, 0.0, ERROR)
    assert bound <= PURE, f"claim {PURE} exceeded: at least {bound:.2f} (false alarm 1e-6)"
    assert bound >= (0.7 if parameters is COUNTS else 0.45) * PURE, f"the audit sees only {bound:.2f} of {PURE}"


@pytest.mark.parametrize("factor", [0.5, 0.001])
def test_pure_audit_rejects_too_little_noise(factor, monkeypatch):
    scale_noise(monkeypatch, factor)
    event, finals = Auditor(monkeypatch, PURE, 0.0, COUNTS, 1).samples(PURE_RUNS)
    assert epsilon_lower_bound(*finals, event, 0.0, ERROR) > PURE


def test_pure_audit_rejects_noise_for_one_feature(monkeypatch):
    forget_features(monkeypatch)
    parameters = {"categorical_features": range(4), "n_categories": 2}
    event, finals = Auditor(monkeypatch, PURE, 0.0, parameters, 4).samples(PURE_RUNS)
    assert epsilon_lower_bound(*finals, event, 0.0, ERROR) > PURE


def test_pure_audit_rejects_missing_clipping(monkeypatch):
    auditor = Auditor(monkeypatch, PURE, 0.0, MOMENTS, 1, value=3.0)
    event, finals = auditor.samples(PURE_RUNS // 2)
    assert epsilon_lower_bound(*finals, event, 0.0, ERROR) <= PURE
    monkeypatch.setattr(Reader, "scaled", unclipped)
    event, finals = Auditor(monkeypatch, PURE, 0.0, MOMENTS, 1, value=3.0).samples(PURE_RUNS)
    assert epsilon_lower_bound(*finals, event, 0.0, ERROR) > PURE


# --- Gaussian -----------------------------------------------------------------------------------------------------


def claim_of(auditor):
    return auditor.model.privacy_plan(n_features=auditor.pair[0][0].shape[1]).cost.mu()


def small_enough(mu, error, claim):
    return mu <= claim + 4.9 * error


@pytest.mark.parametrize(
    ("parameters", "n_features"), [(COUNTS, 1), (TWO_TABLES, 2), (BINNED, 2), (MOMENTS, 3), (MIXED, 3)], ids=str
)
def test_gaussian_claim_stands_and_is_used(parameters, n_features, monkeypatch):
    auditor = Auditor(monkeypatch, GAUSSIAN, 1e-5, parameters, n_features)
    claim = claim_of(auditor)
    # The oracle: in units of the noise, the record moves the sums by exactly mu.
    assert np.linalg.norm(auditor.difference) / auditor.mechanism.scale == pytest.approx(claim, rel=1e-5)
    event, finals = auditor.samples(GAUSSIAN_RUNS, 0.2)
    bound = mu_lower_bound(*finals, event, ERROR)
    assert bound <= claim, f"claim {claim:.3f} exceeded: at least {bound:.3f} (false alarm 1e-6)"
    mu, error = shift_over_spread(*finals)
    assert small_enough(mu, error, claim)
    assert mu >= claim - 4.9 * error


@pytest.mark.parametrize("factor", [0.5, 1e-3])
def test_gaussian_audit_rejects_too_little_noise(factor, monkeypatch):
    scale_noise(monkeypatch, factor)
    auditor = Auditor(monkeypatch, GAUSSIAN, 1e-5, MIXED, 3)
    assert not small_enough(*shift_over_spread(*auditor.samples(GAUSSIAN_RUNS)[1]), claim_of(auditor))


def test_gaussian_audit_rejects_noise_for_one_feature(monkeypatch):
    forget_features(monkeypatch)
    auditor = Auditor(monkeypatch, GAUSSIAN, 1e-5, MIXED, 3)
    assert not small_enough(*shift_over_spread(*auditor.samples(GAUSSIAN_RUNS)[1]), claim_of(auditor))


def test_gaussian_audit_rejects_missing_clipping(monkeypatch):
    auditor = Auditor(monkeypatch, GAUSSIAN, 1e-5, MOMENTS, 1, value=2.0)
    assert small_enough(*shift_over_spread(*auditor.samples(GAUSSIAN_RUNS // 2)[1]), claim_of(auditor))
    monkeypatch.setattr(Reader, "scaled", unclipped)
    auditor = Auditor(monkeypatch, GAUSSIAN, 1e-5, MOMENTS, 1, value=2.0)
    assert not small_enough(*shift_over_spread(*auditor.samples(GAUSSIAN_RUNS)[1]), claim_of(auditor))


def test_gaussian_black_box_rejects_half_the_noise(monkeypatch):
    scale_noise(monkeypatch, 0.5)
    auditor = Auditor(monkeypatch, GAUSSIAN, 1e-5, MIXED, 3)
    event, finals = auditor.samples(2 * GAUSSIAN_RUNS, 0.2)
    assert mu_lower_bound(*finals, event, ERROR) > claim_of(auditor)

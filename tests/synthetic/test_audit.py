"""Empirical lower bounds on what a histogram gives away, by one record and by one group of records.

Whoever reads the release knows which count moves, and by how much; all else is post-processing. Every audit has a
false-alarm probability of 1e-6 (two Clopper-Pearson limits of 5e-7 each) and fixed seeds. The event is chosen on runs
of its own. Runs are cells of one histogram, whose noise is independent. Each audit also has to reject twins that are
broken on purpose: half the noise, no noise to speak of, a group of which all rows count, and noise for one row of a
group.
"""

import numpy as np
import pytest

from skdp import NoisyHistogram, _class_sums, _groups
from skdp.mechanisms import DiscreteLaplaceMechanism, GaussianMechanism
from tests.auditing import epsilon_lower_bound, mu_lower_bound, separating_event, shift_over_spread

pytestmark = pytest.mark.audit

ERROR = 5e-7
PURE, PURE_RUNS = 3.0, 20_000
GAUSSIAN, GAUSSIAN_RUNS = 8.0, 10_000
ROWS = 4


def outputs(model, n_rows, runs, seed):
    """The counts that move: each run has a cell, and a group of so many equal rows, of its own."""
    cells = np.repeat((np.arange(runs) + 0.5) / runs, n_rows)
    groups = None if model.rows_per_group is None else cells
    return model.set_params(n_bins=runs, random_state=seed).fit(cells[:, None], groups=groups).counts_


def samples(epsilon, delta, rows, n_rows, runs):
    """Event, and final samples for nobody and for one group of so many rows, from disjoint seeds."""
    model = NoisyHistogram(epsilon=epsilon, delta=delta, bounds=(0, 1), rows_per_group=rows)
    pilots = [outputs(model, n, runs // 4, seed) for seed, n in ((0, 0), (1, n_rows))]
    finals = [outputs(model, n, runs, seed) for seed, n in ((2, 0), (3, n_rows))]
    sign, threshold = separating_event(*pilots)
    # Values that are equal to the threshold belong to the event: the noise of counts is discrete.
    return model, (sign, threshold - 1e-9), finals


def scale_noise(monkeypatch, factor):
    gaussian, laplace = GaussianMechanism.scale.fget, DiscreteLaplaceMechanism.lattice_scale.fget
    monkeypatch.setattr(GaussianMechanism, "scale", property(lambda self: factor * gaussian(self)))
    monkeypatch.setattr(
        DiscreteLaplaceMechanism, "lattice_scale", property(lambda self: laplace(self) * int(1000 * factor) / 1000)
    )


def count_all_rows(monkeypatch):
    monkeypatch.setattr(_groups, "drawn_rows", lambda members, most, stream: np.arange(len(members)))


def noise_for_one_row(monkeypatch):
    monkeypatch.setattr(_class_sums, "group_sensitivity", lambda sensitivity, rows: sensitivity)


BROKEN = [
    (None, lambda patch: scale_noise(patch, 0.5)),
    (None, lambda patch: scale_noise(patch, 0.001)),
    (ROWS, lambda patch: scale_noise(patch, 0.5)),
    (ROWS, count_all_rows),
    (ROWS, noise_for_one_row),
]
BROKEN_NAMES = ["half the noise", "no noise", "half the noise of a group", "no bound", "noise for a row"]


@pytest.mark.parametrize("rows", [None, 1, ROWS])
def test_pure_claim_stands_and_is_nearly_used(rows):
    # A group has many more rows than count.
    _, event, finals = samples(PURE, 0.0, rows, 1 if rows is None else 5 * rows, PURE_RUNS)
    bound = epsilon_lower_bound(*finals, event, 0.0, ERROR)
    assert bound <= PURE, f"claim {PURE} exceeded: at least {bound:.2f} (false alarm 1e-6)"
    assert bound >= 0.7 * PURE, f"the audit sees only {bound:.2f} of {PURE}"


@pytest.mark.parametrize(("rows", "broken"), BROKEN, ids=BROKEN_NAMES)
def test_pure_audit_rejects_what_is_broken(rows, broken, monkeypatch):
    broken(monkeypatch)
    _, event, finals = samples(PURE, 0.0, rows, 1 if rows is None else 5 * rows, PURE_RUNS)
    assert epsilon_lower_bound(*finals, event, 0.0, ERROR) > PURE


@pytest.mark.parametrize("rows", [None, 1, ROWS])
def test_gaussian_claim_stands_and_is_nearly_used(rows):
    model, event, finals = samples(GAUSSIAN, 1e-5, rows, 1 if rows is None else 5 * rows, GAUSSIAN_RUNS)
    claim = model.privacy_plan(n_features=1).events[0].mu()
    bound = mu_lower_bound(*finals, event, ERROR)
    mu, error = shift_over_spread(*finals)
    assert bound <= claim, f"claim {claim:.3f} exceeded: at least {bound:.3f} (false alarm 1e-6)"
    assert abs(mu - claim) <= 5 * error


@pytest.mark.parametrize(("rows", "broken"), BROKEN, ids=BROKEN_NAMES)
def test_gaussian_audit_rejects_what_is_broken(rows, broken, monkeypatch):
    model = NoisyHistogram(epsilon=GAUSSIAN, delta=1e-5, bounds=(0, 1), n_bins=2, rows_per_group=rows)
    claim = model.privacy_plan(n_features=1).events[0].mu()
    broken(monkeypatch)
    _, event, finals = samples(GAUSSIAN, 1e-5, rows, 1 if rows is None else 5 * rows, GAUSSIAN_RUNS)
    assert mu_lower_bound(*finals, event, ERROR) > claim

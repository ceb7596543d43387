"""A network's records are sampled at the stated rate: what one of them adds to the mean of what is released.

One record against none. The false-alarm probability is 1e-6 (4.9 standard errors), and seeds are fixed. Records that
are in every sample have to be seen.
"""

import numpy as np
import pytest

from skdp import DPMLPClassifier
from skdp.mechanisms import NoiseSource
from skdp.mechanisms.sampled_gaussian import PoissonSampler
from skdp.neural_network import _network
from skdp.neural_network._gradients import GradientSums
from skdp.release.estimator import Shape
from skdp.release.session import ReleaseSession

pytestmark = pytest.mark.audit

SAMPLED_RUNS = 350


class Reader:
    """Fits on a record or on none, and reads the releases."""

    def __init__(self, monkeypatch, epsilon=8.0, **parameters):
        self.model = DPMLPClassifier(
            (4,),
            epsilon=epsilon,
            data_norm=1.0,
            classes=[0, 1],
            expected_n=1,
            **{"batch_size": 1.0, "n_steps": 1, "max_grad_norm": 0.1, **parameters},
        )
        self.pair = [(np.full((n, 2), 0.7), np.ones(n, dtype=int)) for n in (0, 1)]
        self.points, self.outputs = [], []
        steps, at, start = (
            ReleaseSession.steps,
            GradientSums.at,
            _network.initial_normals(22, NoiseSource(0).stream("initial weights"))[:17],
        )

        def reading(session, label, n_rows, attributes=None):
            for rows, release in steps(session, label, n_rows, attributes):

                def read(total, release=release):
                    self.outputs.append(release(total))
                    return self.outputs[-1].copy()

                yield rows, read

        def noting(sums, weights):
            self.points.append(weights.copy())
            at(sums, weights)

        monkeypatch.setattr(ReleaseSession, "steps", reading)
        monkeypatch.setattr(GradientSums, "at", noting)
        # The start is public: let it be the same in all runs.
        monkeypatch.setattr(_network, "initial_normals", lambda size, stream: start)

        _, design = self.model._plan(self.model._check_parameters(), Shape(2, 2))
        rows, step = _network.scaled_rows(self.pair[1][0], 1.0)
        self._own = GradientSums(rows, step, self.pair[1][1], design.layout, design.loss, design.max_norm, 1.0)
        self._at = at

    def statistic(self):
        """The releases, along what the record adds."""
        total = 0.0
        for point, output in zip(self.points, self.outputs, strict=True):
            self._at(self._own, point)
            direction = self._own.sum(None, np.empty_like(point))
            total += output @ direction / np.linalg.norm(direction)
        return total

    def run(self, data, runs, first_seed):
        found = []
        for i in range(runs):
            self.points.clear(), self.outputs.clear()
            self.model.set_params(random_state=first_seed + i).fit(*data)
            found.append(self.statistic())
        return found


def sampled_shift(reader):
    """How far the record moves the mean, in units of the noise, and its standard error."""
    without, with_it = (np.array(reader.run(data, SAMPLED_RUNS, 1000 * i)) for i, data in enumerate(reader.pair))
    noise = reader.model.privacy_plan(n_features=2).releases[0].mechanism.scale
    return (with_it.mean() - without.mean()) / noise, np.sqrt((without.var() + with_it.var()) / SAMPLED_RUNS) / noise


def test_records_are_sampled_at_the_stated_rate(monkeypatch):
    reader = Reader(monkeypatch, batch_size=0.25)
    mu = reader.model.privacy_plan(n_features=2).releases[0].mechanism.mu
    shift, error = sampled_shift(reader)
    assert abs(shift - 0.25 * mu) <= 4.9 * error

    def everyone(self, n_rows, n_samples, stream):
        yield from [np.arange(n_rows)] * n_samples

    monkeypatch.setattr(PoissonSampler, "samples", everyone)
    shift, error = sampled_shift(reader)
    assert shift > 0.25 * mu + 4.9 * error

"""Empirical lower bounds on what a private network gives away, on the pair that the proof calls worst.

One record against none. The reader sees every released gradient, of which all else is post-processing, and projects it
on what the record would add: the weights that a step begins with are public, and so is the record. Every audit has a
false-alarm probability of 1e-6 (two Clopper-Pearson limits of 5e-7 each, or 4.9 standard errors) and fixed seeds. Each
audit also has to reject twins that are broken on purpose.
"""

import numpy as np
import pytest

from skdp import DPMLPClassifier
from skdp._release import ReleaseSession
from skdp.mechanisms import SampledGaussianMechanism
from skdp.mechanisms.poisson import PoissonSampler
from skdp.neural_network import _mlp
from skdp.neural_network._gradients import Clipping, GradientSums
from tests.auditing import mu_lower_bound, separating_event, shift_over_spread

pytestmark = pytest.mark.audit

ERROR = 5e-7
GAUSSIAN, RUNS = 8.0, 300
SAMPLED_RUNS = 350


class Reader:
    """Fits on a record or on none, and reads the releases."""

    def __init__(self, monkeypatch, epsilon=GAUSSIAN, **parameters):
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
        steps, at, start = ReleaseSession.steps, GradientSums.at, _mlp.initial_normals(22, _mlp.NoiseSource(0))[:17]

        def reading(session, label, n_rows):
            for rows, release in steps(session, label, n_rows):

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
        monkeypatch.setattr(_mlp, "initial_normals", lambda size, source: start)

        parameters = self.model._check_parameters()
        rows, step = _mlp.scaled_rows(self.pair[1][0], 1.0)
        layout = parameters.layout(2, 1)
        self._own = GradientSums(
            rows, step, self.pair[1][1], layout, "tanh", _mlp.BinaryLogLoss(), parameters.clipping, 1.0
        )
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

    def samples(self, runs, quantile=0.5):
        """Pilot and final samples on both data sets, from disjoint seeds."""
        pilot = runs // 3
        seeds = iter(np.cumsum([0, pilot, pilot, runs]))
        pilots = [self.run(data, pilot, int(next(seeds))) for data in self.pair]
        finals = [self.run(data, runs, int(next(seeds))) for data in self.pair]
        return separating_event(*pilots, quantile), finals

    @property
    def claim(self):
        return self.model.privacy_plan(n_features=2).cost.mu()


def scale_noise(monkeypatch, factor):
    whole = SampledGaussianMechanism.scale.fget
    monkeypatch.setattr(SampledGaussianMechanism, "scale", property(lambda self: factor * whole(self)))


@pytest.mark.parametrize("parameters", [{}, {"n_steps": 5}, {"clipping": "automatic", "n_steps": 3}], ids=str)
def test_claim_stands_and_is_nearly_used(parameters, monkeypatch):
    reader = Reader(monkeypatch, **parameters)
    event, finals = reader.samples(RUNS, 0.2)
    bound = mu_lower_bound(*finals, event, ERROR)
    assert bound <= reader.claim, f"claim {reader.claim:.3f} exceeded: at least {bound:.3f} (false alarm 1e-6)"
    mu, error = shift_over_spread(*finals)
    assert 0.9 * reader.claim - 4.9 * error <= mu <= reader.claim + 4.9 * error, f"{mu:.3f} for {reader.claim:.3f}"


@pytest.mark.parametrize("n_steps", [1, 5])
def test_half_the_noise_is_rejected(n_steps, monkeypatch):
    scale_noise(monkeypatch, 0.5)
    reader = Reader(monkeypatch, n_steps=n_steps)
    runs = 2 * RUNS if n_steps == 1 else RUNS
    event, finals = reader.samples(runs, 0.2)
    if n_steps == 1:
        assert mu_lower_bound(*finals, event, ERROR) > reader.claim
    mu, error = shift_over_spread(*finals)
    assert mu > reader.claim + 4.9 * error


def test_a_forgotten_layer_is_rejected(monkeypatch):
    squares = GradientSums._squares
    reader = Reader(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(
            GradientSums, "_squares", lambda self, own, *layers: squares(self, own, *(a[:-1] for a in layers))
        )
        _, finals = reader.samples(RUNS)
    mu, error = shift_over_spread(*finals)
    assert mu > reader.claim + 4.9 * error


def test_missing_clipping_is_rejected(monkeypatch):
    reader = Reader(monkeypatch)
    monkeypatch.setattr(Clipping, "factors", lambda self, squares: np.ones_like(squares))
    _, finals = reader.samples(RUNS)
    mu, error = shift_over_spread(*finals)
    assert mu > reader.claim + 4.9 * error


def test_forgotten_steps_are_rejected(monkeypatch):
    # Noise for one step, in five.
    mu_of = Reader(monkeypatch, n_steps=1).model.privacy_plan(n_features=2).releases[0].mechanism.mu
    reader = Reader(monkeypatch, n_steps=5)
    claim = reader.claim
    scale = SampledGaussianMechanism.scale.fget
    own = reader.model.privacy_plan(n_features=2).releases[0].mechanism.mu
    monkeypatch.setattr(SampledGaussianMechanism, "scale", property(lambda self: scale(self) * own / mu_of))
    _, finals = reader.samples(RUNS)
    mu, error = shift_over_spread(*finals)
    assert mu > claim + 4.9 * error


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

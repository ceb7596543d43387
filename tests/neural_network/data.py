"""Small networks for the tests: sums of clipped gradients, and their brute-force counterparts."""

from fractions import Fraction

import numpy as np
from scipy import special

from skdp.neural_network._gradients import GradientSums, Layout
from skdp.neural_network._network import scaled_rows
from skdp.solvers.losses import Huber, LogLoss, SoftmaxLogLoss

LOSSES = {
    "binary": LogLoss(),
    "softmax": SoftmaxLogLoss(4),
    "squared": Huber(4.0, 2),
    "huber": Huber(0.2),
    "far": Huber(4.0),
}


def targets_for(loss, n_rows, rng):
    """Codes or scaled targets."""
    if isinstance(loss, Huber):
        return rng.uniform(-1, 1, (n_rows, loss.outputs))
    return rng.integers(max(2, loss.outputs), size=n_rows)


def fractions(sums, totals):
    """Exact totals of all layers in one vector."""
    parts = []
    for unit, total in zip(sums.units, totals, strict=True):
        integers = [int(high) * 2**26 + int(low) for high, low in zip(total._high, total._low, strict=True)]
        parts += [Fraction(unit) * integer for integer in integers]
    return np.array(parts, dtype=object)


class Problem:
    """Rows, targets, weights and a clipping bound."""

    def __init__(self, loss="binary", hidden=(5,), n_rows=40, max_norm=1.0, seed=0, n_features=3):
        rng = np.random.default_rng(seed)
        self.loss = LOSSES[loss]
        self.layout = Layout((n_features, *hidden, self.loss.outputs))
        self.max_norm = max_norm
        self.X = rng.normal(size=(n_rows, n_features))
        self.y = targets_for(self.loss, n_rows, rng)
        self.weights = rng.normal(size=self.layout.size)

    def sums(self, X=None, y=None, weights=None, lattice=2.0**-20, block_rows=64, kind=GradientSums):
        """The sums of `GradientSums`, of rows of norm 2 at most."""
        X, y = (self.X, self.y) if X is None else (X, y)
        rows, step = scaled_rows(X, 2.0)
        sums = kind(rows, step, y, self.layout, self.loss, self.max_norm, lattice, block_rows=block_rows)
        sums.at(self.weights if weights is None else weights)
        return sums

    def exact(self, rows=None, **kwargs):
        """Their sum over some rows, as fractions."""
        sums = self.sums(**kwargs)
        return fractions(sums, sums.exact(rows))

    def total(self, rows=None, **kwargs):
        """Their sum over some rows."""
        return self.sums(**kwargs).sum(rows, np.empty(self.layout.size)).copy()

    def loss_of(self, weights, i):
        """The loss of one record, by a naive pass through the layers."""
        a = scaled_rows(self.X[i : i + 1], 2.0)[0][0, :-1]
        parts = self.layout.parts(weights)
        for k, part in enumerate(parts):
            z = a @ part[:-1] + part[-1]
            if k < len(parts) - 1:
                a = np.tanh(z)
        y = self.y[i]
        if isinstance(self.loss, Huber):
            r, t = np.abs(z - y), self.loss.largest
            return float(np.sum(np.where(r <= t, r * r / 2, t * (r - t / 2))))
        if self.loss.outputs == 1:
            return float(-special.log_expit(z[0] if y else -z[0]))
        return float(-special.log_softmax(z)[y])

    def gradient(self, i, width=1e-5):
        """The gradient of one record, by central differences."""
        out = np.empty(self.layout.size)
        for j in range(self.layout.size):
            ends = []
            for sign in (1, -1):
                moved = self.weights.copy()
                moved[j] += sign * width
                ends.append(self.loss_of(moved, i))
            out[j] = (ends[0] - ends[1]) / (2 * width)
        return out

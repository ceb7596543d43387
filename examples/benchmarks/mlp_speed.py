"""Time of an epoch of a private network, as a ratio to a plain NumPy loop without privacy, in one process.

The plain loop is mini-batch Adam with the same layers and activations, on shuffled batches of a fixed size. The time of
an epoch is the time that more steps add to a fit, divided by their number. The rounds are interleaved, and results are
medians. Noise is drawn for every weight in every step. The script prints its share, which is large for small batches.
scikit-learn's MLPClassifier is shown for information.

    OMP_NUM_THREADS=1 python examples/benchmarks/mlp_speed.py
"""

import statistics
import time
import warnings

import numpy as np
from scipy import special
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from skdp import DPMLPClassifier
from skdp.mechanisms import NoiseSource, rounded_normal

ROUNDS = 5


def plain_epochs(X, Y, width, batch, n_steps, rng):
    """Train without privacy for a number of steps."""
    n, d = X.shape
    k = Y.shape[1]
    weights = [rng.normal(size=(d, width)) / np.sqrt(d), rng.normal(size=(width, k)) / np.sqrt(width)]
    weights += [np.zeros(width), np.zeros(k)]
    first, second = [np.zeros_like(w) for w in weights], [np.zeros_like(w) for w in weights]
    order, start = rng.permutation(n), 0
    for t in range(1, n_steps + 1):
        if start + batch > n:
            order, start = rng.permutation(n), 0
        rows = order[start : start + batch]
        start += batch
        x = X[rows]
        h = np.tanh(x @ weights[0] + weights[2])
        z = h @ weights[1] + weights[3]
        r = (special.expit(z) if k == 1 else special.softmax(z, axis=1)) - Y[rows]
        back = (r @ weights[1].T) * (1 - h * h)
        gradients = [x.T @ back, h.T @ r, back.sum(axis=0), r.sum(axis=0)]
        for w, g, m, v in zip(weights, gradients, first, second, strict=True):
            g /= batch
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            w -= 1e-3 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)


def timed(action):
    """Return the seconds of a call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def compare(n, d, batch, width=64, k=2, sklearn=False):
    """Print the ratio for one shape."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, d))
    y = rng.integers(k, size=n)
    Y = y[:, None].astype(float) if k == 2 else np.eye(k)[y]
    epoch = -(-n // batch)
    few = max(1, epoch // 4) if epoch > 40 else epoch
    many = few + max(epoch, 20) if epoch <= 40 else 2 * few

    def private(n_steps):
        model = DPMLPClassifier(
            (width,), data_norm=d**0.5, classes=range(k), batch_size=batch, expected_n=n, n_steps=n_steps
        )
        return lambda: model.fit(X, y)

    cases = {
        "private": (private(few), private(many)),
        "plain": tuple(lambda s=s: plain_epochs(X, Y, width, batch, s, rng) for s in (few, many)),
    }
    private(few)(), private(many)()
    times = {name: [] for name in cases}
    for _ in range(ROUNDS):
        for name, (short, long) in cases.items():
            times[name].append((timed(long) - timed(short)) / (many - few) * epoch)
    size = (d + 1) * width + (width + 1) * (1 if k == 2 else k)
    stream = NoiseSource(None).stream("benchmark")
    noise = statistics.median(timed(lambda: rounded_normal(2.0**26, 2**16, stream)) for _ in range(5)) / 2**16 * size
    own, base = (statistics.median(times[name]) for name in ("private", "plain"))
    line = (
        f"{n} x {d}, width {width}, {k} classes, batch {batch}: {1e3 * own:.0f} ms an epoch, ratio {own / base:.2f}; "
        f"of that, noise {epoch * noise / base:.2f}"
    )
    if sklearn:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            short, long = (
                MLPClassifier((width,), "tanh", batch_size=batch, max_iter=i, tol=0, n_iter_no_change=99)
                for i in (1, 3)
            )
            theirs = (timed(lambda: long.fit(X, y)) - timed(lambda: short.fit(X, y))) / 2
        line += f"; scikit-learn {theirs / base:.2f}"
    print(line, flush=True)


def main():
    """Print ratios for a few shapes, and the growth of the time."""
    for n, d in ((39_074, 104), (100_000, 20)):
        for batch in (256, 4096):
            compare(n, d, batch, sklearn=True)
    print("growth with rows, columns, width, classes")
    for n in (10_000, 100_000):
        compare(n, 50, 4096)
    for d in (25, 100, 200):
        compare(40_000, d, 4096)
    for width in (16, 64, 256):
        compare(40_000, 50, 4096, width=width)
    for k in (3, 10, 50):
        compare(40_000, 50, 4096, k=k)


if __name__ == "__main__":
    main()

"""Time of noisy gradient descent in one process, as a ratio to a plain NumPy loop and to a prototype, and its growth.

The rounds are interleaved, with one thread, and the result is the median of the ratios. Both sides take the same
numbers of steps over the same features, in batches of the same expected size, with momentum. The plain loop shuffles,
adds no noise and clips nothing. The prototype samples, clips and adds noise of NumPy's generator.

The last part is about fits with defaults: where their time goes, and the bytes of rows that they read in a second,
beside those that a copy of the same rows reads.

    OMP_NUM_THREADS=1 python examples/benchmarks/descent_speed.py [epochs | growth | parts]
"""

import cProfile
import math
import os
import pstats
import statistics
import sys
import time
import tracemalloc
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from skdp import DPSGDClassifier

ROUNDS = 9
EPOCHS = 10
SHAPES = ((39_074, 104), (100_000, 20))
BATCHES = (256, 4096)


def timed(action):
    """Return the seconds of a call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def problem(n_rows, n_features, n_classes=2, seed=0):
    """Return rows in the unit ball, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n_rows, n_features)) / math.sqrt(n_features)
    scores = (X - X.mean(axis=0)) @ rng.normal(size=(n_features, n_classes)) * 20
    return X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


def plain(X, y, batch, epochs, rate=0.1, momentum=0.9, seed=0):
    """Run shuffled mini-batches without privacy."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([X, np.full(len(X), 0.3)])
    w, v = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for _ in range(epochs):
        order = rng.permutation(len(X))
        for start in range(0, len(X), batch):
            rows = order[start : start + batch]
            block = X[rows]
            residual = 1 / (1 + np.exp(-(block @ w))) - y[rows]
            v *= momentum
            v -= rate / len(rows) * (residual @ block)
            w += v
    return w


def prototype(X, y, batch, epochs, clip=0.3, noise=1.0, rate=0.1, seed=0):
    """Run Poisson samples, clipping and floating-point noise, in a simple implementation."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([X, np.full(len(X), 0.3)])
    n, d = X.shape
    norms = np.linalg.norm(X, axis=1)
    q = 1 / math.ceil(n / batch)
    w, total = np.zeros(d), np.zeros(d)
    steps = int(epochs / q)
    for t in range(steps):
        rows = np.flatnonzero(rng.random(n) < q)
        block = X[rows]
        residual = 1 / (1 + np.exp(-(block @ w))) - y[rows]
        residual *= np.minimum(1, clip / (np.abs(residual) * norms[rows] + 1e-12))
        w -= rate / (n * q) * (residual @ block + noise * clip * rng.standard_normal(d))
        if t >= steps // 2:
            total += w
    return total


def private(X, y, batch, epochs, n_classes=2):
    """Run the estimator with the same number of steps."""
    n = len(X)
    steps = epochs * math.ceil(n / batch)
    return DPSGDClassifier(
        data_norm=1.0, classes=range(n_classes), expected_n=n, batch_size=batch, n_steps=steps, eta0=0.1
    ).fit(X, y)


def epochs():
    """Print the ratios to the plain loop and to the prototype."""
    for shape in SHAPES:
        X, y = problem(*shape)
        for batch in BATCHES:
            private(X, y, batch, EPOCHS)  # The noise is calibrated once.
            loops, firsts, own = [], [], []
            for _ in range(ROUNDS):
                base = timed(lambda X=X, y=y, batch=batch: plain(X, y, batch, EPOCHS))
                first = timed(lambda X=X, y=y, batch=batch: prototype(X, y, batch, EPOCHS))
                mine = timed(lambda X=X, y=y, batch=batch: private(X, y, batch, EPOCHS))
                loops.append(mine / base)
                firsts.append(mine / first)
                own.append(mine / EPOCHS)
            print(
                f"{shape[0]} x {shape[1]}, batch {batch}: {1e3 * statistics.median(own):.1f} ms an epoch, "
                f"{statistics.median(loops):.2f} [{min(loops):.2f}, {max(loops):.2f}] of a plain loop, "
                f"{statistics.median(firsts):.2f} of a prototype",
                flush=True,
            )


def growth():
    """Print the growth of time and memory with rows, columns and classes: exponents for a factor of four."""
    base = {"n_rows": 50_000, "n_features": 50, "n_classes": 2}

    def cost(**sizes):
        sizes = {**base, **sizes}
        X, y = problem(**sizes)
        model = DPSGDClassifier(data_norm=1.0, classes=range(sizes["n_classes"]), n_steps=40)
        seconds = statistics.median(timed(lambda: model.fit(X, y)) for _ in range(5))
        tracemalloc.start()
        model.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return seconds, peak, peak / X.nbytes

    for name, low, high in (("n_rows", 50_000, 200_000), ("n_features", 50, 200), ("n_classes", 4, 16)):
        (t0, m0, _), (t1, m1, part) = cost(**{name: low}), cost(**{name: high})
        print(
            f"{name} {low} -> {high}: time {t1 / t0:.2f} (exponent {math.log(t1 / t0, 4):.2f}), "
            f"memory {m1 / m0:.2f} (exponent {math.log(m1 / m0, 4):.2f}; at most {part:.2f} of X)",
            flush=True,
        )


def parts():
    """Print the shares of the parts of a fit in its time, and rates of bytes."""
    for shape in ((10_000, 20), (100_000, 20), (1_000_000, 20), (100_000, 100)):
        X, y = problem(*shape)
        model = DPSGDClassifier(data_norm=1.0, classes=range(2))
        model.fit(X[:1000], y[:1000])
        profile = cProfile.Profile()
        profile.runcall(model.fit, X, y)
        calls = {(Path(file).stem, name): c[3] for (file, _, name), c in pstats.Stats(profile).stats.items()}
        seconds = {name: cumulative for (_, name), cumulative in calls.items()}
        whole = seconds["_fit"]
        reading, clipping = seconds["_integer_rows"], seconds["_differentiate"]
        found = {
            "samples": seconds["samples"],
            "reading rows": reading,
            "derivatives and clipping": clipping,
            "products and exact sums": seconds["_block_total"] - reading - clipping,
            "noise": calls["sampled_gaussian", "release"],
        }
        rest = whole - sum(found.values())
        # Rows are stored in single precision.
        (release,) = (r for r in model.privacy_.releases if hasattr(r.mechanism, "rate"))
        n_bytes = 4 * X.size * release.mechanism.rate * model.n_steps_
        stored = X.astype(np.float32)
        other = np.empty_like(stored)
        copying = statistics.median(timed(lambda to=other, rows=stored: np.copyto(to, rows)) for _ in range(9))
        print(
            f"{shape[0]} x {shape[1]}: "
            + ", ".join(f"{name} {part / whole:.0%}" for name, part in {**found, "the rest": rest}.items())
            + f"; {n_bytes / whole / 1e9:.1f} GB a second, {n_bytes / reading / 1e9:.1f} while rows are read; "
            f"a copy reads {stored.nbytes / copying / 1e9:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    for chosen in sys.argv[1:] or ("epochs", "growth", "parts"):
        {"epochs": epochs, "growth": growth, "parts": parts}[chosen]()

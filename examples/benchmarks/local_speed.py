"""Time to randomise rows in the local model, for skdp, plain NumPy noise, and a peer if it is installed.

The script prints the fastest of three runs, for a million values and an epsilon of 1. The peer is diffprivlib. Its
mechanisms take one value at a time, and are timed on a thousandth of the values.
"""

import time

import numpy as np

from skdp.local import (
    HadamardResponse,
    LocalDPNaiveBayes,
    LocalLaplace,
    PiecewiseMechanism,
    RandomizedResponse,
    UnaryEncoder,
)

N = 1_000_000
K = 64


def quickest(call, repeats=3):
    """Return the seconds of the fastest of a few runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def plain_response(codes, rng):
    """Run randomised response with NumPy's generator."""
    keep = rng.random(len(codes)) < (np.e - 1) / (np.e - 1 + K)
    return np.where(keep, codes, rng.integers(K, size=len(codes)))


def plain_bits(codes, rng):
    """Run optimised unary encoding with NumPy's generator."""
    bits = rng.random((len(codes), K), dtype=np.float32) < 1 / (np.e + 1)
    bits[np.arange(len(codes)), codes] = rng.random(len(codes)) < 0.5
    return bits


def main():
    """Print the table."""
    rng = np.random.default_rng(0)
    codes = rng.integers(K, size=N)
    numbers = rng.random((N, 1))
    labels = codes % 5
    naive_bayes = LocalDPNaiveBayes(categorical_features=range(8), n_categories=4, classes=range(5))
    table = np.column_stack([codes % 4] * 8)
    response, bits, noise = (
        lambda: plain_response(codes, rng),
        lambda: plain_bits(codes, rng),
        lambda: numbers + rng.laplace(size=numbers.shape),
    )
    calls = [
        (
            "RandomizedResponse",
            lambda: RandomizedResponse(K).transform(codes[:, None]),
            lambda: plain_response(codes, rng),
        ),
        ("HadamardResponse", lambda: HadamardResponse(K).transform(codes[:, None]), response),
        ("UnaryEncoder, 64 bits", lambda: UnaryEncoder(K).transform(codes[:, None]), bits),
        (
            "LocalLaplace",
            lambda: LocalLaplace((0, 1)).transform(numbers),
            noise,
        ),
        (
            "PiecewiseMechanism",
            lambda: PiecewiseMechanism((0, 1)).transform(numbers),
            noise,
        ),
        ("LocalDPNaiveBayes.randomize, 8 columns", lambda: naive_bayes.randomize(table, labels), None),
        ("LocalDPNaiveBayes.fit, 8 columns", lambda: naive_bayes.fit(table, labels), None),
    ]
    print(f"{'':40} {'seconds':>8} {'of NumPy':>9}")
    for name, call, plain in calls:
        seconds = quickest(call)
        ratio = "" if plain is None else f"{seconds / quickest(plain):9.1f}"
        print(f"{name:40} {seconds:8.3f} {ratio}")
    try:
        from diffprivlib.mechanisms import Binary, Laplace
    except ImportError:
        print("diffprivlib is not installed")
        return
    binary, laplace = Binary(epsilon=1.0, value0="a", value1="b"), Laplace(epsilon=1.0, sensitivity=1.0)
    for name, call in [
        ("diffprivlib Binary", lambda: [binary.randomise("a") for _ in range(N // 1000)]),
        ("diffprivlib Laplace", lambda: [laplace.randomise(0.5) for _ in range(N // 1000)]),
    ]:
        print(f"{name:40} {1000 * quickest(call):8.3f}   (a thousand times a thousandth)")


if __name__ == "__main__":
    main()

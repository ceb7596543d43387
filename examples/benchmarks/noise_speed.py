"""Rates of exact noise: skdp against OpenDP's vector measurements and NumPy's (inexact) generators.

One process, interleaved rounds, medians. Needs `pip install opendp`.

    python examples/benchmarks/noise_speed.py
"""

import statistics
import time

import numpy as np
import opendp.prelude as dp

from skdp.mechanisms import GammaMechanism, NoiseSource, discrete_gaussian, discrete_laplace, rounded_normal

ROUNDS = 5
SCALE = 2.0**30

dp.enable_features("contrib")
stream = NoiseSource().stream("benchmark")
generator = np.random.default_rng()


def rate(draw, size, seconds=0.1):
    """Numbers drawn a second."""
    draw()
    calls, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        draw()
        calls += 1
    return size * calls / elapsed


def opendp_cases(size):
    """OpenDP's vector measurements at its default granularity, and at a coarse one for a known size."""
    values = [0.5] * size
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    sized = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=size)
    kinds = [("laplace", dp.m.make_laplace, dp.l1_distance), ("gaussian", dp.m.make_gaussian, dp.l2_distance)]
    for name, make, metric in kinds:
        default, coarse = make(domain, metric(T=float), scale=1.0), make(sized, metric(T=float), scale=1.0, k=-40)
        yield f"OpenDP {name}", lambda m=default: m(values)
        yield f"OpenDP {name}, k=-40", lambda m=coarse: m(values)


def all_cases(size):
    """Name and sampler, for everything that is compared."""
    gamma = GammaMechanism(1.0, 1.0, size)
    zeros = np.zeros(size)
    return {
        "skdp discrete Laplace": lambda: discrete_laplace(2**30, size, stream),
        "skdp discrete Gaussian": lambda: discrete_gaussian(SCALE, size, stream),
        "skdp rounded normal": lambda: rounded_normal(SCALE, size, stream),
        "skdp L2 (Gamma) vector": lambda: gamma.release(zeros, stream),
        "NumPy laplace": lambda: generator.laplace(size=size),
        "NumPy normal": lambda: generator.normal(size=size),
        **dict(opendp_cases(size)),
    }


def main():
    """Print one table a length."""
    for size in (100, 10_000):
        cases = all_cases(size)
        rates = {name: [] for name in cases}
        for _ in range(ROUNDS):
            for name, draw in cases.items():
                rates[name].append(rate(draw, size))
        fastest = {
            kind: max(statistics.median(r) for name, r in rates.items() if name.startswith("OpenDP") and kind in name)
            for kind in ("laplace", "gaussian")
        }
        print(f"length {size}")
        for name, measured in rates.items():
            median = statistics.median(measured)
            peer = fastest["laplace" if "aplace" in name else "gaussian"]
            print(f"  {name:28s} {median / 1e6:8.3f} M/s, {median / peer:8.1f} times OpenDP's faster variant")


if __name__ == "__main__":
    main()

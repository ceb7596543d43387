"""Outputs of mechanisms of diffprivlib and skdp whose last bit excludes a value.

Run it where diffprivlib can be imported (it needs scikit-learn 1.7 or older):

    python examples/benchmarks/precision_of_peers.py [--outputs 20000]

The values are 0 and 1, which may differ by one record. If 1 plus a double is less than 1/2 in size, it is a multiple of
2^-53, because the double was between -3/2 and -1/2. Therefore a finer output of less than 1/2 can only come from the
value 0. Under pure differential privacy, no such output exists. With a delta, their probability is at most delta.
"""

import argparse

import numpy as np
from diffprivlib import mechanisms

from skdp.mechanisms import DiscreteLaplaceMechanism, GammaMechanism, GaussianMechanism, NoiseSource


def cases():
    """Yield names, and functions that return a noisy number."""
    for name, budget in (("Laplace", {}), ("Gaussian", {"delta": 1e-5}), ("GaussianAnalytic", {"delta": 1e-5})):
        yield f"diffprivlib {name}", getattr(mechanisms, name)(epsilon=1.0, sensitivity=1.0, **budget).randomise
    stream = NoiseSource(None).stream("precision")
    for mechanism in (
        GaussianMechanism(1.0, 1.0, 1),
        GammaMechanism(1.0, 1.0, 1),
        DiscreteLaplaceMechanism(1.0, 1.0, 1, 2.0**-20),
    ):
        yield f"skdp {mechanism.name}", lambda value, m=mechanism: float(m.release([value], stream)[0])


def excludes_one(output):
    """Return whether an output cannot be 1 plus a double."""
    return abs(output) < 0.5 and not (output * 2.0**53).is_integer()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--outputs", type=int, default=20000)
    arguments = parser.parse_args()
    for name, noisy in cases():
        of_0, of_1 = (np.mean([excludes_one(float(noisy(x))) for _ in range(arguments.outputs)]) for x in (0.0, 1.0))
        print(f"{name:30s} {of_0:.2%} of what was made of 0, {of_1:.2%} of what was made of 1", flush=True)


if __name__ == "__main__":
    main()

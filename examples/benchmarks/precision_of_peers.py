"""Which outputs of diffprivlib's mechanisms, and of ours, exclude a value by their last bit alone.

Run where diffprivlib can be imported (it needs scikit-learn 1.7 or older):

    python examples/benchmarks/precision_of_peers.py [--outputs 20000]

The values are 0 and 1, which one record may tell apart. What is 1 plus a double, and less than 1/2 in size, is a
multiple of 2^-53: the double was between -3/2 and -1/2. An output that is less than 1/2 and finer than that was made of
0, for certain. With pure differential privacy, there are no such outputs; with a delta, they are no more than that.
"""

import argparse

import numpy as np
from diffprivlib import mechanisms

from skdp.mechanisms import DiscreteLaplaceMechanism, GammaMechanism, GaussianMechanism, NoiseSource


def cases():
    """Name, and a function that returns a noisy number."""
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
    """Whether it cannot be 1 plus a double."""
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

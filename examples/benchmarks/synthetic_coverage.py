"""Measure how often 95 % intervals that are computed from synthetic rows contain the truth (see the user guide).

python examples/benchmarks/synthetic_coverage.py [--tables 100] [--records 2000] [--epsilon 1]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd

from skdp import Category, DPTableGenerator, Number, Schema

KNOWN = {"missing": "error", "other": "error"}
SCHEMA = Schema(
    {
        "age": Number(18, 90, step=1, missing="error"),
        "ward": Category(["surgery", "medicine"], **KNOWN),
        "days": Number(1, 60, step=1, scale="log", missing="error"),
    },
    target={"back": Category(["no", "yes"], **KNOWN)},
)
WIDTH = 1.96


def stays(n, rng):
    """Draw stays of patients."""
    age, ward = rng.integers(18, 91, n), rng.choice(["surgery", "medicine"], n)
    days = np.minimum(1 + rng.poisson(age / 15 * np.where(ward == "medicine", 1.3, 0.8)), 60)
    risk = 1 / (1 + np.exp(5 - 0.04 * age - 0.2 * days))
    back = np.where(rng.random(n) < risk, "yes", "no")
    return pd.DataFrame({"age": age, "ward": ward, "days": days, "back": back})


def estimates(rows):
    """Return estimates with the standard errors that are usual for rows of people."""
    back, medicine = (rows["back"] == "yes").to_numpy(), (rows["ward"] == "medicine").to_numpy()
    days, (p, q) = rows["days"].to_numpy(float), (back[medicine].mean(), back[~medicine].mean())
    error = np.sqrt(p * (1 - p) / medicine.sum() + q * (1 - q) / (~medicine).sum())
    return {
        "share that came back": (back.mean(), np.sqrt(back.mean() * (1 - back.mean()) / len(rows))),
        "difference of wards": (p - q, error),
        "mean of days": (days.mean(), days.std() / np.sqrt(len(rows))),
    }


def with_noise(generator):
    """Return the share that came back, from released counts, with an error of sampling and noise."""
    counts, n = generator.marginal("back"), generator.n_samples_estimate_
    share, noise = counts.value[1] / counts.value.sum(), counts.standard_error
    of_noise = ((1 - share) ** 2 * noise[1] ** 2 + share**2 * noise[0] ** 2) / n**2
    return share, np.sqrt(share * (1 - share) / n + of_noise)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    truth = {name: value for name, (value, _) in estimates(stays(4_000_000, np.random.default_rng(10**6))).items()}
    hits, offs = {}, {}
    for seed in range(options.tables):
        rows = stays(options.records, np.random.default_rng(seed))
        generator = DPTableGenerator(schema=SCHEMA, epsilon=options.epsilon, delta=1e-6, random_state=seed).fit(rows)
        found = {("real rows", name): value for name, value in estimates(rows).items()}
        synthetic = generator.sample(random_state=seed)
        found |= {("synthetic rows", name): value for name, value in estimates(synthetic).items()}
        found["released counts", "share that came back"] = with_noise(generator)
        for key, (value, error) in found.items():
            hits.setdefault(key, []).append(abs(value - truth[key[1]]) < WIDTH * error)
            offs.setdefault(key, []).append(value - truth[key[1]])
    for key, of in hits.items():
        print(f"{' '.join(key):40} coverage {np.mean(of):.2f}, mean error {np.mean(offs[key]):+.4f}", flush=True)


if __name__ == "__main__":
    main()

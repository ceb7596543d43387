"""Release tables and a model of a public table at several epsilons, for a page with a slider.

``python docs/epsilon_tables.py`` makes the releases again, and writes docs/benchmarks/epsilon_tables.json. The builder
of the documentation only turns this file into a part of a page.
"""

import html
import json
import math
from pathlib import Path

HERE = Path(__file__).resolve().parent
RELEASES = HERE / "benchmarks" / "epsilon_tables.json"
EPSILONS = [0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10]
DELTA, N_ROWS, N_FITS = 1e-6, 3_000, 5
#: What the page shows before the slider is moved, and without JavaScript.
START = EPSILONS.index(1)


def make():
    """Make all releases. Seeds are fixed, because the table is public and the file should be reproducible."""
    import numpy as np
    import pandas as pd

    from skdp import Category, DPAdditiveClassifier, Schema, stats
    from skdp.datasets import load_adult

    adult = load_adult()
    census = pd.DataFrame(adult.table).sample(frac=1, random_state=0)
    rows, others = census[:N_ROWS], census[N_ROWS:]

    def complete(name):
        return Category(adult.schema[name].values, other="error", missing="error")

    columns = dict(adult.schema) | {name: complete(name) for name in ("marital_status", "relationship")}
    schema = Schema(columns, target={"income": Category(["<=50K", ">50K"], other="error", missing="error")})

    def release(statistic, *arguments, epsilon, **options):
        return statistic(rows, *arguments, schema=schema, epsilon=epsilon, random_state=0, **options)

    def bounded(estimate, axis=None):
        low, high = estimate.confidence_interval(0.95, of="noise")
        return [np.ravel(x).tolist() for x in (estimate.value, low, high)]

    def accuracy(epsilon):
        model = DPAdditiveClassifier(schema=schema, epsilon=epsilon, delta=DELTA)
        fits = [model.set_params(random_state=seed).fit(rows) for seed in range(N_FITS)]
        return [fit.score(others, others["income"]) for fit in fits]

    def at(epsilon):
        counts = release(stats.contingency, epsilon=epsilon, columns=["marital_status", "income"])
        hours = release(stats.group_by, "relationship", {"hours_per_week": "mean"}, epsilon=epsilon)["hours_per_week_mean"]
        scores = [
            DPAdditiveClassifier(schema=schema, epsilon=epsilon, delta=DELTA, random_state=seed)
            .fit(rows)
            .score(others, others["income"])
            for seed in range(N_FITS)
        ]
        print(f"epsilon {epsilon:g}", flush=True)
        return {
            "epsilon": epsilon,
            "counts": bounded(counts),
            "hours": bounded(hours),
            "accuracy": [float(np.mean(scores)), min(scores), max(scores)],
        }

    marital, families = schema["marital_status"].values, schema["relationship"].values
    exact_counts = pd.crosstab(rows["marital_status"], rows["income"]).reindex(marital).fillna(0)
    return {
        "counts": {"names": [f"{a}, {b}" for a in marital for b in ("<=50K", ">50K")], "exact": exact_counts.to_numpy().ravel().tolist()},
        "hours": {"names": list(families), "exact": rows.groupby("relationship")["hours_per_week"].mean().reindex(list(families)).tolist()},
        "accuracy": {"most_common": float((others["income"] == "<=50K").mean())},
        "releases": [at(epsilon) for epsilon in EPSILONS],
    }

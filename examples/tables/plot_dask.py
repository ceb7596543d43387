"""
Fit a table that is larger than memory
======================================

Tables that do not fit into memory are kept in Parquet files and read in partitions by Dask. Private estimators take the
collections of Dask in `fit`, as they take rows in memory. Here we write a table in parts, describe it, fit two models
with one budget, and predict partition by partition. Dask is optional: install it by
``pip install 'dask[dataframe,distributed]'``.
"""

# %%
# A table in parts
# ----------------
# Each part is made and written by itself, so that the whole table is never in memory. Real tables have partitions of
# 100 MB or more.

import tempfile
from pathlib import Path

import dask.dataframe as dd
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import (
    BudgetAccountant,
    DPNaiveBayes,
    DPSGDClassifier,
    Number,
    Schema,
    describe,
)

folder = Path(tempfile.mkdtemp())


def visits(part, n=20_000):
    rng = np.random.default_rng(part)
    table = pd.DataFrame(
        {
            "age": np.clip(rng.normal(50, 18, n), 18, 95),
            "pressure": np.clip(rng.normal(130, 20, n), 70, 250),
            "pulse": np.clip(rng.normal(75, 12, n), 30, 220),
        }
    )
    risk = (
        (table["age"] - 50) / 18
        + (table["pressure"] - 130) / 20
        + rng.logistic(size=n)
    )
    return table.assign(ill=np.where(risk > 1, "yes", "no"))


for part in range(8):
    visits(part).to_parquet(folder / f"{part}.parquet")

table = dd.read_parquet(folder)
table

# %%
# Describe the table
# ------------------
# The schema declares what is public. No partition is read before the accountant has admitted the charge.

columns = {
    "age": Number(18, 95),
    "pressure": Number(70, 250),
    "pulse": Number(30, 220),
}
schema = Schema(columns, target=["no", "yes"])
accountant = BudgetAccountant(epsilon=2.0, delta=1e-6)
features = table[list(columns)]
print(
    describe(
        features, schema=Schema(columns), epsilon=0.5, accountant=accountant
    )
)

# %%
# Fit two models
# --------------
# Naive Bayes passes over the rows once. Gradient descent prepares the rows once, keeps them, and passes over them in
# each step. On a cluster, you would create a ``distributed.Client`` first, and change nothing else.

bayes = DPNaiveBayes(epsilon=0.5, schema=schema, accountant=accountant)
bayes.fit(features, table["ill"])
descent = DPSGDClassifier(
    epsilon=0.5, delta=5e-7, n_steps=50, schema=schema, accountant=accountant
)
descent.fit(features, table["ill"])
print(accountant)

# %%
# Predict partition by partition
# ------------------------------
# Attributes of a fitted model are NumPy arrays, so that the model is sent to each partition.

fresh = visits(100)
labels = dd.from_pandas(fresh, npartitions=4)[list(columns)].map_partitions(
    bayes.predict, meta=("ill", "object")
)
print(
    "accuracy of naive Bayes on other visits: "
    f"{np.mean(labels.compute() == fresh['ill']):.2f}"
)
print(
    "accuracy of gradient descent: "
    f"{descent.score(fresh[list(columns)], fresh['ill']):.2f}"
)

# %%
# The same bits as in memory
# --------------------------
# Sums over partitions are exact, so that a fit with the same noise has the same values for any division of the rows. A
# fixed seed makes the noise equal here. Never fix the seed of a model that leaves your hands.

for n_partitions in (1, 3, 8):
    divided = table.repartition(npartitions=n_partitions)
    model = DPNaiveBayes(epsilon=0.5, schema=schema, random_state=0)
    model.fit(divided[list(columns)], divided["ill"])
    released = model.feature_log_prob_[0][1, 8]
    print(f"{n_partitions} partitions: a released number is {released:.15f}")

figure, axis = plt.subplots()
edges = bayes.bin_edges_[0]
for label, density in zip(
    bayes.classes_, np.exp(bayes.feature_log_prob_[0]), strict=True
):
    axis.stairs(
        density[: len(edges) - 1] / np.diff(edges),
        edges,
        label=f"ill: {label}",
        linewidth=2,
    )
axis.set(
    xlabel="age",
    ylabel="density",
    title="Released densities of a column, by label",
)
axis.legend()
plt.show()

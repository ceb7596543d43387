"""
Share a table of people
=======================

**Question.** How can an office share a census table with students and
researchers, if the records must not leave the office? This tutorial releases
the table once, and draws synthetic rows from the release. It compares them
with the real rows, column by column, in pairs, and as training data, and shows
what synthetic rows are not good for.
"""

# %%
# The table
# ---------
# The Adult data set has the answers of 45,222 people in the American census of
# 1994. A random part of them is set aside, to test models.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from skdp import (
    BudgetAccountant,
    Category,
    DPAdditiveClassifier,
    DPTableGenerator,
    Number,
    Schema,
)
from skdp.datasets import load_adult
from skdp.inspection import MarginalsDisplay

adult = load_adult()
NUMBERS = ["age", "education_num", "hours_per_week", "capital_gain"]
CATEGORIES = ["marital_status", "sex"]
FEATURES = NUMBERS + CATEGORIES
census = pd.DataFrame(
    {name: adult.table[name] for name in [*FEATURES, "income"]}
)
in_release = np.random.default_rng(0).random(len(census)) < 0.8
real, fresh = census[in_release], census[~in_release]
print(real.head(4).to_string(index=False))

# %%
# Declare what is public
# ----------------------
# The bounds and categories are those of the code book. No entry is missing or
# outside of the lists. With ``"error"``, such entries are refused, and get no
# noisy counts.


def complete(categories):
    """Declare a column that has no other entries."""
    return Category(categories, other="error", missing="error")


schema = Schema(
    {
        "age": Number(17, 90, step=1, missing="error"),
        "education_num": Number(1, 16, step=1, missing="error"),
        "hours_per_week": Number(1, 99, step=1, missing="error"),
        "capital_gain": Number(
            0, 99_999, scale="log", step=1, missing="error"
        ),
        "marital_status": complete(adult.schema["marital_status"].values),
        "sex": complete(["Female", "Male"]),
    },
    target={"income": complete(["<=50K", ">50K"])},
)

# %%
# Plan the budget
# ---------------
# One person is one record. The office allows epsilon 1 and delta 1e-7 for
# the shared table, and spends all of it on one release. Afterwards, rows can
# be drawn as often as needed. The analysis of the results below is for this
# tutorial only. It compares with real rows, which is possible here because
# Adult is public.

budget = BudgetAccountant(epsilon=1.0, delta=1e-7)
generator = DPTableGenerator(
    schema=schema, epsilon=1.0, delta=1e-7, accountant=budget
)
generator.fit(real)
synthetic = generator.sample()
print(generator.privacy_)
print(synthetic.head(4).to_string(index=False))

# %%
# Columns
# -------
# The shares of single columns nearly agree.


def plot_numbers(axis, column, n_bins=25):
    """Plot the histograms of a column of real and of synthetic rows."""
    edges = np.linspace(schema[column].low, schema[column].high, n_bins)
    for label, rows in {"real": real, "synthetic": synthetic}.items():
        shares = np.histogram(rows[column], edges)[0] / len(rows)
        is_real = label == "real"
        axis.stairs(
            shares,
            edges,
            label=label,
            fill=is_real,
            color="0.7" if is_real else "C0",
            linewidth=2,
        )
    axis.set_title(column, fontsize="medium")


figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
for axis, column in zip(axes, NUMBERS[:3], strict=True):
    plot_numbers(axis, column)
axes[0].set_ylabel("share of rows")
axes[0].legend()

for column in ["marital_status", "income"]:
    shares = pd.DataFrame(
        {
            "real": real[column].value_counts(normalize=True),
            "synthetic": synthetic[column].value_counts(normalize=True),
        }
    )
    print(shares.round(3).to_string(), end="\n\n")

# %%
# Pairs
# -----
# Dependences are harder. The generator chooses the tables of two or three
# columns that it releases. The share of high incomes by age and sex is a
# dependence of three columns.


def plot_share_by_age(axis, rows, title):
    """Plot the share of high incomes by age, for both sexes."""
    age = rows["age"] // 5 * 5 + 2.5
    has_high_income = rows["income"] == ">50K"
    for sex in ["Female", "Male"]:
        of_sex = rows["sex"] == sex
        shares = has_high_income[of_sex].groupby(age[of_sex]).mean()
        axis.plot(shares[shares.index < 75], "o-", markersize=4, label=sex)
    axis.set(title=title, xlabel="age")


figure, axes = plt.subplots(
    1, 2, figsize=(9, 3.2), sharey=True, layout="constrained"
)
plot_share_by_age(axes[0], real, "real rows")
plot_share_by_age(axes[1], synthetic, "synthetic rows")
axes[0].set_ylabel("share of incomes above $50,000")
axes[0].legend()

# %%
# Uncertainty
# -----------
# ``tables_`` lists the released tables. The noise of their counts is public,
# and the display shows it as intervals. For columns that are in no released
# table together, there is only the model.

for columns in generator.tables_:
    if len(columns) > 1:
        print(" x ".join(columns))
display = MarginalsDisplay.from_estimator(generator, "hours_per_week")

# %%
# Training data
# -------------
# Boosted trees are trained on real rows (which is not private) and on
# synthetic rows, and tested on real rows that were set aside. A direct private
# model with the same epsilon answers this one question only.


def boosted_trees():
    """Return boosted trees that read text."""
    codes = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1
    )
    encoder = make_column_transformer(
        (codes, CATEGORIES), remainder="passthrough"
    )
    trees = HistGradientBoostingClassifier(max_iter=60, min_samples_leaf=40)
    return make_pipeline(encoder, trees)


def auc_on_fresh_rows(model, rows):
    """Train a model on rows, and return its AUC on real rows."""
    model.fit(rows[FEATURES], rows["income"])
    probability = model.predict_proba(fresh[FEATURES])[:, 1]
    return roc_auc_score(fresh["income"] == ">50K", probability)


direct = DPAdditiveClassifier(schema=schema, epsilon=1.0, delta=1e-7)
scores = {
    "trees, real rows (not private)": auc_on_fresh_rows(boosted_trees(), real),
    "one direct private model": auc_on_fresh_rows(direct, real),
    "trees, synthetic rows": auc_on_fresh_rows(boosted_trees(), synthetic),
}
for name, score in scores.items():
    print(f"{name:<32} AUC {score:.3f}")

# %%
# What may be published
# ---------------------
# - **Publish:** the synthetic rows, any number of them, everything computed
#   from them, the released tables with their intervals, and the guarantee.
# - **Do not publish:** comparisons with the real rows. If the table were
#   private, each of the figures above would be a release of its own.
# - **Do not use synthetic rows for** standard errors and p-values. Software
#   treats the rows as people, and does not know the noise. Explore and teach
#   with synthetic rows, and run the final analysis on the real rows, with a
#   part of the budget that was kept for it.
#
# :ref:`synthetic_tables` describes the method and all parameters, and
# :ref:`synthetic_benchmarks` compares tables.

plt.show()

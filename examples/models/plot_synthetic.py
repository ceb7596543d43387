"""
Share a table of patients
=========================

A hospital wants to share a table of stays with researchers and students. The rows are about people, so they must not
leave the hospital. This example releases the table once, draws synthetic rows from the release, and compares them with
the real rows. It then does the same with a real census table, and shows what synthetic rows are not good for.
"""

# %%
# A table of stays
# ----------------
# The stays are simulated: age, sex, ward, smoking, blood pressure, days in hospital, and whether the patient came back
# within a month. Some blood pressures are missing.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from skdp import BudgetAccountant, Category, DPAdditiveClassifier, DPTableGenerator, Number, Schema
from skdp.datasets import load_adult
from skdp.inspection import MarginalsDisplay

WARDS = ["surgery", "medicine", "maternity"]


def stays(n, rng):
    """Draw stays of patients."""
    sex = rng.choice(["female", "male"], n)
    ward = rng.choice(WARDS, n, p=[0.4, 0.45, 0.15])
    ward = np.where((ward == "maternity") & (sex == "male"), "surgery", ward)
    age = np.where(ward == "maternity", rng.normal(31, 5, n), 95 - rng.gamma(3, 11, n)).clip(18, 95).astype(int)
    smokes = rng.random(n) < np.where(age < 50, 0.25, 0.12)
    pressure = (100 + 0.5 * age + 8 * smokes + rng.normal(0, 12, n)).clip(70, 220).round()
    days = (1 + rng.negative_binomial(2, 0.3, n) * np.where(ward == "medicine", 1.5, 0.8)).clip(1, 90).astype(int)
    log_odds = -4 + 0.025 * age + 0.08 * days + 0.8 * smokes - 0.5 * (ward == "surgery")
    return pd.DataFrame(
        {
            "age": age,
            "sex": sex,
            "ward": ward,
            "smokes": np.where(smokes, "yes", "no"),
            "pressure": np.where(rng.random(n) < 0.05, np.nan, pressure),
            "days": days,
            "back": np.where(rng.random(n) < 1 / (1 + np.exp(-log_odds)), "yes", "no"),
        }
    )


table = stays(20_000, np.random.default_rng(0))

# %%
# The schema has the public facts: bounds, categories, and the column that users will want to predict.


def words(*values):
    """Declare a column that has no other entries."""
    return Category(list(values), other="error", missing="error")


schema = Schema(
    {
        "age": Number(18, 95, step=1, missing="error"),
        "sex": words("female", "male"),
        "ward": words(*WARDS),
        "smokes": words("no", "yes"),
        "pressure": Number(70, 220, step=1),
        "days": Number(1, 90, step=1, scale="log", missing="error"),
    },
    target={"back": words("no", "yes")},
)

# %%
# One release
# -----------
# The fit spends the whole budget. After it, rows can be drawn as often as needed.

budget = BudgetAccountant(epsilon=1.0, delta=1e-6)
generator = DPTableGenerator(schema=schema, epsilon=1.0, delta=1e-6, accountant=budget, random_state=0).fit(table)
synthetic = generator.sample(random_state=0)
print(generator.privacy_)
print(synthetic.head())

# %%
# Real and synthetic columns
# --------------------------
# The shares of single columns nearly agree.

COLORS = {"real": "0.6", "synthetic": "tab:blue"}
pictures, axes = plt.subplots(2, 3, figsize=(9, 5), layout="constrained")
for axis, name in zip(axes.flat, ["age", "pressure", "days", "ward", "smokes", "back"], strict=True):
    column = schema.get(name, schema.target)
    for k, (label, rows) in enumerate({"real": table, "synthetic": synthetic}.items()):
        if isinstance(column, Number):
            edges = np.linspace(column.low, 40 if name == "days" else column.high, 26)
            shares = np.histogram(rows[name].dropna(), edges)[0] / len(rows)
            look = {"fill": True, "alpha": 0.6} if label == "real" else {"linewidth": 1.8}
            axis.stairs(shares, edges, color=COLORS[label], label=label, **look)
        else:
            shares = rows[name].value_counts(normalize=True).reindex(column.values)
            axis.bar(np.arange(len(shares)) + 0.4 * k - 0.2, shares, width=0.4, color=COLORS[label], label=label)
            axis.set_xticks(range(len(shares)), column.values)
    axis.set_title(name, fontsize="medium")
axes[0, 0].legend(fontsize="small")
pictures.supylabel("share of rows")

# %%
# Real and synthetic pairs
# ------------------------
# Dependences are harder: the generator chooses the tables of two or three columns that it releases. Each picture on the
# right has fewer details than that on the left, because a number is known up to a bin whose width follows from the
# noise.

pairs, axes = plt.subplots(2, 2, figsize=(8, 6), layout="constrained", sharex=True)
bins = [np.arange(18, 97, 3), np.arange(70, 222, 5)]
for axis, (label, rows) in zip(axes[0], {"real": table, "synthetic": synthetic}.items(), strict=True):
    known = rows.dropna()
    counts = np.histogram2d(known["age"], known["pressure"], bins)[0]
    axis.pcolormesh(*bins, counts.T, cmap="Blues", vmin=0, vmax=160)
    axis.set(title=f"{label} rows", ylabel="pressure")
for axis, rows in zip(axes[1], [table, synthetic], strict=True):
    decade = rows["age"] // 10 * 10 + 5
    for smokes, color in (("no", "tab:green"), ("yes", "tab:red")):
        of = rows[rows["smokes"] == smokes]
        shares = (of["back"] == "yes").groupby(decade[of.index]).mean()
        axis.plot(shares.index, shares, marker="o", color=color, label=f"smokes: {smokes}")
    axis.set(xlabel="age", ylabel="share that came back", ylim=(0, 0.6))
axes[1, 0].legend(fontsize="small")

# %%
# What was released
# -----------------
# ``tables_`` lists the released tables. Their counts have a known noise, which the display shows as intervals. For
# columns that are in no released table, there is only the model.

print(*(" x ".join(names) for names in generator.tables_ if len(names) > 1), sep="\n")
MarginalsDisplay.from_estimator(generator, "days")

# %%
# A real table
# ------------
# Seven columns of the census table Adult, at epsilon 1. Boosted trees are trained on synthetic rows, and tested on real
# rows that the generator has not seen. One direct model with the same budget is hardly better here, and clearly better
# on most other tables (:ref:`synthetic_benchmarks`). It answers this one question only.

adult = load_adult()
names = ["age", "education_num", "hours_per_week", "capital_gain", "marital_status", "sex"]
census = pd.DataFrame({name: adult.table[name] for name in [*names, "income"]})
columns = {name: adult.schema[name] for name in names} | {"capital_gain": Number(0, 99_999, step=1, scale="log")}
schema = Schema(columns, target={"income": ["<=50K", ">50K"]})
in_training = np.random.default_rng(0).random(len(census)) < 0.8
train, test = census[in_training], census[~in_training]
private = {"schema": schema, "epsilon": 1.0, "delta": 1e-6, "random_state": 0}
synthetic = DPTableGenerator(**private).fit(train).sample(random_state=0)


def score(rows):
    """Train boosted trees, and return the area under the ROC curve on real rows."""
    is_text = [name for name in names if not isinstance(schema[name], Number)]
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    encoder = make_column_transformer((codes, is_text), remainder="passthrough")
    model = make_pipeline(encoder, HistGradientBoostingClassifier(max_iter=60, min_samples_leaf=40, random_state=0))
    model.fit(rows[names], rows["income"] == ">50K")
    return roc_auc_score(test["income"] == ">50K", model.predict_proba(test[names])[:, 1])


direct = DPAdditiveClassifier(**private).fit(train[names], train["income"])
scores = {
    "trees, real rows (not private)": score(train),
    "one direct private model": roc_auc_score(test["income"] == ">50K", direct.predict_proba(test[names])[:, 1]),
    "trees, synthetic rows": score(synthetic),
}
for name, value in scores.items():
    print(f"{name:32} {value:.3f}")

# %%
# Conclusions need care
# ---------------------
# Software treats synthetic rows as people and does not know the noise. Therefore standard errors, intervals and
# p-values from synthetic rows are too small, and a combination that no synthetic row has may occur. Explore and teach
# with synthetic rows, and run the final analysis on the real rows with a part of the budget that was kept.
# :ref:`synthetic_tables` has figures, and :class:`~skdp.synthetic.DPTableGenerator` describes all parameters.

plt.show()

"""
From raw data to a private model
================================

A table with text and numbers, as it comes; one pipeline; one budget, split over its private steps. What is publicly
known is written down, and costs nothing. What is not known is learned privately, and paid for.
"""

# %%
# The data
# --------
# Loan applications, simulated. Nothing is known of the amounts but that they are amounts of money: they spread over
# several orders of magnitude.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

import skdp
from skdp.naive_bayes import DPNaiveBayes
from skdp.preprocessing import BoundsScaler, DPQuantileBinner, PublicBinner

HOUSING = ["own", "rent", "parents", "other"]
PURPOSE = ["car", "education", "furniture", "business"]


def applications(n, rng):
    """Draw a table of applications, and whether the loans were repaid."""
    housing = rng.choice(HOUSING, n, p=[0.45, 0.4, 0.1, 0.05])
    purpose = rng.choice(PURPOSE, n)
    age = np.clip(rng.gamma(7, 6, n), 18, 95).round()
    amount = np.exp(rng.normal(8.5, 1.1, n)).round(2)
    months = rng.choice([6, 12, 24, 36, 48, 60], n)
    burden = np.log(amount / months) - 5.2 + 0.5 * (purpose == "business") - 0.6 * (housing == "own")
    repaid = rng.uniform(size=n) < 1 / (1 + np.exp(1.6 * burden - 0.03 * (age - 40) - 0.5))
    frame = pd.DataFrame({"age": age, "amount": amount, "months": months, "housing": housing, "purpose": purpose})
    return frame, np.where(repaid, "repaid", "default")


X, y = applications(20_000, np.random.default_rng(0))
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0)
print(X_train.head(3).to_string())

# %%
# The pipeline
# ------------
# - Ages and terms have public bounds: they are scaled, or put into public bins.
# - Categories are public lists, as the form prints them. scikit-learn's encoders learn nothing if they are given, and
#   if unknown ones are let pass.
# - The range of amounts is not known. ``DPQuantileBinner`` finds bins that hold equally many records, anywhere between
#   0 and a billion, and pays for it.
#
# Each row of indicators has one 1 for each column, so that the norm of what reaches the classifier is a public number:
# five columns, each of norm 1 at most.

columns = make_column_transformer(
    (BoundsScaler((18, 95), feature_range=(0, 1)), ["age"]),
    (PublicBinner([0, 9, 18, 30, 42, 54, 72]), ["months"]),
    (DPQuantileBinner(8, bounds=(0, 1e9), scale="symlog"), ["amount"]),
    (
        OneHotEncoder(categories=[HOUSING, PURPOSE], handle_unknown="ignore", sparse_output=False),
        ["housing", "purpose"],
    ),
)
classifier = skdp.ObjPertLogReg(data_norm=5**0.5, classes=["default", "repaid"])
model = Pipeline([("columns", columns), ("classifier", classifier)])

# %%
# One budget for all of it
# ------------------------
# ``allocate`` finds the private steps, splits the budget, and would say so if another step learned from the data. A
# sixth is for the bins.

accountant = skdp.BudgetAccountant(epsilon=1.0, delta=1e-6)
allocation = skdp.allocate(
    model,
    epsilon=1.0,
    delta=1e-6,
    weights={"columns__dpquantilebinner": 1, "classifier": 5},
    accountant=accountant,
)
print(allocation)

model.fit(X_train, y_train)
print(f"\naccuracy, private:         {model.score(X_test, y_test):.3f}")

# %%
# The ledger adds up
# ------------------
# Two charges, one for each private step. Composed, they are no more than what was given.

for record in accountant.records:
    print(f"  {record.estimator:<16} epsilon {record.cost.epsilon:.4f}, delta {record.cost.delta:g}")
total = accountant.total()
print(f"  {'together':<16} epsilon {total.epsilon:.4f}, delta {total.delta:g}")
assert len(accountant) == len(allocation) == 2
assert total.epsilon <= 1.0
assert total.delta <= 1e-6
assert total.epsilon > 0.999

# %%
# What the bins look like
# -----------------------
# The edges were released; the histogram is drawn of the simulated data, which a real analyst would not show.

edges = model.named_steps["columns"].named_transformers_["dpquantilebinner"].bin_edges_[0]
print("  edges:", *(f"{edge:,.0f}" for edge in edges))
figure, axis = plt.subplots(figsize=(7, 3.2), layout="constrained")
axis.hist(X_train["amount"], bins=np.geomspace(10, 1e6, 80), color="0.8")
for edge in edges[1:-1]:
    axis.axvline(edge, color="C0", linewidth=1)
axis.set(xscale="log", xlabel="amount", ylabel="records", title="Private quantile bins of a column of unknown range")

# %%
# The same for naive Bayes
# ------------------------
# It takes codes of categories in place of indicators.

codes = make_column_transformer(
    (DPQuantileBinner(8, bounds=(0, 1e9), scale="symlog", encode="ordinal"), ["amount"]),
    (PublicBinner([0, 9, 18, 30, 42, 54, 72], encode="ordinal"), ["months"]),
    (
        OrdinalEncoder(categories=[HOUSING, PURPOSE], handle_unknown="use_encoded_value", unknown_value=-1),
        ["housing", "purpose"],
    ),
    ("passthrough", ["age"]),
)
bayes = DPNaiveBayes(
    categorical_features=[0, 1, 2, 3], n_categories=[8, 6, 4, 4], bounds=(18, 95), classes=["default", "repaid"]
)
other = Pipeline([("columns", codes), ("classifier", bayes)])
accountant = skdp.BudgetAccountant(epsilon=1.0, delta=1e-6)
skdp.allocate(other, epsilon=1.0, delta=1e-6, accountant=accountant)
other.fit(X_train, y_train)
print(f"\naccuracy, naive Bayes:     {other.score(X_test, y_test):.3f}")
print(f"accuracy, larger class:    {max(np.mean(y_test == 'repaid'), np.mean(y_test == 'default')):.3f}")
print(f"spent: epsilon {accountant.total().epsilon:.4f} in {len(accountant)} charges")
assert accountant.total().epsilon <= 1.0

plt.show()

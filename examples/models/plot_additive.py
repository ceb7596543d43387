"""
One curve for each column: a private model that can be read
===========================================================

A table with text and numbers, one model, and nothing to hide in it: the score of a row is a sum of one number for each
column. Here we learn how to say what is public about such a table, how to fit the model, and how to read its curves
within the noise.
"""

# %%
# Who pays a loan back
# --------------------
# Simulated: 20,000 customers of a bank. We know what each column adds to the odds, for we made it up. The odds are
# best around fifty; income matters up to a point; those with a guarantor pay back more often; and the
# branch makes no difference. The form asks for the categories, and bounds the numbers: that is what makes them public.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import BudgetAccountant, DPAdditiveClassifier
from skdp.inspection import AdditiveTermsDisplay

HOUSING = ["own", "rent", "parents"]
BRANCHES = ["north", "east", "south", "west"]
CURVES = {
    "age": lambda x: 1.5 * np.exp(-(((x - 50) / 15) ** 2)) - 0.7,
    "income": lambda x: 1.6 * np.tanh(x / 30) - 1.1,
    "guarantor": lambda x: np.where(x == "yes", 0.9, -0.2),
    "housing": lambda x: pd.Series(x).map({"own": 0.6, "rent": -0.4, "parents": 0.1}).to_numpy(),
    "branch": lambda x: np.zeros(len(x)),
}

rng = np.random.default_rng(0)


def customers(n):
    """Draw customers, and whether they pay back."""
    table = pd.DataFrame(
        {
            "age": rng.uniform(18, 90, n).round(),
            "income": np.exp(rng.normal(3.3, 0.7, n)).round(1),
            "guarantor": rng.choice(["yes", "no"], n, p=[0.2, 0.8]),
            "housing": rng.choice(HOUSING, n, p=[0.3, 0.6, 0.1]),
            "branch": rng.choice(BRANCHES, n),
        }
    )
    odds = sum(curve(table[name].to_numpy()) for name, curve in CURVES.items())
    return table, np.where(odds + rng.logistic(size=n) > 0, "paid", "default")


X, y = customers(20_000)
held_out = customers(5_000)

# %%
# One fit
# -------
# Categories are listed, numbers get 32 bins between their bounds, and no column is turned into anything else before.
# The budget is charged once. The bank looks at the held-out rows itself, so that their score is not a release.

budget = BudgetAccountant(epsilon=1.0, delta=1e-6)
model = DPAdditiveClassifier(
    epsilon=1.0,
    delta=1e-6,
    bounds=([18, 0], [90, 150]),
    categories={"guarantor": ["yes", "no"], "housing": HOUSING, "branch": BRANCHES},
    classes=["default", "paid"],
    accountant=budget,
)
model.fit(X, y)
share = max(np.mean(held_out[1] == label) for label in ("default", "paid"))
print(f"accuracy on held-out rows: {model.score(*held_out):.3f}; always the same answer: {share:.3f}")
print(model.privacy_)

# %%
# The curves
# ----------
# Steps are bins, and points are categories; incomes are in thousands. The band is the noise's, as it is if columns are
# independent, which we made them; ``bound=True`` adds a wider one that holds whatever the records are. Black is what we
# made up, centred as the curves are. They are somewhat steeper, since private models of two classes are fitted with a
# margin; ``predict_proba`` takes that back.

display = AdditiveTermsDisplay.from_estimator(model, n_cols=3, bound=False)
display.figure_.set_size_inches(10, 5.6)
for ax, name, edges, cells, counts in zip(
    display.axes_, display.term_names, display.bin_edges, display.cell_names, model.cell_counts_, strict=True
):
    places = np.arange(len(cells)) if edges is None else (edges[:-1] + edges[1:]) / 2
    truth = CURVES[name](np.array(cells, dtype=object) if edges is None else places)
    weights = np.maximum(counts, 0)
    ax.plot(
        places, truth - weights @ truth / weights.sum(), "k_" if edges is None else "k--", linewidth=1, markersize=9
    )
display.figure_.suptitle("Added to the score of a customer who pays back, at epsilon 1")

# %%
# The bend in age, the rise of income and the guarantor are there. The branch stays near nothing, as it should. High
# incomes are rare, and the band widens.
#
# One customer
# ------------
# What a model says about one row is a list of as many numbers as there are columns. Anybody who has the model can make
# it, for a row of their own.

row = pd.DataFrame({"age": [27], "income": [18], "guarantor": ["no"], "housing": ["rent"], "branch": ["west"]})
print(f"probability of paying back: {model.predict_proba(row)[0, 1]:.2f}")
for name, part in zip(model.term_names_, model.contributions(row)[0], strict=True):
    print(f"  {name:<10}{part:+.2f}")
print(f"  {'intercept':<10}{model.intercept_[0]:+.2f}")

# %%
# To take along: say what the code book says, and give the table as it is. Curves without their band are half of what is
# to be seen. :ref:`additive_models` has the proof, what bins do, and how accurate these models are;
# :class:`~skdp.additive.DPAdditiveRegressor` is for numbers.

plt.show()

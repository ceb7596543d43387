"""
Additive models: one curve for each column
==========================================

The score of an additive model is a sum with one number for each column. Therefore the whole model is readable as a set
of curves. This example declares what is public about a table with text and numbers, fits a private additive model,
reads its curves within the noise, and explains the score of one row.
"""

# %%
# Loans of a bank
# ---------------
# The records are simulated, so that the true effect of each column is known: 20,000 customers of a bank, and who paid a
# loan back. The odds are highest at the age of fifty. They rise with the income up to a point. Customers with a
# guarantor pay back more often, and the branch has no effect. The form has a list of categories for each text column,
# and limits for each number. Therefore categories and bounds are public.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import (
    BudgetAccountant,
    Category,
    DPAdditiveClassifier,
    Number,
    Schema,
    private_score,
)
from skdp.inspection import AdditiveTermsDisplay

EFFECT_OF_HOUSING = {"own": 0.6, "rent": -0.4, "parents": 0.1}
BRANCHES = ["north", "east", "south", "west"]
EFFECTS = {
    "age": lambda age: 1.5 * np.exp(-(((age - 50) / 15) ** 2)),
    "income": lambda income: 1.6 * np.tanh(income / 30),
    "guarantor": lambda entry: np.where(entry == "yes", 1.1, 0.0),
    "housing": lambda entry: np.vectorize(EFFECT_OF_HOUSING.get)(entry),
    "branch": lambda entry: np.zeros(len(entry)),
}


def true_effect(name, entries):
    """Return the effect of entries of a column on the log-odds."""
    return EFFECTS[name](np.asarray(entries))


def simulate_customers(n, rng):
    """Draw customers, and whether they paid their loan back."""
    table = pd.DataFrame(
        {
            "age": rng.uniform(18, 90, n).round(),
            "income": np.exp(rng.normal(3.3, 0.7, n)).round(1),
            "guarantor": rng.choice(["yes", "no"], n, p=[0.2, 0.8]),
            "housing": rng.choice(
                list(EFFECT_OF_HOUSING), n, p=[0.3, 0.6, 0.1]
            ),
            "branch": rng.choice(BRANCHES, n),
        }
    )
    log_odds = sum(true_effect(name, table[name]) for name in EFFECTS) - 2
    paid = log_odds + rng.logistic(size=n) > 0
    return table.assign(loan=np.where(paid, "paid", "default"))


rng = np.random.default_rng(0)
train, test = simulate_customers(20_000, rng), simulate_customers(5_000, rng)
print(train.head(4).to_string(index=False))

# %%
# One private fit
# ---------------
# The schema lists the categories, and the bounds of the numbers. The model encodes the text itself. The form has no
# other entries and no gaps, so that these are an error. ``interactions=None`` asks for curves only. The fit and its
# score on other customers are charged to one budget.


def complete(*categories):
    """Declare a column that has no other entries."""
    return Category(list(categories), other="error", missing="error")


schema = Schema(
    {
        "age": Number(18, 90, step=1, missing="error"),
        "income": Number(0, 150, missing="error"),
        "guarantor": complete("yes", "no"),
        "housing": complete(*EFFECT_OF_HOUSING),
        "branch": complete(*BRANCHES),
    },
    target={"loan": complete("default", "paid")},
)
budget = BudgetAccountant(epsilon=1.5, delta=1e-6)
model = DPAdditiveClassifier(
    schema=schema,
    epsilon=1.0,
    delta=1e-6,
    interactions=None,
    accountant=budget,
)
model.fit(train)
print(model.privacy_)
print(private_score(model, test, epsilon=0.3, accountant=budget))

# %%
# Curves, and the explanation of one row
# --------------------------------------
# ``explain_local`` returns for each row the contribution of each column to the score, the largest contribution first.
# Anybody with the model can compute the explanation of their own row.

customer = pd.DataFrame(
    {
        "age": [27],
        "income": [18.0],
        "guarantor": ["no"],
        "housing": ["rent"],
        "branch": ["west"],
    }
)
explanation = model.explain_local(customer)[0]
probability = model.predict_proba(customer)[0, 1]
print(f"probability of paying back: {probability:.2f}")
for name, contribution in explanation.items():
    print(f"  {name:<10}{contribution:+.2f}")

# %%
# The first five panels are the curves of the model. Steps are bins, and points are categories. Incomes are in
# thousands. The band is the 95 % interval of the noise alone. The diamonds mark the customer.
#
# The black lines are the true effects. Scores of the model are steeper than log-odds, because the gradients of records
# are clipped. (``predict_proba`` undoes this.) Therefore the true effects are stretched by one factor, the same in all
# panels, and centred as the curves are.

true_scores = sum(true_effect(name, train[name]) for name in EFFECTS)
stretch = np.polyfit(true_scores, model.decision_function(train), 1)[0]


def plot_true_effect(axis, name):
    """Add the true effect of a column to its panel."""
    column = schema[name]
    is_number = isinstance(column, Number)
    if is_number:
        entries = np.linspace(column.low, column.high, 200)
        positions = entries
    else:
        entries = list(column.values)
        positions = range(len(entries))
    centre = true_effect(name, train[name]).mean()
    effect = stretch * (true_effect(name, entries) - centre)
    axis.plot(positions, effect, "k--" if is_number else "k_", markersize=12)


def plot_customer(axis, name):
    """Mark the customer in the panel of a column."""
    column, entry = schema[name], customer[name][0]
    is_number = isinstance(column, Number)
    position = entry if is_number else column.values.index(entry)
    axis.plot(position, explanation[name], "D", color="C1")


figure, axes = plt.subplots(2, 3, figsize=(10, 6.2), layout="constrained")
*panels, last = axes.flat
for axis in panels:
    axis.set_ylim(-2.8, 2.8)
display = AdditiveTermsDisplay.from_estimator(model, bound=False, axes=panels)
for axis, name in zip(panels, display.term_names, strict=True):
    plot_true_effect(axis, name)
    plot_customer(axis, name)

contributions = pd.Series(explanation)[::-1]
last.barh(contributions.index, contributions, color="C1")
last.set_title("one customer", fontsize="small")
figure.suptitle("Added to the score of a customer who pays back, epsilon 1")

# %%
# The model finds the curve of the age, the rise with the income, and the effect of a guarantor. The branch has an
# effect of about zero. High incomes are rare, and the band is wider there.
#
# Summary
# -------
# Declare the columns as the code book describes them, and fit the table as it is. Read each curve together with its
# band. :ref:`additive_models` has the proof, the effect of bins, and the accuracy of these models.
# :class:`~skdp.additive.DPAdditiveRegressor` predicts numbers.

plt.show()

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
# The records are simulated: 20,000 customers of a bank, and who paid a loan back. The true effect of each column on the
# odds is known. The odds are highest at the age of fifty. They rise with the income up to a point. Customers with a
# guarantor pay back more often, and the branch has no effect. The form has a list of categories for each text column,
# and limits for each number. Therefore categories and bounds are public.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import BudgetAccountant, DPAdditiveClassifier, Number, Schema
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
    """Draw customers and labels."""
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
# One private fit
# ---------------
# The schema lists the categories, and the bounds of the numbers, which get up to 32 bins each. The model encodes the
# text itself. ``interactions=None`` asks for curves only. The budget is charged once. The exact score on the held-out
# rows is not private, and the bank does not publish it.

schema = Schema(
    {
        "age": Number(18, 90),
        "income": Number(0, 150),
        "guarantor": ["yes", "no"],
        "housing": HOUSING,
        "branch": BRANCHES,
    },
    target={"loan": ["default", "paid"]},
)
budget = BudgetAccountant(epsilon=1.0, delta=1e-6)
model = DPAdditiveClassifier(schema=schema, epsilon=1.0, delta=1e-6, interactions=None, accountant=budget)
model.fit(X, y)
share = max(np.mean(held_out[1] == label) for label in ("default", "paid"))
print(f"accuracy on held-out rows: {model.score(*held_out):.3f}; more frequent label: {share:.3f}")
print(model.privacy_)

# %%
# Curves, and the explanation of one row
# --------------------------------------
# The first five panels are the curves of the model. Steps are bins, and points are categories. Incomes are in
# thousands. The band is the interval of the noise if columns are independent, which is true here. ``bound=True`` adds a
# wider band, for the largest effect of the noise. The true curves are black, and centred like the private curves. The
# private curves are steeper, because the gradients of records are clipped. ``predict_proba`` corrects for the
# clipping.
#
# ``explain_local`` returns for each row the contribution of each column to the score, the largest contribution first.
# The last panel shows one customer. The diamonds mark the same customer on the curves. Anybody with the model can
# compute the explanation of their own row.

customer = pd.DataFrame({"age": [27], "income": [18], "guarantor": ["no"], "housing": ["rent"], "branch": ["west"]})
explanation = model.explain_local(customer)[0]
print(f"probability of paying back: {model.predict_proba(customer)[0, 1]:.2f}")
for name, part in explanation.items():
    print(f"  {name:<10}{part:+.2f}")

figure, axes = plt.subplots(2, 3, figsize=(10, 6.2), layout="constrained")
*panels, last = axes.flat
display = AdditiveTermsDisplay.from_estimator(model, bound=False, axes=panels)
for ax, name, edges, cells, counts in zip(
    panels, display.term_names, display.bin_edges, display.cell_names, model.cell_counts_, strict=True
):
    # The cells for other and missing entries are last, and empty here.
    n_cells = len(cells) - ("not in list" in cells) - ("missing" in cells)
    numbers = edges is not None
    places = (edges[:n_cells] + edges[1 : n_cells + 1]) / 2 if numbers else np.arange(n_cells)
    truth = CURVES[name](places if numbers else np.array(cells[:n_cells], dtype=object))
    weights = np.maximum(counts[:n_cells], 0)
    style = "k--" if numbers else "k_"
    ax.plot(places, truth - weights @ truth / weights.sum(), style, linewidth=1, markersize=9, label="true curve")
    value = customer[name][0]
    ax.plot(value if numbers else cells.index(value), explanation[name], "D", color="C3", label="one customer")
    ax.set(xlim=(places[0] - 0.5, places[-1] + 0.5), ylim=(-2.2, 2.8))
handles, _ = panels[0].get_legend_handles_labels()
band = plt.Rectangle((0, 0), 1, 1, color="C0", alpha=0.35, linewidth=0)
labels = ["private curve", "true curve", "one customer", "95 % interval of the noise"]
figure.legend([*handles, band], labels, loc="outside lower center", ncols=4)

parts = dict(reversed(explanation.items()))
last.barh(list(parts), list(parts.values()), color="C3")
last.axvline(0, color="0.6", linestyle=":", linewidth=1)
last.set_title("one customer", fontsize="small")
last.set_xlabel("added to the score of paid")
last.tick_params(labelsize="x-small")
figure.suptitle("Added to the score of a customer who pays back, at epsilon 1")

# %%
# The model finds the curve of the age, the rise with the income, and the effect of a guarantor. The branch has an
# effect of about zero. High incomes are rare, so that the bins are wider there.
#
# Summary
# -------
# Declare the columns as the code book describes them, and fit the table as it is. Read each curve together with its
# band. :ref:`additive_models` has the proof, the effect of bins, and the accuracy of these models.
# :class:`~skdp.additive.DPAdditiveRegressor` predicts numbers.

plt.show()

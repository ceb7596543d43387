"""
One budget over a year
======================

A team uses the same records again and again: for a description, a search, a model each month, and its evaluation. The
privacy costs add up. This example charges the releases of one year to one budget. It shows the ledger, composition
rules, a refused fit, and the model card that is published in December.
"""

# %%
# One ledger for the whole team
# -----------------------------
# The team works with four columns of the census table Adult. The ledger is a file. Every script that opens it charges
# the same budget: epsilon 3 and delta 1e-5 for all releases of the year.

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import matplotlib.dates
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import (
    BudgetAccountant,
    DPGridSearchCV,
    ObjPertLogReg,
    Schema,
    describe,
    private_score,
)
from skdp.datasets import load_adult
from skdp.exceptions import BudgetError
from skdp.inspection import model_card

adult = load_adult()
COLUMNS = ["age", "education_num", "hours_per_week", "sex"]
schema = Schema(
    {name: adult.schema[name] for name in COLUMNS},
    target={"income": ["<=50K", ">50K"]},
)
census = pd.DataFrame(adult.table)[[*COLUMNS, "income"]]
in_test = np.random.default_rng(0).uniform(size=len(census)) < 0.2
train, test = census[~in_test], census[in_test]

folder = tempfile.TemporaryDirectory()
budget = BudgetAccountant(
    epsilon=3.0,
    delta=1e-5,
    ledger=Path(folder.name) / "census.db",
    composition="gdp",
)

# %%
# A year of releases
# ------------------
# In January, the team describes the table and searches for a penalty. It fits a model each month, and scores it each
# quarter on records that were held out. The budget covers these records, too. The script takes seconds and not a year.
# Therefore it keeps a list of invented dates, and of the totals so far.

dates, totals = [], []


def record_total(month, day):
    """Keep the date of a charge, and the total after it."""
    dates.append(datetime(2025, month, day, tzinfo=UTC))
    totals.append(budget.total().epsilon)


def fit_model(month, C):
    """Fit the model of a month."""
    model = ObjPertLogReg(
        schema=schema,
        epsilon=0.4,
        delta=1e-6,
        C=C,
        accountant=budget.labelled(f"model {month:02}"),
    )
    return model.fit(train)


description = describe(
    train,
    schema=schema,
    epsilon=0.3,
    delta=1e-6,
    accountant=budget.labelled("description"),
)
record_total(1, 5)
print(description)

search = DPGridSearchCV(
    ObjPertLogReg(schema=schema),
    {"C": [1e-4, 1e-3, 1e-2]},
    epsilon=1.0,
    delta=1e-6,
    accountant=budget.labelled("search"),
)
search.fit(train)
record_total(1, 20)

for month in range(2, 13):
    model = fit_model(month, search.best_params_["C"])
    record_total(month, 1)
    if month % 3 == 0:
        score = private_score(
            model,
            test,
            epsilon=0.3,
            delta=1e-6,
            accountant=budget.labelled("score"),
        )
        record_total(month, 15)
        print(f"month {month:>2}: accuracy {score.value:.3f}")

# %%
# The ledger as text. ``python -m skdp ledger census.db`` prints the same lines.

print(budget.to_text(last=4))

# %%
# A fit that exceeds the budget
# -----------------------------
# The accountant refuses a fit that does not fit into the budget, before the fit reads any record. ``remaining`` returns
# the largest budget that is possible.

print("left for one release:", budget.remaining())
large = ObjPertLogReg(
    schema=schema, epsilon=2.9, delta=1e-6, accountant=budget
)
try:
    large.fit(train)
except BudgetError as error:
    print(f"refused: {error}")

# %%
# The budget over time
# --------------------
# The lower line is the proved total. The upper line is the sum of the epsilons of all charges. The total is
# smaller, because the charges have Gaussian noise. For such charges, the squares of the noise parameters add up,
# not the epsilons.


def plot_charges(axis, label, marker):
    """Mark the charges whose label begins with a text."""
    chosen = [
        i
        for i, record in enumerate(budget.records)
        if record.label.startswith(label)
    ]
    axis.plot(
        [dates[i] for i in chosen],
        [totals[i] for i in chosen],
        marker,
        label=f"after {label}",
    )


sums = budget.to_frame()["epsilon"].cumsum()
figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
axis.step(dates, sums, color="0.6", where="post", label="sum of the charges")
axis.step(dates, totals, color="k", where="post", label="proved total")
axis.axhline(budget.epsilon, color="C1", linestyle="--", label="ceiling")
for label, marker in {
    "description": "^",
    "search": "D",
    "model": "o",
    "score": "s",
}.items():
    plot_charges(axis, label, marker)
axis.xaxis.set_major_formatter(matplotlib.dates.DateFormatter("%b"))
axis.set(xlabel="2025", ylabel="epsilon (delta = 1e-5)", ylim=(0, None))
axis.set_title(f"{len(dates)} charges, one budget")
axis.legend(fontsize=9)
print(f"sum of epsilons {sums.iloc[-1]:.1f}, proved total {totals[-1]:.2f}")

# %%
# Composition rules
# -----------------
# How many of the monthly models does each rule admit? This cell charges the same cost again and again, to accountants
# without a ledger.


def totals_of_models(rule, cost, at_most=100):
    """Return the total after each model that a rule admits."""
    accountant = BudgetAccountant(epsilon=3.0, delta=1e-5, composition=rule)
    totals = []
    while len(totals) < at_most:
        try:
            accountant.charge(cost, label="model")
        except BudgetError:
            break
        totals.append(accountant.total().epsilon)
    return totals


cost_of_model = budget.records[-2].cost
figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
for rule in ["basic", "rdp", "gdp"]:
    spent = totals_of_models(rule, cost_of_model)
    models = np.arange(1, len(spent) + 1)
    axis.plot(models, spent, "o-", markersize=4, label=rule)
    print(f"composition={rule!r}: {len(spent)} models")
axis.axhline(3.0, color="k", linestyle="--", label="budget")
axis.set(xlabel="models", ylabel="epsilon (delta = 1e-5)", ylim=(0, None))
axis.set_title("The same budget under three rules")
axis.legend()

# %%
# The model card
# --------------
# The card of the last model states its guarantee and the whole ledger. The team adds the rest.

card = model_card(
    model,
    title="Incomes, December",
    accountant=budget,
    scores={"accuracy (private_score, epsilon 0.3)": f"{score.value:.3f}"},
    notes={"Contact": "privacy@institute.example"},
)
print(card)
folder.cleanup()

# %%
# Summary
# -------
# Keep one ledger for all releases about the same records. Use ``delta > 0``, and let the accountant compose the
# charges. :ref:`accounting` explains the rules, :ref:`ledger` the file, and :ref:`model_cards` the card.

plt.show()

"""
One budget over a year
======================

A team uses the same records again and again: for a description, a search, a model each month, and its evaluation. The
privacy costs add up. This example follows one budget over a year. It shows the ledger, composition rules, a refused
fit, and the model card that is published in December.
"""

# %%
# One ledger for the whole team
# -----------------------------
# The records are simulated: four answers between -2 and 2, and a label. The ledger is a file. Every script that opens
# it charges the same budget: epsilon 3 for all releases of the year.

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import matplotlib.dates
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import BudgetAccountant, DPGridSearchCV, Number, ObjPertLogReg, Schema, describe
from skdp.exceptions import BudgetError
from skdp.inspection import model_card
from skdp.model_selection import private_score

rng = np.random.default_rng(0)
table = pd.DataFrame(np.clip(rng.normal(size=(20_000, 4)), -2, 2), columns=["a", "b", "c", "d"])
odds = 2 * (table["a"] - table["b"] + 0.5 * table["c"])
table["answer"] = np.where(odds + rng.logistic(size=len(table)) > 0, "yes", "no")
test = rng.uniform(size=len(table)) < 0.2
train, held_out = table[~test], table[test]

schema = Schema({name: Number(-2, 2) for name in "abcd"}, target={"answer": ["no", "yes"]})
folder = tempfile.TemporaryDirectory()
budget = BudgetAccountant(epsilon=3.0, delta=1e-5, ledger=Path(folder.name) / "answers.db", composition="gdp")

# %%
# A year of releases
# ------------------
# In January, the team describes the table and searches for a penalty. It fits a model each month, and scores it each
# quarter on records that were held out. The budget covers these records, too. The script does not run for a year.
# Therefore it notes a date after each charge, and the total so far.

dates, totals = [], []


def note(month, day):
    """Note the date of a charge, and the total."""
    dates.append(datetime(2025, month, day, tzinfo=UTC))
    totals.append(budget.total().epsilon)


described = describe(train, schema=schema, epsilon=0.3, delta=1e-6, accountant=budget.labelled("description"))
note(1, 5)
search = DPGridSearchCV(
    ObjPertLogReg(schema=schema), {"C": [1e-4, 1e-3, 1e-2]}, epsilon=1.0, delta=1e-6, accountant=budget.labelled("C")
)
search.fit(train, train["answer"])
note(1, 20)
for month in range(2, 13):
    model = ObjPertLogReg(
        schema=schema,
        epsilon=0.4,
        delta=1e-6,
        C=search.best_params_["C"],
        accountant=budget.labelled(f"model {month:02}"),
    )
    model.fit(train, train["answer"])
    note(month, 1)
    if month % 3 == 0:
        score = private_score(
            model, held_out, held_out["answer"], epsilon=0.3, delta=1e-6, accountant=budget.labelled("score")
        )
        note(month, 15)
        print(f"month {month:>2}: accuracy {score.value:.3f}, epsilon {budget.total().epsilon:.2f} spent")

# %%
# The ledger as text. ``python -m skdp ledger answers.db`` prints the same lines.

print(budget.to_text(last=4))

# %%
# A fit that exceeds the budget
# -----------------------------
# The accountant refuses a fit that does not fit into the budget, before the fit reads any record. ``remaining`` returns
# the largest budget that is possible.

print(f"one more release could have epsilon {budget.remaining().epsilon:.2f}, at the delta of the budget")
try:
    ObjPertLogReg(schema=schema, epsilon=2.9, delta=1e-6, accountant=budget).fit(train, train["answer"])
except BudgetError as error:
    print(f"refused: {error}")

# %%
# The budget over time
# --------------------
# The lower line is the proved total. The upper line is the sum of the epsilons of all charges. The total is
# smaller, because the charges have Gaussian noise. For such charges, the squares of the noise parameters add up,
# not the epsilons.

year, left = plt.subplots(figsize=(7, 4.2), layout="constrained")
sums = budget.to_frame()["epsilon"].cumsum()
left.step(dates, sums, where="post", color="0.6", linewidth=1, label="sum of the charges")
left.step(dates, totals, "o-", where="post", markersize=4, color="C0", label="proved total")
left.axhline(budget.epsilon, color="C3", linestyle="--", label="ceiling")
styles = {"description": ("^", "C4", "describe"), "C": ("D", "C1", "search"), "score": ("s", "C2", "private_score")}
for label, (marker, colour, name) in styles.items():
    mine = [i for i, record in enumerate(budget.records) if record.label == label]
    points = [dates[i] for i in mine], [totals[i] for i in mine]
    left.plot(*points, marker, color=colour, label=f"after {name}", markersize=8)
left.xaxis.set_major_locator(matplotlib.dates.MonthLocator(interval=2))
left.xaxis.set_major_formatter(matplotlib.dates.DateFormatter("%b"))
left.set(xlabel="2025", ylabel="epsilon (delta = 1e-5)", ylim=(0, None), title=f"{len(dates)} charges, one budget")
left.legend(fontsize=9, loc="upper left")
print(f"sum of the epsilons: {sums.iloc[-1]:.1f}; proved total: {totals[-1]:.2f}")

# %%
# Composition rules
# -----------------
# How many of the monthly models does each rule admit? This cell charges the same cost again and again, to accountants
# without a ledger.

cost = budget.records[-2].cost  # the model of December
rules, right = plt.subplots(figsize=(7, 4.2), layout="constrained")
for rule, style in {"basic": "C4s-", "rdp": "C1^-", "gdp": "C0o-"}.items():
    counter = BudgetAccountant(epsilon=3.0, delta=1e-5, composition=rule)
    spent = []
    while len(spent) < 100:
        try:
            counter.charge(cost, label="model")
        except BudgetError:
            break
        spent.append(counter.total().epsilon)
    right.plot(np.arange(1, len(spent) + 1), spent, style, markersize=4, label=f"{rule}: {len(spent)} models")
    print(f"composition={rule!r}: {len(spent)} models of epsilon {cost.epsilon:g}")
right.axhline(3.0, color="black", linestyle="--", label="budget")
right.set(xlabel="models", ylabel="epsilon (delta = 1e-5)", ylim=(0, None), title="The same budget under three rules")
right.legend(fontsize=9)

# %%
# The model card
# --------------
# The card of the last model states its guarantee and the whole ledger. The team adds the rest.

card = model_card(
    model,
    title="Answers, December",
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

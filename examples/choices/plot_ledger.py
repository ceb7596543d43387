"""
One budget over a year
======================

Records are used again and again: for a search, for a model each month, for its evaluation. What is given away adds up,
and a budget keeps the account. Here we learn how it is spent, what it looks like, why the charges add up to less than
their sum, and what happens when it is used up.
"""

# %%
# A team, and one accountant
# --------------------------
# The records are simulated: four features, known to be between -2 and 2, so that no row is longer than 4. The ceiling
# is epsilon 3 for all that happens in the year. Everybody passes the same ``accountant``.

from datetime import UTC, datetime

import matplotlib
import matplotlib.dates
import matplotlib.pyplot as plt
import numpy as np

from skdp import BudgetAccountant, DPGridSearchCV, DPKMeans, ObjPertLogReg
from skdp.exceptions import BudgetError
from skdp.inspection import LedgerDisplay
from skdp.model_selection import private_score

rng = np.random.default_rng(0)
X = np.clip(rng.normal(size=(20_000, 4)), -2, 2)
y = (X @ [1, -1, 0.5, 0] + rng.logistic(size=len(X)) / 2 > 0).astype(int)
X, X_held, y, y_held = X[:16_000], X[16_000:], y[:16_000], y[16_000:]

budget = BudgetAccountant(epsilon=3.0, delta=1e-5)
declared = {"data_norm": 4.0, "classes": [0, 1]}

# %%
# What they do
# ------------
# In January, a search for a penalty, and clusters for a report. Then a model each month, and a score each quarter, on
# records that were held back; the budget is about all records, held back or not. The clock of this script does not run
# for a year: the dates are made up, and one is noted after each charge.

dates = []


def note(month, day):
    """Write down when a charge is said to have been made."""
    dates.append(datetime(2025, month, day, tzinfo=UTC))


search = DPGridSearchCV(
    ObjPertLogReg(**declared), {"C": [1e-4, 1e-3, 1e-2]}, epsilon=1.0, delta=1e-6, accountant=budget
)
search.fit(X, y)
note(1, 5)
DPKMeans(3, bounds=(-2, 2), epsilon=0.4, delta=1e-6, accountant=budget).fit(X)
note(1, 20)
for month in range(2, 13):
    model = ObjPertLogReg(epsilon=0.4, delta=1e-6, C=search.best_params_["C"], accountant=budget, **declared)
    model.fit(X, y)
    note(month, 1)
    if month % 3 == 0:
        score = private_score(model, X_held, y_held, epsilon=0.3, delta=1e-6, accountant=budget)
        note(month, 15)
        print(f"month {month:>2}: accuracy {score.value:.3f}, epsilon {budget.total().epsilon:.2f} spent")
print(f"\n{budget}")

# %%
# More than there is
# ------------------
# What does not fit is refused before the records are touched. ``remaining`` says what would fit.

print(f"one more release could have epsilon {budget.remaining().epsilon:.2f}, at the ceiling's delta")
try:
    ObjPertLogReg(epsilon=2.9, delta=1e-6, accountant=budget, **declared).fit(X, y)
except BudgetError as error:
    print(f"refused: {error}")

# %%
# The picture of it
# -----------------
# ``LedgerDisplay`` draws what has been proved so far, and the sum of the charges. The sum is what one would pay by
# adding epsilons. The charges of all these steps compose under Gaussian differential privacy, where it is the squares
# of a parameter that add up.

year, left = plt.subplots(figsize=(8, 4.8), layout="constrained")
display = LedgerDisplay.from_accountant(budget, plot=False)
display.times = dates
display.plot(ax=left, x="time", markersize=4, color="C0")
styles = {"DPGridSearchCV": ("D", "C1"), "DPKMeans": ("^", "C4"), "private_score": ("s", "C2")}
for name, (marker, colour) in styles.items():
    mine = [i for i, record in enumerate(budget.records) if record.estimator == name]
    left.plot([dates[i] for i in mine], display.spent[mine], marker, color=colour, label=f"after {name}", markersize=8)
left.xaxis.set_major_locator(matplotlib.dates.MonthLocator(interval=2))
left.xaxis.set_major_formatter(matplotlib.dates.DateFormatter("%b"))
left.tick_params(axis="x", labelrotation=0)
left.set(xlabel="2025", title=f"{len(dates)} charges, one budget")
left.legend(fontsize=9, loc="upper left")
print(f"\nsum of the epsilons: {display.summed[-1]:.1f}; proved: {display.spent[-1]:.2f}")

# %%
# What composition saves
# ----------------------
# How many of the monthly models would each rule admit? One cost is charged again and again, to accountants that only
# count. An accountant picks the rule by its first charge, unless it is told which.

cost = budget.records[-2].cost  # December's model.
rules, right = plt.subplots(figsize=(8, 4.8), layout="constrained")
for rule, style in {"basic": "C7s-", "rdp": "C1^-", "gdp": "C0o-"}.items():
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
right.axhline(3.0, color="tab:red", linestyle="--", label="ceiling")
right.set(xlabel="models", ylabel="epsilon (delta = 1e-05)", ylim=(0, None), title="How far the same budget goes")
right.legend(fontsize=9)

# %%
# To take away: give everybody one accountant, with a positive delta, and let it compose. Give it a ``ledger`` file
# where a budget has to outlive the process.

plt.show()

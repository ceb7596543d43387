"""
Describe a private table
========================

Before a model is fitted, somebody has to look at the data. Each look is a release. Here we describe all columns of a
table with one budget, look at one question more closely, and keep the rest of the budget for a model.
"""

# %%
# Declare what is public
# ----------------------
# The schema states bounds and categories, which come from the questionnaire. Nothing of it is read from the table.

import numpy as np
import pandas as pd

from skdp import BudgetAccountant, Number, Schema, describe, stats

rng = np.random.default_rng(0)
n = 20_000
education = rng.choice(
    ["school", "college", "university"], n, p=[0.5, 0.3, 0.2]
)
years = np.select(
    [education == "school", education == "college"], [11, 14], 17
)
table = pd.DataFrame(
    {
        "age": np.clip(rng.normal(45, 15, n).round(), 17, 90),
        "income": np.exp(rng.normal(8.7 + 0.1 * years, 0.5)),
        "education": education,
        "works": rng.choice(["yes", "no"], n, p=[0.7, 0.3]),
    }
)
table.loc[rng.random(n) < 0.05, "income"] = np.nan

schema = Schema(
    {
        "age": Number(17, 90, step=1),
        "income": Number(0, 500_000),
        "education": ["school", "college", "university"],
        "works": ["yes", "no"],
    }
)
accountant = BudgetAccountant(epsilon=2.0)

# %%
# One call for all columns
# ------------------------
# The budget of the call is divided so that counts, means and quartiles are about equally reliable.

found = describe(table, schema=schema, epsilon=0.5, accountant=accountant)
print(found)

# %%
# The plot has quartiles and means of numbers, and the counts of categories with their intervals.

found.plot()

# %%
# A question of its own
# ---------------------
# Incomes by education are one release. A record is in one group, so that three groups cost no more than one.

given = {"schema": schema, "epsilon": 0.25, "accountant": accountant}
incomes = stats.group_by(
    table, "education", {"income": ["mean", "count"]}, **given
)["income_mean"]
low, high = incomes.confidence_interval(0.95)
for name, value, ends in zip(
    incomes.names, incomes.value, zip(low, high, strict=True), strict=True
):
    print(f"{name:12} {value:8.0f}   between {ends[0]:.0f} and {ends[1]:.0f}")

# %%
# Nobody has the education "not in list" or "missing", and noise does not tell a mean of no records. Their intervals are
# therefore as wide as the bounds.
#
# What is left
# ------------
# The rest of the budget is for a model.

print(accountant.remaining())

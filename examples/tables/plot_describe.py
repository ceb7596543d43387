"""
Describe a private table
========================

Before a model, one wants to know the table: how many records, how large the numbers, how frequent the categories. Each
of these answers is a release. This example describes a census table with a small part of a budget, looks at one
question more closely, and keeps the rest of the budget for a model.
"""

# %%
# Declare what is public
# ----------------------
# The table is a part of the Adult data set. The schema states bounds and categories, which come from the code book.
# Nothing of it is read from the table.

import pandas as pd

from skdp import BudgetAccountant, Number, Schema, describe, stats
from skdp.datasets import load_adult

adult = load_adult()
schema = Schema(
    {
        "age": Number(17, 90, step=1),
        "hours_per_week": Number(1, 99, step=1),
        "sex": ["Female", "Male"],
        "relationship": adult.schema["relationship"],
    },
    target={"income": ["<=50K", ">50K"]},
)
table = pd.DataFrame(adult.table)[[*schema, "income"]]
accountant = BudgetAccountant(epsilon=2.0)

# %%
# One call for all columns
# ------------------------
# The budget of the call is divided so that counts, means and quartiles are about equally reliable. The number after ±
# is the standard error by noise.

description = describe(
    table, schema=schema, epsilon=0.5, accountant=accountant
)
print(description)

# %%
# The plot has quartiles and means of numbers, and the counts of categories with their intervals.

description.plot()

# %%
# One question
# ------------
# The hours of work by role in the family are one release. A record is in one group, so that six groups cost no more
# than one.

hours = stats.group_by(
    table,
    "relationship",
    {"hours_per_week": ["mean", "count"]},
    schema=schema,
    epsilon=0.25,
    accountant=accountant,
)["hours_per_week_mean"]
low, high = hours.confidence_interval(0.95)
intervals = pd.DataFrame(
    {"mean": hours.value, "from": low, "to": high}, index=hours.names
)
print(intervals.round(1))

# %%
# Nobody has the role "not in list" or "missing", and noise does not tell a mean of no records. Their intervals are
# therefore as wide as the bounds.
#
# The rest of the budget
# ----------------------
# The accountant knows what was spent. The rest is for a model.

print(accountant)
print("left:", accountant.remaining())

"""
A messy CSV file: text, missing values and typing errors
========================================================

Real tables have text, gaps, typing errors and columns that spread over several orders of magnitude. This example
declares what is publicly known about such a table in a schema, checks the file, and fits a private model to it. No
entry has to be encoded or filled in by hand.
"""

# %%
# The file
# --------
# The table is simulated: 20,000 applications for a loan, as people typed them into a form.

import io
import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import (
    BudgetAccountant,
    DPAdditiveClassifier,
    DPNaiveBayes,
    Number,
    ObjPertLogReg,
    Schema,
)
from skdp.exceptions import SchemaMismatchWarning
from skdp.inspection import AdditiveTermsDisplay


def simulate_applications(n, rng):
    """Draw applications, as people typed them."""
    age = np.clip(rng.gamma(7, 6, n), 18, 95).round()
    amount = np.exp(rng.normal(8.5, 1.1, n)).round(2)
    housing = rng.choice(["own", "rent", "parents"], n, p=[0.5, 0.4, 0.1])
    log_odds = 0.3 - 1.5 * np.log(amount / 5000) + 0.8 * (housing == "own")
    log_odds -= 0.002 * (age - 50) ** 2
    repaid = log_odds + rng.logistic(size=n) > 0
    typed = pd.DataFrame(
        {
            "number": np.arange(n),
            "age": age.astype(object),
            "amount": amount.astype(object),
            "housing": housing,
            "repaid": np.where(repaid, "yes", "no"),
        }
    )
    typed.loc[rng.uniform(size=n) < 0.04, "amount"] = None
    typed.loc[rng.uniform(size=n) < 0.02, "age"] = "?"
    typed.loc[rng.uniform(size=n) < 0.05, "housing"] = "Rent "
    typed.loc[rng.uniform(size=n) < 0.02, "housing"] = "boat"
    return typed


rng = np.random.default_rng(0)
applications = simulate_applications(20_000, rng)
file = io.StringIO(applications.to_csv(index=False))

table = pd.read_csv(file)
print(table.head(4).to_string(index=False))

# %%
# Declare what is public
# ----------------------
# The schema states the columns that the model may use, with bounds and categories from the form. Nothing in it is read
# from the file. The amounts spread over several orders of magnitude, so that ratios count more than differences:
# ``scale="log"``. The column ``number`` is not declared, because no model should use it.

schema = Schema(
    {
        "age": Number(18, 95, step=1),
        "amount": Number(100, 1_000_000, scale="log"),
        "housing": ["own", "rent", "parents"],
    },
    target={"repaid": ["no", "yes"]},
)
table = table[[*schema, "repaid"]]

# %%
# A schema is saved as TOML, so that a colleague can review it.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "loans.toml"
    schema.save(path)
    print(path.read_text())

# %%
# Check the file
# --------------
# ``check`` counts entries that are missing or not declared. The counts are exact, and therefore not private. They are
# for the person who holds the file.

print(schema.check(table))

# %%
# Correct typing errors by a public rule
# --------------------------------------
# A rule that looks at a single entry, such as lower case, changes no other row. Therefore it uses nothing of the
# budget. After it, "boat" is in the cell *other*, and "?" is a missing age.

table["housing"] = table["housing"].str.strip().str.lower()
print(schema.check(table))

# %%
# Fit
# ---
# Each row is assigned to a set independently at random. All three estimators take the table with its text and gaps.

in_test = rng.uniform(size=len(table)) < 0.25
train, test = table[~in_test], table[in_test]
budget = BudgetAccountant(epsilon=3.0, delta=1e-6)
models = {
    estimator.__name__: estimator(
        schema=schema, epsilon=1.0, delta=1e-7, accountant=budget
    ).fit(train)
    for estimator in (DPAdditiveClassifier, DPNaiveBayes, ObjPertLogReg)
}
print(budget)
for name, model in models.items():
    print(f"{name:<22} accuracy {model.score(test, test['repaid']):.3f}")
share = np.mean(test["repaid"] == "yes")
print(f"{'more frequent label':<22} accuracy {max(share, 1 - share):.3f}")

# %%
# The rows are simulated, so that we may look at these scores. On private rows, use
# :func:`~skdp.model_selection.private_score`, which pays for them.
#
# Look at the curves
# ------------------
# The curve of ``amount`` has a logarithmic axis, because the schema declares one. The bands show the noise.

display = AdditiveTermsDisplay.from_estimator(models["DPAdditiveClassifier"])
display.figure_.suptitle("Added to the score of yes")

# %%
# A schema that does not fit the file
# -----------------------------------
# If many entries of a column are not declared, the fit warns. The warning uses the counts that were released, so that
# it reveals nothing else.

wrong = schema | {"housing": ["owner", "tenant", "with parents"]}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    DPNaiveBayes(schema=wrong, epsilon=0.5).fit(train)
for warning in caught:
    if issubclass(warning.category, SchemaMismatchWarning):
        print(warning.message)

# %%
# Summary
# -------
# Write the schema from the form or the code book. Let ``check`` count problems before the first fit. Correct entries
# only by rules that look at one entry. :ref:`schema` describes all options, and :ref:`supported_inputs` the inputs
# of each estimator.

plt.show()

"""
Customers who leave: a search under one budget
==============================================

**Question.** Which customers of a telephone company will cancel their
contract? Few customers cancel, so that a model with default parameters misses
most of them. Weights of the labels help, but which weights? Trying several on
private records uses budget. This tutorial searches under one budget, and
evaluates the result with the rest.
"""

# %%
# The customers
# -------------
# The records are simulated by the function below. Numbers of calls to the
# hotline are skewed: most customers never call. The data volume is missing for
# customers with an old device.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import (
    BudgetAccountant,
    DPAdditiveClassifier,
    DPGridSearchCV,
    Number,
    Schema,
    private_score,
)
from skdp.inspection import AdditiveTermsDisplay


def simulate_customers(n, rng):
    """Draw customers, and whether they cancel within three months."""
    months = np.ceil(rng.exponential(30, n))
    contract = rng.choice(["monthly", "yearly"], n, p=[0.4, 0.6])
    calls = rng.negative_binomial(0.4, 0.35, n)
    bill = np.exp(rng.normal(3.2, 0.5, n))
    volume = np.exp(rng.normal(1.5, 1.2, n))
    old_device = rng.random(n) < 0.12
    score = -4.3 + 1.6 * (contract == "monthly") + 1.6 * np.sqrt(calls)
    score += 0.8 * np.log(bill / 25) - 0.02 * np.minimum(months, 60)
    score -= 0.3 * np.log(volume / 4.5)
    return pd.DataFrame(
        {
            "months": np.clip(months, 1, 240),
            "contract": contract,
            "calls": np.clip(calls, 0, 50),
            "bill": np.clip(bill, 5, 500).round(2),
            "volume": np.where(old_device, np.nan, volume.round(1)),
            "cancels": np.where(score + rng.logistic(size=n) > 0, "yes", "no"),
        }
    )


rng = np.random.default_rng(0)
customers = simulate_customers(30_000, rng)
print(customers.head(5).to_string(index=False))

# %%
# Declare what is public
# ----------------------
# The bounds are those of the tariff and of the billing system. Bills and
# volumes spread over several orders of magnitude: ``scale="log"``.

schema = Schema(
    {
        "months": Number(1, 240, step=1),
        "contract": ["monthly", "yearly"],
        "calls": Number(0, 50, step=1),
        "bill": Number(5, 500, scale="log"),
        "volume": Number(0.1, 1_000, scale="log"),
    },
    target={"cancels": ["no", "yes"]},
)

# %%
# Plan the budget
# ---------------
# One customer is one record. The company allows epsilon 2 and delta 1e-6 for
# the whole project.
#
# ==============================================  =======  =====
# release                                         epsilon  delta
# ==============================================  =======  =====
# the search: all fits, the choice, the last fit  1.5      1e-6
# the table of errors on other customers          0.4      1e-6
# ==============================================  =======  =====
#
# The accountant composes the Gaussian noise of both, which costs less than the
# sum. The difference is a reserve. Each customer is assigned to a set by a random number
# of their own, so that the set of one customer does not depend on others.

budget = BudgetAccountant(epsilon=2.0, delta=1e-6)
in_test = rng.random(len(customers)) < 0.3
train, test = customers[~in_test], customers[in_test]

# %%
# Search
# ------
# The candidates differ in the weight of customers who cancel. The score is F1,
# which needs both: finding customers who cancel, and few false alarms.
# ``DPGridSearchCV`` is charged once, for all fits and for the choice. It
# returns the chosen parameters and the model. It has no table of scores,
# because every score would be another release.

WEIGHTS = [1, 3, 10]
search = DPGridSearchCV(
    DPAdditiveClassifier(interactions=None),
    {"class_weight": [{"no": 1, "yes": weight} for weight in WEIGHTS]},
    scoring="f1",
    schema=schema,
    epsilon=1.5,
    delta=1e-6,
    accountant=budget.labelled("search"),
)
search.fit(train)
print("chosen:", search.best_params_)
print(search.privacy_)

# %%
# The errors on other customers
# -----------------------------
# The counts of right and wrong predictions get noise, too, and are charged.
# Recall is the part of the customers who cancel that the model finds.
# Precision is the part of the alarms that are right. Both are computed from
# the released counts. Their intervals repeat this with the noise of the
# counts, whose distribution is public.

errors = private_score(
    search,
    test,
    metric="confusion_matrix",
    epsilon=0.4,
    delta=1e-6,
    accountant=budget.labelled("errors"),
)
released = pd.DataFrame(
    errors.value,
    index=["stays", "cancels"],
    columns=["no alarm", "alarm"],
)
print(released.round().astype(int))


def ratio_interval(counts, noise, numerator, cells):
    """Return a ratio of noisy counts, and its 95 % interval of the noise."""
    draws = np.random.default_rng(0).normal(counts, noise, (2_000, 2, 2))
    tables = np.concatenate([counts[None], draws])
    ratios = tables[:, *numerator] / sum(tables[:, *cell] for cell in cells)
    return ratios[0], *np.quantile(ratios[1:], [0.025, 0.975])


found, missed, false_alarm = (1, 1), (1, 0), (0, 1)
for name, cells in [
    ("recall", [found, missed]),
    ("precision", [found, false_alarm]),
]:
    value, low, high = ratio_interval(
        errors.value, errors.standard_error, found, cells
    )
    print(f"{name:<10} {value:.2f}, interval {low:.2f} to {high:.2f}")

# %%
# Without weights, a model raises few alarms, and misses most of the customers
# who cancel. Its accuracy is high all the same, because few customers cancel.
#
# What the model learned
# ----------------------
# The curves are a part of the released model. Calls to the hotline raise the
# score most. The band is the 95 % interval of the noise alone.

display = AdditiveTermsDisplay.from_estimator(
    search.best_estimator_, bound=False, n_cols=3
)
display.figure_.set_size_inches(9, 5.6)
display.figure_.suptitle("Added to the score of customers who cancel")

# %%
# What may be published
# ---------------------
# - **Publish:** the chosen weights, the model and its curves, the table of
#   errors with recall and precision, and the guarantee.
# - **Use, and do not publish:** the alarms for the customers themselves. They
#   depend on the record of the customer, which the company holds anyway.
# - **Do not choose by** exact scores of the candidates. The choice would be
#   a release that nobody paid for.
#
# :ref:`model_selection` describes the search, and
# :ref:`sphx_glr_auto_examples_choices_plot_search.py` shows when a search is
# worth its cost.

print(budget)
print("left:", budget.remaining())
plt.show()

"""
Hospital visits: several rows of one patient
============================================

**Question.** Which visits are followed by another admission within 30 days?
A patient may have many visits. The guarantee has to protect the patient, and
therefore all visits of the patient together. Laboratory values are missing for
many visits. This tutorial fits a private classifier, and releases its accuracy
and a table for the annual report from one budget.
"""

# %%
# The visits
# ----------
# The records are simulated by the function below. Frail patients come more
# often, and come back more often. Stays are skewed: most last a few days, and
# a few last months. Haemoglobin is measured for most emergencies, and for
# every second planned admission.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import (
    BudgetAccountant,
    DPNaiveBayes,
    Number,
    Schema,
    private_score,
    stats,
)


def simulate_visits(n_patients, rng):
    """Draw the visits of a number of patients, one row for each visit."""
    frailty = rng.normal(size=n_patients)
    age_of_patient = np.clip(62 + 18 * rng.normal(size=n_patients), 18, 100)
    n_visits = 1 + rng.poisson(np.exp(0.6 * frailty - 0.4))
    patient = np.repeat(np.arange(n_patients), n_visits)
    n = len(patient)

    emergency = rng.random(n) < 1 / (1 + np.exp(-frailty[patient]))
    stay = np.exp(rng.normal(1.0 + 0.3 * frailty[patient] + 0.4 * emergency))
    haemoglobin = rng.normal(13.5 - 0.8 * frailty[patient], 1.5)
    measured = rng.random(n) < np.where(emergency, 0.85, 0.5)
    score = -1.3 + 0.9 * frailty[patient] + 0.5 * emergency
    score -= 0.25 * (haemoglobin - 13.5)
    return pd.DataFrame(
        {
            "patient": patient,
            "age": age_of_patient[patient].round(),
            "admission": np.where(emergency, "emergency", "planned"),
            "stay": np.clip(stay, 1, 180).round(),
            "haemoglobin": np.where(measured, haemoglobin.round(1), np.nan),
            "returned": np.where(
                score + rng.logistic(size=n) > 0, "yes", "no"
            ),
        }
    )


visits = simulate_visits(10_000, np.random.default_rng(0))
print(visits.head(6).to_string(index=False))

# %%
# Declare what is public
# ----------------------
# Bounds and categories come from the form. ``group`` names the column that
# identifies a patient, and ``rows_per_group=2`` is the number of visits of a
# patient that count. Two is a typical number of visits, which is known from
# public statistics. Visits beyond this number are left out at random. Missing
# laboratory values need no preparation, because *missing* is a category of its
# own.

schema = Schema(
    {
        "age": Number(18, 100, step=1),
        "admission": ["planned", "emergency"],
        "stay": Number(1, 180, scale="log"),
        "haemoglobin": Number(5, 20),
    },
    target={"returned": ["no", "yes"]},
    group="patient",
    rows_per_group=2,
)
print(schema)

# %%
# Plan the budget
# ---------------
# The hospital allows epsilon 2 for all releases about these patients.
# ``unit="group"`` states that the budget protects patients: a release depends
# little on whether *all visits* of one patient are in the table. The
# accountant refuses fits that protect single visits only.
#
# ==================================  =======
# release                             epsilon
# ==================================  =======
# return rate after planned stays     0.2
# return rate after emergencies       0.2
# the model                           1.0
# the accuracy of the model           0.3
# reserve                             0.3
# ==================================  =======
#
# The epsilons add up, also those of the two return rates. Planned stays and
# emergencies are different visits, but one patient may have both.

budget = BudgetAccountant(epsilon=2.0, unit="group")

# %%
# Return rates for the annual report
# ----------------------------------
# A rate is a share of noisy counts. Its interval has two parts: the noise, and
# the chance of a sample of patients. The rate is about visits as they count
# here, at most two of each patient. Patients with ten visits weigh less than
# in a table of all visits.

for admission in ["planned", "emergency"]:
    rate = stats.proportion(
        visits[visits["admission"] == admission],
        "yes",
        columns="returned",
        schema=schema,
        epsilon=0.2,
        accountant=budget.labelled(f"rate, {admission}"),
    )
    low, high = rate.confidence_interval(0.95)
    print(
        f"{admission:<10} {rate.value:.3f}, interval {low:.3f} to {high:.3f}"
    )

# %%
# Set patients aside
# ------------------
# All visits of a patient must be in the same set. A hash of the identifier
# decides, so that the set of one patient does not depend on other patients.

in_test = pd.util.hash_array(visits["patient"].to_numpy()) % 4 == 0
train, test = visits[~in_test], visits[in_test]

# %%
# Fit the model
# -------------
# :class:`~skdp.naive_bayes.DPNaiveBayes` counts entries for each label, and
# supports groups. The noise is made for two visits of a patient.

model = DPNaiveBayes(schema=schema, epsilon=1.0, accountant=budget)
model.fit(train)
print(model.privacy_)

# %%
# The accuracy, and its uncertainty
# ---------------------------------
# The accuracy on private rows is a release. ``private_score`` adds noise to
# the number of correct predictions, and is charged. A model that always
# answers *no* has an accuracy of one minus the return rate, which was released
# for both kinds of admission.

score = private_score(model, test, epsilon=0.3, accountant=budget)
low, high = score.confidence_interval(0.95)
print(f"accuracy {score.value:.3f}, interval {low:.3f} to {high:.3f}")

# %%
# Two visits of one patient are not independent. The schema declares patients,
# and therefore the intervals allow for two visits that are alike. They take
# patients, and not visits, to be independent. The noise is known exactly.
#
# What the model learned
# ----------------------
# The model compares how frequent an entry is among visits with a return and
# among the others. These numbers were released, so that the figure uses no
# budget. Missing haemoglobin is a category, and speaks against a return,
# because it is rarely missing for emergencies. Long stays and low haemoglobin
# speak for a return. Bins with few visits, at the ends, are mostly noise.


def plot_evidence(axis, model, column):
    """Plot the evidence of numbers, and return that of missing entries."""
    position = list(model.feature_names_in_).index(column)
    log_no, log_yes = model.feature_log_prob_[position]
    *numbers, missing = log_yes - log_no
    edges = model.bin_edges_[position][:-1]
    axis.stairs(numbers, edges, linewidth=2, label="bins of numbers")
    axis.axhline(0, color="0.6", linewidth=1)
    axis.set(xlabel=column)
    return missing


figure, axes = plt.subplots(
    1, 3, figsize=(9, 3.4), sharey=True, layout="constrained"
)
plot_evidence(axes[0], model, "age")
plot_evidence(axes[1], model, "stay")
missing = plot_evidence(axes[2], model, "haemoglobin")
axes[2].axhline(missing, color="C1", linestyle="--", label="missing")
axes[1].set_xscale("log")
axes[0].set_ylabel("log ratio of the frequencies")
axes[2].legend()
figure.suptitle("Entries that speak for a return (above 0) or against it")

# %%
# What may be published
# ---------------------
# - **Publish:** the two return rates, the accuracy with its interval, the
#   figure, the model, and the printed guarantee. ``print(budget)`` shows the
#   total.
# - **Do not publish:** predictions for patients of this table, an accuracy
#   from ``model.score``, the number of patients with missing values, or the
#   test set. None of them was charged.
#
# :ref:`units` explains groups, and lists the estimators that support them.

print(budget)
plt.show()

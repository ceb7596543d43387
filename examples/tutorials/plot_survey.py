"""
A survey with weights
=====================

**Question.** How many people support a new railway line, and which people? A
survey asked as many people in a small region as in large ones. Weights correct
for this. This tutorial estimates the share of supporters with an interval,
fits a model with weights, and shows which weights are safe.
"""

# %%
# The survey
# ----------
# The records are simulated by the function below: 4,000 people in each of
# three regions. Few people live on the islands, and most of them support the
# line. One in ten people did not state their income, mostly people with a
# high income.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import (
    BudgetAccountant,
    Category,
    DPAdditiveClassifier,
    Number,
    Schema,
    stats,
)
from skdp.inspection import AdditiveTermsDisplay

POPULATION = {"islands": 400_000, "country": 2_000_000, "cities": 5_600_000}
N_ASKED = 4_000


def simulate_answers(region, n, rng):
    """Draw the answers of n people of a region."""
    age = np.clip(rng.gamma(6, 8, n) + 14, 16, 99)
    income = np.exp(rng.normal(7.6 + 0.3 * (region == "cities"), 0.5, n))
    stated = rng.random(n) < np.where(income > 4_000, 0.6, 0.95)
    level = {"islands": 1.6, "country": -0.9, "cities": -0.2}[region]
    score = level + 0.02 * (45 - age) - 0.6 * np.log(income / 2_000)
    supports = score + rng.logistic(size=n) > 0
    return pd.DataFrame(
        {
            "region": region,
            "age": age.round(),
            "income": np.where(stated, income.round(-1), np.nan),
            "supports": np.where(supports, "yes", "no"),
        }
    )


rng = np.random.default_rng(0)
answers = pd.concat(
    [simulate_answers(region, N_ASKED, rng) for region in POPULATION]
)
print(answers.groupby("region", sort=False).head(2).to_string(index=False))

# %%
# Declare what is public
# ----------------------
# Bounds and categories are those of the questionnaire. The region is known for
# everybody, so that other entries are an error.

schema = Schema(
    {
        "region": Category(list(POPULATION), other="error", missing="error"),
        "age": Number(16, 99, step=1),
        "income": Number(100, 50_000, scale="log"),
    },
    target={"supports": ["no", "yes"]},
)

# %%
# Weights that are safe
# ---------------------
# The weight of a person is the number of inhabitants of their region for each
# person who was asked. Both numbers come from the design of the survey, and
# the weight is a function of the person's own region. Weights that were
# adjusted to the answers of all people (raking, or a division by the sum of
# weights) depend on other records, and the guarantee would not hold.

weight_of_region = {
    region: inhabitants / N_ASKED for region, inhabitants in POPULATION.items()
}
weight = answers["region"].map(weight_of_region)
max_weight = max(weight_of_region.values())
print(weight_of_region)

# %%
# Plan the budget
# ---------------
# One person is one record. The institute allows epsilon 1 and delta 1e-7 for
# all releases about this survey. The share gets 0.3, and the model 0.6. The
# accountant composes both, and refuses releases beyond the total.

budget = BudgetAccountant(epsilon=1.0, delta=1e-7)

# %%
# The share of supporters
# -----------------------
# A weight must not multiply the influence of a person on a release. Instead,
# each record is kept with a probability that is proportional to its weight,
# independently of other records, by random numbers that stay secret. The rows
# that are kept have the composition of the population. Adding one person adds
# at most one kept row. Therefore a release from the kept rows has the same
# guarantee for each person who answered.

secret = np.random.default_rng()
kept = answers[secret.random(len(answers)) < weight / max_weight]
share = stats.proportion(
    kept,
    "yes",
    columns="supports",
    schema=schema,
    epsilon=0.3,
    accountant=budget.labelled("share"),
)
low, high = share.confidence_interval(0.95)
print(f"supporters: {share.value:.3f}, interval {low:.3f} to {high:.3f}")

# %%
# The simulation knows the answer. The share of the population is computed from
# many more people, and the share without weights from the answers. An
# institute has neither: the first is unknown, and the second was not charged.


def population_share(n, rng):
    """Return the share of supporters among many simulated people."""
    shares = {
        region: (simulate_answers(region, n, rng)["supports"] == "yes").mean()
        for region in POPULATION
    }
    return np.average(list(shares.values()), weights=list(POPULATION.values()))


truth = population_share(200_000, rng)
without_weights = (answers["supports"] == "yes").mean()
print(f"population: {truth:.3f}; without weights: {without_weights:.3f}")

figure, axis = plt.subplots(figsize=(7, 1.8), layout="constrained")
axis.plot([low, high], [0, 0], linewidth=6, alpha=0.4)
axis.plot(share.value, 0, "o", label="released, with 95 % interval")
axis.axvline(truth, color="k", linestyle="--", label="population")
axis.axvline(without_weights, color="C1", linestyle=":", label="no weights")
axis.set(xlabel="share of supporters", yticks=[])
figure.legend(loc="outside upper center", ncols=3)

# %%
# A model with weights
# --------------------
# Estimators keep records in the same way, if ``sample_weight`` and a public
# ``max_weight`` are given. ``interactions=None`` asks for one curve for each
# column. The band is the 95 % interval of the noise alone.

model = DPAdditiveClassifier(
    schema=schema,
    epsilon=0.6,
    delta=1e-7,
    interactions=None,
    max_weight=max_weight,
    accountant=budget.labelled("model"),
)
model.fit(answers, sample_weight=weight)

display = AdditiveTermsDisplay.from_estimator(model, bound=False, n_cols=3)
display.figure_.set_size_inches(9, 3.4)
display.figure_.suptitle("Added to the score of yes")

# %%
# Predictions for any person use no more budget, for example for people of 30
# and 60 years with the same income in each region.

people = pd.DataFrame(
    [
        {"region": region, "age": age, "income": 2_000}
        for region in POPULATION
        for age in (30, 60)
    ]
)
people["supports"] = model.predict_proba(people)[:, 1].round(2)
print(people.to_string(index=False))

# %%
# What may be published
# ---------------------
# - **Publish:** the share with its interval, the curves, the model and its
#   predictions for any person, the weights of the regions, and the guarantee.
# - **Do not publish:** the rows that were kept, their number, or the share
#   without weights.
#
# :ref:`weights` has the parameters, and the effect of weights on accuracy.

print(budget)
plt.show()

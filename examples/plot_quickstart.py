"""
Quick start: private models of a census table
=============================================

This example trains private models on the Adult data set, which ships with skdp. It takes less than a minute. You will
see

1. the schema, which states what is publicly known about the table;
2. a private model, and its guarantee;
3. the accuracy of three private estimators at three values of epsilon, compared with a model without privacy;
4. what the private model learned, column by column;
5. the ledger, which refuses fits that exceed the budget.
"""

# %%
# Declare what is publicly known
# ------------------------------
# A private model must not read the range of a column or its categories from the records. The schema takes these facts
# from the documentation of the data. The test rows are chosen at random, independently of each other.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier

from skdp import (
    BudgetAccountant,
    DPAdditiveClassifier,
    DPNaiveBayes,
    ObjPertLogReg,
    private_score,
)
from skdp.datasets import load_adult
from skdp.exceptions import BudgetError
from skdp.inspection import AdditiveTermsDisplay

adult = load_adult()
schema = adult.schema
in_test = np.random.default_rng(0).uniform(size=len(adult.target)) < 0.25
train = {name: column[~in_test] for name, column in adult.table.items()}
test = {name: column[in_test] for name, column in adult.table.items()}

print("[1/5] Adult: the income of 45,222 people, from 13 columns\n")
print(schema)

# %%
# Fit a private model
# -------------------
# The budget limits everything that is ever released about these records. It is kept in a file, the ledger, so that all
# scripts share it. A fit is charged before any noise is drawn.

folder = Path(tempfile.mkdtemp())
budget = BudgetAccountant(epsilon=3.0, delta=1e-7, ledger=folder / "adult.db")
model = DPAdditiveClassifier(
    schema=schema, epsilon=1.0, delta=1e-7, accountant=budget
)
model.fit(train)

print("\n[2/5] A private model at epsilon 1, and its guarantee\n")
print(model.privacy_)

# %%
# Compare estimators and values of epsilon
# ----------------------------------------
# Adult is public, so that the models of this section do not need a budget. With private records, each of them would be
# charged. The accuracy is a mean over three fits with fresh noise.

ESTIMATORS = [DPAdditiveClassifier, DPNaiveBayes, ObjPertLogReg]
EPSILONS = [0.1, 1.0, 3.0]


def mean_accuracy(estimator_class, epsilon, n_fits=3):
    """Return the mean test accuracy of several fits."""
    model = estimator_class(schema=schema, epsilon=epsilon, delta=1e-7)
    accuracies = [
        clone(model).fit(train).score(test, test["income"])
        for _ in range(n_fits)
    ]
    return np.mean(accuracies)


def accuracy_without_privacy():
    """Return the test accuracy of boosted trees, which are not private."""
    trees = HistGradientBoostingClassifier(random_state=0)
    trees.fit(adult.data[~in_test], adult.target[~in_test])
    return trees.score(adult.data[in_test], adult.target[in_test])


print(f"\n[3/5] Test accuracy at epsilon {EPSILONS}\n")
accuracies = {}
for estimator in ESTIMATORS:
    name = estimator.__name__
    accuracies[name] = [mean_accuracy(estimator, e) for e in EPSILONS]
    print(f"{name:<21}", *(f"{value:.3f}" for value in accuracies[name]))
ceiling = accuracy_without_privacy()
most_common = np.mean(test["income"] == "<=50K")
print(f"boosted trees of scikit-learn, without privacy  {ceiling:.3f}")
print(f"always the more common answer                   {most_common:.3f}")


def plot_accuracy(axis, accuracies):
    """Plot accuracy against epsilon, one line for each estimator."""
    for (name, values), marker in zip(accuracies.items(), "os^", strict=True):
        axis.plot(EPSILONS, values, marker=marker, markersize=8, label=name)
    axis.axhline(ceiling, color="k", linestyle=":", label="without privacy")
    axis.set(
        xscale="log",
        xlabel="epsilon (smaller is more private)",
        ylabel="test accuracy",
    )
    axis.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axis.minorticks_off()
    axis.grid(alpha=0.3)
    axis.legend()


figure, axis = plt.subplots(figsize=(8, 4.5), layout="constrained")
plot_accuracy(axis, accuracies)
axis.set_title(f"Income on Adult, {np.sum(~in_test):,} records, delta 1e-7")

# %%
# See what a private model learned
# --------------------------------
# With ``interactions=None``, the score of a person is a sum of one number for each column, so that you can draw the
# whole model. Steps are bins of a number, and points are categories. The band is the 95 % interval of the noise alone.

readable = DPAdditiveClassifier(
    schema=schema,
    epsilon=1.0,
    delta=1e-7,
    interactions=None,
    accountant=budget.labelled("curves"),
)
readable.fit(train)
accuracy = readable.score(test, test["income"])
print(f"\n[4/5] A model to look at, with an accuracy of {accuracy:.3f}.")
print("      How far each column moves the score, on average:\n")
importances = readable.feature_importances_
for column in np.argsort(importances)[:-8:-1]:
    name, importance = readable.term_names_[column], importances[column]
    print(f"{name:<16}{importance:.2f}  {'#' * round(40 * importance)}")

display = AdditiveTermsDisplay.from_estimator(
    readable,
    columns=[
        "age",
        "education_num",
        "hours_per_week",
        "relationship",
        "occupation",
        "work_class",
    ],
    n_cols=3,
    bound=False,
)
display.figure_.set_size_inches(11, 7)
display.figure_.suptitle("Effect on the odds of an income above $50,000")

# %%
# Look at the ledger
# ------------------
# The errors of the model on private rows are a release, too. ``private_score`` pays for it. A fit that exceeds the
# budget is refused before the records are used.

errors = private_score(
    model,
    test,
    metric="confusion_matrix",
    epsilon=0.3,
    delta=1e-7,
    accountant=budget.labelled("errors"),
)
share = np.trace(errors.value) / np.sum(errors.value)
print("\n[5/5] The ledger\n")
print(f"accuracy from a private table of errors: {share:.3f}\n")
print(budget)
for record in budget.records:
    print(f"{record.estimator} {record.label}: epsilon {record.cost.epsilon}")
try:
    clone(model).set_params(epsilon=3.0).fit(train)
except BudgetError as error:
    print(f"\nOne more fit at epsilon 3 is refused:\n{error}")

plt.show()

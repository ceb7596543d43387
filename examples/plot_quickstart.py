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
held_out = np.random.default_rng(0).uniform(size=len(adult.target)) < 0.25
train = {name: column[~held_out] for name, column in adult.table.items()}
test = {name: column[held_out] for name, column in adult.table.items()}

print("[1/5] Adult: the income of 45,222 persons, from 13 columns of text and numbers\n")
print(schema)

# %%
# Fit a private model
# -------------------
# The budget limits everything that is ever released about these records. It is kept in a file, the ledger, so that all
# scripts share it. A fit is charged before any noise is drawn.

folder = Path(tempfile.mkdtemp())
budget = BudgetAccountant(epsilon=3.0, delta=1e-7, ledger=folder / "adult.db")
model = DPAdditiveClassifier(schema=schema, epsilon=1.0, delta=1e-7, accountant=budget)
model.fit(train, train["income"])

print("\n[2/5] A private model at epsilon 1, and its guarantee\n")
print(model.privacy_)

# %%
# Compare estimators and values of epsilon
# ----------------------------------------
# Adult is public, so that the models of this section do not need a budget. With private records, each of them would be
# charged. The accuracy is a mean over three fits with fresh noise.

ESTIMATORS = {
    DPAdditiveClassifier: ("#0072B2", "o"),
    DPNaiveBayes: ("#009E73", "s"),
    ObjPertLogReg: ("#D55E00", "^"),
}
EPSILONS = [0.1, 1.0, 3.0]


def accuracy(estimator, epsilon):
    """Return the mean test accuracy of three fits."""
    scores = []
    for _ in range(3):
        private = estimator(schema=schema, epsilon=epsilon, delta=1e-7)
        private.fit(train, train["income"])
        scores.append(private.score(test, test["income"]))
    return np.mean(scores)


print("\n[3/5] Test accuracy\n")
print(f"{'':24}" + "".join(f"epsilon {e:<6g}" for e in EPSILONS))
curves = {}
for estimator in ESTIMATORS:
    print(f"  {estimator.__name__:22}", end="", flush=True)
    curves[estimator] = []
    for epsilon in EPSILONS:
        curves[estimator].append(accuracy(estimator, epsilon))
        print(f"{curves[estimator][-1]:<14.3f}", end="", flush=True)
    print()

not_private = HistGradientBoostingClassifier(random_state=0)
not_private.fit(adult.data[~held_out], adult.target[~held_out])
ceiling = not_private.score(adult.data[held_out], adult.target[held_out])
most_common = 1 - adult.target[held_out].mean()
print(f"  {'boosted trees of scikit-learn, without privacy':50}{ceiling:.3f}")
print(f"  {'always the more common answer':50}{most_common:.3f}")

figure, axis = plt.subplots(figsize=(8, 4.5), layout="constrained")
for estimator, (color, marker) in ESTIMATORS.items():
    scores = curves[estimator]
    axis.plot(EPSILONS, scores, color=color, marker=marker, markersize=8, linewidth=2)
    axis.annotate(
        estimator.__name__,
        (EPSILONS[-1], scores[-1]),
        xytext=(10, 0),
        textcoords="offset points",
        color=color,
        va="center",
    )
axis.axhline(ceiling, color="black", linestyle=":")
axis.annotate(
    "boosted trees of scikit-learn, without privacy",
    (EPSILONS[0], ceiling),
    xytext=(0, -14),
    textcoords="offset points",
)
axis.set(
    title=f"Income on Adult, {np.sum(~held_out):,} records, delta = 1e-7",
    xlabel="epsilon (smaller is more private)",
    ylabel="test accuracy",
    xscale="log",
    xlim=(0.08, 12),
)
axis.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
axis.minorticks_off()
axis.grid(alpha=0.3)
axis.spines[["top", "right"]].set_visible(False)

# %%
# See what a private model learned
# --------------------------------
# With ``interactions=None``, the score of a person is a sum of one number for each column, so that you can draw the
# whole model. Steps are bins of a number, and points are categories. The band is the 95 % interval of the noise.

readable = DPAdditiveClassifier(
    schema=schema,
    epsilon=1.0,
    delta=1e-7,
    interactions=None,
    accountant=budget.labelled("curves"),
)
readable.fit(train, train["income"])
print(f"\n[4/5] A model to look at, with an accuracy of {readable.score(test, test['income']):.3f}.")
print("      How far each column moves the score, on average:\n")
importances = readable.feature_importances_
for j in np.argsort(importances)[:-8:-1]:
    print(f"  {readable.term_names_[j]:16}{importances[j]:.2f}  {'#' * round(40 * importances[j])}")

display = AdditiveTermsDisplay.from_estimator(
    readable,
    columns=["age", "education_num", "hours_per_week", "relationship", "occupation", "work_class"],
    n_cols=3,
    bound=False,
)
display.figure_.set_size_inches(11, 7)
display.figure_.suptitle("What raises and lowers the odds of an income above $50,000 (epsilon = 1)")

# %%
# Look at the ledger
# ------------------
# The errors of the model on private rows are a release, too. ``private_score`` pays for it. A fit that exceeds the
# budget is refused before the records are used.

errors = private_score(
    model,
    test,
    test["income"],
    metric="confusion_matrix",
    epsilon=0.3,
    delta=1e-7,
    accountant=budget.labelled("errors"),
)
print("\n[5/5] The ledger\n")
print(f"  accuracy from a private table of errors: {np.trace(errors.value) / np.sum(errors.value):.3f}\n")
print(budget)
for record in budget.records:
    cost = f"epsilon {record.cost.epsilon:g}, delta {record.cost.delta:g}"
    print(f"  {record.time:%H:%M:%S} UTC  {record.estimator} {record.label}: {cost}")
try:
    clone(model).set_params(epsilon=3.0).fit(train, train["income"])
except BudgetError as error:
    print(f"\n  One more fit at epsilon 3 is refused:\n  {error}")

plt.show()

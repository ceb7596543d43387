"""
Quick start: a private classifier, its guarantee, and its ledger
================================================================

A model is trained on other people's records, with a proof of what it gives away about any one of them.
"""

# %%
# Data, and what is publicly known about them
# -------------------------------------------
# The breast cancer data come with scikit-learn. A private model needs a bound on each record's influence. It is never
# read off the data, because that would be a release; here it comes from the ranges that the data set's documentation
# prints. The scaling uses nothing but those, so that it costs nothing.

import math
import sys
import tempfile
from pathlib import Path

import matplotlib

if not hasattr(sys, "ps1"):
    matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp import BudgetAccountant, ObjPertLogReg, OutputPertLogReg
from skdp.datasets import load_adult

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

MEANS = [(7, 28), (9, 40), (43, 189), (143, 2501), (0.05, 0.17), (0.01, 0.35), (0, 0.43), (0, 0.21), (0.1, 0.31)]
ERRORS = [(0.1, 2.9), (0.3, 4.9), (0.7, 22), (6, 543), (0, 0.04), (0, 0.14), (0, 0.4), (0, 0.06), (0, 0.08)]
WORST = [(7, 37), (12, 50), (50, 252), (185, 4254), (0.07, 0.23), (0.02, 1.06), (0, 1.26), (0, 0.3), (0.15, 0.67)]
FRACTAL = [(0.04, 0.1), (0, 0.03), (0.05, 0.21)]
LOWER, UPPER = np.array([*MEANS, FRACTAL[0], *ERRORS, FRACTAL[1], *WORST, FRACTAL[2]]).T


def to_unit_box(X):
    """Map the documented ranges to [-1, 1]."""
    return (2 * X - LOWER - UPPER) / (UPPER - LOWER)


# %%
# One private fit
# ---------------
# A budget is opened, and charged before any noise is drawn. ``classes`` declares the label set, and ``data_norm``
# bounds the length of a row: 30 features in [-1, 1] are at most 5.5 long, and most rows far shorter. Longer ones are
# scaled down.

budget = BudgetAccountant(epsilon=3.0, delta=1e-5)
classifier = ObjPertLogReg(epsilon=1.0, delta=1e-5, data_norm=4.0, classes=[0, 1], accountant=budget)
model = make_pipeline(FunctionTransformer(to_unit_box), classifier)
model.fit(X_train, y_train)

not_private = make_pipeline(
    FunctionTransformer(to_unit_box), ObjPertLogReg(epsilon=math.inf, data_norm=4.0, classes=[0, 1])
)
not_private.fit(X_train, y_train)

print(f"Breast cancer, {len(X_train)} records")
print(f"  private, epsilon 1: accuracy {model.score(X_test, y_test):.3f}")
print(f"  without privacy:    accuracy {not_private.score(X_test, y_test):.3f}")

# %%
# What was promised
# -----------------
# The guarantee follows from public parameters alone. It says what was released, by which mechanism, and where the proof
# is.

print(classifier.privacy_)

# %%
# What was spent
# --------------
# Whoever fits with this accountant spends from the one budget, also inside scikit-learn's model selection. What does
# not fit is refused before the data are used.

print(budget)
for record in budget.records:
    spent = f"epsilon {record.cost.epsilon:g}, delta {record.cost.delta:g}"
    print(f"  {record.time:%H:%M:%S} UTC, {record.estimator} {record.label}: {spent}")
print(f"  left for one more Gaussian release: epsilon {budget.remaining().epsilon:.3f}")

# %%
# Accuracy against epsilon
# ------------------------
# A larger data set makes the same guarantee cheaper. If the Adult data set is at hand (in the folder that the
# environment variable ``SKDP_DATA`` names), it is drawn as well.

EPSILONS = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]


def accuracies(estimator, delta, train, test, **parameters):
    """Mean test accuracy at each epsilon, over fits with fresh noise: more of them where they are quick."""
    repeats = 20 if len(train[1]) < 5000 else 3
    return [
        np.mean(
            [estimator(epsilon=e, delta=delta, **parameters).fit(*train).score(*test) for _ in range(repeats)],
        )
        for e in EPSILONS
    ]


def draw(axis, title, train, test, **parameters):
    """One panel: both classifiers, the non-private line and the share of the larger class."""
    styles = [
        (ObjPertLogReg, 1e-5, "ObjPertLogReg, delta=1e-5", "C0o-"),
        (ObjPertLogReg, 0.0, "ObjPertLogReg, delta=0", "C0o--"),
        (OutputPertLogReg, 1e-5, "OutputPertLogReg, delta=1e-5", "C1s-"),
        (OutputPertLogReg, 0.0, "OutputPertLogReg, delta=0", "C1s--"),
    ]
    for estimator, delta, label, style in styles:
        axis.plot(EPSILONS, accuracies(estimator, delta, train, test, **parameters), style, label=label, markersize=4)
    best = ObjPertLogReg(epsilon=math.inf, **parameters).fit(*train).score(*test)
    axis.axhline(best, color="k", linewidth=1, label="not private")
    axis.axhline(max(np.mean(test[1]), 1 - np.mean(test[1])), color="0.6", linestyle=":", label="larger class")
    axis.set(title=f"{title}, {len(train[1]):,} records", xlabel="epsilon", ylabel="test accuracy", xscale="log")
    axis.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
    axis.minorticks_off()


panels = [
    (
        "Breast cancer",
        (to_unit_box(X_train), y_train),
        (to_unit_box(X_test), y_test),
        {"data_norm": 4.0, "classes": [0, 1]},
    )
]
try:
    adult = load_adult()
except FileNotFoundError:
    print("Adult is not at hand: set SKDP_DATA to the folder that holds adult.data.gz and adult.test.gz")
else:
    A_train, A_test, b_train, b_test = train_test_split(adult.data, adult.target, test_size=0.2, random_state=0)
    declared = {"data_norm": adult.data_norm, "classes": adult.classes}
    panels.append(("Adult", (A_train, b_train), (A_test, b_test), declared))

    budget = BudgetAccountant(epsilon=1.0, delta=1e-5)
    census = ObjPertLogReg(epsilon=1.0, delta=1e-5, accountant=budget, **declared).fit(A_train, b_train)
    reference = ObjPertLogReg(epsilon=math.inf, **declared).fit(A_train, b_train)
    print(f"\nAdult, {len(A_train)} records")
    print(f"  private, epsilon 1: accuracy {census.score(A_test, b_test):.3f}")
    print(f"  without privacy:    accuracy {reference.score(A_test, b_test):.3f}")
    print(census.privacy_)
    print(budget)

figure, axes = plt.subplots(1, len(panels), figsize=(5.5 * len(panels), 4.2), squeeze=False, layout="constrained")
for axis, (title, train, test, parameters) in zip(axes[0], panels, strict=True):
    draw(axis, title, train, test, **parameters)
axes[0, 0].legend(fontsize=8, loc="lower right")

# %%
# Run as a script, it leaves the picture in a file.

if "__file__" in globals() and not hasattr(sys, "ps1"):
    target = Path("quickstart.png")
    try:
        figure.savefig(target, dpi=120)
    except OSError:
        target = Path(tempfile.gettempdir(), target.name)
        figure.savefig(target, dpi=120)
    print(f"\npicture: {target.resolve()}")

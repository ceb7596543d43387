"""
Accuracy against epsilon
========================

Before you choose a private model, you want to know how its accuracy falls with epsilon, and whether the noise or the
model itself limits the accuracy. This example draws the curves of four classifiers with scikit-learn's
``validation_curve``, compares them with scikit-learn, and reads from them the epsilon for a required accuracy.
"""

# %%
# Public records
# --------------
# Each point of such a curve is an exact score without a charge. Therefore draw such curves only for public records, or
# for simulated records that resemble the private ones. The breast cancer data are public: 569 records of 30
# measurements. The schema has only the ranges in the documentation of the data set.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    RepeatedStratifiedKFold,
    cross_val_score,
    validation_curve,
)
from sklearn.pipeline import make_pipeline

from skdp import (
    DPNaiveBayes,
    DPSGDClassifier,
    FunctionalMechLogReg,
    Number,
    ObjPertLogReg,
    Schema,
    TableEncoder,
)
from skdp.exceptions import SchemaMismatchWarning

# At small epsilon, fits warn that counts resemble those of an empty table.
warnings.simplefilter("ignore", SchemaMismatchWarning)

MEANS = [
    (7, 28),
    (9, 40),
    (43, 189),
    (143, 2501),
    (0.05, 0.17),
    (0.01, 0.35),
    (0, 0.43),
    (0, 0.21),
    (0.1, 0.31),
]
ERRORS = [
    (0.1, 2.9),
    (0.3, 4.9),
    (0.7, 22),
    (6, 543),
    (0, 0.04),
    (0, 0.14),
    (0, 0.4),
    (0, 0.06),
    (0, 0.08),
]
WORST = [
    (7, 37),
    (12, 50),
    (50, 252),
    (185, 4254),
    (0.07, 0.23),
    (0.02, 1.06),
    (0, 1.26),
    (0, 0.3),
    (0.15, 0.67),
]
FRACTAL = [(0.04, 0.1), (0, 0.03), (0.05, 0.21)]
BOUNDS = [*MEANS, FRACTAL[0], *ERRORS, FRACTAL[1], *WORST, FRACTAL[2]]

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
numbers = [Number(*ends, missing="error") for ends in BOUNDS]
schema = Schema(dict(zip(X, numbers, strict=True)), target=[0, 1])
linear = make_pipeline(
    TableEncoder(schema), LogisticRegression(solver="newton-cholesky")
)
ceiling = cross_val_score(linear, X, y).mean()
print(f"scikit-learn's logistic regression, no privacy: {ceiling:.3f}")

# %%
# Four classifiers
# ----------------
# Linear models map the thirty columns to [-1, 1], so that the norm of a row is at most 5.5. Most rows are much shorter.
# Rows with a norm above ``data_norm=4`` are scaled down. Delta is 1e-5 for all models, and all other parameters keep
# their defaults.

common = {"schema": schema, "delta": 1e-5}
models = {
    "DPSGDClassifier": DPSGDClassifier(data_norm=4.0, **common),
    "ObjPertLogReg": ObjPertLogReg(data_norm=4.0, **common),
    "FunctionalMechLogReg": FunctionalMechLogReg(data_norm=4.0, **common),
    "DPNaiveBayes": DPNaiveBayes(**common),
}
epsilons = np.array([0.1, 0.3, 1, 3, 10])
splits = RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=0)
curves = {}
for name, model in models.items():
    values = [*epsilons, np.inf]
    curves[name] = validation_curve(
        model, X, y, param_name="epsilon", param_range=values, cv=splits
    )[1]

# %%
# Curves with and without noise
# -----------------------------
# Lines are means over five folds, twice. The band contains eight in ten of the scores. The dotted
# line is the same model without noise, and the black line is scikit-learn. The gap between these two lines is the loss
# of the model itself. The gap between the dotted line and the curve is the loss from privacy. Grey lines are the other
# three models.


def plot_curve(axis, name, colour):
    """Plot accuracy against epsilon, with a band for most of the folds."""
    for scores in curves.values():
        axis.plot(epsilons, scores[:-1].mean(axis=1), color="0.85")
    *private, without_noise = curves[name]
    means = np.mean(private, axis=1)
    low, high = np.quantile(private, [0.1, 0.9], axis=1)
    axis.plot(epsilons, means, "o-", color=colour, label="private")
    axis.fill_between(epsilons, low, high, color=colour, alpha=0.15)
    without_noise = without_noise.mean()
    axis.axhline(without_noise, color=colour, ls=":", label="without noise")
    axis.axhline(ceiling, color="k", label="scikit-learn")
    axis.set(title=name, xscale="log", ylim=(0.4, 1))
    axis.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axis.minorticks_off()
    axis.legend(fontsize=8, loc="lower right")


figure, axes = plt.subplots(
    2, 2, figsize=(7.5, 6.6), sharex=True, sharey=True, layout="constrained"
)
for k, (axis, name) in enumerate(zip(axes.flat, curves, strict=True)):
    plot_curve(axis, name, f"C{k}")
figure.supxlabel("epsilon")
figure.supylabel("accuracy")
figure.suptitle("Breast cancer, 455 records to fit, delta = 1e-5")

# %%
# The epsilon for a required accuracy
# -----------------------------------
# Read in the other direction, a curve gives the epsilon for an accuracy. Between two points, the script interpolates on
# the logarithm of epsilon. A dash means that the curve does not reach the accuracy.


def needed_epsilon(scores, accuracy):
    """Return the epsilon for an accuracy, or NaN."""
    means = np.maximum.accumulate(scores[:-1].mean(axis=1))
    if not means[0] < accuracy <= means[-1]:
        return np.nan
    return np.exp(np.interp(accuracy, means, np.log(epsilons)))


accuracies = [0.85, 0.90, 0.94]
needed = pd.DataFrame(
    [
        [needed_epsilon(scores, accuracy) for accuracy in accuracies]
        for scores in curves.values()
    ],
    index=curves,
    columns=accuracies,
)
print("epsilon for an accuracy of")
print(needed.round(2).to_string(na_rep="-"))

# %%
# With so few records, gradient descent is the most accurate at small epsilon. At epsilon 0.1, every model is far below
# its dotted line. At epsilon 10, all models are close to their dotted lines. Naive Bayes is less accurate than the
# others there because it assumes independent features. The cause is not its noise, and a larger epsilon would not help.
#
# The curves hold for these records. With ten times as many records, they would move to the left, by about a factor of
# ten. On Adult, the order of the models is different (see the tables in :ref:`gradient_descent` and
# :ref:`naive_bayes`).
#
# Summary
# -------
# Draw the curve before you choose epsilon, on public or simulated records that resemble yours. Compare the model with
# the same model without noise, to see which part of the loss is due to privacy. Then fit the private records once, and
# evaluate the model by :func:`~skdp.model_selection.private_score`, which is charged.

plt.show()

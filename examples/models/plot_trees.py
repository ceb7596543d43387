"""
Private trees to read and private forests to predict
====================================================

A decision tree is a rule with a count in each leaf. This example fits private trees to records that follow a known
rule. It shows how to read a private tree with noisy counts, how to choose the depth and the number of trees, and how
both depend on epsilon and delta.
"""

# %%
# Patients and a known rule
# -------------------------
# The records are simulated: the temperature and pulse of patients, and whether they stayed in hospital. By a rule,
# patients stay if they have more than 39 °C, or a pulse above 105 and more than 37.5 °C. The label follows the rule for
# 92 patients in 100, chosen at random. The bounds are the ranges of the instruments: 35 to 42 °C, and 40 to 180
# beats a minute. Every fit has the stated epsilon, and a delta of 1e-6 unless stated otherwise. For private records,
# use one ``accountant`` for all fits.

import math
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from skdp import Number, Schema
from skdp.exceptions import SchemaMismatchWarning
from skdp.tree import DPGreedyTree, DPRandomTree, export_text

# At small epsilon, fits warn that counts resemble those of an empty table.
warnings.simplefilter("ignore", SchemaMismatchWarning)

SCHEMA = Schema(
    {
        "temperature": Number(35, 42, missing="error"),
        "pulse": Number(40, 180, missing="error"),
    },
    target={"stay": ["home", "hospital"]},
)


def rule(X):
    """Return True for patients who should stay."""
    temperature, pulse = X.T
    return (temperature > 39) | ((pulse > 105) & (temperature > 37.5))


def simulate_patients(n, rng):
    """Draw temperature and pulse, and labels."""
    temperature = rng.normal(37.6, 1.0, n).clip(35, 42)
    pulse = rng.normal(95, 22, n).clip(40, 180)
    X = np.column_stack([temperature, pulse])
    is_exception = rng.uniform(size=n) < 0.08
    return X, np.where(rule(X) ^ is_exception, "hospital", "home")


rng = np.random.default_rng(0)
X, y = simulate_patients(4000, rng)
X_test, y_test = simulate_patients(3000, rng)


def tree(epsilon, **parameters):
    """Return a tree with privately chosen splits."""
    parameters = {"max_depth": 3, "delta": 1e-6} | parameters
    return DPGreedyTree(schema=SCHEMA, epsilon=epsilon, **parameters)


def forest(epsilon, **parameters):
    """Return a forest of random trees with both features."""
    parameters = {
        "max_depth": 5,
        "n_estimators": 16,
        "delta": 1e-6,
    } | parameters
    return DPRandomTree(
        schema=SCHEMA, epsilon=epsilon, max_features=2, **parameters
    )


# %%
# A tree to read
# --------------
# ``DPGreedyTree`` spends its budget on the choice of splits for each level, and on the counts in the leaves. The budget
# covers everything in the printed tree. Therefore you may publish it.

model = tree(1.0).fit(X, y)
print(export_text(model, decimals=1))
print(f"\n{model.privacy_}")

# %%
# The thresholds are on a public grid of 31 values for each column. The noisy choice takes a threshold that is close to
# the best. The splits use three fifths of the budget. The counts use the rest, and their noise has a standard deviation
# of about seven patients. Therefore a count of 500 is right to within a few per cent, but a leaf with a count of 3 may
# be empty. A negative count is not a mistake, and means that the leaf has few records or none. The share in brackets is
# smoothed towards the share of its branch. It is more reliable than a ratio of small counts. Branches with too few
# records for the noise are pruned.
#
# Decision regions
# ----------------
# The colour is the probability of a stay, and the dashed line is the rule. The upper row shows one grown tree. The
# lower row shows a weighted forest of 16 trees, whose splits are drawn at random from public numbers. The noise is
# different in each run.

temperatures, pulses = np.linspace(35, 42, 141), np.linspace(40, 180, 141)
grid = np.meshgrid(temperatures, pulses)
points = np.column_stack([axis.ravel() for axis in grid])


def plot_regions(axis, model):
    """Plot the probability that a patient stays, and the rule."""
    probability = model.predict_proba(points)[:, 1].reshape(grid[0].shape)
    image = axis.pcolormesh(*grid, probability, vmin=0, vmax=1)
    axis.plot([37.5, 37.5, 39, 39], [180, 105, 105, 40], "w--")
    accuracy = model.score(X_test, y_test)
    title = f"epsilon {model.epsilon:g}: accuracy {accuracy:.2f}"
    axis.set_title(title, fontsize="medium")
    return image


figure, axes = plt.subplots(
    2, 3, figsize=(9, 6.2), sharex=True, sharey=True, layout="constrained"
)
for column, epsilon in enumerate([math.inf, 1.0, 0.1]):
    plot_regions(axes[0, column], tree(epsilon).fit(X, y))
    image = plot_regions(axes[1, column], forest(epsilon).fit(X, y))
    axes[1, column].set_xlabel("temperature, °C")
axes[0, 0].set_ylabel("one grown tree\npulse, 1/min")
axes[1, 0].set_ylabel("random forest\npulse, 1/min")
figure.colorbar(image, ax=axes, label="probability of a stay", shrink=0.6)

# %%
# The accuracy is measured on 3,000 fresh simulated patients. The rule itself has an accuracy of 0.93 there, and the
# constant answer "home" has 0.74. At epsilon 1, both models find the rule. At epsilon 0.1, each level of the grown tree
# has so little budget for its choice that some splits are wrong, and their budget is lost. The forest is blurred.
# Random splits need no budget. All of the budget is for counts and weights, but the forest has more of them.
#
# (``max_features=2`` helps with the corner of the rule. By default, most trees use one column each, and cannot find
# interactions.)
#
# Depth and number of trees
# -------------------------
# The left panel varies the depth of one grown tree and of 16 random trees. The right panel varies the number of random
# trees, at depth 5. Marks are means of ten fits, for forests with ten seeds of their structure. Bars are one standard
# error to each side.


def accuracies(model, n_fits=10):
    """Return the accuracy of several fits."""
    scores = []
    for seed in range(n_fits):
        if isinstance(model, DPRandomTree):
            model.set_params(structure_seed=seed)
        scores.append(clone(model).fit(X, y).score(X_test, y_test))
    return np.array(scores)


def plot_parameter(axis, model, parameter, values, label, style):
    """Plot accuracy against a parameter of a model, with standard errors."""
    scores = np.array(
        [
            accuracies(model.set_params(**{parameter: value}))
            for value in values
        ]
    )
    means = scores.mean(axis=1)
    errors = scores.std(axis=1, ddof=1) / math.sqrt(scores.shape[1])
    axis.errorbar(values, means, errors, fmt=style, capsize=2, label=label)
    print(f"{label:<24}", *(f"{mean:.2f}" for mean in means))


DEPTHS, NUMBERS = [1, 2, 3, 5, 8], [1, 4, 16, 64]
figure, (left, right) = plt.subplots(
    1, 2, figsize=(9, 4.8), sharey=True, layout="constrained"
)
for epsilon, colour in [(1.0, "C0"), (0.1, "C1")]:
    name = f"epsilon {epsilon:g}"
    plot_parameter(
        left,
        tree(epsilon),
        "max_depth",
        DEPTHS,
        f"grown, {name}",
        f"{colour}o-",
    )
    plot_parameter(
        left,
        forest(epsilon),
        "max_depth",
        DEPTHS,
        f"random, {name}",
        f"{colour}s--",
    )
    for delta, style in [(1e-6, "s--"), (0.0, "^:")]:
        plot_parameter(
            right,
            forest(epsilon, delta=delta),
            "n_estimators",
            NUMBERS,
            f"{name}, delta {delta:g}",
            f"{colour}{style}",
        )
best = np.mean(np.where(rule(X_test), "hospital", "home") == y_test)
left.set(xlabel="depth", xticks=DEPTHS, ylabel="test accuracy")
left.set_title("One grown tree or 16 random trees")
right.set(xlabel="trees", xscale="log", title="Random trees of depth 5")
right.set_xticks(NUMBERS, [str(number) for number in NUMBERS])
right.minorticks_off()
for axis in (left, right):
    axis.axhline(best, color="0.5", linewidth=0.8, label="the rule itself")
    axis.legend(
        fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2
    )

# %%
# *Depth.* The grown tree needs three levels for this rule. More levels do no harm at epsilon 1, because useless splits
# are pruned. At epsilon 1, random trees work at any depth. At epsilon 0.1, random trees of depth 8 have 256 leaves with
# few patients in each, and are less accurate than shallower trees.
#
# *Number of trees.* Each tree counts a patient once. With a delta, the noise therefore grows with the square root of
# the number of trees: 16 trees are better than 4 at epsilon 1, and 64 are too many at epsilon 0.1. Without a delta, the
# noise grows with the number itself, and 64 trees predict little more than the more frequent label, at either epsilon.
#
# Summary
# -------
# To read a tree, use thousands of records, an epsilon of about 1, and few levels. To predict, use many random trees if
# epsilon is about 1 and there is a delta. Otherwise use few trees. (The default is two trees for each column with a
# delta, and one without. With as few columns as here, 16 trees are better.) :ref:`trees` has the theorems and larger
# tables. :class:`~skdp.tree.DPGreedyTree` and :class:`~skdp.tree.DPRandomTree` describe all parameters.

plt.show()

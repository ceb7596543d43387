"""
A private tree to read, and a private forest to predict
=======================================================

A tree is a rule, and its leaves are counts: both can be looked at. Here we learn what privacy leaves of a rule that is
known, how to read a private tree, noisy counts and all, and how deep trees should be and how many, which depends on
epsilon, and on whether a delta is admitted.
"""

# %%
# A rule, and patients
# --------------------
# The records are simulated: temperature and pulse of patients, and whether they were kept in hospital. The rule is to
# keep those with more than 39 °C, and those with a pulse beyond 105 and more than 37.5 °C. It was followed for 92 in
# 100 patients, whom chance picked. Bounds are what the instruments show: 35 to 42 °C, and 40 to 180 beats a minute.
# Every fit below has the epsilon that it says, and a delta of 1e-6 unless said otherwise; many fits to the same private
# records would want one ``accountant`` for all of them.

import math

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from skdp.tree import DPGreedyTree, DPRandomTree, export_text

PUBLIC = {"bounds": ([35, 40], [42, 180]), "classes": ["home", "kept"]}


def rule(X):
    """Say who should be kept."""
    temperature, pulse = X.T
    return (temperature > 39) | ((pulse > 105) & (temperature > 37.5))


def patients(n, rng):
    """Draw temperature and pulse, and what was decided."""
    X = np.column_stack([rng.normal(37.6, 1.0, n), rng.normal(95, 22, n)]).clip(*PUBLIC["bounds"])
    return X, np.where(rule(X) ^ (rng.uniform(size=n) < 0.08), "kept", "home")


rng = np.random.default_rng(0)
X, y = patients(4000, rng)
X_test, y_test = patients(3000, rng)


def tree(epsilon, max_depth=3):
    """Give a tree whose splits are chosen privately."""
    return DPGreedyTree(epsilon=epsilon, delta=1e-6, max_depth=max_depth, **PUBLIC)


def forest(epsilon, delta=1e-6, n_estimators=16, max_depth=5, structure_seed=0):
    """Give trees that are drawn at random, each of both features."""
    return DPRandomTree(
        n_estimators=n_estimators,
        epsilon=epsilon,
        delta=delta,
        max_depth=max_depth,
        max_features=2,
        structure_seed=structure_seed,
        **PUBLIC,
    )


# %%
# To read
# -------
# ``DPGreedyTree`` pays for the choice of each level of splits, and for the counts in the leaves. All that is printed
# was paid for, and may be published.

model = tree(1.0).fit(X, y)
print(export_text(model, feature_names=["temperature", "pulse"], decimals=1))
print(f"\n{model.privacy_}")

# %%
# The thresholds stand on a public grid, 31 of each column, and the noisy choice takes one that is nearly the best.
# Three fifths of the budget go there; the rest is for the counts, whose noise has a standard deviation of about seven
# patients. Hence a leaf of 500 is what it says, within a few in a hundred, and a leaf of 3 may be empty. A negative
# count is no mistake: it says that there are few or none. The share in brackets is smoothed towards that of the branch,
# and can be believed more than the ratio of small counts. Branches with too few records for the noise are taken back.
#
# Regions
# -------
# Colour is the probability of being kept, and the dashed line is the rule. Above, one tree that was grown; below, 16
# that were drawn, by public lot, and weighted. A fresh run draws fresh noise.

grid = np.meshgrid(np.linspace(35, 42, 141), np.linspace(40, 180, 141))
points = np.column_stack([axis.ravel() for axis in grid])
regions, axes = plt.subplots(2, 3, figsize=(9, 6.2), sharex=True, sharey=True, layout="constrained")
for row, (name, make) in zip(axes, {"DPGreedyTree": tree, "DPRandomTree": forest}.items(), strict=True):
    row[0].set_ylabel(f"{name}\npulse, 1/min")
    for axis, epsilon in zip(row, [math.inf, 1.0, 0.1], strict=True):
        model = make(epsilon).fit(X, y)
        kept = model.predict_proba(points)[:, 1].reshape(grid[0].shape)
        image = axis.pcolormesh(*grid, kept, cmap="cividis", vmin=0, vmax=1, rasterized=True)
        axis.plot([37.5, 37.5, 39, 39], [180, 105, 105, 40], "w--", linewidth=1.5)
        title = "no noise" if epsilon == math.inf else f"epsilon {epsilon:g}"
        axis.set_title(f"{title}: accuracy {model.score(X_test, y_test):.2f}", fontsize="medium")
regions.colorbar(image, ax=axes, label="probability of being kept", shrink=0.6)
for axis in axes[1]:
    axis.set_xlabel("temperature, °C")

# %%
# The accuracy is that on 3000 simulated patients whom nobody fitted to. The rule itself comes to 0.93 there, and
# to send all home to 0.74. At 1 the rule is still there. At 0.1, a level of the grown tree has so little budget for
# its choice that some questions miss, and what was asked in vain is lost. The forest is blurred: trees that are drawn
# cost nothing, so that all of the budget is for counts and weights, and is spread over more of them.
#
# (``max_features=2`` is for the corner of the rule. By default most trees see one column each, and two columns that
# matter together escape them.)
#
# How deep, how many
# ------------------
# At the left, the depth of one grown tree and of 16 drawn ones. At the right, the number of drawn trees, at depth 5.
# Each mark is the mean of ten fits, forests with ten seeds of their structure; bars are a standard error to each side.


def draw(axis, model, parameter, values, style, colour, label):
    """Draw accuracy against a parameter of a model."""
    found = np.zeros((len(values), 10))
    for row, value in zip(found, values, strict=True):
        for seed in range(10):
            fresh = clone(model).set_params(**{parameter: value})
            if isinstance(model, DPRandomTree):
                fresh.set_params(structure_seed=seed)
            row[seed] = fresh.fit(X, y).score(X_test, y_test)
    means, errors = found.mean(axis=1), found.std(axis=1, ddof=1) / math.sqrt(10)
    axis.errorbar(values, means, errors, fmt=style, color=colour, label=label, capsize=2, markersize=5)
    print(f"{label:<24}", *(f"{value}: {mean:.2f}" for value, mean in zip(values, means, strict=True)), sep="  ")


best = np.mean(np.where(rule(X_test), "kept", "home") == y_test)
DEPTHS, NUMBERS = [1, 2, 3, 5, 8], [1, 4, 16, 64]
curves, (left, right) = plt.subplots(1, 2, figsize=(9, 4.8), sharey=True, layout="constrained")
for epsilon, colour in [(1.0, "C0"), (0.1, "C1")]:
    draw(left, tree(epsilon), "max_depth", DEPTHS, "o-", colour, f"grown, epsilon {epsilon:g}")
    draw(left, forest(epsilon), "max_depth", DEPTHS, "s--", colour, f"drawn, epsilon {epsilon:g}")
    draw(right, forest(epsilon), "n_estimators", NUMBERS, "s--", colour, f"epsilon {epsilon:g}, delta 1e-6")
    draw(right, forest(epsilon, delta=0), "n_estimators", NUMBERS, "^:", colour, f"epsilon {epsilon:g}, delta 0")
left.set(xlabel="depth", xticks=DEPTHS, ylabel="test accuracy", title="One tree grown, or 16 drawn")
right.set(xlabel="drawn trees", xscale="log", title="Drawn trees, depth 5")
right.set_xticks(NUMBERS, [str(number) for number in NUMBERS])
right.minorticks_off()
for axis in (left, right):
    axis.axhline(best, color="0.5", linewidth=0.8, label="the rule itself")
    axis.grid(axis="y", color="0.92")
    axis.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)

# %%
# *Depth.* The grown tree needs three levels for this rule. More do no harm at 1: what was split in vain is taken back.
# Drawn trees are content with any depth at 1; at 0.1, those of depth 8 have 256 leaves with few patients in each, and
# lose to shallower ones.
#
# *Number.* A patient is counted once in each tree. With a delta, the noise grows with the square root of their number:
# at 1, 16 trees are better than 4, and at 0.1, 64 are too many. Without a delta it grows with the number itself, and 64
# trees know little more than that most patients go home, at either epsilon.
#
# To take along: a tree to be read wants thousands of records, an epsilon about 1, and few levels. To predict, draw many
# trees if there is a delta and an epsilon about 1, few otherwise. (The default is two for each column with a delta, one
# without; where columns are as few as here, 16 are better.) :ref:`trees` has the theorems and larger tables;
# :class:`~skdp.tree.DPGreedyTree` and :class:`~skdp.tree.DPRandomTree` have all parameters.

plt.show()

"""
Noise and decision boundaries
=============================

A private fit is random: two fits to the same records give different models. This example draws the decision boundaries
of many fits, for a linear model and for a forest. It shows how a larger epsilon or more records bring the boundaries
together.
"""

# %%
# Two half moons
# --------------
# The records are simulated points in the plane. Both features are known to be between -2 and 3. The schema declares
# these bounds and the labels for both models.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from skdp import DPRandomTree, Number, ObjPertLogReg, Schema
from skdp.exceptions import SchemaMismatchWarning

# At small epsilon, fits warn that counts resemble those of an empty table.
warnings.simplefilter("ignore", SchemaMismatchWarning)

SCHEMA = Schema(
    {"x": Number(-2, 3), "y": Number(-2, 3)}, target={"moon": [0, 1]}
)
EPSILONS = [0.1, 1.0, 10.0]
REPEATS = 15

X, y = make_moons(400, noise=0.25, random_state=0)
X_test, y_test = make_moons(4000, noise=0.25, random_state=1)


def linear(epsilon, seed):
    """Return a private logistic regression."""
    return ObjPertLogReg(
        schema=SCHEMA, epsilon=epsilon, delta=1e-5, random_state=seed
    )


def forest(epsilon, seed):
    """Return a private forest with both features in each tree."""
    return DPRandomTree(
        schema=SCHEMA,
        n_estimators=16,
        max_features=2,
        epsilon=epsilon,
        delta=1e-5,
        expected_n=400,
        random_state=seed,
    )


# %%
# Fits with fresh noise
# ---------------------
# Each panel shows fifteen fits to the same 400 records. A thin line is the decision boundary of one fit, and the colour
# is the number of fits that predict 1. The splits of the forest are drawn from public numbers and are the same in all
# fits. Only the counts in the leaves have noise.
#
# The seeds only make the figure reproducible. Never set a seed for private records, because anybody who knows the seed
# can subtract the noise.

grid = np.linspace(-1.8, 2.8, 120)
XX, YY = np.meshgrid(grid, grid)
points = np.column_stack([XX.ravel(), YY.ravel()])


def plot_fits(axis, make, epsilon, X, y):
    """Fit several times, plot boundaries, and return test accuracies."""
    models = [make(epsilon, seed).fit(X, y) for seed in range(REPEATS)]
    votes = [model.predict(points).reshape(XX.shape) for model in models]
    axis.pcolormesh(
        XX,
        YY,
        np.mean(votes, axis=0),
        cmap="RdBu_r",
        vmin=-0.3,
        vmax=1.3,
        rasterized=True,
    )
    for model in models:
        margin = model.predict_proba(points)[:, 1].reshape(XX.shape) - 0.5
        if margin.min() < 0 < margin.max():
            axis.contour(
                XX,
                YY,
                margin,
                levels=[0],
                colors="k",
                linewidths=0.6,
                alpha=0.6,
            )
    for label, colour in enumerate(["#0a2f6b", "#8b0a1a"]):
        axis.scatter(
            *X[y == label].T,
            c=colour,
            s=6,
            alpha=0.6,
            linewidths=0,
            label=f"record with label {label}",
        )
    scores = [model.score(X_test, y_test) for model in models]
    axis.set(xlim=(-1.8, 2.8), ylim=(-1.6, 2.1), xticks=[], yticks=[])
    axis.set_title(
        f"epsilon {epsilon:g}: {np.mean(scores):.2f} "
        f"({min(scores):.2f} to {max(scores):.2f})",
        fontsize=10,
    )
    return scores


figure, axes = plt.subplots(2, 3, figsize=(11, 6.4), layout="constrained")
for row, (name, make) in zip(
    axes,
    {"ObjPertLogReg": linear, "DPRandomTree": forest}.items(),
    strict=True,
):
    row[0].set_ylabel(name, fontsize=12)
    for axis, epsilon in zip(row, EPSILONS, strict=True):
        scores = plot_fits(axis, make, epsilon, X, y)
        print(
            f"{name:<14} epsilon {epsilon:>4g}: accuracy "
            f"{np.mean(scores):.3f}, standard deviation {np.std(scores):.3f}"
        )
axes[0, 0].plot([], [], "k-", linewidth=0.6, label="boundary of one fit")
figure.legend(
    *axes[0, 0].get_legend_handles_labels(),
    loc="outside lower center",
    ncols=3,
    markerscale=2,
)
figure.suptitle(
    "15 private fits to the same 400 records: "
    "mean test accuracy (lowest to highest)"
)

# %%
# At epsilon 0.1, the fits have little in common. Most forests have no boundary, because they predict the same label
# everywhere. At epsilon 10, the boundaries nearly agree, and those of the forests agree where there are records. A
# forest can have a curved boundary. Therefore it is more accurate at large epsilon. It is less accurate at small
# epsilon, because it has more numbers to learn than the linear model, which has three.
#
# Ten times the records
# ---------------------
# The noise covers one record, for any number of records. With ten times the records, its effect is ten times smaller.

X_more, y_more = make_moons(4000, noise=0.25, random_state=2)
print()
for name, make in {"ObjPertLogReg": linear, "DPRandomTree": forest}.items():
    scores = [
        make(0.1, seed).fit(X_more, y_more).score(X_test, y_test)
        for seed in range(REPEATS)
    ]
    print(
        f"{name:<14} epsilon 0.1, 4000 records: accuracy "
        f"{np.mean(scores):.3f}, standard deviation {np.std(scores):.3f}"
    )

# %%
# The fits at epsilon 0.1 with ten times the records are about as accurate as the fits at epsilon 1.
#
# Summary
# -------
# One private model is one random draw. The product of epsilon and the number of records determines its accuracy. Before
# you fit a model to private records, fit several models to a public or simulated table of the same size, and compare
# them.

plt.show()

"""
Noise and decision boundaries
=============================

A private fit is random: fit twice to the same records, and two different models come out. Here we look at what that
does to the line where a classifier changes its mind, for a linear model and for a forest, and at how a larger epsilon,
or more records, brings the lines together.
"""

# %%
# Two half moons
# --------------
# The records are simulated in the plane, and known to lie between -2 and 3 in both features. ``BoundsScaler`` maps this
# box to [-1, 1], a public map. A row of two such numbers is at most the square root of 2 long, which is the
# ``data_norm`` of the linear model. The forest has the bounds themselves.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.pipeline import make_pipeline

from skdp import DPRandomTree, ObjPertLogReg
from skdp.preprocessing import BoundsScaler

BOUNDS = (-2, 3)
EPSILONS = [0.1, 1.0, 10.0]
REPEATS = 15

X, y = make_moons(400, noise=0.25, random_state=0)
X_test, y_test = make_moons(4000, noise=0.25, random_state=1)


def linear(epsilon, seed):
    """Give a private logistic regression, for rows of the public box."""
    model = ObjPertLogReg(epsilon=epsilon, delta=1e-5, data_norm=2**0.5, classes=[0, 1], random_state=seed)
    return make_pipeline(BoundsScaler(BOUNDS), model)


def forest(epsilon, seed):
    """Give a private forest, whose trees see both features."""
    return DPRandomTree(
        n_estimators=16,
        max_features=2,
        epsilon=epsilon,
        delta=1e-5,
        bounds=BOUNDS,
        classes=[0, 1],
        expected_n=400,
        random_state=seed,
    )


# %%
# The same records, fresh noise
# -----------------------------
# Each panel has fifteen fits to the same 400 records. A thin line is where one of them changes its mind, and the
# colour is how many of the fifteen say 1. The forest's trees are drawn from public numbers, and are the same in all
# fits: only the counts in their leaves have noise.
#
# The seeds are there so that the picture can be repeated. With private records there are none: who knows the seed can
# subtract the noise.

grid = np.linspace(-1.8, 2.8, 120)
XX, YY = np.meshgrid(grid, grid)
points = np.column_stack([XX.ravel(), YY.ravel()])


def draw(axis, make, epsilon, X, y):
    """Fit several times, draw boundaries and votes, and return the test accuracies."""
    models = [make(epsilon, seed).fit(X, y) for seed in range(REPEATS)]
    votes = [model.predict(points).reshape(XX.shape) for model in models]
    axis.pcolormesh(XX, YY, np.mean(votes, axis=0), cmap="RdBu_r", vmin=-0.3, vmax=1.3, rasterized=True)
    for model in models:
        margin = model.predict_proba(points)[:, 1].reshape(XX.shape) - 0.5
        if margin.min() < 0 < margin.max():
            axis.contour(XX, YY, margin, levels=[0], colors="k", linewidths=0.6, alpha=0.6)
    axis.scatter(*X.T, c=np.where(y == 1, "#8b0a1a", "#0a2f6b"), s=6, alpha=0.6, linewidths=0)
    found = [model.score(X_test, y_test) for model in models]
    axis.set(xlim=(-1.8, 2.8), ylim=(-1.6, 2.1), xticks=[], yticks=[])
    axis.set_title(f"epsilon {epsilon:g}: {np.mean(found):.2f} ({min(found):.2f} to {max(found):.2f})", fontsize=10)
    return found


figure, axes = plt.subplots(2, 3, figsize=(11, 6.4), layout="constrained")
for row, (name, make) in zip(axes, {"ObjPertLogReg": linear, "DPRandomTree": forest}.items(), strict=True):
    row[0].set_ylabel(name, fontsize=12)
    for axis, epsilon in zip(row, EPSILONS, strict=True):
        found = draw(axis, make, epsilon, X, y)
        print(
            f"{name:<14} epsilon {epsilon:>4g}: accuracy {np.mean(found):.3f}, standard deviation {np.std(found):.3f}"
        )
figure.suptitle("15 private fits to the same 400 records: test accuracy, mean (least to most)")

# %%
# At epsilon 0.1 the fits have little in common. Most of the forests have no boundary at all: they say the same
# everywhere. At 10 the lines nearly agree, and so do the forests where there are records. A forest can bend, so that it
# is better where there is budget for it, and worse where there is none: it has more numbers to learn than the three of
# the line.
#
# Ten times the records
# ---------------------
# Noise is for one record's sake, whatever their number. With ten times as many, it is ten times smaller by comparison.

X_more, y_more = make_moons(4000, noise=0.25, random_state=2)
print()
for name, make in {"ObjPertLogReg": linear, "DPRandomTree": forest}.items():
    found = [make(0.1, seed).fit(X_more, y_more).score(X_test, y_test) for seed in range(REPEATS)]
    print(
        f"{name:<14} epsilon  0.1, 4000 records: accuracy {np.mean(found):.3f}, standard deviation {np.std(found):.3f}"
    )

# %%
# The fits with 0.1 and ten times the records are about as good as those with 1 were.
#
# To take away: one private model is one draw of many. What counts is epsilon times the number of records. Before you
# fit one model to private records, fit several to public or simulated ones, as many as those, and see how far they
# differ.

plt.show()

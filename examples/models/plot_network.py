"""
Neural networks for curved decision boundaries
==============================================

A linear model cannot learn a curved decision boundary with any budget. This example compares a linear model, a linear
model on products of the columns, and a small neural network that is trained with noisy gradients. It also shows how to
choose the number of steps, because a private fit has no loss curve.
"""

# %%
# Two clubs in one town
# ---------------------
# The records are simulated: 4,000 people in a square town, and which of two clubs they support. The bounds are the
# limits of the town, scaled to [-1, 1]. Therefore no row has a norm above the square root of 2, which is ``data_norm``.
# Scores are exact, on 2,000 other simulated people. For private people, use
# :func:`~skdp.model_selection.private_score`, which is charged.

import math

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from skdp import DPMLPClassifier, ObjPertLogReg


def chance(X):
    """Return the true probability of club 1."""
    angle, radius = np.arctan2(X[:, 1], X[:, 0]), np.hypot(*X.T)
    return 1 / (1 + np.exp(-8 * np.sin(2 * angle + 3 * radius)))


def simulate_people(n, rng):
    """Draw places and clubs."""
    X = rng.uniform(-1, 1, (n, 2))
    return X, (rng.uniform(size=n) < chance(X)).astype(int)


rng = np.random.default_rng(0)
X, y = simulate_people(4000, rng)
X_test, y_test = simulate_people(2000, rng)
best = np.mean((chance(X_test) > 0.5) == y_test)

# %%
# Three models
# ------------
# - A linear model has three numbers to learn.
# - A linear model on all products of up to four coordinates has 14 columns. The products are a public map of a row, and
#   none of them exceeds 1. Therefore no row has a norm above the square root of 14.
# - A network with 32 hidden units has 129 numbers to learn.
#
# All three have a delta of 1e-6. ``expected_n`` states the number of people, which is public here. By default, the
# number of records is released with a small part of the budget. The network chooses its learning rate, clipping bound
# and sampling probability from public numbers. Each fit has its own epsilon. For private records, use one
# ``accountant``. There are 200 steps in place of the default, to save time.


def line(epsilon):
    """Return a linear model."""
    return ObjPertLogReg(
        epsilon=epsilon, delta=1e-6, data_norm=2**0.5, classes=[0, 1]
    )


def products(epsilon):
    """Return a linear model of products."""
    model = ObjPertLogReg(
        epsilon=epsilon, delta=1e-6, data_norm=14**0.5, classes=[0, 1]
    )
    return make_pipeline(PolynomialFeatures(4, include_bias=False), model)


def network(epsilon, n_steps=200):
    """Return a network."""
    return DPMLPClassifier(
        (32,),
        epsilon=epsilon,
        delta=1e-6,
        data_norm=2**0.5,
        classes=[0, 1],
        n_steps=n_steps,
        expected_n=4000,
    )


MODELS = {"linear model": line, "products": products, "network": network}
grid = np.meshgrid(*[np.linspace(-1, 1, 101)] * 2)
points = np.column_stack([axis.ravel() for axis in grid])


def plot_map(axis, model):
    """Plot the predicted probability, and the best boundary."""
    probability = model.predict_proba(points)[:, 1].reshape(grid[0].shape)
    image = axis.pcolormesh(*grid, probability, vmin=0, vmax=1)
    best_boundary = chance(points).reshape(grid[0].shape)
    axis.contour(*grid, best_boundary, [0.5], colors="w", linestyles="--")
    axis.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1], aspect="equal")
    return image


figure, axes = plt.subplots(
    3, 3, figsize=(8, 7.2), sharex=True, sharey=True, layout="constrained"
)
for row, (name, make) in zip(axes, MODELS.items(), strict=True):
    row[0].set_ylabel(name)
    for axis, epsilon in zip(row, [math.inf, 1.0, 0.1], strict=True):
        model = make(epsilon).fit(X, y)
        image = plot_map(axis, model)
        accuracy = model.score(X_test, y_test)
        axis.set_title(
            f"epsilon {epsilon:g}: {accuracy:.2f}", fontsize="medium"
        )
figure.colorbar(image, ax=axes, label="probability of club 1", shrink=0.5)

# %%
# The titles show the test accuracy. The best possible accuracy is about 0.95, by the dashed line. The linear model
# finds nothing, with or without noise. The model on products finds that the clubs are in opposite corners and, at
# epsilon 1 and without noise, a part of the curve. The network finds the curve at epsilon 1, and the corners at epsilon
# 0.1.
#
# Epsilon and number of steps
# ---------------------------
# The left panel shows the accuracy against epsilon: means of three fits, with a band for all three. The right panel
# shows the log loss of the network on other people against the number of steps, as means of three fits. The log loss on
# the training records would need a release for each point. Therefore ``fit`` does not compute it, does not stop early,
# and takes exactly ``n_steps`` steps.

EPSILONS = [0.1, 0.3, 1.0, 3.0, 10.0]
STEPS = [10, 30, 100, 1000]


def plot_with_band(axis, values, scores, label):
    """Plot the means of several fits, with a band for all of them."""
    axis.plot(values, scores.mean(axis=1), "o-", label=label)
    low, high = scores.min(axis=1), scores.max(axis=1)
    axis.fill_between(values, low, high, alpha=0.15)
    axis.set_xscale("log")
    axis.set_xticks(values, [f"{value:g}" for value in values])
    axis.minorticks_off()
    print(f"{label:<14}", *(f"{mean:.2f}" for mean in scores.mean(axis=1)))


def accuracies(model, n_fits=3):
    """Return the test accuracy of several fits."""
    return [model.fit(X, y).score(X_test, y_test) for _ in range(n_fits)]


def log_losses(model, n_fits=3):
    """Return the test log loss of several fits."""
    return [
        log_loss(y_test, model.fit(X, y).predict_proba(X_test))
        for _ in range(n_fits)
    ]


figure, (left, right) = plt.subplots(
    1, 2, figsize=(9, 4.4), layout="constrained"
)
for name, make in MODELS.items():
    scores = np.array([accuracies(make(epsilon)) for epsilon in EPSILONS])
    plot_with_band(left, EPSILONS, scores, name)
left.axhline(best, color="k", linestyle=":", label="best possible")
left.set(xlabel="epsilon", ylabel="test accuracy", ylim=(0.35, 1))
left.legend(fontsize=9, loc="center right")
for epsilon in [0.3, 3.0]:
    losses = [log_losses(network(epsilon, n_steps)) for n_steps in STEPS]
    plot_with_band(right, STEPS, np.array(losses), f"epsilon {epsilon:g}")
right.set(xlabel="steps", ylabel="test log loss", ylim=(0, None))
right.legend(fontsize=9, loc="lower left")

# %%
# From epsilon 1 on, the network is more accurate than the model on products, although it has nine times as many
# numbers to learn. The network adapts its columns to the data. If a few products are known to matter, a linear model of
# these products is hard to beat. If the boundary is linear, use a linear model (:ref:`objective_perturbation`).
#
# All steps share one budget. With more steps, each step has more noise. Still, ten steps are too few, and a thousand
# are no worse than a hundred. The noise averages out over the steps, and the model is the average of the last half of
# the iterates, which is post-processing. Therefore the default is a thousand steps, and you do not have to tune it.
#
# Summary
# -------
# For curved boundaries and thousands of records, use the network with its defaults, and 16 to 64 hidden units. Look at
# its predictions on public or simulated records first. :ref:`neural_network` has the theorem, the defaults and larger
# data sets. :class:`~skdp.neural_network.DPMLPClassifier` describes all parameters.

plt.show()

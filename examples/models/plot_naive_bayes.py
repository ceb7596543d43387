"""
Naive Bayes: Gaussians or histograms
====================================

Naive Bayes learns a few numbers for each class, so that the effect of the noise is visible. This example shows how the
Gaussians of three kinds of iris widen and move if epsilon falls, and why they widen on purpose. It then compares
Gaussians with histograms, which have more numbers to learn but tolerate more noise.
"""

# %%
# Iris flowers
# ------------
# The records are 150 flowers with the length and width of a petal. Bounds must not come from the records. It is common
# knowledge that no petal of these wild irises is longer than 8 cm or wider than 3 cm. The three species are the public
# labels.

import math
import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse
from scipy.stats import norm
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

from skdp import DPNaiveBayes, Number, Schema
from skdp.exceptions import SchemaMismatchWarning

# At small epsilon, fits warn that counts resemble those of an empty table.
warnings.simplefilter("ignore", SchemaMismatchWarning)

X, y = load_iris(return_X_y=True)
X = X[:, 2:]
SPECIES = ["setosa", "versicolor", "virginica"]
COLOURS, MARKERS = ["C0", "C1", "C4"], ["o", "s", "^"]
SCHEMA = Schema(
    {
        "length": Number(0, 8, missing="error"),
        "width": Number(0, 3, missing="error"),
    },
    target={"species": [0, 1, 2]},
)


def bayes(epsilon, numeric):
    """Return a naive Bayes classifier with delta 0."""
    return DPNaiveBayes(schema=SCHEMA, epsilon=epsilon, numeric=numeric)


# %%
# The releases of a fit follow from public parameters. They are the noisy number of flowers of each species, and for
# each species and column a noisy sum and a noisy sum of squares. The noise depends on the number of columns, and not on
# the number of species.

print(bayes(1.0, "gaussian").privacy_plan(n_features=2))

# %%
# Gaussians
# ---------
# With ``numeric="gaussian"``, a species has a mean and a variance for each column. An ellipse shows them, one standard
# deviation to each side. Each panel shows eight fits with fresh noise, and dashed ellipses without noise. (Eight
# releases use eight times epsilon. This is allowed because the flowers are public.)


def draw_ellipse(axis, model, k, **style):
    """Draw the ellipse of one class."""
    widths = 2 * np.sqrt(model.var_[k])
    axis.add_patch(Ellipse(model.theta_[k], *widths, fill=False, **style))


def plot_fits(axis, epsilon, n_fits=8):
    """Draw the flowers, and the ellipses of several fits and without noise."""
    models = [bayes(epsilon, "gaussian").fit(X, y) for _ in range(n_fits)]
    for k, (colour, marker) in enumerate(zip(COLOURS, MARKERS, strict=True)):
        flowers = X[y == k].T
        style = {"s": 9, "color": colour, "marker": marker, "alpha": 0.5}
        axis.scatter(*flowers, label=SPECIES[k], **style)
        for model in models:
            draw_ellipse(axis, model, k, edgecolor=colour)
        draw_ellipse(axis, without_noise, k, edgecolor="k", linestyle="--")
    axis.set(xlim=(0, 8), ylim=(0, 3), xlabel="petal length, cm")
    axis.set_title(f"epsilon {epsilon:g}")
    print_widths(f"epsilon {epsilon:g}", models)


def print_widths(name, models):
    """Print the mean standard deviation of the length, by species."""
    widths = np.sqrt([model.var_[:, 0] for model in models]).mean(axis=0)
    print(f"{name:<10}", *(f"{width:.1f} cm" for width in widths))


without_noise = bayes(math.inf, "gaussian").fit(X, y)
figure, axes = plt.subplots(
    1, 3, figsize=(9, 4), sharey=True, layout="constrained"
)
for axis, epsilon in zip(axes, [10.0, 3.0, 1.0], strict=True):
    plot_fits(axis, epsilon)
print_widths("no noise", [without_noise])
axes[0].set_ylabel("petal width, cm")
axes[0].plot([], [], "k--", label="without noise")
handles = axes[0].get_legend_handles_labels()
figure.legend(*handles, loc="outside lower center", ncols=4, markerscale=2)
figure.suptitle("Eight private fits to the same 150 flowers")

# %%
# At epsilon 10, the means are close to the right places. At epsilon 3 they move, and at epsilon 1 the ellipses cover
# most of the panel. The ellipses widen more than they move, because the standard deviation of the noise is added to
# each variance. A model with uncertain parameters then has uncertain predictions.
#
# Histograms
# ----------
# The default, ``numeric="binned"``, counts the flowers of a species in 16 bins of each column. A histogram has more
# numbers than a Gaussian and still less noise. In a histogram, a flower is one count in one bin. For a Gaussian, it is
# a part of a sum and of a sum of squares. The histograms are also smoothed in proportion to the noise, which is
# post-processing.
#
# The left figure shows the petal length at epsilon 1: the densities of eight fits of each model, and the flowers in
# grey. The right figure shows the accuracy on 50 held-out flowers, over 40 splits with fresh noise. The band contains
# eight in ten of the splits.

EPSILONS = [0.1, 0.3, 1.0, 3.0, 10.0]
N_SPLITS = 40


def accuracies(numeric, epsilon):
    """Return the accuracy on held-out flowers, for each split."""
    scores = []
    for split in range(N_SPLITS):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=50, stratify=y, random_state=split
        )
        model = bayes(epsilon, numeric).fit(X_train, y_train)
        scores.append(model.score(X_test, y_test))
    return np.array(scores)


def plot_densities(axis, k, n_fits=8):
    """Plot the released densities of the petal length of a species."""
    axis.hist(X[y == k, 0], np.linspace(0, 8, 17), density=True, color="0.85")
    length = np.linspace(0, 8, 200)
    for _ in range(n_fits):
        binned = bayes(1.0, "binned").fit(X, y)
        edges = binned.bin_edges_[0][:17]
        shares = np.exp(binned.feature_log_prob_[0][k])[:16]
        axis.stairs(shares / np.diff(edges), edges, color="C0")
        gaussian = bayes(1.0, "gaussian").fit(X, y)
        mean, deviation = gaussian.theta_[k, 0], gaussian.var_[k, 0] ** 0.5
        axis.plot(length, norm.pdf(length, mean, deviation), color="C1")
    axis.set(xlim=(0, 8), ylim=(0, 1.2), ylabel=SPECIES[k])


def plot_accuracy(axis, numeric):
    """Plot accuracy against epsilon, with a band for most of the splits."""
    scores = np.array([accuracies(numeric, epsilon) for epsilon in EPSILONS])
    means = scores.mean(axis=1)
    (line,) = axis.plot(EPSILONS, means, "o-", label=f'numeric="{numeric}"')
    low, high = np.quantile(scores, [0.1, 0.9], axis=1)
    axis.fill_between(EPSILONS, low, high, color=line.get_color(), alpha=0.15)
    ceiling = accuracies(numeric, math.inf).mean()
    axis.axhline(ceiling, color=line.get_color(), linestyle=":")
    print(f"{numeric:<9}", *(f"{mean:.2f}" for mean in [*means, ceiling]))


figure = plt.figure(figsize=(9, 4.6), layout="constrained")
left, right = figure.subfigures(1, 2)
for k, axis in enumerate(left.subplots(3, 1, sharex=True)):
    plot_densities(axis, k)
axis.set_xlabel("petal length, cm")
left.suptitle("epsilon 1: histograms (blue), Gaussians (orange)")

axis = right.subplots()
for numeric in ["binned", "gaussian"]:
    plot_accuracy(axis, numeric)
axis.axhline(1 / 3, color="0.5", linestyle="--", label="guessing")
axis.set(xscale="log", xlabel="epsilon (delta = 0)", ylim=(0, 1.02))
axis.set_ylabel("test accuracy (dotted: without noise)")
axis.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
axis.minorticks_off()
axis.legend(loc="lower right", fontsize=9)

# %%
# Without noise, both models have the same accuracy, and also at epsilon 3 and 10. At epsilon 1, histograms are nearly
# as accurate as without noise, and Gaussians are not. At smaller epsilon, 100 flowers are too few for either model. The
# product of epsilon and the number of records determines the accuracy. Therefore ten times the flowers at epsilon 0.1
# would have about the accuracy of these at epsilon 1.
#
# Summary
# -------
# Keep the bins, unless a column is known to be Gaussian and the budget is large. Choose the bounds with care: wide bins
# lose information, and the noise of a Gaussian grows with its bounds. :ref:`naive_bayes` has the proof of the price and
# figures for larger tables. :class:`~skdp.naive_bayes.DPNaiveBayes` describes all parameters, and
# :ref:`sphx_glr_auto_examples_choices_plot_bounds.py` shows the effect of bounds.

plt.show()

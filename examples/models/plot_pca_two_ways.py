"""
Principal components: draw a direction, or add noise to a matrix
================================================================

There are two private analyses, and which one is better depends on whether a delta is admitted, and on how many columns,
components and records there are. Here we see what each does to one direction in the plane, and then what is left of
three attitudes behind a questionnaire.
"""

# %%
# Directions in the plane
# -----------------------
# The records are simulated: two answers of 60 people, each between -1 and 1, so that no row is longer than the square
# root of 2. That is the ``data_norm``. Nothing is subtracted (``center="none"``): 0 is the middle of the scale.
#
# ``ExpMechPCA`` draws a direction :math:`v` from all there are, with a density proportional to :math:`\exp(\varepsilon
# v^\top S v / R^2)`, where :math:`S` is the matrix of second moments and :math:`R` the norm. It is pure: delta is 0.
# ``DPPCA`` adds Gaussian noise to :math:`S`, for which it takes a delta, and computes the direction from that.

import math

import matplotlib.pyplot as plt
import numpy as np

from skdp import DPPCA, ExpMechPCA

DELTA = 1e-6


def answers(n, d, rng):
    """Draw answers to d questions, behind which there are three attitudes."""
    question = np.arange(d)
    signs = np.array([np.ones(d), (-1) ** question, (-1) ** (question // 2)])
    attitudes = rng.normal(size=(n, 3)) * [0.45, 0.3, 0.2]
    return np.clip(attitudes @ signs + 0.35 * rng.normal(size=(n, d)), -1, 1)


rng = np.random.default_rng(0)
two = answers(60, 2, rng)
moments = two.T @ two
degrees = np.linspace(-45, 135, 181)
circle = np.column_stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])
squares = np.sum((circle @ moments) * circle, axis=1)

# %%
# Each panel has the angles of 200 fits of either analysis. The line is the density above, computed from the records: an
# analyst does not see it, but knows that the draw has exactly this law. Each fit spends its epsilon anew, which made-up
# records can bear. (``variance_share=0`` leaves all of the budget to the direction. Directions are lines, so that half
# a circle is enough.)


def angle(direction):
    """Degrees between -45 and 135; a direction and its opposite are the same."""
    return (math.degrees(math.atan2(direction[1], direction[0])) + 45) % 180 - 45


directions, axes = plt.subplots(1, 3, figsize=(9, 3.6), sharex=True, sharey=True, layout="constrained")
bins = np.linspace(-45, 135, 31)
for axis, epsilon in zip(axes, [0.3, 1.0, 3.0], strict=True):
    draw = ExpMechPCA(1, epsilon=epsilon, data_norm=math.sqrt(2), center="none", variance_share=0)
    noisy = DPPCA(1, epsilon=epsilon, delta=DELTA, data_norm=math.sqrt(2), center="none")
    for model, style in [
        (draw, {"color": "C0", "alpha": 0.4}),
        (noisy, {"color": "C1", "histtype": "step", "lw": 1.5}),
    ]:
        found = [angle(model.fit(two).components_[0]) for _ in range(200)]
        axis.hist(found, bins, density=True, label=type(model).__name__, **style)
    density = np.exp(epsilon / 2 * (squares - squares.max()))
    axis.plot(degrees, density / density.mean() / 180, color="C0", label="density of ExpMechPCA")
    axis.axvline(degrees[squares.argmax()], color="k", linestyle="--", linewidth=1, label="without privacy")
    axis.set(title=f"epsilon {epsilon:g}", xlabel="angle, degrees", xticks=[-45, 0, 45, 90, 135])
directions.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=4)
axes[0].set_ylabel("density, 1/degree")
directions.align_labels()

# %%
# With so few records, the draw is the better one at 0.3, although it is pure; at 3 it is not. The width of the one
# falls with the square root of epsilon, and that of the other with epsilon itself.
#
# Attitudes behind a questionnaire
# --------------------------------
# Now 2000 people, and 20 questions unless said otherwise. Three attitudes are behind the answers; so three components
# are asked for. What is drawn is how much of the squares along the best three directions there is along those of the
# fit: the mean of eight fits, with a band for all eight, to one set of answers. The pure variant of ``DPPCA`` is shown
# as well. Each is used as it comes: ``ExpMechPCA`` spends a tenth of its budget on variances, which ``DPPCA`` reads off
# its matrix.


def draw(k, epsilon, d):
    """Give a pure analysis that draws directions."""
    return ExpMechPCA(k, epsilon=epsilon, delta=0.0, data_norm=math.sqrt(d), center="none")


def gaussian(k, epsilon, d):
    """Give an analysis of a matrix with Gaussian noise."""
    return DPPCA(k, epsilon=epsilon, delta=DELTA, data_norm=math.sqrt(d), center="none")


def pure(k, epsilon, d):
    """Give a pure analysis of a noisy matrix."""
    return DPPCA(k, epsilon=epsilon, delta=0.0, data_norm=math.sqrt(d), center="none", solver="matrix")


MODELS = {
    "ExpMechPCA, delta 0": (draw, "o-", "C0"),
    f"DPPCA, delta {DELTA:g}": (gaussian, "s-", "C1"),
    "DPPCA, delta 0": (pure, "^--", "C4"),
}


def captured(make, k, epsilon, X):
    """Eight fits: the sum of squares along k directions, as a part of the most there can be."""
    S = X.T @ X
    most = np.linalg.eigvalsh(S)[-k:].sum()
    fits = [make(k, epsilon, X.shape[1]).fit(X).components_ for _ in range(8)]
    return [np.sum((found @ S) * found) / most for found in fits]


SWEEPS = {
    "epsilon": ([0.1, 0.3, 1.0, 3.0, 10.0], lambda make, epsilon: captured(make, 3, epsilon, answers(2000, 20, rng))),
    "questions": ([5, 10, 20, 40, 80], lambda make, d: captured(make, 3, 1.0, answers(2000, d, rng))),
    "people": ([500, 2000, 8000, 32_000], lambda make, n: captured(make, 3, 1.0, answers(n, 20, rng))),
}
sweeps, axes = plt.subplots(1, 3, figsize=(9, 4), sharey=True, layout="constrained")
for axis, (name, (values, sweep)) in zip(axes, SWEEPS.items(), strict=True):
    for label, (make, style, colour) in MODELS.items():
        found = np.array([sweep(make, value) for value in values])
        axis.plot(values, found.mean(axis=1), style, color=colour, markersize=5, label=label)
        axis.fill_between(values, found.min(axis=1), found.max(axis=1), color=colour, alpha=0.12, linewidth=0)
        print(f"{name:<9}  {label:<20}", *(f"{m:.2f}" for m in found.mean(axis=1)), sep="  ")
    axis.set(xscale="log", xlabel=name, ylim=(0, 1.02))
    axis.set_xticks(values, [f"{value:g}" for value in values])
    axis.minorticks_off()
    axis.grid(axis="y", color="0.92")
axes[0].set_ylabel("captured, as a part of the best")
sweeps.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=3)
sweeps.align_labels()

# %%
# With a delta, the noisy matrix is ahead in all three panels: a number of components costs it nothing, and it loses
# little as questions are added. Without one, it depends. The draw has to divide epsilon among the components; the
# matrix has a number for each pair of questions, and pure noise grows with their number. So the matrix is ahead at 20
# questions and epsilon 1, and far behind at 80. With enough people all get there, and the matrix sooner.
#
# To take along: with a delta, take ``DPPCA``. Without, ``DPPCA`` with ``expected_n``, a public guess at the number of
# records, takes the matrix or the draw by a rule of thumb. Ask for few components, and for a ``data_norm`` that is no
# longer than most rows need, since all noise grows with its square. :ref:`pca` has the theorems, and
# :ref:`sphx_glr_auto_examples_models_plot_digits_components.py` the components of pictures.

plt.show()

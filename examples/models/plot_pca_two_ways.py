"""
Principal components: two private methods
=========================================

``ExpMechPCA`` draws components at random with a suitable density, and needs no delta. ``DPPCA`` adds noise to the
matrix of second moments, in most cases with a delta. This example compares the two methods on directions in the plane
and on a questionnaire. It shows how the better method depends on delta, and on the numbers of columns and records.
"""

# %%
# Directions in the plane
# -----------------------
# The records are simulated: two answers of 60 people, each between -1 and 1. Therefore no row has a norm above the
# square root of 2, which is ``data_norm``. Nothing is subtracted (``center="none"``), because 0 is the middle of the
# scale.
#
# ``ExpMechPCA`` draws a direction :math:`v` with a density proportional to :math:`\exp(\varepsilon v^\top S v / R^2)`,
# where :math:`S` is the matrix of second moments and :math:`R` is ``data_norm``. Its delta is 0. ``DPPCA`` adds
# Gaussian noise to :math:`S`, which needs a delta, and computes the direction from the noisy matrix.

import math

import matplotlib.pyplot as plt
import numpy as np

from skdp import DPPCA, ExpMechPCA

DELTA = 1e-6


def answers(n, d, rng):
    """Draw answers to d questions that depend on three attitudes."""
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
# Each panel shows the angles of 200 fits of each method. The line is the density above. It is computed from the
# records, so that an analyst does not see it. Each fit uses its own epsilon, which is no problem for simulated records.
# (``variance_share=0`` gives all of the budget to the direction. A direction and its opposite are the same, so that
# half a circle is enough.)


def angle(direction):
    """Return the angle of a direction in degrees, between -45 and 135."""
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
# With only 60 records, ``ExpMechPCA`` is more accurate at epsilon 0.3, although its delta is 0. At epsilon 3, ``DPPCA``
# is more accurate. The width of the first distribution is proportional to one over the square root of epsilon, and that
# of the second to one over epsilon.
#
# Attitudes behind a questionnaire
# --------------------------------
# Now there are 2,000 people and 20 questions, unless a panel varies these numbers. Three attitudes determine the
# answers. Therefore each method looks for three components. The figure shows the sum of squares along the three
# components of a fit, as a part of the largest possible sum. Lines are means of eight fits to one set of answers, and
# the bands contain all eight. ``DPPCA`` with ``delta=0`` is the third method. Each estimator keeps its defaults.
# ``ExpMechPCA`` therefore spends a tenth of its budget on variances, which ``DPPCA`` computes from its noisy matrix.


def draw(k, epsilon, d):
    """Return a pure analysis that draws directions."""
    return ExpMechPCA(k, epsilon=epsilon, delta=0.0, data_norm=math.sqrt(d), center="none")


def gaussian(k, epsilon, d):
    """Return an analysis of a matrix with Gaussian noise."""
    return DPPCA(k, epsilon=epsilon, delta=DELTA, data_norm=math.sqrt(d), center="none")


def pure(k, epsilon, d):
    """Return a pure analysis of a noisy matrix."""
    return DPPCA(k, epsilon=epsilon, delta=0.0, data_norm=math.sqrt(d), center="none", solver="matrix")


MODELS = {
    "ExpMechPCA, delta 0": (draw, "o-", "C0"),
    f"DPPCA, delta {DELTA:g}": (gaussian, "s-", "C1"),
    "DPPCA, delta 0": (pure, "^--", "C4"),
}


def captured(make, k, epsilon, X):
    """Return for eight fits the sum of squares along k directions, as a part of the largest possible sum."""
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
axes[0].set_ylabel("sum of squares, as a part of the best")
sweeps.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=3)
sweeps.align_labels()

# %%
# With a delta, ``DPPCA`` is the most accurate in all three panels. Its noise does not depend on the number of
# components, and it loses little if the number of questions grows. Without a delta, the answer depends on the table.
# ``ExpMechPCA`` has to split epsilon among the components. ``DPPCA`` releases one number for each pair of questions,
# and the pure noise grows with the number of pairs. Therefore ``DPPCA`` is better with 20 questions at epsilon 1, and
# much worse with 80. With enough people, all methods find the components, and ``DPPCA`` needs fewer people.
#
# Summary
# -------
# With a delta, use ``DPPCA``. Without a delta, use ``DPPCA`` with ``expected_n``, a public guess of the number of
# records. It then chooses one of the two methods by a rule of thumb. Ask for few components, and for a ``data_norm``
# that is no larger than most rows need, because all noise grows with its square. :ref:`pca` has the theorems, and
# :ref:`sphx_glr_auto_examples_models_plot_digits_components.py` shows the components of pictures.

plt.show()

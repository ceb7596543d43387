"""
Median regression for records with gross errors
===============================================

A bound limits the influence of one wrong record, but not of a hundred wrong records. This example shows the effect of
gross errors on a private least-squares regression. It compares two robust losses: the absolute error with the
exponential mechanism, which needs no delta, and Huber's loss with gradient descent.
"""

# %%
# Rents with a typing error
# -------------------------
# The records are simulated: the monthly rents of 2,000 flats of 20 to 140 square metres. The form accepts numbers up to
# 6,000. One tenant in ten typed one zero too many. The range of sizes and the limit of the form are public. The typing
# errors are private. A rule that uses all rents to remove outliers would be a release.

import matplotlib.pyplot as plt
import numpy as np

from skdp import (
    DPSGDRegressor,
    ExpMechERM,
    FunctionalMechLinReg,
    Number,
    Schema,
)

SIZES = np.array([[20.0], [80.0], [140.0]])
TRUE = 200 + 11 * SIZES[:, 0]
LIMIT = (0, 6000)
schema = Schema(
    {"size": Number(20, 140, missing="error")}, target={"rent": LIMIT}
)
rng = np.random.default_rng(0)


def rents(n, wrong):
    """Draw sizes and rents; a part of the rents has one zero too many."""
    size = rng.uniform(20, 140, (n, 1))
    rent = 200 + 11 * size[:, 0] + rng.normal(0, 120, n)
    rent = np.where(rng.uniform(size=n) < wrong, 10 * rent, rent)
    return size, np.clip(rent, *LIMIT)


# %%
# Squared and absolute errors
# ---------------------------
# ``FunctionalMechLinReg`` fits least squares. ``ExpMechERM`` with ``loss="absolute_error"`` draws a line at random. The
# density of a line falls exponentially with its sum of absolute residuals, which is smallest for the median line. Both
# have epsilon 1 and delta 0. Each panel shows ten fits with fresh noise.

EPSILON = 1.0
LINES = {
    "least squares": lambda: FunctionalMechLinReg(
        schema=schema, epsilon=EPSILON
    ),
    "median": lambda: ExpMechERM(
        "absolute_error", schema=schema, epsilon=EPSILON
    ),
}

size, rent = rents(2000, 0.1)
lines, axes = plt.subplots(
    1, 2, figsize=(7.5, 4), sharey=True, layout="constrained"
)
for axis, (name, make), colour in zip(
    axes, LINES.items(), ["C3", "C0"], strict=True
):
    axis.scatter(size, rent, s=3, color="0.75", linewidths=0, label="flat")
    for fit in range(10):
        predicted = make().fit(size, rent).predict(SIZES)
        axis.plot(
            SIZES,
            predicted,
            color=colour,
            linewidth=1,
            label="_" if fit else "private line",
        )
    axis.plot(SIZES, TRUE, "k--", linewidth=1, label="true line")
    axis.legend(fontsize=9, loc="upper left")
    axis.set(
        title=f"{name}, ten fits",
        xlabel="size, m²",
        ylim=(-100, 6100),
        xticks=[20, 50, 80, 110, 140],
    )
axes[0].set_ylabel("rent")

# %%
# The least-squares lines agree with each other, and are far above most flats. The median lines are close to the true
# line.
#
# Error against the part of wrong rents
# -------------------------------------
# The next figure shows the root mean squared error of predicted rents for 20, 80 and 140 square metres, over eight
# fits. ``DPSGDRegressor`` has Huber's loss, which is quadratic up to a residual of 150 and linear beyond. Its delta is
# 1e-6, because its noise is Gaussian.

methods = {
    **LINES,
    "Huber by descent": lambda: DPSGDRegressor(
        schema=schema,
        epsilon=EPSILON,
        delta=1e-6,
        loss="huber",
        huber_threshold=150,
    ),
}
LABELS = {
    "least squares": "least squares: FunctionalMechLinReg",
    "median": "median: ExpMechERM",
    "Huber by descent": "Huber, delta 1e-6: DPSGDRegressor",
}
PARTS = [0.0, 0.02, 0.05, 0.1, 0.2]
errors = []
for part in PARTS:
    size, rent = rents(2000, part)
    found = [
        [make().fit(size, rent).predict(SIZES) for _ in range(8)]
        for make in methods.values()
    ]
    errors.append(np.sqrt(np.mean((np.array(found) - TRUE) ** 2, axis=(1, 2))))
errors = np.array(errors)

robust, axis = plt.subplots(figsize=(7, 4.8), layout="constrained")
for name, column, style in zip(
    methods, errors.T, ["C3s-", "C0o-", "C2D-"], strict=True
):
    axis.plot(PARTS, column, style, markersize=5, label=LABELS[name])
    print(f"{name:<17}" + "".join(f"{value:8.0f}" for value in column))
axis.set(
    yscale="log",
    xlabel="part of rents with one zero too many",
    ylabel="error of predicted rents",
)
axis.set_title(f"2,000 flats, epsilon {EPSILON:g}")
axis.set_yticks(
    [3, 10, 30, 100, 300, 1000], ["3", "10", "30", "100", "300", "1000"]
)
axis.set_xticks(PARTS, [f"{part:.0%}" for part in PARTS])
axis.minorticks_off()
axis.set_ylim(2, 2500)
robust.legend(loc="outside lower center", ncols=2, fontsize=9)
axis.grid(axis="y", color="0.93")

# %%
# Two wrong rents in a hundred have a larger effect on least squares than the noise. The median and Huber's loss change
# little, because a wrong rent has the same influence as any other rent far above the line.
#
# The exponential mechanism resembles a draw from a posterior distribution. The spread of its lines is proportional to
# one over the *root* of the number of records. The spread from Gaussian noise on gradients is proportional to one over
# the number of records. Therefore gradient descent with Huber's loss is the most accurate method if a delta is allowed,
# for any number of columns. Use the exponential mechanism for the median itself, for ``delta=0``, and for up to four
# parameters.
#
# Summary
# -------
# Bounds do not make a regression robust, but its loss does. If gross errors are possible, avoid the squared error.
# :ref:`erm` and :ref:`gradient_descent` describe the estimators. :ref:`sphx_glr_auto_examples_choices_plot_clipping.py`
# shows a case where clipping replaces the mean by the median.

plt.show()

"""
Median regression: a line that typing errors do not move
========================================================

Clipping bounds what one record may say, not what a hundred wrong ones may. Here we learn what gross errors do to a
private least-squares line, how a private median line stands them, drawn by the exponential mechanism without any delta,
and what Huber's loss does by gradient descent, where a delta is admitted.
"""

# %%
# Rents, some with one zero too many
# ----------------------------------
# Simulated: the monthly rent of 2000 flats of 20 to 140 square metres, as tenants typed it into a form that takes
# numbers up to 6000. One in ten typed a zero too many. The sizes and the form's limit are public; who typed wrongly is
# not, and to throw out what looks odd, by a rule that looks at all rents, would be a release.

import matplotlib.pyplot as plt
import numpy as np

from skdp import BoundsScaler, DPSGDRegressor, ExpMechERM, FunctionalMechLinReg

SIZES = np.array([[20.0], [80.0], [140.0]])
TRUE = 200 + 11 * SIZES[:, 0]
LIMIT = (0, 6000)
rng = np.random.default_rng(0)
scaler = BoundsScaler((20, 140))


def rents(n, wrong):
    """Draw sizes and rents, a part of them with a zero too many."""
    size = rng.uniform(20, 140, (n, 1))
    rent = 200 + 11 * size[:, 0] + rng.normal(0, 120, n)
    rent = np.where(rng.uniform(size=n) < wrong, 10 * rent, rent)
    return size, np.clip(rent, *LIMIT)


# %%
# Squares, and absolute values
# ----------------------------
# ``FunctionalMechLinReg`` fits least squares. ``ExpMechERM`` with ``loss="absolute_error"`` draws a line with a
# probability that falls exponentially with the sum of absolute residuals, whose least value is the median line's. Both
# are pure: epsilon is 1, and delta 0. Ten fits of each are drawn, with fresh noise.

EPSILON = 1.0
LINES = {
    "least squares": lambda: FunctionalMechLinReg(epsilon=EPSILON, bounds=(-1, 1), bounds_y=LIMIT),
    "median": lambda: ExpMechERM("absolute_error", epsilon=EPSILON, data_norm=1.0, bounds_y=LIMIT),
}

size, rent = rents(2000, 0.1)
X = scaler.fit_transform(size)
lines, axes = plt.subplots(1, 2, figsize=(7.5, 4), sharey=True, layout="constrained")
for axis, (name, make), colour in zip(axes, LINES.items(), ["C3", "C0"], strict=True):
    axis.scatter(size, rent, s=3, color="0.75", linewidths=0)
    for _ in range(10):
        axis.plot(SIZES, make().fit(X, rent).predict(scaler.transform(SIZES)), color=colour, linewidth=1)
    axis.plot(SIZES, TRUE, "k--", linewidth=1)
    axis.set(title=f"{name}, ten fits", xlabel="size, m²", ylim=(-100, 6100), xticks=[20, 50, 80, 110, 140])
axes[0].set_ylabel("rent, and the true line (dashed)")

# %%
# The least-squares lines agree, and lie far above the flats that they are about. The median lines are about the flats.
#
# How many wrong ones
# -------------------
# The error of predicted rents for 20, 80 and 140 square metres, against the part of wrong ones: the root mean square
# over eight fits. Huber's loss is quadratic up to a residual of 150, and linear beyond, where it does not care how far.
# ``DPSGDRegressor`` has it, too. Its delta is 1e-6, since its noise is Gaussian.

ways = {
    **LINES,
    "Huber": lambda: ExpMechERM("huber", epsilon=EPSILON, data_norm=1.0, bounds_y=LIMIT, huber_threshold=150),
    "Huber by descent": lambda: DPSGDRegressor(
        epsilon=EPSILON, delta=1e-6, data_norm=1.0, bounds_y=LIMIT, loss="huber", huber_threshold=150
    ),
}
LABELS = {
    "least squares": "least squares: FunctionalMechLinReg",
    "median": "median: ExpMechERM",
    "Huber": "Huber: ExpMechERM",
    "Huber by descent": "Huber, delta 1e-6: DPSGDRegressor",
}
PARTS = [0.0, 0.02, 0.05, 0.1, 0.2]
errors = []
for part in PARTS:
    size, rent = rents(2000, part)
    X = scaler.transform(size)
    found = [[make().fit(X, rent).predict(scaler.transform(SIZES)) for _ in range(8)] for make in ways.values()]
    errors.append(np.sqrt(np.mean((np.array(found) - TRUE) ** 2, axis=(1, 2))))
errors = np.array(errors)

robust, axis = plt.subplots(figsize=(7, 4.8), layout="constrained")
for name, column, style in zip(ways, errors.T, ["C3s-", "C0o-", "C1^-", "C2D-"], strict=True):
    axis.plot(PARTS, column, style, markersize=5, label=LABELS[name])
    print(f"{name:<17}" + "".join(f"{value:8.0f}" for value in column))
axis.set(yscale="log", xlabel="part of rents with a zero too many", ylabel="error of predicted rents")
axis.set_title(f"2,000 flats, epsilon {EPSILON:g}")
axis.set_yticks([3, 10, 30, 100, 300, 1000], ["3", "10", "30", "100", "300", "1000"])
axis.set_xticks(PARTS, [f"{part:.0%}" for part in PARTS])
axis.minorticks_off()
axis.set_ylim(2, 2500)
robust.legend(loc="outside lower center", ncols=2, fontsize=9)
axis.grid(axis="y", color="0.93")

# %%
# Two in a hundred do more to least squares than the noise does. The median and Huber's loss move little, since a wrong
# rent pulls no harder than any other that is above the line.
#
# The exponential mechanism draws as from a posterior: its lines spread by one over the *root* of the number of records,
# where Gaussian noise on gradients spreads by one over the number. So where a delta is admitted, gradient descent with
# Huber's loss is much the closest, for any number of columns. The exponential mechanism is for the median itself, for
# ``delta=0``, and for up to four parameters.
#
# To take away: bounds do not make a regression robust, its loss does. If gross errors are possible, do not take
# squares.
#
# See :ref:`erm` and :ref:`gradient_descent`; and :ref:`sphx_glr_auto_examples_choices_plot_clipping.py` for a median
# that was not meant.

plt.show()

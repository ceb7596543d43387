"""
Intervals for the coefficients of a private model
=================================================

The coefficients of a private model contain noise, which may be larger than the coefficients. The distribution of the
noise is public. Therefore intervals for the noise are post-processing, and use nothing of the budget. This example
draws such intervals, and measures how often they contain the coefficients without noise and the true coefficients.
"""

# %%
# Prices of flats
# ---------------
# The records are simulated: 3,000 flats with their prices in thousands. The true effect of each column is known, and
# the floor has no effect. Size and rooms are strongly correlated, as in real data. The bounds come from the form.

import math

import matplotlib.pyplot as plt
import numpy as np

from skdp import FunctionalMechLinReg
from skdp.inspection import CoefficientUncertaintyDisplay

NAMES = ["size, 10 m²", "rooms", "age, 10 years", "distance, km", "floor"]
LOWER, UPPER = [1, 1, 0, 0, 0], [25, 8, 10, 20, 9]
TRUTH = np.array([60, 30, -15, -20, 0])

rng = np.random.default_rng(0)
n = 3000
rooms = rng.integers(1, 9, n)
size = np.clip(1 + 2.5 * rooms + rng.normal(0, 3, n), 1, 25)
X = np.column_stack([size, rooms, rng.uniform(0, 10, n), rng.uniform(0, 20, n), rng.integers(0, 10, n)])
y = 500 + X @ TRUTH + rng.normal(0, 80, n)


def fit(epsilon, seed=None):
    """Fit a private linear regression."""
    model = FunctionalMechLinReg(
        epsilon=epsilon, delta=1e-6, bounds=(LOWER, UPPER), bounds_y=(0, 3000), random_state=seed
    )
    return model.fit(X, y)


without = fit(math.inf).coef_

# %%
# One fit at three epsilons
# -------------------------
# ``FunctionalMechLinReg`` releases second moments with noise. The display draws further noise from the same
# distribution, computes the coefficients again, and measures how far they move. It uses only released numbers. Crosses
# are the coefficients without noise, and grey bars the true coefficients. An analyst would see neither.

intervals, axes = plt.subplots(1, 3, figsize=(14, 4), sharey=True, layout="constrained")
for axis, epsilon in zip(axes, [0.5, 2.0, 8.0], strict=True):
    display = CoefficientUncertaintyDisplay.from_estimator(
        fit(epsilon, seed=1), feature_names=NAMES, random_state=0, ax=axis, color="C0", label="private, 95 % interval"
    )
    rows = np.arange(len(NAMES))[::-1]
    axis.plot(without, rows, "x", color="C3", markersize=8, label="without noise", zorder=3)
    axis.plot(TRUTH, rows, "|", color="0.35", markersize=22, label="truth", zorder=1)
    axis.set(title=f"epsilon {epsilon:g}", xlabel="thousands for each unit", xlim=(-90, 190), ylim=(-0.6, 4.6))
    print(f"epsilon {epsilon:g}")
    for name, coef, low, high in zip(NAMES, display.coef[0], display.lower[0], display.upper[0], strict=True):
        print(f"  {name:<14}{coef:8.1f}, {low:7.1f} to {high:6.1f}")
axes[0].legend(fontsize=9, loc="lower right", markerscale=0.6)
intervals.suptitle("Private coefficients with intervals of the noise")

# %%
# At epsilon 2, age, distance and floor have narrow intervals. The intervals of size and rooms are wide. With correlated
# columns, a little noise shifts a part of the price from one column to the other.
#
# Coverage of the intervals
# -------------------------
# The next figure is for 40 fits at each epsilon. It shows the part of their intervals that contains the coefficient
# without noise, and the part that contains the true coefficient.

EPSILONS = [0.5, 2.0, 8.0, 32.0]
held = np.zeros((len(EPSILONS), 2, len(NAMES)))
for k, epsilon in enumerate(EPSILONS):
    for seed in range(40):
        display = CoefficientUncertaintyDisplay.from_estimator(
            fit(epsilon, 1000 * k + seed), n_draws=200, random_state=seed, plot=False
        )
        for target, coef in enumerate((without, TRUTH)):
            held[k, target] += (display.lower[0] <= coef) & (coef <= display.upper[0])
held /= 40
coverage, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for target, (name, colour, style) in enumerate(
    [("the coefficient without noise", "C3", "x-"), ("the true coefficient", "0.35", "|--")]
):
    axis.plot(EPSILONS, held[:, target].mean(axis=1), style, color=colour, markersize=9, label=f"contains {name}")
axis.axhline(0.95, color="C0", linestyle=":", label="level")
axis.set(xscale="log", xlabel="epsilon", ylabel="part of intervals", ylim=(0, 1.03), title="All coefficients, 40 fits")
axis.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
axis.minorticks_off()
axis.legend(fontsize=9, loc="lower left")
for epsilon, row in zip(EPSILONS, held, strict=True):
    print(f"epsilon {epsilon:>4g}: contains without noise", *(f"{part:.2f}" for part in row[0]), end="; ")
    print("truth", *(f"{part:.2f}" for part in row[1]))

# %%
# The intervals contain the coefficient without noise about as often as their level. Size and rooms at epsilon 8 are an
# exception, because the intervals do not include the bias of the ridge penalty, which moves size and rooms a little
# towards each other.
#
# At small epsilon, the noise is the largest error, and the intervals contain the true coefficient about as often. At
# epsilon 8 and 32 they do not, because the chance in the sample of flats is larger than the noise.
#
# Summary
# -------
# Draw the intervals before you interpret a private coefficient. They cover the noise only. If they are narrow, consider
# the usual uncertainty of a sample of 3,000 records. :ref:`functional_mechanism` describes the estimator.

plt.show()

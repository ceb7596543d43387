"""
Private regression: intervals, and how many columns to ask for
==============================================================

A private regression on few records is mostly a question of what to ask. Here we learn to draw a private curve with
intervals that the noise implies, how R² falls with epsilon for one, three and ten columns, and which of two
estimators to take.
"""

# %%
# Diabetes
# --------
# 442 patients, their measurements, and how far the disease had come after a year, as an index. The data are public and
# come with scikit-learn, so that we may look at exact scores. We treat them as if they were not: bounds come from what
# a physician would call possible, and those of the index, 25 to 346, from the data set's documentation. Delta is 1e-6
# for all that follows.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from skdp import BoundsScaler, DPSGDRegressor, FunctionalMechLinReg
from skdp.inspection import CoefficientUncertaintyDisplay

X, y = load_diabetes(return_X_y=True, scaled=False)
LOWER = np.array([18, 1, 15, 50, 80, 30, 20, 1, 3, 50])
UPPER = np.array([90, 2, 45, 150, 320, 250, 110, 10, 6.5, 140])
INDEX = (25, 346)
DELTA = 1e-6

# %%
# A curve whose coefficients are predictions
# ------------------------------------------
# The progress is to be predicted by the body mass index, with a line that may bend at 26 and 34. ``SplineTransformer``
# with ``degree=1`` and given knots learns nothing from the records. It makes four columns, of which each is 1 at one
# knot, falls to 0 at the next, and all sum to 1. The coefficients of a regression on them, without an intercept, *are*
# its predictions at the knots. So ``CoefficientUncertaintyDisplay``, which draws further noise of the public law, gives
# intervals for predictions. It looks at released numbers only, and costs nothing.
#
# Rows are no longer than 1. Without an intercept nothing is centred, and so a public 185 is subtracted from the index.

KNOTS = np.array([18.0, 26.0, 34.0, 42.0])
MIDDLE = np.mean(INDEX)
hats = SplineTransformer(degree=1, knots=KNOTS[:, None], extrapolation="constant")
H = hats.fit_transform(X[:, [2]])
without = LinearRegression(fit_intercept=False).fit(H, y).coef_

curves, axes = plt.subplots(1, 3, figsize=(7.5, 3.6), sharey=True, layout="constrained")
for axis, epsilon in zip(axes, [1.0, 3.0, 10.0], strict=True):
    model = FunctionalMechLinReg(
        epsilon=epsilon,
        delta=DELTA,
        bounds=(0, 1),
        bounds_y=(INDEX[0] - MIDDLE, INDEX[1] - MIDDLE),
        data_norm=1.0,
        fit_intercept=False,
    )
    model.fit(H, y - MIDDLE)
    display = CoefficientUncertaintyDisplay.from_estimator(model, plot=False)
    low, high = display.lower[0] + MIDDLE, display.upper[0] + MIDDLE
    axis.scatter(X[:, 2], y, s=4, color="0.8", linewidths=0)
    axis.fill_between(KNOTS, low, high, color="C0", alpha=0.25, linewidth=0, label="95 %, of the noise")
    axis.plot(KNOTS, model.coef_ + MIDDLE, "C0o-", markersize=4, label="private")
    axis.plot(KNOTS, without, "k--", linewidth=1, label="without privacy")
    axis.set(xlabel="body mass index", title=f"epsilon {epsilon:g}", ylim=(0, 400), xticks=KNOTS)
    print(f"epsilon {epsilon:g}")
    for knot, value, *ends in zip(KNOTS, model.coef_ + MIDDLE, low, high, strict=True):
        print(f"  bmi {knot:g}: {value:6.0f}, {ends[0]:6.0f} to {ends[1]:6.0f}")
axes[0].set_ylabel("progress after a year")
curves.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)

# %%
# Each panel is one fit with fresh noise. (An analyst would see neither the points nor the dashed line.) The interval is
# narrow where patients are many, and wide at the ends, where they are few: there it is the ridge that speaks, and the
# figure tells so. It is about the noise alone. That 442 patients are a sample of others is not in it.
#
# How many columns
# ----------------
# Now one column (body mass index), three (with blood pressure and s5, the logarithm of triglycerides), and all ten. The
# three are those that textbooks name; to choose them by these records would be a release. Each is fitted by
# ``FunctionalMechLinReg``, with bounds, and by ``DPSGDRegressor``, with a norm for rows that are scaled to [-1, 1]: 1
# for one column, which is the largest there can be, and 1.5 and 2 for three and ten, which few rows exceed. Scores are
# means over five folds.

COLUMNS = {"one column": [2], "three columns": [2, 3, 8], "ten columns": list(range(10))}
NORMS = [1.0, 1.5, 2.0]
EPSILONS = [0.1, 0.3, 1.0, 3.0, 10.0]
folds = KFold(5, shuffle=True, random_state=0)


def moments(columns, norm, epsilon):
    """Return a regression from noisy moments."""
    bounds = (LOWER[columns], UPPER[columns])
    return FunctionalMechLinReg(epsilon=epsilon, delta=DELTA, bounds=bounds, bounds_y=INDEX, data_norm=norm)


def descent(columns, norm, epsilon):
    """Return a regression by noisy gradient descent."""
    model = DPSGDRegressor(epsilon=epsilon, delta=DELTA, data_norm=norm, bounds_y=INDEX)
    return make_pipeline(BoundsScaler((LOWER[columns], UPPER[columns])), model)


scores, axis = plt.subplots(figsize=(7, 4.8), layout="constrained")
for (name, columns), norm, colour in zip(COLUMNS.items(), NORMS, ["C0", "C1", "C2"], strict=True):
    rows = X[:, columns]
    best = cross_val_score(LinearRegression(), rows, y, cv=folds).mean()
    axis.plot(25, best, "D", color=colour, clip_on=False)
    for kind, make, style, repeats in [("descent", descent, "o-", 1), ("moments", moments, "s--", 5)]:
        found = [
            np.mean([cross_val_score(make(columns, norm, epsilon), rows, y, cv=folds) for _ in range(repeats)])
            for epsilon in EPSILONS
        ]
        axis.plot(EPSILONS, found, style, color=colour, markersize=5, label=f"{name}, {kind}")
        print(
            f"{name + ', ' + kind:<24}" + "".join(f"{value:7.2f}" for value in found) + f"   without privacy {best:.2f}"
        )
axis.axhline(0, color="0.6", linewidth=1)
axis.text(10, 0.01, "the mean of all", ha="right", va="bottom", fontsize=9, color="0.4")
axis.set(xscale="log", ylim=(-0.5, 0.55), xlabel="epsilon (diamonds: without privacy)", ylabel="R² on held-out rows")
axis.set_xticks([*EPSILONS, 25], [*(f"{epsilon:g}" for epsilon in EPSILONS), "∞"])
axis.minorticks_off()
axis.legend(fontsize=9, loc="lower right")

# %%
# Where epsilon is small, three columns beat ten: each further column brings noise, and little else. The ten are worth
# their noise from about 3 on. At a tenth, little or nothing is left of them, and the moments of any number of columns
# are worse than the mean of all (some points are below the figure).
#
# With so few records, gradient descent is the better of the two by far: its steps get shorter as noise grows, which
# keeps the noise small and is a regularisation. ``FunctionalMechLinReg`` comes up with epsilon. It takes one pass over
# the records, gives the intervals above, and is as good where records are many (see :ref:`functional_mechanism` for
# California housing).
#
# To take away: with hundreds of records, ask for few columns, chosen by what is known beforehand, and take
# ``DPSGDRegressor``. Where a reader has to see how sure a prediction is, take ``FunctionalMechLinReg`` with intervals.
#
# See :ref:`gradient_descent` and, for coefficients with their intervals,
# :ref:`sphx_glr_auto_examples_trust_plot_coefficients.py`.

plt.show()

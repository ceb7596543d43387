"""
Regression with few records: intervals and number of columns
============================================================

This example fits private regressions to 442 records. It draws a curve with intervals for the noise, measures how R²
falls with epsilon for one, three and ten columns, and compares two estimators.
"""

# %%
# Diabetes data
# -------------
# The table has 442 patients, ten measurements, and an index of the progress of their disease after a year. The data are
# public and come with scikit-learn. Therefore we may look at exact scores. Otherwise the example treats them as
# private. The bounds of the columns are values that a physician considers possible. The bounds of the index, 25 and
# 346, are in the documentation of the data set. Delta is 1e-6 for all fits.

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
# The body mass index predicts the progress, by a line that may bend at 26 and 34. ``SplineTransformer`` with
# ``degree=1`` and fixed knots learns nothing from the records. It makes four columns. Each column is 1 at one knot and
# falls to 0 at the next knot, and the four columns sum to 1. Therefore the coefficients of a regression without an
# intercept *are* the predictions at the knots, and ``CoefficientUncertaintyDisplay`` gives intervals for predictions.
# The display draws further noise from the public distribution of the noise. It uses only released numbers, and is
# post-processing.
#
# No row has a norm above 1. Without an intercept, the estimator does not centre the target. Therefore the public middle
# of the range, about 185, is subtracted from the index.

KNOTS = np.array([18.0, 26.0, 34.0, 42.0])
MIDDLE = np.mean(INDEX)
hats = SplineTransformer(
    degree=1, knots=KNOTS[:, None], extrapolation="constant"
)
H = hats.fit_transform(X[:, [2]])
without = LinearRegression(fit_intercept=False).fit(H, y).coef_

curves, axes = plt.subplots(
    1, 3, figsize=(7.5, 3.6), sharey=True, layout="constrained"
)
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
    axis.scatter(X[:, 2], y, s=4, color="0.8", linewidths=0, label="patient")
    axis.fill_between(
        KNOTS,
        low,
        high,
        color="C0",
        alpha=0.25,
        linewidth=0,
        label="95 % interval of the noise",
    )
    axis.plot(
        KNOTS, model.coef_ + MIDDLE, "C0o-", markersize=4, label="private"
    )
    axis.plot(KNOTS, without, "k--", linewidth=1, label="without privacy")
    axis.set(
        xlabel="body mass index",
        title=f"epsilon {epsilon:g}",
        ylim=(0, 400),
        xticks=KNOTS,
    )
    print(f"epsilon {epsilon:g}")
    for knot, value, *ends in zip(
        KNOTS, model.coef_ + MIDDLE, low, high, strict=True
    ):
        print(
            f"  bmi {knot:g}: {value:6.0f}, {ends[0]:6.0f} to {ends[1]:6.0f}"
        )
axes[0].set_ylabel("progress after a year")
curves.legend(
    *axes[0].get_legend_handles_labels(),
    loc="outside lower center",
    ncols=4,
    fontsize=9,
)

# %%
# Each panel is one fit with fresh noise. (An analyst would see neither the points nor the dashed line.) The interval is
# narrow where there are many patients, and wide at the ends, where there are few. At the ends, the ridge penalty
# determines the prediction. The interval only covers the noise. It does not cover the uncertainty of a sample of 442
# patients.
#
# Number of columns
# -----------------
# The next figure compares one column (body mass index), three columns (also blood pressure and s5, the logarithm of
# triglycerides), and all ten. Textbooks name these three columns. A choice of columns by the private records would be a
# release. ``FunctionalMechLinReg`` uses the bounds. ``DPSGDRegressor`` uses rows that are scaled to [-1, 1], and a
# bound on their norm: 1 for one column, which is the largest possible norm, and 1.5 and 2 for three and ten columns,
# which few rows exceed. Scores are medians over five folds with three fits each, because a few fits are outliers.

COLUMNS = {
    "one column": [2],
    "three columns": [2, 3, 8],
    "ten columns": list(range(10)),
}
NORMS = [1.0, 1.5, 2.0]
EPSILONS = [0.1, 0.3, 1.0, 3.0, 10.0]
folds = KFold(5, shuffle=True, random_state=0)


def moments(columns, norm, epsilon):
    """Return a regression from noisy moments."""
    bounds = (LOWER[columns], UPPER[columns])
    return FunctionalMechLinReg(
        epsilon=epsilon,
        delta=DELTA,
        bounds=bounds,
        bounds_y=INDEX,
        data_norm=norm,
    )


def descent(columns, norm, epsilon):
    """Return a regression by noisy gradient descent."""
    model = DPSGDRegressor(
        epsilon=epsilon, delta=DELTA, data_norm=norm, bounds_y=INDEX
    )
    return make_pipeline(BoundsScaler((LOWER[columns], UPPER[columns])), model)


scores, axis = plt.subplots(figsize=(7, 4.8), layout="constrained")
for (name, columns), norm, colour in zip(
    COLUMNS.items(), NORMS, ["C0", "C1", "C2"], strict=True
):
    rows = X[:, columns]
    best = np.median(cross_val_score(LinearRegression(), rows, y, cv=folds))
    axis.plot(25, best, "D", color=colour, clip_on=False)
    for kind, make, style in [
        ("descent", descent, "o-"),
        ("moments", moments, "s--"),
    ]:
        found = [
            np.median(
                [
                    cross_val_score(
                        make(columns, norm, epsilon), rows, y, cv=folds
                    )
                    for _ in range(3)
                ]
            )
            for epsilon in EPSILONS
        ]
        axis.plot(
            EPSILONS,
            found,
            style,
            color=colour,
            markersize=5,
            label=f"{name}, {kind}",
        )
        print(
            f"{name + ', ' + kind:<24}"
            + "".join(f"{value:7.2f}" for value in found)
            + f"   without privacy {best:.2f}"
        )
axis.axhline(0, color="0.6", linewidth=1, label="mean of all")
axis.plot([], [], "kD", label="without privacy")
axis.set(
    xscale="log",
    ylim=(-0.5, 0.55),
    xlabel="epsilon",
    ylabel="R² on held-out rows",
)
axis.set_xticks(
    [*EPSILONS, 25], [*(f"{epsilon:g}" for epsilon in EPSILONS), "∞"]
)
axis.minorticks_off()
scores.legend(
    fontsize=8,
    loc="outside lower center",
    ncols=4,
    columnspacing=1,
    handlelength=1.6,
)

# %%
# At small epsilon, three columns are better than ten, because each further column adds noise and little information.
# From an epsilon of about 3 on, ten columns are better. At epsilon 0.1, the R² of ``FunctionalMechLinReg`` is close to
# zero or below, for any number of columns.
#
# With so few records, gradient descent is much more accurate. It takes shorter steps if the noise is larger, which also
# regularises the fit. ``FunctionalMechLinReg`` catches up as epsilon grows. It reads the records once, gives the
# intervals above, and is as accurate with many records (:ref:`functional_mechanism` shows this for California housing).
#
# Summary
# -------
# With a few hundred records, use few columns, chosen by prior knowledge, and ``DPSGDRegressor``. If readers need the
# uncertainty of a prediction, use ``FunctionalMechLinReg`` with intervals. :ref:`gradient_descent` has more figures,
# and :ref:`functional_mechanism` intervals of coefficients.

plt.show()

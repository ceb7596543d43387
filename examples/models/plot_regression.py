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
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, cross_val_score
from sklearn.preprocessing import SplineTransformer

from skdp import DPSGDRegressor, FunctionalMechLinReg, Number, Schema
from skdp.inspection import CoefficientUncertaintyDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
INDEX = (25, 346)
BOUNDS = {
    "age": (18, 90),
    "sex": (1, 2),
    "bmi": (15, 45),
    "bp": (50, 150),
    "s1": (80, 320),
    "s2": (30, 250),
    "s3": (20, 110),
    "s4": (1, 10),
    "s5": (3, 6.5),
    "s6": (50, 140),
}
schema = Schema(
    {name: Number(*ends, missing="error") for name, ends in BOUNDS.items()},
    target={"progress": INDEX},
)
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
H = hats.fit_transform(X[["bmi"]].to_numpy())
without = LinearRegression(fit_intercept=False).fit(H, y).coef_


def plot_curve(axis, epsilon):
    """Fit the values at the knots, plot them with intervals, print them."""
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
    fitted = pd.DataFrame(
        {
            "private": model.coef_ + MIDDLE,
            "low": display.lower[0] + MIDDLE,
            "high": display.upper[0] + MIDDLE,
        },
        index=pd.Index(KNOTS, name="bmi"),
    )
    print(f"epsilon {epsilon:g}\n{fitted.round()}")
    axis.scatter(X["bmi"], y, s=4, color="0.8", label="patient")
    label = "95 % interval of the noise"
    axis.fill_between(KNOTS, fitted.low, fitted.high, alpha=0.25, label=label)
    axis.plot(KNOTS, fitted.private, "C0o-", label="private")
    axis.plot(KNOTS, without, "k--", label="without privacy")
    axis.set(xlabel="body mass index", ylim=(0, 400), xticks=KNOTS)
    axis.set_title(f"epsilon {epsilon:g}")


curves, axes = plt.subplots(
    1, 3, figsize=(7.5, 3.6), sharey=True, layout="constrained"
)
for axis, epsilon in zip(axes, [1.0, 3.0, 10.0], strict=True):
    plot_curve(axis, epsilon)
axes[0].set_ylabel("progress after a year")
marks = axes[0].get_legend_handles_labels()
curves.legend(*marks, loc="outside lower center", ncols=4, fontsize=9)

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
# release. Both estimators scale columns to [-1, 1] by the schema. ``data_norm`` bounds the norm of such a row: 1 for
# one column, which is the largest possible norm, and 1.5 and 2 for three and ten columns, which few rows exceed. Scores
# are medians over five folds with three fits each, because a few fits are outliers.

COLUMNS = {
    "one column": ["bmi"],
    "three columns": ["bmi", "bp", "s5"],
    "ten columns": list(schema),
}
NORMS = [1.0, 1.5, 2.0]
EPSILONS = [0.1, 0.3, 1.0, 3.0, 10.0]
folds = KFold(5, shuffle=True, random_state=0)


ESTIMATORS = {"descent": DPSGDRegressor, "moments": FunctionalMechLinReg}


def score(model, columns):
    """Return the median R² over five folds with three fits each."""
    rows = X[columns]
    return np.median(
        [cross_val_score(model, rows, y, cv=folds) for _ in range(3)]
    )


scores, axis = plt.subplots(figsize=(7, 4.8), layout="constrained")
table = {}
for (name, columns), norm in zip(COLUMNS.items(), NORMS, strict=True):
    colour = f"C{NORMS.index(norm)}"
    best = score(LinearRegression(), columns)
    axis.plot(25, best, "D", color=colour, clip_on=False)
    for (kind, make), style in zip(
        ESTIMATORS.items(), ["o-", "s--"], strict=True
    ):
        declared = {"schema": schema.select(*columns), "data_norm": norm}
        models = [make(epsilon=e, delta=DELTA, **declared) for e in EPSILONS]
        found = [score(model, columns) for model in models]
        label = f"{name}, {kind}"
        axis.plot(EPSILONS, found, style, color=colour, label=label)
        table[label] = [*found, best]
print(pd.DataFrame(table, [*EPSILONS, "no privacy"]).T.round(2))
axis.axhline(0, color="0.6", label="mean of all")
axis.plot([], [], "kD", label="without privacy")
axis.set(xscale="log", ylim=(-0.5, 0.55), xlabel="epsilon")
axis.set_ylabel("R² on held-out rows")
axis.set_xticks([*EPSILONS, 25], [*map(str, EPSILONS), "∞"])
axis.minorticks_off()
scores.legend(fontsize=8, loc="outside lower center", ncols=4)

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

"""
Bounds: too tight, right, too wide
==================================

A private estimator needs a bound on the influence of one record, such as ``bounds`` or ``data_norm``. This example
shows the two errors of a wrong bound. If a bound is too tight, many records are clipped. This causes a bias, which more
records do not remove. If a bound is too wide, it causes noise, which more records do reduce.
"""

# %%
# Wages by years at work
# ----------------------
# The records are simulated: years at work, and wages in thousands, which grow by 2 with each year. It is public that
# the years are between 0 and 40, that wages are positive, and that few people earn more than 150. Therefore 150 is a
# suitable bound. The largest wage in the table is not a suitable bound, because it is private and depends on one
# record.

import math
import warnings

import matplotlib.pyplot as plt
import numpy as np

from skdp import FunctionalMechLinReg, Number, ObjPertLogReg, Schema
from skdp.exceptions import SchemaMismatchWarning

# Fits with a tight bound warn that many wages are beyond it, which is the
# subject of this example.
warnings.simplefilter("ignore", SchemaMismatchWarning)

SLOPE = 2.0


def wages(n, rng):
    """Draw years at work and wages."""
    years = rng.uniform(0, 40, n)
    return years[:, None], 20 + SLOPE * years + rng.gamma(2, 8, n)


def line(X, y, upper, seed=None, epsilon=0.5):
    """Fit a line to wages between 0 and a bound."""
    schema = Schema(
        {"years": Number(0, 40, missing="error")}, target={"wage": (0, upper)}
    )
    model = FunctionalMechLinReg(
        schema=schema, epsilon=epsilon, random_state=seed
    )
    return model.fit(X, y)


def slope(model):
    """Return the slope in a year: the schema maps 40 years to [-1, 1]."""
    return model.coef_[0] / 20


rng = np.random.default_rng(0)
years, pay = wages(1000, rng)

lines, axis = plt.subplots(figsize=(7, 4.4), layout="constrained")
axis.scatter(years, pay, s=3, color="0.75", label="record")
ends = np.array([[0.0], [40.0]])
for upper, colour in zip([60, 150, 2000], ["C0", "C2", "C3"], strict=True):
    slopes = []
    for seed in range(10):
        model = line(years, pay, upper, seed)
        label = None if seed else f"bound {upper}"
        axis.plot(ends, model.predict(ends), colour, lw=1, label=label)
        slopes.append(slope(model))
    print(f"bound {upper:>4}: slopes {min(slopes):.2f} to {max(slopes):.2f}")
axis.axhline(60, color="C0", ls=":", lw=1, label="wage of 60")
axis.set(xlabel="years at work", ylabel="wage", ylim=(-20, 190))
axis.set_title("Ten private lines for each bound")
axis.legend(fontsize=9, loc="upper left", framealpha=1)

# %%
# With a bound of 60, all larger wages are clipped to 60. The lines agree with each other, and all are wrong. With a
# bound of 2,000, the lines differ widely. With a bound of 150, a few wages are clipped, without a visible effect.
#
# Bias and noise
# --------------
# The next figure shows the root mean squared error of the slope against the bound, over 40 draws of noise. The dotted
# line has no noise. Its error is due to clipping, and to chance in the records. The bias of a tight bound is the same
# for 1,000 and for 20,000 records. The price of a wide bound is not: every regressor first releases a range that holds
# nearly all targets (:ref:`regression`). With 20,000 records, this range is narrow even within a bound of 5,000. With
# 1,000 records, the noise hides the range, and is proportional to the bound.

UPPERS = np.array([40, 55, 75, 100, 150, 250, 500, 1000, 2500, 5000])


def slope_error(X, y, upper, epsilon, draws):
    """Root mean squared error of the slope."""
    fits = [line(X, y, upper, seed, epsilon) for seed in range(draws)]
    slopes = np.array([slope(model) for model in fits])
    return math.sqrt(np.mean((slopes - SLOPE) ** 2))


errors, axis = plt.subplots(figsize=(7, 4.4), layout="constrained")
for n, colour in zip([1000, 20_000], ["C1", "C4"], strict=True):
    X, y = wages(n, rng)
    private = [slope_error(X, y, upper, 0.5, 40) for upper in UPPERS]
    axis.plot(UPPERS, private, "o-", color=colour, label=f"{n:,} records")
    best = UPPERS[np.argmin(private)]
    print(f"{n:>6} records: best bound {best}, error {min(private):.3f}")
many = wages(300_000, rng)
without_noise = [slope_error(*many, upper, math.inf, 1) for upper in UPPERS]
axis.plot(UPPERS, without_noise, "k:", label="without noise")
axis.axvline(150, color="0.85", zorder=0, lw=6, label="bound of 150")
axis.set(xscale="log", yscale="log", xlabel="bound of wages")
axis.set_ylabel("error of the slope")
axis.set_title("Error of the slope, epsilon 0.5")
axis.set_ylim(bottom=3e-3)
ticks = [50, 150, 500, 1500, 5000]
axis.set_xticks(ticks, [f"{tick}" for tick in ticks])
axis.minorticks_off()
axis.legend(fontsize=9)

# %%
# A norm for rows
# ---------------
# A linear classifier has the parameter ``data_norm``. Rows with a larger norm are scaled down. They keep their
# direction and lose their length. The effect depends on the label. In the first simulation, the label depends on the
# difference of two centred features, and therefore on the direction of a row. In the second simulation, the features
# are amounts, and the label depends on their sum, and therefore on the length of a row.


def centred(n):
    """Draw features around 0 and a label that depends on a difference."""
    X = rng.normal(size=(n, 4))
    return X, (
        rng.uniform(size=n) < 1 / (1 + np.exp(-3 * (X[:, 0] - X[:, 1])))
    ).astype(int)


def amounts(n):
    """Draw positive features and a label that depends on their sum."""
    X = rng.exponential(size=(n, 4))
    return X, (
        rng.uniform(size=n) < 1 / (1 + np.exp(-3 * (X.sum(axis=1) - 4)))
    ).astype(int)


norms, axis = plt.subplots(figsize=(7, 4.4), layout="constrained")
NORMS = np.array([0.1, 0.3, 1, 2, 4, 10, 30, 100, 300])


def accuracy(training, test, norm, epsilon):
    """Return the mean accuracy of ten fits, or of one without noise."""
    models = [
        ObjPertLogReg(
            epsilon=epsilon,
            delta=1e-6,
            data_norm=norm,
            classes=[0, 1],
            random_state=seed,
        )
        for seed in range(10 if epsilon < math.inf else 1)
    ]
    return np.mean([model.fit(*training).score(*test) for model in models])


for draw, colour, name in [
    (centred, "C5", "label depends on direction"),
    (amounts, "C9", "label depends on length"),
]:
    training, test = draw(2000), draw(10_000)
    for epsilon, style in [(1.0, "o-"), (math.inf, ":")]:
        scores = [accuracy(training, test, norm, epsilon) for norm in NORMS]
        label = name if epsilon < math.inf else None
        axis.plot(NORMS, scores, style, color=colour, label=label)
        rounded = (f"{score:.2f}" for score in scores)
        print(f"{name}, epsilon {epsilon:g}:", *rounded)
axis.plot([], [], "k:", label="without noise")
axis.set(xscale="log", xlabel="data_norm", ylabel="test accuracy")
axis.set_title("2,000 records, epsilon 1")
axis.set_ylim(0.28, 0.95)
axis.set_xticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
axis.legend(fontsize=9, loc="lower right")

# %%
# If the label depends on directions, a tight norm has almost no effect. If it depends on lengths, a tight norm removes
# the information, even without noise. If ``data_norm`` exceeds the longest rows, both models only gain noise, until
# they guess. (At the far right, the accuracy without noise falls a little as well, because the penalty grows with
# ``data_norm``.)
#
# Summary
# -------
# Take bounds from public knowledge, so that few records exceed them. If you are not sure of ``bounds_y``, prefer a wide
# bound: with many records, it costs little, and a tight bound costs the same for any number of records.

plt.show()

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

import matplotlib.pyplot as plt
import numpy as np

from skdp import FunctionalMechLinReg, ObjPertLogReg

SLOPE = 2.0


def wages(n, rng):
    """Draw years at work and wages."""
    years = rng.uniform(0, 40, n)
    return years[:, None], 20 + SLOPE * years + rng.gamma(2, 8, n)


def line(X, y, upper, seed=None, epsilon=0.5):
    """Fit a line to wages between 0 and a bound."""
    return FunctionalMechLinReg(
        epsilon=epsilon, bounds=(0, 40), bounds_y=(0, upper), random_state=seed
    ).fit(X, y)


rng = np.random.default_rng(0)
years, pay = wages(1000, rng)

lines, axis = plt.subplots(figsize=(7, 4.4), layout="constrained")
axis.scatter(years, pay, s=3, color="0.75", label="record")
ends = np.array([[0.0], [40.0]])
for upper, colour in zip([60, 150, 2000], ["C0", "C2", "C3"], strict=True):
    slopes = []
    for seed in range(10):
        model = line(years, pay, upper, seed)
        axis.plot(
            ends,
            model.predict(ends),
            color=colour,
            linewidth=1,
            label=None if seed else f"bound {upper}",
        )
        slopes.append(model.coef_[0])
    print(f"bound {upper:>4}: slopes {min(slopes):.2f} to {max(slopes):.2f}")
axis.axhline(60, color="C0", linestyle=":", linewidth=1, label="wage of 60")
axis.set(
    xlabel="years at work",
    ylabel="wage",
    ylim=(-20, 190),
    title="Ten private lines for each bound",
)
axis.legend(fontsize=9, loc="upper left", framealpha=1)

# %%
# With a bound of 60, all larger wages are clipped to 60. The lines agree with each other, and all are wrong. With a
# bound of 2,000, the lines differ widely. With a bound of 150, a few wages are clipped, without a visible effect.
#
# Bias and noise
# --------------
# The next figure shows the root mean squared error of the slope against the bound, over many draws of noise. With
# twenty times the records, the effect of the noise is twenty times smaller, but the bias of a tight bound is the same.
# The dotted line has no noise. Its error is due to clipping, and to chance in the records.

UPPERS = np.array([40, 55, 75, 100, 150, 250, 500, 1000, 2500, 5000])


def slope_error(X, y, upper, epsilon, draws):
    """Root mean squared error of the slope."""
    return math.sqrt(
        np.mean(
            [
                (line(X, y, upper, seed, epsilon).coef_[0] - SLOPE) ** 2
                for seed in range(draws)
            ]
        )
    )


errors, axis = plt.subplots(figsize=(7, 4.4), layout="constrained")
for n, colour in zip([1000, 20_000], ["C1", "C4"], strict=True):
    X, y = wages(n, rng)
    private = [slope_error(X, y, upper, 0.5, 40) for upper in UPPERS]
    axis.plot(
        UPPERS,
        private,
        "o-",
        color=colour,
        markersize=4,
        label=f"{n:,} records",
    )
    print(
        f"{n:>6} records: best bound {UPPERS[np.argmin(private)]}, "
        f"error {min(private):.3f}"
    )
many = wages(300_000, rng)
axis.plot(
    UPPERS,
    [slope_error(*many, upper, math.inf, 1) for upper in UPPERS],
    "k:",
    label="without noise",
)
axis.axvline(150, color="0.85", zorder=0, linewidth=6, label="bound of 150")
axis.set(
    xscale="log",
    yscale="log",
    xlabel="bound of wages",
    ylabel="error of the slope",
    title="Error of the slope, epsilon 0.5",
)
axis.set_ylim(bottom=3e-3)
axis.set_xticks(
    [50, 150, 500, 1500, 5000], ["50", "150", "500", "1500", "5000"]
)
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
for draw, colour, name in [
    (centred, "C5", "label depends on direction"),
    (amounts, "C9", "label depends on length"),
]:
    X, y = draw(2000)
    X_test, y_test = draw(10_000)
    for epsilon, style in [(1.0, "o-"), (math.inf, ":")]:
        models = [
            [
                ObjPertLogReg(
                    epsilon=epsilon,
                    delta=1e-6,
                    data_norm=norm,
                    classes=[0, 1],
                    random_state=seed,
                )
                for seed in range(10 if epsilon < math.inf else 1)
            ]
            for norm in NORMS
        ]
        scores = [
            np.mean([model.fit(X, y).score(X_test, y_test) for model in row])
            for row in models
        ]
        label = name if epsilon < math.inf else None
        axis.plot(
            NORMS, scores, style, color=colour, markersize=4, label=label
        )
        print(
            f"{name}, epsilon {epsilon:g}:",
            *(f"{score:.2f}" for score in scores),
        )
axis.plot([], [], "k:", label="without noise")
axis.set(
    xscale="log",
    xlabel="data_norm",
    ylabel="test accuracy",
    title="2,000 records, epsilon 1",
)
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
# Take bounds from public knowledge, so that few records exceed them. More records make up for a bound that is a little
# too wide, but not for a bound that is far too wide.

plt.show()

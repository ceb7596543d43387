"""
Bounds: too tight, right, too wide
==================================

A private estimator asks for a bound on what one record can say: ``bounds``, ``data_norm``. Here we learn what a wrong
one costs. What lies beyond is clipped, so that a bound that is too tight makes a bias, which no number of records
removes. A bound that is too wide makes noise, which more records do remove.
"""

# %%
# Wages, and a line
# -----------------
# Simulated: years at work, and wages in thousands, which grow by 2 with each year. Years are known to be between 0 and
# 40. Of wages it is known that they are positive, and that few people have more than 150: that is a bound to take. The
# largest wage among the records is not, because it is private, and moves with one record.

import math

import matplotlib.pyplot as plt
import numpy as np

from skdp import FunctionalMechLinReg, ObjPertLogReg

SLOPE = 2.0


def wages(n, rng):
    """Draw years at work, and wages."""
    years = rng.uniform(0, 40, n)
    return years[:, None], 20 + SLOPE * years + rng.gamma(2, 8, n)


def line(X, y, upper, seed=None, epsilon=0.5):
    """Fit a line to wages between 0 and a bound."""
    return FunctionalMechLinReg(epsilon=epsilon, bounds=(0, 40), bounds_y=(0, upper), random_state=seed).fit(X, y)


rng = np.random.default_rng(0)
years, pay = wages(1000, rng)

lines, left = plt.subplots(figsize=(7, 4.4), layout="constrained")
left.scatter(years, pay, s=3, color="0.75")
ends = np.array([[0.0], [40.0]])
for upper, colour in zip([60, 150, 2000], ["C0", "C2", "C3"], strict=True):
    slopes = []
    for seed in range(10):
        model = line(years, pay, upper, seed)
        left.plot(ends, model.predict(ends), color=colour, linewidth=1, label=None if seed else f"wages up to {upper}")
        slopes.append(model.coef_[0])
    print(f"wages up to {upper:>4}: ten slopes from {min(slopes):6.2f} to {max(slopes):5.2f}, and 2 is right")
left.axhline(60, color="C0", linestyle=":", linewidth=1)
left.set(xlabel="years at work", ylabel="wage", ylim=(-20, 190), title="Ten private lines for each bound")
left.legend(fontsize=9, loc="upper left", framealpha=1)

# %%
# With a bound of 60, what is above counts as 60. The lines agree with each other, and all are wrong. With 2000, they
# are all over the place. With 150, a few wages are clipped, and no one notices.
#
# Bias stays, noise goes
# ----------------------
# The error of the slope, over all draws of noise, against the bound. With twenty times the records, noise is twenty
# times smaller by comparison; the bias of a tight bound is what it was. The dotted line has no noise: what is left is
# clipping, and chance in the records.

UPPERS = np.array([40, 55, 75, 100, 150, 250, 500, 1000, 2500, 5000])


def error(X, y, upper, epsilon, draws):
    """Root mean squared error of the slope."""
    return math.sqrt(np.mean([(line(X, y, upper, seed, epsilon).coef_[0] - SLOPE) ** 2 for seed in range(draws)]))


errors, middle = plt.subplots(figsize=(7, 4.4), layout="constrained")
for n, colour in zip([1000, 20_000], ["C1", "C4"], strict=True):
    X, y = wages(n, rng)
    private = [error(X, y, upper, 0.5, 40) for upper in UPPERS]
    middle.plot(UPPERS, private, "o-", color=colour, markersize=4, label=f"{n:,} records")
    print(f"{n:>6} records: best bound {UPPERS[np.argmin(private)]}, error {min(private):.3f}")
many = wages(300_000, rng)
middle.plot(UPPERS, [error(*many, upper, math.inf, 1) for upper in UPPERS], "k:", label="without noise")
middle.axvline(150, color="0.85", zorder=0, linewidth=6)
middle.set(xscale="log", yscale="log", xlabel="bound of wages", ylabel="error of the slope", title="Bias, then noise")
middle.set_ylim(bottom=3e-3)
middle.set_xticks([50, 150, 500, 1500, 5000], ["50", "150", "500", "1500", "5000"])
middle.minorticks_off()
middle.legend(fontsize=9)

# %%
# A norm for rows
# ---------------
# A classifier has ``data_norm``. Longer rows are scaled down: they keep their direction, and lose their length. Whether
# that matters depends on what the label is about. In one simulation it depends on the difference of two centred
# features, hence on the direction. In the other the features are amounts, and it depends on their sum, hence on the
# length.


def centred(n):
    """Draw features around 0, and a label that depends on a difference."""
    X = rng.normal(size=(n, 4))
    return X, (rng.uniform(size=n) < 1 / (1 + np.exp(-3 * (X[:, 0] - X[:, 1])))).astype(int)


def amounts(n):
    """Draw positive features, and a label that depends on their sum."""
    X = rng.exponential(size=(n, 4))
    return X, (rng.uniform(size=n) < 1 / (1 + np.exp(-3 * (X.sum(axis=1) - 4)))).astype(int)


norms, right = plt.subplots(figsize=(7, 4.4), layout="constrained")
NORMS = np.array([0.1, 0.3, 1, 2, 4, 10, 30, 100, 300])
for draw, colour, name in [(centred, "C5", "label of the direction"), (amounts, "C9", "label of the length")]:
    X, y = draw(2000)
    X_test, y_test = draw(10_000)
    for epsilon, style in [(1.0, "o-"), (math.inf, ":")]:
        models = [
            [
                ObjPertLogReg(epsilon=epsilon, delta=1e-6, data_norm=norm, classes=[0, 1], random_state=seed)
                for seed in range(10 if epsilon < math.inf else 1)
            ]
            for norm in NORMS
        ]
        scores = [np.mean([model.fit(X, y).score(X_test, y_test) for model in row]) for row in models]
        label = name if epsilon < math.inf else None
        right.plot(NORMS, scores, style, color=colour, markersize=4, label=label)
        print(f"{name}, epsilon {epsilon:g}:", *(f"{score:.2f}" for score in scores))
right.plot([], [], "k:", label="without noise")
right.set(xscale="log", xlabel="data_norm", ylabel="test accuracy", title="Rows: median length 2, a tenth above 3 or 4")
right.set_ylim(0.28, 0.95)
right.set_xticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
right.legend(fontsize=9, loc="lower right")

# %%
# Where the label is about directions, a tight norm costs next to nothing. Where it is about lengths, it destroys what
# was to be learned, also without any noise. Beyond the longest rows both only gain noise, and end as guesses. (Without
# noise they fall a little as well, at the far right: the penalty is stronger where rows may be long.)
#
# To take away: take bounds from public knowledge, such that few records are beyond. A bound somewhat too wide is paid
# back by more records; a bound far too tight never is.

plt.show()

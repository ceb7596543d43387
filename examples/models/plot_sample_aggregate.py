"""
A private version of what has none
==================================

How does the number of visits to a doctor grow with age? That is a Poisson regression, and skdp has none. But any
estimator, and any function of rows, can be computed on disjoint blocks of the records, and the results averaged with
noise: a record is in one block, and moves one of many results. The question is into how many blocks to cut.
"""

# %%
# Visits
# ------
# They are simulated. That ages are from 18 to 90 is public, as are the bounds of the answer: visits grow by at most a
# factor of 20 from the youngest to the oldest, and do not fall by more. With age scaled to [0, 1], the coefficient is
# the logarithm of that factor, from -3 to 3. The intercept is that of the youngest: from 0.05 to 20 visits a year.

import sys

import matplotlib

if not hasattr(sys, "ps1"):
    matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.linear_model import PoissonRegressor

from skdp import SampleAggregate

FACTOR, YOUNGEST = 4.0, 1.5
BOUNDS = {"coef_": (-3, 3), "intercept_": (-3, 3)}


def patients(n, rng):
    """Draw ages, scaled, and visits in a year."""
    age = rng.integers(18, 91, size=n)
    scaled = (age - 18) / (90 - 18)
    # Habits differ: more spread than a Poisson distribution has.
    visits = rng.poisson(YOUNGEST * FACTOR**scaled * rng.gamma(2, 0.5, size=n))
    return scaled[:, None], visits


X, visits = patients(6000, np.random.default_rng(0))
MODEL = PoissonRegressor(alpha=0, solver="newton-cholesky")
exact = clone(MODEL).fit(X, visits)

# %%
# The whole of it
# ---------------
# The aggregate is an estimator that predicts: its ``estimator_`` is a Poisson regression that has the private numbers
# in place of its own. Each line is a fit with an epsilon of 1 and noise of its own.


def aggregate(n_blocks, epsilon=1.0, aggregator="mean"):
    """Fit Poisson regressions to blocks, and put them together."""
    model = SampleAggregate(MODEL, aggregator=aggregator, bounds=BOUNDS, n_blocks=n_blocks, epsilon=epsilon)
    return model.fit(X, visits)


ages = np.arange(18, 91)
scaled = ((ages - 18) / (90 - 18))[:, None]

fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for repeat in range(6):
    label = None if repeat else "private, 100 blocks, epsilon = 1"
    ax.plot(ages, aggregate(100).predict(scaled), color="C0", lw=1, alpha=0.7, label=label)
ax.plot(ages, exact.predict(scaled), color="k", ls="--", label="without privacy")
ax.set(xlabel="age", ylabel="visits in a year", ylim=(0, None))
_ = ax.legend(loc="upper left")

# %%
# Into how many blocks?
# ---------------------
# Twice as many blocks halve the noise, for a record is one of more. But each block has fewer records, and what an
# estimator finds in few records may be off to one side, or beyond the bounds: no averaging mends that. Nor may the
# number be chosen by looking at this picture for one's own records. Here they are simulated; ``n_blocks=None`` takes
# it from ``expected_n``, a public guess of their number.
#
# The median of the blocks, chosen by the exponential mechanism, hardly depends on how wide the bounds are.

BLOCKS = [10, 30, 100, 300]
truth = np.log(FACTOR)

fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for aggregator, color in [("mean", "C0"), ("median", "C1")]:
    errors = [
        [abs(aggregate(n, aggregator=aggregator).result_[0] - truth) for _ in range(max(3, 600 // n))] for n in BLOCKS
    ]
    ax.plot(BLOCKS, [np.mean(each) for each in errors], color=color, marker="o", label=f"{aggregator} of the blocks")
ax.axhline(abs(exact.coef_[0] - truth), color="k", ls="--", lw=1, label="without privacy")
ax.set(xscale="log", yscale="log", xlabel="blocks of 6,000 records", ylabel="error of the coefficient")
_ = ax.legend()

# %%
# What to take along
# ------------------
# Cut so that a block has some dozens of records for each number that is asked for, and state bounds as narrow as what
# is known allows. Where skdp has an estimator of the same model, it needs far fewer records. See
# :doc:`/user_guide/sample_aggregate`.

"""
Any statistic, made private: sample and aggregate
=================================================

Where there is no private version of a statistic, compute it on blocks of the records, without privacy, and publish a
noisy mean or median over the blocks. Here we do so with the inequality of incomes and with a Poisson regression, and
learn how many blocks to take: noise wants many, and the statistic wants few.
"""

# %%
# A statistic with bounds of its own
# ----------------------------------
# The records are simulated: the incomes of 4000 households. The statistic is the Gini coefficient, 0 where all have the
# same, and 1 where one has all. So its bounds are public by definition, although nothing is known of the incomes. One
# record may do what it likes to one block; its result stays between 0 and 1, and that is all that the noise has to
# cover.

import math

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import PoissonRegressor

from skdp import SampleAggregate


def gini(incomes):
    """Gini coefficient: half the mean difference of two households, relative to the mean."""
    ordered = np.sort(incomes, axis=None)
    n = len(ordered)
    return np.sum((2 * np.arange(1, n + 1) - n - 1) * ordered) / (n * ordered.sum())


def corrected(incomes):
    """The same without its bias in small samples."""
    n = len(incomes)
    return gini(incomes) * n / (n - 1)


rng = np.random.default_rng(0)
incomes = rng.lognormal(10, 0.8, (4000, 1))
truth = gini(incomes)


def private(statistic, n_blocks, aggregator):
    """Some private values, pure with epsilon 1 each; fewer where there are many blocks, for speed."""
    model = SampleAggregate(statistic, bounds=(0, 1), aggregator=aggregator, epsilon=1.0, delta=0.0, n_blocks=n_blocks)
    return np.array([model.fit(incomes).result_[0] for _ in range(min(24, max(3, 600 // n_blocks)))])


# %%
# What blocks say
# ---------------
# In grey, the coefficients of the blocks; an analyst never sees them. Below, private values, which take an epsilon of 1
# each: the mean over blocks with noise, and a median that is chosen from a grid between the bounds, by
# permute-and-flip.

BLOCKS = [5, 15, 50, 100, 300]
VARIANTS = {
    "mean": (gini, "mean", "C0"),
    "median": (gini, "median", "C1"),
    "mean, corrected": (corrected, "mean", "C2"),
}
found = {
    name: [private(statistic, n_blocks, aggregator) for n_blocks in BLOCKS]
    for name, (statistic, aggregator, _) in VARIANTS.items()
}

blocks, axes = plt.subplots(1, 3, figsize=(9, 3.6), sharex=True, layout="constrained")
for axis, i in zip(axes, [1, 2, 4], strict=True):
    q = BLOCKS[i]
    drawn = rng.integers(q, size=len(incomes))
    counts, *_ = axis.hist([gini(incomes[drawn == block]) for block in range(q)], np.linspace(0, 1, 41), color="0.8")
    axis.axvline(truth, color="k", linestyle="--", linewidth=1, label="all households")
    for name, height in {"mean": -0.08, "median": -0.18}.items():
        axis.plot(
            found[name][i],
            np.full(len(found[name][i]), height * counts.max()),
            "|",
            color=VARIANTS[name][2],
            markersize=11,
            label=name,
        )
    axis.set(xlim=(0, 1), title=f"{q} blocks, {len(incomes) // q} records each", xlabel="Gini coefficient", yticks=[])
axes[0].set_ylabel("blocks")
blocks.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=3)
blocks.align_labels()

# %%
# With 15 blocks each of them knows the answer, and the noise drowns it. With 50 there is less noise: it falls as one
# over the number of blocks. With 300 there is hardly any, but 13 households are too few: in small samples the
# coefficient is too small on average, for whoever has most is counted as part of the mean. No budget helps against
# that.
#
# How many blocks, then
# ---------------------
# At the left, the error of the private values, and the noise on the mean, which is known in advance. The third curve is
# of a coefficient that is multiplied by :math:`n/(n-1)` in each block, which takes most of the bias away.
#
# At the right, an estimator in the place of a function: ``PoissonRegressor``, of how often 4000 people see a doctor in
# a year, by age. Its coefficient and its intercept need bounds. Age is counted in decades from 50, a public map, so
# that both can be thought about: at 50, once in almost three years to 20 times a year, and with each decade less than
# three times as often, or as rarely. Three fits each, in 150 blocks, with epsilon 1 and delta 0: for two numbers, that
# has less noise than a delta of 1e-6.

age = rng.uniform(20, 90, 4000)
decades = (age[:, None] - 50) / 10
visits = rng.poisson(np.exp(0.7 + 0.2 * decades[:, 0]))
ages = np.linspace(20, 90, 71)


def regression(aggregator):
    """Give a Poisson regression by sample and aggregate."""
    return SampleAggregate(
        PoissonRegressor(alpha=0, solver="newton-cholesky"),
        bounds={"coef_": (-1, 1), "intercept_": (-1, 3)},
        aggregator=aggregator,
        epsilon=1.0,
        delta=0.0,
        n_blocks=150,
    )


results, (left, right) = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
for name, values in found.items():
    error = [np.sqrt(np.mean((several - truth) ** 2)) for several in values]
    left.plot(BLOCKS, error, "o-", color=VARIANTS[name][2], markersize=5, label=name)
    print(f"{name:<16}", *(f"{q}: {value:.3f}" for q, value in zip(BLOCKS, error, strict=True)), sep="  ")
left.plot(BLOCKS, math.sqrt(2) / np.array(BLOCKS), "k:", label="noise on the mean")
left.set(xscale="log", yscale="log", xlabel="blocks", ylabel="root mean squared error", title="Gini coefficient")
left.set_xticks(BLOCKS, [f"{q}" for q in BLOCKS])
left.set_yticks([0.003, 0.01, 0.03, 0.1, 0.3], ["0.003", "0.01", "0.03", "0.1", "0.3"])
left.legend(fontsize=9)
left.minorticks_off()

for aggregator, colour in [("mean", "C0"), ("median", "C1")]:
    for i in range(3):
        model = regression(aggregator).fit(decades, visits)
        right.plot(ages, model.predict((ages[:, None] - 50) / 10), color=colour, label=None if i else aggregator)
        print(
            f"{aggregator:<6} coefficient {model.estimator_.coef_[0]:.2f}, intercept {model.estimator_.intercept_:.2f}"
        )
without = PoissonRegressor(alpha=0, solver="newton-cholesky").fit(decades, visits)
right.plot(ages, without.predict((ages[:, None] - 50) / 10), "k--", label="without privacy")
right.set(xlabel="age, years", ylabel="visits a year", title="Poisson regression, 150 blocks", ylim=(0, 10))
right.legend(fontsize=9, loc="upper left")
right.grid(color="0.92")

# %%
# The error falls with the noise until bias takes over. Where that is depends on the statistic: better one that is right
# on average in small samples. Do not look for the best number of blocks on private records; simulate some, as here. The
# default, 20 records a block for each number of the result, is many blocks.
#
# The median does not care how wide the bounds are, once there are some 50 blocks for each number; below that it may be
# anywhere. The mean pays for the bounds' width, in a way that is known in advance.
#
# To take along: bounds of the *result* are all that has to be known, and they are often easier to have than bounds of
# the records. Where a model has a private estimator of its own, that one uses all records at once, and is better.
# :ref:`sample-aggregate` has the theorem, and :class:`~skdp.ensemble.SampleAggregate` all parameters.

plt.show()

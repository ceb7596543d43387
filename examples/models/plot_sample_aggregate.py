"""
Sample and aggregate: make any statistic private
================================================

If a statistic has no private version, compute it without privacy on disjoint blocks of the records, and release a noisy
mean or median of the results. This example does this for an inequality coefficient and for a Poisson regression. It
shows how to choose the number of blocks: more blocks reduce the noise, but make the statistic of each block less
reliable.
"""

# %%
# A bounded statistic
# -------------------
# The records are simulated: the incomes of 4,000 households. The statistic is the Gini coefficient. It is 0 if all
# incomes are equal, and close to 1 if one household has everything. Therefore its bounds are public, although nothing
# is known about the incomes. One record can change the result of one block only, and the result stays between 0 and 1.
# The noise has to cover this change.

import math

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import PoissonRegressor

from skdp import SampleAggregate


def gini(incomes):
    """Return half the mean difference of two households, over the mean."""
    ordered = np.sort(incomes, axis=None)
    n = len(ordered)
    return np.sum((2 * np.arange(1, n + 1) - n - 1) * ordered) / (
        n * ordered.sum()
    )


def corrected(incomes):
    """Return the Gini coefficient with less bias in small samples."""
    n = len(incomes)
    return gini(incomes) * n / (n - 1)


rng = np.random.default_rng(0)
incomes = rng.lognormal(10, 0.8, (4000, 1))
truth = gini(incomes)


def private(statistic, n_blocks, aggregator):
    """Return private values, and fewer of them for many blocks."""
    model = SampleAggregate(
        statistic,
        bounds=(0, 1),
        aggregator=aggregator,
        epsilon=1.0,
        delta=0.0,
        n_blocks=n_blocks,
    )
    return np.array(
        [
            model.fit(incomes).result_[0]
            for _ in range(min(24, max(3, 600 // n_blocks)))
        ]
    )


# %%
# Results of the blocks
# ---------------------
# The grey histograms show the coefficients of the blocks, which an analyst does not see. The marks below are private
# values with epsilon 1 each: the mean of the blocks with noise, and a median. The permute-and-flip mechanism chooses
# the median from a grid between the bounds.

BLOCKS = [5, 15, 50, 100, 300]
VARIANTS = {
    "mean": (gini, "mean"),
    "median": (gini, "median"),
    "mean, corrected": (corrected, "mean"),
}
private_values = {
    name: [private(statistic, n_blocks, aggregator) for n_blocks in BLOCKS]
    for name, (statistic, aggregator) in VARIANTS.items()
}


def plot_blocks(axis, i):
    """Plot the results of the blocks, and private values below them."""
    n_blocks = BLOCKS[i]
    block_of_row = rng.integers(n_blocks, size=len(incomes))
    results = [gini(incomes[block_of_row == k]) for k in range(n_blocks)]
    edges = np.linspace(0, 1, 41)
    counts, *_ = axis.hist(results, edges, color="0.8", label="blocks")
    axis.axvline(truth, color="k", linestyle="--", label="all households")
    for name, height in {"mean": -0.08, "median": -0.18}.items():
        values = private_values[name][i]
        heights = np.full(len(values), height * counts.max())
        axis.plot(values, heights, "|", markersize=11, label=name)
    axis.set(xlim=(0, 1), xlabel="Gini coefficient", yticks=[])
    axis.set_title(
        f"{n_blocks} blocks, {len(incomes) // n_blocks} records each"
    )


figure, axes = plt.subplots(
    1, 3, figsize=(9, 3.6), sharex=True, layout="constrained"
)
for axis, i in zip(axes, [1, 2, 4], strict=True):
    plot_blocks(axis, i)
axes[0].set_ylabel("number of blocks")
marks = axis.get_legend_handles_labels()
figure.legend(*marks, loc="outside lower center", ncols=4)

# %%
# With 15 blocks, the result of each block is close to the right value, but the noise is large. With 50 blocks, the
# noise is smaller, because it is proportional to one over the number of blocks. With 300 blocks there is almost no
# noise, but 13 households are too few for the statistic. In small samples the coefficient is too small on average,
# because the richest household is a part of the mean. A larger budget does not reduce this bias.
#
# Number of blocks
# ----------------
# The left panel shows the error of the private values, and the noise of the mean, which is known in advance. The third
# curve multiplies the coefficient of each block by :math:`n/(n-1)`, which removes most of the bias.
#
# The right panel uses an estimator in place of a function. ``PoissonRegressor`` predicts how often 4,000 people see a
# doctor in a year, by age. Its coefficient and its intercept need bounds. Age is counted in decades from 50. Then the
# bounds have a meaning: at the age of 50, the rate is between once in three years and 20 times a year, and with each
# decade it grows or falls by a factor below three. There are three fits of each kind, with 150 blocks, epsilon 1 and
# delta 0. For two numbers, pure noise is smaller than Gaussian noise with a delta of 1e-6.

age = rng.uniform(20, 90, 4000)
decades = (age[:, None] - 50) / 10
visits = rng.poisson(np.exp(0.7 + 0.2 * decades[:, 0]))
ages = np.linspace(20, 90, 71)


def regression(aggregator):
    """Return a Poisson regression by sample and aggregate."""
    return SampleAggregate(
        PoissonRegressor(alpha=0, solver="newton-cholesky"),
        bounds={"coef_": (-1, 1), "intercept_": (-1, 3)},
        aggregator=aggregator,
        epsilon=1.0,
        delta=0.0,
        n_blocks=150,
    )


def plot_errors(axis, name, values_of):
    """Plot the error of private values against the number of blocks."""
    errors = [np.sqrt(np.mean((values - truth) ** 2)) for values in values_of]
    axis.plot(BLOCKS, errors, "o-", markersize=5, label=name)
    print(f"{name:<16}", *(f"{error:.3f}" for error in errors))


def plot_rate(axis, predict, **style):
    """Plot the predicted visits in a year against the age."""
    axis.plot(ages, predict((ages[:, None] - 50) / 10), **style)


figure, (left, right) = plt.subplots(
    1, 2, figsize=(9, 4.4), layout="constrained"
)
for name, values_of in private_values.items():
    plot_errors(left, name, values_of)
noise = math.sqrt(2) / np.array(BLOCKS)
left.plot(BLOCKS, noise, "k:", label="noise on the mean")
left.set(xscale="log", yscale="log", xlabel="blocks", title="Gini coefficient")
left.set_ylabel("root mean squared error")
left.set_xticks(BLOCKS, [f"{n_blocks}" for n_blocks in BLOCKS])
ticks = [0.003, 0.01, 0.03, 0.1, 0.3]
left.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
left.legend(fontsize=9)
left.minorticks_off()

for aggregator, colour in [("mean", "C0"), ("median", "C1")]:
    for fit in range(3):
        model = regression(aggregator).fit(decades, visits)
        label = None if fit else aggregator
        plot_rate(right, model.predict, color=colour, label=label)
        coefficient, intercept = (
            model.estimator_.coef_[0],
            model.estimator_.intercept_,
        )
        print(f"{aggregator:<7} {coefficient:.2f}, intercept {intercept:.2f}")
without = PoissonRegressor(alpha=0, solver="newton-cholesky")
without.fit(decades, visits)
plot_rate(
    right, without.predict, color="k", linestyle="--", label="without privacy"
)
right.set(xlabel="age, years", ylabel="visits a year", ylim=(0, 10))
right.set_title("Poisson regression, 150 blocks")
right.legend(fontsize=9, loc="upper left")

# %%
# The error falls with the noise until the bias is larger. The best number of blocks depends on the statistic. A
# statistic without bias in small samples allows more blocks. Choose the number of blocks on simulated records, as here,
# and not on private records. The default is 20 records per block for each number of the result, which is a large number
# of blocks.
#
# The error of the median hardly depends on the width of the bounds, if there are about 50 blocks or more for each
# number of the result. With fewer blocks, the median may be anywhere between the bounds. The noise of the mean is
# proportional to the width of the bounds, and is known in advance.
#
# Summary
# -------
# Sample and aggregate needs bounds of the *result* only. They are often easier to find than bounds of the records. If a
# model has a private estimator of its own, use this estimator, because it uses all records at once.
# :ref:`sample-aggregate` has the theorem, and :class:`~skdp.ensemble.SampleAggregate` describes all parameters.

plt.show()

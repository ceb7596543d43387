"""
A noisy histogram, and rows drawn from it
=========================================

Two or three columns, and many questions: count the records in the cells of a public grid, release the counts with noise
once, and ask whatever you like of them. Here we look at the counts before and after, at rows that are drawn from them,
and at what one release answers; and we learn how many bins are too many.
"""

# %%
# Age and income
# --------------
# The records are simulated: 5000 people, their age and what they earn in a month. The bounds are those of the form that
# asks for them: 18 to 90 years, and up to 8000, with a box for "more", which is the last bin. The size of the sample is
# published with the survey, so that ``expected_n`` may say it; it decides the number of bins.

import math

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from skdp import BudgetAccountant, HistogramRegressor, NoisyHistogram

LOW, HIGH = [18, 0], [90, 8000]


def people(n, rng):
    """Draw ages and incomes: wages until 65 for most, pensions later."""
    age = rng.triangular(18, 35, 90, n)
    works = rng.uniform(size=n) < 1 / (1 + np.exp((age - 65) / 1.5))
    wage = (1200 + 90 * np.minimum(age - 18, 25)) * rng.lognormal(0, 0.3, n)
    pension = 1500 * rng.lognormal(0, 0.25, n)
    return np.column_stack([age, np.where(works, wage, pension)])


rng = np.random.default_rng(0)
rows = people(5000, rng)
fresh = people(20_000, rng)

# %%
# Before and after
# ----------------
# One record adds 1 to one cell, whatever their number, so that the noise on a count has a standard deviation of 1.4
# over epsilon, and delta may be 0. The two rows of pictures are two releases with epsilon 0.2: a grid of 24 by 24 bins,
# as one might like to have, and as many bins as the default takes.
#
# Most cells are empty, and half of the noisy ones are positive. Counts that noise may have made are therefore dropped,
# by a threshold that is known in advance, and the others scaled to the sum of all noisy counts: that is ``weights_``.
# ``sample`` draws rows from these, evenly within a bin. Nothing of it costs more than the release.

budget = BudgetAccountant(epsilon=0.4)
counts, axes = plt.subplots(2, 4, figsize=(9, 5), sharex=True, sharey=True, layout="constrained")
for line, n_bins in zip(axes, [24, None], strict=True):
    histogram = NoisyHistogram(epsilon=0.2, bounds=(LOW, HIGH), n_bins=n_bins, expected_n=5000, accountant=budget).fit(
        rows
    )
    edges = histogram.bin_edges_
    truth, *_ = np.histogram2d(*rows.clip(LOW, HIGH).T, bins=edges)
    for axis, values in zip(line, [truth, histogram.counts_, histogram.weights_], strict=False):
        image = axis.pcolormesh(*edges, values.T, cmap="PuOr", vmin=-truth.max(), vmax=truth.max())
    counts.colorbar(image, ax=line, label="records", shrink=0.8)
    line[3].scatter(*histogram.sample(2000)[0].T, s=2, color="#2d004b", alpha=0.5, linewidths=0)
    line[0].set_ylabel(f"{len(edges[0]) - 1} by {len(edges[1]) - 1} bins\nincome a month")
    wrong = [np.abs(values - truth).sum() / 2 / len(rows) for values in (histogram.counts_, histogram.weights_)]
    print(f"{truth.size} cells: total variation {wrong[0]:.2f} with noise, {wrong[1]:.2f} after post-processing")
for axis, title in zip(axes[0], ["records", "with noise", "after processing", "2000 rows"], strict=True):
    axis.set_title(title, fontsize="medium")
for axis in axes[1]:
    axis.set_xlabel("age")
print(budget)

# %%
# With 24 bins a cell has one or two dozen records, where there are any, and the threshold drops what is thin: high
# incomes, and the fringe of the rest. Now and then an empty cell passes. With 8, the counts are right to a few in a
# hundred, and what is lost is what happens inside a bin.
#
# Many questions, one release
# ---------------------------
# Rows of the second histogram stand in for the records: scikit-learn is used on them as if there were no privacy,
# models are chosen by cross-validation and thrown away, and the budget stays as it is. Scores on synthetic rows say
# which model fits *them*; grey is the mean income of 20,000 other people, whom no fit has seen.
#
# At the right, ``HistogramRegressor`` does the same in one step: it releases the histogram, and fits a tree to the
# weighted cells. The marks are means of six fits, and those filled are what the default takes for bins.

synthetic, _ = histogram.sample(20_000)
X, y = synthetic[:, :1], synthetic[:, 1]
search = GridSearchCV(DecisionTreeRegressor(), {"min_samples_leaf": [10, 100, 1000, 5000]}).fit(X, y)
models = {
    "line": LinearRegression().fit(X, y),
    "polynomial": make_pipeline(StandardScaler(), PolynomialFeatures(5), LinearRegression()).fit(X, y),
    f"tree, leaves of {search.best_params_['min_samples_leaf']}": search,
}

N_BINS = [4, 8, 16, 32, 64]
band = np.digitize(fresh[:, 0], np.arange(18, 91, 2)) - 1
grid = np.linspace(18, 90, 289)[:, None]


def score(epsilon, n_bins):
    """Mean R² of six private trees on people whom they have not seen, and the number of bins."""
    model = HistogramRegressor(
        DecisionTreeRegressor(min_weight_fraction_leaf=0.02),
        epsilon=epsilon,
        bounds=(LOW[0], HIGH[0]),
        bounds_y=(LOW[1], HIGH[1]),
        n_bins=n_bins,
        expected_n=5000,
    )
    found = [model.fit(rows[:, :1], rows[:, 1]).score(fresh[:, :1], fresh[:, 1]) for _ in range(6)]
    return len(model.bin_edges_[0]) - 1, np.mean(found)


answers, (left, right) = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
means = np.bincount(band, fresh[:, 1]) / np.bincount(band)
left.plot(19 + 2 * np.arange(len(means)), means, color="0.7", linewidth=5, label="people")
for (name, model), style in zip(models.items(), ["C1--", "C2-.", "C0-"], strict=True):
    left.plot(grid, model.predict(grid), style, label=name)
    found = model.score(X, y), model.score(fresh[:, :1], fresh[:, 1])
    print(f"{name:<22} R² on synthetic rows {found[0]:.2f}, on people {found[1]:.2f}")
left.set(xlabel="age", ylabel="income a month", ylim=(0, 5000), title="Three models of one release, epsilon 0.2")
left.legend(fontsize=9)
for epsilon, colour, marker, line in [(0.1, "C1", "^", "--"), (1.0, "C0", "o", "-"), (math.inf, "k", "s", ":")]:
    found = np.array([score(epsilon, n_bins)[1] for n_bins in N_BINS])
    name = "no noise" if epsilon == math.inf else f"epsilon {epsilon:g}"
    right.plot(N_BINS, found, line, color=colour, marker=marker, fillstyle="none", label=name)
    right.plot(*score(epsilon, None), color=colour, marker=marker, markersize=9)
    print(f"{name:<12}", *(f"{n_bins}: {value:.2f}" for n_bins, value in zip(N_BINS, found, strict=True)), sep="  ")
right.set(xscale="log", xlabel="bins of each column", ylabel="R²", ylim=(0, 0.5), title="HistogramRegressor, a tree")
right.set_xticks(N_BINS, [f"{n_bins}" for n_bins in N_BINS])
right.legend(fontsize=9, loc="lower left")
right.minorticks_off()

# %%
# The line has nothing to say of a hump, and scores on synthetic rows tell so for nothing. Between the other two they
# are not to be relied on: they prefer the tree, whose steps are those of the grid, and on people the polynomial is no
# worse.
#
# Few bins are too coarse for anything; with many, a cell has more noise than records (at 0.1, that falls out of the
# picture). That is why the rule takes fewer bins for less budget. It is seldom the best number for a given model, and
# takes nothing but public numbers.
#
# To take along: with two or three columns, this is one release for all questions that are still to come. With ten it is
# useless, for the cells are a product. What has few records is forgotten, so do not say of synthetic rows that
# something does not occur; and standard errors of models of such rows know nothing of the noise. :ref:`histograms` has
# the rule and more figures; :class:`~skdp.synthetic.NoisyHistogram`, :class:`~skdp.synthetic.HistogramClassifier` and
# :class:`~skdp.synthetic.HistogramRegressor` have all parameters.

plt.show()

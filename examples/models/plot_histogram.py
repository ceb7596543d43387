"""
Noisy histograms and synthetic rows
===================================

A noisy histogram of two or three columns is one release that answers many questions. This example releases the counts
of a public grid, draws synthetic rows from them, and fits models to these rows. It also shows how many bins to use.
"""

# %%
# Age and income
# --------------
# The records are simulated: the age and the monthly income of 5,000 people. The bounds are those of the form: 18 to 90
# years, and incomes up to 8,000. The form has a box "more", which is the last bin. The survey publishes its number of
# people. Therefore ``expected_n`` may state this number, which determines the default number of bins.

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
    """Draw ages and incomes: wages mostly until 65, pensions later."""
    age = rng.triangular(18, 35, 90, n)
    works = rng.uniform(size=n) < 1 / (1 + np.exp((age - 65) / 1.5))
    wage = (1200 + 90 * np.minimum(age - 18, 25)) * rng.lognormal(0, 0.3, n)
    pension = 1500 * rng.lognormal(0, 0.25, n)
    return np.column_stack([age, np.where(works, wage, pension)])


rng = np.random.default_rng(0)
rows = people(5000, rng)
fresh = people(20_000, rng)

# %%
# Counts before and after the noise
# ---------------------------------
# One record adds 1 to one cell. Therefore the noise of each count has a standard deviation of 1.4 over epsilon, for any
# number of cells, and delta may be 0. The two rows of pictures are two releases with epsilon 0.2: a grid of 24 by 24
# bins, and the default number of bins.
#
# Most cells are empty, but about half of the noisy counts are positive. Post-processing drops all counts below a
# threshold that is known in advance. It scales the other counts to the sum of all noisy counts, and stores them in
# ``weights_``. ``sample`` draws rows from the cells in proportion to these weights, evenly within a bin. This is
# post-processing, and uses nothing more of the budget.

budget = BudgetAccountant(epsilon=0.4)


def plot_histogram(axes, histogram):
    """Plot true counts, noisy counts, weights and synthetic rows."""
    edges = histogram.bin_edges_
    true_counts, *_ = np.histogram2d(*rows.clip(LOW, HIGH).T, bins=edges)
    limit = true_counts.max()
    tables = [true_counts, histogram.counts_, histogram.weights_]
    for axis, table in zip(axes, tables, strict=False):
        axis.pcolormesh(*edges, table.T, cmap="PuOr", vmin=-limit, vmax=limit)
    axes[3].scatter(*histogram.sample(2000)[0].T, s=2, color="#2d004b")
    axes[0].set_ylabel(f"{len(edges[0]) - 1} bins\nincome a month")
    for name, table in zip(["noise", "processing"], tables[1:], strict=True):
        distance = np.abs(table - true_counts).sum() / 2 / len(rows)
        print(
            f"{table.size} cells, total variation with {name} {distance:.2f}"
        )


figure, axes = plt.subplots(
    2, 4, figsize=(9, 5), sharex=True, sharey=True, layout="constrained"
)
for row, n_bins in zip(axes, [24, None], strict=True):
    histogram = NoisyHistogram(
        epsilon=0.2,
        bounds=(LOW, HIGH),
        n_bins=n_bins,
        expected_n=5000,
        accountant=budget,
    ).fit(rows)
    plot_histogram(row, histogram)
titles = ["records", "with noise", "after processing", "2000 rows"]
for axis, title in zip(axes[0], titles, strict=True):
    axis.set_title(title, fontsize="medium")
for axis in axes[1]:
    axis.set_xlabel("age")
print(budget)

# %%
# With 24 bins, an occupied cell has one or two dozen records. The threshold drops sparse cells, such as those with high
# incomes. Sometimes an empty cell passes the threshold. With 8 bins, the counts are right to within a few per cent, but
# details within a bin are lost.
#
# One release for many questions
# ------------------------------
# The rows of the second histogram now replace the records. Any scikit-learn model can be fitted to them, and
# cross-validation can choose among models, without a further charge. A score on synthetic rows measures the fit to
# *these* rows. The grey line is the mean income of 20,000 other people.
#
# In the right panel, ``HistogramRegressor`` does the same in one step. It releases the histogram, and fits a tree to
# the weighted cells. Marks are means of six fits. The larger filled marks show the default number of bins.

synthetic, _ = histogram.sample(20_000)
X, y = synthetic[:, :1], synthetic[:, 1]
search = GridSearchCV(
    DecisionTreeRegressor(), {"min_samples_leaf": [10, 100, 1000, 5000]}
).fit(X, y)
models = {
    "line": LinearRegression().fit(X, y),
    "polynomial": make_pipeline(
        StandardScaler(), PolynomialFeatures(5), LinearRegression()
    ).fit(X, y),
    f"tree, leaves of {search.best_params_['min_samples_leaf']}": search,
}

N_BINS = [4, 8, 16, 32, 64]
band = np.digitize(fresh[:, 0], np.arange(18, 91, 2)) - 1
grid = np.linspace(18, 90, 289)[:, None]


def score(epsilon, n_bins):
    """Return the number of bins, and the mean R² of six private trees."""
    model = HistogramRegressor(
        DecisionTreeRegressor(min_weight_fraction_leaf=0.02),
        epsilon=epsilon,
        bounds=(LOW[0], HIGH[0]),
        bounds_y=(LOW[1], HIGH[1]),
        n_bins=n_bins,
        expected_n=5000,
    )
    scores = [
        model.fit(rows[:, :1], rows[:, 1]).score(fresh[:, :1], fresh[:, 1])
        for _ in range(6)
    ]
    return len(model.bin_edges_[0]) - 1, np.mean(scores)


answers, (left, right) = plt.subplots(
    1, 2, figsize=(9, 4.4), layout="constrained"
)
means = np.bincount(band, fresh[:, 1]) / np.bincount(band)
left.plot(
    19 + 2 * np.arange(len(means)),
    means,
    color="0.7",
    linewidth=5,
    label="mean of other people",
)
for (name, model), style in zip(
    models.items(), ["C1--", "C2-.", "C0-"], strict=True
):
    left.plot(grid, model.predict(grid), style, label=name)
    scores = model.score(X, y), model.score(fresh[:, :1], fresh[:, 1])
    print(
        f"{name:<22} R² on synthetic rows {scores[0]:.2f}, "
        f"on people {scores[1]:.2f}"
    )
left.set(
    xlabel="age",
    ylabel="income a month",
    ylim=(0, 5000),
    title="Three models from one release, epsilon 0.2",
)
left.legend(fontsize=9)
for epsilon, colour, marker, line in [
    (0.1, "C1", "^", "--"),
    (1.0, "C0", "o", "-"),
    (math.inf, "k", "s", ":"),
]:
    scores = np.array([score(epsilon, n_bins)[1] for n_bins in N_BINS])
    name = "no noise" if epsilon == math.inf else f"epsilon {epsilon:g}"
    right.plot(
        N_BINS,
        scores,
        line,
        color=colour,
        marker=marker,
        fillstyle="none",
        label=name,
    )
    chosen = "default number of bins" if epsilon == math.inf else None
    right.plot(
        *score(epsilon, None),
        color=colour,
        marker=marker,
        markersize=9,
        linestyle="none",
        label=chosen,
    )
    print(
        f"{name:<12}",
        *(
            f"{n_bins}: {value:.2f}"
            for n_bins, value in zip(N_BINS, scores, strict=True)
        ),
        sep="  ",
    )
right.set(
    xscale="log",
    xlabel="bins for each column",
    ylabel="R²",
    ylim=(0, 0.5),
    title="HistogramRegressor, a tree",
)
right.set_xticks(N_BINS, [f"{n_bins}" for n_bins in N_BINS])
right.legend(fontsize=9, loc="lower left")
right.minorticks_off()

# %%
# The straight line cannot follow the incomes, and its score on synthetic rows shows this without a charge. These scores
# cannot decide between the other two models. They prefer the tree, because its steps equal those of the grid, but on
# the 20,000 other people the polynomial is as accurate.
#
# Few bins are too coarse for a model. With many bins, the noise of a cell exceeds its count (at epsilon 0.1, some R²
# are below the axis). Therefore the default takes fewer bins for a smaller budget. It uses only public numbers, and is
# seldom the best number for a given model.
#
# Summary
# -------
# With two or three columns, a histogram answers all later questions with one release. With ten columns it is useless,
# because the number of cells is a product. The threshold removes small groups. Therefore synthetic rows do not show
# that something never occurs. Standard errors from synthetic rows do not include the noise. :ref:`histograms` has the
# rule for the bins and more figures. :class:`~skdp.synthetic.NoisyHistogram`,
# :class:`~skdp.synthetic.HistogramClassifier` and :class:`~skdp.synthetic.HistogramRegressor` describe all parameters.

plt.show()

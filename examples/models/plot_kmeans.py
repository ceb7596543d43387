"""
Private k-means: where to put six stations
==========================================

The origin of an emergency call is private, but the places of the stations are published. This example compares private
cluster centres with those of ``KMeans`` without privacy. It shows that the smallest cluster loses its centre first, and
measures how many calls are needed.
"""

# %%
# Calls from a town
# -----------------
# The records are simulated: one call for each person, from a town of 10 by 10 km with six quarters. The bounds are the
# limits of the town, which are on every map. The budget pays for six stations. Therefore the number of clusters is
# public, too. Do not choose it by looking at private records. Both coordinates are in kilometres. If columns have
# different units, scale them first by public numbers.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin_min

from skdp import DPKMeans, SampleAggKMeans

QUARTERS = np.array(
    [[2, 2], [2.5, 7.5], [5, 5], [8, 8.3], [7.5, 2.5], [8.7, 5]]
)
SHARES = np.array([0.3, 0.2, 0.2, 0.1, 0.15, 0.05])
SPREADS = np.array([0.6, 0.7, 0.5, 0.4, 0.6, 0.3])


def calls(n, rng):
    """Draw the places of calls, in km."""
    quarter = rng.choice(len(SHARES), n, p=SHARES)
    return np.clip(
        QUARTERS[quarter] + SPREADS[quarter, None] * rng.normal(size=(n, 2)),
        0,
        10,
    )


rng = np.random.default_rng(0)
X = calls(3000, rng)
fresh = calls(10_000, rng)


def mean_distance(centres):
    """Return the mean distance of calls from the nearest centre, in km."""
    return pairwise_distances_argmin_min(fresh, centres)[1].mean()


def stations(model, epsilon, X):
    """Fit six private centres."""
    return (
        model(6, epsilon=epsilon, delta=1e-6, bounds=(0, 10))
        .fit(X)
        .cluster_centers_
    )


# %%
# Eight fits on a map
# -------------------
# ``DPKMeans`` releases a few dozen weighted points that represent the calls, and runs k-means on these points from many
# starts. ``SampleAggKMeans`` runs scikit-learn's k-means on blocks of the calls. It matches the centres of the blocks
# to the centres of a ``DPKMeans``, which uses half of the budget, and averages them. Each panel shows the centres of
# eight fits. The titles show the mean distance of fresh calls from the nearest station, for the best and the worst fit.
# Fresh calls are simulated, too. With real calls, these distances are not private. Each fit has its own epsilon, and a
# delta of 1e-6.

MODELS = {DPKMeans: ("C0", "o"), SampleAggKMeans: ("C1", "s")}
without = KMeans(6, n_init=10).fit(X).cluster_centers_
print(
    "without privacy, a call is "
    f"{mean_distance(without):.2f} km from the nearest station"
)
maps, axes = plt.subplots(
    2, 3, figsize=(9, 6.2), sharex=True, sharey=True, layout="constrained"
)
for row, (model, (colour, marker)) in zip(axes, MODELS.items(), strict=True):
    row[0].set_ylabel(f"{model.__name__}\nnorth, km")
    for axis, epsilon in zip(row, [1.0, 0.3, 0.1], strict=True):
        centres = [stations(model, epsilon, X) for _ in range(8)]
        distances = sorted(mean_distance(found) for found in centres)
        axis.scatter(*X.T, s=2, color="0.8", linewidths=0, label="call")
        axis.scatter(
            *np.concatenate(centres).T,
            s=20,
            color=colour,
            marker=marker,
            alpha=0.6,
            linewidths=0,
            label=model.__name__,
        )
        axis.scatter(
            *without.T,
            s=45,
            color="k",
            marker="x",
            zorder=3,
            label="KMeans without privacy",
        )
        axis.set(xlim=(0, 10), ylim=(0, 10), aspect="equal")
        axis.set_title(
            f"epsilon {epsilon:g}: "
            f"{distances[0]:.2f} to {distances[-1]:.2f} km",
            fontsize="medium",
        )
        print(
            f"{model.__name__:<15} epsilon {epsilon:>3g}: "
            f"{distances[0]:.2f} to {distances[-1]:.2f} km"
        )
for axis in axes[1]:
    axis.set_xlabel("east, km")
marks = {
    label: mark
    for axis in axes[:, 0]
    for mark, label in zip(*axis.get_legend_handles_labels(), strict=True)
}
maps.legend(marks.values(), marks, loc="outside lower center", ncols=4)

# %%
# At epsilon 1, nearly all stations are in the right places. At epsilon 0.3, the large quarters still have theirs. At
# epsilon 0.1, the centres are useless. ``SampleAggKMeans`` is not more accurate, because only half of its budget finds
# the quarters. Its purpose is a different one: it takes any algorithm that finds centres as its ``estimator``.
#
# Loss of small quarters
# ----------------------
# A mean distance hides differences between quarters. The table shows in how many of 20 fits each quarter has a station
# nearby. The quarters are ordered by their share of the calls.

print(
    "share of the calls     ",
    *(f"{share:6.0%}" for share in sorted(SHARES, reverse=True)),
)
for epsilon in [1.0, 0.3, 0.1]:
    within = np.zeros(len(SHARES))
    for _ in range(20):
        distances = np.linalg.norm(
            QUARTERS[:, None] - stations(DPKMeans, epsilon, X), axis=2
        ).min(axis=1)
        within += distances < SPREADS
    print(
        f"DPKMeans, epsilon {epsilon:>3g}",
        *(f"{fits:6.0f}" for fits in within[np.argsort(-SHARES)]),
    )

# %%
# A quarter with fewer calls loses its station at a larger epsilon. The place of a station is a noisy mean of the calls
# in its quarter, and a small quarter may not be found at all.
#
# Number of calls
# ---------------
# The next figure shows the mean distance of fresh calls from the nearest station, against the number of calls in the
# fit. Marks are means of ten fits, each to new calls, and the bands contain all ten.

SIZES = np.array([300, 1000, 3000, 10_000, 30_000])
CURVES = {
    "DPKMeans, epsilon 0.1": (
        SIZES,
        "o:",
        "C0",
        lambda rows: stations(DPKMeans, 0.1, rows),
    ),
    "SampleAggKMeans, epsilon 1": (
        SIZES[:3],
        "s--",
        "C1",
        lambda rows: stations(SampleAggKMeans, 1.0, rows),
    ),
    "DPKMeans, epsilon 1": (
        SIZES,
        "o-",
        "C0",
        lambda rows: stations(DPKMeans, 1.0, rows),
    ),
    "KMeans, no privacy": (
        SIZES,
        "x-",
        "k",
        lambda rows: KMeans(6, n_init=10).fit(rows).cluster_centers_,
    ),
}

growth, axis = plt.subplots(figsize=(8, 4.6), layout="constrained")
for name, (sizes, style, colour, fit) in CURVES.items():
    found = np.array(
        [[mean_distance(fit(calls(n, rng))) for _ in range(10)] for n in sizes]
    )
    axis.plot(sizes, found.mean(axis=1), style, color=colour, label=name)
    axis.fill_between(
        sizes,
        *np.quantile(found, [0, 1], axis=1),
        color=colour,
        alpha=0.12,
        linewidth=0,
    )
    print(
        f"{name:<27}",
        *(
            f"{n}: {mean:.2f}"
            for n, mean in zip(sizes, found.mean(axis=1), strict=True)
        ),
        sep="  ",
    )
axis.set(
    xscale="log",
    yscale="log",
    xlabel="calls",
    ylabel="distance from the nearest station, km",
)
axis.set_xticks(SIZES, [f"{n:,}" for n in SIZES])
axis.set_yticks([0.7, 1, 2, 4], ["0.7", "1", "2", "4"])
axis.legend(fontsize=9)
axis.minorticks_off()
axis.grid(axis="y", color="0.92")

# %%
# With ten times the calls, a tenth of the epsilon is enough: 30,000 calls at epsilon 0.1 are about as good as 3,000
# calls at epsilon 1, and as ``KMeans`` itself. (The curve of ``SampleAggKMeans`` ends early because the fits are slow.)
#
# Summary
# -------
# Multiply the number of records in the smallest cluster by epsilon. Here, a product of 300 was enough to find a
# quarter, a product of 100 in about half of the fits, and a product of 50 almost never. If the product is too small,
# ask for fewer clusters. The centres are public. The cluster of a private record is private, so that ``predict`` is for
# people who may see the records. :ref:`kmeans` has the proofs and comparisons. :class:`~skdp.cluster.DPKMeans` and
# :class:`~skdp.cluster.SampleAggKMeans` describe all parameters.

plt.show()

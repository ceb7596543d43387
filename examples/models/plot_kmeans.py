"""
Where to put six stations: private k-means on a map
===================================================

Where people call for help from is nobody's business, but where the stations should stand has to be published. Here we
learn how far private centres are from those without privacy, that the smallest quarter loses its station first, and how
many calls it takes until nobody notices the noise.
"""

# %%
# Calls from a town
# -----------------
# The records are simulated: one call for each person, from a town of 10 by 10 km with six quarters. The bounds are the
# limits of the town, which are on every map. That there is money for six stations is known, too: the number of clusters
# must not be chosen by looking at the calls. Both coordinates are in kilometres; where units differ, scale first, by
# public numbers.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin_min

from skdp import DPKMeans, SampleAggKMeans

QUARTERS = np.array([[2, 2], [2.5, 7.5], [5, 5], [8, 8.3], [7.5, 2.5], [8.7, 5]])
SHARES = np.array([0.3, 0.2, 0.2, 0.1, 0.15, 0.05])
SPREADS = np.array([0.6, 0.7, 0.5, 0.4, 0.6, 0.3])


def calls(n, rng):
    """Draw where calls come from, in km."""
    quarter = rng.choice(len(SHARES), n, p=SHARES)
    return np.clip(QUARTERS[quarter] + SPREADS[quarter, None] * rng.normal(size=(n, 2)), 0, 10)


rng = np.random.default_rng(0)
X = calls(3000, rng)
fresh = calls(10_000, rng)


def way(centres):
    """Mean distance of fresh calls to the nearest centre, in km."""
    return pairwise_distances_argmin_min(fresh, centres)[1].mean()


def stations(model, epsilon, X):
    """Fit six private centres."""
    return model(6, epsilon=epsilon, delta=1e-6, bounds=(0, 10)).fit(X).cluster_centers_


# %%
# Eight fits on a map
# -------------------
# ``DPKMeans`` releases a few dozen weighted points that stand for the calls, and runs k-means on these, from as many
# starts as it likes. ``SampleAggKMeans`` runs scikit-learn's k-means on blocks of the calls, and averages what they
# find around centres as of ``DPKMeans``, which take half of its budget. Each panel has the centres of eight fits.
# Crosses are those of ``KMeans`` without privacy. The titles say how far fresh calls are from the nearest station, on
# average, by the best and by the worst fit. Fresh calls are simulated, too; in earnest, the town would look at that
# without telling, and publish one fit: each has a delta of 1e-6, and spends its epsilon anew.

MODELS = {DPKMeans: ("C0", "o"), SampleAggKMeans: ("C1", "s")}
without = KMeans(6, n_init=10).fit(X).cluster_centers_
print(f"without privacy, a call is {way(without):.2f} km from the nearest station")
maps, axes = plt.subplots(2, 3, figsize=(9, 6.2), sharex=True, sharey=True, layout="constrained")
for row, (model, (colour, marker)) in zip(axes, MODELS.items(), strict=True):
    row[0].set_ylabel(f"{model.__name__}\nnorth, km")
    for axis, epsilon in zip(row, [1.0, 0.3, 0.1], strict=True):
        centres = [stations(model, epsilon, X) for _ in range(8)]
        ways = sorted(way(found) for found in centres)
        axis.scatter(*X.T, s=2, color="0.8", linewidths=0)
        axis.scatter(*np.concatenate(centres).T, s=20, color=colour, marker=marker, alpha=0.6, linewidths=0)
        axis.scatter(*without.T, s=45, color="k", marker="x", zorder=3)
        axis.set(xlim=(0, 10), ylim=(0, 10), aspect="equal")
        axis.set_title(f"epsilon {epsilon:g}: {ways[0]:.2f} to {ways[-1]:.2f} km", fontsize="medium")
        print(f"{model.__name__:<15}  epsilon {epsilon:>3g}: {ways[0]:.2f} to {ways[-1]:.2f} km")
for axis in axes[1]:
    axis.set_xlabel("east, km")

# %%
# At 1, stations stand where they should, or nearly. At 0.3 the large quarters have theirs still, and at 0.1 there is no
# point in publishing any. ``SampleAggKMeans`` does no better, since only half of its budget finds the quarters. It is
# there for the sake of other algorithms that find centres, which it takes as its ``estimator``.
#
# Who loses first
# ---------------
# The mean hides who has the long way. In how many of 20 fits is there a station in each quarter, by its share of the
# calls?

print("share of the calls   ", *(f"{share:6.0%}" for share in sorted(SHARES, reverse=True)))
for epsilon in [1.0, 0.3, 0.1]:
    within = np.zeros(len(SHARES))
    for _ in range(20):
        ways = np.linalg.norm(QUARTERS[:, None] - stations(DPKMeans, epsilon, X), axis=2).min(axis=1)
        within += ways < SPREADS
    print(f"DPKMeans, epsilon {epsilon:>3g}", *(f"{fits:6.0f}" for fits in within[np.argsort(-SHARES)]))

# %%
# The fewer the calls, the sooner a quarter is without a station. A station among 150 calls is what 150 people say, plus
# noise; and before that, the quarter has to be found at all.
#
# More calls
# ----------
# The way from fresh calls to the nearest station, against the number of calls that were fitted to. Marks are means of
# ten fits, each to calls of its own, and the bands hold all ten.

SIZES = np.array([300, 1000, 3000, 10_000, 30_000])
CURVES = {
    "DPKMeans, epsilon 0.1": (SIZES, "o:", "C0", lambda rows: stations(DPKMeans, 0.1, rows)),
    "SampleAggKMeans, epsilon 1": (SIZES[:3], "s--", "C1", lambda rows: stations(SampleAggKMeans, 1.0, rows)),
    "DPKMeans, epsilon 1": (SIZES, "o-", "C0", lambda rows: stations(DPKMeans, 1.0, rows)),
    "KMeans, no privacy": (SIZES, "x-", "k", lambda rows: KMeans(6, n_init=10).fit(rows).cluster_centers_),
}

growth, axis = plt.subplots(figsize=(8, 4.6), layout="constrained")
for name, (sizes, style, colour, fit) in CURVES.items():
    found = np.array([[way(fit(calls(n, rng))) for _ in range(10)] for n in sizes])
    axis.plot(sizes, found.mean(axis=1), style, color=colour, label=name)
    axis.fill_between(sizes, *np.quantile(found, [0, 1], axis=1), color=colour, alpha=0.12, linewidth=0)
    print(f"{name:<27}", *(f"{n}: {mean:.2f}" for n, mean in zip(sizes, found.mean(axis=1), strict=True)), sep="  ")
axis.set(xscale="log", yscale="log", xlabel="calls", ylabel="way to the nearest station, km")
axis.set_xticks(SIZES, [f"{n:,}" for n in SIZES])
axis.set_yticks([0.7, 1, 2, 4], ["0.7", "1", "2", "4"])
axis.legend(fontsize=9)
axis.minorticks_off()
axis.grid(axis="y", color="0.92")

# %%
# With ten times the calls, a tenth of the epsilon does as well: 30,000 at 0.1 are about as good as 3000 at 1, and as
# ``KMeans`` itself. (The curve of ``SampleAggKMeans`` ends early because it is slow.)
#
# To take along: multiply the number of records of the smallest cluster by epsilon. Here, a quarter with 300 is found,
# one with 100 in about half of the fits, and one with 50 hardly ever. Where that is too few, ask for fewer clusters.
# The centres are public. Which of them a caller belongs to is not, and ``predict`` is for whoever may see the calls.
# :ref:`kmeans` has the proofs and comparisons, :class:`~skdp.cluster.DPKMeans` and
# :class:`~skdp.cluster.SampleAggKMeans` all parameters.

plt.show()

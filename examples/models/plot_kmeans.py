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


def simulate_calls(n, rng):
    """Draw the places of calls, in km."""
    quarter = rng.choice(len(SHARES), n, p=SHARES)
    places = QUARTERS[quarter] + SPREADS[quarter, None] * rng.normal(
        size=(n, 2)
    )
    return np.clip(places, 0, 10)


rng = np.random.default_rng(0)
X = simulate_calls(3000, rng)
fresh = simulate_calls(10_000, rng)


def mean_distance(centres):
    """Return the mean distance of calls from the nearest centre, in km."""
    return pairwise_distances_argmin_min(fresh, centres)[1].mean()


def private_centres(model, epsilon, X):
    """Fit six private centres."""
    model = model(6, bounds=(0, 10), epsilon=epsilon, delta=1e-6)
    return model.fit(X).cluster_centers_


def centres_without_privacy(X):
    """Fit six centres with scikit-learn."""
    return KMeans(6, n_init=10).fit(X).cluster_centers_


# %%
# Eight fits on a map
# -------------------
# ``DPKMeans`` releases a few dozen weighted points that represent the calls, and runs k-means on these points from many
# starts. ``SampleAggKMeans`` runs scikit-learn's k-means on blocks of the calls. It matches the centres of the blocks
# to the centres of a ``DPKMeans``, which uses half of the budget, and averages them. Each panel shows the centres of
# eight fits. The titles show the mean distance of fresh calls from the nearest station, for the best and the worst fit.
# Fresh calls are simulated, too. With real calls, these distances are not private. Each fit has its own epsilon, and a
# delta of 1e-6.

without = centres_without_privacy(X)
distance = mean_distance(without)
print(f"without privacy, a call is {distance:.2f} km from the nearest station")


def plot_map(axis, model, epsilon, n_fits=8):
    """Plot the calls, and the private centres of several fits."""
    fits = [private_centres(model, epsilon, X) for _ in range(n_fits)]
    axis.scatter(*X.T, s=2, color="0.8", label="call")
    centres = np.concatenate(fits).T
    axis.scatter(*centres, s=20, alpha=0.6, label="private centre")
    axis.scatter(*without.T, s=45, color="k", marker="x", label="KMeans")
    distances = [mean_distance(centres) for centres in fits]
    title = (
        f"epsilon {epsilon:g}: {min(distances):.2f} to {max(distances):.2f} km"
    )
    axis.set_title(title, fontsize="medium")
    axis.set(xlim=(0, 10), ylim=(0, 10), aspect="equal")
    print(f"{model.__name__}, {title}")


MODELS = [DPKMeans, SampleAggKMeans]
figure, axes = plt.subplots(
    2, 3, figsize=(9, 6.2), sharex=True, sharey=True, layout="constrained"
)
for row, model in zip(axes, MODELS, strict=True):
    row[0].set_ylabel(f"{model.__name__}\nnorth, km")
    for axis, epsilon in zip(row, [1.0, 0.3, 0.1], strict=True):
        plot_map(axis, model, epsilon)
for axis in axes[1]:
    axis.set_xlabel("east, km")
marks = axes[0, 0].get_legend_handles_labels()
figure.legend(*marks, loc="outside lower center", ncols=3)

# %%
# At epsilon 1, nearly all stations are in the right places. At epsilon 0.3, the large quarters still have theirs. At
# epsilon 0.1, the centres are useless. ``SampleAggKMeans`` is not more accurate, because only half of its budget finds
# the quarters. Its purpose is a different one: it takes any algorithm that finds centres as its ``estimator``.
#
# Loss of small quarters
# ----------------------
# A mean distance hides differences between quarters. The table shows in how many of 20 fits each quarter has a station
# nearby. The quarters are ordered by their share of the calls.


def has_station(epsilon):
    """Return for each quarter whether one fit has a station nearby."""
    centres = private_centres(DPKMeans, epsilon, X)
    distances = np.linalg.norm(QUARTERS[:, None] - centres, axis=2)
    return distances.min(axis=1) < SPREADS


order = np.argsort(-SHARES)
print("share of calls", *(f"{share:5.0%}" for share in SHARES[order]))
for epsilon in [1.0, 0.3, 0.1]:
    n_fits = sum(has_station(epsilon) for _ in range(20))
    print(f"epsilon {epsilon:<6}", *(f"{n:5.0f}" for n in n_fits[order]))

# %%
# A quarter with fewer calls loses its station at a larger epsilon. The place of a station is a noisy mean of the calls
# in its quarter, and a small quarter may not be found at all.
#
# Number of calls
# ---------------
# The next figure shows the mean distance of fresh calls from the nearest station, against the number of calls in the
# fit. Marks are means of ten fits, each to new calls, and the bands contain all ten.

SIZES = [300, 1000, 3000, 10_000, 30_000]
METHODS = {
    "DPKMeans, epsilon 0.1": lambda X: private_centres(DPKMeans, 0.1, X),
    "DPKMeans, epsilon 1": lambda X: private_centres(DPKMeans, 1.0, X),
    "SampleAggKMeans, epsilon 1": lambda X: private_centres(
        SampleAggKMeans, 1.0, X
    ),
    "KMeans, no privacy": centres_without_privacy,
}


def plot_distances(axis, name, fit, sizes, n_fits=10):
    """Plot the mean distance to a station against the number of calls."""
    distances = np.array(
        [
            [mean_distance(fit(simulate_calls(n, rng))) for _ in range(n_fits)]
            for n in sizes
        ]
    )
    means = distances.mean(axis=1)
    axis.plot(sizes, means, "o-", label=name)
    low, high = distances.min(axis=1), distances.max(axis=1)
    axis.fill_between(sizes, low, high, alpha=0.12)
    print(f"{name:<27}", *(f"{mean:.2f}" for mean in means))


figure, axis = plt.subplots(figsize=(8, 4.6), layout="constrained")
for name, fit in METHODS.items():
    is_slow = name.startswith("SampleAgg")
    plot_distances(axis, name, fit, SIZES[:3] if is_slow else SIZES)
axis.set(xscale="log", yscale="log", xlabel="calls")
axis.set_ylabel("distance from the nearest station, km")
axis.set_xticks(SIZES, [f"{n:,}" for n in SIZES])
axis.set_yticks([0.7, 1, 2, 4], ["0.7", "1", "2", "4"])
axis.legend(fontsize=9)
axis.minorticks_off()

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

"""
A map of accidents that names no accident
=========================================

Where do things happen? A histogram over a map answers that, and with noise in each cell it can be published: once, and
for all questions that anybody will ask of it. Here are the exact counts, the noisy ones, what is left when that is
removed which noise alone may have made, and rows drawn from it, which look like data and belong to nobody.
"""

# %%
# Accidents
# ---------
# They are simulated: along a main road, around a station, and anywhere. The town is ten kilometres wide, which is on
# every map.

import sys

import matplotlib

if not hasattr(sys, "ps1"):
    matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from skdp import NoisyHistogram

TOWN = (0.0, 10.0)
N_BINS = 40


def accidents(n, rng):
    """Draw places, in kilometres."""
    along = rng.uniform(*TOWN, size=n)
    road = np.column_stack([along, 2 + 0.6 * along + rng.normal(0, 0.15, size=n)])
    station = rng.normal([7, 3], 0.5, size=(n, 2))
    anywhere = rng.uniform(*TOWN, size=(n, 2))
    kind = rng.uniform(size=(n, 1))
    return np.clip(np.where(kind < 0.5, road, np.where(kind < 0.8, station, anywhere)), *TOWN)


places = accidents(6000, np.random.default_rng(0))

# %%
# Four maps
# ---------
# An accident is in one cell, so that it changes one count by one: the noise in each cell has the scale of 1 over
# epsilon, however many cells there are. A count that is published may be negative; ``weights_`` has what is left when
# the noise that empty cells must have, by its law, is taken away. The law is public, and so this costs nothing.

histogram = NoisyHistogram(bounds=TOWN, n_bins=N_BINS, epsilon=0.5).fit(places)
edges = histogram.bin_edges_[0]
exact = np.histogram2d(*places.T, bins=[edges, edges])[0]
drawn = histogram.sample(len(places), random_state=0)[0]
maps = {
    "exact (never published)": exact,
    "released, epsilon = 0.5": histogram.counts_,
    "without what may be noise": histogram.weights_,
    "6,000 synthetic rows": np.histogram2d(*drawn.T, bins=[edges, edges])[0],
}

fig, axes = plt.subplots(2, 2, figsize=(8, 7.2), sharex=True, sharey=True, layout="constrained")
for ax, (title, counts) in zip(axes.flat, maps.items(), strict=True):
    mesh = ax.pcolormesh(edges, edges, counts.T, cmap="viridis", vmin=0, vmax=exact.max())
    ax.set(title=title, aspect="equal")
fig.supxlabel("kilometres from the west")
fig.supylabel("kilometres from the south")
_ = fig.colorbar(mesh, ax=axes, label="accidents in a cell", shrink=0.8)

# %%
# Road and station are there. What is spread thinly is lost: a fifth of the accidents happened anywhere, about one to a
# cell, and the noise is larger than that.
#
# How fine may the map be?
# ------------------------
# Finer cells show more and hold less, while the noise in each stays what it was. What is best depends on the budget.
# The error here is that of the synthetic map against the town's true density: how much of the one would have to be
# moved to make the other (the total variation, on the finest grid). A density is known since the town is simulated;
# for records of your own, try this with a simulation that resembles them. ``n_bins=None`` chooses by public numbers.

FINEST = 80
truth = np.histogram2d(*accidents(1_000_000, np.random.default_rng(1)).T, bins=FINEST, range=[TOWN, TOWN])[0]
truth /= truth.sum()
BINS = [5, 10, 20, 40, 80]


def moved(n_bins, epsilon):
    """Fit, and measure how much of the density is in the wrong place."""
    weights = NoisyHistogram(bounds=TOWN, n_bins=n_bins, epsilon=epsilon).fit(places).weights_
    times = FINEST // n_bins
    fine = np.kron(weights / weights.sum(), np.ones((times, times)) / times**2)
    return np.abs(fine - truth).sum() / 2


fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for color, epsilon in zip(["C3", "C1", "C0", "0.4"], [0.05, 0.2, 1.0, np.inf], strict=True):
    errors = [np.mean([moved(n_bins, epsilon) for _ in range(5)]) for n_bins in BINS]
    label = f"epsilon = {epsilon:g}" if epsilon < np.inf else "without noise"
    ax.plot(BINS, errors, color=color, marker="o", label=label)
ax.set(xscale="log", xlabel="cells on each side", ylabel="share in the wrong place", ylim=(0, None))
ax.set_xticks(BINS, BINS)
ax.minorticks_off()
_ = ax.legend()

# %%
# What to take along
# ------------------
# With two or three columns, release a histogram and be done: every further question is free. With more, cells are
# empty, and a model of the columns that matter is better. :class:`~skdp.synthetic.HistogramClassifier` and
# :class:`~skdp.synthetic.HistogramRegressor` fit any scikit-learn model to such cells; see
# :doc:`/user_guide/histograms`. Persons with several accidents need ``rows_per_group``.

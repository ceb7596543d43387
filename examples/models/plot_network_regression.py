"""
A surface that no plane fits
============================

A network with privacy pays for every weight with noise, and so it has to be worth it. Here is a function of two columns
that a linear model cannot follow, the surface that :class:`~skdp.neural_network.DPMLPRegressor` makes of it at three
budgets, and what it gains from more records.
"""

# %%
# Prices
# ------
# Simulated: the price of a flat by how near it is to one of two stations. The town's size is public, and so is the
# range of prices that the form admits: from 0 to 10. Coordinates are divided by the town's size, so that no row is
# longer than the root of 2: that is the ``data_norm``.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import r2_score

from skdp import DPMLPRegressor, DPSGDRegressor

PRICES = (0, 10)
rng = np.random.default_rng(0)


def expected(places):
    """Give the price that is asked on average."""
    near = [np.exp(-4 * ((places - station) ** 2).sum(axis=1)) for station in ([-0.5, -0.4], [0.5, 0.5])]
    return 2 + 6 * np.maximum(*near)


def flats(n):
    """Draw places and prices."""
    places = rng.uniform(-1, 1, (n, 2))
    return places, np.clip(expected(places) + rng.normal(0, 0.7, n), *PRICES)


def network(epsilon):
    """Make a private network, with what is public about the flats."""
    return DPMLPRegressor(epsilon=epsilon, delta=1e-6, data_norm=2**0.5, bounds_y=PRICES)


def plane(epsilon):
    """Make a private linear model."""
    return DPSGDRegressor(epsilon=epsilon, delta=1e-6, data_norm=2**0.5, bounds_y=PRICES)


# %%
# The surface
# -----------
# Ten thousand flats, and a network for each budget. Every one is a release: whoever publishes all three adds them up.

X, y = flats(10_000)
axis = np.linspace(-1, 1, 60)
grid = np.column_stack([each.ravel() for each in np.meshgrid(axis, axis)])
surfaces = {"what is asked on average": expected(grid)}
for epsilon in (0.3, 1.0, 3.0):
    surfaces[f"network, epsilon = {epsilon:g}"] = network(epsilon).fit(X, y).predict(grid)

maps, axes = plt.subplots(2, 2, figsize=(7.5, 6.6), sharex=True, sharey=True, layout="constrained")
for ax, (title, values) in zip(axes.flat, surfaces.items(), strict=True):
    mesh = ax.pcolormesh(axis, axis, values.reshape(60, 60), cmap="viridis", vmin=1, vmax=8, rasterized=True)
    ax.set(title=title, aspect="equal")
maps.supxlabel("east of the centre")
maps.supylabel("north of the centre")
_ = maps.colorbar(mesh, ax=axes, label="price", shrink=0.8)

# %%
# How many records
# ----------------
# The R² on 5,000 further flats, which are simulated and nobody's: means over three fits at epsilon 1.

X_test, y_test = flats(5000)
SIZES = [500, 2000, 8000]
scores = {"network": [], "plane": []}
for n in SIZES:
    rows, prices = flats(n)
    for name, make in (("network", network), ("plane", plane)):
        fits = [r2_score(y_test, make(1.0).fit(rows, prices).predict(X_test)) for _ in range(3)]
        scores[name].append(np.mean(fits))

curve, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
for name, marker in (("network", "o"), ("plane", "s")):
    ax.plot(SIZES, scores[name], marker=marker, label=name)
ax.axhline(r2_score(y_test, expected(X_test)), color="0.5", ls=":", lw=1)
ax.set(xscale="log", xlabel="records", ylabel="R² at epsilon 1", title="dotted: the average price itself")
ax.set_xticks(SIZES, [f"{n:,}" for n in SIZES])
ax.minorticks_off()
_ = ax.legend()

# %%
# To take away: no number of records makes a plane of this, while the network finds the two stations, blurred where
# there are few records or little epsilon. On most tables a linear model misses less than it does here. Whether it
# does, ask on simulated or public rows of the same kind, not on these. See :ref:`neural_network`.

plt.show()

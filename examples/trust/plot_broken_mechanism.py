"""
A broken mechanism, and how an audit catches it
===============================================

That a program says "epsilon 1" does not make it so. Half of the noise looks like noise, too. Here we learn how an audit
proves a claim wrong, how many runs that takes, and why an audit that finds nothing proves nothing.
"""

# %%
# A private sum, written by hand
# ------------------------------
# Numbers are clipped to [0, 1], added up, and get Laplace noise of scale 1 / epsilon: one record more changes the sum
# by 1 at most. The parameters break it in two ways that happen in earnest: a wrong scale, and a bound that is stated
# and not enforced.
#
# (Even the right one is for teaching only. Its noise is a floating-point number, whose last bits give something away;
# the mechanisms of this library have none of that.)

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator

from skdp.audit import audit_epsilon


class NoisySum(BaseEstimator):
    """A sum with Laplace noise, which is right unless it is broken."""

    def __init__(self, epsilon=1.0, noise=1.0, clip=True, random_state=None):
        self.epsilon = epsilon
        self.noise = noise
        self.clip = clip
        self.random_state = random_state

    def fit(self, X, y=None):
        """Release the sum."""
        rng = np.random.default_rng(self.random_state)
        values = np.clip(X, 0, 1) if self.clip else X
        self.sum_ = values.sum() + rng.laplace(scale=self.noise / self.epsilon)
        return self


# %%
# Two data sets that differ by one record
# ---------------------------------------
# An audit needs a pair of neighbours, and a good one has an added record that counts as much as a record can. For the
# estimator that does not clip, this is a record beyond the bound. It is audited with a record at the bound as well.

base = np.full((10, 1), 0.5)
within = np.vstack([base, [[1.0]]])
beyond = np.vstack([base, [[3.0]]])

CASES = [
    ("right", NoisySum(), within, "C0", "o-"),
    ("half of the noise", NoisySum(noise=0.5), within, "C3", "s-"),
    ("no clipping, record of 3", NoisySum(clip=False), beyond, "C1", "D-"),
    ("no clipping, record of 1", NoisySum(clip=False), within, "C4", "^:"),
]

# %%
# A bound on epsilon
# ------------------
# ``audit_epsilon`` fits to both, many times. Some of the runs choose an event, such as a sum above 6. The others count
# how often it happens with the record and without. Under epsilon-differential privacy, the two rates differ by a factor
# of :math:`e^\varepsilon` at most. If they differ by more, beyond what chance explains, the claim is wrong. A false
# alarm has a probability of one in a thousand for each audit, and ``error`` sets it.

for name, estimator, neighbour, *_ in CASES:
    found = audit_epsilon(estimator, (base,), (neighbour,), n_runs=1000, random_state=0)
    print(f"{name:<25}{found}")

# %%
# How many runs it takes
# ----------------------
# The bound rises with the number of runs, but for chance in the choice of the event. What it can rise to is the epsilon
# of the pair: 1 for the right one, 2 with half of the noise, 3 with a record of 3 that is not clipped. Up to 500 runs,
# three audits are averaged.

RUNS = [50, 100, 200, 500, 1000, 2000, 5000]
bound_figure, axis = plt.subplots(figsize=(8, 5), layout="constrained")
for k, (name, estimator, neighbour, colour, style) in enumerate(CASES):
    bounds = [
        [
            audit_epsilon(estimator, (base,), (neighbour,), n_runs=n, random_state=10 * k + seed).epsilon
            for seed in range(3 if n <= 500 else 1)
        ]
        for n in RUNS
    ]
    axis.plot(RUNS, [np.mean(row) for row in bounds], style, color=colour, label=name, markersize=5)
    missed = [n for n, row in zip(RUNS, bounds, strict=True) if min(row) <= estimator.epsilon]
    print(
        f"{name:<25}missed up to {missed[-1]} runs" + (", then caught" if missed[-1] < RUNS[-1] else ": never caught")
    )
axis.axhline(1, color="k", linestyle="--", linewidth=1)
axis.text(RUNS[0], 1.03, "claim", va="bottom")
axis.set(xscale="log", xlabel="runs on each data set", ylabel="lower bound on epsilon", title="What the audit proves")
axis.set_xticks(RUNS, [str(n) for n in RUNS])
axis.minorticks_off()
axis.set_ylim(0, 3.1)
axis.legend(loc="upper left", fontsize=9)

# %%
# What there is to see
# --------------------
# The released sums of the right one and of the one with half of the noise. No one can tell from a single release which
# of the two mechanisms it is. That the two curves of the second are further apart is all that the audit goes by.

grid = np.linspace(0, 11, 45)
sums_figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
for axis, (name, estimator, neighbour, *_) in zip(axes, CASES, strict=False):
    for data, label, colour in [(base, "without the record", "0.6"), (neighbour, "with it", "C4")]:
        sums = [estimator.set_params(random_state=seed).fit(data).sum_ for seed in range(3000)]
        axis.hist(sums, grid, density=True, histtype="step", color=colour, label=label, linewidth=1.5)
    axis.set(title=f"Released sums: {name}", xlabel="released sum", yticks=[], xlim=(0, 11))

axes[0].legend(fontsize=9, loc="upper left")

# %%
# The one with half of the noise is caught with a thousand runs or so, the one that does not clip with a few hundred.
# The right one is not. Nor is the one that does not clip, where the record that is added lies at the bound: that pair
# does not show what is broken.
#
# To take away: before you trust a mechanism, audit it, with records beyond every bound it states, and with thousands of
# runs. An audit can only convict. What acquits is a proof.

plt.show()

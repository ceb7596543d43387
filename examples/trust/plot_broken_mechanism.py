"""
Audit a mechanism: find a broken one
====================================

A mechanism with a wrong scale or without clipping looks like a correct one. This example audits four mechanisms, two of
them broken. It shows how an audit refutes a claimed epsilon, how many runs it needs, and why an audit without a finding
is not a proof.
"""

# %%
# A private sum, written by hand
# ------------------------------
# The sum clips numbers to [0, 1], adds them up, and adds Laplace noise of scale 1 / epsilon, because one more record
# changes the sum by at most 1. Two parameters break it in ways that occur in practice: a wrong noise scale, and a
# stated bound without clipping.
#
# (Even the correct version is for teaching only. The last bits of its floating-point noise reveal information. The
# mechanisms of this library avoid this problem.)

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator

from skdp.audit import audit_epsilon


class NoisySum(BaseEstimator):
    """A sum with Laplace noise, with parameters that break it."""

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
# Neighbouring data sets
# ----------------------
# An audit needs a pair of neighbouring data sets. In a good pair, the added record has the largest possible effect. For
# the mechanism without clipping, this record is beyond the bound. The same mechanism is also audited with a record at
# the bound.

base = np.full((10, 1), 0.5)
within = np.vstack([base, [[1.0]]])
beyond = np.vstack([base, [[3.0]]])

CASES = [
    ("correct", NoisySum(), within, "C0", "o-"),
    ("half of the noise", NoisySum(noise=0.5), within, "C3", "s-"),
    ("no clipping, record of 3", NoisySum(clip=False), beyond, "C1", "D-"),
    ("no clipping, record of 1", NoisySum(clip=False), within, "C4", "^:"),
]

# %%
# A lower bound on epsilon
# ------------------------
# ``audit_epsilon`` fits both data sets many times. A part of the runs chooses an event, such as a sum above 6. The
# other runs count how often the event occurs with the added record and without it. Under epsilon-differential privacy,
# the two rates differ at most by a factor of :math:`e^\varepsilon`. If they differ by more than this factor and chance
# explain, the claim is wrong. The probability of a false alarm is one in a thousand for each audit. The parameter
# ``error`` sets it.

for name, estimator, neighbour, *_ in CASES:
    found = audit_epsilon(
        estimator, (base,), (neighbour,), n_runs=1000, random_state=0
    )
    print(f"{name:<25}{found}")

# %%
# Number of runs
# --------------
# The lower bound rises with the number of runs, except for chance in the choice of the event. Its limit is the epsilon
# of the pair: 1 for the correct sum, 2 with half of the noise, and 3 for a record of 3 without clipping. Up to 500
# runs, the marks are means of three audits.

RUNS = [50, 100, 200, 500, 1000, 2000, 5000]
bound_figure, axis = plt.subplots(figsize=(8, 5), layout="constrained")
for k, (name, estimator, neighbour, colour, style) in enumerate(CASES):
    bounds = [
        [
            audit_epsilon(
                estimator,
                (base,),
                (neighbour,),
                n_runs=n,
                random_state=10 * k + seed,
            ).epsilon
            for seed in range(3 if n <= 500 else 1)
        ]
        for n in RUNS
    ]
    axis.plot(
        RUNS,
        [np.mean(row) for row in bounds],
        style,
        color=colour,
        label=name,
        markersize=5,
    )
    missed = [
        n
        for n, row in zip(RUNS, bounds, strict=True)
        if min(row) <= estimator.epsilon
    ]
    found = (
        f"rejected with more than {missed[-1]} runs"
        if missed[-1] < RUNS[-1]
        else "not rejected"
    )
    print(f"{name:<25}{found}")
axis.axhline(
    1, color="k", linestyle="--", linewidth=1, label="claimed epsilon"
)
axis.set(
    xscale="log",
    xlabel="runs on each data set",
    ylabel="lower bound on epsilon",
    title="Lower bounds of the audits",
)
axis.set_xticks(RUNS, [str(n) for n in RUNS])
axis.minorticks_off()
axis.set_ylim(0, 3.1)
axis.legend(loc="upper left", fontsize=9)

# %%
# Distributions of the released sums
# ----------------------------------
# The figure shows the released sums of the correct mechanism and of the mechanism with half of the noise. A single
# release does not show which mechanism made it. The audit only uses the larger distance between the two curves of the
# second mechanism.

grid = np.linspace(0, 11, 45)
sums_figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
for axis, (name, estimator, neighbour, *_) in zip(axes, CASES, strict=False):
    for data, label, colour in [
        (base, "without the record", "0.6"),
        (neighbour, "with the record", "C4"),
    ]:
        sums = [
            estimator.set_params(random_state=seed).fit(data).sum_
            for seed in range(3000)
        ]
        axis.hist(
            sums,
            grid,
            density=True,
            histtype="step",
            color=colour,
            label=label,
            linewidth=1.5,
        )
    axis.set(
        title=f"Released sums: {name}",
        xlabel="released sum",
        yticks=[],
        xlim=(0, 11),
    )

axes[0].legend(fontsize=9, loc="upper left")

# %%
# The audit finds half of the noise with about a thousand runs, and missing clipping with a few hundred. It does not
# reject the correct sum. It also does not reject the sum without clipping if the added record is at the bound, because
# this pair does not show the error.
#
# Summary
# -------
# Audit a mechanism before you use it, with records beyond every stated bound, and with thousands of runs. An audit can
# only refute a claim. A proof is needed to establish it. :ref:`auditing` describes the method.

plt.show()

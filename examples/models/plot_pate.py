"""
PATE: what teachers say, and how much noise goes on it
======================================================

Hand disjoint blocks of the records to teachers, let them vote on public rows, add noise to the votes, and teach a
student: so any classifier becomes private, as it stands. Here we look at the votes, at the noise, and at what the
student makes of them, with nearest neighbours for teachers; and at where a model that is trained by private gradients
is better, which is most of the time.
"""

# %%
# Records, and public rows
# ------------------------
# The records are simulated: 6000 of them, in two half moons. 400 rows are public, of the same kind, and nobody knows
# their labels: think of a region where places may be known, and answers may not. Without public rows there is no PATE.
# Neighbours need no bounds; the label set is 0 and 1.

import math

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_moons
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from skdp import BoundsScaler, DPMLPClassifier, PATEClassifier

DELTA = 1e-6
N_TEACHERS = 40

X, y = make_moons(6000, noise=0.25, random_state=0)
X_public, y_public = make_moons(400, noise=0.25, random_state=1)
X_test, y_test = make_moons(2000, noise=0.25, random_state=2)


def pate(epsilon):
    """Give a student of 40 teachers, each of whom asks the five nearest of its own records."""
    return PATEClassifier(
        KNeighborsClassifier(5),
        public_X=X_public,
        epsilon=epsilon,
        delta=DELTA,
        n_teachers=N_TEACHERS,
        classes=[0, 1],
    )


# %%
# The votes
# ---------
# ``PATEClassifier`` keeps no votes: they are private. These records are made up, so that we may hold the vote
# ourselves, and see. Each record draws its block; a lead is how many more teachers say 1 than say 0. The noise is known
# before there are any records: one record changes one teacher, who may turn on all 400 rows, and that is what it has to
# cover.

rng = np.random.default_rng(0)
block = rng.integers(N_TEACHERS, size=len(X))
lead = np.zeros(len(X_public))
for teacher in range(N_TEACHERS):
    mine = block == teacher
    lead += 2 * KNeighborsClassifier(5).fit(X[mine], y[mine]).predict(X_public) - 1
said = [lead < 0, lead >= 0]

votes, axes = plt.subplots(2, 2, figsize=(8, 6.4), layout="constrained")
image = axes[0, 0].scatter(*X_public.T, c=lead, s=12, cmap="cividis")
axes[0, 0].set(title="400 public rows, and the lead of 1", xticks=[], yticks=[])
votes.colorbar(image, ax=axes[0, 0], label="votes")
axes[0, 1].hist([lead[rows] for rows in said], np.arange(-40, 41, 5), stacked=True, color=["C0", "C1"])
axes[0, 1].set(title="leads, no noise", xlabel="votes", ylabel="public rows")
for axis, epsilon in zip(axes[1], [10.0, 1.0], strict=True):
    scale = pate(epsilon).privacy_plan(n_features=2).releases[0].mechanism.scale
    noisy = lead + np.random.default_rng().normal(scale=math.sqrt(2) * scale, size=len(lead))
    bins = np.linspace(-1, 1, 31) * (N_TEACHERS + 4 * scale)
    for rows, colour, name in zip(said, ["C0", "C1"], ["teachers say 0", "teachers say 1"], strict=True):
        axis.hist(noisy[rows], bins, color=colour, alpha=0.5, label=name)
    axis.set(title=f"leads, epsilon {epsilon:g}", xlabel="votes", ylabel="public rows")
    kept = np.mean((noisy >= 0) == said[1])
    print(
        f"epsilon {epsilon:>2g}: noise {scale:.0f} on each count; winner of the noisy vote is the teachers': {kept:.0%}"
    )
axes[1, 1].legend(fontsize=9)
votes.align_labels()

# %%
# Teachers agree on all rows but those between the moons. At 10 the noise leaves nearly all winners as they were. At 1
# there is more noise on a count than there are teachers, and a single row's winner says next to nothing.
#
# But the student does not need any single row. It sees all 400 noisy votes, and those in one moon still lean to one
# side: noise averages out over rows. The default student is a regression on the votes themselves, since winners say
# less.
#
# How good it is
# --------------
# At the left, the moons. At the right, scikit-learn's digits: 900 are private, 500 are public, without labels, and the
# rest is for the test. Their 60 teachers have 15 digits each. Marks are means of two fits, scored on held-out rows.
# Each fit has a delta of 1e-6, and spends its epsilon anew.
#
# Beside PATE stands a network that is trained by private gradients on the same records. It needs bounds: for the moons
# a box around the public rows, and for digits a norm of 75, which is that of a picture with a third of its 64 pixels at
# 16, the most there can be. Longer rows are scaled down. It does not look at public rows otherwise.

EPSILONS = [0.3, 1.0, 3.0, 10.0]
digits, labels = load_digits(return_X_y=True)
private, public, test = np.split(np.random.default_rng(0).permutation(len(digits)), [900, 1400])


def network(epsilon, **parameters):
    """Give a network, to be trained by private gradients."""
    return DPMLPClassifier((32,), epsilon=epsilon, delta=DELTA, n_steps=200, **parameters)


def moons_by_network(epsilon):
    """Give a network for rows of the public box."""
    return make_pipeline(BoundsScaler((-2.5, 3.5)), network(epsilon, data_norm=2**0.5, classes=[0, 1], expected_n=6000))


def digits_by_pate(epsilon):
    """Give a student of 60 teachers that look for the nearest digit."""
    return PATEClassifier(
        KNeighborsClassifier(1),
        public_X=digits[public],
        epsilon=epsilon,
        delta=DELTA,
        n_teachers=60,
        classes=range(10),
    )


def digits_by_network(epsilon):
    """Give a network for digits."""
    return network(epsilon, data_norm=75.0, classes=range(10), expected_n=900)


MOONS = X, y, X_test, y_test
DIGITS = digits[private], labels[private], digits[test], labels[test]


def draw(axis, make, rows, style, label):
    """Draw mean accuracy of two fits against epsilon."""
    X, y, X_test, y_test = rows
    found = [np.mean([make(epsilon).fit(X, y).score(X_test, y_test) for _ in range(2)]) for epsilon in EPSILONS]
    axis.plot(EPSILONS, found, style, label=label)
    print(f"{len(X)} records, {label:<7}", *(f"{mean:.2f}" for mean in found), sep="  ")


scores, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True, layout="constrained")
draw(left, moons_by_network, MOONS, "C4^-", "network")
draw(left, pate, MOONS, "C0o-", "PATE")
draw(right, digits_by_network, DIGITS, "C4^-", "network")
draw(right, digits_by_pate, DIGITS, "C0o-", "PATE")
for axis, (X, y, X_test, y_test), title in [(left, MOONS, "Half moons"), (right, DIGITS, "Digits")]:
    best = KNeighborsClassifier(5).fit(X, y).score(X_test, y_test)
    axis.axhline(best, color="k", linestyle=":", linewidth=1, label="neighbours, no privacy")
    axis.set(xscale="log", xlabel="epsilon", title=title, ylim=(0, 1.02))
    axis.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axis.minorticks_off()
    axis.grid(axis="y", color="0.92")
left.set_ylabel("test accuracy")
scores.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
scores.align_labels()

# %%
# On the moons, with six thousand records for two columns and two classes, PATE is behind at small budgets, and nearly
# as good as the network from 3 on. On digits it loses by far: a teacher with one or two digits of each kind knows
# little, and the votes are split among ten classes, while the noise is as large as ever. A gradient method uses all
# records in each step.
#
# That is what to expect (:ref:`pate` has more figures). PATE has its place where the model is no gradient's, or is
# somebody else's and has to be taken as it is; where there are public rows of the same kind; and where each of a
# hundred teachers would still have a few dozen records.
#
# To take along: before a budget is spent, ask ``privacy_plan`` for the noise, and compare it with the number of
# teachers. Try on simulated records what the student makes of it. :class:`~skdp.ensemble.PATEClassifier` has all
# parameters; without public rows, :class:`~skdp.ensemble.SampleAggregate` averages what models say of themselves.

plt.show()

"""
PATE: a private student of many teachers
========================================

PATE splits the records into disjoint blocks, and fits a classifier, the teacher, to each block. The teachers vote on
public rows. A student learns from the noisy votes. Therefore any classifier can be a teacher. This example shows the
votes, the noise and the accuracy of the student, with nearest neighbours as teachers. It compares PATE with a network
that is trained with private gradients, which is more accurate in most cases.
"""

# %%
# Private records and public rows
# -------------------------------
# The records are simulated: 6,000 points in two half moons. A further 400 points are public, but their labels are
# unknown. An example is a map where places are public and answers are private. PATE needs such public rows. Nearest
# neighbours need no bounds. The labels are 0 and 1.

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
    """Return a student of 40 teachers, which use the five nearest records."""
    return PATEClassifier(
        KNeighborsClassifier(5),
        public_X=X_public,
        epsilon=epsilon,
        delta=DELTA,
        n_teachers=N_TEACHERS,
        classes=[0, 1],
    )


# %%
# Votes of the teachers
# ---------------------
# ``PATEClassifier`` does not keep the votes, because they are private. These records are simulated. Therefore the
# script repeats the vote and looks at it. Each record is assigned to a random block. The lead of a row is the number of
# teachers for 1 minus the number of teachers for 0. The noise is known before the records are read. One record can
# change one teacher, who can change all 400 votes, and the noise has to cover this change.

rng = np.random.default_rng(0)
block = rng.integers(N_TEACHERS, size=len(X))
lead = np.zeros(len(X_public))
for teacher in range(N_TEACHERS):
    in_block = block == teacher
    neighbours = KNeighborsClassifier(5).fit(X[in_block], y[in_block])
    lead += 2 * neighbours.predict(X_public) - 1


def plot_leads(axis, leads, limit, title):
    """Plot the leads of the public rows, by the winner without noise."""
    bins = np.linspace(-limit, limit, 31)
    axis.hist(leads[lead < 0], bins, alpha=0.5, label="teachers say 0")
    axis.hist(leads[lead >= 0], bins, alpha=0.5, label="teachers say 1")
    axis.set(title=title, xlabel="votes", ylabel="public rows")


figure, axes = plt.subplots(2, 2, figsize=(8, 6.4), layout="constrained")
image = axes[0, 0].scatter(*X_public.T, c=lead, s=12)
axes[0, 0].set(
    title="400 public rows, and the lead of 1", xticks=[], yticks=[]
)
figure.colorbar(image, ax=axes[0, 0], label="votes")
plot_leads(axes[0, 1], lead, N_TEACHERS, "leads, no noise")
for axis, epsilon in zip(axes[1], [10.0, 1.0], strict=True):
    plan = pate(epsilon).privacy_plan(n_features=2)
    scale = plan.releases[0].mechanism.scale
    noise = (
        math.sqrt(2) * scale * np.random.default_rng().normal(size=len(lead))
    )
    limit = N_TEACHERS + 4 * scale
    plot_leads(axis, lead + noise, limit, f"leads, epsilon {epsilon:g}")
    unchanged = np.mean((lead + noise >= 0) == (lead >= 0))
    print(
        f"epsilon {epsilon:>2g}: noise {scale:.0f} on each count; "
        f"the winner stays the same for {unchanged:.0%} of the rows"
    )
axes[1, 1].legend(fontsize=9)

# %%
# The teachers agree on all rows except those between the moons. At epsilon 10, nearly all winners stay the same with
# noise. At epsilon 1, the standard deviation of the noise on a count exceeds the number of teachers, so that the winner
# of a single row has almost no information.
#
# The student does not depend on a single row. It learns from all 400 noisy votes. The noisy votes in one moon still
# have a common tendency, because the noise averages out over rows. By default, the student is a regression on the votes
# themselves, because the winners alone have less information.
#
# Accuracy of the student
# -----------------------
# The left panel shows the half moons. The right panel shows scikit-learn's digits: 900 are private, 500 are public
# without labels, and the rest are for the test. The 60 teachers have 15 digits each. Marks are means of two fits. Each
# fit has its own epsilon and a delta of 1e-6.
#
# The network is trained with private gradients on the same records. It needs bounds. For the half moons, they are a box
# around the public rows. For digits, ``data_norm`` is 75, which is the norm of a picture with a third of its 64 pixels
# at 16, the largest value. Rows with a larger norm are scaled down. The network does not use the public rows otherwise.

EPSILONS = [0.3, 1.0, 3.0, 10.0]
digits, labels = load_digits(return_X_y=True)
private, public, test = np.split(
    np.random.default_rng(0).permutation(len(digits)), [900, 1400]
)


def network(epsilon, **parameters):
    """Return a network that is trained with private gradients."""
    return DPMLPClassifier(
        (32,), epsilon=epsilon, delta=DELTA, n_steps=200, **parameters
    )


def moons_by_network(epsilon):
    """Return a network for rows in the public box."""
    return make_pipeline(
        BoundsScaler((-2.5, 3.5)),
        network(epsilon, data_norm=2**0.5, classes=[0, 1], expected_n=6000),
    )


def digits_by_pate(epsilon):
    """Return a student of 60 teachers, which use the nearest digit."""
    return PATEClassifier(
        KNeighborsClassifier(1),
        public_X=digits[public],
        epsilon=epsilon,
        delta=DELTA,
        n_teachers=60,
        classes=range(10),
    )


def digits_by_network(epsilon):
    """Return a network for digits."""
    return network(epsilon, data_norm=75.0, classes=range(10), expected_n=900)


MOONS = X, y, X_test, y_test
DIGITS = digits[private], labels[private], digits[test], labels[test]


def plot_accuracy(axis, make, rows, label):
    """Plot the mean accuracy of two fits against epsilon."""
    X, y, X_test, y_test = rows
    means = [
        np.mean(
            [make(epsilon).fit(X, y).score(X_test, y_test) for _ in range(2)]
        )
        for epsilon in EPSILONS
    ]
    axis.plot(EPSILONS, means, "o-", label=label)
    print(f"{len(X)} records, {label:<7}", *(f"{mean:.2f}" for mean in means))


def plot_without_privacy(axis, rows):
    """Add the accuracy of nearest neighbours without privacy."""
    X, y, X_test, y_test = rows
    accuracy = KNeighborsClassifier(5).fit(X, y).score(X_test, y_test)
    label = "nearest neighbours, no privacy"
    axis.axhline(accuracy, color="k", linestyle=":", label=label)
    axis.set(xscale="log", xlabel="epsilon", ylim=(0, 1.02))
    axis.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axis.minorticks_off()


figure, (left, right) = plt.subplots(
    1, 2, figsize=(9, 4.2), sharey=True, layout="constrained"
)
plot_accuracy(left, moons_by_network, MOONS, "network")
plot_accuracy(left, pate, MOONS, "PATE")
plot_without_privacy(left, MOONS)
left.set(title="Half moons", ylabel="test accuracy")
plot_accuracy(right, digits_by_network, DIGITS, "network")
plot_accuracy(right, digits_by_pate, DIGITS, "PATE")
plot_without_privacy(right, DIGITS)
right.set_title("Digits")
marks = left.get_legend_handles_labels()
figure.legend(*marks, loc="outside lower center", ncols=3)

# %%
# On the half moons, with 6,000 records, two columns and two labels, PATE is less accurate at small epsilon, and nearly
# as accurate as the network from epsilon 3 on. On digits, PATE is much less accurate. Each teacher has one or two
# pictures of each digit, and the votes split among ten labels, while the noise stays the same. The network uses all
# records in each step.
#
# These results are typical (:ref:`pate` has more figures). PATE is useful if the model cannot be trained with
# gradients, or has to be used as it is, if there are public rows of the same kind, and if each of about a hundred
# teachers still has a few dozen records.
#
# Summary
# -------
# Before you spend a budget, compute the noise with ``privacy_plan``, and compare it with the number of teachers.
# Measure the accuracy of the student on simulated records. :class:`~skdp.ensemble.PATEClassifier` describes all
# parameters. If there are no public rows, :class:`~skdp.ensemble.SampleAggregate` averages the parameters of the
# models.

plt.show()

"""
Local against central privacy: what it costs to trust no one
============================================================

In the central model someone collects the records as they are, and publishes noisy statistics. In the local model each
person randomises their own record, and no one ever sees it. Both can promise the same epsilon. What the second costs is
seen here: its error falls with the square root of the number of people, and that of the first with their number.

For a fair comparison, both promise it for *replacing* one record here, with a public number of people.
"""

# %%
# A survey with sixteen answers
# -----------------------------
# The answers have frequencies like 1, 1/2, 1/3, ... Each person reports theirs through one of three channels:
# randomised response, unary encoding or Hadamard response. The estimates are unbiased, and their standard error is
# known from the law of the channel. In the central model, the counts get discrete Laplace noise, and are divided by
# the number of people; a record that is replaced changes two of them.

import math

import matplotlib.pyplot as plt
import numpy as np

from skdp.local import HadamardResponse, LocalLaplace, PiecewiseMechanism, RandomizedResponse, UnaryEncoder
from skdp.mechanisms import DiscreteLaplaceMechanism, NoiseSource

EPSILON = 1.0
K = 16
SIZES = [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000]


def answers(n):
    """Give n people answers with frequencies 1, 1/2, 1/3, ..."""
    weights = np.cumsum(1 / np.arange(1, K + 1))
    return np.searchsorted(weights / weights[-1], (np.arange(n) + 0.5) / n)


def ages(n):
    """Give n people ages from 0 to 100, more of them young than old."""
    return 100 * (1 - np.sqrt(1 - (np.arange(n) + 0.5) / n))


def repeats(n):
    """More draws where they are quick and few people make them vary."""
    return max(2, min(60, 50_000 // n))


def local_frequencies(channel, n):
    """Mean absolute error of the frequencies that are estimated from reports."""
    truth = np.bincount(answers(n), minlength=K) / n
    channel = channel.fit(answers(n)[:, None])
    reports = (channel.transform(answers(n)[:, None]) for _ in range(repeats(n)))
    return np.mean([np.abs(channel.frequencies(Z)[0] - truth).mean() for Z in reports])


def central_frequencies(n):
    """The same, where the counts get noise."""
    mechanism = DiscreteLaplaceMechanism(EPSILON, sensitivity=2.0, size=K)
    stream = NoiseSource().stream("counts")
    counts = np.bincount(answers(n), minlength=K)
    return np.mean([np.abs(mechanism.release(counts, stream) - counts).mean() / n for _ in range(200)])


frequencies = {
    "randomised response": [local_frequencies(RandomizedResponse(K, epsilon=EPSILON), n) for n in SIZES],
    "unary encoding": [local_frequencies(UnaryEncoder(K, epsilon=EPSILON), n) for n in SIZES],
    "Hadamard response": [local_frequencies(HadamardResponse(K, epsilon=EPSILON), n) for n in SIZES],
    "central: Laplace noise on counts": [central_frequencies(n) for n in SIZES],
}

# %%
# A mean
# ------
# The same for a number with public bounds. Each person adds Laplace noise of the width of the bounds over epsilon, or
# uses the piecewise mechanism, whose reports are bounded. In the central model, one such noise is added to the sum of
# all.


def local_means(mechanism, n):
    """Mean absolute error of a mean that is estimated from reports, in years."""
    people = ages(n)[:, None]
    mechanism = mechanism.fit(people)
    draws = [mechanism.means(mechanism.transform(people))[0] for _ in range(5 * repeats(n) if n < 300_000 else 5)]
    return np.abs(np.array(draws) - people.mean()).mean()


def central_mean(n):
    """The same, where the sum gets noise."""
    mechanism = DiscreteLaplaceMechanism(EPSILON, sensitivity=100.0, size=500)
    noise = mechanism.release(np.zeros(500), NoiseSource().stream("sum"))
    return np.abs(noise).mean() / n


means = {
    "Laplace noise of each person": [local_means(LocalLaplace((0, 100), epsilon=EPSILON), n) for n in SIZES],
    "piecewise mechanism": [local_means(PiecewiseMechanism((0, 100), epsilon=EPSILON), n) for n in SIZES],
    "central: Laplace noise on the sum": [central_mean(n) for n in SIZES],
}

# %%
# Square root against linear
# --------------------------
# The lines are theory. A normal error has a mean size of :math:`\sqrt{2/\pi}` standard deviations, and a report of the
# optimised unary encoding has the variance :math:`4e^\varepsilon/(e^\varepsilon-1)^2` about. Laplace noise has a mean
# size equal to its scale.

N = np.geomspace(SIZES[0], SIZES[-1], 50)
NORMAL = math.sqrt(2 / math.pi)
spread = 2 * math.exp(EPSILON / 2) / math.expm1(EPSILON)
theory = [
    (NORMAL * spread / np.sqrt(N), 2 / EPSILON / N),
    (NORMAL * math.sqrt(2) * 100 / EPSILON / np.sqrt(N), 100 / EPSILON / N),
]

figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
titles = ["Frequencies of 16 answers", "Mean age, with public bounds 0 and 100"]
labels = ["mean absolute error of a frequency", "mean absolute error in years"]
rows = zip(axes, [frequencies, means], theory, titles, labels, strict=True)
for axis, found, (root, linear), title, label in rows:
    axis.fill_between(N, linear, root, color="0.93", zorder=0)
    axis.plot(N, root, color="0.45", linewidth=1, zorder=1)
    axis.plot(N, linear, color="0.45", linewidth=1, linestyle="--", zorder=1)
    markers = ["o", "s", "^"]
    for i, (name, errors) in enumerate(found.items()):
        central = name.startswith("central")
        axis.plot(
            SIZES, errors, "D" if central else markers[i], color="k" if central else f"C{i}", label=name, markersize=5
        )
    axis.text(N[30], root[30] * 1.45, r"$\propto 1/\sqrt{n}$", color="0.35", fontsize=11)
    axis.text(N[30], linear[30] * 0.22, r"$\propto 1/n$", color="0.35", fontsize=11)
    # People that the local model needs for what the central one has with a hundred.
    needed = (root[0] / linear[0]) ** 2 * N[0]
    axis.annotate("", (needed, linear[0]), (N[0], linear[0]), arrowprops={"arrowstyle": "->", "color": "C3"})
    middle = math.sqrt(N[0] * needed)
    more = f"{needed / N[0]:.0f} times as many"
    axis.text(1.2 * middle, linear[0] * 0.85, more, color="C3", ha="center", va="top", fontsize=9)
    axis.set(xscale="log", yscale="log", xlabel="number of people n", ylabel=label, title=title)
    axis.grid(which="major", color="0.9", linewidth=0.5)
    axis.legend(fontsize=8, loc="lower left")
    print(f"{title}: what takes 100 people in the central model takes {needed:,.0f} in the local one")
figure.suptitle(f"The same promise, epsilon = {EPSILON:g}, with a trusted collector and without")

# %%
# The gap is what trust is worth: it grows without end, as the square root of the number of people. The local model is
# for surveys of very many, for few questions, or for those who may not collect at all.

plt.show()

"""
Local and central privacy: compare their errors
===============================================

In the central model, a trusted collector has the true records and releases noisy statistics. In the local model, each
person randomises their own record, and nobody collects true records. Both can have the same epsilon. This example
measures the errors of both models. The error of the local model falls with the square root of the number of people, and
that of the central model with the number itself.

For a fair comparison, both models protect against *replacing* one record here, and the number of people is public.
"""

# %%
# A survey with sixteen answers
# -----------------------------
# The frequencies of the answers are proportional to 1, 1/2, 1/3, and so on. Each person sends a report by one of three
# mechanisms: randomised response, unary encoding or Hadamard response. The estimates are unbiased, and their standard
# errors are known. In the central model, the counts get discrete Laplace noise, and are divided by the number of
# people. A replaced record changes two counts.

import math

import matplotlib.pyplot as plt
import numpy as np

from skdp.local import (
    HadamardResponse,
    LocalLaplace,
    PiecewiseMechanism,
    RandomizedResponse,
    UnaryEncoder,
)
from skdp.mechanisms import DiscreteLaplaceMechanism, NoiseSource

EPSILON = 1.0
K = 16
SIZES = [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000]


def answers(n):
    """Return answers, with frequencies proportional to 1, 1/2, 1/3, ..."""
    weights = np.cumsum(1 / np.arange(1, K + 1))
    return np.searchsorted(weights / weights[-1], (np.arange(n) + 0.5) / n)


def ages(n):
    """Return ages from 0 to 100, with more young than old people."""
    return 100 * (1 - np.sqrt(1 - (np.arange(n) + 0.5) / n))


def repeats(n):
    """Return the number of draws, which is larger for few people."""
    return max(2, min(60, 50_000 // n))


def local_frequencies(channel, n):
    """Return the mean absolute error of frequencies in the local model."""
    truth = np.bincount(answers(n), minlength=K) / n
    channel = channel.fit(answers(n)[:, None])
    reports = (
        channel.transform(answers(n)[:, None]) for _ in range(repeats(n))
    )
    return np.mean(
        [np.abs(channel.frequencies(Z)[0] - truth).mean() for Z in reports]
    )


def central_frequencies(n):
    """Return the mean absolute error of frequencies in the central model."""
    mechanism = DiscreteLaplaceMechanism(EPSILON, sensitivity=2.0, size=K)
    stream = NoiseSource().stream("counts")
    counts = np.bincount(answers(n), minlength=K)
    return np.mean(
        [
            np.abs(mechanism.release(counts, stream) - counts).mean() / n
            for _ in range(200)
        ]
    )


frequencies = {
    "local: randomised response": [
        local_frequencies(RandomizedResponse(K, epsilon=EPSILON), n)
        for n in SIZES
    ],
    "local: unary encoding": [
        local_frequencies(UnaryEncoder(K, epsilon=EPSILON), n) for n in SIZES
    ],
    "local: Hadamard response": [
        local_frequencies(HadamardResponse(K, epsilon=EPSILON), n)
        for n in SIZES
    ],
    "central: Laplace noise on counts": [
        central_frequencies(n) for n in SIZES
    ],
}

# %%
# A mean
# ------
# The second statistic is the mean of a number with public bounds. In the local model, each person adds Laplace noise,
# whose scale is the width of the bounds over epsilon, or uses the piecewise mechanism with its bounded reports. In the
# central model, such Laplace noise is added to the sum once.


def local_means(mechanism, n):
    """Return the mean absolute error in the local model, in years."""
    people = ages(n)[:, None]
    mechanism = mechanism.fit(people)
    draws = [
        mechanism.means(mechanism.transform(people))[0]
        for _ in range(5 * repeats(n) if n < 300_000 else 5)
    ]
    return np.abs(np.array(draws) - people.mean()).mean()


def central_mean(n):
    """Return the mean absolute error in the central model, in years."""
    mechanism = DiscreteLaplaceMechanism(EPSILON, sensitivity=100.0, size=500)
    noise = mechanism.release(np.zeros(500), NoiseSource().stream("sum"))
    return np.abs(noise).mean() / n


means = {
    "local: Laplace noise": [
        local_means(LocalLaplace((0, 100), epsilon=EPSILON), n) for n in SIZES
    ],
    "local: piecewise mechanism": [
        local_means(PiecewiseMechanism((0, 100), epsilon=EPSILON), n)
        for n in SIZES
    ],
    "central: Laplace noise on the sum": [central_mean(n) for n in SIZES],
}

# %%
# Errors against the number of people
# -----------------------------------
# The lines are theory. A normal error has a mean absolute value of :math:`\sqrt{2/\pi}` standard deviations. The
# variance of one report of the optimised unary encoding is about :math:`4e^\varepsilon/(e^\varepsilon-1)^2`. The mean
# absolute value of Laplace noise is its scale. The arrow shows how many people the local model needs for the error that
# the central model has with 100 people.

N = np.geomspace(SIZES[0], SIZES[-1], 50)
NORMAL = math.sqrt(2 / math.pi)
spread = 2 * math.exp(EPSILON / 2) / math.expm1(EPSILON)
theory = [
    (NORMAL * spread / np.sqrt(N), 2 / EPSILON / N),
    (NORMAL * math.sqrt(2) * 100 / EPSILON / np.sqrt(N), 100 / EPSILON / N),
]

figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
titles = [
    "Frequencies of 16 answers",
    "Mean age, with public bounds 0 and 100",
]
labels = ["mean absolute error of a frequency", "mean absolute error in years"]
rows = zip(axes, [frequencies, means], theory, titles, labels, strict=True)
for axis, found, (root, linear), title, label in rows:
    axis.fill_between(N, linear, root, color="0.93", zorder=0)
    axis.plot(
        N, root, color="0.45", linewidth=1, zorder=1, label="theory, local"
    )
    axis.plot(
        N,
        linear,
        color="0.45",
        linewidth=1,
        linestyle="--",
        zorder=1,
        label="theory, central",
    )
    markers = ["o", "s", "^"]
    for i, (name, errors) in enumerate(found.items()):
        central = name.startswith("central")
        axis.plot(
            SIZES,
            errors,
            "D" if central else markers[i],
            color="k" if central else f"C{i}",
            label=name,
            markersize=5,
        )
    axis.text(
        N[30],
        root[30] * 1.45,
        r"$\propto 1/\sqrt{n}$",
        color="0.35",
        fontsize=11,
    )
    axis.text(
        N[30], linear[30] * 0.22, r"$\propto 1/n$", color="0.35", fontsize=11
    )
    # The people that the local model needs for the central error with 100.
    needed = (root[0] / linear[0]) ** 2 * N[0]
    axis.annotate(
        "",
        (needed, linear[0]),
        (N[0], linear[0]),
        arrowprops={"arrowstyle": "->", "color": "C3"},
    )
    middle = math.sqrt(N[0] * needed)
    more = f"{needed / N[0]:.0f} times as many"
    axis.text(
        1.2 * middle,
        linear[0] * 0.85,
        more,
        color="C3",
        ha="center",
        va="top",
        fontsize=9,
    )
    axis.set(
        xscale="log",
        yscale="log",
        xlabel="number of people n",
        ylabel=label,
        title=title,
    )
    axis.grid(which="major", color="0.9", linewidth=0.5)
    axis.legend(fontsize=8, loc="lower left")
    print(
        f"{title}: 100 people in the central model "
        f"are worth {needed:,.0f} in the local model"
    )
figure.suptitle(
    f"Errors at epsilon {EPSILON:g}, with a trusted collector and without"
)

# %%
# Summary
# -------
# The local model needs no trusted collector, but its error is larger. The ratio of the two errors grows with the square
# root of the number of people. Use the local model for surveys of very many people, for few questions, or if you may
# not collect the records. :ref:`local` has the mechanisms, and a classifier.

plt.show()

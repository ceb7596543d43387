"""
Text: which words does a private model learn?
=============================================

Words make thousands of columns, and a vocabulary that is read off the texts gives away who wrote a rare word. Hashed
columns need no vocabulary. Here we learn to route complaints with a private model, how many columns pay at which
epsilon, and which words the model learns: the common ones. What a few people wrote is drowned, and this is what privacy
is for.
"""

# %%
# Complaints
# ----------
# Simulated: 3000 complaints about bills or about repairs. They are no English, only words in some order: fillers that
# anybody uses; one to three words that are typical of one of the two (in one case in five, of the wrong one); and in
# every other one the number of a product, which is about bills or about repairs, each. Few products are common, and
# most have a handful of complaints.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression

from skdp import DPSGDClassifier, FunctionalMechLogReg

FILLERS = "hello please help my the a not still since yesterday again was have it with and you very order thanks today"
BILLS = "invoice charged refund payment twice price card discount receipt tax fee overdue bank voucher"
REPAIRS = "screen error restart update password broken crash battery cable slow noise printer driver screws"
WORDS = np.array([BILLS.split(), REPAIRS.split()])
PRODUCTS = np.array([[f"{name}{number}" for number in range(100, 200)] for name in "br"])


def by_rank(size, n, rng):
    """Draw ranks below a size; each is about as common as one over it."""
    weights = 1 / np.arange(1, size + 1)
    return rng.choice(size, n, p=weights / weights.sum())


def complaints(n, rng):
    """Draw texts, and what they are about: 0 for bills, 1 for repairs."""
    y = rng.integers(2, size=n)
    about = np.where(rng.uniform(size=(n, 3)) < 0.8, y[:, None], 1 - y[:, None])
    typical = WORDS[about, by_rank(WORDS.shape[1], (n, 3), rng)]
    product = PRODUCTS[y, by_rank(PRODUCTS.shape[1], n, rng)]
    fillers = rng.choice(FILLERS.split(), (n, 8))
    texts = []
    for k in range(n):
        words = [*fillers[k, : rng.integers(4, 9)], *typical[k, : rng.integers(1, 4)]]
        texts.append(" ".join(rng.permutation(words + [product[k]] * (rng.uniform() < 0.5))))
    return texts, y


rng = np.random.default_rng(0)
texts, y = complaints(3000, rng)
texts_test, y_test = complaints(4000, rng)
for text, label in zip(texts[:4], y[:4], strict=True):
    print(f"{['bills', 'repairs'][label]:>8}: {text}")

# %%
# Columns without a vocabulary
# ----------------------------
# ``HashingVectorizer`` sends each word to one of a given number of columns, by a public function. It learns nothing,
# and so costs nothing; ``TfidfVectorizer`` would learn words and their frequencies, and give them away. It also scales
# each row to length 1 (``norm="l2"``), whatever its words, so that 1 is the ``data_norm``. (For rows that come without
# that, there is :class:`~skdp.preprocessing.NormClipper`.) Words may share a column: the fewer columns, the more they
# do.
#
# Accuracy is counted on fresh complaints, which are nobody's. Delta is 1e-6. Gradient descent takes 50 steps in place
# of 500: a little less accurate, and quicker. Points are means over two fits.


def hashed(texts, n_columns):
    """Hash the words of texts."""
    return HashingVectorizer(n_features=n_columns).transform(texts).toarray()


def descent(epsilon):
    """Return a classifier by noisy gradient descent."""
    return DPSGDClassifier(epsilon=epsilon, delta=1e-6, data_norm=1.0, classes=[0, 1], n_steps=50)


def moments(epsilon):
    """Return a classifier from noisy second moments."""
    return FunctionalMechLogReg(epsilon=epsilon, delta=1e-6, bounds=(-1, 1), data_norm=1.0, classes=[0, 1])


def public(epsilon):
    """Return a classifier without privacy."""
    return LogisticRegression(C=10, solver="newton-cg")


COLUMNS = [8, 16, 32, 64, 128, 256, 512]
EPSILONS = [0.3, 1.0, 3.0]
COLOURS = ["C1", "C0", "C2"]
curves = [("without privacy", public, np.inf, "kD:")]
for epsilon, colour in zip(EPSILONS, COLOURS, strict=True):
    curves += [(f"epsilon {epsilon:g}, descent", descent, epsilon, f"{colour}o-")]
    curves += [(f"epsilon {epsilon:g}, moments", moments, epsilon, f"{colour}s--")]

rows = {n_columns: (hashed(texts, n_columns), hashed(texts_test, n_columns)) for n_columns in COLUMNS}
sizes, axis = plt.subplots(figsize=(7, 5.2), layout="constrained")
print(f"{'columns':<22}" + "".join(f"{n_columns:>7}" for n_columns in COLUMNS))
for name, make, epsilon, style in curves:
    scores = []
    for X, X_test in rows.values():
        repeats = 1 if make is public else 2
        scores.append(np.mean([make(epsilon).fit(X, y).score(X_test, y_test) for _ in range(repeats)]))
    axis.plot(COLUMNS, scores, style, markersize=4, label=name)
    print(f"{name:<22}" + "".join(f"{score:7.3f}" for score in scores))
axis.set(xscale="log", xlabel="columns that words are hashed to", ylabel="accuracy on fresh complaints")
axis.set_xticks(COLUMNS, COLUMNS)
axis.minorticks_off()
axis.set_title("3,000 complaints")
axis.grid(axis="y", color="0.93")
sizes.legend(loc="outside lower center", ncols=4, fontsize=8)

# %%
# Without privacy, more columns are better, since fewer words share one. Gradient descent keeps most of that: what noise
# does in columns of rare words is felt in few complaints. ``FunctionalMechLogReg`` adds noise to the moments of all
# pairs of columns, and from some dozens of columns on, at small epsilon, gains little or loses. Columns also cost time.
# A few hundred are enough here; they are a public choice, made before the texts are seen.
#
# Which words are learned
# -----------------------
# A model is asked about complaints of a single word, and is right if it says what the word is about. To keep words
# apart, there are 1024 columns. Words are grouped by the number of complaints that hold them; a word that nothing is
# known about is decided by chance, or by another that shares its column. Private lines are means over six fits.

X = hashed(texts, 1024)
vocabulary = np.concatenate([WORDS, PRODUCTS], axis=1)
about = np.repeat([0, 1], vocabulary.shape[1])
vocabulary = vocabulary.ravel()
counts = np.array([sum(word in text.split() for text in texts) for word in vocabulary])
EDGES = [0, 1, 2, 4, 8, 16, 64, np.inf]
NAMES = ["0", "1", "2-3", "4-7", "8-15", "16-63", "64-"]
group = np.searchsorted(EDGES, counts, side="right") - 1


def right(model):
    """Return, for each group of words, how many a model gets right."""
    found = model.fit(X, y).predict(hashed(vocabulary, 1024)) == about
    return [np.mean(found[group == k]) for k in range(len(NAMES))]


learned, axis = plt.subplots(figsize=(7, 4.4), layout="constrained")
print(f"{'complaints with the word':<26}" + "".join(f"{name:>7}" for name in NAMES))
print(f"{'words':<26}" + "".join(f"{np.sum(group == k):>7}" for k in range(len(NAMES))))
for name, make, epsilon, style in curves:
    if make is moments:
        continue
    parts = np.mean([right(make(epsilon)) for _ in range(1 if make is public else 6)], axis=0)
    axis.plot(range(len(NAMES)), parts, style, markersize=5, label=name.removesuffix(", descent"))
    print(f"{name:<26}" + "".join(f"{part:7.2f}" for part in parts))
axis.axhline(0.5, color="0.6", linewidth=1, zorder=0)
axis.set_xticks(range(len(NAMES)), NAMES)
axis.set(xlabel="complaints that hold the word, of 3,000", ylabel="part of words that are right", ylim=(0.3, 1.03))
axis.legend(fontsize=9, loc="lower right")

# %%
# One complaint is enough for the model without privacy to get most words right: from its weights, one can see what a
# single person wrote. The private ones know nothing of words that one, two or three people wrote. They guess. At
# epsilon 3, it takes some ten complaints for a word to be known, at 1 some thirty, and at 0.3 a hundred. That is no
# weakness of the mechanism. It is the promise, seen from the inside: what few wrote cannot be told from the model.
#
# It also says what is lost. Products of which few complain are routed as if they had no number. If that matters,
# epsilon has to be larger, or complaints more; a better model cannot help.
#
# To take away: hash words, or take a public list of them. Scale rows to length 1. Take gradient descent for many
# columns, and as many columns as time admits.
#
# See :ref:`gradient_descent`, and :ref:`preprocessing` for what else is public.

plt.show()

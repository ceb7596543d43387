"""The default student of PATE: regression on noisy votes.

The released votes hold more information than the winning labels. A student that is fitted to the winning labels treats
a label that won by noise like one that won clearly. A regression on the votes averages the noise out. Its smoothness is
chosen by cross-validation on the release, which is post-processing.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

Array = NDArray[np.float64]

#: Number of rows of the approximation of the kernel.
MOST_COMPONENTS = 300

#: Width of the kernel, on standardised rows: this over the number of columns.
GAMMA = 0.5

# A larger penalty would leave only the mean to distinguish classes, which very noisy rows seem to favour.
_ALPHAS = tuple(np.logspace(-2, 1.5, 13).tolist())

# Standardised entries beyond this have a kernel of 0. Larger ones could overflow.
_FAR = 1e6


def shrunk_mean(parts: Array, noise: float) -> Array:
    """Return the mean part of each class, shrunk towards 0 by its noise (James and Stein 1961)."""
    # Without shrinkage, the class with the largest mean noise would win everywhere.
    if len(parts) == 0:
        return np.zeros(parts.shape[1])
    mean = parts.mean(axis=0)
    square, spread = float(mean @ mean), (len(mean) - 1) * noise**2 / len(parts)
    return np.asarray(mean * (1 - spread / square if square > spread else 0.0))


class VoteRegressor(ClassifierMixin, BaseEstimator):
    """Kernel ridge regression on parts of votes, and the class with the largest of them."""

    def fit(self, X: Array, parts: Array, noise: float, rows: Array, classes: NDArray) -> Self:
        """Fit the student to released parts of votes, minus their mean over classes. There may be no labelled rows."""
        # All public `rows` give the scale of the columns. `noise` is the standard deviation of the noise in one part.
        self.classes_ = classes
        self.n_features_in_ = rows.shape[1]
        self.mean_ = shrunk_mean(parts, noise)
        self.regressor_: Any = None
        if len(X) > 1:
            scaler = StandardScaler().fit(rows)
            kernel = Nystroem(gamma=GAMMA / X.shape[1], n_components=min(len(X), MOST_COMPONENTS), random_state=0)
            model = make_pipeline(kernel, RidgeCV(_ALPHAS)).fit(scaler.transform(X), parts - parts.mean(axis=0))
            self.regressor_, self.scaler_ = model, scaler
        return self

    def predict_proba(self, X: Array) -> Array:
        """Return the expected parts of the votes, of shape (n_samples, n_classes), positive and with sum 1."""
        expected = np.zeros((len(X), 1))
        if self.regressor_ is not None:
            expected = self.regressor_.predict(np.clip(self.scaler_.transform(X), -_FAR, _FAR))
        parts = np.maximum(expected + self.mean_ + 1 / len(self.classes_), 0.0)
        # The largest part is at least the average.
        return np.asarray(parts / parts.sum(axis=1, keepdims=True))

    def predict(self, X: Array) -> NDArray:
        """Return the label with the largest expected part."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

"""Scores of fitted models, with the same code for every library."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import roc_auc_score

LEAST_PROBABILITY = 1e-6
N_CALIBRATION_BINS = 15

#: Whether more of a metric is better.
INCREASING = {
    "accuracy": True,
    "auc": True,
    "log_loss": False,
    "calibration": False,
    "calibration_by_chance": False,
    "r2": True,
    "inertia": False,
    "captured": True,
    "mean_error": False,
    "scale_error": False,
}


def aligned(probabilities, found, n_classes):
    """Return columns for all labels, if a model only knows the labels that it has found."""
    full = np.zeros((len(probabilities), n_classes))
    full[:, np.asarray(found, dtype=int)] = probabilities
    return full


def classification(y, labels, probabilities):
    """Return accuracy, the AUC of each label against the rest weighted by frequency, and the log loss of clipped
    probabilities.
    """
    scores = {"accuracy": float(np.mean(labels == y))}
    if probabilities is None:
        return scores
    probabilities = np.clip(np.nan_to_num(probabilities), LEAST_PROBABILITY, None)
    probabilities = np.clip(probabilities / probabilities.sum(axis=1, keepdims=True), LEAST_PROBABILITY, 1)
    # Not the plain mean: on Nursery, a label that occurs once in the test rows would decide it.
    present, counts = (np.array([1]), [1]) if probabilities.shape[1] == 2 else np.unique(y, return_counts=True)
    areas = [roc_auc_score(y == label, probabilities[:, label]) for label in present]
    scores["auc"] = float(np.average(areas, weights=counts))
    scores["log_loss"] = float(-np.mean(np.log(probabilities[np.arange(len(y)), y])))
    return scores | calibration(y, probabilities)


def calibration(y, probabilities):
    """Return the expected calibration error over bins with equally many rows: of the probability of the second of two
    labels, or of the most probable label. The second number is the mean error of calibrated probabilities.
    """
    if probabilities.shape[1] == 2:
        stated, hits = probabilities[:, 1], y == 1
    else:
        stated, hits = probabilities.max(axis=1), probabilities.argmax(axis=1) == y
    error = chance = 0.0
    for rows in np.array_split(np.argsort(stated, kind="stable"), min(N_CALIBRATION_BINS, len(y))):
        error += abs(np.sum(hits[rows] - stated[rows]))
        chance += np.sqrt(2 / np.pi * np.sum(stated[rows] * (1 - stated[rows])))
    return {"calibration": float(error / len(y)), "calibration_by_chance": float(chance / len(y))}


def regression(y, predictions):
    """Return R² of predictions that are clipped to the range of the target, [0, 1]."""
    predictions = np.clip(np.nan_to_num(np.ravel(predictions)), 0, 1)
    return {"r2": float(1 - np.sum((y - predictions) ** 2) / np.sum((y - y.mean()) ** 2))}


def clustering(X, centres):
    """Return the sum of squared distances to the nearest centre."""
    centres = np.nan_to_num(centres)
    distances = np.sum(X**2, axis=1)[:, None] - 2 * X @ centres.T + np.sum(centres**2, axis=1)
    return {"inertia": float(np.sum(np.maximum(distances.min(axis=1), 0)))}


def components(X, directions):
    """Return the variance of the rows in the span of the directions, which need not be orthonormal."""
    basis = np.linalg.svd(np.nan_to_num(directions), full_matrices=False)[2]
    return {"captured": float(np.var(X @ basis.T, axis=0).sum())}


def scaling(X, mean, scale):
    """Return root mean squared errors of means in standard deviations, and of logarithms of standard deviations."""
    exact = X.std(axis=0)
    ratios = np.log(np.maximum(scale, 1e-6) / exact)
    return {
        "mean_error": float(np.sqrt(np.mean(((mean - X.mean(axis=0)) / exact) ** 2))),
        "scale_error": float(np.sqrt(np.mean(ratios**2))),
    }

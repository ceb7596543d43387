"""Optimizers, which turn noisy gradients into weights. All of this is post-processing."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ._gradients import Layout, project

Array = NDArray[np.float64]

SOLVERS = ("adam", "sgd")

# The usual constants of Adam.
_BETA_1, _BETA_2, _EPSILON = 0.9, 0.999, 1e-8

#: Adam's learning rate times the root of the number of steps, by the activation of the outputs. It is about the
#: distance that noise alone moves a weight, as a multiple of the standard deviation of the initial weights of its
#: layer. Therefore a step has the same effect in layers of every width.
ADAM_WANDER = 3.0

# If the noise of all steps, per record and clipping bound, adds up to this, squared errors take half such steps.
_HALF_AT = 4.0

#: SGD's learning rate without noise, and the distance that noise alone may move a weight in all steps together.
SGD_RATE = 0.5
SGD_WANDER = 0.05

#: Initial weights of the output layer, as a multiple of those of other layers, to start near the middle.
OUTPUT_SCALE = 0.1


def initial_weights(layout: Layout, normals: Array) -> Array:
    """Scale standard normal numbers to initial weights."""
    # The variance of weights is one over the number of inputs, before the scale of the output layer. Intercepts are 0.
    weights = normals.copy()
    layers = layout.parts(weights)
    for layer in layers:
        layer /= math.sqrt(len(layer) - 1)
        layer[-1] = 0.0
    layers[-1] *= OUTPUT_SCALE
    return weights


def adam_rate(noise: float, n_steps: int, labels: bool) -> float:
    """Return the default learning rate of Adam, from public numbers. For targets, it decreases with the noise."""
    rate = ADAM_WANDER / math.sqrt(n_steps)
    return rate if labels else rate / (1 + noise * math.sqrt(n_steps) / _HALF_AT)


def sgd_rate(noise: float, n_steps: int) -> float:
    """Return the default learning rate of SGD, from public numbers. It decreases with the noise in a mean gradient."""
    wander = noise * math.sqrt(n_steps)
    return SGD_RATE if wander * SGD_RATE <= SGD_WANDER else SGD_WANDER / wander


@dataclass(frozen=True)
class Descent:
    """Hold the rule that turns gradients into steps. All values are public."""

    # Adam adds the gradient of the L2 penalty on weights to that of the loss, and its steps are bounded. SGD shrinks
    # weights after the step. Unlike a gradient step, this proximal step of the penalty converges for all rates.

    solver: str
    learning_rate: float  # For Adam, a multiple of one over the root of a layer's inputs.
    momentum: float
    alpha: float
    average: float  # Share of the last iterates whose average is the result; 0 for the last iterate.
    decay: bool = False  # Whether Adam's steps get shorter.

    def start(self, layout: Layout, weights: Array, n_steps: int) -> _Course:
        """Start at a point, before `n_steps` steps."""
        return _Course(self, layout, weights, n_steps)


class _Course:
    """The state of a descent."""

    def __init__(self, rule: Descent, layout: Layout, weights: Array, n_steps: int) -> None:
        self._rule, self.weights, self._n_steps, self._taken = rule, weights, n_steps, 0
        self._averaged = max(1, math.ceil(rule.average * n_steps - 1e-9))
        self._sum = np.zeros_like(weights)
        self._first = np.zeros_like(weights)
        self._second = np.zeros_like(weights)
        self._spare = np.empty_like(weights)
        self._rates = np.full_like(weights, rule.learning_rate)
        # For SGD, momentum makes a step of the loss longer. The penalty is scaled alike.
        shrinkage = 1 / (1 + rule.learning_rate * rule.alpha / (1 - rule.momentum))
        self._penalty = np.full_like(weights, rule.alpha)
        self._shrinkage = np.full_like(weights, shrinkage)
        parts = zip(*map(layout.parts, (self._penalty, self._shrinkage, self._rates)), strict=True)
        for penalty, shrunk, rates in parts:
            penalty[-1], shrunk[-1] = 0.0, 1.0
            if rule.solver == "adam":
                rates /= math.sqrt(len(rates) - 1)

    def step(self, gradient: Array) -> None:
        """Take a step along a released gradient, which is overwritten. The step ends in the box of `project`."""
        self._taken += 1
        spare = self._spare
        if self._rule.solver == "adam":
            if self._rule.alpha:
                np.multiply(self._penalty, self.weights, out=spare)
                gradient += spare
            first, second, t = self._first, self._second, self._taken
            first *= _BETA_1
            second *= _BETA_2
            np.multiply(gradient, gradient, out=spare)
            spare *= 1 - _BETA_2
            second += spare
            gradient *= 1 - _BETA_1
            first += gradient
            np.multiply(second, 1 / (1 - _BETA_2**t), out=spare)
            np.sqrt(spare, out=spare)
            spare += _EPSILON
            np.divide(first, spare, out=spare)
            # All steps of Adam have one size, which would be too large near the end for targets.
            left = 1 - (t - 1) / self._n_steps if self._rule.decay else 1.0
            spare *= left**2 / (1 - _BETA_1**t)
        else:
            self._first *= self._rule.momentum
            self._first += gradient
            np.copyto(spare, self._first)
        spare *= self._rates
        self.weights -= spare
        if self._rule.alpha and self._rule.solver == "sgd":
            self.weights *= self._shrinkage
        project(self.weights)
        if self._taken > self._n_steps - self._averaged:
            self._sum += self.weights

    def result(self) -> Array:
        """Return the average of the last iterates, or the current iterate before averaging begins."""
        summed = self._taken - (self._n_steps - self._averaged)
        return self._sum / summed if summed > 0 else self.weights.copy()

r"""Multilayer perceptrons, trained by noisy gradient steps (Abadi et al. 2016).

Each step releases the sum of clipped gradients over a Poisson sample of the records, with Gaussian noise (see
`GradientSums` for the contribution of a record). The number of records is released first, unless it is declared. The
weights at the start of a step are functions of earlier releases. Therefore Adam, averages of iterates and the
network itself are post-processing.
"""

from __future__ import annotations

import math
import numbers
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..checks.data import of_valid_rows
from ..checks.params import By, Checked, Or, Real, Rules, check_integer, is_list, shown
from ..mechanisms import BitStream, SampledGaussianMechanism, rounded_normal
from ..parts.arrays import rowwise
from ..release.estimator import PrivateEstimator, Shape
from ..release.session import CallbackSupportMixin, PrivacyGuarantee, ReleaseSession, Theorem
from ..sensitivity import clip_rows, step_of, truncate
from ..solvers.calibration import Calibration, Line
from ..solvers.linear_descent import GRADIENTS, SCHEDULE_RULES, SamplingSchedule, positive_delta
from ..solvers.losses import NetworkLoss
from ..solvers.regularised import Scaling
from ..solvers.target_range import Located, TargetRange
from ._gradients import (
    BLOCK_ROWS,
    MOST_LAYERS,
    MOST_UNITS,
    GradientSums,
    Layout,
    Outputs,
    project,
    square_bits,
    sums_of,
)

Array = NDArray[np.float64]

# The usual constants of Adam.
_BETA_1, _BETA_2, _EPSILON = 0.9, 0.999, 1e-8

#: Adam's learning rate times the root of the number of steps, by the activation of the outputs. It is about the
#: distance that noise alone moves a weight, as a multiple of the standard deviation of the initial weights of its
#: layer. Therefore a step has the same effect in layers of every width.
ADAM_WANDER = 3.0

# If the noise of all steps, per record and clipping bound, adds up to this, squared errors take half such steps.
_HALF_AT = 4.0

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


class Adam:
    """Adam's iterates, from released gradients. All of it is public."""

    def __init__(
        self,
        layout: Layout,
        weights: Array,
        n_steps: int,
        *,
        learning_rate: float,  # A multiple of one over the root of a layer's inputs.
        average: float,  # Share of the last iterates whose average is the result; 0 for the last iterate.
        decays: bool,  # Whether steps get shorter.
    ) -> None:
        self.weights = weights
        self._n_steps, self._n_taken, self._decays = n_steps, 0, decays
        self._n_averaged = max(1, math.ceil(average * n_steps - 1e-9))
        self._sum = np.zeros_like(weights)
        self._first_moment = np.zeros_like(weights)
        self._second_moment = np.zeros_like(weights)
        self._buffer = np.empty_like(weights)
        self._rates = np.full_like(weights, learning_rate)
        for rates in layout.parts(self._rates):
            rates /= math.sqrt(len(rates) - 1)

    def step(self, gradient: Array) -> None:
        """Take a step along a released gradient, which is overwritten. The step ends in the box of `project`."""
        self._n_taken += 1
        buffer, first, second, t = self._buffer, self._first_moment, self._second_moment, self._n_taken
        first *= _BETA_1
        second *= _BETA_2
        np.multiply(gradient, gradient, out=buffer)
        buffer *= 1 - _BETA_2
        second += buffer
        gradient *= 1 - _BETA_1
        first += gradient
        np.multiply(second, 1 / (1 - _BETA_2**t), out=buffer)
        np.sqrt(buffer, out=buffer)
        buffer += _EPSILON
        np.divide(first, buffer, out=buffer)
        # All steps of Adam have one size, which would be too large near the end for targets.
        left = 1 - (t - 1) / self._n_steps if self._decays else 1.0
        buffer *= left**2 / (1 - _BETA_1**t)
        buffer *= self._rates
        self.weights -= buffer
        project(self.weights)
        if t > self._n_steps - self._n_averaged:
            self._sum += self.weights

    def result(self) -> Array:
        """Return the average of the last iterates, or the current iterate before averaging begins."""
        n_summed = self._n_taken - (self._n_steps - self._n_averaged)
        return self._sum / n_summed if n_summed > 0 else self.weights.copy()


#: Defaults of `fit`. Larger samples and more steps help little, and take time. So many records in a sample are enough
#: for any number of records.
RATE = 0.1
ENOUGH_RECORDS = 16384
STEPS = 1000

_THEOREM = Theorem("Neural networks", 1)

# Bits of an initial weight.
_NORMAL_BITS = 30


def _hidden(value: Any) -> tuple[int, ...]:
    sizes = [value] if isinstance(value, numbers.Integral) else value
    if not is_list(sizes):
        raise TypeError(f"hidden_layer_sizes must be integers, got {shown(value)}")
    if len(sizes) > MOST_LAYERS:
        raise ValueError(f"hidden_layer_sizes must be at most {MOST_LAYERS} layers, got {len(sizes)}")
    checked = tuple(check_integer(size, "hidden_layer_sizes", least=1) for size in sizes)
    if max(checked, default=0) > MOST_UNITS:
        raise ValueError(f"hidden_layer_sizes must be at most {MOST_UNITS}, got {shown(value)}")
    return checked


def scaled_rows(X: NDArray, data_norm: float) -> tuple[Array, float]:
    """Clip rows, scale them so that an average feature has size 1, and round them to multiples of a step."""
    # The bound on the norm becomes the square root of the number of features. A column of ones is appended. The step
    # is returned, and is a power of two.
    n_columns = X.shape[1] + 1
    scale = input_scale(X.shape[1], data_norm)
    step = step_of(math.sqrt(n_columns), square_bits(n_columns))
    # Entries may underflow. A warning of NumPy would depend on the data.
    with np.errstate(all="ignore"):
        rows = clip_rows(X, data_norm, 1.0).array
        for start in range(0, len(rows), BLOCK_ROWS):
            block = rows[start : start + BLOCK_ROWS, :-1]
            block *= scale
            truncate(block, step)
    return rows, step


def input_scale(n_features: int, data_norm: float) -> float:
    """Return the public factor that rows are multiplied by."""
    return math.sqrt(n_features) / data_norm


def _postprocess_weights(
    weights: Array, layout: Layout, scale: float, targets: Scaling | None, lines: Sequence[Line] = ()
) -> tuple[list[Array], list[Array]]:
    """Return weights and intercepts for unscaled rows and targets. Outputs may have a final linear map."""
    layers = layout.parts(weights)
    coefs, intercepts = [layer[:-1].copy() for layer in layers], [layer[-1].copy() for layer in layers]
    coefs[0] *= scale
    for j, line in enumerate(lines):
        coefs[-1][:, j] *= line.slope
        intercepts[-1][j] = line.slope * intercepts[-1][j] + line.shift
    if targets is not None:
        coefs[-1] *= targets.half
        intercepts[-1] *= targets.half
        intercepts[-1] += targets.centre
    return coefs, intercepts


def _gradient_sums(data_norm: float, fixed: tuple[Any, ...], X: NDArray, targets: NDArray) -> GradientSums:
    rows, row_step = scaled_rows(X, data_norm)
    return GradientSums(rows, row_step, targets, *fixed)


def initial_normals(size: int, stream: BitStream) -> Array:
    """Draw the public standard normal numbers for initial weights."""
    return rounded_normal(2.0**_NORMAL_BITS, size, stream).astype(np.float64) * 2.0**-_NORMAL_BITS


@dataclass(frozen=True, eq=False)
class Design:
    """The public facts about a network, besides its parameters."""

    loss: NetworkLoss
    layout: Layout
    schedule: SamplingSchedule
    max_norm: float
    target_range: TargetRange | None
    last: Calibration | None


class PrivateNetwork(CallbackSupportMixin, PrivateEstimator, BaseEstimator):
    """Base of both estimators: parameters, the descent, and the forward pass."""

    _parameter_rules: ClassVar[Rules] = {
        **SCHEDULE_RULES,
        "hidden_layer_sizes": By(_hidden),
        "delta": By(positive_delta),
        "max_grad_norm": Or("auto", Real(1e-6, 1e6)),
        "learning_rate_init": Or("auto", Real(most=1e6)),
        "average": Real(most=1.0, zero=True),
    }
    _counts_outside = ("entries", "target")
    _fixes_cost = True
    _composes_before = True
    _takes_parts = True
    _released = frozenset({"coefs_", "intercepts_"})
    _public = frozenset({"n_layers_", "n_outputs_", "out_activation_"})

    _auto_grad_norm: float

    def _check_together(self, parameters: Checked) -> None:
        self._schedule_of(parameters)

    @staticmethod
    def _schedule_of(parameters: Checked) -> SamplingSchedule:
        n = parameters.expected_n
        return SamplingSchedule.of(parameters, RATE if n is None else min(RATE, ENOUGH_RECORDS / n), STEPS)

    @abstractmethod
    def _loss_of(self, parameters: Checked, shape: Shape) -> NetworkLoss:
        """Return the loss for a number of classes or targets."""

    def _plan(self, parameters: Checked, shape: Shape) -> tuple[PrivacyGuarantee, Design]:
        loss, schedule = self._loss_of(parameters, shape), self._schedule_of(parameters)
        layout = Layout((shape.n_features, *parameters.hidden_layer_sizes, loss.outputs))
        norm = self._auto_grad_norm if parameters.max_grad_norm == "auto" else parameters.max_grad_norm
        target_range, last = self._other_releases(parameters, loss)
        design = Design(loss, layout, schedule, norm, target_range, last)
        before = None if target_range is None else target_range.pairs
        after = None if last is None else (last.release, last.event)
        budget = parameters.epsilon, parameters.delta
        return schedule.plan(*budget, norm, layout.size, _THEOREM, before, after, parameters.share_before), design

    def _other_releases(self, parameters: Checked, loss: NetworkLoss) -> tuple[TargetRange | None, Calibration | None]:
        """Return the plans of the releases before and after the steps."""
        return None, None

    def _descend(
        self,
        X: NDArray,
        targets: NDArray,
        parameters: Checked,
        design: Design,
        session: ReleaseSession,
        attributes: dict[str, Any],
        located: Located | None = None,
    ) -> dict[str, Any]:
        """Carry out the plan, and return the fitted attributes."""
        loss, layout, schedule = design.loss, design.layout, design.schedule
        mechanism = session.mechanism(GRADIENTS)
        assert isinstance(mechanism, SampledGaussianMechanism)
        start = initial_weights(layout, initial_normals(layout.size, session.stream("initial weights")))
        bounds = None
        if located is not None:
            bounds = located.targets
            layout.parts(start)[-1][-1] = located.mean_with()
        fixed = layout, loss, design.max_norm, mechanism.step
        sums = sums_of(partial(_gradient_sums, parameters.data_norm, fixed), X, targets)
        share = 1 / (schedule.rate * schedule.records(session, sums.n_rows, located))
        rate, has_labels = parameters.learning_rate_init, loss.out_activation != "identity"
        if rate == "auto":
            rate = adam_rate(mechanism.scale * share / design.max_norm, schedule.n_steps, has_labels)
        descent = Adam(
            layout,
            start,
            schedule.n_steps,
            learning_rate=rate,
            average=parameters.average,
            decays=not has_labels,
        )
        scale = input_scale(X.shape[1], parameters.data_norm)

        def fitted(lines: Sequence[Line] = ()) -> dict[str, Any]:
            coefs, intercepts = _postprocess_weights(descent.result(), layout, scale, bounds, lines)
            return {
                **attributes,
                "coefs_": coefs,
                "intercepts_": intercepts,
                "n_layers_": len(layout.sizes),
                "n_outputs_": loss.outputs,
                "out_activation_": loss.out_activation,
                "privacy_": session.guarantee,
            }

        total = np.empty(layout.size)
        for sample, release in session.steps(GRADIENTS, sums.n_rows, fitted):
            sums.at(descent.weights)
            gradient = release(sums.sum(sample, total))
            gradient *= share
            descent.step(gradient)
        if design.last is None:
            return fitted()
        coefs, intercepts = _postprocess_weights(descent.result(), layout, scale, None)
        outputs = rowwise(Outputs(coefs, intercepts), X)
        return fitted(design.last.lines(session, outputs, targets))

    @property
    def _map(self) -> Outputs:
        check_is_fitted(self, "coefs_")
        return Outputs(self.coefs_, self.intercepts_)

    def _outputs(self, X: Any) -> Array:
        outputs: Array = of_valid_rows(self._map, self, X)
        return outputs

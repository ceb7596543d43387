"""Multilayer perceptrons for labels and for targets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin

from ..checks.data import of_valid_rows
from ..checks.params import Checked
from ..parts.arrays import rowwise
from ..release.estimator import LabelsMixin, ManyTargetsMixin, Records, Shape
from ..release.session import ReleaseSession
from ..solvers.calibration import Calibration, powers_of_probabilities
from ..solvers.linear_descent import LogOdds
from ..solvers.losses import MOST_CLASSES, Huber, LogLoss, NetworkLoss, SoftmaxLogLoss
from ..solvers.regularised import Scaling
from ..solvers.target_range import TargetRange
from ._network import Design, PrivateNetwork

Array = NDArray[np.float64]

#: Default clipping bounds. If labels are uncertain, clipping makes the outputs too extreme, because at the end the
#: gradients of the rare label are clipped, and those of the common label are not. A smaller norm has a larger effect.
#: Probabilities are corrected for it.
LABEL_GRAD_NORM, TARGET_GRAD_NORM = 2.0, 1.0

# Clipping bound of residuals, as a multiple of half the width of the bounds of the targets.
_MOST_RESIDUAL = 4.0


class DPMLPClassifier(LogOdds, ClassifierMixin, LabelsMixin, PrivateNetwork):
    """Differentially private multilayer perceptron for classification.

    A network of dense layers with tanh units is trained on the log loss by noisy gradient steps. It needs no tuning,
    because public rules choose steps, batches and learning rates.

    Parameters
    ----------
    hidden_layer_sizes : int or tuple of int, default=(64,)
        Numbers of units of the hidden layers, of which there are at most 100. ``()`` is a linear model.
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=1e-5
        Privacy budget of one fit, in (0, 1), far below one over the number of records.
    schema : Schema, default=None
        Declaration of the columns of X, in place of `data_norm` and `classes`. Explicit parameters override it.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, noise and samples are cryptographically secure. Other values are for tests only, and give no privacy.
    max_grad_norm : float or "auto", default="auto"
        Clipping bound: the largest L2 norm of the contribution of a record to a gradient. A larger norm means more
        noise. ``"auto"`` is 2, for inputs that are scaled by `data_norm`.
    batch_size : int or float, default=None
        A float is the probability that a record is in the sample of a step. An int is the expected size of the sample,
        and needs `expected_n`. If None, the probability is 0.1, or 16,384 of `expected_n` records if that is less.
    n_steps : int, default=None
        Number of gradient steps, at most 1e9. If None, it is 1000, unless `epochs` is set.
    epochs : float, default=None
        Number of steps in another unit: passes over the data, in place of `n_steps`.
    expected_n : float, default=None
        Publicly known, approximate number of records. If None, 2 % of the budget are spent on a private count.
    learning_rate_init : float or "auto", default="auto"
        Learning rate of Adam, as a multiple of the standard deviation of the initial weights of a layer. ``"auto"``
        takes formulas of public numbers.
    average : float, default=0.5
        Fraction of the last iterates whose average is the result. If 0, the result is the last iterate.
    data_norm : float
        Public clipping bound: the largest L2 norm of a row of X. Longer rows are scaled down to it. A smaller norm
        means less noise and more clipping.
    classes : array-like, default=None
        Public label set. Other rows are left out. If None, the labels in `y` count as public, with a warning.
    class_weight : dict or "balanced", default=None
        Public weights of the labels. ``"balanced"`` computes them from 4 % of the budget (see :ref:`weights`).
    max_weight : float, default=None
        Public upper bound on `sample_weight` in `fit`. Larger weights count as `max_weight`. Required with weights.
    verbose : int, default=0
        Lines of progress to print: 0 for none, 1 for about ten in each phase (see :doc:`/user_guide/progress`).

    Attributes
    ----------
    coefs_ : list of ndarray of shape (n_inputs, n_outputs)
        Private weights of each layer, for features in their original units.
    intercepts_ : list of ndarray of shape (n_outputs,)
        Private intercepts of each layer.
    classes_ : ndarray of shape (n_classes,)
        Label set, sorted.
    class_weight_ : ndarray of shape (n_classes,)
        Weights of the labels, at most 1, from the released counts. Only with ``class_weight="balanced"``.
    n_layers_ : int
        Number of layers, input and output included.
    n_outputs_ : int
        Number of outputs: 1 for two classes.
    out_activation_ : str
        ``"logistic"`` for two classes, ``"softmax"`` for more.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit, with its mechanisms, sensitivities and noise scales.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    DPMLPRegressor : Regression by the same method.
    skdp.linear_model.ObjPertLogReg : A linear model. It is often as accurate at small budgets.

    Notes
    -----
    **Privacy.** In each step, a record is in the sample with the same probability, independently of all others. It adds
    a gradient of norm at most `max_grad_norm` to a sum, which is released with Gaussian noise. The noise is calibrated
    to all steps together, by the privacy loss distribution of sampled Gaussian noise (:ref:`neural networks, theorem 1
    <neural-network-theorem-1>`). Weights are functions of earlier releases. Initial weights are random and public.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPMLPClassifier, Schema
    >>> k = np.arange(5000)
    >>> age, smokes = 18 + k % 72, np.where(k % 5 < 2, "yes", "no")
    >>> ill = age + 16 * (smokes == "yes") + 20 * np.sin(k) > 60
    >>> columns = {"age": (18, 90), "smokes": ["no", "yes"]}
    >>> schema = Schema(columns, target=[False, True])
    >>> model = DPMLPClassifier(
    ...     epsilon=1, delta=1e-6, schema=schema, random_state=0
    ... )
    >>> model = model.fit({"age": age, "smokes": smokes}, ill)
    >>> people = {"age": [40, 60], "smokes": ["no", "yes"]}
    >>> model.predict_proba(people)[:, 1].round(1)
    array([0.1, 0.8])
    """

    _auto_grad_norm = LABEL_GRAD_NORM
    _public = PrivateNetwork._public | {"_power"}

    def __init__(
        self,
        hidden_layer_sizes: Any = (64,),
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        max_grad_norm: float | str = "auto",
        batch_size: float | None = None,
        n_steps: int | None = None,
        epochs: float | None = None,
        expected_n: float | None = None,
        learning_rate_init: float | str = "auto",
        average: float = 0.5,
        data_norm: float | None = None,
        classes: Any = None,
        class_weight: Any = None,
        max_weight: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.max_grad_norm = max_grad_norm
        self.batch_size = batch_size
        self.n_steps = n_steps
        self.epochs = epochs
        self.expected_n = expected_n
        self.learning_rate_init = learning_rate_init
        self.average = average
        self.data_norm = data_norm
        self.classes = classes
        self.class_weight = class_weight
        self.max_weight = max_weight
        self.verbose = verbose

    def _loss_of(self, parameters: Checked, shape: Shape) -> NetworkLoss:
        if shape.n_classes > MOST_CLASSES:
            raise ValueError(f"classes must be at most {MOST_CLASSES}, got {shape.n_classes}")
        return LogLoss() if shape.n_classes == 2 else SoftmaxLogLoss(shape.n_classes)

    def _measure(
        self, session: ReleaseSession, records: Records, parameters: Checked, design: Design
    ) -> dict[str, Any]:
        # A gradient is about as long as the derivative by the outputs times the activations of the last hidden layer.
        loss, n_inputs = design.loss, design.layout.shapes[-1][0]
        longest = design.max_norm / (loss.lipschitz * math.sqrt(n_inputs))
        power = float(powers_of_probabilities(longest, records.shape.n_classes))
        attributes = {"classes_": records.shape.classes, "_power": power}
        return self._descend(records.X, records.y, parameters, design, session, attributes)

    def _label_scores(self, X: Any) -> Array:
        outputs = self._outputs(X)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def _label_codes(self, X: Any) -> NDArray[np.intp]:
        codes: NDArray[np.intp] = of_valid_rows(self._map.codes, self, X)
        return codes

    def _logits(self, X: Any) -> Array:
        return self._label_scores(X) * self._power


class DPMLPRegressor(MultiOutputMixin, RegressorMixin, ManyTargetsMixin, PrivateNetwork):
    """Differentially private multilayer perceptron for regression.

    A network of dense layers with tanh units is trained by noisy gradient steps on squared errors, which are linear
    beyond twice the width of the released range of the targets. It needs no tuning, because public rules choose steps,
    batches and learning rates.

    Parameters
    ----------
    hidden_layer_sizes : int or tuple of int, default=(64,)
        Numbers of units of the hidden layers, of which there are at most 100. ``()`` is a linear model.
    epsilon : float, default=1.0
        Privacy budget of one fit. Must be strictly positive. Smaller values add more noise. ``inf`` gives no privacy.
    delta : float, default=1e-5
        Privacy budget of one fit, in (0, 1), far below one over the number of records.
    schema : Schema, default=None
        Declaration of the columns of X, in place of `bounds_y` and `data_norm`. Explicit parameters override it.
    accountant : BudgetAccountant, default=None
        Accountant that is charged before any noise is drawn. ``clone`` shares it. If None, no charge is recorded.
    random_state : int, RandomState, Generator or None, default=None
        If None, noise and samples are cryptographically secure. Other values are for tests only, and give no privacy.
    max_grad_norm : float or "auto", default="auto"
        Clipping bound: the largest L2 norm of the contribution of a record to a gradient. A larger norm means more
        noise. ``"auto"`` is 1, for inputs that are scaled by `data_norm`, and targets scaled to [-1, 1].
    batch_size : int or float, default=None
        A float is the probability that a record is in the sample of a step. An int is the expected size of the sample,
        and needs `expected_n`. If None, the probability is 0.1, or 16,384 of `expected_n` records if that is less.
    n_steps : int, default=None
        Number of gradient steps, at most 1e9. If None, it is 1000, unless `epochs` is set.
    epochs : float, default=None
        Number of steps in another unit: passes over the data, in place of `n_steps`.
    expected_n : float, default=None
        Publicly known, approximate number of records. If None, it is released with the range of the targets.
    learning_rate_init : float or "auto", default="auto"
        Learning rate of Adam, as a multiple of the standard deviation of the initial weights of a layer. ``"auto"``
        takes formulas of public numbers.
    average : float, default=0.5
        Fraction of the last iterates whose average is the result. If 0, the result is the last iterate.
    bounds_y : tuple (lower, upper)
        Public bounds of the targets: numbers, or one for each target. Targets beyond are clipped, and predictions are
        within. The bounds may be generous (see :ref:`regression`).
    data_norm : float
        Public clipping bound: the largest L2 norm of a row of X. Longer rows are scaled down to it. A smaller norm
        means less noise and more clipping.
    max_weight : float, default=None
        Public upper bound on `sample_weight` in `fit`. Larger weights count as `max_weight`. Required with weights.
    verbose : int, default=0
        Lines of progress to print: 0 for none, 1 for about ten in each phase (see :doc:`/user_guide/progress`).

    Attributes
    ----------
    coefs_ : list of ndarray of shape (n_inputs, n_outputs)
        Private weights of each layer, for features and targets in their original units.
    intercepts_ : list of ndarray of shape (n_outputs,)
        Private intercepts of each layer.
    n_layers_ : int
        Number of layers, input and output included.
    n_outputs_ : int
        Number of targets.
    out_activation_ : str
        ``"identity"``.
    privacy_ : PrivacyGuarantee
        Guarantee of the fit, with its mechanisms, sensitivities and noise scales.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings.

    See Also
    --------
    DPMLPClassifier : Classification by the same method.
    skdp.linear_model.FunctionalMechLinReg : A linear model. It is often as accurate at small budgets.

    Notes
    -----
    **Privacy.** A range of the targets, their mean in it and the number of records are released first
    (:ref:`regression, theorem 1 <regression-theorem-1>`). The steps are as in :class:`DPMLPClassifier` (:ref:`neural
    networks, theorem 1 <neural-network-theorem-1>`). For 2 % of the budget, six noisy sums for each target correct the
    mean and the size of the predictions (:ref:`gradient descent, theorem 2 <gradient-descent-theorem-2>`).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPMLPRegressor, Schema
    >>> k = np.arange(5000)
    >>> age, smokes = 18 + k % 72, np.where(k % 5 < 2, "yes", "no")
    >>> cost = 200 + 10 * age + 500 * (smokes == "yes") + 100 * np.sin(k)
    >>> columns = {"age": (18, 90), "smokes": ["no", "yes"]}
    >>> schema = Schema(columns, target=(0, 3000))
    >>> model = DPMLPRegressor(
    ...     epsilon=1, delta=1e-6, schema=schema, random_state=0
    ... )
    >>> model = model.fit({"age": age, "smokes": smokes}, cost)
    >>> people = {"age": [30, 70], "smokes": ["no", "yes"]}
    >>> model.predict(people).round(-2)
    array([ 500., 1400.])
    """

    _auto_grad_norm = TARGET_GRAD_NORM

    _released = PrivateNetwork._released | {"_range"}
    _public = PrivateNetwork._public | {"_flat"}

    def __init__(
        self,
        hidden_layer_sizes: Any = (64,),
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        schema: Any = None,
        accountant: Any = None,
        random_state: Any = None,
        max_grad_norm: float | str = "auto",
        batch_size: float | None = None,
        n_steps: int | None = None,
        epochs: float | None = None,
        expected_n: float | None = None,
        learning_rate_init: float | str = "auto",
        average: float = 0.5,
        bounds_y: Any = None,
        data_norm: float | None = None,
        max_weight: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.accountant = accountant
        self.random_state = random_state
        self.max_grad_norm = max_grad_norm
        self.batch_size = batch_size
        self.n_steps = n_steps
        self.epochs = epochs
        self.expected_n = expected_n
        self.learning_rate_init = learning_rate_init
        self.average = average
        self.bounds_y = bounds_y
        self.data_norm = data_norm
        self.max_weight = max_weight
        self.verbose = verbose

    def _loss_of(self, parameters: Checked, shape: Shape) -> NetworkLoss:
        n_targets = shape.n_targets or 1
        Scaling.of(parameters.bounds_y, "bounds_y", n_targets, True)
        return Huber(_MOST_RESIDUAL, n_targets)

    def _other_releases(self, parameters: Checked, loss: NetworkLoss) -> tuple[TargetRange, Calibration | None]:
        budget = parameters.epsilon, parameters.delta, loss.outputs
        return TargetRange.of(*budget), Calibration.of(*budget) if parameters.private else None

    def _measure(
        self, session: ReleaseSession, records: Records, parameters: Checked, design: Design
    ) -> dict[str, Any]:
        assert design.target_range is not None
        bounds = Scaling.of(parameters.bounds_y, "bounds_y", design.target_range.n_targets, True)
        located = design.target_range.located(session, records.y, bounds)
        attributes = {"_flat": records.shape.n_targets is None, "_range": located.targets}
        targets = rowwise(located.targets.columns, records.y)
        return self._descend(records.X, targets, parameters, design, session, attributes, located)

    def predict(self, X: Any) -> Array:
        """Return the predicted targets of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, which are not clipped. Predictions are clipped to the released range of the targets.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Predictions.
        """
        outputs = self._outputs(X)
        clipped = self._range.clipped(outputs)
        return clipped[:, 0] if self._flat else clipped

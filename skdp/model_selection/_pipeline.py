"""Pipelines whose private steps share one budget, and whose other steps must not learn from the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from sklearn.pipeline import Pipeline, make_pipeline

from ..accounting import BudgetAccountant
from ..release.session import check_accountant
from ._allocation import Allocation, allocation_of
from ._stateless import check_steps
from ._steps import units_in
from ._tables import schema_of


class PrivatePipeline(Pipeline):
    """A pipeline whose private steps share one budget, and whose other steps must not learn from the data.

    This is a `Pipeline` of scikit-learn. Each fit first checks all steps as `allocate` does, and divides the budget.

    Parameters
    ----------
    steps : list of tuple (name, estimator)
        Steps, as for `Pipeline`. Each fit sets their parameters `epsilon`, `delta` and `accountant`.
    epsilon : float, default=1.0
        Privacy budget of one fit of the whole pipeline. Must be strictly positive.
    delta : float, default=0.0
        Privacy budget of one fit of the whole pipeline, in [0, 1). If 0, all steps are pure epsilon-DP.
    weights : dict of str to float, default=None
        Positive weights of the private steps by name. Other steps have weight 1.
    accountant : BudgetAccountant, default=None
        Accountant that each private step charges. It must admit all steps together before the first step is fitted.
    verbose : bool, default=False
        Whether to print the time that each step takes.

    Attributes
    ----------
    allocation_ : Allocation
        The budget of each private step.

    See Also
    --------
    skdp.make_private_pipeline : Makes such a pipeline without names of steps.
    skdp.allocate : Divides a budget over the steps of any estimator.

    Notes
    -----
    **Privacy.** One fit has the guarantee (epsilon, delta), by the composition of the fits of the private steps
    (:ref:`model selection, theorem 5 <model-selection-theorem-5>`). Steps that learn from the records, such as
    `StandardScaler`, are refused before anything is charged. Functions of your own, for instance in a
    `FunctionTransformer`, must map each row separately. This is not checked.

    Examples
    --------
    >>> from skdp import DPPCA, ObjPertLogReg, make_private_pipeline
    >>> model = make_private_pipeline(
    ...     DPPCA(2, data_norm=3.0), ObjPertLogReg(data_norm=3.0, classes=[0, 1]), epsilon=2.0, delta=1e-6
    ... )
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(n_samples=4000, n_features=5, random_state=0)
    >>> model.fit(X, y).allocation_.total
    Budget(epsilon=2.0, delta=1e-06)
    """

    def __init__(
        self,
        steps: Any,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        weights: Mapping[str, float] | None = None,
        accountant: BudgetAccountant | None = None,
        verbose: bool = False,
    ) -> None:
        # A cache would keep private rows, and return one release several times.
        super().__init__(steps, memory=None, verbose=verbose)
        self.epsilon = epsilon
        self.delta = delta
        self.weights = weights
        self.accountant = accountant

    def __getitem__(self, index: Any) -> Any:
        """Return a step, or a pipeline of several steps."""
        return Pipeline(self.steps)[index]

    def _divide(self) -> None:
        """Refuse steps that learn from the data without a charge, and divide the budget."""
        check_accountant(self.accountant)
        plain = Pipeline(self.steps)
        if self.memory is not None:
            _refuse("memory would keep private rows on disk: leave it at None")
        try:
            check_steps(plain, searched=False)
        except ValueError as error:
            _refuse(str(error))
        schema = schema_of(plain)
        if schema is not None and schema.group is not None and "record" in units_in(plain):
            _refuse(
                "the schema declares groups of records, and a step protects single records: give all private steps the "
                "schema, or rows_per_group"
            )
        self.allocation_: Allocation = allocation_of(
            plain, self.epsilon, self.delta, self.weights, self.accountant, _refuse
        )

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Divide the budget over the private steps, and fit all steps.

        Parameters
        ----------
        X : array-like or table
            Rows that the first step accepts.
        y : array-like of shape (n_samples,), default=None
            Labels or targets.
        **params : dict of str to object
            Parameters of the methods of the steps, as in `Pipeline`.

        Returns
        -------
        self : object
            The fitted pipeline.

        Raises
        ------
        ValueError
            If a step learns from the data without a charge. Nothing is charged then.
        BudgetError
            If the accountant does not admit the whole. Nothing is charged then.
        """
        self._divide()
        return super().fit(X, y, **params)

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit as `fit` does, and return the rows that the last step transformed.

        Parameters
        ----------
        X : array-like or table
            Rows that the first step accepts.
        y : array-like of shape (n_samples,), default=None
            Labels or targets.
        **params : dict of str to object
            Parameters of the methods of the steps, as in `Pipeline`.

        Returns
        -------
        transformed : ndarray of shape (n_samples, n_features_out)
            The transformed rows. They are as sensitive as the rows.
        """
        self._divide()
        return super().fit_transform(X, y, **params)

    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit as `fit` does, and return the predictions of the last step for the rows.

        Parameters
        ----------
        X : array-like or table
            Rows that the first step accepts.
        y : array-like of shape (n_samples,), default=None
            Labels or targets.
        **params : dict of str to object
            Parameters of the methods of the steps, as in `Pipeline`.

        Returns
        -------
        predicted : ndarray of shape (n_samples,)
            Predictions.
        """
        self._divide()
        return super().fit_predict(X, y, **params)


def _refuse(message: str) -> None:
    raise ValueError(f"{message.removesuffix('.')}. Nothing was charged")


def make_private_pipeline(
    *steps: Any,
    epsilon: float = 1.0,
    delta: float = 0.0,
    weights: Mapping[str, float] | None = None,
    accountant: BudgetAccountant | None = None,
    verbose: bool = False,
) -> PrivatePipeline:
    """Make a `PrivatePipeline` whose steps are named after their classes.

    Parameters
    ----------
    *steps : list of estimator
        Steps, in order.
    epsilon : float, default=1.0
        Privacy budget of one fit of the whole pipeline. Must be strictly positive.
    delta : float, default=0.0
        Privacy budget of one fit of the whole pipeline, in [0, 1). If 0, all steps are pure epsilon-DP.
    weights : dict of str to float, default=None
        Positive weights of the private steps by name. Other steps have weight 1.
    accountant : BudgetAccountant, default=None
        Accountant that each private step charges. It must admit all steps together before the first step is fitted.
    verbose : bool, default=False
        Whether to print the time that each step takes.

    Returns
    -------
    pipeline : PrivatePipeline
        The pipeline, not fitted.

    Notes
    -----
    **Privacy.** The guarantee is that of `PrivatePipeline`. Making the pipeline does not use any budget.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skdp import ObjPertLogReg, make_private_pipeline
    >>> model = make_private_pipeline(StandardScaler(), ObjPertLogReg(data_norm=3.0, classes=[0, 1]))
    >>> try:
    ...     model.fit([[0.0], [1.0]], [0, 1])
    ... except ValueError as error:
    ...     print(str(error).partition(",")[0])
    step 'standardscaler'
    """
    named = make_pipeline(*steps).steps
    return PrivatePipeline(named, epsilon=epsilon, delta=delta, weights=weights, accountant=accountant, verbose=verbose)

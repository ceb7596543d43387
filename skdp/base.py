"""What all private estimators share, which is little: a way to state their guarantee before they see data.

Everything else is scikit-learn's (`BaseEstimator` and its mixins) or belongs to the algorithm. Families that share
more, such as linear classifiers, keep it in their own package.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar

import numpy as np

from ._release import PrivacyGuarantee
from .accounting import PrivacyCost
from .exceptions import NotEnoughDataError


def all_or_nothing(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Let a fit that fails leave the estimator as it was.

    Validation notes the number and the names of the columns before the accountant has agreed. An earlier fit stays
    whole, and data that were refused leave no trace.

    Parameters
    ----------
    fit : callable
        A method that fits.

    Returns
    -------
    fit : callable
        The same, all or nothing.
    """

    @wraps(fit)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            # NumPy may have been asked to warn of numbers that underflow, which would tell about the data.
            with np.errstate(all="ignore"):
                return fit(self, *args, **kwargs)
        except NotEnoughDataError:
            # What was released is an outcome, which the estimator keeps.
            raise
        except MemoryError:
            _put_back(self, before)
        except BaseException:
            _put_back(self, before)
            raise
        # NumPy's message says how many rows there are. Outside the handler, so that it is not kept as the context.
        raise MemoryError("there is too little memory for this fit")

    return wrapper


def _put_back(estimator: Any, before: dict[str, Any]) -> None:
    for name in vars(estimator).keys() - before.keys():
        delattr(estimator, name)
    vars(estimator).update(before)


class DPEstimatorMixin(ABC):
    """Mixin of differentially private estimators.

    A subclass has the parameters `epsilon`, `delta`, `accountant` and `random_state`, and after `fit` the attribute
    ``privacy_``, equal to what `privacy_plan` returns. A `fit` or `partial_fit` (in the local model, `fit_reports` or
    `randomize`) that raises leaves the estimator as it was.
    """

    #: Whether records are protected one by one, and their number is public.
    _local: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("fit", "partial_fit", "fit_reports", "randomize"):
            if name in vars(cls):
                setattr(cls, name, all_or_nothing(vars(cls)[name]))

    @abstractmethod
    def privacy_plan(self, *, n_features: int, n_classes: int | None = None) -> PrivacyGuarantee:
        """Return the guarantee that `fit` will give, from public parameters alone.

        Parameters
        ----------
        n_features : int
            Number of columns of X.
        n_classes : int, optional
            Number of labels, for a classifier whose label set is not declared.

        Returns
        -------
        plan : PrivacyGuarantee
            Equal to ``privacy_`` after a fit on such data.
        """

    def _fixed_cost(self) -> PrivacyCost | None:
        """Return what a fit will charge if that is the same for data of every shape, else None."""
        return None

"""What all private estimators share, which is little: a way to state their guarantee before they see data.

Everything else is scikit-learn's (`BaseEstimator` and its mixins) or belongs to the algorithm. Families that share
more, such as linear classifiers, keep it in their own package.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from ._release import PrivacyGuarantee
from .accounting import PrivacyCost


class DPEstimatorMixin(ABC):
    """Mixin of differentially private estimators.

    A subclass has the parameters `epsilon`, `delta`, `accountant` and `random_state`, and after `fit` the attribute
    ``privacy_``, equal to what `privacy_plan` returns.
    """

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

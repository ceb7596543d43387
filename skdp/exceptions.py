"""Exceptions and warnings. Their messages are made of public quantities only."""

from __future__ import annotations

import sys


class BudgetError(RuntimeError):
    """A charge does not fit into what is left of a budget.

    Raised before any noise is drawn and before anything is computed from the data.
    """


class _NoException(type):
    """Leaves Exception out of the order of bases."""

    def mro(cls) -> list[type]:
        return [base for base in super().mro() if base is not Exception]


class _UncaughtBudgetError(BudgetError, metaclass=_NoException):
    """A BudgetError that ``except BudgetError`` catches, and ``except Exception`` does not."""

    # scikit-learn's cross-validation catches every Exception of a fit and goes on with a score of NaN, unless
    # `error_score` is "raise". A search would then compare only the candidates that found budget left, and would only
    # warn of it. This error is raised below such a call alone.


def passing(error: BudgetError) -> BudgetError:
    """Return the error in a form that reaches the user through scikit-learn's cross-validation.

    Parameters
    ----------
    error : BudgetError
        What happened.

    Returns
    -------
    error : BudgetError
        The same, unless it would be turned into a score.
    """
    frame, caught, called = sys._getframe(1), False, ""
    while frame is not None:
        code, place = frame.f_code.co_name, frame.f_globals.get("__name__", "")
        if code in _CATCHERS and place == "sklearn.model_selection._validation":
            # One that is told to raise may be inside another that is not.
            caught |= frame.f_locals.get("error_score", "raise") != "raise"
        if code == "worker" and place == "multiprocessing.pool" and not called.startswith("joblib."):
            # It hands on an Exception, and dies of anything else: the caller would wait for ever.
            return error
        frame, called = frame.f_back, place  # type: ignore[assignment]
    return _UncaughtBudgetError(*error.args) if caught else error


#: scikit-learn's function that fits, scores, and catches.
_CATCHERS = frozenset({"_fit_and_score"})


class ReleaseError(RuntimeError):
    """An estimator asked for a release that its plan does not hold, or asked for one twice."""


class CertificateError(RuntimeError):
    """The solver cannot prove its tolerance in the arithmetic it has; nothing was released, the charge stands.

    It takes far more rows than `tol` is meant for, or a `tol` near its least value with large coefficients.
    """


class PartitionError(RuntimeError):
    """The partitions of a collection changed between two readings, or workers compute with other last bits.

    The message says whether the budget was charged.
    """


class NotEnoughDataError(ValueError):
    """A private release holds too little to go on: an outcome of the mechanism, which was paid for."""


class PrivacyAssumptionWarning(UserWarning):
    """The guarantee rests on an assumption that the user has not stated."""


class BudgetWarning(UserWarning):
    """A charge made the rest of a budget much smaller than its epsilon suggests. It was admitted, and stands."""


class SeededNoiseWarning(UserWarning):
    """Noise comes from a seed while a budget is being charged: who knows the seed can remove the noise."""


class ResolutionWarning(UserWarning):
    """Released values show that a public grid may be too coarse for the data, because its bounds are too wide."""


class SchemaMismatchWarning(UserWarning):
    """Released counts show that hardly a record has a value that was declared, such as a label or a category."""


class LedgerError(OSError):
    """A ledger's file is missing, damaged, newer than this library, locked or not writable. Nothing was charged."""

"""Exceptions and warnings. Their messages consist of public quantities only."""

from __future__ import annotations

from traceback import walk_stack


class BudgetError(RuntimeError):
    """Raised when a charge exceeds the remaining budget.

    It is raised before any noise is drawn and before anything is computed from the data.
    """


class _NoException(type):
    """Leave Exception out of the order of bases."""

    def mro(cls) -> list[type]:
        return [base for base in super().mro() if base is not Exception]


class _UncaughtBudgetError(BudgetError, metaclass=_NoException):
    """A BudgetError that ``except BudgetError`` catches, and ``except Exception`` does not."""

    # scikit-learn's cross-validation catches every Exception of a fit and continues with a score of NaN. A search would
    # then compare only the candidates that were admitted, and would only warn about it. This error is raised only in
    # such a call.


def passing(error: BudgetError) -> BudgetError:
    """Return the error in a form that reaches the user through scikit-learn's cross-validation.

    Parameters
    ----------
    error : BudgetError
        Error of a charge.

    Returns
    -------
    error : BudgetError
        The same error, unless cross-validation may convert it to a score.
    """
    functions = [(frame.f_globals.get("__name__", ""), frame.f_code.co_name) for frame, _ in walk_stack(None)]
    callees = ["", *(module for module, _ in functions)]
    for function, callee in zip(functions, callees, strict=False):
        # Such a worker passes on an Exception, but never returns after anything else.
        if function == ("multiprocessing.pool", "worker") and not callee.startswith("joblib."):
            return error
    return _UncaughtBudgetError(*error.args) if _CATCHER in functions else error


#: scikit-learn's function that fits, scores, and catches errors.
_CATCHER = ("sklearn.model_selection._validation", "_fit_and_score")


class ReleaseError(RuntimeError):
    """Raised when an estimator requests a release that is not in its plan, or requests a release twice."""


class CertificateError(RuntimeError):
    """Raised when the solver cannot certify its tolerance. Nothing was released, but the budget is charged.

    It needs far more rows than `tol` is meant for, or a `tol` near its minimum and large coefficients.
    """


class PartitionError(RuntimeError):
    """Raised when partitions of a collection change between two readings, or when the last bits of workers differ.

    The message states whether the budget was charged.
    """


class NotEnoughDataError(ValueError):
    """Raised when a private release has too little information for a model. The budget is charged."""


class PrivacyAssumptionWarning(UserWarning):
    """Raised when the guarantee rests on an assumption that the user has not stated."""


class BudgetWarning(UserWarning):
    """Raised before a charge that uses much more of the budget, or has much more noise, than it has to."""


class SeededNoiseWarning(UserWarning):
    """Raised when noise comes from a seed while a budget is charged, because the noise can then be subtracted."""


class ResolutionWarning(UserWarning):
    """Raised when released values show that a public grid may be too coarse for the data, because of wide bounds."""


class SchemaMismatchWarning(UserWarning):
    """Raised when released numbers show that few records have a declared value, or that bounds are too wide."""


class LedgerError(OSError):
    """Raised when the file of a ledger is missing, damaged, too new, locked or not writable. Nothing was charged."""

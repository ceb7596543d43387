"""Blocks of records, and isolation of code that was not written for privacy.

Each record is drawn into a block independently. Therefore neighbouring data sets differ in one block (see
``sensitivity/_cells.py``). The result of a block must then depend on that block only. Random draws, warnings, printed
text, settings and exceptions of a block's code must not reach another block, or the user.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from operator import itemgetter
from threading import Lock
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs, parallel_config
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from ..checks.data import validate_quietly
from ..checks.params import shown
from ..checks.silence import available_if, parts_of, quieten, silence
from ..mechanisms import BitStream, global_generators
from ..parts.arrays import PartedArray, divided, dumps, folded
from .session import Progress

#: Computes a result from rows, targets and a seed. The targets may be None.
Computation = Callable[[NDArray, NDArray | None, int], Any]

_ONE_AT_A_TIME = Lock()


def block_labels(n_rows: int, n_blocks: int, stream: BitStream) -> NDArray[np.intp]:
    """Draw the block of each row independently, so that neighbouring data sets differ in one block."""
    # The number of rows and the labels are private. The labels are neither stored nor shown.
    return (stream.words(n_rows) % np.uint64(n_blocks)).astype(np.intp)


def block_rows(labels: NDArray[np.intp], n_blocks: int) -> Iterator[NDArray[np.intp]]:
    """Yield the positions of each block's rows in the order of the data, so that other rows do not change the order."""
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels, minlength=n_blocks))
    for b in range(n_blocks):
        yield order[ends[b - 1] if b else 0 : ends[b]]


def block_seeds(n_blocks: int, stream: BitStream) -> list[int]:
    """Draw a seed from 0 to ``2**31 - 1`` for each block."""
    return [int(word) for word in stream.words(n_blocks) >> np.uint64(33)]


#: Limit of the number of blocks, because each block takes time and memory, even without rows.
MOST_BLOCKS = 10**6


def check_inner(
    estimator: Any, name: str, kind: str, reason: str = "which blocks it would charge depends on the data"
) -> None:
    """Refuse an estimator that cannot be cloned and fitted, or that has an accountant of its own."""
    if isinstance(estimator, type) or not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise TypeError(f"{name} must be an instance of a {kind}, got {shown(estimator)}")
    for parameter, value in estimator.get_params(deep=True).items():
        if parameter.split("__")[-1] == "accountant" and value is not None:
            raise ValueError(f"{name} must have no accountant: {reason}")


def prepared(estimator: Any, seed: int) -> Any:
    """Return an unfitted clone for one block: seeded, silent, without callbacks or processes of its own."""
    model = clone(estimator)
    quieten(model)
    for inner in parts_of(model):
        settings: dict[str, Any] = {}
        for name, value in inner.get_params(deep=True).items():
            last = name.split("__")[-1]
            if last == "random_state":
                settings[name] = seed
            elif last == "n_jobs" and value is not None:
                settings[name] = 1
        inner.set_params(**settings)
    return model


@contextmanager
def isolated_process_state(seed: int) -> Iterator[None]:
    """Restore warning filters, settings, logging, output and random generators after the code that runs inside."""
    # Global generators are seeded inside, and continue afterwards as if nothing had been drawn. joblib works in this
    # process and thread, because other workers live on from block to block and have generators and an output of their
    # own.
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("ignore")
        stack.enter_context(np.errstate(all="ignore"))
        stack.enter_context(config_context())
        stack.enter_context(parallel_config(backend="sequential"))
        nowhere = stack.enter_context(open(os.devnull, "w"))
        stack.enter_context(redirect_stdout(nowhere))
        stack.enter_context(redirect_stderr(nowhere))
        stack.callback(logging.disable, logging.root.manager.disable)
        logging.disable(sys.maxsize)
        stack.enter_context(global_generators(seed))
        yield


def attempt(compute: Callable[[], Any], seed: int, state: Callable[[int], Any] = isolated_process_state) -> Any:
    """Return the result of `compute` in a state of the process, or None if it fails. Call it within `silence`."""
    # An exception would be a release. Therefore it is suppressed. An interrupt is raised again without its message.
    try:
        with state(seed):
            return compute()
    except KeyboardInterrupt:
        pass
    except BaseException:
        # The errors of some libraries do not derive from Exception.
        return None
    raise KeyboardInterrupt


def over_blocks(
    compute: Computation,
    X: Any,
    y: Any,
    n_blocks: int,
    labels: NDArray[np.intp],
    seeds: list[int],
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> list[Any]:
    """Compute a value from each block separately, in the order of the blocks. It is None if `compute` fails."""
    # `compute` receives a copy of the block's rows. With several jobs, it must be picklable. `progress` receives the
    # finished blocks: their number is public, and they finish in their order.
    progress = Progress() if progress is None else progress
    if isinstance(X, PartedArray):
        return list(progress.through(_in_parts(compute, X, y, n_blocks, labels, seeds), n_items=n_blocks))

    def blocks() -> Iterator[tuple[NDArray, NDArray | None, int]]:
        for rows, seed in zip(block_rows(labels, n_blocks), seeds, strict=True):
            yield np.array(X[rows], dtype=np.float64, order="C"), None if y is None else y[rows].copy(), seed

    try:
        with silence():
            if effective_n_jobs(n_jobs) == 1:
                return [_one(compute, *block) for block in progress.through(blocks())]
            results = _in_processes((delayed(_one_in_silence)(compute, *block) for block in blocks()), n_jobs)
            return list(progress.through(results))
    except MemoryError:
        pass
    # The message of NumPy holds the number of rows of a block.
    raise MemoryError


def _in_parts(
    compute: Computation, X: PartedArray, y: Any, n_blocks: int, labels: NDArray[np.intp], seeds: list[int]
) -> list[Any]:
    """Bring the rows of each block to one part, and compute there."""
    rows, targets, of_rows = divided(labels, X, y)
    arrays = [rows, of_rows] if targets is None else [rows, of_rows, targets]
    extras = [{"blocks": range(j, n_blocks, rows.parts.n_parts)} for j in range(rows.parts.n_parts)]
    results = folded(partial(_blocks_of_part, _pickled(compute), seeds), arrays, extras)
    return [result for _, result in sorted(results, key=itemgetter(0))]


def _pickled(compute: Computation) -> bytes:
    """Pickle a computation without the seeds of its estimators, which are those of the blocks."""
    if isinstance(compute, partial):

        def unseeded(argument: Any) -> Any:
            return prepared(argument, 0) if isinstance(argument, BaseEstimator) else argument

        named = {name: unseeded(argument) for name, argument in compute.keywords.items()}
        compute = partial(compute.func, *map(unseeded, compute.args), **named)
    return dumps(compute)


def _blocks_of_part(
    sent: bytes,
    seeds: list[int],
    rows: NDArray,
    labels: NDArray[np.intp],
    targets: NDArray | None = None,
    *,
    blocks: range,
) -> list[tuple[int, Any]]:
    import cloudpickle

    compute, results = cloudpickle.loads(sent), []
    for b in blocks:
        in_block = np.flatnonzero(labels == b)
        block = np.array(rows[in_block], dtype=np.float64, order="C"), None if targets is None else targets[in_block]
        # Threads share the state that `isolated_process_state` restores.
        with _ONE_AT_A_TIME:
            results.append((b, _one_in_silence(compute, *block, seeds[b])))
    return results


def check_sent(compute: Computation, name: str, n_jobs: int | None, in_parts: bool) -> None:
    """Refuse a computation that cannot be sent to the machines of the rows, or to other processes, before a charge."""
    if in_parts:
        try:
            _pickled(compute)
        except Exception as error:
            raise ValueError(f"{name} cannot be sent to workers: {type(error).__name__}: {error}") from error
        return
    if effective_n_jobs(n_jobs) == 1:
        return
    try:
        with silence():
            list(_in_processes([delayed(callable)(compute)], n_jobs))
    except Exception as error:
        raise ValueError(f"{name} cannot be sent to another process: {type(error).__name__}: {error}") from error


def _in_processes(calls: Iterable[Any], n_jobs: int | None) -> Iterator[Any]:
    # Jobs are always processes, because threads would share the state that `isolated_process_state` restores.
    return results_of(calls, n_jobs, backend="loky")


def results_of(calls: Iterable[Any], n_jobs: int | None, **options: Any) -> Iterator[Any]:
    """Yield the results of joblib's workers in order, each as soon as it is available."""
    # With another verbosity, joblib would print the number of calls. Rows must not be written to files.
    results = Parallel(n_jobs=n_jobs, verbose=0, max_nbytes=None, return_as="generator", **options)(calls)
    try:
        # `yield from` would close the generator before the end of the silence.
        for result in results:  # noqa: UP028
            yield result
    finally:
        # If the remaining results are not used, joblib warns of their number, which may be private.
        with silence():
            results.close()


def _one(compute: Computation, rows: NDArray, targets: NDArray | None, seed: int) -> Any:
    return attempt(lambda: compute(rows, targets, seed), seed)


def _one_in_silence(compute: Computation, rows: NDArray, targets: NDArray | None, seed: int) -> Any:
    with silence():
        return _one(compute, rows, targets, seed)


def tried(compute: Callable[[], Any], name: str) -> Any:
    """Return the result of `compute` on public rows, or refuse the parameter `name`, before anything is charged."""
    try:
        with silence(), isolated_process_state(0):
            return compute()
    except Exception as error:
        raise ValueError(f"{name} fails on public rows: {type(error).__name__}: {error}") from error


def offers(method: str) -> Callable[[Callable[..., Any]], Any]:
    """Make a method available if the fitted estimator inside, or the one that will be fitted, has it."""

    def check(self: Any) -> bool:
        fitted, parameter = self._inner_names
        inner = vars(self).get(fitted, getattr(self, parameter))
        return hasattr(self._inner_default if inner is None else inner, method)

    return available_if(check)


class InnerPredictions:
    """Methods of an estimator inside, for rows of the columns that were fitted."""

    #: Names of the fitted attribute and of the parameter, and the estimator that a parameter of None stands for.
    _inner_names: ClassVar[tuple[str, str]] = ("estimator_", "estimator")
    _inner_default: ClassVar[Any] = None

    def _ask(self, method: str, X: Any) -> Any:
        check_is_fitted(self, self._inner_names[0])
        # The estimator inside was fitted to doubles.
        rows = validate_quietly(self, X, dtype=np.float64, reset=False)
        return getattr(getattr(self, self._inner_names[0]), method)(rows)

    @offers("predict")
    def predict(self, X: Any) -> NDArray:
        """Return the predictions of the fitted estimator inside.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features. They are not clipped.

        Returns
        -------
        predictions : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Labels or targets.
        """
        return np.asarray(self._ask("predict", X))

    @offers("predict_proba")
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features. They are not clipped.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return np.asarray(self._ask("predict_proba", X))

    @offers("predict_proba")
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return logarithms of class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features. They are not clipped.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


class InnerScores(InnerPredictions):
    """The same, with the scores of classes. The estimator inside must know all classes."""

    @offers("decision_function")
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features. They are not clipped.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            In the shape that the estimator inside returns.
        """
        return np.asarray(self._ask("decision_function", X))

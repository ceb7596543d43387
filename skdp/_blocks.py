"""Blocks of records, and what code that was not written for privacy may do to one of them.

Each record is drawn into a block by itself, so that neighbouring data sets differ in one block (see
``sensitivity/_blocks.py``). What is computed from a block must then depend on that block alone, however it is computed:
nothing that a block's code draws, warns of, prints, configures or raises may reach another block, or the user.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import numpy as np
from joblib import effective_n_jobs, parallel_config
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from ._silence import parts_of, silence, take_off_callbacks
from ._values import shown
from .mechanisms import BitStream, global_generators

#: Computes something from rows, targets and a seed; the targets may be None.
Computation = Callable[[NDArray, NDArray | None, int], Any]


def block_labels(n_rows: int, n_blocks: int, stream: BitStream) -> NDArray[np.intp]:
    """Draw the block of each row, each independently of everything else.

    Neighbouring data sets then differ in one block. The draws are neither stored nor shown.

    Parameters
    ----------
    n_rows : int
        Number of rows. Private.
    n_blocks : int
        Number of blocks. Public.
    stream : BitStream
        Source of bits.

    Returns
    -------
    labels : ndarray of shape (n_rows,)
        Private.
    """
    return (stream.words(n_rows) % np.uint64(n_blocks)).astype(np.intp)


def block_rows(labels: NDArray[np.intp], n_blocks: int) -> Iterator[NDArray[np.intp]]:
    """Go through the blocks.

    Parameters
    ----------
    labels : ndarray of shape (n_rows,)
        The block of each row.
    n_blocks : int
        Number of blocks.

    Yields
    ------
    rows : ndarray of intp
        Positions of the block's rows, in the order of the data: that of the others does not matter to it.
    """
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels, minlength=n_blocks))
    for b in range(n_blocks):
        yield order[ends[b - 1] if b else 0 : ends[b]]


def block_seeds(n_blocks: int, stream: BitStream) -> list[int]:
    """Draw a seed for each block, by its number.

    Parameters
    ----------
    n_blocks : int
        Number of blocks.
    stream : BitStream
        Source of bits.

    Returns
    -------
    seeds : list of int
        From 0 to ``2**31 - 1``.
    """
    return [int(word) for word in stream.words(n_blocks) >> np.uint64(33)]


#: Limit of their number: each costs time, and memory, whether or not there are rows in it.
MOST_BLOCKS = 10**6


def check_inner(estimator: Any, name: str, kind: str) -> None:
    """Refuse what cannot be fitted to blocks, or should not be.

    Parameters
    ----------
    estimator : object
        What a user passed.
    name : str
        The parameter's name.
    kind : str
        What it has to be.
    """
    if isinstance(estimator, type) or not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise TypeError(f"{name} must be an instance of a {kind}, got {shown(estimator)}")
    for parameter, value in estimator.get_params(deep=True).items():
        if parameter.split("__")[-1] == "accountant" and value is not None:
            raise ValueError(f"{name} must have no accountant: which blocks it would charge depends on the data")


def prepared(estimator: Any, seed: int) -> Any:
    """Return a clone for one block: seeded, told to be quiet, without callbacks and processes of its own.

    Parameters
    ----------
    estimator : estimator
        What a user passed.
    seed : int
        For its `random_state`, and those of its parts.

    Returns
    -------
    model : estimator
        Not fitted.
    """
    model = clone(estimator)
    take_off_callbacks(model)
    for part in parts_of(model):
        own: dict[str, Any] = {}
        for name, value in part.get_params(deep=True).items():
            last = name.split("__")[-1]
            if last == "random_state":
                own[name] = seed
            elif last == "n_jobs" and value is not None:
                own[name] = 1
            elif last == "verbose":
                own[name] = False if isinstance(value, bool) else 0
        part.set_params(**own)
    return model


@contextmanager
def alone(seed: int) -> Iterator[None]:
    """Keep what code does to the process from the code that runs after it.

    Put back are the settings of warnings, of scikit-learn, of NumPy's floating-point errors and of logging. Global
    generators of random numbers are seeded inside, and go on as if nothing had been drawn afterwards. Nothing is
    printed or logged. joblib works in this process and thread: others live on from block to block, and have generators
    and an output of their own.

    Parameters
    ----------
    seed : int
        For global generators.

    Yields
    ------
    None
        While the code runs.
    """
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


def attempt(compute: Callable[[], Any], seed: int) -> Any:
    """Return what code makes of one block; None if it fails.

    An exception would be a release, and is swallowed; an interrupt is handed on without what it may say. Call it within
    `silence`.

    Parameters
    ----------
    compute : callable
        The computation.
    seed : int
        For global generators.

    Returns
    -------
    value : object or None
        What it returns.
    """
    try:
        with alone(seed):
            return compute()
    except KeyboardInterrupt:
        pass
    except BaseException:
        # Some libraries' errors are no Exception.
        return None
    raise KeyboardInterrupt


def over_blocks(
    compute: Computation,
    X: NDArray,
    y: NDArray | None,
    n_blocks: int,
    labels: NDArray[np.intp],
    seeds: list[int],
    n_jobs: int | None = None,
) -> list[Any]:
    """Compute something from each block by itself.

    Parameters
    ----------
    compute : callable
        Computes it from the block's rows, which are a copy, its targets and its seed. To be pickled, with several jobs.
    X : ndarray of shape (n_rows, n_features)
        Rows.
    y : ndarray of shape (n_rows,) or (n_rows, n_targets), or None
        Targets.
    n_blocks : int
        Number of blocks.
    labels : ndarray of shape (n_rows,)
        The block of each row.
    seeds : list of int
        The seed of each block.
    n_jobs : int, default=None
        Number of processes, as in scikit-learn.

    Returns
    -------
    values : list of object or None
        One for each block, in the order of their numbers; None where the computation failed.
    """

    def blocks() -> Iterator[tuple[NDArray, NDArray | None, int]]:
        for rows, seed in zip(block_rows(labels, n_blocks), seeds, strict=True):
            yield np.array(X[rows], dtype=np.float64, order="C"), None if y is None else y[rows].copy(), seed

    try:
        with silence():
            if effective_n_jobs(n_jobs) == 1:
                return [_one(compute, *part) for part in blocks()]
            return list(_workers(n_jobs)(delayed(_one_in_silence)(compute, *part) for part in blocks()))
    except MemoryError:
        pass
    # NumPy's message says how many rows a block has.
    raise MemoryError


def check_sent(compute: Computation, name: str, n_jobs: int | None) -> None:
    """Refuse what other processes cannot be given, before anything is charged.

    Parameters
    ----------
    compute : callable
        For `over_blocks`; it is not called.
    name : str
        The parameter that it may fail by.
    n_jobs : int or None
        Number of processes.
    """
    if effective_n_jobs(n_jobs) == 1:
        return
    try:
        with silence():
            _workers(n_jobs)([delayed(callable)(compute)])
    except Exception as error:
        raise ValueError(f"{name} cannot be sent to another process: {type(error).__name__}: {error}") from error


def _workers(n_jobs: int | None) -> Parallel:
    # Threads would share what `alone` puts back, hence always processes. Rows are not to be written to files.
    return Parallel(n_jobs=n_jobs, backend="loky", max_nbytes=None)


def _one(compute: Computation, rows: NDArray, targets: NDArray | None, seed: int) -> Any:
    return attempt(lambda: compute(rows, targets, seed), seed)


def _one_in_silence(compute: Computation, rows: NDArray, targets: NDArray | None, seed: int) -> Any:
    with silence():
        return _one(compute, rows, targets, seed)


def tried(compute: Callable[[], Any], name: str) -> Any:
    """Return what code makes of rows that are public, or say what is wrong with it, before anything is charged.

    Parameters
    ----------
    compute : callable
        The computation.
    name : str
        The parameter that is tried.

    Returns
    -------
    value : object
        What it returns.
    """
    try:
        with silence(), alone(0):
            return compute()
    except Exception as error:
        raise ValueError(f"{name} fails on public rows: {type(error).__name__}: {error}") from error

"""The exact running totals of a budget, for events on all records and for events on disjoint parts of them.

Each part has an accountant, and charges of one part do not count for another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import zip_longest
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..checks.data import is_sequence
from ..checks.messages import shown
from ..checks.silence import discreet
from ..exceptions import BudgetError

#: Largest number of parts of a division, because the ledger keeps the sums of each.
_MOST_PARTS = 10_000


class Part:
    """One part of the records, made by `BudgetAccountant.parallel`.

    Parameters
    ----------
    name : str or int
        Name of the part.
    accountant : BudgetAccountant
        Accountant whose charges count for the records of this part only.
    rows : ndarray of int
        Positions of its rows. They are not visible, because they are private.
    n_rows : int
        Number of all records.
    """

    def __init__(self, name: Any, accountant: Any, rows: NDArray[np.intp], n_rows: int) -> None:
        self.name = name
        self.accountant = accountant
        self._rows = rows
        self._n_rows = n_rows

    @discreet
    def take(self, *arrays: Any) -> Any:
        """Return the rows of this part.

        Parameters
        ----------
        *arrays : array-like, sparse matrix or dataframe of shape (n_samples, ...)
            Data of all records, in the order of `by`.

        Returns
        -------
        taken : object or tuple
            Rows of each array. If there is one array, it is not in a tuple.
        """
        taken = tuple(self._take(array) for array in arrays)
        return taken[0] if len(taken) == 1 else taken

    def _take(self, array: Any) -> Any:
        if not hasattr(array, "shape"):
            rows, array = array, None
            with suppress(ValueError):
                array = np.asarray(rows)
            if array is None:
                # The message of NumPy holds the number of rows.
                raise ValueError("rows must all have the same length")
        if len(array.shape) == 0 or array.shape[0] != self._n_rows:
            raise ValueError("each array must have as many rows as `by`: its rows are the same records")
        if hasattr(array, "iloc"):
            return array.iloc[self._rows]
        if hasattr(array, "tocsr"):
            array = array.tocsr()
        return array[self._rows]

    def __repr__(self) -> str:
        # The number of records of the part is private.
        return f"Part({self.name!r})"


class Parts:
    """A division of the records by one rule. Each record is in the part that its own value names, or in no part.

    `BudgetAccountant.parallel` makes divisions, and documents the rules. A division is a context manager. After the end
    of the block, parts cannot be charged.

    Parameters
    ----------
    names : tuple of str or int
        Names of the parts.
    part_of_record : ndarray of int of shape (n_samples,)
        For each record, the position of its part in `names`, or -1.
    accountants : list of BudgetAccountant
        Accountants of the parts.
    close : callable
        Function that ends the division.
    """

    def __init__(
        self,
        names: tuple[Any, ...],
        part_of_record: NDArray[np.intp],
        accountants: Sequence[Any],
        close: Callable[[], None],
    ) -> None:
        self._names, self._close = names, close
        self._parts = tuple(
            Part(name, accountant, np.flatnonzero(part_of_record == position), len(part_of_record))
            for position, (name, accountant) in enumerate(zip(names, accountants, strict=True))
        )

    def __iter__(self) -> Iterator[Part]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, name: Any) -> Part:
        if name not in self._names:
            raise KeyError(name)
        return self._parts[self._names.index(name)]

    def close(self) -> None:
        """End the division. A further charge on a part is a BudgetError."""
        self._close()

    def __enter__(self) -> Parts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Parts({list(self._names)!r})"


def check_names(names: Sequence[Any]) -> tuple[Any, ...]:
    """Return the declared names of the parts."""
    if isinstance(names, str | bytes) or not hasattr(names, "__len__"):
        raise TypeError(f"parts must be a list of names, got {shown(names)}")
    checked = tuple(name.item() if isinstance(name, np.generic) else name for name in names)
    if not 0 < len(checked) <= _MOST_PARTS:
        raise ValueError(f"parts must have between 1 and {_MOST_PARTS} names, got {len(checked)}")
    if not all(isinstance(name, str | int | bool) for name in checked):
        raise TypeError("the names of parts must be text or integers")
    if len(set(checked)) < len(checked) or len({str(name) for name in checked}) < len(checked):
        raise ValueError(f"parts must not name a part twice, got {list(checked)!r}")
    return checked


def assign(by: ArrayLike, names: tuple[Any, ...]) -> NDArray[np.intp]:
    """Return the position of each record's part, or -1 if no part has its name."""
    # Each value is read separately. NumPy would let one record determine the type of all values.
    values: Any = by if is_sequence(by) else np.asarray(by)
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ValueError("`by` must be one-dimensional: one value for each record")
        values = values.tolist()
    positions = {_key(name): position for position, name in enumerate(names)}
    return np.fromiter((positions.get(_key(value), -1) for value in values), dtype=np.intp, count=len(values))


def _key(value: Any) -> Any:
    """Return a value with its kind. Numbers are equal as numbers, and truth values are not numbers."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, int | float):
        return "number", value
    return ("text", value) if isinstance(value, str) else None


Exact = Fraction | float

#: A part is identified by the number of its division and by its position in it.
PartKey = tuple[int, int]


def decimal(value: float) -> Exact:
    """Return the decimal number that a user typed, so that ten charges of 0.1 make 1."""
    return Fraction(repr(float(value))) if math.isfinite(value) else value


def floor_decimal(exact: Exact) -> float:
    """Return the largest double that, as a decimal number, is not above `exact`."""
    value = float(exact)
    while value > 0 and decimal(value) > exact:
        value = math.nextafter(value, 0.0)
    return value


def largest_share(whole: float, portion: Fraction) -> float:
    """Return a portion of a budget, rounded down, so that portions that add up to 1 do not exceed the whole.

    Parameters
    ----------
    whole : float
        Budget to divide, as the decimal number that was typed.
    portion : Fraction
        In (0, 1].

    Returns
    -------
    share : float
        Infinite if the whole is infinite.
    """
    return floor_decimal(decimal(whole) * portion) if math.isfinite(whole) else whole


def dyadic(value: float) -> Exact:
    """Return the exact value of a computed number."""
    return Fraction(value) if math.isfinite(value) else value


@dataclass(frozen=True)
class Sums:
    """Sum the privacy parameters of events exactly. A sum with an infinite term is a float."""

    # Epsilons and deltas are added up as decimal numbers, and Rényi divergences at each order in use.
    epsilon: Exact = Fraction(0)
    delta: Exact = Fraction(0)
    mu_squared: Exact = Fraction(0)
    rdp: tuple[Exact, ...] = ()

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.epsilon + other.epsilon,
            self.delta + other.delta,
            self.mu_squared + other.mu_squared,
            tuple(a + b for a, b in zip_longest(self.rdp, other.rdp, fillvalue=Fraction(0))),
        )

    def times(self, count: int) -> Sums:
        """Return the sums over `count` equal events."""
        if count == 0:
            return Sums()
        rdp = tuple(divergence * count for divergence in self.rdp)
        return Sums(self.epsilon * count, self.delta * count, self.mu_squared * count, rdp)


@dataclass(frozen=True)
class Division:
    """Divide the records into disjoint parts with public names, and keep the sums of each part."""

    # After `closed`, the sums count for all records, and neither names nor sums are kept. `public` tells whether the
    # assignment of records to parts is public.
    parts: tuple[str, ...]
    sums: tuple[Sums, ...]
    closed: bool = False
    public: bool = False

    def largest(self) -> Sums:
        """Bound the exposure of any one record, which is in one part only."""
        if self.closed:
            return Sums()
        return Sums(
            max(s.epsilon for s in self.sums),
            max(s.delta for s in self.sums),
            max(s.mu_squared for s in self.sums),
            tuple(map(max, zip_longest(*(s.rdp for s in self.sums), fillvalue=Fraction(0)))),
        )


@dataclass(frozen=True)
class Rest:
    """Hold the limits of a rule that was chosen after events without delta."""

    # `pure` is the sum of the epsilons before, the largest over all parts. The others describe the ceiling less `pure`.
    pure: Exact
    mu: float
    orders: tuple[float, ...]
    divergences: tuple[float, ...]


@dataclass(frozen=True)
class State:
    """Hold everything that determines whether the next charge is admitted."""

    # `rule` is None while it is open under "auto". `whole` sums the events on all records, and `done` lists the entries
    # of a declared list that were carried out. With `rest`, squared GDP parameters and Rényi divergences are summed
    # over the events since the rule was chosen.
    rule: str | None = None
    whole: Sums = field(default_factory=Sums)
    divisions: tuple[Division, ...] = ()
    done: tuple[int, ...] = ()
    rest: Rest | None = None

    def seen(self, part: PartKey | None = None) -> Sums:
        """Bound the exposure of a record of `part`, or of any record."""
        total = self.whole
        for number, division in enumerate(self.divisions):
            inside = part is not None and part[0] == number and not division.closed
            total = total + (division.sums[part[1]] if inside and part else division.largest())
        return total

    def add(self, sums: Sums, part: PartKey | None = None) -> State:
        """Return the state with an event on all records, or on one part, added."""
        if part is None:
            return replace(self, whole=self.whole + sums)
        number, position = part
        division = self.divisions[number]
        if division.closed:
            raise BudgetError("the division that this part belongs to is closed")
        after = division.sums[position] + sums
        changed = (*division.sums[:position], after, *division.sums[position + 1 :])
        return self._with(number, replace(division, sums=changed))

    def divide(self, parts: tuple[str, ...], public: bool = False) -> State:
        """Return the state with a further division."""
        return replace(self, divisions=(*self.divisions, Division(parts, (Sums(),) * len(parts), public=public)))

    def settle(self, rule: str, rest: Rest) -> State:
        """Return the state with a rule that counts events from now on, with the remaining budget `rest`."""

        def from_now_on(sums: Sums) -> Sums:
            return replace(sums, mu_squared=Fraction(0), rdp=())

        divisions = tuple(replace(d, sums=tuple(from_now_on(sums) for sums in d.sums)) for d in self.divisions)
        return replace(self, rule=rule, whole=from_now_on(self.whole), divisions=divisions, rest=rest)

    def close(self, number: int) -> State:
        """Return the state with a division closed."""
        largest = self.divisions[number].largest()
        return replace(self._with(number, Division((), (), closed=True)), whole=self.whole + largest)

    def _with(self, number: int, division: Division) -> State:
        return replace(self, divisions=(*self.divisions[:number], division, *self.divisions[number + 1 :]))

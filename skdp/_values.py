"""What messages say of values that users pass, and how numbers of any type become doubles."""

from __future__ import annotations

import math
import numbers
import sys
from typing import Any

_LONGEST = 40


def shown(value: object) -> str:
    """Return what a message says of a value: a number, a short text or a class as it is written, else its type.

    Rows that are passed as a parameter by mistake are not told of, nor how many there are.

    Parameters
    ----------
    value : object
        What a user passed.

    Returns
    -------
    text : str
    """
    kind = type(value)
    if value is None or issubclass(kind, str | bytes | numbers.Number | type):
        try:
            text = repr(value)
        except Exception:
            # Python writes no integers of thousands of digits.
            text = ""
        if 0 < len(text) <= _LONGEST or issubclass(kind, type):
            return text
    return f"a value of type {kind.__name__}"


def as_float(value: Any) -> float:
    """Return a number as a double; one that is finite and beyond all doubles as the largest, which no range reaches to.

    Parameters
    ----------
    value : real number
        Of any type.

    Returns
    -------
    number : float
    """
    try:
        number = float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -sys.float_info.max
    if math.isinf(number) and value != number:
        return math.copysign(sys.float_info.max, number)
    return number

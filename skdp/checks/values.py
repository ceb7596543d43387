"""Values from users: how messages show them, and how numbers of any type become doubles."""

from __future__ import annotations

import math
import numbers
import sys
from typing import Any

_LONGEST = 40


def shown(value: object) -> str:
    """Describe a value in a message: write a number, a short text or a class as it is, and otherwise its type."""
    # Rows that are passed as a parameter by mistake must not be shown, and neither must their number.
    kind = type(value)
    if value is None or issubclass(kind, str | bytes | numbers.Number | type):
        try:
            text = repr(value)
        except Exception:
            # Python refuses to write integers of thousands of digits.
            text = ""
        if 0 < len(text) <= _LONGEST or issubclass(kind, type):
            return text
    return f"a value of type {kind.__name__}"


def as_float(value: Any) -> float:
    """Return a number as a double. A finite number beyond all doubles becomes the largest, which no range contains."""
    try:
        number = float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -sys.float_info.max
    if math.isinf(number) and value != number:
        return math.copysign(sys.float_info.max, number)
    return number

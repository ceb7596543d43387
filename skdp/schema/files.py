"""Text files of schemas: TOML and JSON."""

from __future__ import annotations

import json
import tomllib
from typing import Any

from ..checks.messages import shown
from .declared import Category, Column, Number

# Lists up to this width are written on one line.
_WIDTH = 100

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def as_json(content: dict[str, Any]) -> str:
    """Write as JSON."""
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def from_json(text: str) -> Any:
    """Read JSON."""
    return json.loads(text)


def from_toml(text: str) -> Any:
    """Read TOML."""
    return tomllib.loads(text)


def as_toml(content: dict[str, Any]) -> str:
    """Write as TOML: plain values first, then tables, then lists of tables."""
    lines = [_pair(key, value) for key, value in content.items() if not _holds_tables(value)]
    for key, value in content.items():
        for table in [value] if isinstance(value, dict) else value if _holds_tables(value) else []:
            lines += ["", f"[{key}]" if isinstance(value, dict) else f"[[{key}]]"]
            lines += [_pair(own, entry) for own, entry in table.items()]
    return "\n".join(lines) + "\n"


def _holds_tables(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(each, dict) for each in value))


def _pair(key: str, value: Any) -> str:
    line = f"{key} = {_value(value)}"
    if isinstance(value, list) and len(line) > _WIDTH:
        line = f"{key} = [\n" + "".join(f"    {_value(each)},\n" for each in value) + "]"
    return line


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return '"' + "".join(map(_escaped, value)) + '"' if isinstance(value, str) else repr(value)


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return f"\\u{ord(character):04X}" if character < " " or character == "\x7f" else character


_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}


def field_of(name: str | None, column: Column) -> dict[str, Any]:
    """Return the column that a field of a file declares."""
    found: dict[str, Any] = {} if name is None else {"name": name}
    if isinstance(column, Number):
        whole = isinstance(column.low, int) and isinstance(column.step, int)
        found |= {"type": "integer" if whole else "number", "minimum": column.low, "maximum": column.high}
        found |= {} if column.step is None else {"step": column.step}
        found |= {} if column.scale == "linear" else {"scale": column.scale}
    else:
        found |= {"type": _TYPES[type(column.values[0])], "enum": list(column.values)}
        found |= {"ordered": True} if column.ordered else {}
        found |= {} if column.other == "cell" else {"other": column.other}
    return found | ({} if column.missing == "cell" else {"missing": column.missing})


def column_of(field: Any, place: str) -> Column:
    if not isinstance(field, dict):
        raise ValueError(f"{place} must be a table of keys and values")
    own = {key: value for key, value in field.items() if key not in ("name", "type")}
    try:
        if "enum" in own:
            column: Column = Category(own.pop("enum"), **own)
        else:
            column = Number(own.pop("minimum"), own.pop("maximum"), **own)
    except KeyError as error:
        raise ValueError(f"{place} must have minimum and maximum, or enum; {error.args[0]} is not there") from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"{place}: {error}") from None
    kind = field_of(None, column)["type"]
    stated = field.get("type", kind)
    if stated != kind and not ({stated, kind} == {"integer", "number"}):
        raise ValueError(f"{place} has the type {shown(stated)}, and its values are of the type {kind!r}")
    return column

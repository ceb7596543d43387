"""The public facts about the columns of a table, in one object, and its text files in TOML and JSON."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..checks.params import check_integer, misspelling, shown
from ..mechanisms import NoiseSource
from .declared import Category, Column, Number, as_column, count_beyond, count_outside, described, made_up
from .entries import Entries, Rows, read_column, table_columns

# Lists up to this width are written on one line.
_WIDTH = 100

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def as_toml(content: dict[str, Any]) -> str:
    """Write as TOML: plain values first, then tables, then lists of tables."""
    lines = [_pair(key, value) for key, value in content.items() if not _holds_tables(value)]
    for key, value in content.items():
        for table in [value] if isinstance(value, dict) else value if _holds_tables(value) else []:
            lines += ["", f"[{key}]" if isinstance(value, dict) else f"[[{key}]]"]
            lines += [_pair(name, entry) for name, entry in table.items()]
    return "\n".join(lines) + "\n"


def _holds_tables(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(each, dict) for each in value))


def _pair(key: str, value: Any) -> str:
    line = f"{key} = {_value(value)}"
    if isinstance(value, list) and len(line) > _WIDTH:
        line = f"{key} = [\n" + "".join(f"    {_value(each)},\n" for each in value) + "]"
    return line


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        controls = {c: f"\\u{ord(c):04X}" for c in set(value) if c < " " or c == "\x7f"}
        return '"' + "".join({**controls, **_ESCAPES}.get(character, character) for character in value) + '"'
    return str(value).lower() if isinstance(value, bool) else repr(value)


_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}


def field_of(name: str | None, column: Column) -> dict[str, Any]:
    """Return the column that a field of a file declares."""
    content: dict[str, Any] = {} if name is None else {"name": name}
    if isinstance(column, Number):
        whole = isinstance(column.low, int) and isinstance(column.step, int)
        content |= {"type": "integer" if whole else "number", "minimum": column.low, "maximum": column.high}
        content |= {} if column.step is None else {"step": column.step}
        content |= {} if column.scale == "linear" else {"scale": column.scale}
    else:
        content |= {"type": _TYPES[type(column.values[0])], "enum": list(column.values)}
        content |= {"ordered": True} if column.ordered else {}
        content |= {} if column.other == "cell" else {"other": column.other}
    return content | ({} if column.missing == "cell" else {"missing": column.missing})


def column_of(field: Any, where: str) -> Column:
    if not isinstance(field, dict):
        raise ValueError(f"{where} must be a table of keys and values")
    facts = {key: value for key, value in field.items() if key not in ("name", "type")}
    try:
        if "enum" in facts:
            column: Column = Category(facts.pop("enum"), **facts)
        else:
            column = Number(facts.pop("minimum"), facts.pop("maximum"), **facts)
    except KeyError as error:
        raise ValueError(f"{where} must have minimum and maximum, or enum; {error.args[0]} is not there") from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from None
    kind = field_of(None, column)["type"]
    stated = field.get("type", kind)
    if stated != kind and not ({stated, kind} == {"integer", "number"}):
        raise ValueError(f"{where} has the type {shown(stated)}, and its values are of the type {kind!r}")
    return column


_FORMAT = "skdp.Schema"

# In rows of `sample`, one entry in so many is missing.
_MISSING_IN = 20


class Schema(Mapping[str, Column]):
    """Public facts about the columns of a table.

    A schema cannot be changed. Two schemas are equal if they declare the same columns in the same order.

    Parameters
    ----------
    columns : dict
        For each column by name, a `Number` or a `Category`. A tuple of two numbers stands for a `Number`, and a list
        for a `Category`.
    target : Number, Category, tuple, list or dict, default=None
        Public facts about the labels or targets. A dict with one entry also states the name of their column.
    group : str, default=None
        Name of the column of groups, such as people, if one person may have several records.
    rows_per_group : int, default=None
        Public limit on the number of records of one group. Must be given with `group`.

    Attributes
    ----------
    target : Number, Category or None
        Public facts about the labels or targets.
    target_name : str or None
        Name of their column, if it was given.
    group : str or None
        Name of the column of groups.
    rows_per_group : int or None
        Limit on the number of records of one group.

    See Also
    --------
    skdp.preprocessing.TableEncoder : Turns tables with these columns into the numbers that estimators take.

    Notes
    -----
    **Privacy.** Everything in a schema must be public. It comes from the code book, the questionnaire or the law, and
    never from the private rows. No method of a schema reads private rows, except `check`, which is not private and is
    meant for the curator of the data.

    Examples
    --------
    >>> from skdp import Category, Number, Schema
    >>> schema = Schema(
    ...     {"age": Number(17, 90, step=1), "work": ["private", "state"]},
    ...     target=Category(["<=50K", ">50K"]),
    ... )
    >>> schema
    Schema
    column    kind      public values
    age       Number    17 to 90, step 1
    work      Category  2: 'private', 'state'
    (target)  Category  2: '<=50K', '>50K'
    >>> schema["age"].high
    90
    """

    target: Column | None
    target_name: str | None
    group: str | None
    rows_per_group: int | None
    _columns: dict[str, Column]

    def __init__(
        self, columns: Any, target: Any = None, group: str | None = None, rows_per_group: int | None = None
    ) -> None:
        if not isinstance(columns, Mapping):
            raise TypeError(f"columns must map names of columns to Number or Category, got {shown(columns)}")
        if not columns:
            raise ValueError("columns must declare one column or more")
        target_name = None
        if isinstance(target, Mapping):
            if len(target) != 1:
                raise ValueError("target must be a Number, a Category, or a dict with one of them by its name")
            [(target_name, target)] = target.items()
            _check_name(target_name, "target")
        declared = {
            _check_name(name, "columns"): as_column(value, f"column {name!r}") for name, value in columns.items()
        }
        if group is not None:
            _check_name(group, "group")
            if rows_per_group is None:
                raise ValueError("rows_per_group must be given with group: a public limit on the records of one group")
            rows_per_group = check_integer(rows_per_group, "rows_per_group", least=1)
        elif rows_per_group is not None:
            raise ValueError("rows_per_group needs group, the name of the column of groups")
        names = [*declared, *(name for name in (target_name, group) if name is not None)]
        if len(set(names)) < len(names):
            double = next(name for name in (target_name, group) if names.count(name) > 1)
            raise ValueError(
                f"{double!r} must be a column, the target or the group, and not two of these. To make it a column, "
                f"write Schema({{**schema, {double!r}: ...}}), which has no target and no group"
            )
        self.__dict__.update(
            _columns=declared,
            target=None if target is None else as_column(target, "target"),
            target_name=target_name,
            group=group,
            rows_per_group=rows_per_group,
        )

    def __setattr__(self, name: str, value: Any = None) -> None:
        raise AttributeError("a Schema cannot be changed: make another one, for instance with schema | {...}")

    __delattr__ = __setattr__

    def __getitem__(self, name: str) -> Column:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def _content(self) -> tuple[Any, ...]:
        return tuple(self.items()), self.target, self.target_name, self.group, self.rows_per_group

    def __eq__(self, other: object) -> bool:
        return self._content() == other._content() if isinstance(other, Schema) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._content())

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def _with(self, columns: Mapping[str, Any]) -> Schema:
        target = self.target if self.target_name is None else {self.target_name: self.target}
        return Schema(columns, target, self.group, self.rows_per_group)

    def _check_names(self, names: tuple[str, ...]) -> None:
        if not all(issubclass(type(name), str) and name in self for name in names):
            # Labels of the data may be passed by mistake.
            raise ValueError(f"names must be columns of the schema, which are {', '.join(map(repr, self))}")

    def select(self, *names: str) -> Schema:
        """Return a schema of some of the columns.

        Parameters
        ----------
        *names : str
            Names of columns, in the order of the new schema.

        Returns
        -------
        schema : Schema
            With the same target and the same group.
        """
        self._check_names(names)
        return self._with({name: self[name] for name in names})

    def drop(self, *names: str) -> Schema:
        """Return a schema without some of the columns.

        Parameters
        ----------
        *names : str
            Names of columns.

        Returns
        -------
        schema : Schema
            With the same target and the same group.
        """
        self._check_names(names)
        return self._with({name: column for name, column in self.items() if name not in names})

    def __or__(self, other: Any) -> Schema:
        if not isinstance(other, Schema):
            return self._with({**self, **other}) if isinstance(other, Mapping) else NotImplemented
        base = self if other.target is None else other
        target = base.target if base.target_name is None else {base.target_name: base.target}
        grouped = self if other.group is None else other
        return Schema({**self, **other}, target, grouped.group, grouped.rows_per_group)

    def _table(self) -> list[tuple[str, ...]]:
        rows = list(self.items())
        if self.target is not None:
            rows.append(("(target)" if self.target_name is None else f"{self.target_name} (target)", self.target))
        lines = [(name, type(column).__name__, *described(column)) for name, column in rows]
        if self.group is not None:
            lines.append((self.group, "group", f"at most {self.rows_per_group} rows of one group", ""))
        table: list[tuple[str, ...]] = [("column", "kind", "public values", "others"), *lines]
        return table if any(line[-1] for line in lines) else [line[:-1] for line in table]

    def __repr__(self) -> str:
        return "Schema\n" + as_text(self._table())

    def _repr_html_(self) -> str:
        return as_html(self._table())

    def save(self, path: Any) -> None:
        """Write the schema to a text file, to be reviewed and kept under version control.

        Parameters
        ----------
        path : str or pathlib.Path
            Name of the file. It must end in ``.toml`` or ``.json``.
        """
        write, _ = _format_of(Path(path))
        Path(path).write_bytes(write(self._as_dict()).encode())

    @classmethod
    def load(cls, path: Any) -> Schema:
        """Read a schema from a file that `save` wrote, or that was written by hand.

        Parameters
        ----------
        path : str or pathlib.Path
            Name of the file. It must end in ``.toml`` or ``.json``.

        Returns
        -------
        schema : Schema
            Equal to the one that was saved.
        """
        _, read = _format_of(Path(path))
        return _from_dict(read(Path(path).read_bytes().decode()))

    def _as_dict(self) -> dict[str, Any]:
        content: dict[str, Any] = {"format": _FORMAT, "version": 1}
        if self.group is not None:
            content |= {"group": self.group, "rows_per_group": self.rows_per_group}
        if self.target is not None:
            content["target"] = field_of(self.target_name, self.target)
        return {**content, "fields": [field_of(name, column) for name, column in self.items()]}

    def sample(self, n: int, seed: int = 0) -> Any:
        """Make rows that conform to the schema, to test a pipeline without the data.

        Parameters
        ----------
        n : int
            Number of rows.
        seed : int, default=0
            Seed of the rows. The same seed gives the same rows.

        Returns
        -------
        rows : DataFrame or ndarray of shape (n_rows, n_columns)
            Independent values from the declared ranges and lists, and some missing values if these have a cell. The
            column of groups and the column of the target are included if they have names. A DataFrame of pandas, or of
            Polars if pandas is not installed. Without both, an array of objects.
        """
        n, source = check_integer(n, "n", least=0), NoiseSource(check_integer(seed, "seed", least=0))
        table: dict[str, list[Any]] = {}
        if self.group is not None and self.rows_per_group is not None:
            table[self.group] = [i // self.rows_per_group for i in range(n)]
        named = {} if self.target_name is None or self.target is None else {self.target_name: self.target}
        for name, column in {**self, **named}.items():
            words = source.stream(f"rows of {name}").words(2 * n) >> np.uint64(11)
            shares, lots = (words.astype(np.float64) * 2.0**-53).reshape(2, n)
            entries = made_up(column, shares)
            if column.missing == "cell" and name not in named:
                entries = [None if lot < 1 / _MISSING_IN else entry for lot, entry in zip(lots, entries, strict=True)]
            table[name] = entries
        return as_frame(table)

    def check(self, table: Any) -> TableCheck:
        """Count the entries of a table that are missing, unreadable or not declared. This is not private.

        Unreadable entries are text, dates and others, where a `Number` or a `Category` of numbers is declared. Fits
        count them as missing. In the column of groups, rows beyond `rows_per_group` are outside. Fits leave them out.

        The result is for the curator of the data, who may see the data. Never publish it, and do not change the schema
        because of it, unless the code book gives the reason.

        Parameters
        ----------
        table : array-like, DataFrame, Table or dict
            Rows with the columns of the schema.

        Returns
        -------
        check : TableCheck
            Counts. They are printed as a table, and ``check.counts`` has the numbers by column.
        """
        read = read_table(self, table)
        counts = {
            name: count_outside(column, entries) for (name, column), entries in zip(self.items(), read, strict=True)
        }
        names, columns = table_columns(table)
        others = dict(zip(names or (), columns, strict=False))
        if self.target is not None and self.target_name is not None and self.target_name in others:
            labels = read_column(others[self.target_name], self.target_name)
            counts[f"{self.target_name} (target)"] = count_outside(self.target, labels)
        if self.group is not None and self.group in others:
            groups = read_column(others[self.group], self.group)
            counts[f"{self.group} (group)"] = count_beyond(self.rows_per_group, groups)
        return TableCheck(len(read[0]), counts)


class TableCheck:
    """Numbers of entries of a table that a schema does not declare. They are not private."""

    def __init__(self, n_rows: int, counts: dict[str, dict[str, int]]) -> None:
        self.n_rows = n_rows
        self.counts = counts

    def _table(self) -> list[tuple[str, ...]]:
        kinds = ("missing", "unreadable", "outside")
        return [
            ("column", *kinds),
            *((name, *(str(counts[kind]) for kind in kinds)) for name, counts in self.counts.items()),
        ]

    def _line(self) -> str:
        return f"Not private, for the curator's eyes only: {self.n_rows} rows"

    def __repr__(self) -> str:
        return self._line() + "\n" + as_text(self._table())

    def _repr_html_(self) -> str:
        return f"<p>{self._line()}</p>{as_html(self._table())}"


def columns_in_order(schema: Schema, X: Any) -> list[Any]:
    """Return the columns of a table in the order of the schema. Columns with names are found by name."""
    names, columns = table_columns(X)
    if names is None:
        if len(columns) != len(schema):
            raise ValueError(
                f"X has {len(columns)} features, but Schema is expecting {len(schema)} features as input: "
                f"{', '.join(map(repr, schema))}. For encoded rows, pass **encoder.parameters(estimator)"
            )
        return columns
    counts, roles = Counter(names), [name for name in (schema.target_name, schema.group) if name is not None]
    allowed = {*schema, *roles}
    lacking, further = [name for name in schema if name not in counts], [name for name in counts if name not in allowed]
    apart = "".join(f", {name!r}" for name in roles if name in counts)
    chosen = f"X[[*schema{apart}]]" if apart else "X[list(schema)]"
    for problem, wrong, others, advice in (
        ("X lacks columns of the schema", lacking, further, "Rename the columns of X"),
        ("X has columns that the schema does not declare", further, lacking, f"Pass {chosen} if X is a DataFrame"),
        ("X has several columns of one name", [name for name, n in counts.items() if n > 1], [], "Leave one"),
    ):
        if wrong:
            hints = [misspelling(name, others, repr(name)) for name in wrong if isinstance(name, str)]
            raise ValueError(
                f"{problem}: {', '.join(map(repr, wrong))}.{''.join(hints)} {advice}. Before a fit, "
                "schema.select, schema.drop and schema | {...} make another schema"
            )
    by_name = dict(zip(names, columns, strict=True))
    return [by_name[name] for name in schema]


def read_table(schema: Schema, X: Any) -> list[Entries]:
    """Read the columns of a table, in the order of the schema."""
    table = [read_column(column, name) for name, column in zip(schema, columns_in_order(schema, X), strict=True)]
    if len({len(entries) for entries in table}) > 1:
        raise ValueError("the columns of X must all have the same length")
    return table


def read_rows(schema: Schema, X: Any) -> Rows:
    """Read the columns of a table, in the order of the schema, into a table whose rows can be selected."""
    return Rows(tuple(schema), tuple(read_table(schema, X)))


def as_frame(table: dict[str, list[Any]]) -> Any:
    """Return columns as a frame of pandas, or of Polars, or without both as an array of objects."""
    for library in ("pandas", "polars"):
        try:
            return import_module(library).DataFrame(table)
        except ImportError:
            continue
    return np.array([*zip(*table.values(), strict=True)], dtype=object).reshape(-1, len(table))


def as_text(rows: list[Any]) -> str:
    """Lay out rows of text as a table."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines)


def as_html(rows: list[Any]) -> str:
    """Lay out rows of text as a table in HTML. The first row is its head."""
    head, *body = (
        "".join(f"<{tag}>{escape(text)}</{tag}>" for text in row)
        for tag, row in zip(["th"] + ["td"] * (len(rows) - 1), rows, strict=True)
    )
    lines = "".join(f"<tr>{line}</tr>" for line in body)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def as_schema(value: Any) -> Schema:
    """Return a schema, or refuse the value."""
    if isinstance(value, Schema):
        return value
    if value is None:
        raise ValueError(
            "schema must be given: a skdp.Schema with public facts about each column. They are never read from the data"
        )
    if isinstance(value, Mapping):
        try:
            return Schema(value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"schema: {error}") from None
    hint = ". Use Schema.load to read a file" if isinstance(value, str | Path) else ""
    raise TypeError(f"schema must be a skdp.Schema, got {shown(value)}{hint}")


def _check_name(name: Any, parameter: str) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError(f"{parameter} must name columns by text, got {shown(name)}")
    return str(name)


def _from_dict(content: Any) -> Schema:
    if not isinstance(content, dict) or content.get("format") != _FORMAT or content.get("version") != 1:
        raise ValueError(f"the file must have format = {_FORMAT!r} and version = 1")
    unknown = sorted(set(content) - {"format", "version", "group", "rows_per_group", "target", "fields"})
    if unknown:
        raise ValueError(f"the file has unknown keys: {', '.join(map(repr, unknown))}")
    fields = content.get("fields")
    if not isinstance(fields, list) or not all(isinstance(field, dict) and "name" in field for field in fields):
        raise ValueError("the file must have a list of fields, each with a name")
    names = [field["name"] for field in fields]
    if len(set(map(str, names))) < len(names):
        raise ValueError("the file has two fields of one name")
    target = None
    if "target" in content:
        target = column_of(content["target"], "target")
        if "name" in content["target"]:
            target = {content["target"]["name"]: target}  # type: ignore[assignment]
    columns = {name: column_of(field, f"field {name!r}") for name, field in zip(names, fields, strict=True)}
    return Schema(columns, target, content.get("group"), content.get("rows_per_group"))


def _format_of(path: Path) -> tuple[Callable[[Any], str], Callable[[str], Any]]:
    if path.suffix.lower() == ".toml":
        return as_toml, tomllib.loads
    if path.suffix.lower() == ".json":
        return lambda content: json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n", json.loads
    raise ValueError("path must end in .toml or .json")

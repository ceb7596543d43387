"""What can be got at from an object, and which numbers of private data are among it."""

import datetime
import enum
import functools
import gc
import numbers
import pathlib
import re
import sys
import threading
import types
import weakref
from collections.abc import Iterator, Mapping
from fractions import Fraction

import numpy as np

ATOMS = (
    type(None),
    bool,
    numbers.Number,
    str,
    bytes,
    bytearray,
    np.generic,
    np.dtype,
    enum.Enum,
    datetime.datetime,
    pathlib.PurePath,
    range,
    type(Ellipsis),
)

#: Leaves by their name: what they hold belongs to the code, or is gone through by itself.
_NAMED = (type, types.ModuleType, np.ufunc, re.Pattern)

_LOCKS = (type(threading.Lock()), type(threading.RLock()))


# Where the types are that `parts` knows, or that hold nothing.
_KNOWN = ("builtins", "types", "functools", "weakref", "collections", "itertools", "abc", "typing")


def name_in(holder, key):
    """Name a part that a mapping holds."""
    return f"{holder}[{key!r}]" if isinstance(key, ATOMS) else f"{holder}[{type(key).__name__}]"


def parts(value):
    """Go through what one object refers to, as pairs of name and part.

    Closures, what a view is a view of, slots, what a weak reference or a cache holds, and the locals of a generator are
    among it.
    """
    if isinstance(value, types.GenericAlias):
        # Its other attributes are those of the class, whose cache of `isinstance` grows while objects are gone through.
        yield from ((name, getattr(value, name[1:])) for name in (".__origin__", ".__args__"))
        return
    if isinstance(value, np.ndarray):
        yield ".base", value.base
        if value.dtype.hasobject:
            yield ".tolist", value.tolist()
    elif isinstance(value, memoryview):
        yield ".obj", value.obj
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield "key", key
            yield name_in("", key), part
    elif isinstance(value, set | frozenset):
        yield "sorted", sorted(value, key=repr)
    elif isinstance(value, functools.partial):
        yield from ((f".{name}", getattr(value, name)) for name in ("func", "args", "keywords"))
    elif isinstance(value, types.FunctionType):
        yield ".__closure__", value.__closure__
        yield ".__defaults__", value.__defaults__
        yield ".__kwdefaults__", value.__kwdefaults__
    elif isinstance(value, types.CellType):
        # A name may not be bound yet.
        yield ".contents", value.cell_contents if value != types.CellType() else None
    elif isinstance(value, types.MethodType):
        yield ".__func__", value.__func__
        yield ".__self__", value.__self__
    elif isinstance(value, types.BuiltinFunctionType):
        yield ".__self__", value.__self__
    elif isinstance(value, types.GeneratorType):
        yield ".locals", {} if value.gi_frame is None else value.gi_frame.f_locals
    elif isinstance(value, weakref.ReferenceType):
        yield "()", value()
    elif isinstance(value, BaseException):
        yield from ((f".{name}", getattr(value, name)) for name in ("args", "__cause__", "__context__"))
    elif isinstance(value, functools._lru_cache_wrapper):
        yield "entries", gc.get_referents(value)
    elif isinstance(value, property | classmethod | staticmethod | functools.cached_property):
        function = getattr(value, "fget", None) or getattr(value, "__func__", None) or getattr(value, "func", None)
        yield "function", function
    elif isinstance(value, list | tuple):
        yield from ((f"[{position}]", part) for position, part in enumerate(value))
    elif isinstance(value, Iterator):
        # Of what it is over.
        yield "referents", gc.get_referents(value)
    if not isinstance(value, Mapping):
        yield from _attributes(value)


def _attributes(value):
    slots = [name for kind in type(value).__mro__ for name in _slots(kind)]
    if hasattr(value, "__dict__"):
        # The instance's own, whatever properties say.
        for name, part in vars(value).items():
            yield f".{name}", part
    for name in slots:
        if hasattr(value, name):
            yield f".{name}", getattr(value, name)
    if not any(map(_is_compiled, type(value).__mro__)) or isinstance(value, np.ndarray):
        return
    # What it would be made of again, or what the collector of garbage is told.
    try:
        yield ".__reduce_ex__", value.__reduce_ex__(4)[1:]
    except Exception:
        yield "referents", [part for part in gc.get_referents(value) if part is not getattr(value, "__dict__", None)]


def _is_compiled(kind):
    """Whether a class may have fields that are no attributes."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    return kind.__module__ not in _KNOWN and not file.endswith(".py")


def _slots(kind):
    slots = vars(kind).get("__slots__", ())
    names = [slots] if isinstance(slots, str) else slots
    return [
        f"_{kind.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name
        for name in names
        if name not in ("__dict__", "__weakref__")
    ]


def walk(root, place="", skip=()):
    """Go through all that can be reached from an object, as pairs of place and object, each object once."""
    seen = {id(part): part for part in skip}
    waiting = [(place, root)]
    while waiting:
        place, value = waiting.pop()
        yield place, value
        if isinstance(value, (*ATOMS, *_NAMED, *_LOCKS)) and not isinstance(value, np.void):
            continue
        if id(value) in seen:
            continue
        # Kept, so that no other object gets its number.
        seen[id(value)] = value
        waiting += reversed([(place + name, part) for name, part in parts(value)])


def library(package="skdp"):
    """Return what the modules of a package hold, and its classes, by name: caches and globals are among it."""
    held = {}
    for name, module in sorted(sys.modules.items()):
        if not (name == package or name.startswith(f"{package}.")):
            continue
        for key, value in vars(module).items():
            if isinstance(value, types.ModuleType) or key in ("__builtins__", "__warningregistry__"):
                continue
            if isinstance(value, type):
                if value.__module__ == name:
                    held[f"{name}.{key}"] = {k: v for k, v in vars(value).items() if k not in ("__doc__", "_abc_impl")}
            else:
                held[f"{name}.{key}"] = value
    return held


def caches():
    """Return the caches of functions in the library."""
    return [value for _, value in walk(library()) if isinstance(value, functools._lru_cache_wrapper)]


def describe(root):
    """Return all that can be reached, as lines: places, types, numbers to the last bit, shapes, and what is shared."""
    lines, first = [], {}
    for place, value in walk(root):
        kind = type(value).__name__
        if isinstance(value, float | np.floating):
            lines.append(f"{place}: {kind} {float(value).hex()}")
        elif isinstance(value, ATOMS):
            lines.append(f"{place}: {kind} {value!r}")
        elif isinstance(value, _NAMED):
            lines.append(f"{place}: {kind} {getattr(value, '__qualname__', getattr(value, '__name__', kind))}")
        elif isinstance(value, np.ndarray):
            own = "" if value.dtype.hasobject else value.tobytes().hex()
            layout = f"{value.dtype} {value.shape} {value.strides} writeable={value.flags.writeable}"
            lines.append(f"{place}: {kind} {layout} {own}")
        else:
            lines.append(f"{place}: {kind}")
        if not isinstance(value, (*ATOMS, *_NAMED, *_LOCKS)) and first.setdefault(id(value), place) != place:
            lines[-1] += f", the same as {first[id(value)]}"
    return lines


def figures(value):
    """Return the numbers that one object holds by itself, in double precision, and those of arrays of single."""
    none = np.empty(0)
    if isinstance(value, bool | np.bool_):
        return none, none
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "c":
            value = np.stack([value.real, value.imag])
        flat = np.ravel(value)
        if value.dtype == np.float32:
            return none, flat.astype(np.float64)
        return (flat.astype(np.float64) if value.dtype.kind in "fiu" else none), none
    if isinstance(value, numbers.Real | Fraction | np.number) and not isinstance(value, complex | np.complexfloating):
        try:
            return np.array([float(value)]), none
        except OverflowError:
            return none, none
    if isinstance(value, str):
        return np.array([float(text) for text in _NUMBER.findall(value)]), none
    if isinstance(value, bytes | bytearray | memoryview):
        return _doubles(bytes(value)), none
    return none, none


# With digits enough to tell a double from others.
_NUMBER = re.compile(r"[-+]?\d*\.\d{8,}(?:[eE][-+]?\d+)?")


def _doubles(data):
    """All doubles that bytes may be read as, at any offset and in both orders."""
    with np.errstate(all="ignore"):
        read = [
            np.frombuffer(data[k : k + (len(data) - k) // 8 * 8], dtype) for k in range(8) for dtype in ("<d", ">d")
        ]
        return np.concatenate(read).astype(np.float64)


class Secrets:
    """Numbers that nobody may find: entries of the data, and what is a plain function of them.

    Numbers are recognised by all 53 bits. By chance, a number that has as many is taken for one of theirs with
    probability of the order of 1e-12. Numbers of fewer bits, counts among them, are not looked for: see `describe`.

    Parameters
    ----------
    *data : ndarray
        Rows, and targets if they are numbers.
    """

    def __init__(self, *data):
        columns = np.column_stack([np.asarray(part, dtype=np.float64) for part in data])
        rows = columns[:, : np.shape(data[0])[1]]
        known = [columns, -columns, columns**2, np.linalg.norm(rows, axis=1), columns.T @ columns]
        for function in (np.sum, np.mean, np.var, np.std, np.min, np.max, np.median, np.ptp):
            known += [function(columns, axis=0), function(columns)]
        known = np.concatenate([np.ravel(part) for part in known])
        self._known = np.unique(known[_is_long(known)])
        # Of single precision there are too few bits to be sure of one number.
        self._short = np.unique(columns.astype(np.float32).astype(np.float64))

    def within(self, value):
        """Return which of the numbers one object holds by itself."""
        double, single = figures(value)
        found = [_among(double, self._known)]
        for short in (double, single):
            several = np.unique(_among(short, self._short))
            found.append(several if len(several) > 4 else several[:0])
        return np.concatenate(found)

    def found(self, root, place=""):
        """Return the places where some of the numbers can be got at."""
        return [f"{at} holds {hits[0]!r}" for at, value in walk(root, place) if len(hits := self.within(value))]


def _among(values, known):
    """Return those of the values that are known; `known` is sorted."""
    values = values[(values >= known[0]) & (values <= known[-1])]
    return values[known[np.searchsorted(known, values)] == values]


def _is_long(values):
    """Whether numbers have more bits than any parameter, and than noise on a lattice."""
    mantissa, _ = np.frexp(values)
    return np.ldexp(mantissa, 44) % 1 != 0

"""Validate the docstrings of everything a user can import from skdp.

Public modules are those without a leading underscore in their path, outside the packages for the library alone. Of
each, the names in ``__all__`` (or, where there is none, the public names it defines) are checked. Of the packages for
the library alone, the names that the reference lists are checked. So are the public methods of the classes. Which
checks apply is said in the ``numpydoc_validation`` table of pyproject.toml.
"""

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from numpydoc.hooks.validate_docstrings import parse_config
from numpydoc.validate import validate

ROOT = Path(__file__).resolve().parent.parent

#: Packages for the library alone.
INTERNAL = {"accounting", "checks", "mechanisms", "parts", "release", "schema", "sensitivity", "solvers"}


def public_modules() -> Iterator[ModuleType]:
    package = importlib.import_module("skdp")
    yield package
    for info in pkgutil.walk_packages(package.__path__, "skdp."):
        parts = info.name.split(".")
        if not any(part.startswith("_") for part in parts) and parts[1] not in INTERNAL:
            yield importlib.import_module(info.name)


def public_names(module: ModuleType) -> list[str]:
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def referenced() -> Iterator[tuple[ModuleType, str]]:
    """Yield what the reference lists: a package, and a name that it offers."""
    for path in re.findall(r"^   ~?([\w.]+)$", (ROOT / "docs" / "api.rst").read_text(), flags=re.MULTILINE):
        package, _, name = f"skdp.{path}".rpartition(".")
        yield importlib.import_module(package), name


def inherits_documentation(owner: type, name: str, function: object) -> bool:
    """Tell an override without a docstring of its own, whose base documents it."""
    documented = any(getattr(getattr(base, name, None), "__doc__", None) for base in owner.__mro__[1:])
    return not getattr(function, "__doc__", None) and documented


def public_objects() -> dict[str, str]:
    """Map the name under which an object is defined to one under which it can be imported."""
    found: dict[str, str] = {}
    for module, name in (*((m, n) for m in public_modules() for n in public_names(m)), *referenced()):
        value = getattr(module, name)
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        path = f"{module.__name__}.{name}"
        found[f"{value.__module__}.{value.__qualname__}"] = path
        if not inspect.isclass(value):
            continue
        for attribute in dir(value):
            member = inspect.getattr_static(value, attribute)
            function = member.fget if isinstance(member, property) else member
            function = getattr(function, "__func__", function)  # classmethod, staticmethod
            if (
                not attribute.startswith("_")
                and inspect.isfunction(function)
                and function.__module__.split(".")[0] == "skdp"
                and not inherits_documentation(value, attribute, function)
            ):
                found[f"{function.__module__}.{function.__qualname__}"] = f"{path}.{attribute}"
    return found


def main() -> int:
    sys.path.insert(0, str(ROOT))
    config = parse_config(ROOT)
    names = [name for name in public_objects().values() if not re.search(config["exclude"], name)]
    n_problems = 0
    for name in names:
        report = validate(name)
        for code, message in report["errors"]:
            if code in config["checks"]:
                n_problems += 1
                print(f"{report['file']}:{report['file_line']}: {name}: {code} {message}", file=sys.stderr)
    print(f"numpydoc: {len(names)} public docstrings, {n_problems} problems")
    return int(n_problems > 0)


if __name__ == "__main__":
    sys.exit(main())

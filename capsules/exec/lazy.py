"""Names of a package that are looked up when they are first used.

Most modules need torch, which takes a second to load. A package that hands names on this way can be imported for its
pure files alone.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """The `__getattr__` of a package.

    homes  module, by its name inside the package -> the names that it holds, separated by spaces
    """
    modules = {name: module for module, names in homes.items() for name in names.split()}

    def look_up(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, found)
        return found

    return look_up

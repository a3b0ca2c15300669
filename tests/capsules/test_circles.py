"""No module of the engines or of this package imports itself, over however many others; imports for types count too."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("capsules", "llm_engine", "tts_engine")


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path, modules: dict[str, Path]) -> Iterator[str]:
    """Modules that a file names wherever in it. `from package import module` means the module, not the package."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in modules else node.module for name in whole)


def test_no_import_leads_back() -> None:
    modules = {name_of(path): path for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    graph = {name: set(imported(path, modules)) - {name} for name, path in modules.items()}
    assert len(graph) > 70
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" → ".join(error.args[1])) from None

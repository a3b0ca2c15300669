"""Imports point down, the engines do not know each other, and the pure files stay pure."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("assistant", "llm_engine", "tts_engine", "capsules")
MAY_IMPORT = {
    "capsules": {"capsules"},
    "llm_engine": {"llm_engine", "capsules"},
    "tts_engine": {"tts_engine", "capsules"},
    "assistant": {"assistant", "llm_engine", "tts_engine", "capsules"},
}
PURE = [
    "capsules/exec/shapekey.py",
    "capsules/hull.py",
    "capsules/placement.py",
    "capsules/prefix.py",
    "capsules/reentry.py",
    "capsules/safefile.py",
    "capsules/metrics.py",
    "llm_engine/toolcalls.py",
    "tts_engine/text.py",
    "tts_engine/text_tables.py",
    "assistant/conversation.py",
    "assistant/schedule.py",
    "assistant/memory.py",
    "assistant/interrupt.py",
    "assistant/hearing/turn.py",
    "assistant/thinking/prompt.py",
    "assistant/speaking/segment.py",
    "assistant/speaking/heard.py",
    "assistant/realtime/events.py",
    "assistant/realtime/protocol.py",
]
PURE += [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "assistant/events").glob("*.py"))]
IMPURE = {"torch", "asyncio", "socket", "aiohttp", "websockets", "time", "threading", "sounddevice"}
TORCH_IN_ASSISTANT = ("assistant/cohost.py", "assistant/recipes/", "assistant/hearing/")


def imports(path: Path) -> Iterator[str]:
    """Full dotted names that a file imports, wherever in the file, type-checking blocks included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write the full name"
            yield node.module or ""


def sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_point_down(package: str) -> None:
    for path in sources(package):
        for name in imports(path):
            top = name.partition(".")[0]
            assert top not in PACKAGES or top in MAY_IMPORT[package], f"{path.relative_to(ROOT)} imports {name}"
            assert top not in ("tests", "benchmarks"), f"{path.relative_to(ROOT)} imports {name}"


def test_exec_sees_none_of_the_rest_and_nn_only_exec() -> None:
    for path in sources("capsules/exec"):
        for name in imports(path):
            allowed = ("capsules.exec", "capsules.errors")
            assert not name.startswith("capsules") or name.startswith(allowed), (path, name)
    for path in sources("capsules/nn"):
        for name in imports(path):
            allowed = ("capsules.exec", "capsules.nn", "capsules.errors")
            assert not name.startswith("capsules") or name.startswith(allowed), (path, name)


@pytest.mark.parametrize("name", PURE)
def test_pure_files_are_pure(name: str) -> None:
    found = {module.partition(".")[0] for module in imports(ROOT / name)}
    assert not found & IMPURE


def test_runtime_never_imports_the_recipes() -> None:
    for package in PACKAGES:
        for path in sources(package):
            if "recipes" not in path.parts:
                assert not any(n.startswith("assistant.recipes") for n in imports(path)), path.relative_to(ROOT)


def test_torch_stays_where_the_models_are() -> None:
    for path in sources("assistant"):
        place = path.relative_to(ROOT).as_posix()
        if "torch" in {n.partition(".")[0] for n in imports(path)}:
            assert place.startswith(TORCH_IN_ASSISTANT), f"{place} imports torch"


def test_everything_outside_the_standard_library_is_declared() -> None:
    declared = (ROOT / "pyproject.toml").read_text().lower().replace("-", "_")
    for package in PACKAGES:
        for path in sources(package):
            for name in imports(path):
                top = name.partition(".")[0]
                if top and top not in sys.stdlib_module_names and top not in PACKAGES:
                    assert top.lower() in declared, f"{path.relative_to(ROOT)} imports {top}"

"""Imports point down, the engines do not know each other, and the pure files stay pure."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house import ROOT, file_at

PACKAGES = ("assistant", "llm_engine", "tts_engine", "capsules")
MAY_IMPORT = {
    "capsules": {"capsules"},
    "llm_engine": {"llm_engine", "capsules"},
    "tts_engine": {"tts_engine", "capsules"},
    "assistant": {"assistant", "llm_engine", "tts_engine", "capsules"},
}
STOREYS = (
    {"base"},
    {"events"},
    {"contracts"},
    {"device", "telemetry", "text", "tools", "personas"},  # what models and talks are made of
    {"llm", "tts", "asr", "remote"},  # the models
    {"talk"},
    {"app", "realtime", "local"},
    {"server", "bench"},  # the fronts
    {"commands"},
    {"cli.py"},
    {"__main__.py"},
)
"""Folders and loose files of `assistant`, the lowest first: each sees those below, and none beside it."""
LOOSE = {"__init__.py", "__main__.py", "cli.py"}
PURE = [
    "capsules/exec/shapekey.py",
    "capsules/hull.py",
    "capsules/placement.py",
    "capsules/prefix.py",
    "capsules/reentry.py",
    "capsules/safefile.py",
    "capsules/metrics.py",
    "llm_engine/callguide.py",
    "llm_engine/jsoncalls.py",
    "llm_engine/toolcalls.py",
    "tts_engine/text.py",
    "assistant/device/schedule.py",
    "assistant/device/memory_plan.py",
    "assistant/asr/foreground.py",
    "assistant/text/english.py",
    "assistant/text/languages.py",
    "assistant/text/segment.py",
    "assistant/text/talk_words.py",
    "assistant/text/unfinished.py",
    "assistant/talk/conversation.py",
    "assistant/talk/ear.py",
    "assistant/talk/effects.py",
    "assistant/talk/expected.py",
    "assistant/talk/heard.py",
    "assistant/talk/interruption.py",
    "assistant/talk/messages.py",
    "assistant/talk/overheard.py",
    "assistant/talk/own_level.py",
    "assistant/talk/playing.py",
    "assistant/talk/prompt.py",
    "assistant/talk/turn_end.py",
    "assistant/talk/turn_taking.py",
    "assistant/tools/answers.py",
    "assistant/tools/clocks.py",
    "assistant/tools/dates.py",
    "assistant/tools/durations.py",
    "assistant/tools/errors.py",
    "assistant/tools/moments.py",
    "assistant/tools/phrases.py",
    "assistant/tools/repeats.py",
    "assistant/tools/rows.py",
    "assistant/tools/time_words.py",
    "assistant/realtime/events.py",
    "assistant/realtime/protocol.py",
]
PURE += [
    path.relative_to(ROOT).as_posix()
    for folder in ("assistant/events", "assistant/contracts", "assistant/llm/small", "tts_engine/reading")
    for path in sorted((ROOT / folder).glob("*.py"))
    if path.name != "rescoring.py"  # runs the model over texts
]
LOADED = ("torch", "asyncio", "aiohttp", "websockets", "sounddevice")
"""What a pure file does not load either, by way of whatever it imports."""
IMPURE = {"torch", "asyncio", "socket", "aiohttp", "websockets", "time", "threading", "sounddevice"}
TORCH_IN_ASSISTANT = ("assistant/device/",)


def imports(path: Path) -> Iterator[str]:
    """Full dotted names that a file imports, wherever in the file, type-checking blocks included."""
    for node in file_at(ROOT, path).nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write the full name"
            yield node.module or ""


def sources(package: str) -> list[Path]:
    found = sorted((ROOT / package).rglob("*.py"))
    assert found, f"{package} has no sources: nothing would be held"
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_point_down(package: str) -> None:
    for path in sources(package):
        for name in imports(path):
            top = name.partition(".")[0]
            assert top not in PACKAGES or top in MAY_IMPORT[package], f"{path.relative_to(ROOT)} imports {name}"
            assert top not in ("tests", "benchmarks", "recipes"), f"{path.relative_to(ROOT)} imports {name}"


def test_exec_sees_none_of_the_rest_and_nn_only_exec() -> None:
    for path in sources("capsules/exec"):
        for name in imports(path):
            assert not name.startswith("capsules") or name.startswith("capsules.exec"), (path, name)
    for path in sources("capsules/nn"):
        for name in imports(path):
            allowed = ("capsules.exec", "capsules.nn", "capsules.errors")
            assert not name.startswith("capsules") or name.startswith(allowed), (path, name)


@pytest.mark.parametrize("name", PURE)
def test_pure_files_are_pure(name: str) -> None:
    found = {module.partition(".")[0] for module in imports(ROOT / name)}
    assert not found & IMPURE


@pytest.mark.parametrize("name", PURE)
def test_a_pure_file_loads_neither_torch_nor_a_loop(name: str) -> None:
    """Each in a fresh interpreter: a package's `__init__` and what lies below count too."""
    module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    script = f"import sys, {module}; print(*[name for name in {LOADED} if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout.split() == []


def storey(place: str) -> int:
    return next(number for number, row in enumerate(STOREYS) if place in row)


def test_each_storey_of_the_assistant_sees_only_those_below() -> None:
    for path in sources("assistant"):
        place = path.relative_to(ROOT).parts[1]
        if place == "__init__.py":
            assert not any(name.startswith("assistant") for name in imports(path)), path
            continue
        for name in imports(path):
            top, _, rest = name.partition(".")
            seen = rest.partition(".")[0]
            if top != "assistant" or not seen or seen == place:
                continue
            if (ROOT / "assistant" / f"{seen}.py").is_file():
                seen += ".py"
            assert storey(seen) < storey(place), f"{path.relative_to(ROOT)} imports {name}"


def test_few_files_lie_loose() -> None:
    assert {path.name for path in (ROOT / "assistant").glob("*.py")} == LOOSE


def test_no_file_imports_itself_by_way_of_others() -> None:
    """Imports of types count too: what is only needed to read a file is needed to read it."""
    files = {path: path.relative_to(ROOT) for package in PACKAGES for path in sources(package)}
    modules = {".".join(place.with_suffix("").parts).removesuffix(".__init__"): path for path, place in files.items()}
    below = {path: {modules[name] for name in modules_named(path, modules)} - {path} for path in files}
    settled: set[Path] = set()
    while free := {path for path, needed in below.items() if path not in settled and needed <= settled}:
        settled |= free
    assert settled == set(files), sorted(str(files[path]) for path in set(files) - settled)


def modules_named(path: Path, modules: dict[str, Path]) -> Iterator[str]:
    """Modules that a file imports, `from package import module` and what an `__init__` hands on included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield from [whole] if whole in modules else [node.module] if node.module in modules else []


def test_nothing_in_the_product_imports_recipes() -> None:
    for package in PACKAGES:
        for path in sources(package):
            assert not any(n.partition(".")[0] == "recipes" for n in imports(path)), path.relative_to(ROOT)


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

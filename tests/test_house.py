"""The house keeps its order: tables of contents are complete, names stand once, nothing grows beyond its ceiling.

`python -m tests.house` prints the figures. A ceiling is lowered as soon as the product is below it.
"""

from pathlib import Path

import pytest

from tests.house import (
    BESIDE,
    PRODUCT,
    ROOT,
    anys,
    arrows,
    circle,
    class_names,
    classes,
    constructors,
    contents,
    functions,
    inits,
    loose,
    main,
    method_owners,
    options,
    settings,
    shared_methods,
    twice,
)

TWICE: dict[str, str] = {}
"""Public names that may stand twice, with the reason: five at most."""
LINES, ARGUMENTS, ANYS = 49, 6, 54
"""Ceilings: the longest function, the widest constructor, the word `Any` in `assistant/`."""
ARROWS, LOOSE = 79, 2
CLASS_LINES, SHARED = 300, 8
"""Ceilings: the longest class, and the independent classes that may have a method of one name."""
CLOSES = 15
"""`close` is Python's own name for letting go of a resource (`contextlib.closing`), so it may stand in more classes."""
SHARED_NAMES = 40
"""Method names that four independent classes or more may share."""
SETTINGS, OPTIONS = 22, 53


@pytest.mark.parametrize("init", inits(), ids=lambda path: path.parent.relative_to(ROOT).as_posix())
def test_tables_of_contents_name_what_is_there(init: Path) -> None:
    there, listed = contents(init)
    assert listed == there, f"not listed: {sorted(there - listed)}; not there: {sorted(listed - there)}"


@pytest.mark.slow
def test_a_class_name_stands_once() -> None:
    found = twice(ROOT, *PRODUCT, *BESIDE)
    unexpected = {name: places for name, places in found.items() if name not in TWICE}
    assert not unexpected, "call one of them something else"
    assert set(TWICE) <= set(found), "an exception that nothing needs any more"
    assert len(TWICE) <= 5


@pytest.mark.slow
def test_no_function_is_too_long_to_be_read_at_once() -> None:
    assert [place for lines, place in functions() if lines > LINES] == []


def test_no_constructor_takes_too_much() -> None:
    assert [place for count, place in constructors() if count > ARGUMENTS] == []


def test_no_class_is_too_long_to_be_known() -> None:
    assert [place for lines, place in classes() if lines > CLASS_LINES] == [], "split it by what its parts own"


def test_no_method_name_stands_for_too_many_things() -> None:
    found = {name: count for count, name in shared_methods() if count > SHARED}
    assert found.pop("close", 0) <= CLOSES
    assert not found, {name: sorted(method_owners()[name]) for name in found}
    shared = shared_methods()
    assert len(shared) <= SHARED_NAMES, f"name a method after what its own class does: {shared}"


def test_types_are_said() -> None:
    found = anys()
    assert found.total() <= ANYS, found.most_common(5)


def test_the_folders_hang_together_by_few_arrows_and_in_no_circle() -> None:
    assert circle() == [] and len(loose()) <= LOOSE
    assert len(arrows()) <= ARROWS


def test_there_are_few_switches() -> None:
    assert len(settings()) <= SETTINGS, settings()
    assert len(options()) <= OPTIONS, options()


def test_figures_are_found_where_they_are_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A house of two folders and a loose file, all in one circle."""
    sources = {
        "assistant/__init__.py": '"""The house.\n\none    first\ngone   no more\n"""\n',
        "assistant/loose.py": "from typing import Any\nfrom assistant.one import inner\n\nsaid: Any = 1\n",
        "assistant/one/__init__.py": "",
        "assistant/one/inner.py": "if TYPE_CHECKING:\n    from assistant.two.deep import Thing\n",
        "assistant/two/deep.py": (
            "import assistant.loose\n\n\nclass Thing:\n    def __init__(self, a, *, b) -> None:\n        self.a = a\n"
        ),
        "capsules/part.py": "class Thing: ...\n\n\nclass _Own: ...\n\n\nclass Outer:\n    class Thing: ...\n",
        "tts_engine/part.py": "class _Own: ...\n",
    }
    for name, text in sources.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert arrows(tmp_path) == {("loose", "one"), ("one", "two"), ("two", "loose")}
    assert circle(tmp_path) == ["assistant", "one", "two"] and loose(tmp_path) == ["loose"]
    assert functions(tmp_path)[0] == (2, "assistant/two/deep.py: __init__")
    assert constructors(tmp_path) == [(2, "assistant/two/deep.py: Thing")]
    assert twice(tmp_path) == {"Thing": ["assistant/two/deep.py", "capsules/part.py"]}
    assert "_Own" not in class_names(tmp_path, *PRODUCT) and anys(tmp_path) == {"assistant/loose.py": 2}
    assert contents(tmp_path / "assistant/__init__.py") == ({"loose", "one"}, {"one", "gone"})
    main(tmp_path)
    assert capsys.readouterr().out.splitlines()[0] == "    3 folders in a circle: assistant, one, two"


def test_a_contract_is_one_use_of_its_names(tmp_path: Path) -> None:
    """Two implementations, one with an attribute for the property, and two classes that have nothing to do with it."""
    (tmp_path / "assistant").mkdir()
    sources = {
        "Engine(Protocol)": "@property\n    def name(self): ...\n    def start(self): ...\n    def park(self): ...",
        "Local": "def __init__(self):\n        self.name = 1\n    def start(self): ...\n    def park(self): ...",
        "Wide(Local)": "def park(self): ...",
        "Car": "def park(self): ...",
        "Race": "def start(self): ...",
    }
    text = "\n".join(f"class {name}:\n    {body}" for name, body in sources.items())
    (tmp_path / "assistant" / "engines.py").write_text(text)
    owners = method_owners(tmp_path)
    place = "assistant/engines.py: "
    assert owners["park"] == {f"{place}Engine", f"{place}Car"} and owners["start"] == {f"{place}Engine", f"{place}Race"}
    assert shared_methods(tmp_path) == []
    assert classes(tmp_path)[:2] == [(5, f"{place}Local"), (5, f"{place}Engine")]

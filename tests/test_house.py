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
    constructors,
    contents,
    functions,
    inits,
    loose,
    main,
    options,
    settings,
    twice,
)

TWICE: dict[str, str] = {}
"""Public names that may stand twice, with the reason: five at most."""
LINES, ARGUMENTS, ANYS = 49, 6, 59
"""Ceilings: the longest function, the widest constructor, the word `Any` in `assistant/`."""
ARROWS, LOOSE = 79, 2
SETTINGS, OPTIONS = 21, 52


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

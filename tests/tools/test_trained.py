"""The tools that the small model was trained on stay what they are, whatever else is built in or put into the home."""

import datetime as dt
from pathlib import Path

import llm_engine
from assistant.llm.language import Language
from assistant.llm.small import SmallMind
from assistant.tools import tool
from assistant.tools.builtin import TRAINED_TOOLS, BuiltinTools, builtin_names, builtin_tools
from assistant.tools.kept import Kept
from assistant.tools.registry import ToolRegistry

TINY = Path(llm_engine.__path__[0]) / "tiny"


class More(BuiltinTools):
    """With a tool more than the small model knows, declared before all others."""

    async def get_moon(self) -> str:
        "The phase of the moon."
        return "full"


@tool
def lamp(room: str) -> str:
    "Switch the lamp of a room."
    return room


def household(kind: type[BuiltinTools]) -> BuiltinTools:
    return kind(Kept(), lambda: dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC), {"ada": "Ada"}, lambda: "ada")


def tokens(registry: ToolRegistry, language: Language) -> list[int]:
    """All that stands before the first turn, as the model is fed it."""
    return list(language.encode(language.layout.system("You are Ada.", registry.specs)))


def test_of_the_built_in_tools_a_limited_model_is_shown_those_it_knows_and_a_persons_own_are_declared() -> None:
    language = SmallMind(TINY).language()
    before = builtin_tools(household(BuiltinTools), names=TRAINED_TOOLS)
    assert tuple(spec.name for spec in before.specs) == TRAINED_TOOLS
    assert tokens(before, language) == tokens(builtin_tools(household(More), names=TRAINED_TOOLS), language)
    assert tokens(before, language) != tokens(builtin_tools(household(More)), language), "the check sees a tool more"
    own = language.layout.system("You are Ada.", builtin_tools(household(More), [lamp], names=TRAINED_TOOLS).specs)
    assert f"{TRAINED_TOOLS[-1]}\n switch the lamp of a room\nlamp(room)\n</tools>" in own


def test_any_other_model_is_offered_all() -> None:
    registry = builtin_tools(household(More), [lamp])
    assert tuple(spec.name for spec in registry.specs) == (*builtin_names(More), "lamp")
    assert builtin_names(More) == (*builtin_names(), "get_moon")
    assert builtin_names()[: len(TRAINED_TOOLS)] == TRAINED_TOOLS
    assert {"pause_timer", "adjust_timer", "cancel_reminder"} <= {*builtin_names()} - {*TRAINED_TOOLS}

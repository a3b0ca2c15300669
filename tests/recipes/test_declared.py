"""Tools that the small model has to read: how they stand in its prompt, and the talks that teach it."""

import datetime as dt
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from assistant.events import ToolSpec
from assistant.llm.chat_layout import find_layout
from assistant.tools.builtin import TRAINED_TOOLS, BuiltinTools, builtin_tools
from assistant.tools.kept import Kept
from llm_engine.chat import ChatTemplate
from recipes import score
from recipes.chatml import TEMPLATE, TalkEncoder, call_text, messages, system_text, tool_specs, turn_text
from recipes.llm import TINY
from recipes.texts.declared_words import DOMAINS, KINDS, PLACES, domains
from recipes.texts.scene import Declaration, Parameter, Scene, Talk, TalkTurn, phrasings
from recipes.texts.scenes_declared import asked, declared_talk, offer, spaced
from recipes.texts.tools import TOOL_NAMES

LIGHT = Declaration(
    "set_light", "Switch a light on or off. Works at night, too.",
    (Parameter("room", values=("kitchen", "living_room")),
     Parameter("level", "integer", tells="In percent.", required=False),
     Parameter("on", "boolean", required=False), Parameter("note", required=False)),
)  # fmt: skip
LAYOUT = find_layout(ChatTemplate(TEMPLATE).render)


@pytest.fixture(scope="module")
def encoder() -> TalkEncoder:
    return TalkEncoder(Tokenizer.from_file(str(TINY / "tokenizer.json")))


@pytest.fixture(scope="module")
def some() -> list[Talk]:
    rng = random.Random(5)
    return [declared_talk(rng, split, practice=split == "train") for split in ("train", "test") for _ in range(120)]


def as_client(declared: Declaration) -> ToolSpec:
    """What a session makes of a client's declaration."""
    function = declared.spec()["function"]
    assert isinstance(function, dict)
    return ToolSpec(function["name"], function["description"], function["parameters"])


def test_what_a_declaration_becomes(encoder: TalkEncoder) -> None:
    assert system_text(Talk("You are Ada.", ("get_time", LIGHT, "undo", Declaration("go", "")))) == (
        "# Tools\n\n<tools>\nget_time undo\n switch a light on or off\n"
        "set_light(room: kitchen, living_room;level?: number, in percent;on?: true, false;note?)\ngo()\n</tools>"
        "\n\nYou are Ada."
    )
    assert system_text(Talk("", (Declaration("go", "Go."),))) == "# Tools\n\n<tools>\n go\ngo()\n</tools>"
    name = encoder.ids("set_light")
    declared = encoder.ids(system_text(Talk("", (LIGHT,))))
    assert any(declared[i : i + len(name)] == name for i in range(len(declared)))


def test_built_in_tools_cost_their_names_as_ever() -> None:
    household = BuiltinTools(Kept(), lambda: dt.datetime(2026, 11, 20), {"ada": "Ada"}, lambda: "ada")
    specs = builtin_tools(household, names=TRAINED_TOOLS).specs
    assert LAYOUT.system("You are Ada.", specs) == (
        f"<|im_start|>system\n# Tools\n\n<tools>\n{' '.join(TRAINED_TOOLS)}\n</tools>\n\nYou are Ada.<|im_end|>\n"
    )


@pytest.mark.parametrize(
    "declared",
    [
        Declaration("get_time", "Time.", (Parameter("city"),)),
        Declaration("spell", "Cast a spell.", (Parameter("word", values=("fire", "ice")),)),
        Declaration("set_timer", "Timer.", (Parameter("duration", "integer"), Parameter("label", required=False))),
        Declaration("set_timer", "Timer.", (Parameter("duration"), Parameter("label"))),
    ],
)
def test_a_known_name_that_takes_something_else_is_told_in_full(declared: Declaration) -> None:
    assert f"\n{declared.name}({declared.parameters[0].name}" in system_text(Talk("", (declared,)))


def test_the_shipped_template_is_the_recipes() -> None:
    assert (TINY / "chat_template.jinja").read_text("utf-8") == TEMPLATE


def test_the_products_prompt_is_the_one_of_training(some: list[Talk]) -> None:
    for talk in some:
        tools = [as_client(tool) for tool in talk.tools if not isinstance(tool, str)]
        heart = [ToolSpec(**known) for known in map(dict, _built_in(talk))]
        wanted = f"<|im_start|>system\n{system_text(talk)}<|im_end|>\n"
        assert LAYOUT.system(talk.system, [*tools, *heart]) == wanted


def _built_in(talk: Talk) -> list[dict[str, object]]:
    """The built-in tools of a talk; a client's stand before them."""
    names = [tool for tool in talk.tools if isinstance(tool, str)]
    return [dict(spec["function"]) for spec in tool_specs(Talk("", tuple(names)))]  # type: ignore[call-overload]


def test_training_ids_are_the_templates_and_only_grow(some: list[Talk], encoder: TalkEncoder) -> None:
    template = ChatTemplate(TEMPLATE)
    for talk in some[::4]:
        whole = encoder.talk(talk)[0]
        assert encoder.ids(template.render(messages(talk), tool_specs(talk), add_generation_prompt=False)) == whole
        for i, turn in enumerate(talk.turns):
            if turn.role == "assistant":
                prompt = encoder.prompt(talk, i)
                assert whole[: len(prompt)] == prompt


def test_calls_keep_to_what_is_declared_and_take_what_was_said(some: list[Talk]) -> None:
    calls = 0
    for talk in some:
        declared = {tool.name: tool for tool in talk.tools if not isinstance(tool, str)}
        assert 1 <= len(declared) <= 6 and not declared.keys() & {*TOOL_NAMES}
        said = ""
        for turn in talk.turns:
            said += f" {turn.text.lower()}" if turn.role == "user" else ""
            if not turn.call or turn.call[0] not in declared:
                continue
            calls += 1
            given, takes = turn.call[1], {p.name: p for p in declared[turn.call[0]].parameters}
            assert {name for name, p in takes.items() if p.required} <= given.keys() <= takes.keys()
            for name, value in given.items():
                p = takes[name]
                assert not p.values or value in p.values
                assert p.kind not in ("number", "integer") or value.isdigit()
                assert value in ("true", "false") if p.kind == "boolean" else spaced(value).lower() in said
    assert calls > 250


def test_only_what_is_missing_is_asked_for_and_only_what_is_not_declared_is_refused(some: list[Talk]) -> None:
    seen = {"ask declared": 0, "refusal declared": 0, "error declared": 0, "follow-up declared": 0}
    for talk in some:
        blocks = " ".join(f"{tool.name} {tool.tells}" for tool in talk.tools if not isinstance(tool, str)).lower()
        for i, turn in enumerate(talk.turns):
            if turn.kind in seen:
                seen[turn.kind] += 1
            if turn.kind == "refusal declared":
                thing = turn.text.removeprefix("I have no tool for the ").rstrip(".")
                assert thing in talk.turns[i - 1].text and not re.search(rf"\b{thing}\b", blocks)
            if turn.kind == "ask declared":
                assert talk.turns[i + 1].role == "user" and talk.turns[i + 2].kind in ("ask declared", "call declared")
    assert min(seen.values()) > 10, seen


def test_domains_and_wordings_are_held_out(some: list[Talk]) -> None:
    held, kept = domains("test"), domains("train")
    assert "lights" in held and not {*held} & {*kept} and {*held} | {*kept} == {*DOMAINS}
    assert len(held) >= 7 and len(kept) >= 30
    for kind in KINDS.values():
        for lines in kind.groups().values():
            assert len(lines) > 1 and not {*phrasings(lines, "train")} & {*phrasings(lines, "test")}
    here = {thing for domain in kept for row in DOMAINS[domain] for thing in row.things}
    only = {thing for domain in held for row in DOMAINS[domain] for thing in row.things} - here
    assert len(only) > 20
    real = [tool for talk in some[:120] for tool in talk.tools if not isinstance(tool, str)]
    assert not [tool.name for tool in real if tool.name in {f"set_{thing.replace(' ', '_')}" for thing in only}]


def test_the_same_seed_makes_the_same_talks() -> None:
    made = [[declared_talk(random.Random(seed)) for seed in range(8)] for _ in range(2)]
    assert made[0] == made[1]


def test_talks_are_short(some: list[Talk], encoder: TalkEncoder) -> None:
    lengths = [len(encoder.talk(talk)[0]) for talk in some]
    # A long reply that breaks off stands before some of them.
    assert sum(lengths) / len(lengths) < 450 and sum(length < 1024 for length in lengths) > 0.95 * len(lengths)


def test_the_score_tells_calls_refusals_and_questions_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    class Judge:
        """Says always the same, or always what is right."""

        said = ""

        def __init__(self, path: Path) -> None:
            assert path == TINY

        def replies(self, talk: Talk) -> Iterator[tuple[TalkTurn, str]]:
            return ((turn, self.said or turn_text(turn)) for turn in talk.turns if turn.role == "assistant")

    monkeypatch.setattr(score, "ReplyJudge", Judge)
    right = score.score_declared(TINY, 40).rows()
    assert {row["percent"] for row in right.values()} == {100.0}
    assert {f"= unseen tools: {name}" for name in score.UNSEEN.values()} < right.keys()
    assert right.keys() >= score.UNSEEN.keys()
    Judge.said = "I have no tool for the moon."
    wrong = {name: row["percent"] for name, row in score.score_declared(TINY, 40).rows().items()}
    assert wrong.pop("= unseen tools: no call where none fits") == 100.0
    assert {*wrong.values()} == {0.0}
    Judge.said = call_text("set_light", {})
    assert score.score_declared(TINY, 40).rows()["= unseen tools: no call where none fits"]["percent"] == 0.0


@pytest.mark.parametrize(
    "parameters",
    [
        {}, {"properties": None}, {"properties": ["a"]}, {"properties": {"a": "text"}}, {"properties": {"a": True}},
        {"properties": {"a": {"type": ["string", "null"], "enum": 3}}}, {"properties": {"a": {}}, "required": 1},
        {"properties": {"a": {"enum": "abc", "description": 5}}, "required": "a"},
        {"properties": {"a": {"anyOf": [{"type": "string"}]}}, "required": ["b"]},
    ],
)  # fmt: skip
def test_a_schema_that_says_nonsense_is_declared_all_the_same(parameters: dict[str, object]) -> None:
    assert "\n go there\ngo(" in LAYOUT.system("Hi.", [ToolSpec("go", "Go there.", parameters)])


def test_any_word_may_be_a_place_only_where_one_is_meant() -> None:
    """Of `sofa lamp` nobody can tell that the tool which is missed is one for a lamp."""
    rows, unknown = [row for row in DOMAINS["heating"] if row.kind == "switch"], {}
    for line in ("check the {place} {t}", "check the {t} in the {place}"):
        scene, places = Scene(random.Random(7), "train", 0.0, practice=True), set()
        for _ in range(200):
            it = offer(scene, rows[0])
            if "place" in it.holes and not it.said["place"]:
                places.add(asked(scene, it, (line,))["place"])
        unknown[line] = len(places - {*PLACES})
    assert unknown.pop("check the {place} {t}") == 0 and min(unknown.values()) > 10

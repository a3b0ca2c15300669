"""One reply of the small model: words alone hold it, and what was retrieved weighs how it begins. Shipped tokenizer."""

from pathlib import Path

import llm_engine
from assistant.contracts import Line, Prompt
from assistant.events import ToolSpec
from assistant.llm.small import LOST, SmallMind, small_mind
from assistant.llm.small.guide import SURE, WEIGHT
from assistant.llm.small.recall import KEPT
from assistant.tools.builtin import TRAINED_TOOLS
from llm_engine.chat import Chat
from recipes.texts.tools import specs

TINY = Path(llm_engine.__file__).parent / "tiny"
LANGUAGE = SmallMind(TINY).language()
TOKENIZER = Chat.load(TINY).tokenizer
LAMP = {
    "type": "object",
    "properties": {"room": {"type": "string", "enum": ["kitchen", "hall"]}, "on": {"type": "boolean"}},
    "required": ["room", "on"],
}
PLANTS = ToolSpec("water_plants", "water the plants")
TOOLS = (ToolSpec("set_lamp", "switch a lamp", LAMP), PLANTS, ToolSpec("get_time"))
BY_HEART = tuple(ToolSpec(one["function"]["name"], "", one["function"]["parameters"]) for one in specs())
BEGIN = "<tool_call>\n<function="
CALL = LANGUAGE.encode(BEGIN)[0]
TELLS = ("my locker is 48", KEPT, "my seat is green", KEPT)


def first(text):
    return LANGUAGE.encode(text)[0]


def named(tool):
    return LANGUAGE.encode(f"{BEGIN}{tool}")[1]


class Reply:
    """A guide, and what was written under it. `likes`: how probable tokens are to the model; `names`: behind a call."""

    def __init__(self, *said, tools=TOOLS, likes=None, names=None):
        lines = tuple(Line(("user", "assistant")[at % 2], text) for at, text in enumerate(said))
        self.likes, self.names = likes or {}, names or {}
        self.guide = LANGUAGE.guide(Prompt("You are Ada.", tools, lines), self.ahead)

    def ahead(self, ids):
        chances = [1e-9] * TOKENIZER.size
        for token, chance in (self.names if ids else self.likes).items():
            chances[token] = chance
        return chances

    def may(self, text):
        """Whether a reply may go on so, token by token."""
        for token in LANGUAGE.encode(text):
            among = self.guide.among()
            if among and token not in among:
                return False
            self.guide.push(token, TOKENIZER.decode([token], skip_special=False))
        return True


def test_the_mind_is_known_by_the_words_beside_its_weights(tmp_path):
    assert small_mind(TINY) == SmallMind(TINY) and small_mind(tmp_path) is None
    assert LANGUAGE.reach and LANGUAGE.longest_call and Reply("what", tools=BY_HEART).may(LOST)
    assert tuple(tool.name for tool in BY_HEART) == TRAINED_TOOLS


def test_a_tool_that_the_request_may_mean_is_called_unless_the_model_is_far_surer_of_something_else():
    for refusal, begins in ((0.9, {CALL}), (0.9 * WEIGHT, {CALL, first("I")})):
        likes = {CALL: 0.001, first("I"): refusal}
        among = Reply("turn the kitchen lamp on", likes=likes, names={named("set_lamp"): 0.9}).guide.among()
        assert {CALL, first("I")} & {*among} == begins
    reply = Reply("turn the kitchen lamp on", likes={CALL: 0.9}, names={named("set_lamp"): 0.9})
    given = "<parameter=room>\n kitchen\n</parameter>\n<parameter=on>\n true\n</parameter>\n"
    assert reply.may(f"{BEGIN}set_lamp>\n{given}</function>\n</tool_call>")


def test_a_call_is_not_begun_for_a_tool_that_the_request_cannot_mean():
    for wanted, may in (("water_plants", False), ("get_time", True)):
        reply = Reply("tell me a story", likes={CALL: 0.7}, names={named(wanted): 0.9})
        assert (CALL in reply.guide.among()) is may, wanted
    assert not Reply("tell me a story", names={named("get_time"): 0.9}).may(f"{BEGIN}water_plants")


def test_a_call_by_other_words_may_be_begun_where_the_model_is_sure_of_it():
    for chance, may in ((SURE + 0.1, True), (SURE - 0.1, False)):
        reply = Reply("the soil is bone dry", likes={CALL: chance}, names={named("water_plants"): 0.9})
        assert reply.may(f"{BEGIN}water_plants") is may


def test_a_question_that_was_begun_goes_on_to_what_is_missing():
    likes = {first("Which"): 0.01, first("I"): 0.9}
    reply = Reply("turn the lamp on", likes=likes, names={named("set_lamp"): 0.9})
    assert reply.may("Which one: kitchen or hall?")
    assert not Reply("turn the lamp on", likes=likes).may("Which plant?")
    assert Reply("what is new", likes=likes).may("Which one")


def test_the_nearest_line_counts_more_and_no_other_is_repeated():
    said, have = (LANGUAGE.encode(text)[1] for text in ("You said:", "You have"))
    for chance, begins in ((0.9, {said}), (0.9 * WEIGHT, {said, have})):
        reply = Reply(*TELLS, "what is my locker", tools=BY_HEART, likes={said: 0.001, have: chance})
        assert reply.may("You") and {said, have} & {*reply.guide.among()} == begins
    for text, may in (("You said: my locker is 48.", True), ("You said: my seat is green.", False)):
        assert Reply(*TELLS, "what is my locker", tools=BY_HEART).may(text) is may


def test_any_line_may_be_repeated_where_none_is_near_and_nothing_else_as_one():
    for text, may in (("You said: my seat is green.", True), ("You said: my seat is blue.", False)):
        _, said, _, _, seat, *_ = LANGUAGE.encode("You said: my seat")
        chances = {said: 0.9, seat: 0.9}
        assert Reply(*TELLS, "tell me something", tools=BY_HEART, likes=chances, names=chances).may(text) is may


def test_where_no_line_is_near_one_must_be_likelier_than_that_nothing_was_told():
    said, have = (LANGUAGE.encode(text)[1] for text in ("You said:", "You have"))
    lines = (LANGUAGE.encode(f"You said: {text}.") for text in TELLS[::2])
    locker = next(one for one, other in zip(*lines, strict=False) if one != other)
    for chance, begins in ((0.4, {have}), (0.6, {said, have})):
        likes = {have: 0.2, said: 0.4}
        reply = Reply(*TELLS, "what is my ring size", tools=BY_HEART, likes=likes, names={locker: chance})
        assert reply.may("You") and {said, have} & {*reply.guide.among()} == begins


def test_without_any_tool_no_call_is_begun():
    assert not Reply("what is 2 plus 2", tools=(), likes={CALL: 0.9}).may(BEGIN)


def test_an_odd_name_of_a_tool_is_no_trouble():
    for name in ("", "a b", "日本", "x" * 300):
        assert Reply("do it", tools=(ToolSpec(name, "does it"),), likes={first("I"): 0.9}).may("I am")

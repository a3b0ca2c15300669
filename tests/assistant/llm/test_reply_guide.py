"""A small model's reply is held to what may be meant, and written anew where it was not: over the shipped tokenizer."""

import json
from pathlib import Path

import pytest
import torch

from assistant.contracts import CallPiece, Line, Prompt, ReplyOptions, TextPiece
from assistant.events import ToolSpec
from assistant.llm.decoding import Writing
from assistant.llm.language import load_language
from assistant.llm.talk_state import TalkState
from capsules import ExecContext
from llm_engine import HybridLLM, Sampling
from llm_engine.chat import Chat

TINY = Path(__file__).parents[3] / "llm_engine" / "tiny"
LANGUAGE = load_language(TINY, limited=True)
TOKENIZER = Chat.load(TINY).tokenizer
LAMP = {
    "type": "object",
    "properties": {"room": {"type": "string", "enum": ["kitchen", "hall"]}, "on": {"type": "boolean"}},
    "required": ["room", "on"],
}
PLANTS = ToolSpec("water_plants", "water the plants")
TOOLS = (ToolSpec("set_lamp", "switch a lamp", LAMP), PLANTS, ToolSpec("get_time"))
CALL = "<tool_call>\n<function={}>\n</function>\n</tool_call>"
SAID = "<parameter=room>\n kitchen\n</parameter>\n<parameter=on>\n true\n</parameter>\n"
LAMP_ON = CALL.format("set_lamp").replace("\n</function", f"\n{SAID}</function")


def prompt(*said, tools=TOOLS):
    lines = (Line(("user", "assistant")[at % 2], text) for at, text in enumerate(said))
    return Prompt("You are Ada.", tools, tuple(lines))


class Typed:
    """A guide, and what was written under it."""

    def __init__(self, said, anew=False, tools=TOOLS, probability=0.0):
        chances = {LANGUAGE.encode(CALL)[0]: probability}
        self.guide = LANGUAGE.guide(prompt(said, tools=tools), lambda of: chances.get(of, 0.0), "" if anew else None)

    def may(self, text):
        """Whether a reply may go on so, token by token."""
        for token in LANGUAGE.encode(text):
            among = self.guide.among()
            if among and token not in among:
                return False
            self.guide.push(token, TOKENIZER.decode([token], skip_special=False))
        return True


def test_a_call_that_cannot_be_meant_does_not_stand_and_one_that_can_does():
    for said, name, stands in [
        ("tell me a story", "water_plants", False),
        ("are the plants dry", "water_plants", True),
        ("tell me a story", "get_time", True),  # known by heart: the model's own judgement
    ]:
        typed = Typed(said)
        assert typed.guide.stands() is None
        assert typed.may(CALL.format(name)) and typed.guide.stands() is stands


def test_a_call_by_other_words_stands_where_the_model_is_sure_of_it():
    for said, name, probability, stands in [
        ("the soil is bone dry", "water_plants", 0.9, True),
        ("the soil is bone dry", "water_plants", 0.5, False),
        ("turn the kitchen lamp on", "water_plants", 0.9, False),  # these words tell of another tool
    ]:
        typed = Typed(said, probability=probability)
        assert typed.may(CALL.format(name)) and typed.guide.stands() is stands, (said, probability)


def test_a_refusal_does_not_stand_where_a_tool_is_named_and_is_not_known_before_it_is_one():
    typed = Typed("turn the kitchen lamp on")
    for word in ("I", " have", " no"):
        assert typed.may(word) and typed.guide.stands() is None
    assert typed.may(" tool") and typed.guide.stands() is False
    other = Typed("turn the kitchen lamp on")
    assert other.may("I am") and other.guide.stands() is True
    assert (free := Typed("open the gate")).may("I have no tool") and free.guide.stands() is True


def test_where_a_tool_is_meant_for_certain_the_reply_calls_it_or_asks():
    for said in ("water the plants", "water all the plants please"):
        for begin in ("I will", "All right", CALL.format("get_time")):
            assert (typed := Typed(said)).may(begin) and typed.guide.stands() is False
        assert (typed := Typed(said)).may(CALL.format("water_plants")) and typed.guide.stands() is True
    assert (typed := Typed("are the plants dry")).may("I will") and typed.guide.stands() is True
    pour = ToolSpec(
        "pour_tea", "", {"type": "object", "properties": {"cups": {"type": "number"}}, "required": ["cups"]}
    )
    asks = Typed("pour the tea", tools=(pour,))
    assert asks.may("Which cups?") and asks.guide.stands() is True


def test_what_need_not_be_asked_does_not_stand_as_a_question():
    typed = Typed("turn the kitchen lamp on")
    assert typed.may("Which one") and typed.guide.stands() is None
    assert typed.may(":") and typed.guide.stands() is False
    assert (free := Typed("tell me a story")).may("Which one:") and free.guide.stands() is False
    assert not Typed("tell me a story", anew=True).may("Which")
    assert (other := Typed("turn the lamp on")).may("Which one:") and other.guide.stands() is True


def test_a_question_for_what_no_meant_tool_lacks_does_not_stand():
    for said in ("tell me a story", "turn the kitchen lamp on"):
        assert (typed := Typed(said)).may("On or") and typed.guide.stands() is None
        assert typed.may(" off?") and typed.guide.stands() is False
        assert not Typed(said, anew=True).may("On or off?")
    assert (lamp := Typed("the lamp in the hall")).may("On or off?") and lamp.guide.stands() is True
    assert (free := Typed("what is new")).may("On your list") and free.guide.stands() is True


def test_a_refusal_names_what_was_said_and_no_value():
    said = "start the bread machine in the hall"
    assert Typed(said).may("I have no tool for the bread machine.")
    for text in ("I have no tool for the lamp.", "I have no tool for the hall."):
        assert not Typed(said).may(text)
    assert Typed(said).may("I have met a king.")


@pytest.mark.parametrize(
    ("said", "may", "may_not"),
    [
        ("turn the kitchen lamp on", [LAMP_ON],
         ["I have", "The lamp", "Which room?", CALL.format("get_time"), CALL.format("water_plants")]),
        ("turn the lamp on", ["Which one: kitchen or hall?"], ["<tool_call>", "I have", "Which lamp?"]),
        ("the lamp in the hall", ["On or off?", "<tool_call>"], ["I have", "The lamp", "Which room?"]),
        ("tell me a story", ["I have no tool for the story.", "The story is"], ["<tool_call>"]),
    ],
)  # fmt: skip
def test_written_anew_it_calls_or_asks_what_there_is_and_speaks_where_there_is_nothing(said, may, may_not):
    assert all(Typed(said, anew=True).may(text) for text in may)
    assert not any(Typed(said, anew=True).may(text) for text in may_not)


def test_a_question_that_was_begun_goes_on_to_what_is_missing():
    assert Typed("turn the lamp on").may("Which one: kitchen or hall?")
    assert not Typed("turn the lamp on").may("Which plant?")
    assert Typed("what is new").may("Which one")


TELLS = ("my locker is 48", "I will remember that.", "my seat is green", "I will remember that.")


BY_HEART = (ToolSpec("get_time"),)


class Recalling(Typed):
    def __init__(self, asks, rejected=None, tools=BY_HEART, tells=TELLS, odds=lambda token: 0.0):
        self.guide = LANGUAGE.guide(prompt(*tells, asks, tools=tools), odds, rejected)


def test_what_was_told_is_said_of_the_thing_that_was_asked_for_and_of_no_other():
    for text, may in [
        ("Your locker is 48.", True),
        ("Your locker is green.", False),
        ("Your seat is green.", False),
        ("You said: my locker is 48.", True),
        ("You said: my locker is 50.", False),
        ("The locker is", True),
    ]:
        assert Recalling("what is my locker").may(text) is may, text
    for asks in ("what is my locker", "my locker please"):
        assert (known := Recalling(asks)).may("You have") and known.guide.stands() is None
        assert known.may(" not told me your") and known.guide.stands() is False


def test_where_a_line_tells_it_the_reply_is_no_refusal_but_that_line():
    for refusal in ("I cannot", "I have no", "You have not told me yet", "Your"):
        typed = Recalling("where do i park", tells=("i park on level 3", "All right."))
        assert typed.may(refusal) and typed.guide.stands() is not True
    anew = Recalling("where do i park", "I have no ", tells=("i park on level 3", "All right."))
    assert not anew.may("I") and anew.may("You said: i park on level 3.")
    tool = ToolSpec("find_parking", "finds where to park")
    meant = Recalling("where do i park", tools=(tool,), tells=("i park on level 3", "All right."))
    assert meant.may("I cannot") and meant.guide.stands() is True


def test_a_question_in_the_first_person_is_not_refused_where_anything_was_told():
    tells = ("we have a bassoon at home", "I will remember that.", "what time is it", "It is 5 am.")
    asks = "what instrument do i play"
    typed = Recalling(asks, tells=tells)
    assert typed.may("I am too small ") and typed.guide.stands() is False
    for text, may in [
        ("You said: we have a bassoon at home.", True),
        ("You have not told me yet.", True),
        ("You said: what time is it.", False),
        ("I cannot", False),
    ]:
        assert Recalling(asks, "I am too small ", tells=tells).may(text) is may, text
    nothing = Recalling(asks, tells=("what time is it", "It is 5 am."))
    assert nothing.may("I am too small ") and nothing.guide.stands() is True


def test_a_line_that_shares_no_word_is_said_only_if_it_is_likelier_than_that_none_was_told():
    tells = ("we moved to ghent", "I will remember that.", "we adopted two cats", "I will remember that.")
    asks, (_, said, *_), (_, have, *_) = "which town is home", *map(LANGUAGE.encode, ("You said:", "You have"))
    moved = LANGUAGE.encode(" moved")[0]
    for chance, stands in ((0.3, False), (0.5, True)):  # both begin with the same word: that is no choice
        odds = {said: 0.5, have: 0.2, moved: chance}
        typed = Recalling(asks, tells=tells, odds=lambda token, odds=odds: odds.get(token, 0.0))
        assert typed.may("You said:") and typed.guide.stands() is None
        assert typed.may(" we") and typed.guide.stands() is None
        assert typed.may(" moved to ghent.") and typed.guide.stands() is stands, chance
    anew = Recalling(asks, "You said: we moved to ghent", tells=tells)
    assert not anew.may("You said:") and anew.may(" have not told me yet.")


def test_what_is_known_by_its_thing_is_not_a_line_repeated():
    typed = Recalling("what is my locker")
    assert typed.may("You said:") and typed.guide.stands() is False
    anew = Recalling("what is my locker", "You said:")
    assert anew.may("Your locker is 48.")
    other = Recalling("what did i say about the weather")
    assert other.may("You said:") and other.guide.stands() is not False


def test_what_was_never_told_is_not_said():
    assert (typed := Recalling("what is my ring size")).may("Your") and typed.guide.stands() is False
    assert Recalling("what is my ring size").may("You have not told me your ring size.")
    assert not Recalling("what is my ring size").may("You have not told me your seat.")


@pytest.mark.parametrize("tools", [BY_HEART, TOOLS, ()])
def test_a_recall_that_did_not_stand_is_written_anew_as_one(tools):
    assert Recalling("what is my locker", "You have not told me your", tools).may("Your locker is 48.")
    assert not Recalling("what is my locker", "You have not told me your", tools).may("I")
    assert Recalling("what is my ring size", "Your", tools).may("You have not told me your ring size.")
    assert not Recalling("what is my ring size", "Your", tools).may("<tool_call>")


@pytest.mark.parametrize(
    ("said", "may"),
    [
        (["next sunday too"], False),
        (["30 days from now", "That is a Sunday.", "and in weeks"], True),
        (["5 miles in feet", "26400 feet.", "and 20"], True),
        (["5 miles in feet", "26400 feet.", "thanks", "You are welcome.", "and sunday"], False),
    ],
)
def test_what_needs_two_units_is_called_where_two_were_said_lately(said, may):
    takes = {"properties": {name: {"type": "string"} for name in ("value", "unit", "to")}}
    takes["required"] = [*takes["properties"]]
    for convert, known in ((ToolSpec("convert", "", takes), True), (ToolSpec("convert", "move a sunday"), False)):
        lines = (Line(("user", "assistant")[at % 2], text) for at, text in enumerate(said))
        typed = Typed("")
        typed.guide = LANGUAGE.guide(Prompt("You are Ada.", (convert, PLANTS), tuple(lines)), lambda token: 0.0, None)
        assert typed.may("<tool_call>\n<function=convert") is (may or not known), "a client's own is another tool"


def test_without_any_tool_a_call_does_not_stand_and_what_is_written_anew_says_so():
    said = "what is 2 plus 2"
    assert (typed := Typed(said, tools=())).may("<tool_call>") and typed.guide.stands() is False
    assert (other := Typed(said, tools=())).may("I am too small") and other.guide.stands() is True
    assert Typed(said, anew=True, tools=()).may("I cannot do that here, because my tools are switched off.")
    assert not Typed(said, anew=True, tools=()).may("The sum")


# ---------------------------------------------------------------------------------------------------- decoding


class Obeying:
    """An engine that writes what it is told to, first or anew, over the real one's state."""

    def __init__(self, llm, *texts):
        self.llm, self.texts, self.at, self.begin = llm, list(texts), 0, llm.position

    def step(self, among):
        wanted = [*LANGUAGE.encode(self.texts[0]), *sorted(LANGUAGE.stops)[:1]]
        assert not among or wanted[self.at] in among, (self.texts[0], self.at)
        self.at += 1
        return self.llm.step([wanted[self.at - 1]])

    def rollback(self, position):
        self.llm.rollback(position)
        if position == self.begin and self.at > 1:
            self.texts.pop(0)
            self.at = 0

    def __getattr__(self, name):
        return getattr(self.llm, name)


@pytest.fixture(scope="module")
def llm():
    engine = HybridLLM.load(TINY, ExecContext("cpu"), max_positions=512)
    engine.set_sampling(Sampling.greedy())
    return engine


def write(llm, said, *texts, most=None):
    """What is told of a reply that is `texts`, one after the other where one does not stand."""
    asked, state = prompt(said), TalkState()
    llm.reset()
    ids = LANGUAGE.encode(f"{said}{LANGUAGE.layout.opening}")
    llm.append(ids)
    state.log.appended(ids)
    obeying = Obeying(llm, *texts)
    writing = Writing(obeying, LANGUAGE, state, asked, ReplyOptions("resp_1", max_tokens=most))
    pieces = [piece for piece in writing.steps() if piece is not None]
    assert state.log.ids == llm.tokens and len(obeying.texts) == 1
    return pieces, state, llm.snapshot(), writing


@pytest.mark.parametrize(
    ("said", "first", "then"),
    [
        ("turn the kitchen lamp on", "I have no tool", LAMP_ON),
        ("tell me a story", CALL.format("water_plants"), "I have no tool for the story."),
        ("turn the lamp on", "I have no tool", "Which one: kitchen or hall?"),
    ],
)
def test_nothing_is_told_or_left_of_a_reply_that_was_written_anew(llm, said, first, then):
    pieces, state, capsule, writing = write(llm, said, first, then)
    text = "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))
    calls = [piece for piece in pieces if isinstance(piece, CallPiece)]
    if then.startswith("<"):
        assert not text and [json.loads(call.arguments) for call in calls] == [{"room": "kitchen", "on": True}]
        assert writing.reason == "tool_calls"
    else:
        assert text == then and not calls and writing.reason == "stop"
    written = state.written["resp_1"]
    assert written.tokens == [*LANGUAGE.encode(then)] and written.text == text

    llm.reset()
    begin = LANGUAGE.encode(f"{said}{LANGUAGE.layout.opening}")
    llm.append(begin)
    for token in LANGUAGE.encode(then):
        llm.step([token])
    llm.catch_up()
    plain = llm.snapshot()
    assert plain.tokens == capsule.tokens and plain.tensors.keys() == capsule.tensors.keys()
    for name, tensor in plain.tensors.items():
        assert torch.equal(tensor.view(torch.uint8), capsule.tensors[name].view(torch.uint8)), name


def test_what_is_held_back_is_told_in_the_end(llm):
    pieces, *_ = write(llm, "open the gate", "I have no tool", most=len(LANGUAGE.encode("I have no")))
    assert "".join(piece.text for piece in pieces) == "I have no"


def test_the_only_reply_is_forced_unless_a_tool_can_be_meant():
    emergency = "I cannot make calls. Please call your emergency number right now."
    assert Typed("call an ambulance").may(emergency) and not Typed("call an ambulance").may("I am sorry")
    caller = ToolSpec("call_ambulance", "calls an ambulance")
    assert Typed("call an ambulance", tools=(caller,)).may(CALL.format("call_ambulance"))


def test_a_refusal_is_held_to_the_words_that_were_said():
    for text, may in [
        ("I am too small to know about gaspards. A larger model could tell you.", True),
        ("I am too small to know about plants. A larger model could tell you.", False),
        ("I cannot look up gaspards, because I do not go online.", True),
        ("I cannot explain gaspards, because I am too small. A larger model could.", True),
        ("I cannot explain plants, because I am too small. A larger model could.", False),
        ("I will remember that.", False),
        ("I say: gaspards.", False),
        ("You are welcome.", True),
    ]:
        assert Typed("please explain gaspards").may(text) is may, text


def test_without_tools_what_would_be_called_is_switched_off_or_not_known():
    for text, may in [
        ("I cannot do that here, because my tools are switched off.", True),
        ("I am too small to know about gaspards. A larger model could tell you.", True),
        ("Okay.", False),
    ]:
        assert Typed("flip me some gaspards", anew=True, tools=()).may(text) is may, text
    defined = Typed("define gaspards for me", anew=True, tools=())
    assert not defined.may("I cannot do that here")

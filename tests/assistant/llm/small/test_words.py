"""A small model writes words that it says of itself or has heard, ends what it says, and never stays silent."""

import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from tokenizers import Tokenizer

import llm_engine
from assistant.llm.small.words import COUNTED, COUNTED_UNASKED, LONGEST_VALUE, ROUNDS, Vocabulary, WordGuide
from llm_engine.callguide import CallGuide
from llm_engine.tokenizer import TextTokenizer

STOP, CALL = "<|im_end|>", "<tool_call>"
LETTERS = [*map(chr, range(32, 127)), "\n", "\xc3", "\xa9", STOP, "<|im_start|>", CALL, "</tool_call>"]
PIECES = [*LETTERS, "Your", " hometown", " is", "home", "town", "n't", "'s", " a b", "ing", " ki", ", w", "x, ", "\n\n"]
_PARTS = re.compile("</?tool_call>|(?s:.)")
KNOWN = ("your", "is", "home", "don", "nice", "to", "meet", "you", "function", "note")
HEARD = "my hometown is Blorfin, and I like 3 walnuts. <b>"
TINY = Tokenizer.from_file(str(Path(llm_engine.__file__).parent / "tiny" / "tokenizer.json"))
CALLS = {"add": {"properties": {"on": {"type": "boolean"}, "item": {"type": "string"}}}}

MANY = {
    "note_add": {"properties": {"text": {"type": "string"}}},
    "set_timer": {"properties": {"duration": {"type": "string"}, "label": {"type": "string"}}},
}


def tiny(text: str) -> list[int]:
    ids: list[int] = TINY.encode(text, add_special_tokens=False).ids
    return ids


def texts_of(name: str) -> list[str]:
    return PIECES if name == "pieces" else [piece.decode("latin-1") for piece in TextTokenizer(TINY).pieces()]


class Reply:
    """A guide over one list of tokens, and what was written under it."""

    def __init__(self, texts: Sequence[str], heard: str = HEARD, said: str | None = None) -> None:
        self.texts, self.said = texts, ""
        encode = tiny if len(texts) > 500 else lambda text: [texts.index(part) for part in _PARTS.findall(text)]
        self.vocabulary = Vocabulary(texts, KNOWN, {texts.index(STOP)})
        self.guide = WordGuide(self.vocabulary, heard, said or heard, CallGuide(CALLS, " ", encode))

    def write(self, token: int) -> None:
        self.said += self.texts[token]
        self.guide.push(token, self.texts[token])

    def may(self) -> set[str]:
        return {self.texts[token] for token in self.guide.among()}

    def type(self, *parts: str) -> "Reply":
        for part in parts:
            assert part in self.may(), (self.said, part)
            self.write(self.texts.index(part))
        return self


@pytest.mark.parametrize("name", ["pieces", "tiny"])
def test_whatever_is_written_is_known_or_heard(name: str) -> None:
    """Any choice among what may come; `s` comes and goes, and one letter alone is spelling."""
    texts, heard = texts_of(name), set(re.findall("[a-z]+", HEARD.lower()))
    good = {*KNOWN, *heard, *(f"{word}s" for word in heard), "walnut"}
    for seed in range(12):
        rng, reply = random.Random(seed), Reply(texts)
        while len(reply.said) < 80 and not reply.said.endswith(STOP):
            token = rng.choice([t for t in reply.guide.among() if not texts[t].startswith(CALL)])
            assert texts[token] and texts[token] != "<|im_start|>"
            reply.write(token)
        words = re.findall("[a-z]+", reply.said.lower().removesuffix(STOP))
        assert all(word in good or len(word) == 1 for word in words[:-1]), reply.said


@pytest.mark.parametrize("name", ["pieces", "tiny"])
def test_all_that_is_known_or_heard_can_be_written_in_any_pieces(name: str) -> None:
    texts, rng = texts_of(name), random.Random(7)
    wanted = "Nice to meet you, Blorfin; don't note 3 walnut, b l o r f i n."
    for _ in range(12):
        reply = Reply(texts)
        while rest := wanted[len(reply.said) :]:
            ways = [t for t in range(len(texts)) if texts[t] and rest.startswith(texts[t])]
            fits = [t for t in ways if t in reply.guide.among()]
            assert fits == ways, (reply.said, [texts[t] for t in ways if t not in fits])
            reply.write(rng.choice(ways))
        reply.type(STOP)


def test_a_slip_while_copying_cannot_happen() -> None:
    reply = Reply(LETTERS).type(*"Your home")
    assert {"t", " ", ".", "s", STOP, "1"} >= reply.may() & {"t", " ", ".", "s", STOP, "1", "i", "r", "T", "z"} - {"T"}
    assert not reply.may() & {"i", "r", "z"}
    reply.type(*"town is Blor")
    assert reply.may() == {"f"}, "a word that was begun is ended, in small letters"
    reply.type(*"fin")
    assert reply.may() >= {"s", ".", " "} and "g" not in reply.may()


def test_a_capital_stands_within_a_word_only_where_one_stood() -> None:
    assert "F" in Reply(LETTERS).type(" ").may() and "F" not in Reply(LETTERS).type(*"Blor").may()
    assert Reply(LETTERS, "I am McDonald, not mcdonalds").type(*"Mc").may() == {"d", "D"}


def test_beyond_the_alphabet_goes_what_was_heard_beyond_it() -> None:
    assert "\xc3" not in Reply(LETTERS, "my cafe").type(*"note ").may()
    assert Reply(LETTERS, "my café").type(*"caf").may() == {"\xc3"}, "a word is not over before its last letter"
    assert Reply(LETTERS, "my café").type(*"caf\xc3").may() == {"\xa9"}
    assert STOP in Reply(LETTERS, "my café").type(*"note caf\xc3\xa9.").may()


ITEMS = ("jalapeños", "crème brûlée", "Łódź żurek", "naïve Zoë’s Äpfel", "Ångström", "smörgåsbord", "José", "東京 tea")


@pytest.mark.parametrize("item", ITEMS)
def test_letters_beyond_the_alphabet_survive_in_a_value(item: str) -> None:
    """Token by token, as the shipped tokenizer writes it; the value is not closed within a word."""
    texts = texts_of("tiny")
    said = f"add {item} to my list"
    for form in (item, item.lower()):
        reply = Reply(texts, f"{HEARD} {said} function parameter item", said)
        for token in tiny(f"{CALL}\n<function=add>\n<parameter=item>\n {form.replace('’s', '')}"):
            assert token in reply.guide.among(), (form, reply.said, texts[token])
            reply.write(token)
        assert texts.index("\n") in reply.guide.among() or any(
            texts[token].startswith("\n</parameter>") for token in reply.guide.among()
        )


def test_a_value_is_not_closed_in_the_middle_of_such_a_word() -> None:
    texts = texts_of("tiny")
    for cut, rest in (("jalape", "ños"), ("jalapeñ", "os"), ("jos", "é")):
        said = f"add {cut}{rest} to my list"
        reply = Reply(texts, f"{HEARD} {said} function parameter item", said)
        for token in tiny(f"{CALL}\n<function=add>\n<parameter=item>\n {cut}"):
            reply.write(token)
        going_on = {texts[token] for token in reply.guide.among()}
        assert going_on and all(rest.encode().decode("latin-1").startswith(text) for text in going_on), going_on


def test_something_is_said_and_a_call_is_ended() -> None:
    reply = Reply(LETTERS)
    assert STOP not in reply.may() and STOP not in reply.type(" ").may()
    for end in ".", "?", "!":
        assert STOP not in reply.type("3").may(), "a sentence is ended"
        assert STOP in reply.type(end).may()
    inside = Reply(LETTERS, f"{HEARD} add item parameter").type(CALL)
    for letter in "\n<function=add>\n<parameter=item>\n wal":
        inside.type(letter)
        assert STOP not in inside.may() and CALL not in inside.may()
    assert inside.may() == {"n"}
    inside.type(*"nuts\n</parameter>\n<parameter=on>\n ")
    assert inside.may() == {"t", "f"}, "what is declared goes first"
    inside.type(*"true\n</parameter>\n</function>\n", "</tool_call>")
    assert {STOP, CALL} < inside.may()


def test_no_line_breaks_and_no_call_begins_in_what_is_said() -> None:
    """With a token that it hardly learnt the shipped model would do both."""
    reply = Reply(LETTERS)
    assert CALL in reply.may() and CALL in reply.type(" ").may() and "\n" not in reply.may()
    assert not {CALL, "\n"} & reply.type(*"Nice.").may() and not {CALL, "\n"} & reply.type(" ").may()


def test_the_same_does_not_come_again_and_again() -> None:
    once = "3 walnuts; "
    reply = Reply(LETTERS).type(*once * (ROUNDS - 1), *once[:-1])
    assert " " in reply.may()
    assert reply.type(" ").may() == {STOP}


def test_a_call_that_has_all_its_parameters_takes_no_more() -> None:
    """In the shipped model's tokens the end of one value and the beginning of the next are one token."""
    more = "\n</parameter>\n<parameter="
    for name, takes in ("note_add", "text"), ("set_timer", "duration"):
        reply = Reply(texts_of("tiny"), "note")
        reply.guide = WordGuide(reply.vocabulary, "note", "note", CallGuide(MANY, " ", tiny))
        for token in tiny(f"<tool_call>\n<function={name}>\n<parameter={takes}>\n note"):
            assert token in reply.guide.among()
            reply.write(token)
        assert ">\n</function>\n</tool_call>" not in reply.may(), "a value is closed first"
        assert (more in reply.may()) is (len(MANY[name]["properties"]) > 1)


ITEM = (CALL, *"\n<function=add>\n<parameter=item>\n")
OPEN = f"{HEARD} add item parameter"


def test_a_value_is_of_words_that_stood_before() -> None:
    said, value = Reply(LETTERS), Reply(LETTERS, OPEN).type(*ITEM, " ")
    assert "o" in said.type("h").may(), "home is a word of its own"
    assert value.type("h").may() == Reply(LETTERS, OPEN).type(*ITEM, " ", "h").may() and "o" in value.may()
    assert "e" in said.type("o", "m").may() and value.type("o", "m").may() == {"e"}
    assert " " in said.type("e").may() and value.type("e").may() == {"t"}, "hometown was heard, home was not"
    assert "q" in Reply(LETTERS, OPEN).type(*ITEM, " ", "s").may(), "sqrt"


def test_a_value_is_of_what_was_said_not_of_what_tools_are_declared_with() -> None:
    value = Reply(LETTERS, f"{OPEN} walnut_query", "walrus").type(*ITEM, " ", *"wal")
    assert value.may() == {"r"} and "_" not in value.type(*"rus").may()
    assert "n" in Reply(LETTERS, f"{OPEN} walnut_query", "walrus").type(*"wal").may()


def test_a_value_has_unusual_signs_only_if_they_stood_before() -> None:
    usual, unusual = {*" 7.,:'+-*/()^%"}, {*"_@!?#$=&"}
    may = Reply(LETTERS, OPEN).type(*ITEM, " ", *"add").may()
    assert usual <= may and not unusual & may
    assert Reply(LETTERS, f"{OPEN} ann@x_y").type(*ITEM, " ", *"ann").may() & unusual == {"@", "_"}
    assert unusual <= Reply(LETTERS, OPEN).type(*"home").may(), "in what is said"


def test_a_value_begins_as_the_template_has_it_and_is_not_empty_nor_endless() -> None:
    value, rng = Reply(LETTERS, OPEN).type(*ITEM), random.Random(3)
    assert value.may() == {" "}
    value.type(" ")
    for _ in range(LONGEST_VALUE):
        assert {"\n", "7", "<"} < value.may()
        value.type(rng.choice("0123456789"))
    assert value.may() == {"</tool_call>"}, "all markup there is in these tokens"


def test_it_counts_as_far_as_it_was_told() -> None:
    for heard, end in ((HEARD, COUNTED_UNASKED), ("count to 42", 42), ("", COUNTED_UNASKED), ("4 to 5000", COUNTED)):
        reply = Reply(LETTERS, heard)
        for number in range(1, end + 1):
            reply.type(*f"{number}")
            assert (reply.may() == {"."}) is (number == end), (heard, number)
            reply.type(*(", " if number < end else "."))
    assert "5" in Reply(LETTERS, HEARD).type(*"4, ").may() and "2" in Reply(LETTERS).type(*"7, 6, 5, ").may()


def test_markup_is_of_calls() -> None:
    assert "<" not in Reply(LETTERS).may() and "<" in Reply(LETTERS, OPEN).type(*ITEM, *" 3 ").may()

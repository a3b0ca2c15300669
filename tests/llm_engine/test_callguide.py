"""Inside a call only what is declared can be written, and all that is declared can be."""

import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

import llm_engine
from llm_engine.callguide import CallGuide
from llm_engine.toolcalls import ParsedCall, read_call

CALL = "<tool_call>"
TINY = Tokenizer.from_file(str(Path(llm_engine.__file__).parent / "tiny" / "tokenizer.json"))
SCHEMAS: dict[str, Any] = {
    "set_light": {
        "type": "object",
        "properties": {
            "room": {"type": "string", "enum": ["kitchen", "living room", "bath"]},
            "on": {"type": "boolean"},
            "note": {"type": "string"},
            "level": {"enum": [1, 2, 10]},
            "percent": {"type": "number"},
            "times": {"type": "integer"},
        },
        "required": ["room", "times"],
    },
    "set_lights": {"type": "object", "properties": {}},
    "start_the_washing_machine": {"type": "object", "properties": {"program": {"type": "string"}}},
    "anything": {"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": True},
}
VALUES = {
    "room": ["kitchen", "living room"], "on": ["true", "false"], "level": ["10", "1"], "note": ["tea", "a </b>\nc"],
    "percent": ["0", "12.5", "-0.25", "100"], "times": ["7", "-120", "0", "123456789012345"],
}  # fmt: skip


def tiny(text: str) -> list[int]:
    ids: list[int] = TINY.encode(text, add_special_tokens=False).ids
    return ids


def letters(text: str) -> list[int]:
    """The opening tag is one token, as in every model of the family; everything else is spelt."""
    return [256 if part == CALL else ord(part) for part in re.findall(f"{CALL}|(?s:.)", text)]


def text_of(encode: Callable[[str], Sequence[int]], token: int) -> str:
    if encode is letters:
        return CALL if token == 256 else chr(token)
    return str(TINY.decode([token], skip_special_tokens=False))


def some_call(rng: random.Random, lead: str) -> str:
    name = rng.choice([*SCHEMAS])
    required = SCHEMAS[name].get("required", [])
    others = [key for key in SCHEMAS[name]["properties"] if key not in required]
    keys = [*required, *rng.sample(others, rng.randint(0, len(others)))]
    given = "".join(
        f"<parameter={key}>\n{lead}{rng.choice(VALUES.get(key, ['walnut', 'two words']))}\n</parameter>\n"
        for key in rng.sample(keys, len(keys))
    )
    return f"<tool_call>\n<function={name}>\n{given}</function>\n</tool_call>"


@pytest.mark.parametrize("encode", [tiny, letters])
@pytest.mark.parametrize("lead", ["", " "])
def test_what_is_declared_may_be_written(encode: Callable[[str], Sequence[int]], lead: str) -> None:
    rng, guided = random.Random(1), 0
    for _ in range(150):
        guide = CallGuide(SCHEMAS, lead, encode)
        for token in [*encode("Let me see. "), *encode(some_call(rng, lead)), *encode("\nSo.")]:
            among = guide.among()
            assert not among or token in among
            guided += bool(among)
            guide.push(token, text_of(encode, token))
    assert guided > 500


@pytest.mark.parametrize("seed", range(60))
def test_nothing_else_can_be(seed: int) -> None:
    """Whoever draws any token that may come, and words where all may, ends with a call that reads well."""
    rng, guide, text = random.Random(seed), CallGuide(SCHEMAS, " ", tiny), ""
    token = tiny("<tool_call>\n<function=set_light>")[0]
    for _ in range(300):
        text += text_of(tiny, token)
        guide.push(token, text_of(tiny, token))
        if text.endswith("</tool_call>"):
            break
        ends = "<parameter=" if guide.lacks() else "</function>\n</tool_call>"  # what words end with is not the guide's
        free = [*tiny(" plum"), *tiny(f"\n</parameter>\n{ends}")]
        token = rng.choice(guide.among() or free)
    if "anything" not in text:
        call = read_call(text.removeprefix("<tool_call>").removesuffix("</tool_call>"), SCHEMAS, " ")
        assert isinstance(call, ParsedCall)
        assert {*call.arguments} <= {*SCHEMAS[call.name]["properties"]}
        assert call.arguments.get("room", "bath") in ("kitchen", "living room", "bath")


def written(guide: CallGuide, text: str) -> set[str]:
    """What may come after this beginning of a call."""
    for token in tiny(text):
        guide.push(token, text_of(tiny, token))
    return {text_of(tiny, token) for token in guide.among()}


def test_a_call_cannot_end_without_what_is_required() -> None:
    """Nor where one token ends both the value and the call."""
    guide = CallGuide(SCHEMAS, " ", tiny)
    begun = "<tool_call>\n<function=set_light>\n<parameter=room>\n"
    assert written(guide, begun + " kitchen") == {"\n</parameter>\n<parameter="}
    assert guide.lacks() and not guide.is_full()
    assert len(written(guide, "\n</parameter>\n<parameter=times>\n 4")) > 2
    assert "\n</parameter>\n</function>\n</tool_call>" in written(guide, "2") and not guide.lacks()


def test_a_value_in_other_tokens_than_usual_does_not_blind_it() -> None:
    guide = CallGuide(SCHEMAS, " ", tiny)
    written(guide, "<tool_call>\n<function=set_light>\n<parameter=room>\n kitchen\n</parameter>\n<parameter=note>\n")
    letter_by_letter = [tiny(" ")[0], *(tiny(letter)[0] for letter in "timer")]
    assert letter_by_letter != tiny(" timer")
    for token in letter_by_letter:
        guide.push(token, text_of(tiny, token))
    assert guide.among() == []
    assert written(guide, "\n</parameter>\n<parameter=") == {"on", "le", "p", "time"}
    assert written(guide, "times>\n") == {" ", " -"}


@pytest.mark.parametrize(
    ("kind", "begun", "may"),
    [
        ("integer", "", "0123456789"), ("integer", "0", ""), ("integer", "10", "0123456789"),
        ("number", "0", "."), ("number", "4.", "0123456789"), ("number", "4.5", "0123456789"),
        ("number", "4", ".0123456789"), ("integer", "9" * 15, ""),
    ],
)  # fmt: skip
def test_a_number_is_written_as_one(kind: str, begun: str, may: str) -> None:
    guide = CallGuide({"go": {"properties": {"n": {"type": kind}}}}, " ", tiny)
    assert written(guide, "<tool_call>\n<function=go>\n<parameter=n>\n") == {" ", " -"}
    after = written(guide, f" {begun}")
    ends = {token for token in after if token.startswith("\n</parameter>")}
    assert after - ends == {*may} and bool(ends) == begun[-1:].isdigit()


def test_numbers_are_left_alone_where_digits_come_together() -> None:
    known: dict[str, int] = {}

    def paired(text: str) -> list[int]:
        return [known.setdefault(part, len(known)) for part in re.findall(f"{CALL}|[0-9]{{1,3}}|(?s:.)", text)]

    guide = CallGuide({"go": {"properties": {"n": {"type": "integer"}}}}, "", paired)
    head = paired("<tool_call>\n<function=go>\n<parameter=n>\n")
    for token in head:
        guide.push(token, next(part for part, its in known.items() if its == token))
    assert guide.among() == [] and guide.in_value()


def test_a_required_parameter_that_is_not_declared_is_not_waited_for() -> None:
    guide = CallGuide({"go": {"properties": {}, "required": ["x"]}}, " ", tiny)
    assert written(guide, "<tool_call>\n<function=go") == {">\n</function>\n</tool_call>"}


def test_outside_of_a_call_and_without_tools_anything_may_come() -> None:
    guide = CallGuide(SCHEMAS, "", letters)
    for token in b"<tool_cal":
        assert guide.among() == []
        guide.push(token, chr(token))
    guide = CallGuide({}, "", tiny)
    guide.push(tiny("<tool_call>")[0], "<tool_call>")
    assert guide.among() == []


def test_what_is_required_and_is_no_name_is_left_out() -> None:
    for required in ([["room"], {"a": 1}, None, 3], "room", None, 3):
        guide = CallGuide({"lamp": {"properties": {"room": {"type": "string"}}, "required": required}}, "", letters)
        for token in letters(f"{CALL}\n<function=lamp>\n"):
            assert token in guide.among() or not guide.among()
            guide.push(token, text_of(letters, token))
        assert not guide.lacks()


def test_the_name_of_a_parameter_may_hold_spaces() -> None:
    guide = CallGuide({"go": {"properties": {"level number": {"enum": ["roof"]}}}}, " ", letters)
    call = f"{CALL}\n<function=go>\n<parameter=level number>\n roof\n</parameter>\n</function>\n</tool_call>"
    for token in letters(call):
        assert token == 256 or token in guide.among()
        guide.push(token, text_of(letters, token))
    read = read_call(call.removeprefix(CALL).removesuffix("</tool_call>"), {"go": {}}, " ")
    assert isinstance(read, ParsedCall) and '"level number": "roof"' in read.arguments_json

"""Which tokens may come next inside a call: declared names and parameters, and of a listed parameter its values.

Pure: tokens and text in, tokens out. A model that has begun a call can then not write the name of a tool that there is
not, nor end it without what is required, nor give words for a number. The tool, and everything that is not
listed, stays its own choice.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from llm_engine.toolcalls import Schemas

_CALL, _CALL_END, _VALUE_END = "<tool_call>", "</tool_call>", "\n</parameter>\n"
_FUNCTION, _PARAMETER = re.compile(r"\n<function=([^<>\s]+)>\n"), re.compile(r"<parameter=([^<>\n]+)>\n")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
MOST = 256
"""Ways to go on that are looked at; with more of them anything may come."""
DIGITS = 15
"""A number has no more of them, which a double holds to the last one."""


class CallGuide:
    """Follows one reply. If it was written in other tokens than `encode` would make of its text, `encode` of the rest
    gives the next ones.

    schemas  JSON schema of the parameters by tool name
    lead     what the model's template writes before each value
    encode   text to tokens
    """

    def __init__(
        self,
        schemas: Schemas,
        lead: str,
        encode: Callable[[str], Sequence[int]],
    ) -> None:
        self._schemas, self.lead, self._encode = schemas, lead, encode
        self._spells = len(encode("1234")) == 4  # where several digits are one token, numbers are left alone
        self._tokens: list[int] = []  # of the call, its opening tag included; outside of one, those without text yet
        self._text: str | None = None  # what stands behind the tag
        self._pending = False  # a part of a character, that has no text yet

    def push(self, token: int, text: str) -> None:
        """The next token of the reply, and the text that it brought."""
        self._tokens.append(token)
        self._pending = not text
        if self._text is not None:
            self._text += text
        elif text.startswith(_CALL):
            self._text = text.removeprefix(_CALL)
        elif text:
            self._tokens = []
        if self._text is not None and _CALL_END in self._text:
            self._tokens, self._text = [], None

    def among(self) -> list[int]:
        """The tokens that may come next; none says that any may."""
        if self._text is None:
            return []
        ways = [*islice(self._ways(self._text), MOST + 1)]
        if len(ways) > MOST:
            return []
        at, written = len(self._tokens), len(self._text)
        encoded = [[*self._encode(_CALL + way)] for way in ways]
        allowed = {way[at] for way in encoded if way[:at] == self._tokens and len(way) > at}
        if not allowed and not self._pending:
            rests = (way[written:] for way in ways if way.startswith(self._text))
            allowed = {self._encode(rest)[0] for rest in rests if rest}
        return sorted(allowed)

    def in_value(self) -> bool:
        """Whether a parameter of the call that is being written is not closed."""
        return (self._text or "").rfind("<parameter=") > (self._text or "").rfind("</parameter>")

    def value(self) -> str | None:
        """The part of a value that is written by now, with the template's lead; None outside of a value."""
        _, begun, rest = (self._text or "").rpartition("<parameter=")
        _, named, value = rest.partition(">\n")
        return value if begun and named and "</parameter>" not in value else None

    def is_full(self) -> bool:
        """Whether all declared parameters stand in the call that is being written."""
        schema, given = self._given()
        return schema is not None and {*schema["properties"]} <= given

    def lacks(self) -> bool:
        """Whether a required parameter does not yet stand in the call that is being written."""
        schema, given = self._given()
        return schema is not None and not _required(schema) <= given

    def _given(self) -> tuple[Mapping[str, Any] | None, set[str]]:
        """The parameters of the call that is being written, none if those are open, and the ones that stand in it."""
        function = _FUNCTION.match(self._text or "")
        schema = self._schemas.get(function[1]) if function else None
        if function is None or schema is None or _is_open(schema):
            return None, set()
        return schema, {*_PARAMETER.findall(function.string)}

    def _values(
        self, schema: Mapping[str, Any], key: str, given: Sequence[str], wanted: Collection[str]
    ) -> Sequence[str]:
        """The values that a parameter may have, where its schema lists them. `given`: values of the parameters before
        it; `wanted`: parameters that are still required."""
        return listed(schema, key)

    def _ways(self, text: str) -> Iterator[str]:
        """How a call's text may go on, each as far as it is certain; none where it is free."""
        function = _FUNCTION.match(text)
        if function is None:
            for name, takes in self._schemas.items():
                yield from _further(f"\n<function={name}>\n", takes, set())
            return
        schema, at, used, given = self._schemas.get(function[1]), function.end(), set[str](), list[str]()
        if schema is None or _is_open(schema):
            return
        while parameter := _PARAMETER.match(text, at):
            key, begin = parameter[1], parameter.end()
            used.add(key)
            end = text.find(_VALUE_END, begin)
            if end < 0:
                for value in self._values(schema, key, given, _required(schema) - used):
                    yield from _further(text[:begin] + self.lead + value + _VALUE_END, schema, used)
                if self._spells and (kind := _type(schema, key)) in ("number", "integer"):
                    yield from _numbers(text, begin, self.lead, kind, schema, used)
                return
            given.append(text[begin:end].removeprefix(self.lead))
            at = end + len(_VALUE_END)
        yield from _further(text[:at], schema, used)


def _numbers(text: str, begin: int, lead: str, kind: str, schema: Mapping[str, Any], used: set[str]) -> Iterator[str]:
    """How a number that is being written behind `begin` may go on: by one sign, or to its end."""
    head, written = text[:begin] + lead, text[begin:].removeprefix(lead)
    if _NUMBER.fullmatch(written):
        yield from _further(f"{head}{written}{_VALUE_END}", schema, used)
    signs = "-0123456789" + ("." if kind == "number" else "")
    for sign in signs if len(written) < DIGITS else "":
        if _NUMBER.fullmatch(written + sign + ("" if sign.isdigit() else "0")):
            yield f"{head}{written}{sign}"


def _further(text: str, schema: Mapping[str, Any], used: set[str]) -> Iterator[str]:
    """The end, or another parameter: any where undeclared ones may come, of which one stands for all."""
    if _is_open(schema) or _required(schema) <= used:
        yield f"{text}</function>\n{_CALL_END}"
    for key in ("any",) if _is_open(schema) else schema["properties"]:
        if key not in used:
            yield f"{text}<parameter={key}>\n"


def _is_open(schema: Mapping[str, Any]) -> bool:
    """Whether parameters that are not declared may come."""
    return not isinstance(schema.get("properties"), Mapping) or bool(schema.get("additionalProperties"))


def _required(schema: Mapping[str, Any]) -> set[str]:
    """The declared parameters that a call must give."""
    required = schema.get("required")
    named = required if isinstance(required, Sequence) and not isinstance(required, str) else ()
    return {key for key in named if isinstance(key, str) and key in schema["properties"]}


def _type(schema: Mapping[str, Any], key: str) -> str:
    """The type of a parameter of which any value may come; empty if that is not told."""
    declared = schema["properties"].get(key)
    kind = declared.get("type") if isinstance(declared, Mapping) and "enum" not in declared else None
    return kind if isinstance(kind, str) else ""


def listed(schema: Mapping[str, Any], key: str) -> Sequence[str]:
    """The values of a parameter whose schema lists them, as a call writes them."""
    declared = (schema.get("properties") or {}).get(key)
    if not isinstance(declared, Mapping):
        return ()
    values = declared.get("enum")
    if not isinstance(values, Sequence) or isinstance(values, str):
        return ("true", "false") if declared.get("type") == "boolean" else ()
    return [value if isinstance(value, str) else json.dumps(value) for value in values]

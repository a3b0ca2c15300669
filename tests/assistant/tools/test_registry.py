"""Functions become tools: hints a schema, mistakes words, slow and broken ones an answer."""

import asyncio
import json

import pytest

from assistant.base.errors import ToolError
from assistant.tools.registry import ToolRegistry, describe
from tests.fakes.loop import run


def call(registry, name, **arguments):
    return run(registry.call(name, json.dumps(arguments)))


def test_hints_become_a_schema_and_mistakes_become_words():
    async def order(item: str, count: int = 1, size: float | None = None) -> str:
        "Order a thing. \n\n Not told."
        return f"{count} {item} {size}"

    spec = describe(order)
    assert spec.description == "Order a thing."
    assert spec.parameters == {
        "type": "object", "required": ["item"],
        "properties": {"item": {"type": "string"}, "count": {"type": "integer"}, "size": {"type": "number"}},
    }  # fmt: skip
    registry = ToolRegistry()
    registry.tool(order)
    assert call(registry, "order", item="tea", count="2", size=1).text == "2 tea 1.0"
    assert call(registry, "order", item="tea", count=None, size=None).text == "1 tea None"
    for arguments, words in [("{", "not JSON"), ("[]", "must be a JSON object"), ("{}", "needs item"),
                             ('{"item": "a", "x": 1}', "it got x"), ('{"item": "a", "count": 1.5}', "must be integer"),
                             ("[" * 100_000, "not JSON")]:  # fmt: skip
        assert words in json.loads(run(registry.call("order", arguments)).text)["error"]
    assert "there is no tool 'nap'" in call(registry, "nap").text
    with pytest.raises(ToolError, match="no type hint"):
        describe(lambda x: x)
    with pytest.raises(ToolError, match="two tools"):
        registry.tool(order)


def test_slow_and_broken_tools_answer_in_words():
    async def slow() -> str:
        await asyncio.sleep(100)
        return ""

    async def broken() -> str:
        raise RuntimeError("out of order")

    registry = ToolRegistry()
    registry.tool(slow, timeout_s=2.0)
    registry.tool(broken)
    assert "within 2 s" in call(registry, "slow").text and "out of order" in call(registry, "broken").text

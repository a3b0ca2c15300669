"""A server's result as words for the model. Pictures and sounds are named, because a tool's answer is text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock

LONGEST = 6000
"""Characters of an answer that the model reads: about 1,500 tokens of a context that may have 4,096."""


def words_of(result: CallToolResult, nothing: str = "done") -> str:
    """The text of a result, cut to `LONGEST` characters; its data as JSON if it has no text; `nothing` if it is
    empty."""
    text = "\n".join(filter(None, map(_words, result.content)))
    if not text and result.structured_content is not None:
        text = json.dumps(result.structured_content, ensure_ascii=False)
    return shortened(text) or nothing


def shortened(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]} … [{len(text) - LONGEST:,} more characters are left out]"


def _words(block: ContentBlock) -> str:
    match block.type:
        case "text":
            return block.text
        case "image":
            return f"[a picture, {block.mime_type}]"
        case "audio":
            return f"[a sound, {block.mime_type}]"
        case "resource_link":
            return f"[{block.name}: {block.uri}]"
        case _:
            return str(getattr(block.resource, "text", "") or f"[{block.resource.uri}]")

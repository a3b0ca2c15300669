"""Conversation items, replies and usage as JSON, and items back from JSON.

Fields that have no value are left out of items and parts: null there breaks strict clients. A reply's
`status_details`, `usage`, `metadata` and `conversation_id` are null when empty: other strict clients require
them to be there.
"""

from __future__ import annotations

import base64
import binascii
from typing import Literal

from assistant.base.errors import PeerError
from assistant.base.pcm import from_pcm16, to_pcm16
from assistant.base.picture import MOST_PER_MESSAGE, Picture, read_picture
from assistant.events import (
    AudioPart,
    FunctionCall,
    FunctionOutput,
    Item,
    ItemStatus,
    McpApprovalRequest,
    McpCall,
    Message,
    Part,
    PicturePart,
    ReplyItem,
    Response,
    TextPart,
    Usage,
)
from assistant.realtime.fields import Fields, Json
from assistant.realtime.mcp import mcp_item_json

MAX_ITEM_AUDIO = 15 * 1024 * 1024
MAX_RETRIEVED_AUDIO = 180 * 1024
"""Bytes of base64 that fit a server frame beside the rest."""
MAX_RETRIEVED_PICTURE = 4 * 1024 * 1024
PICTURES = {"input_image", "image_url"}
"""Names that clients use for a picture: in sessions and responses, and in chat."""
ITEM_TYPES = ("message", "function_call", "function_call_output")


def item_json(item: ReplyItem, *, with_audio: bool = False) -> Json:
    """An item; with sound only if requested and only if it fits a frame. Pictures are left out: strict clients do not
    know parts of that kind in what they receive."""
    base: Json = {"id": item.id, "object": "realtime.item"}
    match item:
        case Message():
            parts = [part for part in item.content if not isinstance(part, PicturePart)]
            content = [_content_json(part, item.role, with_audio) for part in parts]
            return base | {"type": "message", "status": item.status, "role": item.role, "content": content}
        case FunctionCall():
            return base | {
                "type": "function_call",
                "status": item.status,
                "call_id": item.call_id,
                "name": item.name,
                "arguments": item.arguments,
            }
        case McpCall() | McpApprovalRequest():
            return mcp_item_json(item)
        case FunctionOutput():
            return base | {
                "type": "function_call_output",
                "status": item.status,
                "call_id": item.call_id,
                "output": item.output,
            }


def pictured_json(item: Item, *, whole: bool) -> Json:
    """An item for a client that asked for the extension `pictures`; `whole`: include what the model sees of them."""
    told = item_json(item, with_audio=whole)
    if isinstance(item, Message):
        pictures = [part for part in item.content if isinstance(part, PicturePart)]
        told["pictures"] = [_picture_json(part.picture, whole) | {"frame": bool(part.frame)} for part in pictures]
    return told


def _picture_json(picture: Picture, whole: bool) -> Json:
    told: Json = {"digest": picture.digest, "width": picture.width, "height": picture.height}
    if whole and len(picture.encoded) <= MAX_RETRIEVED_PICTURE:
        told["image_url"] = picture.data_url
    return told


def _content_json(part: TextPart | AudioPart, role: str, with_audio: bool) -> Json:
    side = "output" if role == "assistant" else "input"
    if isinstance(part, TextPart):
        return {"type": f"{side}_text", "text": part.text}
    content: Json = {"type": f"{side}_audio"}
    if part.transcript is not None:  # absent, not null: the Agents SDK for TypeScript refuses null in a part
        content["transcript"] = part.transcript
    if with_audio and part.pcm is not None:
        audio = base64.b64encode(to_pcm16(part.pcm)).decode()
        if len(audio) <= MAX_RETRIEVED_AUDIO:
            content["audio"] = audio
    return content


def part_json(part: Part) -> Json:
    """A part as `response.content_part.*` shows it."""
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    assert isinstance(part, AudioPart), "a reply shows no pictures"
    return {"type": "audio", "transcript": part.transcript or ""}


def response_json(response: Response, conversation_id: str, audio_output: Json) -> Json:
    """A reply; `audio_output` is the format and voice in which it is sent."""
    found: Json = {
        "id": response.id,
        "object": "realtime.response",
        "status": response.status,
        "status_details": _status_details(response),
        "output": [item_json(item) for item in response.output],
        "conversation_id": conversation_id if response.in_conversation else None,
        "output_modalities": [response.modality],
        "max_output_tokens": "inf" if response.max_output_tokens is None else response.max_output_tokens,
        "audio": {"output": audio_output},
        "metadata": dict(response.metadata) if response.metadata else None,
        "usage": usage_json(response.usage) if response.usage else None,
    }
    return found if response.answer is None else found | {"answer": response.answer}


def _status_details(response: Response) -> Json | None:
    if response.status == "failed":
        error = {"type": "server_error", "code": response.error_code or "engine_error"}
        if response.error_message:
            error["message"] = response.error_message
        return {"type": "failed", "error": error}
    if response.status in {"cancelled", "incomplete"}:
        return {"type": response.status, "reason": response.reason}
    return None


def usage_json(usage: Usage) -> Json:
    of_images = usage.cached_image_tokens
    cached = {"text_tokens": usage.cached_tokens - of_images, "audio_tokens": 0, "image_tokens": of_images}
    return {
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "input_token_details": {
            "text_tokens": usage.input_text_tokens,
            "audio_tokens": usage.input_audio_tokens,
            "image_tokens": usage.input_image_tokens,
            "cached_tokens": usage.cached_tokens,
            "cached_tokens_details": cached,
        },
        "output_token_details": {
            "text_tokens": usage.output_text_tokens,
            "audio_tokens": usage.output_audio_tokens,
        },
    }


def base64_bytes(fields: Fields, name: str, limit: int) -> bytes:
    """The bytes of a required base64 field of at most `limit` characters."""
    text = fields.need_text(name, limit)
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise PeerError("invalid_value", f"{fields.at(name)} is not valid base64", fields.at(name)) from None


# ------------------------------------------------------------------------------------- from a client


def read_item(fields: Fields, new_id: str, audio_rate: int) -> Item:
    """An item made by a client; `new_id` is used if it has no id. Raises PeerError."""
    kind = fields.choice("type", ITEM_TYPES)
    if kind is None:
        raise fields.missing("type")
    item_id = fields.ident("id") or new_id
    if kind == "function_call":
        return FunctionCall(
            item_id, fields.need_ident("call_id"), fields.need_ident("name"), fields.need_text("arguments")
        )
    if kind == "function_call_output":
        return FunctionOutput(item_id, fields.need_ident("call_id"), fields.need_text("output"))
    role = fields.choice("role", ("user", "assistant", "system"))
    if role is None:
        raise fields.missing("role")
    # LiveKit replays a talk after a reconnect, including interrupted replies. Items from clients are never in progress.
    status: ItemStatus = "incomplete" if fields.text("status") == "incomplete" else "completed"
    content = tuple(_read_part(part, role, audio_rate) for part in fields.objs("content"))
    if sum(isinstance(part, PicturePart) for part in content) > MOST_PER_MESSAGE:
        raise PeerError(
            "invalid_value", f"a message shows at most {MOST_PER_MESSAGE} pictures", fields.at("content")
        )
    return Message(item_id, _role(role), content, status)


def _role(name: str) -> Literal["user", "assistant", "system"]:
    return "user" if name == "user" else "assistant" if name == "assistant" else "system"


def _read_part(fields: Fields, role: str, audio_rate: int) -> Part:
    """One part of a message. Assistant and system messages hold text only; a spoken reply that a client
    writes back as history counts as its transcript."""
    kind = fields.need_text("type")
    # All part names are accepted: clients write history back as they got it, and before GA a reply's part was `text`.
    if kind in {"input_text", "output_text", "text"}:
        return TextPart(fields.need_text("text"))
    if kind in {"output_audio", "audio"} and role == "assistant":
        return TextPart(fields.text("transcript") or "")
    if kind in PICTURES and role == "user":
        return read_picture_part(fields)
    if kind in {"input_audio", "audio"} and role == "user":
        if not fields.text("audio", MAX_ITEM_AUDIO):  # history: only its words are left
            return AudioPart(fields.text("transcript") or "")
        data = base64_bytes(fields, "audio", MAX_ITEM_AUDIO)
        if len(data) % 2:
            raise PeerError("invalid_value", f"{fields.at('audio')} has an odd number of bytes", fields.at("audio"))
        return AudioPart(fields.text("transcript"), from_pcm16(data), audio_rate)
    raise PeerError(
        "invalid_value",
        f"{fields.at('type')} is {kind[:40]!r} in a message of role {role}; allowed: "
        + {
            "user": "input_text, input_audio, input_image",
            "assistant": "output_text",
            "system": "input_text",
        }[role],
        fields.at("type"),
    )


def only_pictures(fields: Fields) -> bool:
    """Whether an item is a user message that contains only pictures."""
    parts = fields.data.get("content")
    if fields.data.get("role") != "user" or not isinstance(parts, list) or not parts:
        return False
    return all(isinstance(part, dict) and part.get("type") in PICTURES for part in parts)


def read_picture_part(fields: Fields) -> PicturePart:
    """`image_url` is an address, as in sessions, or an object with `url`, as in chat. Raises PeerError."""
    given = fields.obj("image_url") if isinstance(fields.data.get("image_url"), dict) else None
    name, holder = ("image_url", fields) if given is None else ("url", given)
    if not holder.has(name) and fields.has("file_id"):
        raise PeerError(
            "image_file_not_found", "no files are kept here; send the picture as a data URL", fields.at("file_id")
        )
    url, detail = holder.need_text(name), holder.data.get("detail", fields.data.get("detail"))
    try:
        picture = read_picture(url, detail if isinstance(detail, str) else None)
    except PeerError as error:
        raise PeerError(error.code, str(error), holder.at(name)) from None
    return PicturePart(picture, fields.boolean("frame"))

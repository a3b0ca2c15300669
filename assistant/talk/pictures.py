"""Checks the pictures that a front sends: whole or refused, before the talk sees them.

Their headers were read on arrival. Whether the rest is whole is known only after decoding all of it, which takes too
long for the event loop.
"""

from __future__ import annotations

from dataclasses import replace

from assistant.base.errors import PeerError
from assistant.base.picture import look_of
from assistant.events import Command, CreateItem, CreateResponse, Item, Message, Part, PicturePart
from assistant.talk.conversation import shows_only


def shows(command: Command) -> bool:
    """Whether a command has pictures."""
    items = _items(command)
    return any(isinstance(part, PicturePart) for item in items if isinstance(item, Message) for part in item.content)


def looked_at(command: Command) -> Command:
    """The command, each picture with its look. A damaged picture is not an error in a command of pictures alone; for
    any other command, raises PeerError."""
    try:
        if isinstance(command, CreateItem):
            return replace(command, item=_looked(command.item, "item"))
        if isinstance(command, CreateResponse) and command.params.input is not None:
            given = enumerate(command.params.input)
            items = tuple(one if isinstance(one, str) else _looked(one, f"response.input[{n}]") for n, one in given)
            return replace(command, params=replace(command.params, input=items))
    except PeerError as error:
        if isinstance(command, CreateItem) and isinstance(command.item, Message) and shows_only(command.item):
            return replace(command, item=replace(command.item, content=()), unread=error.code)
        raise
    return command


def _items(command: Command) -> tuple[Item | str, ...]:
    if isinstance(command, CreateItem):
        return (command.item,)
    return (command.params.input or ()) if isinstance(command, CreateResponse) else ()


def _looked(item: Item, path: str) -> Item:
    if not isinstance(item, Message):
        return item
    return replace(item, content=tuple(_part(part, f"{path}.content[{n}]") for n, part in enumerate(item.content)))


def _part(part: Part, path: str) -> Part:
    if not isinstance(part, PicturePart):
        return part
    try:
        return replace(part, look=look_of(part.picture.pixels))
    except PeerError as error:
        raise PeerError(error.code, str(error), f"{path}.image_url") from None

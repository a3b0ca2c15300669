"""What either browser shows on the page, and a model that tells what it was shown."""

from __future__ import annotations

import base64
import io
import json

from PIL import Image

from assistant.contracts import Prompt
from tests.fakes.talk import World


class Watched:
    """A model that sees, and what it was shown."""

    def __init__(self) -> None:
        self.prompts: list[Prompt] = []

    def world(self) -> World:
        return World(self.answer, sees=True, speed=20.0)

    def answer(self, prompt: Prompt) -> list[str]:
        self.prompts.append(prompt)
        last = prompt.lines[-1]
        sizes = " and ".join(f"{one.picture.width} by {one.picture.height}" for one in last.pictures)
        return [f"{last.text}: {sizes or 'nothing'}."]


def png(width: int = 320, height: int = 200, colour: str = "teal") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(out, "PNG")
    return out.getvalue()


BYTES = "Uint8Array.from(atob(data), (c) => c.charCodeAt(0))"


def copying(data: bytes) -> str:
    """A script: a PNG is put on the clipboard."""
    return f"""((data) => navigator.clipboard.write([
      new ClipboardItem({{ "image/png": new Blob([{BYTES}], {{ type: "image/png" }}) }}),
    ]))("{base64.b64encode(data).decode()}")"""


def giving(kind: str, data: bytes, mime: str = "image/png") -> str:
    """A script: a file is pasted or dropped, as the browser tells the page of it. Firefox gives no page a paste that a
    script made."""
    given = json.dumps([kind, base64.b64encode(data).decode(), mime])
    return f"""(([kind, data, mime]) => {{
      const given = new DataTransfer();
      given.items.add(new File([{BYTES}], "given", {{ type: mime }}));
      const event = kind === "paste"
        ? new ClipboardEvent("paste", {{ clipboardData: given, bubbles: true }})
        : new DragEvent("drop", {{ dataTransfer: given, bubbles: true, cancelable: true }});
      document.body.dispatchEvent(event);
    }})({given})"""

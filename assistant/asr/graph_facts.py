"""Reads the metadata of an ONNX file without a runtime: the few named texts beside the network. Pure except for
reading the file.

A file is one protobuf message (`ModelProto`). Its named texts are field 14 (`StringStringEntryProto`: 1 the name, 2 the
text); the network, hundreds of megabytes, is field 7 and is skipped.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import BinaryIO

from assistant.base.errors import SettingError

_NAMED_TEXT = 14


def graph_facts(path: Path) -> dict[str, str]:
    """Name → text. Raises SettingError if the file is not an ONNX graph."""
    found: dict[str, str] = {}
    try:
        with path.open("rb") as file:
            for entry in _fields(file, path.stat().st_size, _NAMED_TEXT):
                name, text = (
                    b"".join(_fields(io.BytesIO(entry), len(entry), number)).decode("utf-8") for number in (1, 2)
                )
                found[name] = text
    except ValueError as error:
        raise SettingError(f"{path} is not a valid ONNX file ({error}); download it again") from error
    return found


def _fields(file: BinaryIO, size: int, wanted: int) -> list[bytes]:
    """The contents of every occurrence of one field. Raises ValueError."""
    found: list[bytes] = []
    while file.tell() < size:
        key = _number(file)
        match key & 7:
            case 0:  # a number
                _number(file)
            case 1:
                file.seek(8, io.SEEK_CUR)
            case 2:  # bytes
                length = _number(file)
                if file.tell() + length > size:
                    raise ValueError(f"a field of {length} bytes ends behind the file's end")
                if key >> 3 == wanted:
                    found.append(file.read(length))
                else:
                    file.seek(length, io.SEEK_CUR)
            case 5:
                file.seek(4, io.SEEK_CUR)
            case kind:
                raise ValueError(f"a field of kind {kind}")
    return found


def _number(file: BinaryIO) -> int:
    """A varint: seven bits a byte, lowest first, with the top bit set on all but the last byte."""
    value = 0
    for shift in range(0, 64, 7):
        byte = file.read(1)
        if not byte:
            raise ValueError("it ends within a number")
        value |= (byte[0] & 127) << shift
        if byte[0] < 128:
            return value
    raise ValueError("a number without an end")

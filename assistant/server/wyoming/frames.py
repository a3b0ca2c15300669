"""One frame of the Wyoming protocol: a line of JSON, then more JSON and bytes of the lengths that the line names.

The package can read frames too, but it takes any length that a peer names into memory, and ends a connection at a
damaged frame without a word.
"""

from __future__ import annotations

from asyncio import IncompleteReadError, StreamReader
from collections.abc import Iterator

from wyoming.event import Event

from assistant.base.errors import PeerError
from assistant.base.pcm import Resampler, from_pcm16
from assistant.base.sound import HEARING_RATE, Pcm
from assistant.realtime.fields import MAX_EVENT, Fields, Json, parse_event

MAX_LINE = 64 * 1024
MAX_PAYLOAD = 1024 * 1024
"""Half a minute of sound as satellites send it."""
MOST_SAMPLES, MOST_CHARACTERS = 4096, 4096
"""The longest pieces that wait: a quarter of a second of sound, a page of text."""
RATES = (8_000, 192_000)
MAX_CHANNELS = 16


async def read_frame(reader: StreamReader) -> Event | None:
    """The next frame; None at the end of the connection. `reader` has the limit `MAX_LINE`.

    Raises PeerError for a frame that cannot be read. Nothing behind it can be found.
    """
    try:
        line = await reader.readline()
    except ValueError:
        raise PeerError("invalid_event", f"the first line of a frame has more than {MAX_LINE} bytes") from None
    if not line:
        return None
    head = _object(line)
    kind = head.need_ident("type")
    data = _data(head)
    try:
        if length := head.integer("data_length", 0, MAX_EVENT):
            data |= _object(await reader.readexactly(length)).data
        length = head.integer("payload_length", 0, MAX_PAYLOAD)
        return Event(kind, data, await reader.readexactly(length) if length else None)
    except IncompleteReadError:
        return None


def _object(data: bytes) -> Fields:
    try:
        return parse_event(data.decode())
    except UnicodeDecodeError as error:
        raise PeerError("invalid_event", f"a frame is not UTF-8 text ({error.reason})") from None


def _data(head: Fields) -> Json:
    data = head.obj("data")
    return {} if data is None else dict(data.data)


class StreamedSound:
    """The sound of one stream, 16 bit and any rate → float32 mono at 16 kHz."""

    def __init__(self) -> None:
        self._format: tuple[int, int] | None = None
        self._resampler = Resampler(HEARING_RATE, HEARING_RATE)

    def pieces(self, event: Event) -> Iterator[Pcm]:
        """The sound of an `audio-chunk`, in pieces of about `MOST_SAMPLES`, each resampled when it is asked for. Raises
        PeerError for sound of another form."""
        fields = Fields(event.data, event.type)
        rate, width, channels = (
            fields.integer("rate", *RATES), fields.integer("width", 1, 8), fields.integer("channels", 1, MAX_CHANNELS)
        )  # fmt: skip
        if rate is None or width is None or channels is None:
            raise PeerError("missing_required_parameter", "audio-chunk needs rate, width and channels")
        if width != 2:
            raise PeerError("invalid_value", f"audio-chunk has {width * 8}-bit sound; it must be 16-bit", "width")
        data = event.payload or b""
        if len(data) % (2 * channels):
            raise PeerError("invalid_value", f"audio-chunk has {len(data)} bytes, which is no whole number of samples")
        if self._format != (rate, channels):
            self._format, self._resampler = (rate, channels), Resampler(rate, HEARING_RATE)
        step = 2 * channels * (MOST_SAMPLES * rate // HEARING_RATE)
        for at in range(0, len(data), step):
            yield self._resampler.feed(from_pcm16(data[at : at + step]).reshape(-1, channels).mean(1))


def text_pieces(text: str) -> Iterator[str]:
    """A text in pieces of `MOST_CHARACTERS`, one of them empty if it is."""
    return (text[at : at + MOST_CHARACTERS] for at in range(0, max(1, len(text)), MOST_CHARACTERS))

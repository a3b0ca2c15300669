"""A still picture: as it came, and as pixels. What anyone sends is read here, within limits.

The header says how large a picture will be, so that is checked before a pixel is made: a few bytes can stand for
gigabytes. Every wrong picture is one PeerError with the code that OpenAI's clients know for it.

Colours become 8-bit RGB: of an animation the first frame, a photograph the right way up, what is transparent on white.
Source of the codes: `ResponseError` of the `openai` SDK.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from io import BytesIO
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from assistant.base.errors import PeerError

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFile import ImageFile

Detail: TypeAlias = Literal["auto", "low", "high", "original"]
Pixels: TypeAlias = NDArray[np.uint8]
"""[height, width, 3] RGB, the right way up."""

MAX_BASE64 = 15 * 1024 * 1024
"""Characters of one picture as a client sends it; as many as of its sound."""
MAX_PIXELS = 40_000_000
MAX_ASPECT = 200
"""The long side to the short one. The models' own preprocessing refuses more."""
MAX_SCANNED = 1_000_000_000
"""Pixels times passes of a progressive JPEG: each of any number of tiny passes goes over the whole picture."""
MOST_PER_MESSAGE = 4
MOST_PER_REQUEST = 16
KINDS = {"PNG": b"\x89PNG", "JPEG": b"\xff\xd8\xff", "GIF": b"GIF8", "WEBP": b"RIFF"}
"""What is read, by its first bytes: what a sender calls it is often wrong."""
LOOK = 32
DIGEST_BYTES = 16
_ORIENTATION = 0x0112
_TURNED = {5, 6, 7, 8}
"""Orientations of a photograph that swap its sides."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture whose header was read. `digest` is hex BLAKE2b-128 of `encoded`; `width` and `height` are those of
    `pixels`."""

    digest: str
    width: int
    height: int
    detail: Detail = "auto"
    encoded: bytes = field(default=b"", compare=False, repr=False)

    @property
    def media_type(self) -> str:
        return f"image/{_kind(self.encoded).lower()}"

    @property
    def pixels(self) -> Pixels:
        """Decoded anew each time: 4 ms of processor time for 1280 x 720, 0.4 s (JPEG) to 1.2 s (PNG) at the limit, so
        not for the event loop. Raises PeerError for a damaged picture."""
        return _pixels(self.encoded)

    @property
    def data_url(self) -> str:
        return f"data:{self.media_type};base64,{base64.b64encode(self.encoded).decode()}"

    @staticmethod
    def of(pixels: Pixels, detail: Detail = "auto") -> Picture:
        """Of pixels that we made ourselves."""
        from PIL import Image

        out = BytesIO()
        Image.fromarray(pixels).save(out, "PNG", compress_level=1)
        return open_picture(out.getvalue(), detail)


def open_picture(encoded: bytes, detail: Detail = "auto") -> Picture:
    """Reads the header alone: half a millisecond for a camera's frame. Raises PeerError."""
    if not encoded:
        raise PeerError("empty_image_file", "the picture has no bytes")
    kind = _kind(encoded)
    with _reading(kind), _opened(encoded, kind) as image:
        width, height = image.size
        if width * height > MAX_PIXELS:
            raise PeerError(
                "image_too_large",
                f"the picture has {width} x {height} pixels; at most {MAX_PIXELS // 1_000_000} million are allowed",
            )
        if max(width, height) > MAX_ASPECT * min(width, height):
            raise PeerError(
                "image_too_large",
                f"the picture has {width} x {height} pixels; its long side may be {MAX_ASPECT} times the short one",
            )
        if kind == "JPEG" and encoded.count(b"\xff\xda") * width * height > MAX_SCANNED:
            raise PeerError("image_too_large", "the picture is a JPEG with too many passes; save it as a baseline JPEG")
        if _orientation(image) in _TURNED:
            width, height = height, width
    return Picture(blake2b(encoded, digest_size=DIGEST_BYTES).hexdigest(), width, height, detail, encoded)


def read_picture(url: str, detail: str | None = None) -> Picture:
    """Of a data URL. Nothing is fetched: an address could be any inside the user's network. Raises PeerError."""
    scheme = url[:40].partition(":")[0].lower()
    if scheme != "data":
        raise PeerError(
            "invalid_image_url",
            f"a picture must be a data URL, data:image/png;base64,…, not as {scheme!r}; nothing is fetched from here",
        )
    if len(url) > MAX_BASE64:
        raise PeerError(
            "image_file_too_large",
            f"the picture has {len(url)} characters of base64; at most {MAX_BASE64} are allowed; send a smaller one",
        )
    head, comma, data = url.partition(",")
    media, *rest = head[5:].lower().split(";")
    if not comma or "base64" not in (word.strip() for word in rest):
        raise PeerError("invalid_image_url", "a picture's data URL must look like data:image/png;base64,…")
    if media.strip() and not media.strip().startswith("image/"):
        raise _unsupported(f"{media[:40]!r} is not a picture")
    try:
        encoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise PeerError("invalid_base64_image", "the picture's data is not valid base64") from None
    return open_picture(encoded, next((one for one in get_args(Detail) if one == detail), "auto"))


def look_of(pixels: Pixels) -> bytes:
    """32 x 32 grey values, by which pictures of one scene are told from others."""
    from PIL import Image

    return Image.fromarray(pixels).convert("L").resize((LOOK, LOOK), Image.Resampling.BOX).tobytes()


def difference(one: bytes, other: bytes) -> float:
    """Of two looks: how far their grey values are apart on average, 0 to 255."""
    return float(np.abs(np.frombuffer(one, np.uint8).astype(int) - np.frombuffer(other, np.uint8)).mean())


# ------------------------------------------------------------------------------------------- decoding


def _kind(encoded: bytes) -> str:
    for kind, start in KINDS.items():
        if encoded.startswith(start) and (kind != "WEBP" or encoded[8:12] == b"WEBP"):
            return kind
    raise _unsupported("this is not a picture in a supported format")


def _unsupported(what: str) -> PeerError:
    return PeerError("unsupported_image_media_type", f"{what}; supported: PNG, JPEG, WebP and the first frame of a GIF")


@contextmanager
def _reading(kind: str) -> Iterator[None]:
    """What a decoder makes of anyone's bytes is told as one error."""
    from PIL import Image

    try:
        yield
    except PeerError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise PeerError(
            "image_too_large", f"the picture has far more than {MAX_PIXELS // 1_000_000} million pixels"
        ) from None
    except Exception as error:  # a decoder of C and Python raises whatever comes of bytes that were made to break it
        raise PeerError("image_parse_error", f"the picture is not a complete {kind}: {str(error)[:120]}") from None


def _opened(encoded: bytes, kind: str) -> ImageFile:
    from PIL import Image

    return Image.open(BytesIO(encoded), formats=(kind,))


def _pixels(encoded: bytes) -> Pixels:
    kind = _kind(encoded)
    with _reading(kind), _opened(encoded, kind) as image:
        turned = _orientation(image)  # before the pixels, as where the sides were told
        image.load()
        return np.ascontiguousarray(_upright(np.asarray(_rgb(image)), turned))


def _rgb(image: Image) -> Image:
    from PIL import Image as images

    if image.mode.startswith("I"):  # 16-bit grey: a plain conversion would clip at 255
        return images.fromarray((np.asarray(image).astype(np.uint32) >> 8).astype(np.uint8)).convert("RGB")
    if not image.has_transparency_data:
        return image.convert("RGB")
    clear = image.convert("RGBA")
    ground = images.new("RGBA", clear.size, "white")
    return images.alpha_composite(ground, clear).convert("RGB")


def _orientation(image: Image) -> int:
    """How a camera was held, 1 to 8; metadata that cannot be read is no reason to refuse a picture."""
    try:
        if image.format == "PNG" and "exif" not in image.info:  # asked for more it would decode all to look behind it
            return 1
        return int(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # as above: anyone's bytes
        return 1


def _upright(pixels: Pixels, orientation: int) -> Pixels:
    """EXIF 2.32, tag 274: 2 mirrored, 3 half a turn, 4 upside down, 5 to 8 the same with the sides swapped."""
    if orientation in _TURNED:
        pixels = pixels.transpose(1, 0, 2)
    if orientation in {3, 4, 7, 8}:
        pixels = pixels[::-1]
    return pixels[:, ::-1] if orientation in {2, 3, 6, 7} else pixels

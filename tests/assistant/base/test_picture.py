"""Pictures of every kind become the same pixels; hostile ones become one error each."""

import base64
import struct
import zlib
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from assistant.base.errors import PeerError
from assistant.base.picture import MAX_BASE64, Picture, open_picture, read_picture

CORNERS = np.zeros((48, 80, 3), np.uint8)
CORNERS[:24, :40] = (200, 0, 0)
CORNERS[:24, 40:] = (0, 200, 0)
CORNERS[24:, :40] = (0, 0, 200)
CORNERS[24:, 40:] = (200, 200, 0)


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    out = BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def url_of(data: bytes, media: str = "image/png") -> str:
    return f"data:{media};base64,{base64.b64encode(data).decode()}"


def png_of(width: int, height: int, data: bytes = b"") -> bytes:
    """A PNG that says it has this size, whatever is in it."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


@pytest.mark.parametrize(("kind", "options", "near"), [
    ("PNG", {}, 0), ("JPEG", {"quality": 95, "subsampling": 0}, 4), ("WEBP", {"lossless": True}, 0), ("GIF", {}, 0),
])  # fmt: skip
def test_each_kind_becomes_its_pixels(kind: str, options: dict[str, object], near: int) -> None:
    picture = open_picture(encoded(Image.fromarray(CORNERS), kind, **options))
    pixels = picture.pixels
    assert pixels.dtype == np.uint8 and pixels.shape == CORNERS.shape and pixels.flags.c_contiguous
    assert (picture.width, picture.height) == (80, 48) and picture.media_type == f"image/{kind.lower()}"
    inner = np.abs(pixels[4:-4:8, 4:-4:8].astype(int) - CORNERS[4:-4:8, 4:-4:8])
    assert inner.max() <= near


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_a_photograph_stands_the_right_way_up(orientation: int, kind: str) -> None:
    held = {
        1: CORNERS, 2: CORNERS[:, ::-1], 3: CORNERS[::-1, ::-1], 4: CORNERS[::-1], 5: CORNERS.transpose(1, 0, 2),
        6: np.rot90(CORNERS), 7: CORNERS[::-1, ::-1].transpose(1, 0, 2), 8: np.rot90(CORNERS, -1),
    }[orientation]  # fmt: skip
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"JPEG": {"quality": 100, "subsampling": 0}, "WEBP": {"lossless": True}}.get(kind, {})
    data = encoded(Image.fromarray(np.ascontiguousarray(held)), kind, exif=exif, **options)
    picture = open_picture(data)
    assert (picture.width, picture.height) == (80, 48) and picture.pixels.shape == CORNERS.shape
    assert np.abs(picture.pixels[4:-4:8, 4:-4:8].astype(int) - CORNERS[4:-4:8, 4:-4:8]).max() <= 8


def test_what_is_transparent_stands_on_white() -> None:
    clear = np.zeros((8, 8, 4), np.uint8)
    clear[:4] = (10, 20, 30, 255)
    pixels = open_picture(encoded(Image.fromarray(clear), "PNG")).pixels
    assert (pixels[:4] == (10, 20, 30)).all() and (pixels[4:] == 255).all()
    palette = Image.fromarray(CORNERS).quantize(8)
    pixels = open_picture(encoded(palette, "PNG", transparency=palette.getpixel((0, 0)))).pixels
    assert (pixels[0, 0] == 255).all() and (pixels[-1, -1] == CORNERS[-1, -1]).all()
    grey = Image.merge("LA", (Image.new("L", (8, 8), 7), Image.new("L", (8, 8), 0)))
    assert (open_picture(encoded(grey, "PNG")).pixels == 255).all()


def test_other_colours_become_rgb() -> None:
    deep = Image.fromarray(np.full((8, 8), 0x8142, np.uint16))
    assert (open_picture(encoded(deep, "PNG")).pixels == 0x81).all()
    for mode in ("L", "1", "P"):
        assert (open_picture(encoded(Image.new(mode, (8, 8), 0), "PNG")).pixels == 0).all()
    printed = encoded(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "JPEG", quality=95)
    ink = open_picture(printed).pixels[4, 4].astype(int)
    assert ink[0] > 245 and ink[1] < 10 and ink[2] < 10


def test_of_an_animation_the_first_frame_is_seen() -> None:
    frames = [Image.new("RGB", (16, 16), colour) for colour in ("red", "blue")]
    for kind in ("GIF", "WEBP", "PNG"):
        data = encoded(frames[0], kind, save_all=True, append_images=frames[1:], lossless=True)
        assert (open_picture(data).pixels == (255, 0, 0)).all()


def test_pixels_of_ours_come_back() -> None:
    picture = Picture.of(CORNERS, "high")
    assert (picture.pixels == CORNERS).all() and picture.detail == "high"
    again = read_picture(picture.data_url, "low")
    assert again.digest == picture.digest and again.detail == "low" and len(again.digest) == 32
    assert read_picture(picture.data_url, "finest").detail == "auto"
    assert read_picture(picture.data_url) != Picture.of(CORNERS[::-1])


JPEG = encoded(Image.fromarray(CORNERS), "JPEG")
PASSES = encoded(Image.new("RGB", (6000, 6000)), "JPEG", progressive=True)
HOSTILE = {
    "nothing": (url_of(b""), "empty_image_file"),
    "no base64": ("data:image/png;base64,@@@@", "invalid_base64_image"),
    "half a base64": ("data:image/png;base64,iVBORw0", "invalid_base64_image"),
    "plain data": ("data:image/png,abc", "invalid_image_url"),
    "no comma": ("data:image/png;base64", "invalid_image_url"),
    "an address": ("https://example.com/cat.png", "invalid_image_url"),
    "inside the house": ("http://127.0.0.1/admin", "invalid_image_url"),
    "a file": ("file:///etc/passwd", "invalid_image_url"),
    "no address": ("cat.png", "invalid_image_url"),
    "text": (url_of(b"hello", "text/plain"), "unsupported_image_media_type"),
    "text that says it is a picture": (url_of(b"hello there, this is text"), "unsupported_image_media_type"),
    "a kind that is not read": (url_of(encoded(Image.new("RGB", (8, 8)), "BMP")), "unsupported_image_media_type"),
    "sound in a RIFF": (url_of(b"RIFF\x00\x00\x00\x00WAVEfmt "), "unsupported_image_media_type"),
    "a signature alone": (url_of(b"\x89PNG\r\n\x1a\n"), "image_parse_error"),
    "a header cut short": (url_of(JPEG[:40]), "image_parse_error"),
    "a bomb": (url_of(png_of(60_000, 60_000)), "image_too_large"),
    "a smaller bomb": (url_of(png_of(10_000, 10_000)), "image_too_large"),
    "just too many": (url_of(png_of(6_325, 6_325)), "image_too_large"),
    "a strip": (url_of(png_of(1, 100_000)), "image_too_large"),
    "a row": (url_of(png_of(100_000, 1)), "image_too_large"),
    "no size at all": (url_of(png_of(0, 8)), "image_parse_error"),
    "30 MiB": (url_of(bytes(30 << 20)), "image_file_too_large"),
    "many passes": (url_of(PASSES[:-2] + b"\xff\xda\x00\x08\x01\x01\x00\x3f\x00\x00" * 30), "image_too_large"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_picture_is_one_error_before_a_pixel_is_made(name: str) -> None:
    url, code = HOSTILE[name]
    with pytest.raises(PeerError) as found:
        read_picture(url)
    assert found.value.code == code and len(str(found.value)) < 300


@pytest.mark.parametrize(("name", "data"), [
    ("cut off", encoded(Image.effect_noise((64, 64), 99), "PNG")[:2000]),
    ("a JPEG cut off", JPEG[: len(JPEG) * 3 // 4]),
    ("no pixels in it", png_of(64, 64)),
    ("rubbish in it", png_of(64, 64)[:50] + b"rubbish" * 9),
    ("a WebP cut off", encoded(Image.fromarray(CORNERS), "WEBP")[:60]),
])  # fmt: skip
def test_a_damaged_picture_is_refused_when_it_is_looked_at(name: str, data: bytes) -> None:
    with pytest.raises(PeerError) as found:
        _ = open_picture(data).pixels
    assert found.value.code == "image_parse_error", name


def test_the_limit_itself_is_taken() -> None:
    assert open_picture(png_of(8_000, 5_000)).width == 8_000
    assert open_picture(png_of(10, 2_000)).height == 2_000
    head = url_of(b"")
    longest = head + "A" * ((MAX_BASE64 - len(head)) // 4 * 4)
    with pytest.raises(PeerError) as found:
        read_picture(longest)
    assert found.value.code == "unsupported_image_media_type"  # read, and not found to be too long


def test_random_bytes_behind_a_signature_are_always_told() -> None:
    rng = np.random.default_rng(5)
    for start in (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"GIF89a", b"RIFF\x10\x00\x00\x00WEBPVP8 "):
        for length in (0, 1, 9, 100, 3000):
            with pytest.raises(PeerError):
                _ = open_picture(start + rng.bytes(length)).pixels

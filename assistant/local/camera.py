"""This machine's camera: pictures of now, through OpenCV, which opens cameras on all systems alike.

It is the extra `camera`: 60 MB that a talk without a camera does not need.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from assistant.base.errors import DeviceError
from assistant.base.extras import adding
from assistant.base.picture import Picture, Pixels, open_picture

LONG_SIDE = 1280
"""Pixels: no model looks at more of a frame."""
JPEG_QUALITY = 85
FIRST_FRAME_S = 10.0
"""A camera that has shown nothing by then does not work; some need seconds to wake."""


class Source(Protocol):
    """The part of `cv2.VideoCapture` that is used here."""

    def grab(self) -> bool:
        """Wait for the next frame; False: the camera is gone."""
        ...

    def retrieve(self) -> tuple[bool, Pixels]:
        """The frame that was grabbed, blue first."""
        ...

    def release(self) -> None: ...


class Camera:
    """One open camera. A thread takes each frame as it comes, so that none waits in the driver and grows old; a frame
    is decoded only when it is asked for. Raises DeviceError."""

    def __init__(self, name: str, opened: Callable[[str], Source] | None = None) -> None:
        self._source = (opened or _opened)(name)
        self._name = name
        self._lock = threading.Lock()
        self._shown, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._watch, name="camera", daemon=True)
        self._thread.start()
        self._shown.wait(FIRST_FRAME_S)
        if not self._shown.is_set() or self._ended.is_set():
            self.close()
            raise DeviceError(f"the camera {name} shows nothing; another program may hold it, close that and try again")

    def picture(self) -> Picture | None:
        """The present picture; None once the camera is gone. Waits for a frame and writes a JPEG, so not for the event
        loop."""
        with self._lock:
            found, frame = (False, None) if self._ended.is_set() else self._source.retrieve()
        return _encoded(frame) if found and frame is not None else None

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        with self._lock:  # somebody may still be looking
            self._source.release()

    def _watch(self) -> None:
        while not self._ended.is_set():
            with self._lock:
                there = self._source.grab()
            if not there:
                self._ended.set()
            self._shown.set()
            self._ended.wait(0.005)  # else nobody else would get the lock


def _encoded(frame: Pixels) -> Picture:
    from io import BytesIO

    from PIL import Image

    image = Image.fromarray(frame[..., ::-1].copy())
    image.thumbnail((LONG_SIDE, LONG_SIDE))
    out = BytesIO()
    image.save(out, "JPEG", quality=JPEG_QUALITY)
    return open_picture(out.getvalue())


def _opened(name: str) -> Source:
    try:
        import cv2
    except ImportError as error:
        raise DeviceError(f"a camera needs one more package; run: {adding('camera')}") from error
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)  # it tells each way to open one that failed
    source = cv2.VideoCapture(int(name) if name.isascii() and name.isdigit() else name)
    if not source.isOpened():
        raise DeviceError(
            f"camera {name} cannot be opened; plug one in, or name another: --camera 1, or a device's file such as "
            "/dev/video2. The page (assistant serve) uses the browser's camera"
        )
    return source

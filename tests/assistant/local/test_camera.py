"""A camera's newest picture, through a camera that is none; and with OpenCV, where it is, from a file."""

import asyncio
import threading
import time
from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pytest

from assistant.base.errors import DeviceError
from assistant.commands.talk import follow_talk
from assistant.events import CreateItem, Event, SightChanged, SpeechStarted
from assistant.local.camera import LONG_SIDE, Camera


class Counting:
    """Each frame is lighter than the last by one; `left` of them come."""

    def __init__(self, left: int = 1 << 30, width: int = 64, height: int = 48) -> None:
        self.size, self.left, self.number, self.released = (height, width, 3), left, 0, False

    def grab(self) -> bool:
        if self.number == self.left:
            return False
        self.number += 1
        time.sleep(0.001)
        return True

    def retrieve(self):
        return True, np.full(self.size, min(self.number, 255), np.uint8)

    def release(self) -> None:
        self.released = True


def test_the_picture_is_the_newest_and_the_camera_is_let_go():
    source = Counting()
    camera = Camera("0", lambda name: source)
    while source.number < 20:
        time.sleep(0.005)
    before = source.number
    picture = camera.picture()
    assert picture.media_type == "image/jpeg" and (picture.width, picture.height) == (64, 48)
    assert before - 1 <= picture.pixels.mean() <= source.number + 1
    camera.close()
    assert source.released and camera.picture() is None
    assert "camera" not in {thread.name for thread in threading.enumerate()}


def test_colours_are_in_their_order_and_large_frames_are_made_smaller():
    source = Counting(width=2560, height=1440)
    source.retrieve = lambda: (True, np.full(source.size, (200, 100, 0), np.uint8))  # blue first
    camera = Camera("0", lambda name: source)
    picture = camera.picture()
    camera.close()
    assert (picture.width, picture.height) == (LONG_SIDE, 720)
    assert picture.pixels.mean((0, 1)) == pytest.approx((0, 100, 200), abs=3)


def test_a_camera_that_shows_nothing_is_told():
    source = Counting(left=0)
    with pytest.raises(DeviceError, match="shows nothing"):
        Camera("0", lambda name: source)
    assert source.released


def test_a_camera_that_goes_away_shows_nothing_more():
    source = Counting(left=3)
    camera = Camera("0", lambda name: source)
    while source.number < 3 or camera.picture() is not None:
        time.sleep(0.005)
    camera.close()


def test_without_its_package_it_says_which(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cv2", None)
    with pytest.raises(DeviceError, match=r"voice-assistant\[camera\]"):
        Camera("0")


@pytest.fixture
def opencv():
    return pytest.importorskip("cv2", reason="no OpenCV here; pip install 'voice-assistant[camera]' to un-skip")


def test_no_camera_is_told(opencv):
    with pytest.raises(DeviceError, match="no camera 97"):
        Camera("97")


def test_opencv_opens_what_has_a_file(opencv, tmp_path):
    film = str(tmp_path / "film.avi")
    writer = opencv.VideoWriter(film, opencv.VideoWriter.fourcc(*"MJPG"), 25, (64, 48))
    for _ in range(1000):
        writer.write(np.full((48, 64, 3), (200, 100, 0), np.uint8))  # blue first
    writer.release()
    with closing(Camera(film)) as camera:
        assert camera.picture().pixels.mean((0, 1)) == pytest.approx((0, 100, 200), abs=4)


def test_what_it_sees_is_shown_when_the_user_begins_to_speak(capsys):
    """Newest wins; a model that turns out to have no eyes turns it off; one that is gone ends nothing."""

    async def told(camera: Camera, source: Counting, *events: Event) -> list[CreateItem]:
        async def come():
            for event in events:
                seen = source.number
                # So that JPEG can tell one frame from the next.
                while source.number < min(seen + 9, source.left) and not source.released:
                    await asyncio.sleep(0.001)
                yield event

        sent: list[CreateItem] = []

        async def send(command: CreateItem) -> None:
            sent.append(command)

        session = SimpleNamespace(events=come(), send=send)
        player = SimpleNamespace(current=None, stop=lambda: None, unduck=lambda: None)
        await follow_talk(session, player, SimpleNamespace(take=lambda event: None), False, camera)
        return sent

    began = SpeechStarted("u", 0)
    source = Counting()
    one, two = asyncio.run(told(Camera("0", lambda name: source), source, began, began, SightChanged(False), began))
    [first], [second] = one.item.content, two.item.content
    assert first.frame and second.frame and one.item.id != two.item.id
    assert first.picture.pixels.mean() < second.picture.pixels.mean() and source.released
    assert "cannot see" in capsys.readouterr().err
    gone = Counting(left=3)
    camera = Camera("0", lambda name: gone)
    while camera.picture() is not None:
        time.sleep(0.005)
    assert asyncio.run(told(camera, gone, began, began)) == []
    camera.close()
    assert capsys.readouterr().err.count("the camera is gone") == 1

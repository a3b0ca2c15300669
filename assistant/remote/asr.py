"""Ears behind `/audio/transcriptions`: an utterance is sent whole, and again as it grows if the server is quick.

Transcribers are called from threads, so this blocks: http.client, a connection for each request. Borrowing the event
loop from a thread would tie hearing to the loop that makes replies, and a server that hangs would stall both.
"""

from __future__ import annotations

import io
import json
import time
import wave
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from math import inf
from urllib.parse import urlsplit
from uuid import uuid4

import numpy as np

from assistant.base.errors import EngineFailed
from assistant.base.pcm import to_pcm16
from assistant.base.sound import HEARING_RATE, Pcm
from assistant.base.tongues import base_of
from assistant.contracts import AsrFacts, HeardWord, Partial, Transcript
from assistant.remote.server import CONNECT_SECONDS, Address, ServerRefused, told_by, why_of

ANSWER_SECONDS = 30.0
"""The wait for the words of a whole utterance."""
LOADING_SECONDS = 120.0
"""The first wait: some servers load a model when it is first asked for."""
QUICK_SECONDS = 0.5
"""A server whose last answer took longer, or failed, is not asked for words in the middle of an utterance; nor is such
a request given more time than this."""
NAME_ONE = "name the one that hears: …/v1#MODEL"
CADENCE_MS = 1000.0
LEAST_S = 0.1
"""The shortest sound that is sent; some servers refuse less."""


class TranscriptionServer:
    """Requests to one server. Every failure is raised as an EngineFailed that names it."""

    def __init__(
        self, address: Address, clock: Callable[[], float] = time.perf_counter, quick_s: float = QUICK_SECONDS
    ) -> None:
        self._address, self._clock, self._quick_s = address, clock, quick_s
        self._model = address.model
        self.took_s = inf
        """Seconds that the last answer took; infinite if there was none."""

    @property
    def facts(self) -> AsrFacts:
        """Facts about a server that reports none: no languages, no times."""
        name = self._model or self._address.base
        return AsrFacts(name, (), cased=True, cadence_ms=CADENCE_MS, bias=False, word_times=False)

    @property
    def quick(self) -> bool:
        return self.took_s <= self._quick_s

    def rehearse(self) -> None:
        """Send a second of silence, to see whether the server is there and how quick it is. If the first answer took
        long, a second one is timed."""
        silence = np.zeros(HEARING_RATE, np.float32)
        self.transcribe(silence, patience_s=LOADING_SECONDS)
        if not self.quick:
            self.transcribe(silence)

    def transcribe(
        self, sound: Pcm, whole: bool = True, patience_s: float = ANSWER_SECONDS, language: str | None = None
    ) -> str:
        """16 kHz → the text as the server writes it. With `whole` False, the answer is not worth a long wait."""
        model = self._model_name()
        fields = {"model": model, "response_format": "json"} | ({"language": base_of(language)} if language else {})
        kind, body = _form(fields, _wav(sound))
        began, self.took_s = self._clock(), inf
        try:
            answer = self._ask("POST", "/audio/transcriptions", patience_s if whole else self._quick_s, body, kind)
        except ServerRefused as error:
            if self._address.model is not None:
                raise
            raise EngineFailed(f"{error}; it was asked for {model}, the first it lists; {NAME_ONE}") from error
        self.took_s = self._clock() - began
        text = answer.get("text") if isinstance(answer, dict) else None
        if not isinstance(text, str):
            raise EngineFailed(f"{self._address.base}/audio/transcriptions sent something else than a transcript")
        return text

    def _model_name(self) -> str:
        """The model to ask for, looked up once."""
        if self._model is None:
            try:
                self._model = str(self._ask("GET", "/models", ANSWER_SECONDS)["data"][0]["id"])  # type: ignore[index]
            except ServerRefused as error:
                raise EngineFailed(f"{error}; {NAME_ONE}") from error
            except (LookupError, TypeError) as error:
                raise EngineFailed(f"{self._address.base}/models lists no model; {NAME_ONE}") from error
        return self._model

    def _ask(self, method: str, path: str, patience_s: float, body: bytes = b"", kind: str = "") -> object:
        """The JSON of an answer with status 200."""
        url = self._address.base + path
        parts = urlsplit(url)
        connection = (HTTPSConnection if parts.scheme == "https" else HTTPConnection)(
            parts.hostname or "", parts.port, timeout=CONNECT_SECONDS
        )
        headers = {"Content-Type": kind} if kind else {}
        if self._address.key:
            headers["Authorization"] = f"Bearer {self._address.key}"
        try:
            connection.connect()
            connection.sock.settimeout(patience_s)
            connection.request(method, parts.path, body or None, headers)
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
        except TimeoutError as error:
            raise EngineFailed(f"{url} did not answer in time; the server may be overloaded") from error
        except (OSError, HTTPException) as error:
            raise EngineFailed(f"{url} cannot be used ({why_of(error)}); check that the server runs") from error
        finally:
            connection.close()
        if answer.status != 200:
            raise ServerRefused(f"{url} answered {answer.status}: {told_by(text)}", answer.status, text)
        try:
            return json.loads(text)
        except ValueError as error:
            raise EngineFailed(f"{url} sent an answer that is not JSON: {text[:100]!r}") from error


class RemoteFollower:
    """One utterance at a time. The server's text may change with each answer, so nothing is stable before the end. See
    `Follower` in assistant/asr/paced.py."""

    def __init__(self, server: TranscriptionServer) -> None:
        self._server = server
        self._language: str | None = None
        self.drop()

    @property
    def facts(self) -> AsrFacts:
        return self._server.facts

    def drop(self) -> None:
        self._sound: list[Pcm] = []
        self._samples = self._sent = 0
        self._text = ""

    def forget(self) -> None:
        """Does nothing: the server remembers nothing of a speaker."""

    def expect(self, terms: Sequence[str]) -> None:
        """Does nothing: not every server takes a prompt, and none reports whether it does."""

    def listen_in(self, language: str | None) -> None:
        self._language = language

    def hear(self, pcm: Pcm) -> None:
        self._sound.append(pcm)
        self._samples += pcm.size

    def read(self, whole: bool) -> Partial:
        new = self._samples > self._sent and self._samples >= LEAST_S * HEARING_RATE
        if new and whole:
            self._send_sound(whole)
        elif new and self._server.quick:
            with suppress(EngineFailed):  # the words at the end are requested anyway, and that failure is reported
                self._send_sound(whole)
        return Partial("", self._text)

    def _send_sound(self, whole: bool) -> None:
        sound = np.concatenate(self._sound)
        self._text = " ".join(self._server.transcribe(sound, whole, language=self._language).split())
        self._sent = self._samples

    def end(self) -> Transcript:
        text = self._text
        self.drop()
        speech = any(character.isalnum() for character in text)
        return Transcript(text, tuple(HeardWord(word) for word in text.split()), None, speech)


def _wav(sound: Pcm) -> bytes:
    data = io.BytesIO()
    with wave.open(data, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(HEARING_RATE)
        out.writeframes(to_pcm16(sound))
    return data.getvalue()


def _form(fields: dict[str, str], file: bytes) -> tuple[str, bytes]:
    """A multipart form: its content type, and its body."""
    mark = uuid4().hex
    head = f'--{mark}\r\nContent-Disposition: form-data; name="'
    parts = [f'{head}{name}"\r\n\r\n{value}\r\n'.encode() for name, value in fields.items()]
    sound = f'{head}file"; filename="speech.wav"\r\nContent-Type: audio/wav\r\n\r\n'.encode()
    return f"multipart/form-data; boundary={mark}", b"".join([*parts, sound, file, f"\r\n--{mark}--\r\n".encode()])

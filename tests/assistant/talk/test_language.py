"""A talk in another language: what can do it does, what cannot says so once, and nothing is done by English rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import aiohttp
import numpy as np
import pytest

from assistant.asr.recording import write_down
from assistant.base.pcm import wav_bytes
from assistant.base.picture import Picture
from assistant.base.tongues import Abilities, is_code
from assistant.contracts import Prompt
from assistant.events import (
    CreateItem,
    CreateResponse,
    LanguageTold,
    Message,
    PicturePart,
    ServerVad,
    Settings,
    TextPart,
    ToolAsked,
    ToolSpec,
    TranscriptCompleted,
    UpdateSettings,
)
from assistant.personas import Persona
from assistant.talk.approvals import agrees
from assistant.text.languages import talk_words
from assistant.tools.registry import Tool, ToolRegistry
from tests.fakes.models import FAKE_EARS, Answer, FakeEars
from tests.fakes.talk import PERSONAS, World
from tests.fakes.web import RATE, Site, Wire, run

ASKED, ANSWER = "wie spät ist es", "Es ist 10:30 Uhr, am 3.5. sind es 5 km."
KLARA = Persona(
    "klara", "Klara", "Du bist Klara.", "ada", language="de-DE",
    phrases={"ask": "Soll ich {tool} von {server} benutzen?", "yes": "ja | ja bitte"},
)  # fmt: skip


class Ears(FakeEars):
    """Ears that hear any language."""

    def __init__(self) -> None:
        super().__init__()
        self.facts = replace(FAKE_EARS, languages=(), cased=True)


def in_german(prompt: Prompt) -> list[Answer]:
    assert prompt.system.endswith("Answer in German.")
    return [ANSWER if prompt.lines[-1].text.lower().startswith(ASKED) else "Wie bitte?"]


def test_from_sound_to_sound_in_german() -> None:
    """Over the websocket: the ears are told the language, the model answers in it, the voice is handed its words as
    they are written, in German, and every sample of them arrives."""
    world = World(in_german, speed=100.0, asr=(ears := Ears()))
    world.asr = ears

    async def talk(site: Site) -> None:
        async with site.wire("?extensions=language") as wire:
            assert wire.session["assistant"]["languages"] is None, "any language may do"
            session = await wire.listen_16k(transcription={"model": "local", "language": "de"})
            assert session["audio"]["input"]["transcription"]["language"] == "de"
            told = await wire.until("assistant.language")
            assert told["language"] == "de" and len(told["limits"]) == 2, "no engine lacks it"
            await wire.speak(ASKED)
            done = await wire.until("response.done")
            check(wire, done["response"])

    def check(wire: Wire, response: dict[str, Any]) -> None:
        [heard] = wire.of("conversation.item.input_audio_transcription.completed")
        assert heard["transcript"].lower().startswith(ASKED)
        assert ears.listened_in == ["de"]
        assert response["output"][0]["content"][0]["transcript"] == ANSWER
        assert " ".join(text.strip() for text, _ in world.tts.spoken) == ANSWER
        assert {language for _, language in world.tts.spoken} == {"de"}
        words = len(ANSWER.split())
        assert len(wire.sound(response["id"])) == words * int(0.3 * 24_000) * 2
        assert len(wire.of("assistant.language")) == 1, "once"

    assert RATE == 16_000
    run(talk, world=world)


def test_what_cannot_be_done_is_said_once() -> None:
    systems: list[str] = []

    def answers(prompt: Prompt) -> list[Answer]:
        systems.append(prompt.system)
        return ["So?"]

    world = World(answers, Settings(persona="ada", turn_detection=ServerVad(), language="de"))
    services = world.talks._services
    object.__setattr__(services, "thinks", ("en",))
    object.__setattr__(services, "speaks", ("en",))
    asked = [(0.1, CreateItem(Message("item_a", "user", (TextPart("hallo"),)))), (0.2, CreateResponse())]
    again = Settings(persona="ada", turn_detection=ServerVad(), language="de", speed=1.2)
    world.play(*asked, (3, UpdateSettings(again)), (4, UpdateSettings(replace(again, language="en"))), until=6)
    german, english = world.of(LanguageTold)
    assert german.limits[:4] == (
        "The ears here hear English only.", "The language model here knows English only.",
        "The voice here speaks English only.", "Turns in German go by time and loudness alone.",
    )  # fmt: skip
    assert (german.language, english) == ("de", LanguageTold("en"))
    assert systems == ["You are Ada."], "a model that cannot is not asked to"


@pytest.mark.parametrize(("persona", "said", "answer"), [
    ("klara", ["Soll ich write file von files benutzen?", "Gut."], "Ja, bitte!"), ("ada", ["Gut."], "Yes, please."),
])  # fmt: skip
def test_our_own_sentences_are_the_personas_or_none(
    persona: str, said: list[str], answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a German talk nothing is said in English, a question before a call included; the front shows it."""
    written: list[str] = []

    def tools() -> ToolRegistry:
        async def write(name: str) -> str:
            written.append(name)
            return "wrote it"

        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        spec = ToolSpec("write_file", "Write.", schema)
        return ToolRegistry((Tool(spec, write, server="files", there="write_file", ask=True),))

    def answers(prompt: Prompt) -> list[Answer]:
        return [("write_file", {"name": "a"})] if prompt.lines[-1].text == "schreib" else ["Gut."]

    monkeypatch.setitem(PERSONAS, "klara", KLARA)
    world = World(answers, Settings(persona=persona, turn_detection=ServerVad(), language="de"), tools)
    steps: list[Any] = []
    for at, text in ((0.1, "schreib"), (6, answer)):
        steps += [(at, CreateItem(Message(f"asked_{at}", "user", (TextPart(text),)))), (at + 0.1, CreateResponse())]
    world.play(*steps)
    assert len(world.of(ToolAsked)) == 1
    assert [text.strip() for text, _ in world.tts.spoken] == said
    assert written == (["a"] if persona == "klara" else [])


@pytest.mark.parametrize(("words", "persona", "said"), [
    ("was ist das", "klara", "Ich sehe keine Bilder."), ("", "klara", "Ich sehe keine Bilder."),
    ("was ist das", "ada", "Eine Katze?"), ("", "ada", "Eine Katze?"),
])  # fmt: skip
def test_a_picture_is_answered_without_english_words(
    words: str, persona: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model has no eyes. Which German words ask about a picture is not known, so all do, if the persona has words
    for it. Otherwise the model reads that there is a picture."""
    prompts: list[Prompt] = []
    phrases = KLARA.phrases | {"cannot_see": "Ich sehe keine Bilder."}
    monkeypatch.setitem(PERSONAS, "klara", replace(KLARA, phrases=phrases))
    world = World(
        lambda prompt: prompts.append(prompt) or ["Eine Katze?"],
        Settings(persona=persona, turn_detection=ServerVad(), language="de"),
    )
    parts = (PicturePart(Picture.of(np.zeros((8, 8, 3), np.uint8))), *([TextPart(words)] if words else []))
    world.play((0.1, CreateItem(Message("asked", "user", parts))), (0.2, CreateResponse()), until=6)
    assert [text.strip() for text, _ in world.tts.spoken] == [said]
    assert [prompt.lines[-1].text for prompt in prompts] == ([f"[picture] {words}".strip()] if persona == "ada" else [])


@pytest.mark.parametrize(("hears", "chosen", "shown"), [
    (("fr",), None, "six personnes a paris"), ((), "fr", "six personnes a paris"),
    (("fr", "en"), "fr", "six personnes a paris"), (("en",), None, "6 personnes a Paris"),
    ((), None, "6 personnes a Paris"), (("fr", "en"), None, "6 personnes a Paris"),
])  # fmt: skip
def test_english_figures_are_for_english_words(hears: tuple[str, ...], chosen: str | None, shown: str) -> None:
    """What ears without capitals and digits wrote is written as English people write it only where it is English."""
    ears = FakeEars()
    ears.facts = replace(FAKE_EARS, languages=hears)
    said = "six personnes a paris"
    world = World(settings=Settings(persona="ada", turn_detection=ServerVad(), language=chosen), asr=ears)
    world.asr = ears
    world.play((0.5, (said, 1.5)), until=6)
    assert world.of(TranscriptCompleted)[0].transcript == shown
    ears = FakeEars()
    ears.facts = replace(FAKE_EARS, languages=hears)
    quiet = np.zeros(RATE, np.float32)
    [segment] = write_down(ears, np.concatenate([quiet, ears.spoken(said, 1.5), quiet]), chosen or "")
    assert segment.text == shown and ears.listened_in == [chosen]


def test_a_recording_is_written_down_in_the_language_that_was_named() -> None:
    world = World(asr=(ears := Ears()))
    pcm = np.concatenate([np.zeros(RATE, np.float32), ears.spoken(ASKED, 1.0), np.zeros(RATE, np.float32)])

    async def story(site: Site) -> None:
        for language in ("de", ""):
            form = aiohttp.FormData({"language": language} if language else {})
            form.add_field("file", wav_bytes(pcm, RATE), filename="asked.wav")
            async with site.client.post(f"{site.http}/v1/audio/transcriptions", data=form) as answer:
                assert (await answer.json())["text"].lower() == ASKED
        assert ears.listened_in == ["de", None]

    run(story, world=world)


def test_words_that_steer_are_chosen_by_language() -> None:
    assert talk_words(("en-GB",)) is not None and talk_words(("de",)) is None and talk_words(("en", "de")) is None
    assert agrees("Ja, bitte!", None, ("ja", " ja bitte ")) and not agrees("", None, ("",))
    assert is_code("de") and is_code("pt-BR") and not is_code("auto") and not is_code("") and not is_code("d e")
    assert Abilities(("en",), (), ("de", "en-US")).possible == ("en",) and Abilities().possible is None
    assert Abilities().limits("en-GB", True) == ()

"""One suite over everything that keeps `Transcriber`.

Moonshine tiny and pocketsphinx with their real weights; the streaming follower over a scripted stand-in for the makers'
library, and over a real folder (random weights will do) where MOONSHINE_STREAMING names one; a transducer with weights
made up, greedy and by a beam; Whisper over a scripted stand-in for faster-whisper, and over random weights where that
package is; a scripted follower; and the same behind this project's own server and, where its packages are, behind
`transformers serve`.
"""

import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import llm_engine
from assistant.asr.agreement import bare
from assistant.asr.likely import Likely
from assistant.asr.local import LocalASR
from assistant.asr.moonshine import MoonshineFollower
from assistant.asr.network import Network
from assistant.asr.paced import Follower, Paced
from assistant.asr.pocketsphinx import TINY, PocketsphinxFollower
from assistant.asr.streaming import FILES, StreamingFollower
from assistant.asr.transducer import Transducer, TransducerFollower
from assistant.asr.whisper import Whisper, WhisperFollower, open_whisper
from assistant.contracts import MOST_TERMS, AsrFacts, HeardWord, Partial, Transcript
from assistant.events import Pcm
from assistant.llm.small.rescoring import RequestChances
from assistant.remote import RemoteFollower, TranscriptionServer, read_address
from tests.fakes.random_whisper import write_ct2, write_hf
from tests.fakes.talk import World
from tests.fakes.transformers_server import lacking, serving_whisper
from tests.fakes.web import serving_aside

RATE = 16_000
TALE = [
    "It",
    "was",
    "the",
    "best",
    "of",
    "times.",
    "It",
    "was",
    "the",
    "worst",
    "of",
    "times,",
    "it",
    "was",
    "the",
    "age",
    "of",
    "wisdom.",
] * 20


def said(sound: Pcm) -> list[str]:
    """What the scripted ones hear: a word for every 0.3 s above silence; the last is a guess, and wrong at first."""
    length = int(np.count_nonzero(np.abs(sound) > 1e-3))
    words = TALE[: length // 4800]
    return [*words, "umbrella"] if length % 4800 > 2400 else words


class Scripted:
    facts = AsrFacts("scripted", ("en",), True, 100.0, False, False)

    def __init__(self) -> None:
        self.drop()

    def drop(self) -> None:
        self._sound = np.zeros(0, np.float32)

    def hear(self, pcm: Pcm) -> None:
        self._sound = np.concatenate([self._sound, pcm])

    def read(self, whole: bool) -> Partial:
        words = said(self._sound)
        settled = len(words) - (words[-1:] == ["umbrella"])
        stable, text = " ".join(words[:settled]), " ".join(words)
        return Partial(stable, text[len(stable) :])

    def end(self) -> Transcript:
        words = tuple(HeardWord(word) for word in said(self._sound))
        self.drop()
        return Transcript(" ".join(w.text for w in words), words, None, bool(words))

    def expect(self, terms: Sequence[str]) -> None:
        self.terms = terms

    def forget(self) -> None:
        pass


class MakersStream:
    def __init__(self) -> None:
        self._sound: list[float] = []

    def start(self) -> None: ...
    def close(self) -> None: ...

    def add_audio(self, samples: list[float], rate: int) -> None:
        assert rate == RATE and isinstance(samples, list)
        self._sound += samples

    def update_transcription(self, flags: int) -> Any:
        words = said(np.array(self._sound, np.float32))
        return SimpleNamespace(lines=[SimpleNamespace(text=" ".join(words), words=None)] if words else [])


class MakersTranscriber:
    def __init__(self, folder: Path, arch: str, options: dict[str, str]) -> None:
        assert options["vad_threshold"] == "0" and arch == "tiny arch"

    def create_stream(self, update_interval: float) -> MakersStream:
        return MakersStream()


class WhisperStandIn:
    """As much of faster-whisper's `WhisperModel` as is called."""

    model = SimpleNamespace(is_multilingual=True)
    supported_languages = ("en", "de")

    def transcribe(self, sound: Pcm, **options: Any) -> tuple[Iterator[Any], Any]:
        assert sound.dtype == np.float32 and sound.size <= 30 * RATE
        assert not options["vad_filter"] and not options["condition_on_previous_text"]
        found = [
            SimpleNamespace(word=f" {word}", start=0.3 * at, end=0.3 * at + 0.3, probability=0.9)
            for at, word in enumerate(said(sound))
        ]
        tokens = [hash(word.word) for word in found]
        text = "".join(word.word for word in found)
        segment = SimpleNamespace(seek=0, words=found, text=text, tokens=tokens, avg_logprob=-0.1)
        return iter([segment] if found else []), SimpleNamespace(language="en")


@pytest.fixture(scope="session")
def random_whisper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in CTranslate2's layout. Its words are made up."""
    for package in ("ctranslate2", "faster_whisper"):
        pytest.importorskip(package, reason=f"{package} is not installed; pip install 'voice-assistant[whisper]'")
    root = tmp_path_factory.mktemp("whisper")
    return write_ct2(write_hf(root / "hf"), root / "ct2")


SHIPPED_LLM = Path(llm_engine.__file__).parent / "tiny"


@pytest.fixture(scope="session")
def opened_whisper(random_whisper: Path) -> Whisper:
    return open_whisper(random_whisper)


Make = Callable[[], Paced]
RANDOM = "whisper ct2"


def slow(kind: str) -> object:
    return pytest.param(kind, marks=pytest.mark.slow)


KINDS = (
    "scripted",
    slow("moonshine"),
    slow("moonshine, rescored"),
    slow("pocketsphinx"),
    slow("remote"),
    "streaming, scripted",
    "streaming, a folder",
    "transducer, greedy",
    slow("transducer, beam"),
    "whisper, scripted",
    "whisper, random",
    slow("another server"),
)


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """The address of a server whose ears are scripted."""
    ears = LocalASR(Scripted.facts, lambda: Paced(Scripted(), clock=lambda: 0.0))
    with serving_aside(lambda: World(asr=ears)) as url:
        yield url


@pytest.fixture(scope="module")
def another(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of another project's server, with random weights."""
    if packages := lacking():
        pytest.skip(f"`transformers serve` is not whole here; pip install {' '.join(packages)}")
    with serving_whisper(tmp_path_factory.mktemp("another")) as url:
        yield url


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Make:
    """Makes transcribers of one kind. Their clock stands still, so that no pass is put off because it was dear."""

    def follower() -> Follower:
        match request.param:
            case "scripted":
                return Scripted()
            case "moonshine":
                return MoonshineFollower(network)
            case "moonshine, rescored":
                return MoonshineFollower(network, Likely(RequestChances(SHIPPED_LLM)))
            case "pocketsphinx":
                return PocketsphinxFollower(TINY)
            case "remote" | "another server":
                server = TranscriptionServer(address, clock=lambda: 0.0, quick_s=30.0)
                server.rehearse()
                return RemoteFollower(server)
            case "streaming, scripted":
                return StreamingFollower(tmp_path, "tiny")
            case "transducer, greedy" | "transducer, beam":
                return TransducerFollower(transducers(terms="beam" in request.param))
            case "whisper, scripted" | "whisper, random":
                return WhisperFollower(whisper)
            case _:
                return StreamingFollower(Path(os.environ["MOONSHINE_STREAMING"]), "tiny")

    if request.param.startswith("moonshine"):
        network: Network = request.getfixturevalue("network")
    if request.param == "whisper, scripted":
        whisper = Whisper(WhisperStandIn(), "whisper scripted")
    if request.param == "whisper, random":
        whisper = request.getfixturevalue("opened_whisper")
    if request.param == "remote":
        address = read_address(request.getfixturevalue("served"))
    if request.param.startswith("transducer"):
        transducers: Callable[..., Transducer] = request.getfixturevalue("transducers")
    if request.param == "another server":
        address = read_address(request.getfixturevalue("another"))
    if request.param == "streaming, scripted":
        arches = SimpleNamespace(TINY_STREAMING="tiny arch")
        makers = SimpleNamespace(Transcriber=MakersTranscriber, ModelArch=arches)
        monkeypatch.setitem(sys.modules, "moonshine_voice", makers)
    if request.param == "streaming, a folder" and "MOONSHINE_STREAMING" not in os.environ:
        pytest.skip(f"MOONSHINE_STREAMING names no folder with {', '.join(FILES)}")
    return lambda: Paced(follower(), clock=lambda: 0.0)


@pytest.fixture
def speech(two_cities: Pcm) -> Pcm:
    """4.2 s, the last of it silent."""
    return np.concatenate([two_cities[: 4 * RATE], np.zeros(RATE // 5, np.float32)])


def follow(transcriber: Paced, sound: Pcm, block: int = 512) -> list[Partial]:
    """Push it block by block, the words so far asked for every 96 ms."""
    found = []
    for start in range(0, sound.size, block):
        transcriber.push(sound[start : start + block])
        if start // block % 3 == 2:
            found.append(transcriber.partial())
    return found


def skip_random(transcriber: Paced) -> None:
    name = transcriber.facts.name
    if ("streaming" in name and "MOONSHINE_STREAMING" in os.environ) or name == RANDOM or name.endswith("/hf"):
        pytest.skip("the folder's weights may be random; they hear words in silence")


def plain(text: str) -> list[str]:
    return re.findall(r"[a-z']+", text.lower())


def test_stable_words_only_grow_and_the_end_keeps_them(make: Make, two_cities: Pcm) -> None:
    transcriber = make()
    partials = follow(transcriber, two_cities[: 14 * RATE])
    partials.append(transcriber.pause())
    for before, after in pairwise(partials):
        assert after.stable.startswith(before.stable)
    final = transcriber.final()
    assert final.text.startswith(partials[-1].stable)
    assert final.text == " ".join(word.text for word in final.words)


class Counted:
    """A follower that counts its passes."""

    def __init__(self, follower: Follower) -> None:
        self.follower, self.passes = follower, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.follower, name)

    def read(self, whole: bool) -> Partial:
        self.passes += 1
        return self.follower.read(whole)


def test_after_a_pause_the_end_is_free_and_the_same(make: Make, speech: Pcm) -> None:
    transcriber = make()
    counted = Counted(transcriber._follower)
    transcriber._follower = counted
    follow(transcriber, speech)
    paused = transcriber.pause()
    passes = counted.passes
    assert transcriber.pause() == paused and transcriber.partial() == paused
    final = transcriber.final()
    assert counted.passes == passes
    assert final.text == paused.text


def test_silence_pushed_after_a_pause_changes_no_word(make: Make, speech: Pcm) -> None:
    transcriber = make()
    skip_random(transcriber)
    follow(transcriber, speech)
    paused = transcriber.pause()
    transcriber.push(np.zeros(RATE // 2, np.float32))
    assert plain(transcriber.final().text) == plain(paused.text)


def test_who_goes_on_after_a_pause_is_heard_whole(make: Make, two_cities: Pcm) -> None:
    transcriber = make()
    skip_random(transcriber)
    follow(transcriber, two_cities[: 2 * RATE])
    first = transcriber.pause()
    follow(transcriber, two_cities[2 * RATE : 5 * RATE])
    final = transcriber.final()
    assert final.text.startswith(first.stable) and len(final.text) > len(first.text)


def test_a_reset_leaves_nothing(make: Make, speech: Pcm, two_cities: Pcm) -> None:
    fresh, used = make(), make()
    follow(used, two_cities[20 * RATE : 27 * RATE])
    used.pause()
    used.push(two_cities[: RATE // 2])
    used.reset()
    assert used.partial() == Partial()
    used.forget()
    assert follow(used, speech) == follow(fresh, speech)
    assert used.final() == fresh.final()


def test_an_utterance_after_another_is_its_own(make: Make, speech: Pcm) -> None:
    transcriber = make()
    follow(transcriber, speech)
    first = transcriber.final()
    transcriber.forget()
    follow(transcriber, speech)
    assert transcriber.final() == first


@pytest.mark.parametrize("block", [1, 63, 512, 1000, 16_000, 10**6])
def test_how_sound_is_cut_does_not_matter(make: Make, speech: Pcm, block: int) -> None:
    sound = speech[: RATE if block == 1 else None]
    whole, cut = make(), make()
    whole.push(sound)
    for start in range(0, sound.size, block):
        cut.push(sound[start : start + block])
    assert cut.final() == whole.final()


def test_two_talks_do_not_see_each_other(make: Make, two_cities: Pcm) -> None:
    here, there = two_cities[: 4 * RATE], two_cities[24 * RATE : 28 * RATE]
    alone = [make(), make()]
    expected = []
    for transcriber, sound in zip(alone, (here, there), strict=True):
        follow(transcriber, sound)
        expected.append(transcriber.final())
    both = [make(), make()]
    threads = [
        threading.Thread(target=follow, args=(transcriber, sound))
        for transcriber, sound in zip(both, (here, there), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [transcriber.final() for transcriber in both] == expected


def test_sound_may_be_pushed_while_it_decodes(make: Make, speech: Pcm) -> None:
    transcriber = make()
    done = threading.Event()

    def decode() -> None:
        while not done.is_set():
            transcriber.partial()

    thread = threading.Thread(target=decode)
    thread.start()
    for start in range(0, speech.size, 512):
        transcriber.push(speech[start : start + 512])
    done.set()
    thread.join()
    final = transcriber.final()
    assert final.text and transcriber.final().text == ""


def test_more_than_any_engine_reads_at_once_is_heard(make: Make, two_cities: Pcm) -> None:
    """Whisper reads the most, 30 s."""
    transcriber = make()
    transcriber.push(two_cities[: 35 * RATE])
    assert len(transcriber.final().text.split()) > 20


def test_silence_is_no_speech(make: Make) -> None:
    skip_random(make())
    for seconds in (0.0, 0.01, 0.2, 1.0, 4.0):
        transcriber = make()
        transcriber.push(np.zeros(int(seconds * RATE), np.float32))
        transcriber.partial()
        assert not transcriber.final().speech, seconds


ODD = {
    "no numbers": np.full(8000, np.nan, np.float32),
    "beyond all": np.array([np.inf, -np.inf, 1e30, -1e30] * 2000, np.float32),
    "clipped": np.sign(np.sin(np.arange(8000) / 9)).astype(np.float32),
    "one sample": np.ones(1, np.float32),
    "none": np.zeros(0, np.float32),
    "doubles": np.random.default_rng(1).normal(0, 0.1, 8000),
    "shorts": np.arange(-4000, 4000, dtype=np.int16),
    "two rows": np.zeros((2, 4000), np.float32),
    "read only": np.broadcast_to(np.float32(0.1), 8000),
}


@pytest.mark.parametrize("kind", ODD)
def test_odd_sound_is_taken(make: Make, speech: Pcm, kind: str) -> None:
    transcriber = make()
    for ask in (transcriber.partial, transcriber.pause, transcriber.final, transcriber.final):
        transcriber.push(ODD[kind])
        ask()
    transcriber.push(speech)
    assert transcriber.final().text


def test_anything_may_be_expected(make: Make, speech: Pcm) -> None:
    transcriber = make()
    transcriber.expect(["Mirela", "", "Nürnberg", "日本", "a b c d e f", "\x00", *map(str, range(2 * MOST_TERMS))])
    transcriber.push(speech)
    assert transcriber.final().text
    transcriber.forget()
    fresh = make()
    for each in (transcriber, fresh):
        each.push(speech)
    assert transcriber.final() == fresh.final()


def test_facts_hold(make: Make, speech: Pcm) -> None:
    transcriber = make()
    facts = transcriber.facts
    transcriber.push(speech)
    final = transcriber.final()
    assert all((word.start_ms is not None) == facts.word_times for word in final.words)
    assert all(word.probability is None or 0.0 <= word.probability <= 1.0 for word in final.words)
    assert facts.cased or final.text == final.text.lower()
    assert all(bare(word.text) for word in final.words)

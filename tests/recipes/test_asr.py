"""The judge of the ears: its arithmetic, what places and telephones do to sound, and its list of people."""

import re

import numpy as np
import pytest

from recipes.asr import ears, noise, score
from recipes.asr.people import RATE, read_list

PACKAGE = re.compile(r"deb:[a-z0-9.+-]+|wheel:[a-z0-9_-]+==[0-9.]+")


@pytest.mark.parametrize(
    ("said", "heard", "wrong"),
    [
        ("go on", "go on", (0, 0, 0)),
        ("go on", "", (0, 2, 0)),
        ("", "you", (0, 0, 1)),
        ("take the onions off", "take onions off my", (0, 1, 1)),
        ("set a timer", "sat a dimmer", (2, 0, 0)),
    ],
)
def test_words_are_wrong_in_three_ways(said, heard, wrong):
    assert score.alignment(said.split(), heard.split()) == wrong


def row(source, words, substituted=0, heard="x"):
    return score.Judged("a", source, "", heard, words, substituted, 0, 0)


def test_shares_are_of_words_and_not_of_utterances():
    rows = [row("short", 1, 1, heard=""), row("prompts", 9), row("requests", 10, 5)]
    cells = score.by_source(rows)
    assert cells["people"].wrong == 10.0 and cells["people"].words == 10 and cells["people"].empty == 50.0
    assert cells["short"].wrong == 100.0 and cells["requests"].wrong == 50.0
    assert cells["short"].error == 0.0, "one utterance drawn again is itself"
    assert 3 < score.summed([row("short", 1, i % 10 == 0) for i in range(100)]).error == pytest.approx(3, abs=0.5)


def test_every_so_manieth_of_each_source():
    clips = [score.Clip(f"{source}{i}", source, "", np.zeros(1, np.float32)) for source in "ab" for i in range(5)]
    assert [clip.name for clip in score.every(clips, 2)] == ["a0", "a2", "a4", "b0", "b2", "b4"]


def test_figures_are_put_beside_what_is_there(tmp_path):
    path = tmp_path / "people.json"
    for condition, source in [("clean", "short"), ("clean", "requests"), ("street", "short")]:
        score.save(path, "used:auto", condition, score.by_source([row(source, 4)]))
    text = path.read_text()
    assert text.count('"people"') == 2 and text.count('"requests"') == 1
    cells = score.by_source([row("short", 4, 1), row("requests", 4)])
    assert "| used | clean | 25.0 ± 0.0 | 25.0 ± 0.0 | 0.0 ± 0.0 | 1, 4 |" in score.table({"used": {"clean": cells}})


def spoken(seconds=2.0):
    """A tone that is there half of the time."""
    t = np.arange(int(seconds * RATE)) / RATE
    return (0.3 * np.sin(2 * np.pi * 440 * t) * (t % 0.5 < 0.25)).astype(np.float32)


@pytest.mark.parametrize("place", [noise.kitchen, noise.street, noise.babble([spoken(), spoken(1.0)])])
@pytest.mark.parametrize("snr_db", [0.0, 10.0])
def test_noise_is_as_loud_as_asked(place, snr_db):
    sound = spoken() / 10  # so that nothing clips
    spoiled = noise.noisy(place, snr_db)(sound, 7)
    level = 10 * np.log10(noise.speech_power(sound) / np.mean((spoiled - sound).astype(np.float64) ** 2))
    assert level == pytest.approx(snr_db, abs=0.1)
    assert np.array_equal(spoiled, noise.noisy(place, snr_db)(sound, 7)), "the same every time"
    assert not np.array_equal(spoiled, noise.noisy(place, snr_db)(sound, 8))


def test_a_telephone_lets_through_the_band_of_a_telephone():
    def left(hertz):
        tone = (0.3 * np.sin(2 * np.pi * hertz * np.arange(RATE) / RATE)).astype(np.float32)
        return float(np.std(noise.telephone(tone, 0)[1000:-1000]) / np.std(tone))

    assert left(1000) == pytest.approx(1, abs=0.05) and left(150) < 0.03 and left(5000) < 0.03
    assert noise.telephone(spoken(), 0).size == pytest.approx(spoken().size, abs=2)


def test_a_far_voice_is_a_twentieth_in_the_steps_of_a_sound_card():
    steps = noise.quiet(spoken(), 0) * 32767
    assert np.abs(steps).max() == round(0.3 / 20 * 32767) and np.allclose(steps, np.round(steps), atol=1e-3)


def test_the_list_is_enough_and_says_where_it_comes_from():
    rows = read_list()
    assert len(rows) >= 150 and len({each.speaker for each in rows}) >= 5
    assert len({each.name for each in rows}) == len(rows)
    for each in rows:
        assert PACKAGE.fullmatch(each.origin) and each.licence and each.transcript.strip(), each
        assert each.source in score.HUMAN and each.name.startswith(f"{each.source}/")
        assert not each.file.startswith("/") and (not each.end_s or each.start_s < each.end_s)


def test_ears_in_a_talk_say_what_a_front_would_get():
    """The product's own stage, over fake ears: two turns with a long silence between them."""
    import asyncio

    from tests.fakes.models import FakeEars

    fake = FakeEars()
    sound = np.concatenate([fake.spoken("hello there", 0.8), np.zeros(RATE, np.float32), fake.spoken("again", 0.5)])
    with asyncio.Runner(loop_factory=ears.StandingLoop) as runner:
        assert runner.run(ears.listened(fake, ears.around(sound))) == ["hello there", "again"]
    assert np.array_equal(ears.within(ears.around(sound)), sound)

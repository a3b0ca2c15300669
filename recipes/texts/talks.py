"""Whole talks out of scenes, and the sentences of either side for the speech recipes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from recipes.texts.scene import Scene, Talk, Unusable
from recipes.texts.scenes import SCENES
from recipes.texts.scenes_interrupted import now_and_then
from recipes.texts.words import Split

_FUNCTIONS = [scene for scene, _, _ in SCENES]
_SHARES = {False: [usual for _, usual, _ in SCENES], True: [practised for _, _, practised in SCENES]}


def make_talk(
    rng: random.Random,
    split: Split = "train",
    scenes: int | None = None,
    noise: float = 0.15,
    practice: bool = False,
    among: Sequence[Callable[[Scene], None]] = (),
) -> Talk:
    """One talk of a few exchanges. In practice hard ones are more frequent, and more random words have to be copied.

    `among`: only these exchanges, all equally often.
    """
    while True:
        scene = Scene(rng, split, noise, practice)
        if rng.random() < 0.03:
            scene.tools = ()
        for _ in range(scenes or rng.choice([1, 2, 3, 4, 5, 6])):
            now_and_then(scene)
            turns, known = len(scene.turns), dict(scene.known)
            try:
                (rng.choice(among) if among else rng.choices(_FUNCTIONS, _SHARES[practice])[0])(scene)
            except Unusable:
                del scene.turns[turns:]
                scene.known = known
        if not scene.turns:
            continue
        if not scene.tools:
            _without_tools(scene)
        return Talk(scene.system, scene.tools, scene.turns)


def _without_tools(scene: Scene) -> None:
    """Tools are switched off: the first request that needs one is answered with that, and the talk ends there."""
    for i, turn in enumerate(scene.turns):
        if turn.call:
            del scene.turns[i:]
            scene.say("I cannot do that here, because my tools are switched off.", kind="no tools")
            return


def talks(seed: int, split: Split = "train") -> Iterator[Talk]:
    """Endless talks; the same seed gives the same ones."""
    rng = random.Random(seed)
    while True:
        yield make_talk(rng, split)


def user_utterances(seed: int, n: int, split: Split = "train") -> list[str]:
    """Utterances of people in spoken form (lower case, no digits, no punctuation)."""
    out: list[str] = []
    for talk in talks(seed, split):
        out += [turn.spoken for turn in talk.turns if turn.role == "user" and turn.spoken]
        if len(out) >= n:
            break
    return out[:n]


def reply_sentences(seed: int, n: int, split: Split = "train") -> list[str]:
    """Sentences of the assistant as it writes them (digits, punctuation). Cut replies are left out."""
    out: list[str] = []
    for talk in talks(seed, split):
        out += [turn.text for turn in talk.turns if turn.role == "assistant" and turn.text and not turn.cut]
        if len(out) >= n:
            break
    return out[:n]

"""Decides whether words call for more, by fillers and phrases that do not end a request, as ears write them.

Only clear cases are judged here, from the last words alone, because the answer holds a turn open for long. The
language model judges the rest.
"""

from __future__ import annotations

from assistant.text.talk_words import TalkWords


def wants_more(text: str, known: TalkWords | None) -> bool:
    """Whether words with this ending are surely not a whole request. Marks are read too: ears write a dash or dots
    where the voice hangs. Without a list of the language nothing is sure."""
    words = [word for part in text.lower().split() if (word := part.strip(".,!?;:…-–—\"'"))]
    if not words or known is None:
        return False
    if text.rstrip().endswith(("...", "…", "-", "–", "—")):
        return True
    if words[-1] in known.fillers or words[-1] in known.bound:
        return len(words) > 1 or words[-1] not in known.lone_fillers
    if words[-1] in known.starts and all(word in known.openers for word in words):
        return True
    if text.lower().rstrip(" .!?").endswith(known.set_apart):
        return True
    return any(_ends_with(words, phrase, known) for phrase in known.phrases)


def _ends_with(words: list[str], phrase: str, known: TalkWords) -> bool:
    wanted = phrase.split()
    return words[-len(wanted) :] == wanted and (phrase not in known.whole or len(words) == len(wanted))

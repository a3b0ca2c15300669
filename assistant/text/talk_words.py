"""The words of one language that steer a talk: nods, stops, interruptions, and words that leave a request open.

All of them are lower case, without the marks around them, as ears write them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TalkWords:
    """One language's lists. A language that has none is steered by time and loudness (`languages.talk_words`)."""

    nods: frozenset[str]
    """Words that say "I am listening"."""
    hum_or_laugh: str
    """A pattern for how ears spell a hum or a laugh: one part of a word such as "mm-hm"."""
    hum: str
    """How a hum is written in the transcript."""
    hums_begin: frozenset[str]
    """Words that ears write for the beginning of a hum."""
    stopping: frozenset[str]
    """Words that interrupt at the first look."""
    cuts_in: frozenset[str]
    """Words with which people cut in."""
    stops: frozenset[str]
    """Whole sentences that ask only for silence."""
    agreeing: frozenset[str]
    """Whole utterances that say yes to a question."""
    fillers: frozenset[str]
    """More is to come after one of these."""
    lone_fillers: frozenset[str]
    """Fillers that can be the whole utterance."""
    openers: frozenset[str]
    """If only these were said, and the last is one of `starts`, something begins."""
    starts: frozenset[str]
    set_apart: tuple[str, ...]
    """Fillers as ears write them behind a comma, at the end."""
    bound: frozenset[str]
    """Words that belong to the next one."""
    phrases: tuple[str, ...]
    """Phrases that do not end a request."""
    whole: frozenset[str]
    """Phrases that are open only if nothing stands before them."""
    from_noise: frozenset[str]
    """Whole texts, with capitals and marks, that a network learnt from subtitles and writes when nobody speaks."""

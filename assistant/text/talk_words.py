"""The words of one language that steer a talk: nods, stops, what interrupts, and what leaves a request open.

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
    """Whole sentences that ask for nothing but silence."""
    fillers: frozenset[str]
    """Behind one of these more is to come."""
    lone_fillers: frozenset[str]
    """Fillers that can be all that is said."""
    openers: frozenset[str]
    """If nothing but these was said, and the last is one of `starts`, something begins."""
    starts: frozenset[str]
    set_apart: tuple[str, ...]
    """Fillers as ears write them behind a comma, at the end."""
    bound: frozenset[str]
    """Words that belong to the next one."""
    phrases: tuple[str, ...]
    """Phrases with which nobody ends a request."""
    whole: frozenset[str]
    """Phrases that are open only where nothing stands before them."""
    from_noise: frozenset[str]
    """Whole texts, with capitals and marks, that a network learnt from subtitles and writes where nobody speaks."""

"""Chooses the language whose words steer a talk. A second language is one file beside `english` and one row here."""

from __future__ import annotations

from collections.abc import Sequence

from assistant.text.english import ENGLISH
from assistant.text.talk_words import TalkWords

LISTS = {"en": ENGLISH}
"""A language's code, without its region → its words."""


def talk_words(languages: Sequence[str]) -> TalkWords | None:
    """The words of ears or a talk in these languages (BCP-47). None if they are several, or one without a list: then
    time and loudness decide."""
    known = {code.partition("-")[0].lower() for code in languages}
    return LISTS.get(known.pop()) if len(known) == 1 else None

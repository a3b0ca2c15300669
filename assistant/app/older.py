"""What the version before kept of parked talks, taken over or let go with a sentence. May go with the next version."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from assistant.llm.talk_state import LetGo, TalkState
from assistant.llm.token_log import FoldStep, TokenLog, Written
from assistant.talk.keeping import KEPT, WORDS
from capsules.journal import JSON, Journals
from capsules.registry import Registry

log = logging.getLogger(__name__)


def take_over(talks: Path, journals: Journals, registry: Registry, report: Callable[[str], None]) -> None:
    """Words and tokens go into journals; the files of before are removed when that is done."""
    taken = sum(_taken(old, journals) for old in sorted(talks.glob("*.json")))
    for old in [*talks.glob("*.llm"), *talks.glob("*.tts")]:  # of no talk that has words
        old.unlink(missing_ok=True)
    voices = [one.key for one in registry.listing() if one.name.startswith("talk/") and one.name.endswith("/tts")]
    for key in voices if taken else ():
        registry.remove(key)
    if taken:
        report(f"{taken} talks of the version before go on in words and thoughts; the tone of voice begins anew")


def _taken(old: Path, journals: Journals) -> bool:
    """Whether a talk's words are in a journal now."""
    try:
        facts = json.loads(old.read_text("utf-8"))
        words: dict[str, JSON] = {row["id"]: row for row in facts["items"]}
        journal = journals.open(old.stem)
        if journal is None or journal.table(WORDS):
            return False
        kept = journal.put_all({KEPT: dict(facts["kept"]), WORDS: words}, ordered=(WORDS,))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        log.warning("%s was kept by the version before and cannot be read (%s)", old, error)
        return False
    tokens = old.with_suffix(".llm")
    with suppress(OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        journal.put("llm", _state(tokens).to_rows())
    journals.close(old.stem)
    if kept:
        for part in (old, tokens, old.with_suffix(".tts")):
            part.unlink(missing_ok=True)
    return kept


def _state(path: Path) -> TalkState:
    facts = json.loads(path.read_text("utf-8"))
    log_ = TokenLog([FoldStep(tuple(ids), bool(written)) for written, ids in facts["tape"]])
    written = {reply: Written.from_json(row) for reply, row in facts["written"].items()}
    return TalkState(log_, written, LetGo(facts["dropped"]))

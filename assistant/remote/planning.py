"""Whether a reply begins as thoughts do: about the person, or about what to answer.

Pure. Some servers pass on a thought without the tag that opens it, so only the tag that closes it shows what it was. A
server that has answered plainly so far is believed, and its words are spoken as they come. But words that begin like a
plan wait until the reply is over, in case that tag comes; all others are known by their first word or two, and lose no
time. This decides only whether words wait: an answer that begins so is spoken whole, a little later.
"""

from __future__ import annotations

import re

LONGEST_BEGINNING = 200
"""Characters within which a plan shows."""
_LEADS = re.compile(
    r"(?:(?:okay|ok|alright|all right|right|so|now|well|wait|first|hmm+|hm|let me (?:think|see)|let's see|"
    r"looking at this)[,.:;…-]*\s+)*"
)
_LEAD_WORDS = ("okay", "ok", "alright", "all right", "right", "so", "now", "well", "wait", "first", "hmm", "hm",
               "let me think", "let me see", "let's see", "looking at this")  # fmt: skip
_PLANS = (
    "the user", "this user", "user", "the person", "the human", "the question", "the request", "we need", "we should",
    "we must", "we have to", "i should", "i need to", "i must", "i have to", "i ought to", "i will say",
    "i will answer", "i will reply", "i will respond", "i'll say", "i'll answer", "i'll reply", "i'll respond",
    "my answer", "my response", "they want", "they ask", "they are asking", "they need", "he wants", "she wants",
    "it seems the user",
)  # fmt: skip
_ABOUT = re.compile(r"\b(?:the|this) (?:user|person|human)\b|\b(?:i|we) (?:should|need to|must|have to)\b")
_END = re.compile(r"[.!?\n](?=\s|$)")


def begins_as_plan(text: str) -> bool | None:
    """None: more text is needed to know."""
    said = " ".join(text.lower().replace("’", "'").split()) + " " * text[-1:].isspace()
    leads = _LEADS.match(said)
    rest = said[leads.end() :] if leads else said
    if any(rest.startswith(plan) for plan in _PLANS):
        return True
    if len(said) > LONGEST_BEGINNING:
        return _ABOUT.search(said) is not None and rest != said
    if any(plan.startswith(rest) for plan in (*_PLANS, *_LEAD_WORDS)) or rest.rstrip(",.:;…-") in _LEAD_WORDS:
        return None
    if rest == said:
        return False
    sentence = _END.search(rest)
    return None if sentence is None else _ABOUT.search(rest[: sentence.end()]) is not None

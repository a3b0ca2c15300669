"""Do these words want more? Fillers and phrases with which nobody ends a request, as ears write them.

Only what is plain from the last words alone is said here, because it holds a turn open for long. "For", "on", "to" and
their like can end a question ("what is that for"), so they are left to the language model's judgement.
"""

from __future__ import annotations

FILLERS = frozenset(["um", "uh", "er", "erm", "uhm", "hmm", "hm", "mm", "mmm", "ah", "eh"])
OPENERS = frozenset(["well", "so", "okay", "ok", "all", "right", "actually", "anyway"])
"""Where nothing but these was said, and the last is one of STARTS, something begins."""
STARTS = frozenset(["well", "so", "actually", "anyway"])
BOUND = frozenset(
    ["a", "an", "the", "my", "your", "our", "their", "its", "and", "or", "but", "because", "if", "than", "every", "i'd",
     "i'll", "i'm", "we'll", "that's", "what's", "how's", "where's", "who's", "let's"]
)  # fmt: skip
"""Words that belong to the next one."""
PHRASES = (
    "let me see", "let me think", "what's it called", "what was it", "what is it called", "how do you say",
    "i mean", "remind me to", "remind me that", "note that", "down that", "remember that", "i want to", "i'd like to",
    "i would like to", "i would like you to", "i want you to", "i need to", "i need you to", "i was wondering if",
    "i was wondering", "i wanted to ask you", "i wanted to ask", "could you", "can you", "would you", "can you please",
    "could you please", "please", "tell me about", "tell me a story about", "a story about", "is there any",
    "do i have any", "set a timer for", "set the timer to", "set an alarm for", "wake me up at", "put", "add",
    "convert", "divide", "multiply", "spell the word", "how many", "how much", "which day is the",
    "how much is", "what is",
    "what about", "set a", "start a timer for", "a timer for", "a timer of", "divided by", "multiplied by", "plus",
    "minus", "make a note", "take a note",
)  # fmt: skip
WHOLE = frozenset(["please", "could you", "can you", "would you", "what is", "how much", "how many", "put", "add",
                   "convert", "divide", "multiply", "make a note", "take a note"])  # fmt: skip
"""Phrases that are open only where nothing stands before them."""


def wants_more(text: str) -> bool:
    """Whether words that end like this are surely not the whole of a request. Marks are read too: ears write a dash or
    dots where the voice hangs."""
    words = [word for part in text.lower().split() if (word := part.strip(".,!?;:…-–—\"'"))]
    if not words:
        return False
    if text.rstrip().endswith(("...", "…", "-", "–", "—")):
        return True
    if words[-1] in FILLERS or words[-1] in BOUND:
        return len(words) > 1 or words[-1] not in ("mm", "hm", "hmm", "ah")
    if words[-1] in STARTS and all(word in OPENERS for word in words):
        return True
    if text.lower().rstrip(" .!?").endswith((", well", ", so")):  # set apart, as a filler is
        return True
    return any(_ends_with(words, phrase) for phrase in PHRASES)


def _ends_with(words: list[str], phrase: str) -> bool:
    wanted = phrase.split()
    return words[-len(wanted) :] == wanted and (phrase not in WHOLE or len(words) == len(wanted))

"""Marks inside speech text: the control tags that have a spoken effect, and the structure that must never get in.

Pure. One pattern defines structure, both for text to speak and for text that a language model reads.
"""

import re
from collections.abc import Container

_EMOTIONS = (
    "elation", "amusement", "enthusiasm", "determination", "pride", "contentment", "affection", "relief",
    "contemplation", "confusion", "surprise", "awe", "longing", "arousal", "anger", "fear", "disgust", "bitterness",
    "sadness", "shame", "helplessness",
)  # fmt: skip
_SOUNDS = ("cough", "laughter", "crying", "screaming", "burping", "humming", "sigh", "sniff", "sneeze")
_PROSODY = (
    "speed_very_slow", "speed_slow", "speed_fast", "speed_very_fast", "pitch_low", "pitch_high", "pause",
    "long_pause", "expressive_high", "expressive_low",
)  # fmt: skip
CONTROL_TAGS = frozenset(
    f"<|{kind}:{name}|>"
    for kind, names in (
        ("emotion", _EMOTIONS),
        ("style", ("singing", "shouting", "whispering")),
        ("sfx", _SOUNDS),
        ("prosody", _PROSODY),
    )
    for name in names
)
CONTROL = re.compile("(" + "|".join(re.escape(tag) for tag in sorted(CONTROL_TAGS)) + ")")
_STRUCTURE = re.compile(
    r"<\|[^<>|]*\|>|</?(?:tool_call|tool_response|think|s)>|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_[A-Z]+)\]"
)


def strip_structure(text: str, keep: Container[str] = CONTROL_TAGS) -> str:
    """Remove everything that a model would read as a special token, except `keep`, until nothing is left to remove.

    It repeats, because removing the inner token of `<|te<|x|>xt|>` would otherwise create one.
    """
    while True:
        kept = _STRUCTURE.sub(lambda match: match.group() if match.group() in keep else "", text)
        if kept == text:
            return text
        text = kept

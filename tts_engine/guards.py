"""Ends a piece of speech early: after too many rows for its text, the same row again and again, or silence.

About one request in two thousand never samples its end code, and greedy speech loops. Each guard ends the piece at a
frame and is named in the result, so the caller can see it and try another seed.
"""

from collections.abc import Sequence

from tts_engine.markup import CONTROL, strip_structure

FRAMES_PER_SECOND = 25
SAME_ROWS = 32  # consecutive identical rows: 1.3 s
SILENT_FRAMES = 75  # 3 s; the longest pause tag gives 1.5 s
SILENCE_PEAK = 1e-3  # of full scale
_CHARS_PER_SECOND = 14.0
_IDEOGRAPHS_PER_SECOND = 4.0
_SLOWEST = {"speed_very_slow": 0.65, "speed_slow": 0.85}


def row_budget(text: str, delay: int) -> int:
    """Rows after which a text is a runaway: twice the expected time, plus 4 s.

    text   speech text with inline tags
    delay  rows by which the last codebook lags
    """
    tags = [tag[2:-2].split(":") for tag in CONTROL.findall(text)]
    plain = CONTROL.sub("", strip_structure(text))
    ideographs = sum(1 for c in plain if "\u3040" <= c <= "\u9fff" or "\uac00" <= c <= "\ud7af")
    seconds = ideographs / _IDEOGRAPHS_PER_SECOND + (len(plain) - ideographs) / _CHARS_PER_SECOND
    seconds += sum(1.5 for _, name in tags if name.endswith("pause")) + sum(1.0 for kind, _ in tags if kind == "sfx")
    slowest = min((_SLOWEST.get(name, 1.0) for _, name in tags), default=1.0)
    return int((2 * seconds / slowest + 4) * FRAMES_PER_SECOND) + delay


def is_stuck(rows: Sequence[Sequence[int]]) -> bool:
    """Whether the last SAME_ROWS rows are identical."""
    if len(rows) < SAME_ROWS:
        return False
    last = rows[-1]
    return all(row == last for row in rows[-SAME_ROWS:])

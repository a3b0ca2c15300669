"""Finds marks in text that arrives in pieces: text that may still become a mark is held back."""

from collections.abc import Iterable, Sequence


class StopStrings:
    """Ends a text stream at the first of some strings, which is not given out; holds back text that may become one."""

    def __init__(self, stops: Iterable[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ""
        self.stopped = False

    def push(self, text: str) -> str:
        """The text that is certain. After a stop string nothing more comes."""
        if self.stopped:
            return ""
        text = self._held + text
        hits = [at for at in (text.find(stop) for stop in self._stops) if at >= 0]
        if hits:
            self.stopped, self._held = True, ""
            return text[: min(hits)]
        keep = overlap(text, self._stops)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def finish(self) -> str:
        """The text that was held back in vain."""
        held, self._held = self._held, ""
        return held


def overlap(text: str, marks: Sequence[str]) -> int:
    """Length of the longest end of `text` that begins one of `marks` without being all of it."""
    longest = max(map(len, marks), default=0) - 1
    for size in range(min(longest, len(text)), 0, -1):
        end = text[-size:]
        if any(len(mark) > size and mark.startswith(end) for mark in marks):
            return size
    return 0

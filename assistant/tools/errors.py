"""Errors that tools raise when a request cannot be answered. They need nothing else of the tools, raised or read."""

from __future__ import annotations


class AnswerError(ValueError):
    """The request cannot be answered. The text is for the model, which may mend its call; `say` is for the person: a
    plain sentence or a question. Without it the text is a sentence for both."""

    def __init__(self, text: str, say: str | None = None) -> None:
        super().__init__(text)
        self.say = say if say is not None else f"{text[:1].upper()}{text[1:]}."

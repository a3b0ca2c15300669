"""Leave out words that only gain time. Pure."""

from __future__ import annotations

import re
from typing import Final

_HESITATION: Final = re.compile(
    r"(?<![\w'-])(?:u+h+|u+m+|uhm+|erm*|ah+|h+m+|mm+)(?![\w'-])[,.…]*\s*", re.IGNORECASE
)
_ASIDE: Final = re.compile(
    r"(?<=\S )let me (?:(?:see|think)(?=[,.…])|think(?! (?:it |this |that )?(?:about|of|over|through)\b))[,.…]*\s*",
    re.IGNORECASE,
)
"""Within a sentence; at its beginning it may be all that is said."""


def without_hesitations(text: str) -> str:
    """The text without words that only gain time."""
    return _ASIDE.sub("", _HESITATION.sub("", text))

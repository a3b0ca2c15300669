"""Days, months and feasts by the names that people say."""

from __future__ import annotations

from typing import Final

DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
FEASTS: Final = {
    "christmas": (12, 25), "christmas eve": (12, 24), "new year": (1, 1), "new year's day": (1, 1),
    "new year's eve": (12, 31), "halloween": (10, 31), "valentine's day": (2, 14), "april fools": (4, 1),
    "saint patrick's day": (3, 17), "independence day": (7, 4),
}  # fmt: skip
AROUND_EASTER: Final = {"good friday": -2, "easter": 0, "easter sunday": 0, "easter monday": 1, "pentecost": 49}
"""Days after Easter Sunday."""
NTH_WEEKDAYS: Final = {
    "mother's day": (5, 6, 2), "father's day": (6, 6, 3), "labor day": (9, 0, 1), "thanksgiving": (11, 3, 4),
}  # fmt: skip
"""Month, weekday (Monday = 0), and which such weekday of the month, as observed in the United States."""

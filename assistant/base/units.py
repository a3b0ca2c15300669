"""Units of measure by the names that people say, and what they measure."""

from __future__ import annotations

import re
from typing import Final

SCALES: Final[dict[str, dict[str, float]]] = {
    "length": {"meters": 1, "kilometers": 1000, "centimeters": 0.01, "millimeters": 0.001, "miles": 1609.344,
               "yards": 0.9144, "feet": 0.3048, "inches": 0.0254},
    "weight": {"grams": 1, "kilograms": 1000, "milligrams": 0.001, "pounds": 453.59237, "ounces": 28.349523125,
               "tons": 1_000_000},
    "volume": {"liters": 1, "milliliters": 0.001, "gallons": 3.785411784, "quarts": 0.946352946, "pints": 0.473176473,
               "cups": 0.2365882365, "tablespoons": 0.01478676478, "teaspoons": 0.00492892159},
    "time": {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400, "weeks": 604800, "years": 31_557_600},
    "speed": {"kilometers per hour": 1, "miles per hour": 1.609344, "meters per second": 3.6},
    "temperature": {"celsius": 1, "fahrenheit": 1},
}  # fmt: skip
"""What is measured: each unit's size in one of them; of temperature, whose zeros differ, the names alone."""
_ALIASES: Final = {
    "foot": "feet", "inch": "inches", "kilo": "kilograms", "kilos": "kilograms", "kg": "kilograms", "km": "kilometers",
    "m": "meters", "cm": "centimeters", "mm": "millimeters", "g": "grams", "lb": "pounds", "lbs": "pounds",
    "oz": "ounces", "l": "liters", "ml": "milliliters", "litre": "liters", "litres": "liters", "metre": "meters",
    "metres": "meters", "kilometre": "kilometers", "kilometres": "kilometers", "degrees celsius": "celsius",
    "degrees fahrenheit": "fahrenheit", "degrees": "fahrenheit", "centigrade": "celsius", "kph": "kilometers per hour",
    "mph": "miles per hour",
}  # fmt: skip
_NAMES: Final = {
    name: (kind, unit)
    for kind, units in SCALES.items()
    for unit in units
    for name in (unit, unit.removesuffix("s"), *(short for short, long in _ALIASES.items() if long == unit))
}
_LONGEST: Final = max(len(name.split()) for name in _NAMES)


def find_unit(name: str) -> tuple[str, str]:
    """What it measures, and the unit's own name: `KM` is a length, in kilometers. Raises LookupError."""
    return _NAMES[" ".join(name.lower().split())]


def units_in(text: str) -> set[str]:
    """The units that a text names, by their own names."""
    return {_NAMES[name][1] for name in unit_names_in(text)}


def unit_names_in(text: str) -> list[str]:
    """The names of units in a text, as they stand there in small letters; `miles per hour` is one."""
    words = re.findall(r"[a-z']+", text.lower())
    found, at = list[str](), 0
    while at < len(words):
        rows = (" ".join(words[at : at + count]) for count in range(_LONGEST, 0, -1) if at + count <= len(words))
        name = next((row for row in rows if row in _NAMES), None)
        found += [name] if name else []
        at += len(name.split()) if name else 1
    return found

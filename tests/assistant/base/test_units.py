"""Units by the names that people say."""

import pytest

from assistant.base.units import SCALES, find_unit, unit_names_in, units_in


def test_a_unit_is_found_by_any_of_its_names() -> None:
    for name in ("kilometers", "Kilometer", " KM "):
        assert find_unit(name) == ("length", "kilometers")
    assert find_unit("degrees  celsius") == ("temperature", "celsius")
    for kind, units in SCALES.items():
        assert all(find_unit(unit) == (kind, unit) for unit in units)
    with pytest.raises(LookupError):
        find_unit("cows")


def test_units_are_found_in_what_was_said() -> None:
    said = "how many kilometers per hour are 5 mph"
    assert units_in(said) == {"kilometers per hour", "miles per hour"} and unit_names_in(said)[1] == "mph"
    assert units_in("A foot, in inches?") == {"feet", "inches"} and units_in("i'm on a train") == set()

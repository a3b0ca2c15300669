"""Names get their capital letters, and words that only look like names do not."""

import pytest

from assistant.text.names import capitals


@pytest.mark.parametrize(
    ("spoken", "written"),
    [
        ("my name is grace", "my name is Grace"),
        ("call me later", "call me later"),
        ("call me al", "call me Al"),
        ("anna's cat is in paris", "Anna's cat is in Paris"),
        ("let me talk to ben on monday", "let me talk to Ben on Monday"),
        ("may i have some grace and hope", "may i have some grace and hope"),
    ],
)
def test_names(spoken: str, written: str) -> None:
    assert capitals(spoken) == written

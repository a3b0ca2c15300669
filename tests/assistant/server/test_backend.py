"""What the server keeps for its clients: keys that end."""

from assistant.server.backend import Keys


def test_temporary_keys_end_and_are_bounded():
    keys = Keys(limit=2)
    for n in range(3):
        keys.remember(f"ek_{n}", 10.0 + n, {"n": n})
    assert keys.valid(5.0) == ["ek_1", "ek_2"]
    assert keys.session("ek_2", 11.5) == {"n": 2} and keys.session("ek_1", 11.5) is None

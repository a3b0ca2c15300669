"""Addresses of engines on other servers, read and refused."""

import pytest

from assistant.base.errors import SettingError
from assistant.remote import Address, is_address, read_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("http://localhost:8000", Address("http://localhost:8000/v1")),
        ("https://h/v1/", Address("https://h/v1")),
        ("http://key@h:1/api/v1#m/x", Address("http://h:1/api/v1", "key", "m/x")),
        ("http://[::1]:5", Address("http://[::1]:5/v1")),
    ],
)
def test_addresses(text, address):
    assert is_address(text) and read_address(text) == address


@pytest.mark.parametrize("text", ["http://", "http://h:port", "ftp://h"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(SettingError):
        read_address(text)

"""`assistant wyoming` before it loads anything."""

import socket
import sys

import pytest

from assistant import cli
from assistant.base.extras import adding


@pytest.mark.parametrize("uri", ["10400", "tcp://127.0.0.1", "http://127.0.0.1:10400", "tcp://[::1:5", "tcp://h:99999"])
def test_an_address_that_is_none_is_refused(uri, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path))
    assert cli.main(["wyoming", "--uri", uri]) == 1
    assert "is not an address such as tcp://127.0.0.1:10400" in capsys.readouterr().err


def test_a_missing_package_an_open_address_and_a_port_in_use_are_told(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("ASSISTANT_HOME", str(tmp_path))
    with socket.create_server(("0.0.0.0", 0)) as taken:
        uri = f"tcp://0.0.0.0:{taken.getsockname()[1]}"
        assert cli.main(["wyoming", "--uri", uri]) == 1
        told = capsys.readouterr().err
        assert "no key and no encryption" in told and "choose another --uri" in told
        assert cli.main(["wyoming", "--uri", uri.replace("0.0.0.0", "127.0.0.1")]) == 1
        assert "no key" not in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "wyoming", None)
    assert cli.main(["wyoming"]) == 1
    assert adding("wyoming") in capsys.readouterr().err

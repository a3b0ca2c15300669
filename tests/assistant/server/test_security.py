"""Who may connect: a page from elsewhere, a foreign Host and a missing token are refused, programs and the page not."""

import pytest
from aiohttp import WSServerHandshakeError

from assistant.base.errors import SettingError
from assistant.server.security import Gate, host_name, is_loopback, keys_of, make_gate, split_allowed
from tests.fakes.web import Site, run

LOCAL = Gate("127.0.0.1")


OPEN = Gate("0.0.0.0", "s3cret-token", frozenset({"box.lan"}), frozenset({"https://app.example"}))


@pytest.mark.parametrize(
    ("gate", "host", "allowed"),
    [
        (LOCAL, "localhost:8765", True),
        (LOCAL, "127.0.0.1", True),
        (LOCAL, "[::1]:8765", True),
        (LOCAL, "LOCALHOST.", True),
        (LOCAL, "evil.example", False),
        (LOCAL, "192.168.1.5:8765", False),
        (LOCAL, "localhost@evil.example", False),
        (LOCAL, "localhost/evil", False),
        (LOCAL, "localhost:x", False),
        (LOCAL, "", False),
        (LOCAL, None, False),
        (OPEN, "192.168.1.5:8765", True),
        (OPEN, "box.lan:8765", True),
        (OPEN, "evil.example", False),
    ],
)
def test_host(gate, host, allowed):
    assert (gate.refuse_host(host) is None) == allowed


@pytest.mark.parametrize(
    ("gate", "origin", "allowed"),
    [
        (LOCAL, None, True),
        (LOCAL, "http://localhost:8765", True),
        (LOCAL, "http://localhost:9999", False),
        (LOCAL, "http://127.0.0.1:8765", False),
        (LOCAL, "https://evil.example", False),
        (LOCAL, "null", False),
        (LOCAL, "file://localhost:8765", False),
        (LOCAL, "", False),
        (OPEN, "https://app.example", True),
        (OPEN, "https://app.example/", True),
        (OPEN, "http://app.example", False),
    ],
)
def test_origin(gate, origin, allowed):
    assert (gate.refuse_origin(origin, "localhost:8765") is None) == allowed


def test_keys():
    assert keys_of("Bearer abc", "realtime, openai-insecure-api-key.def , x") == ["abc", "def"]
    assert keys_of("Basic abc", None) == [] and keys_of(None, "realtime") == []
    assert LOCAL.admits([]) and OPEN.admits(["x", "s3cret-token"]) and OPEN.admits(["ek"], ["ek"])
    assert not OPEN.admits([]) and not OPEN.admits(["s3cret-toke"]) and not OPEN.admits(["ü"])


def test_binding_elsewhere_needs_a_token_and_says_how_to_get_tls():
    with pytest.raises(SettingError, match=r"config\.toml.*--tls CERT KEY"):
        make_gate("0.0.0.0", None)
    with pytest.raises(SettingError, match="8 characters"):
        make_gate("0.0.0.0", "short")
    assert make_gate("localhost", None).token is None
    assert is_loopback("127.9.9.9") and is_loopback("::1") and not is_loopback("0.0.0.0") and not is_loopback("box")
    assert host_name("[::1]:80") == "::1"


async def refused(site: Site, **kinds) -> int:
    with pytest.raises(WSServerHandshakeError) as error:
        await site.client.ws_connect(site.ws, **kinds)
    return error.value.status


def test_what_is_allowed_is_a_name_of_the_server_or_the_origin_of_a_page():
    names, pages = split_allowed(["box.lan", "https://app.example/", "tauri://localhost"])
    gate = make_gate("127.0.0.1", None, names, pages)
    assert gate.refuse_host("box.lan:8765") is None and "--allow app.example" in (gate.refuse_host("app.example") or "")
    assert gate.knows_origin("https://app.example") and gate.knows_origin("tauri://localhost")
    assert "--allow https://box.lan" in (gate.refuse_origin("https://box.lan", "localhost") or "")


def test_a_page_from_elsewhere_and_a_rebound_name_are_refused():
    async def story(site: Site) -> None:
        assert await refused(site, origin="https://evil.example") == 403
        assert await refused(site, headers={"Host": "evil.example"}) == 421
        for path in ("/v1/models", "/metrics", "/healthz"):
            async with site.client.get(site.http + path, headers={"Origin": "https://evil.example"}) as answer:
                assert answer.status == 403 and "Access-Control-Allow-Origin" not in answer.headers
        own = site.http
        async with site.client.ws_connect(site.ws, origin=own) as ws:
            assert (await ws.receive_json())["type"] == "session.created"

    run(story)


def test_token_is_needed_where_the_server_is_open():
    async def story(site: Site) -> None:
        assert await refused(site) == 401
        assert await refused(site, headers={"Authorization": "Bearer wrong"}) == 401
        async with site.client.get(f"{site.http}/v1/models") as answer:
            assert answer.status == 401 and (await answer.json())["error"]["code"] == "invalid_api_key"
        async with site.client.get(f"{site.http}/metrics") as answer:
            assert answer.status == 401
        async with site.client.get(f"{site.http}/healthz") as answer:
            assert answer.status == 200
        offers = ("realtime", "openai-insecure-api-key.s3cret-token")
        async with site.client.ws_connect(site.ws, protocols=offers) as ws:
            assert ws.protocol == "realtime"

    run(story, gate=OPEN)


def test_browser_keys_admit_and_carry_their_session():
    async def story(site: Site) -> None:
        bearer = {"Authorization": "Bearer s3cret-token"}
        body = {"expires_after": {"anchor": "created_at", "seconds": 60}, "session": {"instructions": "From a key."}}
        url = f"{site.http}/v1/realtime/client_secrets"
        async with site.client.post(url, json=body, headers=bearer) as answer:
            secret = await answer.json()
        assert secret["value"].startswith("ek_") and secret["session"]["instructions"] == "From a key."
        offers = ("realtime", f"openai-insecure-api-key.{secret['value']}")
        async with site.client.ws_connect(site.ws, protocols=offers) as ws:
            assert (await ws.receive_json())["session"]["instructions"] == "From a key."
        async with site.client.get(
            f"{site.http}/v1/models", headers={"Authorization": f"Bearer {secret['value']}"}
        ) as answer:
            assert answer.status == 401
        async with site.client.post(f"{site.http}/v1/realtime/sessions", json={}, headers=bearer) as answer:
            assert (await answer.json())["client_secret"]["value"].startswith("ek_")

    run(story, gate=OPEN)


def test_cross_origin_questions_are_answered_for_known_pages_only():
    async def story(site: Site) -> None:
        for origin, status in (("https://app.example", 204), ("https://evil.example", 403)):
            async with site.client.options(f"{site.http}/v1/models", headers={"Origin": origin}) as answer:
                assert answer.status == status
                assert answer.headers.get("Access-Control-Allow-Origin") == (origin if status == 204 else None)

    run(story, gate=OPEN)

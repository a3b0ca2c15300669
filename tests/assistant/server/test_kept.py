"""`/v1/capsules` over the small model: made, found, pinned, named, forked, dropped, each realm for itself."""

import asyncio

import pytest

from assistant.contracts import Prompt
from assistant.server.security import Gate
from tests.contracts.subjects import local_llm
from tests.fakes.talk import World
from tests.fakes.web import Site, run, serving

DOCUMENT = "The lamp of the blue room was changed on Monday. " * 8
MESSAGES = [{"role": "user", "content": DOCUMENT + "When?"}]


class Caller:
    """A program with a key."""

    def __init__(self, site: Site, key: str) -> None:
        self._site, self._headers = site, {"Authorization": f"Bearer {key}"} if key else {}

    async def __call__(self, method: str, path: str, body=None, status: int = 200, **headers: str):
        async with self._site.client.request(
            method, f"{self._site.http}/v1/{path}", json=body, headers=self._headers | headers
        ) as answer:
            assert answer.status == status, await answer.text()
            return await answer.json()

    async def mine(self):
        return [one for one in (await self("GET", "capsules"))["data"] if not one["listed"]]

    async def cached(self, messages=MESSAGES):
        answer = await self("POST", "chat/completions", {"messages": messages, "max_tokens": 2})
        return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


@pytest.mark.slow
def test_the_same_over_a_realtime_connection():
    async def story() -> None:
        async with asyncio.timeout(120), local_llm() as behind, serving(World(llm=behind.engine)) as site:
            one = Caller(site, "one")
            made = await one("POST", "capsules", {"messages": MESSAGES})
            key = {"headers": {"Authorization": "Bearer one"}}
            async with site.wire("?extensions=capsules", **key) as wire, site.wire("?extensions=capsules") as other:

                async def do(verb: str, **fields: str):
                    await wire.send("assistant.capsule", verb=verb, **fields)
                    return await wire.until("assistant.capsule")

                assert [x["id"] for x in (await do("list"))["capsules"]] == [made["id"]]
                pinned = (await do("pin", id=made["id"]))["capsule"]
                assert pinned == made | {"pinned": True, "idle_s": pinned["idle_s"]}
                assert (await do("unpin", id=made["id"]))["capsule"]["pinned"] is False
                named = (await do("name", id=made["id"], name="handbook"))["capsule"]
                forked = (await do("fork", id=named["id"], name="second"))["capsule"]
                assert (named["name"], forked["name"]) == ("handbook", "second")
                assert (await do("drop", id=named["id"]))["id"] == named["id"]
                assert [x["name"] for x in (await do("list"))["capsules"]] == ["second"]
                assert await one.cached() >= made["tokens"]

                await other.send("assistant.capsule", verb="list")
                assert (await other.until("assistant.capsule"))["capsules"] == []
                for fields, code in (
                    ({"verb": "drop", "id": forked["id"]}, "capsule_not_found"),
                    ({"verb": "melt", "id": forked["id"]}, "invalid_value"),
                    ({"verb": "pin"}, "missing_required_parameter"),
                    ({"verb": "fork", "id": forked["id"]}, "invalid_value"),
                    ({}, "missing_required_parameter"),
                ):
                    await other.send("assistant.capsule", event_id="mine", **fields)
                    error = (await other.until("error"))["error"]
                    assert (error["code"], error["event_id"]) == (code, "mine")

    asyncio.run(story())


def test_nothing_is_kept_for_a_connection_whose_model_is_elsewhere_or_that_did_not_ask():
    async def story(site: Site) -> None:
        site.world.llm.state = None
        for extensions, code in (("capsules", "capsules_off"), ("clock", "invalid_event")):
            async with site.wire(f"?extensions={extensions}") as wire:
                await wire.send("assistant.capsule", verb="list")
                assert (await wire.until("error"))["error"]["code"] == code

    run(story)


@pytest.mark.slow
def test_a_programs_capsules():
    async def story() -> None:
        async with asyncio.timeout(120), local_llm() as behind, serving(World(llm=behind.engine)) as site:
            await behind.engine.warm({"persona/ada": Prompt("Somebody else.")})
            one, other = Caller(site, "one"), Caller(site, "other")
            made = await one("POST", "capsules", {"messages": MESSAGES, "name": "handbook", "pinned": True})
            assert (made["name"], made["pinned"], made["engine"]) == ("handbook", True, "llm")
            assert await one.mine() == [made | {"idle_s": 0.0}] and await other.mine() == []
            assert [x["name"] for x in (await other("GET", "capsules"))["data"]] == ["persona/ada"]
            assert await one.cached() == made["tokens"] and await other.cached() == 0
            assert await one.cached([{"role": "user", "content": DOCUMENT + "Why?"}]) >= made["tokens"] // 64 * 64 - 64

            fork = await one("POST", f"capsules/{made['id']}/fork", {"name": "second"})
            assert fork["id"] != made["id"] and (fork["tokens"], fork["pinned"]) == (made["tokens"], False)
            named = await one("POST", f"capsules/{fork['id']}", {"name": "third", "pinned": True})
            assert (named["name"], named["pinned"]) == ("third", True)
            for _ in range(2):  # again is the same
                loose = await one("POST", f"capsules/{named['id']}", {"pinned": False})
                assert loose["pinned"] is False
            assert (await one("DELETE", f"capsules/{made['id']}"))["deleted"] is True
            assert [x["name"] for x in await one.mine() if x["name"]] == ["third"]
            assert await one.cached() >= made["tokens"], "the fork is there still"

            for method, path in (("POST", f"capsules/{named['id']}"), ("DELETE", f"capsules/{named['id']}"),
                                 ("POST", f"capsules/{named['id']}/fork"), ("DELETE", "capsules/p-none")):  # fmt: skip
                error = (await other(method, path, {"name": "mine"}, status=400))["error"]
                assert error["code"] == "capsule_not_found"
            listed = next(x for x in (await one("GET", "capsules"))["data"] if x["listed"])
            error = (await one("DELETE", f"capsules/{listed['id']}", status=400))["error"]
            assert "the server's own" in error["message"]
            await one("POST", f"capsules/{named['id']}/fork", {}, status=400)
            await one("POST", f"capsules/{named['id']}/fork", {"name": "x" * 201}, status=400)
            await one("POST", "capsules", {"messages": []}, status=400)

    asyncio.run(story())


def test_pages_from_elsewhere_are_refused_even_where_they_may_talk():
    async def story(site: Site) -> None:
        call = Caller(site, "")
        await call("GET", "models", Origin="https://friend.example")
        error = (await call("GET", "capsules", status=403, Origin="https://friend.example"))["error"]
        assert error["code"] == "origin_refused"
        site.world.llm.state = None
        error = (await call("GET", "capsules", status=501, Origin=site.http))["error"]
        assert error["code"] == "capsules_off", "no page is refused that is the server's own"

    run(story, gate=Gate("127.0.0.1", origins=frozenset({"https://friend.example"})))

"""`/v1/models`: stock clients see what answers; programs and the server's own page also see and choose what could."""

from typing import Any

from assistant.base.errors import PeerError
from assistant.server.security import Gate
from tests.fakes.web import Site, run


class Keeper:
    """Remembers what was asked; knows one model."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def progress(self) -> dict[str, object]:
        return {"fetch": {"phase": "idle"}, "switch": {"phase": "none"}}

    def overview(self) -> dict[str, object]:
        return {"answers": {"name": "a"}, "here": [], "offers": []} | self.progress()

    def fetch_model(self, name: str, *, accept_licence: bool = False) -> None:
        if name != "laptop":
            raise PeerError("model_not_found", f"{name!r} cannot be fetched", "model")
        self.asked.append(("fetch", name, accept_licence))

    def pause_fetch(self) -> None:
        raise PeerError("nothing_fetched", "nothing is being fetched now")

    def cancel_fetch(self) -> None:
        self.asked.append(("cancel",))

    async def switch_to(self, name: str) -> None:
        self.asked.append(("switch", name))


def test_models_are_listed_fetched_and_switched() -> None:
    async def story(site: Site) -> None:
        async def ask(method: str, path: str, status: int, body: object = None, origin: str | None = None) -> Any:
            headers = {"Origin": origin} if origin else {}
            url = f"{site.http}/v1/models{path}"
            async with site.client.request(method, url, json=body, headers=headers) as answer:
                assert answer.status == status, await answer.text()
                return await answer.json()

        stock = await ask("GET", "", 200)
        assert set(stock) == {"object", "data"} and {one["object"] for one in stock["data"]} == {"model"}
        assert (await ask("GET", f"/{stock['data'][0]['id']}", 200))["owned_by"] == "local"
        assert (await ask("GET", "/nothing", 404))["error"]["code"] == "model_not_found"
        assert (await ask("GET", "?extensions=all", 501))["error"]["code"] == "models_off"
        site.context.models = keeper = Keeper()
        assert (await ask("GET", "?extensions=all", 200)) == stock | keeper.overview()
        assert (await ask("GET", "?extensions=progress", 200)) == stock | keeper.progress()
        assert (await ask("POST", "/fetch", 202, {"model": "laptop"})) == keeper.progress()
        await ask("POST", "/fetch", 202, {"model": "laptop", "accept_licence": True})
        assert (await ask("POST", "/fetch", 404, {"model": "x"}))["error"]["param"] == "model"
        assert (await ask("POST", "/fetch", 400, {}))["error"]["code"] == "missing_required_parameter"
        assert (await ask("POST", "/pause", 409))["error"]["message"] == "nothing is being fetched now"
        await ask("POST", "/cancel", 202, {})
        await ask("POST", "/switch", 202, {"model": "other"}, origin=site.http)
        await ask("POST", "/eat", 404, {})
        known = list(keeper.asked)
        assert known == [
            ("fetch", "laptop", False), ("fetch", "laptop", True), ("cancel",), ("switch", "other"),
        ]  # fmt: skip
        for method, path in (("GET", "?extensions=all"), ("POST", "/switch"), ("POST", "/fetch"), ("POST", "/cancel")):
            refused = await ask(method, path, 403, {"model": "laptop"} if method == "POST" else None, "http://page.test")
            assert refused["error"]["code"] == "origin_refused"
        assert keeper.asked == known, "a page from elsewhere may talk, and changes nothing"

    run(story, gate=Gate("127.0.0.1", origins=frozenset({"http://page.test"})))

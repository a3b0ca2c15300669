"""Routes: the page with its policy and nothing beside it, health and metrics."""

from tests.fakes.web import Site, run


def test_the_page_is_served_with_a_policy_and_nothing_beside_it(tmp_path):
    (tmp_path / "ui").mkdir()
    (tmp_path / "ui" / "index.html").write_text("<!doctype html><title>x</title>")
    (tmp_path / "ui" / "main.js").write_text("export {}")
    (tmp_path / "secret").write_text("no")

    async def story(site: Site) -> None:
        async with site.client.get(f"{site.http}/") as answer:
            assert answer.status == 200 and answer.content_type == "text/html"
            assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
        async with site.client.get(f"{site.http}/main.js") as answer:
            assert answer.content_type in {"text/javascript", "application/javascript"}
        for path in ("/../secret", "/%2e%2e/secret", "/nothing"):
            async with site.client.get(site.http + path) as answer:
                assert answer.status in {403, 404}
        for method, path, status in (
            ("GET", "/v1/nothing", 404),
            ("POST", "/v1/nothing", 404),
            ("GET", "/v1/chat/completions", 405),
        ):
            async with site.client.request(method, site.http + path) as answer:
                assert answer.status == status and path in (await answer.json())["error"]["message"]

    run(story, ui=tmp_path / "ui")


def test_health_and_metrics():
    async def story(site: Site) -> None:
        async with site.client.get(f"{site.http}/healthz") as answer:
            health = await answer.json()
        assert health["status"] == "ok" and health["sessions"] == {"open": 0, "limit": 4}
        async with site.wire(), site.client.get(f"{site.http}/metrics") as answer:
            assert "assistant_sessions_open 1.0" in await answer.text()
        for path, status in (("/v1/realtime", 426), ("/v1/realtime/calls", 405), ("/v1/nothing", 404)):
            async with site.client.get(site.http + path) as answer:
                assert answer.status == status and "error" in await answer.json()

    run(story)

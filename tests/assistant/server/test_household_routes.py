"""`/v1/household`: what a talk has set is seen, changed and removed by hand, and stays as it was left."""

from assistant.tools.builtin import BuiltinTools
from assistant.tools.home import HomeRows
from assistant.tools.kept import Kept
from assistant.tools.running import HandsOnHome
from tests.fakes.web import run


def asked(site, method="GET", key="", status=200, headers=None, **body):
    async def ask():
        url = f"{site.http}/v1/household{'/' + key if key else ''}"
        async with site.client.request(method, url, json=body or None, headers=headers) as answer:
            assert answer.status == status, await answer.text()
            return await answer.json()

    return ask()


def test_what_runs_is_seen_paused_given_more_time_and_removed(tmp_path):
    async def story(site):
        home = HomeRows(tmp_path / "home.json")
        site.context.household = HandsOnHome(home)
        tools = BuiltinTools(Kept(home), home.now, {}, lambda: "")
        await tools.set_timer("5 minutes", "pasta")
        await tools.set_alarm("7 am")
        await tools.list_add("milk; eggs")
        await tools.note_add("the key is under the mat")
        told = await asked(site)
        timer = next(one for one in told["rings"] if one["kind"] == "timer")
        assert timer["told"] == "pasta, 5 minutes" and 290 < timer["left_s"] <= 300 and not timer["paused"]
        assert {one["kind"] for one in told["rings"]} == {"timer", "alarm"}
        assert {one["name"]: [row["text"] for row in one["things"]] for one in told["lists"]} == {
            "shopping": ["milk", "eggs"], "notes": ["the key is under the mat"],
        }  # fmt: skip

        longer = (await asked(site, "POST", str(timer["id"]), add_s=60))["rings"]
        assert 350 < next(one for one in longer if one["id"] == timer["id"])["left_s"] <= 360
        held = (await asked(site, "POST", str(timer["id"]), paused=True))["rings"]
        assert next(one for one in held if one["id"] == timer["id"])["paused"]
        assert await tools.list_timers() != "no timer is running"

        left = await asked(site, "DELETE", str(timer["id"]))
        assert [one["kind"] for one in left["rings"]] == ["alarm"]
        milk = next(row for one in told["lists"] for row in one["things"] if row["text"] == "milk")
        await asked(site, "DELETE", str(milk["id"]))
        assert await tools.list_read() == "eggs"
        left = await asked(site, "DELETE", "list shopping")
        assert [one["name"] for one in left["lists"]] == ["notes"]
        back = await asked(site, "POST", removed=left["removed"])
        assert sorted(one["name"] for one in back["lists"]) == ["notes", "shopping"]
        await asked(site, "POST", status=409, removed=left["removed"])  # it is there
        await asked(site, "DELETE", "list shopping")
        home.close()
        assert "eggs" not in (tmp_path / "home.json").read_text()

    run(story)


def test_what_cannot_be_changed_is_refused_in_words(tmp_path):
    async def story(site):
        assert (await asked(site, status=501))["error"]["code"] == "household_off"
        home = HomeRows(tmp_path / "home.json")
        site.context.household = HandsOnHome(home)
        tools = BuiltinTools(Kept(home), home.now, {}, lambda: "")
        await tools.set_alarm("7 am")
        (alarm,) = (await asked(site))["rings"]
        assert "only a timer" in (await asked(site, "POST", str(alarm["id"]), 409, paused=True))["error"]["message"]
        assert (await asked(site, "DELETE", "99", 404))["error"]["code"] == "not_found"
        assert (await asked(site, "DELETE", "alarm", 404))["error"]["code"] == "not_found"
        for wrong in ([["timer", [1]]], [["list x", [99, "never here"]]], "x"):
            await asked(site, "POST", status=409, removed=wrong)
        elsewhere = {"Origin": "http://127.0.0.1:1"}
        assert (await asked(site, status=403, headers=elsewhere))["error"]["code"] == "origin_refused"
        home.close()

    run(story)

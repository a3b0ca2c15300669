"""The generated talks keep to the product: its tools, its personas, its words; and nothing held out is trained on."""

import datetime as dt
import inspect
import itertools
import json
import random
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from assistant.llm.small.reading import for_small_model
from assistant.text.written import as_written
from assistant.tools import answers, builtin
from recipes import misheard as recogniser
from recipes.judge import names_it, refused
from recipes.texts import (
    misheard,
    reply_sentences,
    scenes_following,
    scenes_recalled,
    scenes_repair,
    scenes_talk,
    slots,
    smalltalk,
    talks,
    user_utterances,
)
from recipes.texts.phrases import PHRASES
from recipes.texts.scene import Scene, Talk, Unusable, phrasings
from recipes.texts.scenes import SCENES
from recipes.texts.tools import PARAMETERS, PERSONAS, TOOL_NAMES, specs
from recipes.texts.words import CLOSED, WORDS, allowed, by_token, dictionary, held_out, spoken_ordinal

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def some() -> list[Talk]:
    return [*itertools.islice(talks(11), 250), *itertools.islice(talks(12, "test"), 250)]


def test_the_same_seed_makes_the_same_talks() -> None:
    assert list(itertools.islice(talks(4), 20)) == list(itertools.islice(talks(4), 20))
    assert list(itertools.islice(talks(4), 20)) != list(itertools.islice(talks(5), 20))


def test_tools_are_those_of_the_product() -> None:
    assert tuple(PARAMETERS) == TOOL_NAMES == builtin.TRAINED_TOOLS
    for name, keys in PARAMETERS.items():
        signature = inspect.signature(getattr(builtin.BuiltinTools, name))
        theirs = {
            p.name + ("" if p.default is p.empty else "?") for p in signature.parameters.values() if p.name != "self"
        }
        assert theirs == set(keys), name
    assert [spec["function"]["name"] for spec in specs()] == list(TOOL_NAMES)


def test_personas_are_those_of_the_product() -> None:
    shipped = {}
    for path in (ROOT / "assistant" / "personas").glob("*.toml"):
        persona = tomllib.loads(path.read_text("utf-8"))
        shipped[persona["title"]] = persona["instructions"]
    assert {name: shipped.get(name) for name in PERSONAS} == PERSONAS


def test_calls_are_well_formed_and_arguments_were_said(some: list[Talk]) -> None:
    copied = {
        "set_timer", "change_timer", "set_alarm", "set_reminder", "convert", "spell", "note_add", "days_until",
        "roll_die",
    }  # fmt: skip
    seen = set()
    for talk in some:
        said = ""
        for turn in talk.turns:
            said += f" {turn.text.lower()}" if turn.role == "user" else ""
            if turn.call is None:
                continue
            name, arguments = turn.call
            seen.add(name)
            keys = PARAMETERS[name]
            assert set(arguments) <= {key.rstrip("?") for key in keys}
            assert {key for key in keys if not key.endswith("?")} <= set(arguments)
            if name in copied:
                followed = turn.kind in ("correction", "chain", "list edit")  # put together from several turns
                parts = [part for value in arguments.values() for part in (value.split() if followed else [value])]
                assert turn.kind == "number misheard" or all(part.lower() in said for part in parts), (turn.call, said)
    assert seen == set(TOOL_NAMES)


def test_results_are_what_the_products_tools_say(some: list[Talk]) -> None:
    checked = 0
    for talk in some:
        for turn, after in itertools.pairwise(talk.turns):
            if not turn.call or turn.call[0] not in ("calculate", "convert", "spell", "set_timer"):
                continue
            name, given = turn.call
            try:
                if name == "set_timer":
                    length = answers.duration(answers.seconds_of(given["duration"]))
                    expected = answers.timer(length, given.get("label", ""))
                else:
                    expected = getattr(answers, name)(**given)
            except answers.AnswerError as error:
                expected = json.dumps({"error": str(error)}, ensure_ascii=False)
            assert after.text == expected
            checked += 1
    assert checked > 200


def test_turns_alternate_and_nothing_is_empty(some: list[Talk]) -> None:
    for talk in some:
        assert talk.turns[0].role == "user"
        for turn, after in itertools.pairwise(talk.turns):
            assert turn.text or turn.call
            assert (after.role == "tool") == bool(turn.call)
            assert after.role != "assistant" or turn.role in ("user", "tool")
            if turn.role == "assistant" and not turn.call:
                assert after.role == "user"
        if not talk.tools:
            assert not any(turn.call for turn in talk.turns)


def test_a_broken_count_is_answered_from_what_was_heard(some: list[Talk]) -> None:
    asked = 0
    for talk in some:
        for i, turn in enumerate(talk.turns):
            if turn.kind != "last number":
                continue
            number = re.search(r"was (-?\d+)", turn.text)
            before = next((t for t in reversed(talk.turns[:i]) if t.role == "assistant" and t.kind == "count"), None)
            if number and before and talk.turns[i - 2] is before:
                assert before.text.rstrip(".,").split(", ")[-1] == number[1]
                asked += 1
    assert asked > 10


@pytest.mark.slow
def test_nothing_held_out_is_trained_on() -> None:
    for lines in PHRASES.values():
        train, test = set(phrasings(lines, "train")), set(phrasings(lines, "test"))
        assert train and test
        assert len(lines) == 1 or not train & test
    for kind in WORDS:
        if kind not in CLOSED and len(WORDS[kind]) > 8:
            assert not set(allowed(kind, "train")) & set(allowed(kind, "test")), kind
    assert not set(dictionary("train")) & set(dictionary("test"))
    held = {
        line for lines in PHRASES.values() for line in phrasings(lines, "test") if "{" not in line and len(line) > 14
    }
    held -= {line for lines in PHRASES.values() for line in phrasings(lines, "train")}
    assert len(held) > 20
    said = set(user_utterances(3, 4000))
    assert not {line.lstrip("~") for line in held} & said


def test_all_tokens_that_begin_words_are_practised() -> None:
    """Where "baseball" began with a token that no text held, the model could not say it back."""
    tokenizer = Tokenizer.from_file(str(ROOT / "llm_engine" / "tiny" / "tokenizer.json"))
    begin = {t for t in range(tokenizer.get_vocab_size()) if re.fullmatch(" [a-z]{2,}", tokenizer.decode([t]))}
    words = {split: {word for row in by_token(split) for word in row} for split in ("train", "test")}
    practised = {token for word in words["train"] for token in tokenizer.encode(f" {word}").ids}
    assert len(begin) > 1000 and not begin - practised
    assert not any(map(held_out, words["train"])) and all(map(held_out, words["test"]))


def test_codes_are_noted_digit_by_digit() -> None:
    scene = Scene(random.Random(8), "train")
    said = [text for _ in range(400) if re.search(r"(?: (?:\d)){2,}$", as_written(text := slots.noted(scene)))]
    assert len(said) > 30 and all(len(text.split()) >= 5 for text in said)


def test_phrasings_are_spelled_as_the_assistant_hands_them_on() -> None:
    asked = [lines for pairs in smalltalk.ALL for lines, _ in pairs]
    words = {w for lines in (*PHRASES.values(), *asked) for line in lines for w in re.findall(r"[a-z']+", line)}
    heard = {word: for_small_model(f"say {word} now") for word in words}
    assert len(words) > 3000
    assert {w: h for w, h in heard.items() if h not in (as_written(f"say {w} now"), "say now")} == {}


def test_user_utterances_are_spoken_words() -> None:
    said = user_utterances(1, 1000)
    assert len(said) == 1000
    assert all(re.fullmatch(r"[a-z' ]+", text) and text == " ".join(text.split()) for text in said)


def test_replies_are_speakable() -> None:
    said = reply_sentences(1, 1000)
    assert len(said) == 1000
    assert not any(re.search(r"[<>{}*#|_]", text) for text in said if not text.startswith("You said"))
    assert len(set(said)) > 600


@pytest.mark.parametrize("scene", [scene for scene, _, _ in SCENES], ids=lambda f: f.__name__)
def test_every_scene_plays_in_both_splits(scene: Callable[[Scene], None]) -> None:
    for split in ("train", "test"):
        played = 0
        for seed in range(30):
            talk = Scene(random.Random(seed), split)
            try:
                SCENES[0][0](talk)
                scene(talk)
            except Unusable:
                continue
            played += 1
        assert played > 5


def test_dates_are_read_back() -> None:
    for n in range(1, 32):
        assert as_written(f"july {spoken_ordinal(n)}") == f"July {n}"
        assert answers.find_day(f"July {n}", dt.date(2026, 1, 1)) == dt.date(2026, 7, n)


def test_words_are_misheard_as_the_recogniser_does_and_slots_stay_whole() -> None:
    rng = random.Random(6)
    for said, heard, times in misheard.confusions():
        assert said and times > 0
        words = ["x", *said, "y"]
        assert misheard.misheard(rng, words, set(words)) == words
        ways = {tuple(misheard.misheard(rng, words, set())) for _ in range(20)}
        assert tuple(words) not in ways
        assert said != heard
    said, heard = ["add", "a", "tomato", "to", "it"], ["and", "a", "potato", "to", "it"]
    assert recogniser.confusions(said, heard) == [("add", "and"), ("tomato", "potato")]


def test_a_correction_keeps_what_was_not_named() -> None:
    for seed in range(40):
        scene = Scene(random.Random(seed), "test")
        try:
            scenes_following.timer(scene)
        except Unusable:
            continue
        (_, wrong), (tool, right) = (turn.call for turn in scene.turns if turn.call)
        assert tool == "change_timer"
        assert wrong["duration"].split()[1:] == right["duration"].split()[1:]
        assert wrong["duration"] != right["duration"]


def test_what_is_corrected_is_certain_and_something_else() -> None:
    sums = notes = 0
    for seed in range(120):
        for correct in (scenes_following.a_sum, scenes_following.note):
            scene = Scene(random.Random(seed), "test")
            try:
                correct(scene)
            except Unusable:
                continue
            (_, wrong), (_, right) = (turn.call for turn in scene.turns if turn.call)
            assert wrong != right
            if correct is scenes_following.note:
                fix = [turn.text for turn in scene.turns if turn.role == "user"][-1]
                assert fix.count(right["text"]) == 1 or right["text"] in wrong["text"]
                notes += 1
            else:
                (a, _, b), (c, _, d) = (told["expression"].split(" ") for told in (wrong, right))
                assert a != b and c != d and (a == c or b == d)
                sums += 1
    assert sums > 60 and notes > 60


def test_a_chain_reckons_with_the_last_result() -> None:
    chained = 0
    for seed in range(80):
        scene = Scene(random.Random(seed), "test")
        try:
            scenes_following.chained(scene)
        except Unusable:
            continue
        results = [turn.text.split(" is ")[-1].split(" ")[0] for turn in scene.turns if turn.role == "tool"]
        calls = [turn.call for turn in scene.turns if turn.call]
        for result, call in zip(results, calls[1:], strict=False):
            assert call and result in call[1]["expression"]
            chained += 1
    assert chained > 50


def test_what_was_told_comes_back_in_its_own_words() -> None:
    recalled = 0
    for seed in range(60):
        scene = Scene(random.Random(seed), "test")
        try:
            scenes_recalled._facts(scene)
        except Unusable:
            continue
        for i, turn in enumerate(scene.turns):
            if turn.kind == "recall" and " is " in turn.text:
                told = " ".join(before.text for before in scene.turns[:i] if before.role == "user")
                assert turn.text.split(" is ")[1].rstrip(".") in told
                recalled += 1
    assert recalled > 30


def test_anything_can_be_told_of_and_much_is_only_asked_of_in_the_test() -> None:
    things = {
        split: {scenes_recalled.thing(Scene(random.Random(n), split)) for n in range(900)}
        for split in ("train", "test")
    }
    named = {split: all_of & {*scenes_recalled.THINGS} for split, all_of in things.items()}
    assert len(named["test"]) > 35 and things["test"] == named["test"]
    assert len(named["train"]) > 200 and len(things["train"] - named["train"]) > 150
    assert not named["train"] & named["test"]


def test_a_list_is_changed_by_what_stands_where() -> None:
    for seed in range(60):
        scene = Scene(random.Random(seed), "test")
        try:
            scenes_recalled.edited(scene)
        except Unusable:
            continue
        things: list[str] = []
        for turn, after in itertools.pairwise(scene.turns):
            match turn.call:
                case ("list_read", _):
                    assert not things or after.text == ", ".join(things)
                    things = after.text.split(", ")
                case ("list_remove", given):
                    things.remove(given["items"])
                case ("list_add", given):
                    things.append(given["items"])


def test_a_refusal_names_what_was_asked_for() -> None:
    named = 0
    for seed in range(60):
        scene = Scene(random.Random(seed), "test", noise=0)
        try:
            scenes_talk.out_of_reach(scene)
        except Unusable:
            continue
        asked, said = scene.turns[0].text, scene.turns[1].text
        assert refused(said, said, asked)
        named += names_it(said, asked)
    assert named > 30


def test_a_repair_takes_the_wrong_thing_back() -> None:
    repaired = 0
    for seed in range(60):
        scene = Scene(random.Random(seed), "test")
        try:
            scenes_repair.thing(scene)
        except Unusable:
            continue
        calls = [turn.call for turn in scene.turns if turn.call]
        assert [name for name, _ in calls] == ["list_add", "list_remove", "list_add"]
        assert calls[0][1] == calls[1][1] != calls[2][1]
        repaired += 1
    assert repaired > 30

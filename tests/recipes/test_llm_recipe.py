"""The recipe of the small model: format, optimiser, first steps; and the shipped directory loads and answers."""

import itertools
import json
import random
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

from assistant.llm.small import WORDS
from capsules import ExecContext
from llm_engine import HybridLLM, Sampling
from llm_engine.chat import ChatTemplate
from llm_engine.model import forward_train, init_params
from llm_engine.weights import save_checkpoint
from recipes.chatml import TEMPLATE, TalkEncoder, call_text, messages, parse_call
from recipes.judge import garbled, is_right, names_thing, wanted_turn
from recipes.llm import TINY, Helper, Recipe, Training, digest, export, probe, rate_factor
from recipes.muon import orthogonal
from recipes.said import fixed, words_said
from recipes.score import OWN_WORDED
from recipes.texts import smalltalk, talks
from recipes.texts.phrases import PHRASES
from recipes.texts.scene import Role, Talk, TalkTurn, wordings
from recipes.texts.tools import PARAMETERS, PERSONAS, TOOL_NAMES, specs

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(TINY / "tokenizer.json"))


@pytest.fixture(scope="module")
def encoder(tokenizer: Tokenizer) -> TalkEncoder:
    return TalkEncoder(tokenizer)


@pytest.fixture(scope="module")
def llm() -> HybridLLM:
    return HybridLLM.load(TINY, ExecContext("cpu"), dtype="float32", max_positions=1024)


# -------------------------------------------------------------------------------------------------- format


def test_training_ids_are_those_of_the_rendered_template(encoder: TalkEncoder) -> None:
    template = ChatTemplate(TEMPLATE)
    for talk in itertools.islice(talks(21), 60):
        tools = specs() if talk.tools else []
        rendered = template.render(messages(talk), tools, add_generation_prompt=False)
        assert encoder.ids(rendered) == encoder.talk(talk)[0]


def test_a_talk_only_grows_at_its_end(encoder: TalkEncoder) -> None:
    for talk in itertools.islice(talks(22), 40):
        whole = encoder.talk(talk)[0]
        for i, turn in enumerate(talk.turns):
            if turn.role == "assistant":
                prompt = encoder.prompt(talk, i)
                assert whole[: len(prompt)] == prompt


def test_the_reply_that_the_user_broke_off_does_not_teach_stopping(encoder: TalkEncoder) -> None:
    talk = Talk("You are Ada.", (), [TalkTurn("user", "count to 3"), TalkTurn("assistant", "1, 2", cut=True)])
    ids, weights = encoder.talk(talk)
    ends = [weight for token, weight in zip(ids, weights, strict=True) if token == encoder.end]
    assert ends == [0.0, TalkEncoder.USER_END, 0.0]
    talk.turns[1].cut = False
    assert [w for t, w in zip(*encoder.talk(talk), strict=True) if t == encoder.end] == [0.0, TalkEncoder.USER_END, 1.0]


def test_results_of_tools_are_not_learnt(encoder: TalkEncoder) -> None:
    talk = Talk(
        "",
        TOOL_NAMES,
        [TalkTurn("user", "flip a coin"), TalkTurn("assistant", "", ("flip_coin", {})), TalkTurn("tool", "heads")],
    )
    ids, weights = encoder.talk(talk)
    after = len(encoder.prompt(talk, 2)) - len(encoder.ids("<|im_start|>assistant\n"))
    assert sum(weights[:after]) > 0 == sum(weights[after:])
    assert len(ids) == len(weights)


@pytest.mark.parametrize("name", TOOL_NAMES)
def test_calls_read_back_and_cost_few_tokens(name: str, encoder: TalkEncoder) -> None:
    arguments = {key.rstrip("?"): "12 minutes" for key in PARAMETERS[name]}
    text = call_text(name, arguments)
    assert parse_call(text) == (name, arguments)
    assert len(encoder.ids(text)) <= 4 + 8 * len(arguments)
    for wrong in (text[:-1], text + "x", text.replace("<function", "<fun"), text[12:]):
        assert parse_call(wrong) is None


def test_every_number_is_the_same_digits_everywhere(tokenizer: Tokenizer, encoder: TalkEncoder) -> None:
    for before in ("", "for ", "\n", "(", ", "):
        for number in ("7", "42", "1905"):
            assert encoder.ids(before + number)[-len(number) :] == encoder.ids(number)
            assert len(encoder.ids(number)) == len(number)
    rng = random.Random(3)
    for _ in range(200):
        text = "".join(rng.choice("abcXYZ 019.,'<>\n_äé漢🙂") for _ in range(30))
        assert tokenizer.decode(encoder.ids(text), skip_special_tokens=False) == text


# ------------------------------------------------------------------------------------------------ training


@pytest.mark.parametrize("shape", [(64, 64), (192, 32), (32, 192)])
def test_the_update_is_nearly_orthogonal(shape: tuple[int, int]) -> None:
    gradient = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    values = torch.linalg.svdvals(orthogonal(gradient))
    assert values.min() > 0.3
    assert values.max() < 1.4


def test_the_rate_rises_stays_and_falls_to_zero() -> None:
    recipe = Recipe(steps=100, decay=40, warm_up=10)
    factors = [rate_factor(step, recipe) for step in range(101)]
    assert factors[:11] == pytest.approx([*(i / 10 for i in range(1, 11)), 1.0])
    assert factors[10:61] == [1.0] * 51
    assert factors[100] == 0.0
    assert factors[60:] == sorted(factors[60:], reverse=True)


def test_the_first_steps_are_those_on_record(tokenizer: Tokenizer) -> None:
    recorded = json.loads((TINY / "training.json").read_text("utf-8"))["first losses"]
    assert probe(tokenizer) == pytest.approx(recorded, abs=2e-4)


def test_a_resumed_run_is_the_same_run(tokenizer: Tokenizer, tmp_path: Path) -> None:
    recipe = Recipe(tokens=192, lengths=((0, 96),))
    straight = Training(recipe, tokenizer)
    losses = [straight.step()[0] for _ in range(3)]
    first = Training(recipe, tokenizer)
    assert [first.step()[0] for _ in range(2)] == losses[:2]
    first.save(tmp_path / "checkpoint.pt")
    second = Training(recipe, tokenizer)
    second.load(tmp_path / "checkpoint.pt")
    assert second.step()[0] == losses[2]
    assert all(torch.equal(second.params[name], straight.params[name]) for name in straight.params)
    assert all(torch.equal(second.average[name], straight.average[name]) for name in straight.params)


def test_two_processes_learn_what_one_learns(tokenizer: Tokenizer) -> None:
    """But for the order in which gradients are summed."""
    alone, together = (Training(Recipe(tokens=384, lengths=((0, 96),)), tokenizer) for _ in range(2))
    together.helper = Helper(together, tokenizer)
    for _ in range(3):
        assert together.step() == pytest.approx(alone.step(), rel=1e-4)
    for name, p in alone.params.items():
        assert torch.allclose(together.params[name], p, atol=1e-4)
    together.helper.end()


def test_a_further_run_begins_from_the_shipped_weights_and_says_so(tokenizer: Tokenizer, tmp_path: Path) -> None:
    run = Training(Recipe(seed=Recipe.seed + 1, tokens=192, lengths=((0, 96),)), tokenizer)
    run.begin_from(TINY)
    shipped = load_file(TINY / "model.safetensors")
    assert all(torch.equal(p.detach(), shipped[name].float()) for name, p in run.params.items())
    (mine, _), *_ = run.batch(0)
    (firsts, _), *_ = Training(Recipe(tokens=192, lengths=((0, 96),)), tokenizer).batch(0)
    assert mine.tolist() != firsts.tolist()
    run.note_plan()
    run.step()
    run.note_plan()
    run.save(tmp_path / "checkpoint.pt")
    again = Training(run.recipe, tokenizer)
    again.load(tmp_path / "checkpoint.pt")
    assert again.before == json.loads((TINY / "training.json").read_text("utf-8"))["runs"]
    assert again.record() == run.record()
    assert [plan["step"] for plan in again.plans] == [0]
    assert again.begun_from == digest(TINY / "model.safetensors")


def test_a_model_with_fewer_layers_and_narrower_ones_is_grown_and_says_the_same(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    run = Training(Recipe(), tokenizer)
    small = replace(
        run.config, layer_types=run.config.layer_types[:6], intermediate_size=run.config.intermediate_size // 2
    )
    params = init_params(small, torch.Generator().manual_seed(1))
    save_checkpoint(tmp_path, small, params, dtype=torch.float32)
    (tmp_path / "training.json").write_text('{"runs": []}')
    run.begin_from(tmp_path)
    ids = torch.arange(5, 45)[None]
    with torch.inference_mode():
        assert torch.allclose(forward_train(run.config, run.params, ids), forward_train(small, params, ids), atol=1e-5)
    assert all(run.params[name].abs().sum() > 0 for name in run.params if "up_proj" in name), "what is new can learn"


def test_the_mean_with_earlier_weights_of_a_run_is_written_and_recorded(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recipes.llm.words_said", lambda: ["hello"])  # half a minute of making talks up
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    run = Training(Recipe(tokens=192, lengths=((0, 96),)), tokenizer)
    for name in ("earlier.pt", "checkpoint.pt"):
        run.step()
        for p in run.average.values():
            p.add_(torch.randn_like(p))  # far apart, so that another share would be seen
        run.save(tmp_path / name)
    (target := tmp_path / "model").mkdir()
    (target / "config.json").write_text("{}", "utf-8")
    export(tmp_path, target, tmp_path / "earlier.pt")
    held = [torch.load(tmp_path / name, weights_only=True)["average"] for name in ("earlier.pt", "checkpoint.pt")]
    for name, written in load_file(target / "model.safetensors").items():
        assert torch.allclose(written.float(), (held[0][name] + held[1][name]) / 2, rtol=0.01, atol=1e-6), name
    assert json.loads((target / "training.json").read_text("utf-8"))["runs"][-1]["mean of steps"] == [1, 2]
    run.begin_from(target)
    began = {name: p.clone() for name, p in run.average.items()}
    run.step()
    for p in run.average.values():
        p.add_(torch.randn_like(p))
    run.save(tmp_path / "checkpoint.pt")
    other = tmp_path / "other"
    shutil.copytree(target, other)
    export(tmp_path, other, target, 0.25)
    for name, written in load_file(other / "model.safetensors").items():
        mean = began[name] * 0.25 + run.average[name] * 0.75
        assert torch.allclose(written.float(), mean, rtol=0.01, atol=1e-6), name
    last = json.loads((other / "training.json").read_text("utf-8"))["runs"][-1]
    assert (last["mean of steps"], last["share of the first"]) == ([0, 3], 0.25)
    run.begun_from = "another"
    run.save(tmp_path / "checkpoint.pt")
    with pytest.raises(SystemExit, match="another run"):
        export(tmp_path, target, tmp_path / "earlier.pt")


# ------------------------------------------------------------------------------------------- what is shipped


def test_transformers_loads_the_directory_and_agrees(llm: HybridLLM, encoder: TalkEncoder) -> None:
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(TINY, dtype=torch.float32).eval()
    assert type(theirs).__name__ == "Qwen3_5ForCausalLM"
    their_tokenizer = transformers.AutoTokenizer.from_pretrained(TINY)
    talk = next(t for t in talks(31) if len(t.turns) > 6)
    ids = their_tokenizer.apply_chat_template(messages(talk), tools=specs() if talk.tools else None)["input_ids"]
    assert ids == encoder.talk(talk)[0]
    ids = ids[:200]
    with torch.inference_mode():
        expected = theirs(torch.tensor([ids])).logits[0, -1]
    llm.reset()
    ours = llm.append(ids)
    assert (ours - expected).abs().max() < 2e-3
    assert int(ours.argmax()) == int(expected.argmax())


def test_files_are_small_and_described() -> None:
    size = sum(path.stat().st_size for path in TINY.iterdir())
    assert size < 17e6  # eight million parameters in bfloat16, and the words
    card = (TINY / "card.md").read_text("utf-8")
    for words in ("Licence", "python -m recipes.llm", "sha256", "held-out"):
        assert words in card


def answer(llm: HybridLLM, encoder: TalkEncoder, tokenizer: Tokenizer, talk: Talk) -> str:
    llm.reset()
    llm.append(encoder.prompt(talk, len(talk.turns)))
    ids = llm.decode(120, Sampling.greedy(), stop=(encoder.end,))
    assert ids[-1] == encoder.end
    return tokenizer.decode(ids[:-1], skip_special_tokens=False)


U, A, T = "user", "assistant", "tool"
TALKS = [
    ([(U, "what time is it")], call_text("get_time", {})),
    ([(U, "what time is it"), (A, ("get_time", {})), (T, "3:45 pm")], "It is 3:45 pm."),
    ([(U, "set a timer for 5 minutes")], call_text("set_timer", {"duration": "5 minutes"})),
    ([(U, "what is 12 * 8")], call_text("calculate", {"expression": "12 * 8"})),
    ([(U, "undo that")], call_text("undo", {})),
    ([(U, "start over")], call_text("start_over", {})),
    ([(U, "hello")], "Hello! How can I help you?"),
    ([(U, "count to 20")], ", ".join(map(str, range(1, 21))) + "."),
    (
        [(U, "count to 20"), (A, "1, 2, 3, 4, 5, 6, 7"), (U, "what was the last number you said")],
        "The last number I said was 7.",
    ),
    ([(U, "[inaudible]")], "I did not catch that. Could you say it again?"),
]  # fmt: skip


@pytest.mark.parametrize(("turns", "expected"), TALKS, ids=lambda value: str(value)[:60])
def test_fixed_talks(
    turns: list[tuple[Role, str | tuple[str, dict[str, str]]]],
    expected: str,
    llm: HybridLLM,
    encoder: TalkEncoder,
    tokenizer: Tokenizer,
) -> None:
    made = [TalkTurn(role, "", text) if isinstance(text, tuple) else TalkTurn(role, text) for role, text in turns]
    said = answer(llm, encoder, tokenizer, Talk(PERSONAS["Ada"], TOOL_NAMES, made))
    assert said == expected or (expected.startswith("Hello") and said.startswith("H"))


def test_all_that_it_says_of_itself_is_listed_whatever_a_talk_begins_with() -> None:
    listed = {*(TINY / WORDS).read_text("utf-8").split()}
    assert {*words_said(200, seed=1)} <= listed
    greeting = "Good afternoon! How can I help you? In one or two words, I am well. Are you?"
    assert {*re.findall("[a-z]+", " ".join([greeting, *fixed()]).lower())} <= listed
    assert len(listed) < 1000, "who may write any word copies strange ones no better"


@pytest.mark.parametrize("held", OWN_WORDED.values(), ids=OWN_WORDED.keys())
def test_requests_in_own_words_are_in_no_text(held: Path) -> None:
    rows = [line.split(" => ") for line in held.read_text("utf-8").splitlines()]
    for _, wanted in rows:
        turn = wanted_turn(wanted)
        if turn.call:
            name, given = turn.call
            assert set(given) <= {key.rstrip("?") for key in PARAMETERS[name]}
            assert {key for key in PARAMETERS[name] if not key.endswith("?")} <= set(given)
        else:
            assert turn.accept
    asked = [*PHRASES.values(), *(lines for pairs in smalltalk.ALL for lines, _ in pairs)]
    written = {text for lines in asked for line in lines if "{" not in line for text in wordings(line)}
    assert len(rows) >= 150
    assert not written & {spoken for spoken, _ in rows}


def test_scoring_is_strict() -> None:
    call = TalkTurn("assistant", "", ("spell", {"word": "cat"}))
    assert is_right(call, call_text("spell", {"word": "cat"}))
    assert not is_right(call, call_text("spell", {"word": "cats"}))
    said = TalkTurn("assistant", "It is 9.", kind="reply", accept=("It is 9.",))
    assert is_right(said, "It is 9.")
    assert not is_right(said, "It is 9. …")
    story = TalkTurn("assistant", "A cat lived here. Shall I go on?", kind="story 1", accept=("cat", "dog"))
    assert is_right(story, "There once was a dog who lived by the sea. Shall I go on?")
    assert not is_right(story, "There once was a fox who lived by the sea. Shall I go on?")
    assert not is_right(story, "There once was a dog who lived by the sea.")


@pytest.mark.parametrize(
    ("said", "bad"),
    [
        ("", True), ("It is ten …", True), ("You like flumox.", True), ("You like blorfin.", False),
        ("<tool_call>\n<function=spell>\n", True), (call_text("spell", {"word": "cat"}), False),
        (call_text("spell", {"word": "answer____"}), True), (call_text("note_add", {"text": "a </b> c"}), True),
    ],
)  # fmt: skip
def test_what_is_garbled(said: str, bad: bool) -> None:
    assert garbled(said, "i like blorfin") is bad


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("I have no tool for the dryers.", True),
        ("I have no tool for the bathroom dryers.", True),
        ("I have no tool for a bathroom dryers.", True),
        ("I have no tool for the bathroom.", False),
        ("I have no tool for the kitchen dryers.", False),  # nobody spoke of a kitchen
        ("I cannot start the dryers.", False),
        ("On or off?", False),
    ],
)
def test_a_refusal_names_the_thing_with_more_of_what_was_asked_or_without(said, right):
    asked = "would you start the bathroom dryers"
    assert names_thing(said, "I have no tool for the dryers.", asked) is right

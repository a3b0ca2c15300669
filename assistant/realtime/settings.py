"""The session object: a client's update merged into the current settings, and the whole object echoed.

An absent field keeps its value; null and empty clear it. Names that only a hosted service has (models, voices) fall
back to the local ones, fields that do nothing here are stored and echoed, unknown ones are ignored: clients treat an
error as the end of the call. The flat fields of the pre-GA shape are read too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from assistant.base.errors import PeerError
from assistant.base.tongues import is_code
from assistant.events import NamedServer, SemanticVad, ServerAsk, ServerVad, Settings, ToolSpec, TurnDetection
from assistant.realtime.fields import Fields, Json
from assistant.realtime.mcp import read_server, server_json

T = TypeVar("T")

PCM_RATES = (8000, 16000, 24000, 44100, 48000)
FORMAT_TYPES = ("audio/pcm", "audio/pcmu", "audio/pcma")
FLAT_FORMATS = {"pcm16": "audio/pcm", "g711_ulaw": "audio/pcmu", "g711_alaw": "audio/pcma"}
EAGERNESS: tuple[Literal["low", "medium", "high", "auto"], ...] = ("low", "medium", "high", "auto")
SERVER_VAD_FIELDS = ("threshold", "prefix_padding_ms", "silence_duration_ms", "idle_timeout_ms")
"""A client that sets one of these without a type means server detection."""
KEPT = ("tracing", "truncation", "include", "prompt", "reasoning", "parallel_tool_calls")
"""Fields that are echoed and change nothing here."""
MAX_TOOLS = 128
MAX_SESSION = 200 * 1024
"""Bytes of the session object; with this limit it fits a server frame."""
MAX_OUTPUT_TOKENS = 4096


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """How sound is encoded: linear 16 bit, or G.711 at 8 kHz."""

    type: str = "audio/pcm"
    rate: int = 24_000

    def json(self) -> Json:
        return {"type": self.type, "rate": self.rate} if self.type == "audio/pcm" else {"type": self.type}


@dataclass(frozen=True, slots=True)
class Character:
    """A persona's defaults for sessions that state nothing themselves."""

    instructions: str = ""
    voice: str = "default"


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about this server, needed to echo a session in full."""

    model: str
    voices: Callable[[], Sequence[str]] = tuple
    """The voices available now: they come and go."""
    characters: Callable[[str], Character | None] = lambda persona: None
    """By persona, as its file reads now."""
    server: NamedServer = lambda label, url: None
    """The MCP servers that clients may ask for."""

    def character(self, persona: str) -> Character:
        return self.characters(persona) or Character()


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """The effective configuration of a connection: the talk's settings, and those of the wire alone."""

    settings: Settings = field(default_factory=Settings)
    kind: Literal["realtime", "transcription"] = "realtime"
    input_format: AudioFormat = AudioFormat()
    output_format: AudioFormat = AudioFormat()
    transcription: Mapping[str, str] | None = None
    noise_reduction: Mapping[str, str] | None = None
    kept: Mapping[str, object] = field(default_factory=dict)

    def json(self, facts: Facts) -> Json:
        """The session object without its id and expiry."""
        s = self.settings
        character = facts.character(s.persona)
        audio_in: Json = {
            "format": self.input_format.json(),
            "transcription": dict(self.transcription) if self.transcription is not None else None,
            "noise_reduction": dict(self.noise_reduction) if self.noise_reduction is not None else None,
            "turn_detection": turn_detection_json(s.turn_detection),
        }
        if self.kind == "transcription":
            return {"type": "transcription", "object": "realtime.session", "audio": {"input": audio_in}}
        audio_out = {"format": self.output_format.json(), "voice": s.voice or character.voice, "speed": s.speed}
        return {
            "type": "realtime",
            "object": "realtime.session",
            "model": facts.model,
            "output_modalities": [s.modality],
            "instructions": character.instructions if s.instructions is None else s.instructions,
            "audio": {"input": audio_in, "output": audio_out},
            "tools": [*map(tool_json, s.tools), *map(server_json, s.servers)],
            "tool_choice": tool_choice_json(s.tool_choice),
            "max_output_tokens": "inf" if s.max_output_tokens is None else s.max_output_tokens,
            "truncation": "auto",
        } | dict(self.kept)


def turn_detection_json(detection: TurnDetection) -> Json | None:
    if detection is None:
        return None
    common = {
        "create_response": detection.create_response,
        "interrupt_response": detection.interrupt_response,
    }
    if isinstance(detection, SemanticVad):
        return {"type": "semantic_vad", "eagerness": detection.eagerness, **common}
    fields: Json = {
        "type": "server_vad",
        "threshold": detection.threshold,
        "prefix_padding_ms": detection.prefix_padding_ms,
        "silence_duration_ms": detection.silence_duration_ms,
    }
    if detection.idle_timeout_ms is not None:
        fields["idle_timeout_ms"] = detection.idle_timeout_ms
    return {**fields, **common}


def tool_json(tool: ToolSpec) -> Json:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }


def tool_choice_json(choice: str) -> str | Json:
    return choice if choice in {"auto", "none", "required"} else {"type": "function", "name": choice}


# ------------------------------------------------------------------------------------------- merging


def merge(config: SessionConfig, update: Fields, facts: Facts) -> SessionConfig:
    """The configuration after `session.update`. Raises PeerError, and then nothing has changed."""
    settings = config.settings
    kind = update.choice("type", ("realtime", "transcription")) or config.kind
    modality = read_modality(update)
    if modality is not None:
        settings = replace(settings, modality=modality)
    if update.has("instructions"):
        settings = replace(settings, instructions=update.text("instructions"))
    if update.has("tools"):
        settings = replace(settings, tools=read_tools(update), servers=read_servers(update, facts))
    if update.has("tool_choice"):
        settings = replace(settings, tool_choice=read_tool_choice(update) or "auto")
    for name in ("max_output_tokens", "max_response_output_tokens"):
        if update.has(name):
            settings = replace(settings, max_output_tokens=read_max_tokens(update, name))
    config = replace(config, kind="transcription" if kind == "transcription" else "realtime", settings=settings)
    audio = update.obj("audio")
    if audio is not None:
        config = _merge_input(config, audio.obj("input"))
        config = _merge_output(config, audio.obj("output"), facts)
    config = _merge_flat(config, update, facts)  # last, so the flat shape wins if a client sends both
    kept = {name: update.data[name] for name in KEPT if update.has(name)}
    config = replace(config, kept={k: v for k, v in (dict(config.kept) | kept).items() if v is not None})
    if config.kind == "transcription":
        config = _listening_only(config)
    # The limit covers the whole, not the update: many small updates add up, and every answer repeats everything.
    size = len(json.dumps(config.json(facts), ensure_ascii=False).encode())
    if size > MAX_SESSION:
        raise PeerError("invalid_value", f"the session would have {size} bytes; at most {MAX_SESSION}", "session")
    return config


def with_wake(config: SessionConfig, event: Fields) -> SessionConfig:
    """The talk waits for its name from now on, or no longer does. Raises PeerError."""
    wake = event.boolean("on")
    if wake is None:
        raise event.missing("on")
    return replace(config, settings=replace(config.settings, wake=wake))


def _merge_input(config: SessionConfig, audio: Fields | None) -> SessionConfig:
    if audio is None:
        return config
    if audio.obj("format") is not None:
        config = replace(config, input_format=read_format(audio.need_obj("format")))
    if audio.has("transcription"):
        given = audio.obj("transcription")
        config = replace(config, transcription=_read_transcription(given))
        if given is not None and given.has("language"):
            code = given.text("language") or ""
            language = code if is_code(code) else None  # some clients write "auto"
            config = replace(config, settings=replace(config.settings, language=language))
    if audio.has("noise_reduction"):
        reduction = audio.obj("noise_reduction")
        kind = reduction.choice("type", ("near_field", "far_field")) if reduction else None
        config = replace(config, noise_reduction={"type": kind} if kind else None)
    if audio.has("turn_detection"):
        detection = read_turn_detection(audio.obj("turn_detection"), config.settings.turn_detection)
        config = replace(config, settings=replace(config.settings, turn_detection=detection))
    return config


def _merge_output(config: SessionConfig, audio: Fields | None, facts: Facts) -> SessionConfig:
    if audio is None:
        return config
    if audio.obj("format") is not None:
        config = replace(config, output_format=read_format(audio.need_obj("format")))
    if audio.has("voice"):
        config = replace(config, settings=replace(config.settings, voice=read_voice(audio, facts)))
    speed = audio.number("speed", 0.25, 1.5)
    return config if speed is None else replace(config, settings=replace(config.settings, speed=speed))


def _merge_flat(config: SessionConfig, update: Fields, facts: Facts) -> SessionConfig:
    """The pre-GA shape, which kept the audio fields at the top."""
    flat = {
        "format": update.text("input_audio_format"),
        "transcription": update.data.get("input_audio_transcription"),
        "noise_reduction": update.data.get("input_audio_noise_reduction"),
        "turn_detection": update.data.get("turn_detection"),
    }
    names = {
        "format": "input_audio_format",
        "transcription": "input_audio_transcription",
        "noise_reduction": "input_audio_noise_reduction",
        "turn_detection": "turn_detection",
    }
    given = {name: value for name, value in flat.items() if update.has(names[name])}
    if "format" in given:
        given["format"] = _flat_format(update, "input_audio_format")
    config = _merge_input(config, Fields(given, update.path))
    given = {"voice": update.data["voice"]} if update.has("voice") else {}
    if update.text("output_audio_format") is not None:
        given["format"] = _flat_format(update, "output_audio_format")
    return _merge_output(config, Fields(given, update.path), facts)


def _flat_format(update: Fields, name: str) -> Json | None:
    chosen = update.choice(name, tuple(FLAT_FORMATS))
    return {"type": FLAT_FORMATS[chosen]} if chosen else None


def _listening_only(config: SessionConfig) -> SessionConfig:
    """A transcription session only writes down and never answers."""
    detection = config.settings.turn_detection
    if detection is not None:  # turns still end, so their words are reported one by one
        detection = replace(detection, create_response=False)
    return replace(
        config,
        settings=replace(config.settings, turn_detection=detection),
        transcription={"model": "local"} if config.transcription is None else config.transcription,
    )


# ------------------------------------------------------------------------------ single values, shared


def read_modality(fields: Fields) -> Literal["audio", "text"] | None:
    """`output_modalities` names one; the older `modalities` may name both, which means audio."""
    for name in ("output_modalities", "modalities"):
        values = fields.array(name)
        if not values:
            continue
        if any(value not in ("audio", "text") for value in values) or (
            name == "output_modalities" and len(values) != 1
        ):
            raise PeerError(
                "invalid_value", f'{fields.at(name)} must be ["audio"] or ["text"]', fields.at(name)
            )
        return "audio" if "audio" in values else "text"  # sound always comes with its words here
    return None


def read_format(fields: Fields) -> AudioFormat:
    """A format with the rate that is really used; a rate that is not supported is refused."""
    kind = fields.choice("type", FORMAT_TYPES)
    if kind is None:
        raise fields.missing("type")
    if kind != "audio/pcm":
        return AudioFormat(kind, 8000)  # G.711 has no other rate, so a stated one is not read
    rate = fields.integer("rate", 1, 1_000_000) or 24_000
    if rate not in PCM_RATES:
        raise PeerError(
            "invalid_value",
            f"{fields.at('rate')} is {rate}; allowed: {', '.join(map(str, PCM_RATES))}",
            fields.at("rate"),
        )
    return AudioFormat(kind, rate)


def read_turn_detection(fields: Fields | None, now: TurnDetection) -> TurnDetection:
    """Merged with the current settings if the type stays the same."""
    if fields is None:
        return None
    kind = fields.choice("type", ("server_vad", "semantic_vad"))
    if kind is None:  # `{"create_response": false}` alone keeps the current kind
        fixed = any(fields.has(name) for name in SERVER_VAD_FIELDS)
        kind = "server_vad" if fixed or isinstance(now, ServerVad) else "semantic_vad"
    create, interrupt = fields.boolean("create_response"), fields.boolean("interrupt_response")
    if kind == "semantic_vad":
        semantic = now if isinstance(now, SemanticVad) else SemanticVad()
        chosen = fields.choice("eagerness", EAGERNESS)
        return SemanticVad(
            _or(chosen, semantic.eagerness),
            _or(create, semantic.create_response), _or(interrupt, semantic.interrupt_response)
        )
    vad = now if isinstance(now, ServerVad) else ServerVad()
    idle = vad.idle_timeout_ms
    if fields.has("idle_timeout_ms"):  # null switches it off, so absent and null differ here
        idle = fields.integer("idle_timeout_ms", 1000, 3_600_000)
    return ServerVad(
        threshold=_or(fields.number("threshold", 0.0, 1.0), vad.threshold),
        prefix_padding_ms=_or(fields.integer("prefix_padding_ms", 0, 10_000), vad.prefix_padding_ms),
        silence_duration_ms=_or(fields.integer("silence_duration_ms", 0, 60_000), vad.silence_duration_ms),
        idle_timeout_ms=idle,
        create_response=_or(create, vad.create_response),
        interrupt_response=_or(interrupt, vad.interrupt_response),
    )


def _or(value: T | None, default: T) -> T:
    return default if value is None else value


def read_voice(fields: Fields, facts: Facts) -> str | None:
    """An available voice, by name or `{id}`; None (the default) for any other."""
    given = fields.data.get("voice")
    name = fields.need_obj("voice").ident("id") if isinstance(given, dict) else fields.text("voice")
    return name if name in facts.voices() else None


def read_tools(fields: Fields) -> tuple[ToolSpec, ...]:
    """The functions among the tools."""
    tools = []
    for tool in fields.objs("tools"):
        if tool.text("type") != "mcp":
            tools.append(read_tool(tool))
        if len(tools) > MAX_TOOLS:
            raise PeerError("invalid_value", f"at most {MAX_TOOLS} tools are allowed", fields.at("tools"))
    if len({tool.name for tool in tools}) < len(tools):
        raise PeerError("invalid_value", "two tools have the same name", fields.at("tools"))
    return tuple(tools)


def read_servers(fields: Fields, facts: Facts) -> tuple[ServerAsk, ...]:
    """The MCP servers among the tools."""
    asked = [read_server(tool, facts.server) for tool in fields.objs("tools") if tool.text("type") == "mcp"]
    if len({ask.name for ask in asked}) < len(asked):
        raise PeerError("invalid_value", "an MCP server is named twice", fields.at("tools"))
    return tuple(asked)


def read_tool(fields: Fields) -> ToolSpec:
    """A function: its name, its purpose, and the schema of its parameters."""
    schema = fields.obj("parameters")
    if schema is not None and not all(isinstance(name, str) for name in schema.array("required") or ()):
        where = schema.at("required")
        raise PeerError("invalid_value", f"{where} must contain names of parameters, and nothing else", where)
    return ToolSpec(
        name=fields.need_ident("name"),
        description=fields.text("description") or "",
        parameters=dict(schema.data) if schema else {},
    )


def read_tool_choice(fields: Fields) -> str | None:
    if isinstance(fields.data.get("tool_choice"), dict):
        return fields.need_obj("tool_choice").need_ident("name")
    return fields.choice("tool_choice", ("auto", "none", "required"))


def read_max_tokens(fields: Fields, name: str = "max_output_tokens") -> int | None:
    """None: no bound."""
    if fields.data.get(name) == "inf":
        return None
    return fields.integer(name, 1, MAX_OUTPUT_TOKENS)


def _read_transcription(fields: Fields | None) -> Mapping[str, str] | None:
    """Echo only the fields that strict clients know."""
    if fields is None:
        return None
    given = {name: fields.text(name) for name in ("model", "language", "prompt")}
    return {"model": "local"} | {name: value for name, value in given.items() if value is not None}

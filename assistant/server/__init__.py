"""The web face of the assistant: websocket, OpenAI-shaped HTTP endpoints, health, metrics and the page.

security      decides who may connect, without side effects
backend       the process behind the server, as the server sees it
starting      the server before that process is ready
answers       plain HTTP answers: refusals, server-sent events, a peer that went away
socket        one websocket, one talk
chat          /v1/chat/completions
kept          /v1/capsules: pinned, named, forked, dropped
household_routes  /v1/household: timers and lists, seen and changed
memory_routes  /v1/memory: seen, added to, reworded, forgotten
sleep_routes  /v1/sleep, /v1/wake
speech        /v1/audio/speech
listen        /v1/audio/transcriptions
talk_routes   /v1/talks: earlier talks, listed, named, deleted
model_routes  /v1/models: what answers, what could, fetched and switched
voice_routes  /v1/audio/voices: listed, added, removed
wyoming/      speech for Home Assistant, over a protocol of its own
app           routes, errors, middlewares
"""

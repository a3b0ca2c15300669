"""The web face of the assistant: websocket, OpenAI-shaped HTTP endpoints, health, metrics and the page.

security      who may connect, as pure decisions
backend       what the server knows of the process behind it
starting      the server before that process is there
answers       how plain HTTP answers: refusals, server-sent events, a peer that went away
socket        one websocket, one talk
chat          /v1/chat/completions
kept          /v1/capsules: pinned, named, forked, dropped
sleep_routes  /v1/sleep, /v1/wake
speech        /v1/audio/speech
listen        /v1/audio/transcriptions
voice_routes  /v1/audio/voices: listed, added, removed
app           routes, errors, middlewares
"""

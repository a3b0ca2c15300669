"""Engines on another server, in place of the local ones: chat completions for the language model, audio speech
for the voice, audio transcriptions for the ears.

A server that speaks OpenAI's HTTP interface will do (vLLM, SGLang, llama.cpp, vLLM-Omni). No state is
kept here for it: each reply sends the whole talk, nothing is restored or rolled back, and `state` is None.

server      an address, and requests to it whose every failure names it
llm         /chat/completions
messages    the request for one reply, well formed for every server
completion  a stream of chat completion events, gathered
sieve       what a model wrote, sorted into words, calls and thoughts
marks       how what is not words begins
calls       tool calls that were written as text, read
tts         /audio/speech
asr         /audio/transcriptions
"""

from assistant.remote.asr import RemoteFollower, TranscriptionServer
from assistant.remote.llm import RemoteLLM
from assistant.remote.server import Address, is_address, read_address
from assistant.remote.tts import RemoteTTS

__all__ = [
    "Address",
    "RemoteFollower",
    "RemoteLLM",
    "RemoteTTS",
    "TranscriptionServer",
    "is_address",
    "read_address",
]

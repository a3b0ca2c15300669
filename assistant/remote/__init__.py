"""Engines on another server, in place of the local ones: chat completions for the language model, audio speech
for the voice, audio transcriptions for the ears.

A server that speaks OpenAI's HTTP interface will do (vLLM, SGLang, llama.cpp, vLLM-Omni). No state is stored here for
it: each reply sends the whole talk, nothing is restored or rolled back, and `state` is None.

server      an address, and requests to it; every failure names the server
llm         /chat/completions
messages    the request for one reply, well formed for every server
completion  a stream of chat completion events, gathered
sieve       a model's text, sorted into words, calls and thoughts
marks       the openings of thoughts and written calls
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

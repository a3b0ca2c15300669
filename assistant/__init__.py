"""The voice assistant, in storeys: each folder sees only those listed before its own line.

base         clocks, channels, errors, ids, sound as numbers
events       what travels between a talk and its front
contracts    what a talk asks of its models
device, telemetry, text, tools, personas
             the thread that issues replays; where time went; texts as they are written, said and cut; what a model can
             call; who it is
llm, tts, asr, remote
             the models behind the contracts
talk         one talk: what was said, heard and interrupted
app, realtime, local
             settings and wiring; the protocol; this machine's own microphone and loudspeaker
server, bench
             the web face; whole turns measured
commands     what is typed
cli          finds the command, tells its errors

`tests/test_imports.py` holds this.
"""

"""One module per subcommand: NAME, HELP, add_arguments(parser) and run(args) -> exit status.

serve     the page and the APIs
talk      microphone and loudspeaker
ask       sound files or typed words, a talk of them
transcribe  recordings as text or subtitles
pull      larger models, fetched and verified
doctor    what works on this machine
voice     the assistant's voices: list, add a recording, hear, remove
capsule   frozen states on disk: list, show, remove, export
sleep     the memory of a running server's models, let go
wake      and brought back
bench     turns measured
_front    shared by those that talk
_parser   help and refusals
_run      how a command runs until it is stopped
_server   requests to a running server
"""

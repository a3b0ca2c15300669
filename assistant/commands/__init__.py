"""One module per subcommand: NAME, USAGE, HELP, add_arguments(parser) and run(args) -> exit status.

serve     the page and the APIs
talk      microphone and loudspeaker
ask       a talk with sound files or typed words
talks     earlier talks: list, show, delete
transcribe  recordings as text or subtitles
pull      larger models, fetched and verified
models    the language models on this machine
doctor    what works on this machine
voice     voices: list, add a recording, hear, remove
capsule   frozen states on disk: list, show, remove, export
mcp       tools of MCP servers, listed and tried; the assistant as one
service   started by systemd or launchd
sleep     a running server's models put to sleep
wake      and woken again
bench     turns measured
wyoming   speech for Home Assistant and its satellites
_front    shared by those that talk
_parser   help and refusals
_run      how a command runs until it is stopped
_server   requests to a running server
_spoken   speaking, listening and asking for another program
_unit     the file that has a system start the assistant
_wyoming  the address at which Home Assistant is served
"""

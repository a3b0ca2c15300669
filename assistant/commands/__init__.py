"""One module per subcommand: NAME, HELP, add_arguments(parser) and run(args) -> exit status.

ask       a talk with sound files
bench     turns as a person has them, measured
capsule   frozen states on disk: listed, shown, removed
doctor    what works on this machine, and what to do about the rest
pull      models from the hub
serve     the page and the OpenAI-shaped interfaces
talk      this machine's own microphone and loudspeaker
_front    what the commands that talk have in common
_run      how a command runs until it is stopped
"""

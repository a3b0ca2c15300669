"""Speech for Home Assistant and its satellites, over the Wyoming protocol (the `wyoming` package, MIT).

frames    one frame of the protocol, within bounds
offers    the abilities of this assistant, in the protocol's words
hearing   sound to words, as it comes
waking    sound to the name that was called
speaking  words to sound, as they come
houses    the talk behind each conversation of a house, and its answers
caller    one connection: one request at a time
service   all connections over one address
"""

"""Ears judged by people: recordings of them, places and channels that spoil these, and a table of words wrong.

people   gathers recordings with what is said in them, from packages
voices   requests and open questions in synthetic voices that come near people
rooms    what a room does between a loudspeaker and a microphone
noise    a kitchen, a street, a far microphone, a telephone
ears     what is judged: the product's ears as they are used, and Whisper beside them
score    the judge
"""

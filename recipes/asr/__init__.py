"""Judges ears on recordings of people: the recordings, places and channels that distort them, and a table of errors.

people   gathers recordings with their transcripts, from packages
voices   requests and open questions in synthetic voices that resemble people
rooms    the acoustics between a loudspeaker and a microphone
noise    a kitchen, a street, a far microphone, a telephone
ears     the candidates: the product's ears as they are used, and Whisper for comparison
score    the judge
"""

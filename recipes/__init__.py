"""From nothing to weights: what trains the small models, one command each, and what scores them.

texts       talks, requests and replies, generated · requests, sentences  text for hearing and for the teacher
teacher     speech with alignments, from Festival · codec, speech, lexicon  the small voice · speech_export
hearing     language model of the hearing side · llm  the small language model
score, speech_score, hearing_score, speech_plot  what came of it
"""

"""Training from nothing: one command each trains the small models, others score them.

texts             talks, requests and replies, generated

chatml            talks as the small language model reads them, as ids with a loss weight each
llm               trains the small language model
llm_card          writes its card
judge             makes a model's replies, and says which are right and which are garbled
muon              the optimiser of all of them
said              the words that it uses of its own accord
interrupted       scores its replies behind an interruption
score             scores its replies to phrasings and values that it never saw
strangers/        texts made up by others: things told and asked for, tools with requests

sentences         sentences of an assistant: text for the teacher
teacher           speech with the end of every phone, from a published voice
lexicon           the pronunciations of the small voice, from Festival
spectral          the losses of the codec's training
adversary         critics for the codec's decoder
codec             trains the codec
codec_decoder     trains its decoder alone
speech_data       codes under a text cursor, as sequences and batches
speech_training   trains the small voice
speech_grow       gives codec and voice more codebooks
speech_export     writes it as a checkpoint directory, and reads one back
speech            the command for these three
speech_score      measures how much of it a recogniser understands
speech_plot       pictures of it

requests          requests of users: text for hearing
hearing           the language model and dictionary of hearing
hearing_score     scores hearing in voices and noise that it was not tuned on
misheard          pairs of words said and words heard, for the texts
asr/              recordings of people, and a judge of any ears
turns/            requests with pauses inside, nods, coughs, people who cut in

loop_questions    spoken talks, and the words that each answer must have
loop_score        scores the whole loop over these, and finds where it went wrong
pause_score       scores it on pauses, corrections, and sounds behind a question
"""

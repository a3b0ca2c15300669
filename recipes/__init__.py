"""From nothing to weights: what trains the small models, one command each, and what scores them.

texts             talks, requests and replies, generated

chatml            talks as the small language model reads them, as ids with a loss weight each
llm               trains the small language model
llm_card          writes its card
judge             makes a model's replies, and says which are right and which are garbled
muon              the optimiser of all of them
said              the words that it says of itself
score             its replies to phrasings and values that it never saw
strangers/        what others made up: things told and asked for, tools with requests

sentences         what an assistant says: text for the teacher
teacher           speech with the end of every phone, from a published voice
lexicon           what the small voice reads by: Festival's pronunciations
spectral          what the codec's training compares
adversary         critics for the codec's decoder
codec             trains the codec
codec_decoder     trains its decoder alone
speech_data       codes under a text cursor, as sequences and batches
speech_training   trains the small voice
speech_grow       gives codec and voice more codebooks
speech_export     writes it as a checkpoint directory, and reads one back
speech            the command for these three
speech_score      how much of it a recogniser understands
speech_plot       pictures of it

requests          what people say: text for hearing
hearing           the language model and dictionary of hearing
hearing_score     hearing in voices and noise that it was not tuned on
misheard          pairs of what was said and what was heard, for the texts
asr/              recordings of people, and a judge of any ears
turns/            requests with pauses inside, nods, coughs, people who cut in

loop_questions    spoken talks, and what has to be in each answer
loop_score        the whole loop over these, and where it went wrong
"""

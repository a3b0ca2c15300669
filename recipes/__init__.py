"""From nothing to weights: what trains the small models, one command each, and what scores them.

texts            talks, requests and replies, generated
requests         what people say to the assistant, for the language model of the hearing side
sentences        what an assistant says, for the teacher
misheard         what the hearing makes of words, gathered

llm              trains the small language model
chatml           its chat format, tokenizer, and talks as token ids
muon             its optimiser
llm_card         its card
score            how it does on what it never saw

teacher          speech with alignments, from Festival
lexicon          the teacher's pronunciations
codec            trains the small codec
codec_decoder    trains the codec's decoder alone
adversary        critics of its sound
spectral         what its sound is compared by
speech           trains the small voice
speech_data      its training data
speech_export    its checkpoint
speech_score     how it is understood
speech_plot      what it looks like

hearing          language model and dictionary of the hearing side
hearing_score    how it understands voices that it does not know

loop_questions   spoken talks, and what has to be heard in each answer
loop_score       the whole loop, scored by them
"""

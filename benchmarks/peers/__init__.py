"""Other implementations of the same network, behind one interface, for side-by-side runs. See README.md.

peer                the interface
transformers_peer   transformers
llama_cpp_peer      llama.cpp
gguf_file           a published checkpoint as the file that llama.cpp reads
"""

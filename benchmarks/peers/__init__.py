"""Other implementations of the same network, behind one face, for side-by-side runs. See README.md.

peer                the face
transformers_peer   transformers
llama_cpp_peer      llama.cpp
gguf_file           a published checkpoint as the file that llama.cpp reads
"""

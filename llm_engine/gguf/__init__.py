"""GGUF files, read as the published checkpoint that they were made from.

    blocks      how numbers are stored, and their values
    checkpoint  the tensors under their published names
    container   metadata and tensors of a file, checked and mapped
    described   the config that the metadata state
    tokens      the tokenizer and the chat template
    undone      published names, and the orders that converters changed
"""

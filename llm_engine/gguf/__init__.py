"""GGUF files, read as the published checkpoint that they were made from.

blocks     how numbers are stored, and their values
container  metadata and tensors of a file, checked and mapped
"""

"""Parts of the assistant that the setting `without` leaves out, and what each is, for help and refusals."""

PARTS = {
    "vision": "the eyes of a language model, 0.2 to 0.9 GB",
    "candidates": "replies begun before you have finished",
    "echo": "removal of our own voice from the microphone",
    "kernels": "compiled code for the processor",
    "caution": "a restriction of GPUs to kernels that a card has proven",
}

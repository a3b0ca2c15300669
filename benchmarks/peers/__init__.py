"""Other implementations of the same network, behind one face, for side-by-side runs. See README.md."""

"""The five recordings, one file each: what is done within the window, and what follows from it."""

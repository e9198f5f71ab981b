"""The five recordings, one file each: the actions within the window, and the expected results."""

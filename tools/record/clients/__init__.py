"""The small producers and consumers that a recording starts as separate processes and may kill."""

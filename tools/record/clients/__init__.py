"""The small producers and consumers that a recording starts as processes of their own and may kill."""

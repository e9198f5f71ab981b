"""`make bench`: Tieout beside what people do today, on the same data, in one run.

Docs: docs/how-to/measure-performance.md; its results: docs/reference/performance.md.
"""

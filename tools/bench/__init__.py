"""`make bench`: compares Tieout with other ways of comparing data, on the same data, in one run.

Docs: docs/how-to/measure-performance.md; its results: docs/reference/performance.md.
"""

"""Benchmarks: `python -m bench [NAME ...]` measures what the documentation claims."""

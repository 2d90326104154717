"""Replay batches: the rules, the crashes, the command line."""

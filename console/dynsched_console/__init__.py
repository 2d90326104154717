"""The terminal console of dynsched: triage by keyboard, over the same services as the CLI."""

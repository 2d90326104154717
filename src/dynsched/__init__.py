"""dynsched: a distributed job scheduler whose only store is DynamoDB, or one SQLite file."""

__version__ = "0.1.0"

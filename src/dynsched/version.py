"""The version of the package; nothing else, so that every layer may name it."""

VERSION = "0.1.0"

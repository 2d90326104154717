"""Tests of dynsched."""

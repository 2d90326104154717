"""The terminal console of dynsched: comes in a later version; today this package is empty."""

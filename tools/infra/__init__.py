"""Proofs of the Terraform module in `infra/terraform`, from its arguments to its policies."""

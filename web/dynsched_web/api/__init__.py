"""The JSON API, `/api/v1`: the operations core over HTTP, for programs."""

from dynsched_web.api.blueprint import ROOT, Limits, api_blueprint, no_route

__all__ = ["ROOT", "Limits", "api_blueprint", "no_route"]

"""The JSON API, `/api/v1`: the operations core over HTTP, for programs."""

from dynsched_web.api.blueprint import Limits, api_blueprint

__all__ = ["Limits", "api_blueprint"]

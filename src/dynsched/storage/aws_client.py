"""Clients of AWS, made from botocore alone; boto3 adds only its import to a low-level client.

Each client has a session of its own, with its own credentials; what all of them read from
botocore's data files is read once.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, NoRegionError
from botocore.loaders import Loader, create_loader
from botocore.session import Session

from dynsched.errors import InvalidInput, StoreError
from dynsched.version import VERSION

DATA_PATH = "AWS_DATA_PATH"


def make_client(service: str, region: str | None, endpoint_url: str | None, **options: Any) -> Any:
    """Return a low-level client.

    Args:
        service: as botocore names it.
        region: None takes it from the environment.
        endpoint_url: another endpoint than the region's own.
        options: of botocore's `Config`.

    Raises:
        InvalidInput: the endpoint cannot be one, or no region is configured.
        StoreError: the AWS configuration of this machine cannot be used.
    """
    # A fixed agent is not put together anew for each call: an eighth of a call's CPU.
    config = Config(user_agent=f"dynsched/{VERSION}", **options)
    try:
        session = Session()
        session.register_component("data_loader", _loader())
        return session.create_client(
            service, region_name=region, endpoint_url=endpoint_url, config=config
        )
    except NoRegionError:
        raise InvalidInput(
            "region",
            "no AWS region is given",
            "name one in the store's URL or set AWS_DEFAULT_REGION",
        ) from None
    except ValueError as error:
        raise InvalidInput("endpoint_url", str(error), "http(s)://host:port") from None
    except BotoCoreError as error:
        raise StoreError(f"the AWS configuration cannot be used: {error}") from error


@lru_cache(maxsize=1)
def _loader() -> Loader:
    return create_loader(os.environ.get(DATA_PATH))

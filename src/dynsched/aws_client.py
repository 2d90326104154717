"""The one place where sessions and clients of AWS are made, for the store and for targets.

Each session finds its credentials by itself; what boto3 and botocore read from their data files,
which is most of a client's start, is read once for all of them.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any, TypeAlias

import botocore.session
from boto3.session import Session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, InvalidRegionError, NoRegionError
from botocore.loaders import Loader, create_loader

from dynsched.errors import InvalidInput, StoreError
from dynsched.version import VERSION

AwsSession: TypeAlias = Session
"""Under this name, since nothing but this module may import boto3."""
DATA_PATH = "AWS_DATA_PATH"


def new_session() -> AwsSession:
    """Return a session of this process's AWS configuration.

    Raises:
        BotoCoreError: the configuration cannot be used.
    """
    core = botocore.session.Session()
    core.register_component("data_loader", _loader())
    return Session(botocore_session=core)


def client_of(
    session: AwsSession,
    service: str,
    region: str | None,
    config: Config,
    endpoint_url: str | None = None,
) -> Any:
    """Return a low-level client, whose calls say that they are dynsched's.

    Args:
        session: whose credentials it takes.
        service: as boto3 names it.
        region: None takes what the SDK is configured with, else `AWS_REGION`.
        config: its time-outs, retries and connections.
        endpoint_url: another endpoint than the region's own.

    Raises:
        BotoCoreError: the configuration cannot be used, or names no region.
        ValueError: the endpoint cannot be one.
    """
    client: Any = session.client
    return client(
        service,
        region_name=region or session.region_name or os.environ.get("AWS_REGION"),
        endpoint_url=endpoint_url,
        # A fixed agent is not put together anew for each call: an eighth of a call's CPU.
        config=Config(user_agent=f"dynsched/{VERSION}").merge(config),
    )


def make_client(service: str, region: str | None, endpoint_url: str | None, config: Config) -> Any:
    """Return a client for the store, with a session of its own.

    Args:
        service: as boto3 names it.
        region: None takes it from the environment.
        endpoint_url: another endpoint than the region's own.
        config: its time-outs, retries and connections.

    Raises:
        InvalidInput: endpoint or region cannot be one, or no region is configured.
        StoreError: the AWS configuration of this machine cannot be used.
    """
    try:
        return client_of(new_session(), service, region, config, endpoint_url)
    except NoRegionError:
        raise InvalidInput(
            "region",
            "no AWS region is given",
            "name one in the store's URL or set AWS_REGION",
        ) from None
    except InvalidRegionError as error:  # a ValueError as well
        raise InvalidInput("region", str(error), "give one such as eu-central-1") from None
    except ValueError as error:
        raise InvalidInput("endpoint_url", str(error), "http(s)://host:port") from None
    except BotoCoreError as error:
        raise StoreError(f"the AWS configuration cannot be used: {error}") from error


@lru_cache(maxsize=1)
def _loader() -> Loader:
    return create_loader(os.environ.get(DATA_PATH))

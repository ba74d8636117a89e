"""Sealane for Python: publish to a hub, and read from it.

    import sealane

    with sealane.Client("127.0.0.1:9087") as client:
        client.publish("fleet/7/location", {"lat": 48.2, "lon": 16.4})
        for message in client.subscribe("fleet/**", start="first"):
            print(message.stream, message.offset, message.body)

`Client` is for plain programs and notebooks, `AsyncClient` for asyncio; both do the same. The
specification is spec/hub.md. `sealane.formats` reads frames, links and vaults, and shares nothing
with the client.
"""

from .client import AsyncClient, Page, is_awaited
from .errors import (
    Ended,
    FeatureMissing,
    HubError,
    NoAnswer,
    NoReply,
    NotARequest,
    NotReachable,
    NotTheProtocol,
    SealaneError,
    Untrusted,
)
from .message import (
    Connected,
    Draining,
    Event,
    Gap,
    Joined,
    Message,
    Place,
    Published,
    Reconnecting,
    Unrecovered,
)
from .publisher import Publisher, Receipt
from .subscription import Subscription
from .sync import Client
from .table import to_dataframe

__all__ = [
    "AsyncClient",
    "Client",
    "Connected",
    "Draining",
    "Ended",
    "Event",
    "FeatureMissing",
    "Gap",
    "HubError",
    "Joined",
    "Message",
    "NoAnswer",
    "NoReply",
    "NotARequest",
    "NotReachable",
    "NotTheProtocol",
    "Page",
    "Place",
    "Published",
    "Publisher",
    "Receipt",
    "Reconnecting",
    "SealaneError",
    "Subscription",
    "Unrecovered",
    "Untrusted",
    "is_awaited",
    "to_dataframe",
]

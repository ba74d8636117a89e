"""Reads Sealane's frames. The specification is spec/seal.md, spec/frame.md, spec/group.md
and spec/document.md."""

from .compact_units import CompactLink
from .document import read_document
from .exchange import read_message as read_exchange
from .frame import (
    Announced,
    Header,
    Link,
    OpenedFrame,
    expand,
    forward,
    forward_compact,
    open,
    open_announcement,
    open_compact,
    open_live,
)
from .live import Announcement, Heard, Live
from .notice import Notice, epoch_secret, read_notice
from .refused import Refused
from .seal import (
    BOUND_TO_LINK,
    Keys,
    Opened,
    Sealed,
    Term,
    bound_to_conversation,
    bound_to_stream,
    open_stored,
    ratchet,
)
from .units import Joiner

__all__ = [
    "BOUND_TO_LINK",
    "Announced",
    "Announcement",
    "CompactLink",
    "Header",
    "Heard",
    "Joiner",
    "Keys",
    "Link",
    "Live",
    "Notice",
    "Opened",
    "OpenedFrame",
    "Refused",
    "Sealed",
    "Term",
    "bound_to_conversation",
    "bound_to_stream",
    "epoch_secret",
    "expand",
    "forward",
    "forward_compact",
    "open",
    "open_announcement",
    "open_compact",
    "open_live",
    "open_stored",
    "ratchet",
    "read_document",
    "read_exchange",
    "read_notice",
]

"""Frames in both forms, and what a relay does: spec/frame.md."""

from dataclasses import dataclass, field

from . import live, seal
from .refused import Refused

HEADER = 64
RELAY = 17
VERSION = 2
BROADCAST = b"\xff" * 8
MAX_HOPS = 15
MAX_BODY = (1 << 20) - 256
MAX_SEAL_HEADER = 9
#: What may stand before the body in the compact form, in class P and in the others.
MAX_COMPACT_FRONT = {True: 15, False: 11}
#: Data types of messages that are urgent: spec/policy.md.
URGENT = {7, 8, 9, 10, 11}
TIME = 8
#: Kind, data type and class of an announcement.
ANNOUNCEMENT = (1, 3, "S")


@dataclass(frozen=True)
class Header:
    """The full header."""

    next_hop: bytes
    previous_hop: bytes
    hop_limit: int
    kind: int
    flags: int
    codec: int
    data_type: int
    group: bytes
    source: bytes
    destination: bytes
    body_length: int
    sequence: int
    context: bytes
    #: The low byte of how many orders the sender had obeyed.
    orders: int

    @property
    def klass(self) -> int:
        """The number of the class."""
        return self.flags & 3

    @property
    def is_urgent(self) -> bool:
        """Whether the body begins with the time at which it was made."""
        return self.kind == 0 and self.data_type in URGENT

    def encode(self) -> bytes:
        """The 64 bytes."""
        return b"".join(
            [
                self.next_hop,
                self.previous_hop,
                bytes([self.hop_limit, VERSION, self.kind, self.flags, self.codec]),
                self.data_type.to_bytes(2, "little"),
                self.group,
                self.source,
                self.destination,
                self.body_length.to_bytes(4, "little"),
                self.sequence.to_bytes(8, "little"),
                self.context,
                bytes([self.orders]),
            ]
        )

    def authenticated(self) -> bytes:
        """What every seal protects."""
        return self.encode()[RELAY:]


@dataclass(frozen=True)
class Announced:
    """What a link knows of the sender in a slot, by its last announcement."""

    context: bytes
    #: How many orders of its group the sender had obeyed.
    orders: int


@dataclass
class Link:
    """What the two ends of a link know about compact frames on it."""

    next_hop: bytes
    previous_hop: bytes
    #: Entries of 14 bytes by dictionary byte.
    dictionary: dict[int, bytes] = field(default_factory=dict)
    #: Tags by group tag and slot.
    roster: dict[tuple[bytes, int], bytes] = field(default_factory=dict)
    #: By group tag and slot, too.
    announced: dict[tuple[bytes, int], Announced] = field(default_factory=dict)

    def announce(self, frame: "OpenedFrame") -> None:
        """Takes over what an accepted announcement tells."""
        told = Announced(frame.header.context, frame.heard.announcement.orders)
        self.announced[frame.header.group, frame.slot] = told


@dataclass(frozen=True)
class OpenedFrame:
    """An authentic frame. All of its header but the hops is authentic."""

    header: Header
    body: bytes
    klass: str
    slot: int
    epoch: int
    #: What `Live.accept` takes when the frame has had its effect; None of a stored frame.
    heard: live.Heard | None = None

    @property
    def time_ms(self) -> int | None:
        """When an urgent message was made, by the clock of its sender."""
        return int.from_bytes(self.body[:TIME], "little") if self.header.is_urgent else None

    @property
    def content(self) -> bytes:
        """The body without the time."""
        return self.body[TIME:] if self.header.is_urgent else self.body


def open(frame: bytes, keys: seal.Keys, binding: bytes) -> OpenedFrame:
    """Opens a frame of the full form, as it rests in the place that `binding` means."""
    return _stored(*_full(frame, keys.near, binding), keys)


def open_compact(frame: bytes, keys: seal.Keys, link: Link, binding: bytes) -> OpenedFrame:
    """Opens a frame of the compact form, as if it were stored."""
    return _stored(*_compact(frame, keys.near, link, binding), keys)


def open_live(
    frame: bytes, reader: live.Live, binding: bytes, link: Link | None = None
) -> OpenedFrame:
    """Opens a frame that came over a link: of the compact form, if what the link knows is given."""
    if link is None:
        header, sealed = _full(frame, reader.newest, binding)
    else:
        header, sealed = _compact(frame, reader.newest, link, binding)
    heard = reader.open(sealed)
    return _opened(header, heard.opened, heard)


def open_announcement(frame: bytes, reader: live.Live) -> OpenedFrame:
    """Opens the frame by which a neighbour announces itself. It has the full form only."""
    header, sealed = _full(frame, reader.newest, seal.BOUND_TO_LINK)
    if (header.kind, header.data_type, seal.CLASSES[header.klass]) != ANNOUNCEMENT:
        raise Refused("SL-FRAME-08")
    heard = reader.open(sealed, is_announcement=True)
    return _opened(header, heard.opened, heard)


def expand(frame: bytes, link: Link, near: int) -> bytes:
    """The full form of a compact frame. It needs an epoch that lies near, and no key."""
    header, sealed = _compact(frame, near, link, seal.BOUND_TO_LINK)
    clear = sealed.data[: sealed.clear]
    inner, length = seal.parse_header(sealed.data[sealed.clear :], "compact", near)
    return header.encode() + clear + inner.encode() + sealed.data[sealed.clear + length :]


def forward(frame: bytes, next_hop: bytes, own: bytes) -> bytes:
    """The frame as a relay sends it on."""
    header = _checked(frame)
    if header.next_hop not in (own, BROADCAST):
        raise Refused("SL-FRAME-09")
    if header.hop_limit == 0:
        raise Refused("SL-FRAME-10")
    return next_hop + own + bytes([header.hop_limit - 1]) + frame[RELAY:]


def forward_compact(frame: bytes, dictionary_byte: int) -> bytes:
    """The frame as a relay sends it on over another compact link."""
    if len(frame) < 4:
        raise Refused("SL-FRAME-01")
    if frame[0] & 0x80 == 0:
        raise Refused("SL-FRAME-02")
    if frame[0] & MAX_HOPS == 0:
        raise Refused("SL-FRAME-10")
    return bytes([frame[0] - 1, dictionary_byte]) + frame[2:]


def _stored(header: Header, sealed: seal.Sealed, keys: seal.Keys) -> OpenedFrame:
    return _opened(header, seal.open_stored(keys, sealed), None)


def _opened(header: Header, opened: seal.Opened, heard: live.Heard | None) -> OpenedFrame:
    return OpenedFrame(header, opened.body, opened.klass, opened.slot, opened.epoch, heard)


def _full(frame: bytes, near: int, binding: bytes) -> tuple[Header, seal.Sealed]:
    """What the seal is given of a frame of the full form."""
    header = _checked(frame)
    _check_body(header)
    clear = header.body_length if header.klass == 0 else 0
    inner, length = _seal_header(frame[HEADER + clear :], "full", near)
    if _room(header) + length != len(frame):
        raise Refused("SL-FRAME-05")
    if (inner.klass, inner.counter) != (header.klass, header.sequence):
        raise Refused("SL-FRAME-08")
    meta = header.authenticated()
    return header, seal.Sealed(frame[HEADER:], header.context, binding, meta, "full", clear)


def _checked(frame: bytes) -> Header:
    """The header, and all that it alone shows."""
    if len(frame) < HEADER:
        raise Refused("SL-FRAME-01")
    number = lambda start, size: int.from_bytes(frame[start : start + size], "little")
    if frame[17] != VERSION:
        raise Refused("SL-FRAME-02")
    if frame[18] > 3:
        raise Refused("SL-FRAME-03")
    _check_flags(frame[19])
    header = Header(
        next_hop=frame[0:8],
        previous_hop=frame[8:16],
        hop_limit=min(frame[16], MAX_HOPS),
        kind=frame[18],
        flags=frame[19],
        codec=frame[20],
        data_type=number(21, 2),
        group=frame[23:27],
        source=frame[27:35],
        destination=frame[35:43],
        body_length=number(43, 4),
        sequence=number(47, 8),
        context=frame[55:63],
        orders=frame[63],
    )
    if not 1 <= len(frame) - _room(header) <= MAX_SEAL_HEADER:
        raise Refused("SL-FRAME-05")
    return header


def _check_flags(flags: int) -> None:
    """Bits 6 and 7 are 0, and compression is none, LZ4 or Zstandard."""
    if flags >= 0x30:
        raise Refused("SL-FRAME-04")


def _check_body(header: Header) -> None:
    """The length of the body is within its limit, and an urgent one has room for its time."""
    if header.body_length > MAX_BODY:
        raise Refused("SL-FRAME-06")
    if header.is_urgent and header.body_length < TIME:
        raise Refused("SL-FRAME-01")


def _room(header: Header) -> int:
    """The frame's length but for the SFrame header."""
    return HEADER + header.body_length + _trailer(header.klass)


def _trailer(klass: int) -> int:
    return seal.TAG + (seal.SIGNATURE if seal.CLASSES[klass] == "S" else 0)


def _seal_header(data: bytes, form: str, near: int) -> tuple[seal.SealHeader, int]:
    try:
        return seal.parse_header(data, form, near)
    except Refused:
        raise Refused("SL-FRAME-07") from None


@dataclass(frozen=True)
class _Prefix:
    """What stands before the SFrame header in the compact form, and what its entry says."""

    kind: int
    hop_limit: int
    context_end: int
    data_type: int
    group: bytes
    destination: bytes
    codec: int
    flags: int
    length: int


def _prefix(frame: bytes, link: Link) -> _Prefix:
    if len(frame) < 4:
        raise Refused("SL-FRAME-01")
    first, data_type, at = frame[0], frame[3], 4
    if first & 0x80 == 0:
        raise Refused("SL-FRAME-02")
    if first & 0x40:
        if len(frame) < 5:
            raise Refused("SL-FRAME-01")
        if frame[4] == 0:
            raise Refused("SL-FRAME-04")
        data_type, at = data_type | frame[4] << 8, 5
    entry = link.dictionary.get(frame[1])
    if entry is None:
        raise Refused("SL-FRAME-12")
    group, destination, codec, flags = entry[:4], entry[4:12], entry[12], entry[13]
    _check_flags(flags)
    if seal.CLASSES[flags & 3] == "P":
        if len(frame) < at + 4:
            raise Refused("SL-FRAME-01")
        group, at = frame[at : at + 4], at + 4
    hops = (first >> 4 & 3, first & MAX_HOPS)
    return _Prefix(*hops, frame[2], data_type, group, destination, codec, flags, at)


def _compact(frame: bytes, near: int, link: Link, binding: bytes) -> tuple[Header, seal.Sealed]:
    """The full header of a frame of the compact form, and what the seal is given of it."""
    prefix = _prefix(frame, link)
    klass, data = prefix.flags & 3, frame[prefix.length :]
    inner, length = _seal_header(data, "compact", near)
    if prefix.length + length > MAX_COMPACT_FRONT[seal.CLASSES[klass] == "P"]:
        raise Refused("SL-FRAME-07")
    if inner.klass != klass:
        raise Refused("SL-FRAME-08")
    body_length = len(data) - length - _trailer(klass)
    if body_length < 0:
        raise Refused("SL-FRAME-05")
    place = (prefix.group, inner.slot)
    if place not in link.roster:
        raise Refused("SL-FRAME-14")
    announced = link.announced.get(place)
    if announced is None or announced.context[-1] != prefix.context_end:
        raise Refused("SL-FRAME-22")
    header = Header(
        next_hop=link.next_hop,
        previous_hop=link.previous_hop,
        hop_limit=prefix.hop_limit,
        kind=prefix.kind,
        flags=prefix.flags,
        codec=prefix.codec,
        data_type=prefix.data_type,
        group=prefix.group,
        source=link.roster[place],
        destination=prefix.destination,
        body_length=body_length,
        sequence=inner.counter,
        context=announced.context,
        orders=announced.orders & 255,
    )
    _check_body(header)
    clear = body_length if klass == 0 else 0
    # The seal has the body of class A before its header.
    body, end = data[length : length + clear], data[length + clear :]
    data = body + data[:length] + end
    meta = header.authenticated()
    return header, seal.Sealed(data, header.context, binding, meta, "compact", clear)

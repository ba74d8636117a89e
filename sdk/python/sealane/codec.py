"""How envelopes and frames become bytes: spec/codec.md."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .errors import NotTheProtocol


@dataclass(frozen=True)
class Codec:
    """One codec. Items are put together of parts that are encoded already, so that a publisher
    counts their bytes and encodes nothing twice.
    """

    name: str
    media: str
    #: Whether frames are text.
    text: bool
    encode: Callable[[Any], bytes]
    decode: Callable[[Any], Any]
    #: The failures of `decode`.
    failures: tuple[type[Exception], ...]
    map_head: Callable[[int], bytes]
    array_head: Callable[[int], bytes]

    def read(self, data: bytes | str) -> Any:
        """The value of a frame or body of the hub."""
        if isinstance(data, str) != self.text:
            raise NotTheProtocol(
                f"a frame of {self.name} came as {'text' if self.text else 'bytes'}"
            )
        try:
            return self.decode(data)
        except self.failures as failure:
            raise NotTheProtocol(f"what the hub sent is no {self.name}: {failure}") from None

    def read_map(self, data: bytes | str) -> dict[str, Any]:
        """The map of a frame or body of the hub."""
        value = self.read(data)
        if not isinstance(value, dict):
            raise NotTheProtocol("a frame of the hub is no map")
        return value

    def field(self, key: str, value: bytes) -> bytes:
        """A field of a map, whose value is encoded already."""
        return b'"%b":%b' % (key.encode(), value) if self.text else self.encode(key) + value

    def fields(self, fields: list[bytes]) -> bytes:
        """Several fields, one behind the other."""
        return (b"," if self.text else b"").join(fields)

    def item(self, number: int, count: int, fields: bytes) -> bytes:
        """An item of a publishing socket: a map of `n` and so many fields."""
        if self.text:
            return b'{"n":%d,%b}' % (number, fields)
        return self.map_head(count + 1) + self.encode("n") + self.encode(number) + fields

    def publish(self, items: list[bytes]) -> bytes:
        """The frame of these items."""
        if self.text:
            return b'{"publish":[%b]}' % b",".join(items)
        head = self.map_head(1) + self.encode("publish") + self.array_head(len(items))
        return head + b"".join(items)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


_JSON_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_JSON_DECODER = json.JSONDecoder(parse_constant=_no_constant)

JSON = Codec(
    name="json",
    media="application/json",
    text=True,
    encode=lambda value: _JSON_ENCODER.encode(value).encode(),
    decode=_JSON_DECODER.decode,
    failures=(ValueError, RecursionError),
    map_head=lambda count: b"",
    array_head=lambda count: b"",
)


def _msgpack() -> Codec:
    import msgpack

    def head(small: int, wide: int) -> Callable[[int], bytes]:
        return lambda count: (
            bytes([small | count]) if count < 16 else bytes([wide]) + count.to_bytes(4, "big")
        )

    return Codec(
        name="msgpack",
        media="application/msgpack",
        text=False,
        encode=lambda value: bytes(msgpack.packb(value) or b""),
        decode=msgpack.unpackb,
        # Extension types, truncated and superfluous bytes: all are of `ValueError` but these.
        failures=(ValueError, msgpack.UnpackException, TypeError, RecursionError),
        map_head=head(0x80, 0xDF),
        array_head=head(0x90, 0xDD),
    )


def _cbor() -> Codec:
    import cbor2

    def head(kind: int) -> Callable[[int], bytes]:
        return lambda count: (
            bytes([kind | count]) if count < 24 else bytes([kind | 26]) + count.to_bytes(4, "big")
        )

    def decode(data: bytes) -> Any:
        stream = io.BytesIO(data)
        value = cbor2.load(stream)
        if stream.tell() != len(data):
            raise ValueError("something follows the value")
        return value

    return Codec(
        name="cbor",
        media="application/cbor",
        text=False,
        encode=cbor2.dumps,
        decode=decode,
        failures=(cbor2.CBORDecodeError, ValueError, EOFError, TypeError, RecursionError),
        map_head=head(0xA0),
        array_head=head(0x80),
    )


_MAKERS: dict[str, Callable[[], Codec]] = {"json": lambda: JSON, "msgpack": _msgpack, "cbor": _cbor}


def codec(name: str) -> Codec:
    """The codec of a name; `msgpack` and `cbor` are extras of the package."""
    maker = _MAKERS.get(name)
    if maker is None:
        raise ValueError(f"there is no codec {name!r}; there are {', '.join(_MAKERS)}")
    return maker()

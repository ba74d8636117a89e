"""Messages as a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .message import Message

if TYPE_CHECKING:
    from pandas import DataFrame


def to_dataframe(messages: Iterable[Message]) -> DataFrame:
    """A row for each message: `stream`, `offset` and `stored`, and the fields of the body, those
    of maps within it as `field.field`. A field that is named as one of the three is
    `body.stream` and so on. It needs `pandas`.
    """
    import pandas as pd

    rows = []
    for one in messages:
        row: dict[str, Any] = {"stream": one.stream, "offset": one.offset, "stored": one.stored}
        row.update({f"body.{key}" if key in row else key: one.body[key] for key in one.body})
        rows.append(row)
    return pd.json_normalize(rows)

"""Writes a fleet's messages into a file, and goes on behind the last line when it starts again.

    python telemetry_logger.py 'fleet/**' fleet.jsonl
"""

import json
import sys
from pathlib import Path

import sealane


def last_places(log: Path) -> dict[str, sealane.Place]:
    """The place behind the last line of each stream."""
    lines = log.read_text().splitlines() if log.exists() else []
    entries = [json.loads(line) for line in lines]
    return {one["stream"]: sealane.Place(one["offset"] + 1, one["generation"]) for one in entries}


def main(pattern: str, path: str) -> None:
    log = Path(path)
    places = last_places(log)
    with sealane.Client() as client, log.open("a") as lines:
        for message in client.subscribe(pattern, start="first", places=places):
            entry = {
                "stream": message.stream,
                "offset": message.offset,
                "generation": message.generation,
                "stored": message.stored.isoformat(),
                "body": message.body,
            }
            lines.write(json.dumps(entry) + "\n")
            lines.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])

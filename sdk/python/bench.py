"""Rates of the client beside the same protocol by hand, in one run and in turns.

python sdk/python/bench.py [MESSAGES]         # needs target/ship/sealane, or SEALANE_BINARY
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from pathlib import Path

import sealane
from websockets.asyncio.client import connect

sys.path.insert(0, str(Path(__file__).resolve().parent / "tests"))
from hub import HubProcess  # noqa: E402

ROUNDS = 5
CREDIT, BATCH = 1024, 256
#: With its id and key, an envelope of 100 bytes.
BODY = {"text": "x" * 89}


async def read_by_hand(hub: HubProcess, count: int, query: str) -> None:
    """As spec/hub.md is read for the first time: no checks, no resuming."""
    url = f"ws://{hub.address}/v1/subscribe?stream=bench&batch={BATCH}&{query}"
    async with connect(url, max_size=None, compression=None) as socket:
        json.loads(await socket.recv())
        await socket.send(json.dumps({"credit": CREDIT}))
        got = used = 0
        while got < count:
            frame = json.loads(await socket.recv())
            messages = frame.get("batch") or ([frame] if "deliver" in frame else [])
            for message in messages:
                assert message["deliver"]["text"]
            if not messages:
                continue
            got += len(messages)
            used += len(messages)
            asked = {"ack": {"from": messages[0]["offset"], "to": messages[-1]["offset"]}}
            if used >= CREDIT // 2:
                asked["credit"], used = used, 0
            await socket.send(json.dumps(asked))


async def read_by_client(hub: HubProcess, count: int, **options) -> None:
    async with sealane.AsyncClient(hub.address) as client:
        got = 0
        async for message in client.subscribe("bench", **options):
            assert message.body["text"]
            got += 1
            if got == count:
                message.ack()
                break


def read_by_plain_client(hub: HubProcess, count: int, **options) -> None:
    with sealane.Client(hub.address) as client:
        for got, message in enumerate(client.subscribe("bench", **options), 1):
            assert message.body["text"]
            if got == count:
                break


async def publish_by_hand(hub: HubProcess, count: int) -> None:
    async with connect(f"ws://{hub.address}/v1/publish", compression=None) as socket:
        json.loads(await socket.recv())
        sent = answered = credit = space = 0
        while answered < count:
            items = []
            while credit > 0 and space > 0 and sent < count and len(items) < 512:
                sent += 1
                item = json.dumps(
                    {"to": "hand", "n": sent, "envelope": BODY}, separators=(",", ":")
                )
                credit, space = credit - 1, space - len(item)
                items.append(item)
            if items:
                await socket.send('{"publish":[%s]}' % ",".join(items))
            frame = json.loads(await socket.recv())
            if "credit" in frame:
                credit, space = credit + frame["credit"], space + frame["bytes"]
            elif "published" in frame:
                placed = frame["published"]
                answered += placed.get("to", 0) - placed.get("from", 0) + 1


async def publish_by_client(hub: HubProcess, count: int) -> None:
    async with sealane.AsyncClient(hub.address) as client:
        publisher = client.publisher()
        for _ in range(count):
            await publisher.send("client", BODY)
        await publisher.flush()


def publish_by_plain_client(hub: HubProcess, count: int) -> None:
    with sealane.Client(hub.address) as client, client.publisher() as publisher:
        for _ in range(count):
            publisher.send("plain", BODY)


def rates(work, count: int) -> tuple[float, float]:
    """Messages per second, and per second of this process's own work."""
    begin, worked = time.perf_counter(), time.process_time()
    result = work()
    if asyncio.iscoroutine(result):
        asyncio.run(result)
    return count / (time.perf_counter() - begin), count / (time.process_time() - worked)


def main(count: int) -> None:
    with HubProcess() as hub:
        asyncio.run(publish_by_client(hub, 1))
        with sealane.Client(hub.address) as client:
            for _ in range(0, count, 1000):
                client.publish_batch("bench", [BODY] * 1000)
        turn = 0

        def name() -> str:
            nonlocal turn
            turn += 1
            return f"c{turn}"

        works = {
            "read": {
                "by hand": lambda: read_by_hand(hub, count, "from=first"),
                "AsyncClient": lambda: read_by_client(hub, count, start="first"),
                "Client": lambda: read_by_plain_client(hub, count, start="first"),
            },
            "consume": {
                "by hand": lambda: read_by_hand(hub, count, f"consumer={name()}"),
                "AsyncClient": lambda: read_by_client(hub, count, consumer=name(), ack="auto"),
                "Client": lambda: read_by_plain_client(hub, count, consumer=name(), ack="auto"),
            },
            "publish": {
                "by hand": lambda: publish_by_hand(hub, count),
                "AsyncClient": lambda: publish_by_client(hub, count),
                "Client": lambda: publish_by_plain_client(hub, count),
            },
        }
        print(f"{count} messages of 100 bytes, medians of {ROUNDS} rounds, messages per second:")
        print("beside others, their share and spread; per second of own work, and their share")
        for deed, ways in works.items():
            found: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
            for _ in range(ROUNDS + 1):
                for way, work in ways.items():
                    found[way].append(rates(work, count))
            # The first round warms up.
            columns = {way: list(zip(*pairs[1:])) for way, pairs in found.items()}
            hand = [statistics.median(column) for column in columns["by hand"]]
            for way, (wall, own) in columns.items():
                median, work_median = statistics.median(wall), statistics.median(own)
                print(
                    f"{deed:8} {way:12} {median:10,.0f} {median / hand[0]:5.2f}",
                    f"{min(wall):,.0f} to {max(wall):,.0f}".rjust(22),
                    f"{work_median:12,.0f} {work_median / hand[1]:5.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)

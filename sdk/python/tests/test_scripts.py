"""The conversations of vectors/clients, which every client runs: vectors/clients/README.md."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import unittest
import urllib.parse
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import sealane
from hub import ROOT, HubProcess, needs_hub

SCRIPTS = ROOT / "vectors/clients"
#: As the page of the scripts says; a loaded machine gets more.
STEP_SECONDS = 20.0 * 3
END_SECONDS = 5.0 * 3
AT_ONCE = 6
#: Options of JavaScript, and what they are here.
DURATIONS = {
    "delayMs": "delay",
    "ackWaitMs": "ack_wait",
    "heartbeatMs": "heartbeat",
    "patienceMs": "patience",
    "timeoutMs": "timeout",
}
NAMES = {"maxInFlight": "max_in_flight", "maxAttempts": "max_attempts"}
EVENTS = {
    sealane.Connected: "connected",
    sealane.Joined: "joined",
    sealane.Unrecovered: "unrecovered",
    sealane.Gap: "gap",
    sealane.Reconnecting: "reconnecting",
    sealane.Draining: "draining",
}
FIELDS = {"first": "from", "last": "to"}


def options(fields: dict, *taken: str) -> dict:
    """The options of a step in Python's words."""
    found = {}
    for name, value in fields.items():
        if name in DURATIONS:
            found[DURATIONS[name]] = value / 1000
        elif name not in taken:
            found[NAMES.get(name, name)] = value
    if "from" in found:
        start, generation = found.pop("from"), found.pop("generation", None)
        found["start"] = start if generation is None else sealane.Place(start, generation)
    return found


def event_map(event: object) -> dict:
    """An event as the scripts write it."""
    fields = {FIELDS.get(name, name): value for name, value in vars(event).items()}
    return {"type": EVENTS[type(event)], **fields}


def matches(value: object, expected: object) -> bool:
    """Whether a value has these parts."""
    if expected == "$any":
        return True
    if isinstance(expected, dict):
        return isinstance(value, dict) and all(
            key in value and matches(value[key], part) for key, part in expected.items()
        )
    if isinstance(expected, list):
        return (
            isinstance(value, list)
            and len(value) == len(expected)
            and all(map(matches, value, expected))
        )
    return type(value) is type(expected) and value == expected


class ScriptSubscription:
    """A subscription of a script, and what was looked at."""

    def __init__(self, subscribe) -> None:
        self.events: list[dict] = []
        self.inner = subscribe(on_event=lambda event: self.events.append(event_map(event)))
        self.waiting: list[sealane.Message] = []
        self.last: list[sealane.Message] = []
        self.by_number: dict[int, sealane.Message] = {}
        self.next: dict[str, int] = defaultdict(int)
        self.seen: dict[str, set[int]] = defaultdict(set)

    async def message(self, patience: float = STEP_SECONDS) -> sealane.Message:
        if self.waiting:
            return self.waiting.pop(0)
        return await asyncio.wait_for(anext(self.inner), patience)


class Script:
    """One conversation."""

    def __init__(self, case: unittest.TestCase, script: dict) -> None:
        self.case = case
        self.steps = script["steps"]
        hub = script.get("hub", {})
        flags = hub.get("flags", [])
        self.hub = HubProcess(*flags, tokens=hub.get("tokens", False), tls=hub.get("tls", False))
        self.saved: dict[str, object] = {}
        self.tokens: dict[str, str] = {}
        self.clients: dict[str, sealane.AsyncClient] = {}
        self.publishers: dict[str, sealane.Publisher] = {}
        self.subscriptions: dict[str, ScriptSubscription] = {}
        self.agents: dict[str, asyncio.Task] = {}
        self.background: dict[str, tuple[asyncio.Task, dict]] = {}
        self.counts: dict[str, int] = defaultdict(int)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        self.clients["main"] = sealane.AsyncClient(**self.hub.options())
        unheard: list[dict] = []
        loop.set_exception_handler(lambda _, context: unheard.append(context))
        try:
            for step in self.steps:
                await self.step(step)
            await asyncio.wait_for(self.close(), END_SECONDS)
        finally:
            for task, _ in self.background.values():
                task.cancel()
            for task in self.agents.values():
                task.cancel()
            await asyncio.to_thread(self.hub.close)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait(left, timeout=END_SECONDS) if left else None
        self.case.assertEqual(unheard, [], "an error that nobody took")
        self.case.assertFalse([task for task in left if not task.done()], "tasks are left")

    async def close(self) -> None:
        for task in self.agents.values():
            task.cancel()
        for client in self.clients.values():
            with contextlib.suppress(sealane.SealaneError):
                await client.close()

    async def step(self, step: dict) -> None:
        verb = next(name for name in step if name not in ("error", "background", "save"))
        fields = self.valued(step[verb])
        work = getattr(self, f"do_{verb}")(fields)
        if "background" in step:
            self.background[step["background"]] = (asyncio.create_task(work), step)
            return
        await self.finish(work, step, fields)

    async def finish(self, work, step: dict, fields: object) -> None:
        expected = step.get("error")
        try:
            result = await asyncio.wait_for(work, STEP_SECONDS)
        except sealane.SealaneError as error:
            self.case.assertEqual(error.code, expected, f"{step}: {error!r}")
            return
        self.case.assertIsNone(expected, f"{step} has not failed")
        if isinstance(fields, dict) and "is" in fields:
            self.case.assertTrue(matches(result, fields["is"]), f"{step}: {result}")
        if "save" in step:
            self.saved[step["save"]] = result

    def valued(self, value: object) -> object:
        """A value with the saved ones in their places."""
        if isinstance(value, dict):
            return {key: self.valued(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self.valued(part) for part in value]
        if isinstance(value, str) and value.startswith("$") and value != "$any":
            name, _, field = value[1:].partition(".")
            if name in self.tokens:
                return self.tokens[name]
            found = self.saved[name]
            return found[field] if field else found
        return value

    def client(self, fields: dict) -> sealane.AsyncClient:
        return self.clients[fields.get("by", "main")]

    def envelopes(self, fields: dict) -> list[dict]:
        """What a step publishes."""
        if "envelopes" in fields:
            return fields["envelopes"]
        if "envelope" in fields:
            return [fields["envelope"]]
        topic, count = fields["to"], fields["count"]
        first = self.counts[topic]
        self.counts[topic] += count
        return [{"id": f"{topic}-{n}", "n": n} for n in range(first, first + count)]

    # --- the laboratory ---

    async def do_start(self, _) -> None:
        await asyncio.to_thread(self.hub.start)
        while (await asyncio.to_thread(self.hub.http, "GET", "/ready"))[0] != 200:
            await asyncio.sleep(0.05)

    async def do_kill(self, _) -> None:
        await asyncio.to_thread(self.hub.kill)

    async def do_stop(self, _) -> None:
        await asyncio.to_thread(self.hub.stop)

    async def do_freeze(self, _) -> None:
        self.hub.freeze()

    async def do_thaw(self, _) -> None:
        self.hub.thaw()

    async def do_wait(self, ms: int) -> None:
        await asyncio.sleep(ms / 1000)

    async def do_token(self, fields: dict) -> None:
        rights = [
            word
            for right in ("read", "publish", "manage")
            for pattern in fields.get(right, [])
            for word in (f"--{right}", pattern)
        ]
        rights += ["--observe"] if fields.get("observe") else []
        name = fields["name"]
        self.tokens[name] = await asyncio.to_thread(self.hub.make_token, name, *rights)

    async def do_revoke(self, name: str) -> None:
        await asyncio.to_thread(self.hub.revoke, name)

    async def do_certificate(self, _) -> None:
        self.hub.renew_certificate()

    async def do_http(self, fields: dict) -> object:
        path = fields["path"]
        if "query" in fields:
            path += "?" + urllib.parse.urlencode(fields["query"])
        status, value = await asyncio.to_thread(
            self.hub.http, fields["method"], path, fields.get("body"), fields.get("headers")
        )
        self.case.assertEqual(status, fields.get("status", 200), value)
        return value

    async def do_repeat(self, fields: dict) -> None:
        for _ in range(fields["times"]):
            for step in fields["steps"]:
                await self.step(step)

    async def do_join(self, name: str) -> None:
        task, step = self.background.pop(name)
        await self.finish(task, step, next(iter(step.values())))

    # --- the client ---

    async def do_client(self, fields: dict) -> None:
        told = {**self.hub.options(), **options(fields, "as")}
        told["ca"] = told["ca"] or None
        self.clients[fields["as"]] = sealane.AsyncClient(**told)

    async def do_publish(self, fields: dict) -> object:
        chosen = options(fields, "to", "count", "envelope", "by", "is")
        client, topic = self.client(fields), fields["to"]
        *_, stored = await asyncio.gather(
            *(client.publish(topic, body, **chosen) for body in self.envelopes(fields))
        )
        due = {"dueMs": stored.due.timestamp() * 1000} if stored.due else {}
        return {**stored._asdict(), **due}

    async def do_batch(self, fields: dict) -> object:
        chosen = options(fields, "to", "count", "envelopes", "by", "is")
        return await self.client(fields).publish_batch(
            fields["to"], self.envelopes(fields), **chosen
        )

    async def do_publisher(self, fields: dict) -> None:
        session = fields.get("session")
        self.publishers[fields["as"]] = self.client(fields).publisher(session=session)

    async def do_send(self, fields: dict) -> None:
        publisher = self.publishers[fields["of"]]
        for body in self.envelopes(fields):
            await publisher.send(fields["to"], body)

    async def do_flush(self, fields: dict) -> None:
        await self.publishers[fields["of"]].flush()

    async def do_next(self, fields: dict) -> int:
        return await self.publishers[fields["of"]].next(fields["to"])

    async def do_subscribe(self, fields: dict) -> None:
        chosen = options(fields, "as", "to", "by")
        client = self.client(fields)
        self.subscriptions[fields["as"]] = ScriptSubscription(
            lambda on_event: client.subscribe(fields["to"], on_event=on_event, **chosen)
        )

    async def do_take(self, fields: dict) -> None:
        subscription = self.subscriptions[fields["of"]]
        subscription.last = []
        if "all" in fields:
            await self.take_all(subscription, fields)
            return
        kinds = ("count", "numbers", "set", "envelopes")
        expected = next(fields[kind] for kind in kinds if kind in fields)
        count = expected if isinstance(expected, int) else len(expected)
        for position in range(count):
            message = await subscription.message()
            self.took(subscription, message, fields)
            number = message.body.get("n")
            if "count" in fields:
                if "first" in fields and position == 0:
                    subscription.next[message.stream] = fields["first"]
                self.case.assertEqual(number, subscription.next[message.stream], message)
            elif "numbers" in fields:
                self.case.assertEqual(number, expected[position], message)
            elif "envelopes" in fields:
                self.case.assertTrue(matches(message.body, expected[position]), message)
            if isinstance(number, int):
                subscription.next[message.stream] = number + 1
        if "set" in fields:
            taken = sorted(message.body["n"] for message in subscription.last)
            self.case.assertEqual(taken, sorted(expected))

    async def take_all(self, subscription: ScriptSubscription, fields: dict) -> None:
        topic = fields["all"]
        while len(subscription.seen[topic]) < self.counts[topic]:
            self.took(subscription, await subscription.message(), fields)
        # A number may come again: this client reads only while it is asked to.
        with contextlib.suppress(asyncio.TimeoutError):
            while True:
                self.took(subscription, await subscription.message(0.2), fields)

    def took(
        self, subscription: ScriptSubscription, message: sealane.Message, fields: dict
    ) -> None:
        subscription.last.append(message)
        number = message.body.get("n")
        if isinstance(number, int):
            subscription.seen[message.stream].add(number)
            subscription.by_number[number] = message
        if "attempt" in fields:
            self.case.assertEqual(message.attempt, fields["attempt"], message)
        if fields.get("ack"):
            message.ack()

    async def do_quiet(self, fields: dict) -> None:
        subscription = self.subscriptions[fields["of"]]
        try:
            message = await subscription.message(fields["ms"] / 1000)
        except asyncio.TimeoutError:
            return
        raise AssertionError(f"{message} came")

    async def do_told(self, fields: dict) -> None:
        subscription = self.subscriptions[fields["of"]]
        until = time.monotonic() + STEP_SECONDS - 1
        while time.monotonic() < until:
            for position, event in enumerate(subscription.events):
                if matches(event, fields["event"]):
                    del subscription.events[: position + 1]
                    return
            with contextlib.suppress(asyncio.TimeoutError):
                message = await asyncio.wait_for(anext(subscription.inner), 0.1)
                subscription.waiting.append(message)
        raise AssertionError(f"{fields['event']} was not told, but {subscription.events}")

    async def do_ends(self, fields: dict) -> None:
        subscription = self.subscriptions[fields["of"]]
        async for _ in subscription.inner:
            pass

    async def do_ack(self, fields: dict) -> None:
        for message in self.named(fields):
            message.ack()

    async def do_nack(self, fields: dict) -> None:
        for message in self.named(fields):
            message.nack(fields.get("delayMs", 0) / 1000)

    def named(self, fields: dict) -> list[sealane.Message]:
        subscription = self.subscriptions[fields["of"]]
        if "numbers" not in fields:
            return subscription.last
        return [subscription.by_number[number] for number in fields["numbers"]]

    async def do_close(self, fields: dict) -> None:
        name = fields["of"]
        if name in self.subscriptions:
            await self.subscriptions[name].inner.close()
        elif name in self.publishers:
            await self.publishers[name].close()
        elif name in self.agents:
            self.agents[name].cancel()
        else:
            await self.clients[name].close()

    async def do_range(self, fields: dict) -> object:
        chosen = options(fields, "to", "by", "is", "numbers")
        page = await self.client(fields).page(fields["to"], **chosen)
        if "numbers" in fields:
            self.case.assertEqual([one.body["n"] for one in page.messages], fields["numbers"])
        return {"next": page.next.offset, "generation": page.next.generation, "end": page.end}

    async def do_streams(self, fields: dict) -> None:
        found = self.client(fields).streams(fields.get("pattern"), limit=fields.get("limit"))
        names = [state["stream"] async for state in found]
        self.case.assertEqual(names, fields["names"])

    async def do_request(self, fields: dict) -> object:
        chosen = options(fields, "to", "envelope", "by", "is")
        answer = await self.client(fields).request(fields["to"], fields["envelope"], **chosen)
        return answer.body

    async def do_reply(self, fields: dict) -> None:
        client = self.client(fields)
        consumer = fields.get("consumer", "agent")

        async def serve() -> None:
            async for asked in client.subscribe(fields["to"], consumer=consumer, ack="auto"):
                await client.reply(asked, fields["answer"])

        self.agents[fields["as"]] = asyncio.create_task(serve())

    async def do_ticket(self, fields: dict) -> object:
        return await self.client(fields).ticket()


@needs_hub
class TestScripts(unittest.TestCase):
    def test_every_script_of_vectors_clients_is_kept(self):
        paths = sorted(SCRIPTS.glob("*.json"))
        if not paths:
            self.skipTest("NOT RUN: vectors/clients has no scripts")
        # They wait more than they work.
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for path, failure in zip(paths, pool.map(self.failure, paths)):
                with self.subTest(path.stem):
                    if failure is not None:
                        raise failure

    def failure(self, path: Path) -> BaseException | None:
        script = json.loads(path.read_text())
        if "python" in script.get("not", {}):
            return None
        try:
            asyncio.run(Script(self, script).run(), debug=False)
        except BaseException as failure:
            return failure
        return None


if __name__ == "__main__":
    unittest.main()

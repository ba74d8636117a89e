"""A hub that lies: each lie is a named error, and nothing is left half open."""

from __future__ import annotations

import asyncio
import contextlib
import json
import unittest

import sealane
from sealane import refusals
from sealane.codec import codec
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

FEATURES = ["batch", "nack-delay", "seek", "sealed", "publish", "session-next"]
SUBSCRIBED = {
    "status": "subscribed",
    "stream": "a",
    "generation": 7,
    "offset": 0,
    "recovered": True,
    "codec": "json",
    "level": "disk",
    "sealed": None,
    "time": 1_800_000_000_000,
    "features": FEATURES,
}
PATTERN = {
    "status": "subscribed",
    "stream": "p/*",
    "codec": "json",
    "time": 1_800_000_000_000,
    "features": FEATURES,
}
#: Wait for what the client sends.
WAIT = object()
CREDIT = {"credit": 9, "bytes": 999}
SESSION = {"session": "s", "codec": "json", "time": 1_800_000_000_000, "features": FEATURES}


def deliver(offset: int, stream: str = "a", generation: int = 7, **other) -> dict:
    frame = {"deliver": {"id": "x"}, "stream": stream, "offset": offset, "generation": generation}
    return {**frame, "attempt": 1, "storedMs": 1_800_000_000_000, **other}


def joined(offset: int, stream: str = "p/1", recovered: bool = True, generation: int = 7) -> dict:
    place = {"stream": stream, "generation": generation, "offset": offset}
    return {"status": "joined", **place, "recovered": recovered, "level": "disk", "sealed": None}


class LyingHub:
    """Sends on each connection the frames of its turn, once it was asked for something."""

    def __init__(self, *turns: list) -> None:
        self._turns = list(turns)
        self.paths: list[str] = []
        self.asked: list[list[dict]] = []

    async def __aenter__(self) -> LyingHub:
        self._server = await serve(self._serve, "127.0.0.1", 0)
        self.address = "127.0.0.1:%d" % next(iter(self._server.sockets)).getsockname()[1]
        return self

    async def __aexit__(self, *failure: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, connection: ServerConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            await self._talk(connection)

    async def _talk(self, connection: ServerConnection) -> None:
        self.paths.append(connection.request.path)
        asked: list[dict] = []
        self.asked.append(asked)
        turn = self._turns.pop(0) if self._turns else [SUBSCRIBED]
        first, *frames = turn
        await connection.send(written(first))
        if frames and "status" in first:
            while not any("credit" in one for one in asked):
                asked.append(json.loads(await connection.recv()))
        for frame in frames:
            if frame is None:
                return
            if frame is WAIT:
                asked.append(json.loads(await connection.recv()))
            else:
                await connection.send(written(frame))
        async for frame in connection:
            asked.append(json.loads(frame))


def written(frame) -> str | bytes:
    return frame if isinstance(frame, (str, bytes)) else json.dumps(frame)


class Case(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.unheard: list[dict] = []

    async def asyncSetUp(self) -> None:
        loop = asyncio.get_running_loop()
        loop.slow_callback_duration = 60  # A loaded machine is none of ours.
        loop.set_exception_handler(lambda _, context: self.unheard.append(context))

    async def asyncTearDown(self) -> None:
        self.assertEqual(self.unheard, [])

    async def read(self, hub: LyingHub, topic: str = "a", count: int = 99, **options) -> list:
        """What a loop gets, and the code of the error that ends it."""
        got: list = []
        options = {"start": "first", **options}
        told = lambda event: got.append(event)  # noqa: E731
        async with sealane.AsyncClient(hub.address, token="", patience=1) as client:
            subscription = client.subscribe(topic, on_event=told, **options)
            try:
                async for message in subscription:
                    got.append((message.stream, message.offset))
                    if len([one for one in got if type(one) is tuple]) == count:
                        break
            except sealane.SealaneError as error:
                got.append(error.code)
                # The loop ends for good, and by the same error.
                with self.assertRaises(type(error)):
                    await anext(subscription)
        return [one for one in got if one != sealane.Connected()]


class TestReaders(Case):
    async def ends(self, frames: list, got: list, topic: str = "a", **options) -> None:
        async with LyingHub(frames) as hub:
            self.assertEqual(await self.read(hub, topic, **options), got)

    async def test_a_frame_that_is_cut_or_changed_is_named(self):
        good = json.dumps(deliver(0))
        for bad in (
            good[:-9],
            good + "}",
            good.encode(),
            "[1]",
            '{"deliver": NaN}',
            '"' + "\\ud800",
            "[" * 100_000,
            {"batch": 7},
            {"batch": [{"deliver": {}}]},
            deliver(0, deliver=[]),
            {**deliver(0), "offset": "0"},
            {**deliver(0), "offset": True},
            {**deliver(0), "offset": 0.0},
            {**deliver(0), "generation": None},
            {**deliver(0), "attempt": "1"},
            {**deliver(0), "storedMs": None},
            {**deliver(0), "stream": 7},
            {"status": "gap", "stream": "a", "from": -1, "to": 0, "reason": "retention"},
            {"status": "joined", "stream": "a", "generation": 7, "offset": 0, "recovered": 1},
        ):
            with self.subTest(repr(bad)[:60]):
                await self.ends([SUBSCRIBED, bad], ["NotTheProtocol"])

    async def test_what_comes_before_a_bad_frame_is_handed_out(self):
        frames = [SUBSCRIBED, {"batch": [deliver(0), deliver(1), {**deliver(2), "offset": "2"}]}]
        await self.ends(frames, [("a", 0), ("a", 1), "NotTheProtocol"])

    async def test_more_than_was_asked_for_is_refused_whole(self):
        frames = [SUBSCRIBED, {"batch": [deliver(n) for n in range(4)]}]
        await self.ends(frames, ["NotTheProtocol"], credit=3)
        frames = [SUBSCRIBED, deliver(0), {"batch": [deliver(1), deliver(2)]}]
        await self.ends(frames, [("a", 0), "NotTheProtocol"], credit=1)

    async def test_offsets_that_do_not_follow_are_named(self):
        for bad in (deliver(2), deliver(0), deliver(1, generation=6)):
            with self.subTest(bad):
                await self.ends([SUBSCRIBED, deliver(0), bad], [("a", 0), "NotTheProtocol"])

    async def test_a_gap_that_does_not_follow_is_named(self):
        gap = {"status": "gap", "stream": "a", "reason": "retention"}
        for place in ({"from": 3, "to": 5}, {"from": 0, "to": 5}, {"from": 1, "to": 0}):
            with self.subTest(place):
                frames = [SUBSCRIBED, deliver(0), {**gap, **place}]
                await self.ends(frames, [("a", 0), "NotTheProtocol"])
        frames = [SUBSCRIBED, deliver(0), {**gap, "from": 1, "to": 5}, deliver(6), deliver(6)]
        gone = sealane.Gap("a", 1, 5, "retention")
        await self.ends(frames, [("a", 0), gone, ("a", 6), "NotTheProtocol"])

    async def test_a_stream_that_was_not_asked_for_is_named(self):
        await self.ends([SUBSCRIBED, deliver(0, "b")], ["NotTheProtocol"])
        await self.ends([{**SUBSCRIBED, "stream": "b"}], ["NotTheProtocol"])
        await self.ends([PATTERN, joined(0, "q/1")], ["NotTheProtocol"], "p/*")
        await self.ends([PATTERN, deliver(0, "p/1")], ["NotTheProtocol"], "p/*")
        frames = [{**SUBSCRIBED, "stream": "p/*"}, deliver(0, "q/1")]
        await self.ends(frames, ["NotTheProtocol"], "p/*", start=None, consumer="c")

    async def test_a_first_frame_that_is_another_is_named(self):
        for first in ({"heartbeat": 1}, {"status": "joined"}, {**SUBSCRIBED, "offset": -1}):
            with self.subTest(first):
                await self.ends([first], ["NotTheProtocol"])

    async def test_what_a_newer_hub_sends_is_passed_over_and_costs_nothing(self):
        odd = [{"status": "moved"}, {"news": 1}, {"heartbeat": 5}]
        batch = {"batch": [{"news": 2}, deliver(0, lease=3), {"news": 3}]}
        frames = [{**SUBSCRIBED, "more": 1}, *odd, batch, deliver(1)]
        async with LyingHub(frames) as hub:
            self.assertEqual(await self.read(hub, count=2, credit=2), [("a", 0), ("a", 1)])

    async def test_a_code_of_a_newer_hub_is_shown_and_ends_the_loop(self):
        error = {"code": "Renovation", "message": "come in spring", "hint": "wait"}
        await self.ends([SUBSCRIBED, {"error": error}], ["Renovation"])
        await self.ends([SUBSCRIBED, {"error": 7}], ["HubError"])


class TestCodecs(unittest.TestCase):
    def test_what_is_no_value_of_its_codec_is_named(self):
        for name in ("json", "msgpack", "cbor"):
            one = codec(name)
            good = one.encode({"batch": [{"deliver": {"text": "ä"}}]})
            bad = [good[:cut] for cut in range(len(good))] + [good + b"\x01", b"\xff" * 9]
            for data in bad:
                with self.subTest((name, data)), self.assertRaises(sealane.NotTheProtocol):
                    one.read_map(data.decode("latin-1") if one.text else data)
            with self.assertRaises(sealane.NotTheProtocol):
                one.read_map(good if one.text else good.decode("latin-1"))

    def test_items_are_what_the_codec_would_write(self):
        for name in ("json", "msgpack", "cbor"):
            one = codec(name)
            for count in (1, 20, 70):
                fields = [one.field("to", one.encode("a/ä"))]
                fields.append(one.field("envelope", one.encode({"id": "x"})))
                item = one.item(7, 2, one.fields(fields))
                frame = one.publish([item] * count)
                read = one.read(frame.decode() if one.text else frame)
                item = {"n": 7, "to": "a/ä", "envelope": {"id": "x"}}
                self.assertEqual(read, {"publish": [item] * count})

    def test_what_cannot_be_written_is_refused_here(self):
        with self.assertRaises(ValueError):
            codec("json").encode({"n": float("nan")})
        with self.assertRaises(ValueError):
            codec("protobuf")


class TestResuming(Case):
    async def test_a_reader_goes_on_behind_its_last_message(self):
        on = {**SUBSCRIBED, "offset": 2, "generation": 8}
        turns = [SUBSCRIBED, deliver(0), deliver(1), None], [on, deliver(2, generation=8)]
        async with LyingHub(*turns) as hub:
            again = sealane.Reconnecting("NotReachable")
            expected = [("a", 0), ("a", 1), again, ("a", 2)]
            self.assertEqual(await self.read(hub, count=3), expected)
        self.assertIn("from=2&generation=7", hub.paths[1])

    async def test_a_hub_that_lies_about_where_it_goes_on_is_named(self):
        turns = [SUBSCRIBED, deliver(0), None], [{**SUBSCRIBED, "offset": 5}]
        async with LyingHub(*turns) as hub:
            again = sealane.Reconnecting("NotReachable")
            self.assertEqual(await self.read(hub), [("a", 0), again, "NotTheProtocol"])

    async def test_a_stream_that_was_removed_meanwhile_is_told(self):
        gone = {**SUBSCRIBED, "generation": 0, "level": ""}
        begin = joined(0, "a", generation=9)
        turns = [SUBSCRIBED, deliver(0), None], [gone, begin, deliver(0, generation=9)]
        async with LyingHub(*turns) as hub:
            told = sealane.Reconnecting("NotReachable"), sealane.Unrecovered("a", 0, 0)
            self.assertEqual(await self.read(hub, count=2), [("a", 0), *told, ("a", 0)])

    async def test_lost_messages_are_told(self):
        on = {**SUBSCRIBED, "offset": 5, "recovered": False}
        turns = [SUBSCRIBED, deliver(0), None], [on, deliver(5)]
        async with LyingHub(*turns) as hub:
            told = sealane.Reconnecting("NotReachable"), sealane.Unrecovered("a", 5, 7)
            self.assertEqual(await self.read(hub, count=2), [("a", 0), *told, ("a", 5)])

    async def test_each_stream_of_a_pattern_is_sought_before_the_first_credit(self):
        begin = [PATTERN, joined(0), deliver(0, "p/1"), joined(3, "p/2"), deliver(3, "p/2"), None]
        on = [PATTERN, joined(1), joined(4, "p/2"), deliver(4, "p/2"), deliver(1, "p/1")]
        async with LyingHub(begin, on) as hub:
            got = await self.read(hub, "p/*", count=4, start="new")
        self.assertEqual(
            [one for one in got if type(one) is tuple],
            [("p/1", 0), ("p/2", 3), ("p/2", 4), ("p/1", 1)],
        )
        self.assertIn("from=%401800000000000", hub.paths[1])
        seeks = [{"stream": "p/1", "offset": 1, "generation": 7}]
        seeks += [{"stream": "p/2", "offset": 4, "generation": 7}]
        self.assertEqual([one.get("seek") for one in hub.asked[1][:2]], seeks)
        self.assertIn("credit", hub.asked[1][2])

    async def test_without_seek_what_was_read_is_dropped(self):
        old = {**PATTERN, "features": ["batch"]}
        begin = [old, joined(0), deliver(0, "p/1"), deliver(1, "p/1"), None]
        again = [old, joined(0), *(deliver(n, "p/1") for n in range(4))]
        async with LyingHub(begin, again) as hub:
            got = await self.read(hub, "p/*", count=4)
        self.assertEqual([one for one in got if type(one) is tuple], [("p/1", n) for n in range(4)])
        self.assertFalse([one for one in hub.asked[1] if "seek" in one])

    async def test_a_delayed_refusal_is_held_back_for_a_hub_that_cannot(self):
        old = {**SUBSCRIBED, "features": ["batch"]}
        async with LyingHub([old, deliver(0)]) as hub:
            async with sealane.AsyncClient(hub.address, token="") as client:
                async with client.subscribe("a", consumer="c") as messages:
                    (await anext(messages)).nack(delay=0.2)
                    await asyncio.sleep(0.1)
                    before = list(hub.asked[0])
                    await asyncio.sleep(0.3)
        self.assertFalse([one for one in before if "nack" in one])
        self.assertIn({"nack": [{"from": 0, "to": 0}]}, hub.asked[0])


class TestConsumers(Case):
    async def test_what_was_acknowledged_before_the_connection_ended_is_not_done_again(self):
        again = [SUBSCRIBED, deliver(0, attempt=2), deliver(1, attempt=2), deliver(2)]
        async with LyingHub([SUBSCRIBED, deliver(0), None], again) as hub:
            got = []
            async with sealane.AsyncClient(hub.address, token="") as client:
                async for message in client.subscribe("a", consumer="c", ack="auto"):
                    got.append((message.offset, message.attempt))
                    if message.offset == 2:
                        break
        self.assertEqual(got, [(0, 1), (1, 2), (2, 1)])
        acked = [one["ack"] for one in hub.asked[1] if "ack" in one]
        self.assertEqual(acked[0][0]["from"], 0)

    async def test_a_consumer_that_was_set_back_does_it_again(self):
        async with LyingHub([SUBSCRIBED, deliver(0), None], [SUBSCRIBED, deliver(0)]) as hub:
            async with sealane.AsyncClient(hub.address, token="") as client:
                messages = client.subscribe("a", consumer="c", ack="auto")
                self.assertEqual([(await anext(messages)).offset for _ in range(2)], [0, 0])


def stored(**fields) -> dict:
    place = {"stream": "a", "offset": 0, "generation": 7, "level": "disk"}
    return {"published": {**place, **fields}}


def refused(code: str, **fields) -> dict:
    following = {"next": fields.pop("next")} if "next" in fields else {}
    error = {"code": code, "message": "no", "hint": "", "ref": "", **following}
    return {"refused": {"stream": "a", **fields, "error": error}}


class TestPublishers(Case):
    async def publish(self, hub: LyingHub, count: int = 1, **options) -> list:
        """The offsets of the answers, or the codes of the errors."""
        async with sealane.AsyncClient(hub.address, token="", patience=1) as client:
            publisher = client.publisher(**options)
            receipts = [await publisher.send("a", {"n": n}) for n in range(count)]
            answers = await asyncio.gather(*receipts, return_exceptions=True)
        return [one.offset if isinstance(one, tuple) else one.code for one in answers]

    def numbers(self, hub: LyingHub, connection: int = 0) -> list[tuple[int, int]]:
        """Each message that was sent: its number in the session, and the one in its body."""
        frames = [one["publish"] for one in hub.asked[connection] if "publish" in one]
        return [(item["n"], item["envelope"]["n"]) for frame in frames for item in frame]

    async def test_answers_to_what_was_not_sent_are_named(self):
        for bad in (
            stored(n=2),
            stored(n=1, stream="b"),
            stored(**{"from": 1, "to": 1 << 60}),
            stored(**{"from": 2, "to": 1}),
            stored(n=1, offset=None),
            stored(n=1, level=4),
            {"published": 5},
            {"refused": []},
            refused("TooLarge", n=5),
            {"credit": -1, "bytes": 0},
            {"credit": 1},
        ):
            with self.subTest(repr(bad)):
                async with LyingHub([SESSION, CREDIT, WAIT, bad]) as hub:
                    self.assertEqual(await self.publish(hub), ["NotTheProtocol"])

    async def test_a_first_frame_that_is_no_session_is_named(self):
        for first in (SUBSCRIBED, {"session": 7}, CREDIT):
            with self.subTest(first):
                async with LyingHub([first]) as hub:
                    self.assertEqual(await self.publish(hub), ["NotTheProtocol"])

    async def test_credit_is_kept_in_messages_and_in_bytes(self):
        few = {"credit": 2, "bytes": 999}
        more = [stored(**{"from": 1, "to": 2}), few, WAIT, stored(n=3, offset=2)]
        async with LyingHub([SESSION, few, WAIT, *more]) as hub:
            self.assertEqual(await self.publish(hub, 3), [0, 1, 2])
        self.assertEqual([len(one["publish"]) for one in hub.asked[0]], [2, 1])
        turn = [SESSION, {"credit": 9, "bytes": 1}, WAIT, stored(n=1), {"credit": 1, "bytes": 60}]
        async with LyingHub([*turn, WAIT, stored(n=2)]) as hub:
            await self.publish(hub, 2)
        self.assertEqual([len(one["publish"]) for one in hub.asked[0]], [1, 1])

    async def test_what_was_not_answered_goes_out_again_with_its_numbers(self):
        again = [SESSION, CREDIT, WAIT, stored(n=2, offset=1, replayed=True), stored(n=3, offset=2)]
        turns = [SESSION, CREDIT, WAIT, stored(n=1), None], again
        async with LyingHub(*turns) as hub:
            self.assertEqual(await self.publish(hub, 3), [0, 1, 2])
        self.assertIn("session=s", hub.paths[1])
        self.assertEqual(self.numbers(hub, 1), [(2, 1), (3, 2)])

    async def test_what_follows_a_refused_message_is_numbered_anew_in_its_order(self):
        # Answers of one stream may come in another order than its messages.
        skipped = refused("NumberSkipped", **{"from": 3, "to": 4}, next=2)
        turn = [SESSION, CREDIT, WAIT, skipped, stored(n=1), refused("TooLarge", n=2), WAIT]
        async with LyingHub([*turn, stored(**{"from": 2, "to": 3}, offset=1)]) as hub:
            self.assertEqual(await self.publish(hub, 4), [0, "TooLarge", 1, 2])
        self.assertEqual(self.numbers(hub), [(1, 0), (2, 1), (3, 2), (4, 3), (2, 2), (3, 3)])

    async def test_a_hub_that_forgot_the_session_is_told_all_again(self):
        turn = [SESSION, CREDIT, WAIT, stored(n=1), WAIT]
        turn += [refused("NumberSkipped", n=2, next=1), WAIT, stored(n=1, offset=0)]
        async with LyingHub(turn) as hub:
            async with sealane.AsyncClient(hub.address, token="") as client:
                for number in range(2):
                    self.assertEqual((await client.publish("a", {"n": number})).offset, 0)
        self.assertEqual(self.numbers(hub), [(1, 0), (2, 1), (1, 1)])

    async def test_a_hub_that_always_lacks_numbers_is_named(self):
        lacks = [WAIT, refused("NumberSkipped", n=1, next=1)] * 9
        async with LyingHub([SESSION, CREDIT, *lacks]) as hub:
            self.assertEqual(await self.publish(hub), ["NotTheProtocol"])

    async def test_numbers_that_are_taken_hold_up_nothing(self):
        turn = [SESSION, CREDIT, WAIT, refused("KeyReused", n=1), stored(n=2, offset=4)]
        async with LyingHub(turn) as hub:
            self.assertEqual(await self.publish(hub, 2), ["KeyReused", 4])

    async def test_a_named_session_asks_for_its_next_number(self):
        on = {**SESSION, "stream": "a", "next": 6}
        async with LyingHub([SESSION], [on, CREDIT, WAIT, stored(n=6, offset=5)]) as hub:
            self.assertEqual(await self.publish(hub, session="s"), [5])
        self.assertIn("stream=a", hub.paths[1])
        old = {**on, "features": ["batch"]}
        async with LyingHub([SESSION], [old]) as hub:
            self.assertEqual(await self.publish(hub, session="s"), ["FeatureMissing"])

    async def test_a_failure_at_which_nobody_looked_is_raised_at_the_end(self):
        turn = [SESSION, CREDIT, WAIT, refused("TooLarge", n=1)]
        async with LyingHub(turn) as hub:
            with self.assertRaises(refusals.TooLarge):
                async with sealane.AsyncClient(hub.address, token="") as client:
                    await client.publisher().send("a", {"n": 0})
        async with LyingHub(turn) as hub:
            self.assertEqual(await self.publish(hub), ["TooLarge"])


if __name__ == "__main__":
    unittest.main()

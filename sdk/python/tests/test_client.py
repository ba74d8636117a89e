"""Both faces of the client against a real hub: what the shared scripts do not ask."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
import unittest
from datetime import datetime, timedelta, timezone

import sealane
from hub import PATIENCE, HubProcess, needs_hub
from sealane import refusals
from sealane.places import matches
from sealane.subscription import MAX_CREDIT


class Case(unittest.TestCase):
    hub: HubProcess

    @classmethod
    def setUpClass(cls) -> None:
        cls.hub = HubProcess()
        cls.addClassCleanup(cls.hub.close)

    def client(self, **options) -> sealane.Client:
        client = sealane.Client(**{**self.hub.options(), **options})
        self.addCleanup(client.close)
        return client

    def run_async(self, work, **options):
        """Runs `work(client)`; an error that nobody took fails the test."""
        unheard: list[dict] = []

        async def main():
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, context: unheard.append(context))
            async with sealane.AsyncClient(**{**self.hub.options(), **options}) as client:
                result = await work(client)
            left = asyncio.all_tasks() - {asyncio.current_task()}
            if left:
                await asyncio.wait(left, timeout=PATIENCE)
            self.assertFalse([task for task in left if not task.done()])
            return result

        result = asyncio.run(main())
        gc.collect()
        self.assertEqual(unheard, [])
        return result

    def until(self, holds, what: str) -> None:
        end = time.monotonic() + PATIENCE
        while not holds():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.02)


@needs_hub
class TestPlain(Case):
    def test_a_loop_reads_what_is_published(self):
        client = self.client()
        with client.subscribe("plain/*", start="new") as messages:
            with client.publisher() as publisher:
                receipts = [publisher.send(f"plain/{n % 3}", {"n": n}) for n in range(600)]
            self.assertEqual(receipts[-1].result().offset, 199)
            got = [next(messages) for _ in range(600)]
            for name in range(3):
                stream = [one for one in got if one.stream == f"plain/{name}"]
                self.assertEqual([one.offset for one in stream], list(range(200)))
                self.assertEqual([one.body["n"] for one in stream], list(range(name, 600, 3)))
            with self.assertRaises(TimeoutError):
                messages.next(timeout=0.05)
            client.publish("plain/0", {"n": 600})
            self.assertEqual(messages.next(PATIENCE).body["n"], 600)

    def test_a_refusal_is_the_error_of_its_code(self):
        client = self.client()
        with self.assertRaises(refusals.InvalidTopic) as caught:
            client.publish("a//b", {})
        self.assertEqual(caught.exception.code, "InvalidTopic")
        self.assertTrue(caught.exception.hint and caught.exception.ref.startswith("SL-"))
        with self.assertRaises(refusals.OffsetMismatch) as caught:
            client.publish("refusals", {}, expect=7)
        self.assertEqual(caught.exception.next, 0)
        with self.assertRaises(refusals.UnknownStream) as caught:
            client.stream("nothing")
        self.assertEqual(caught.exception.status, 404)
        with self.assertRaises(refusals.InvalidEnvelope), client.publisher() as publisher:
            publisher.send("refusals", {"id": 7})

    def test_a_message_with_a_key_is_stored_once(self):
        client = self.client()
        first = client.publish("keys", {"n": 1}, key="k")
        again = client.publish("keys", {"n": 1}, key="k")
        self.assertEqual((first.offset, first.replayed), (0, False))
        self.assertEqual((again.offset, again.id, again.replayed), (0, first.id, True))
        with self.assertRaises(refusals.KeyReused):
            client.publish("keys", {"n": 2}, key="k")

    def test_delays_and_times_are_those_of_python(self):
        client = self.client()
        held = client.publish("times", {"id": "late"}, delay=timedelta(hours=1))
        left = held.due - datetime.now(timezone.utc)
        self.assertLess(abs(left - timedelta(hours=1)), timedelta(minutes=1))
        self.assertEqual([one["id"] for one in client.delayed("times")], ["late"])
        self.assertEqual(client.cancel_delayed("times", "late")["cancelled"], 1)
        client.publish("times", {"n": 0})
        start = datetime.now(timezone.utc) - timedelta(minutes=5)
        for stop, count in ((None, 1), (start, 0), (datetime.now(timezone.utc) + timedelta(1), 1)):
            self.assertEqual(len(list(client.range("times", start=start, stop=stop))), count)
        with client.subscribe("times", start=start) as messages:
            self.assertLess(messages.next(PATIENCE).stored - start, timedelta(minutes=10))

    def test_bytes_stay_bytes_in_binary_codecs(self):
        for codec in ("msgpack", "cbor"):
            client = self.client(codec=codec)
            body = {"id": "x", "raw": bytes(range(256)), "one": 1.0}
            client.publish(f"bytes/{codec}", body)
            client.publish_batch(f"bytes/{codec}", [body])
            got = [one.body for one in client.range(f"bytes/{codec}")]
            self.assertEqual(got, [body, body])
            self.assertIs(type(got[0]["one"]), float)
            with client.subscribe(f"bytes/{codec}", start="first") as messages:
                self.assertEqual(messages.next(PATIENCE).body, body)

    def test_streams_and_consumers_are_shown_and_steered(self):
        client = self.client()
        client.set_stream("kept", max_count=5, max_age=timedelta(days=1))
        self.assertEqual(client.stream("kept")["maxAgeMs"], 86_400_000)
        client.publish_batch("kept", [{"n": n} for n in range(3)])
        with client.subscribe("kept", consumer="c", ack="auto") as messages:
            self.assertEqual(next(messages).offset, 0)
            self.assertEqual(client.consumer("kept", "c")["inFlight"], 1)
        info = client.steer_consumer("kept", "c", "reset", "new")
        self.assertEqual((info["next"], info["lag"]), (3, 0))
        client.remove_consumer("kept", "c")
        self.assertEqual(client.purge("kept", "new")["purged"], 3)
        self.assertEqual([one["stream"] for one in client.streams("kept")], ["kept"])
        client.remove_stream("kept")
        self.assertEqual(client.health()["status"], "healthy")

    def test_a_client_is_used_by_several_threads(self):
        client = self.client()

        def work(name: int) -> None:
            for n in range(20):
                client.publish("threads", {"t": name, "n": n})

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        bodies = [one.body for one in client.range("threads")]
        for name in range(4):
            numbers = [body["n"] for body in bodies if body["t"] == name]
            self.assertEqual(numbers, list(range(20)))

    def test_a_closed_client_takes_nothing_more(self):
        client = self.client()
        messages = client.subscribe("closed", start="new")
        publisher = client.publisher()
        client.close()
        client.close()
        for used in (
            lambda: client.publish("closed", {}),
            lambda: client.subscribe("closed"),
            lambda: publisher.send("closed", {}),
            lambda: next(messages),
            client.health,
        ):
            with self.assertRaises((sealane.Ended, StopIteration)):
                used()
        self.assertFalse(client._thread._thread.is_alive())

    def test_a_loop_that_was_left_lets_go_of_its_connection(self):
        client = self.client()
        client.publish_batch("left", [{"n": n} for n in range(3)])
        for message in client.subscribe("left", consumer="c"):
            message.ack()
            break
        self.until(lambda: client.consumer("left", "c")["members"] == 0, "the member has gone")
        self.assertEqual(client.consumer("left", "c")["unfinished"], 2)

    def test_a_hub_that_is_away_is_named_within_the_patience(self):
        client = sealane.Client("127.0.0.1:1", token="", patience=0.2)
        self.addCleanup(client.close)
        for used in (
            lambda: client.publish("a", {}),
            lambda: next(client.subscribe("a", start="new")),
            client.health,
        ):
            with self.assertRaises(sealane.NotReachable):
                used()

    def test_what_is_no_address_is_named_at_once(self):
        for address in ("ftp://a", "http://", "://"):
            with self.assertRaises(ValueError):
                sealane.AsyncClient(address)


@needs_hub
class TestAsyncio(Case):
    def test_credit_follows_the_loop(self):
        async def work(client: sealane.AsyncClient):
            async with client.publisher() as publisher:
                for n in range(5000):
                    await publisher.send("credit", {"n": n})
            async with client.subscribe("credit", start="first") as slow:
                for n in range(5000):
                    self.assertEqual((await anext(slow)).offset, n)
                    if n in (0, 40, 2000):
                        reader = (await client.stream("credit"))["connections"][0]
                        asked = reader["delivered"] + reader["credit"]
                        self.assertLessEqual(asked, n + 1 + 2 * MAX_CREDIT)
                        self.assertLessEqual(len(slow._queue), MAX_CREDIT)

        self.run_async(work)

    def test_a_slow_loop_holds_up_nobody_else(self):
        async def work(client: sealane.AsyncClient):
            publisher = client.publisher()
            slow = client.subscribe("slow", start="new")
            fast = [client.subscribe("slow", start="new") for _ in range(5)]
            for one in (slow, *fast):
                await one.__aenter__()
            body = {"text": "x" * 1000}
            receipts = [await publisher.send("slow", body) for _ in range(3000)]
            await anext(slow)
            for one in fast:
                for n in range(3000):
                    self.assertEqual((await anext(one)).offset, n)
            await asyncio.gather(*receipts)
            self.assertEqual((await anext(slow)).offset, 1)

        self.run_async(work)

    def test_a_loop_that_was_left_is_closed_before_the_client_is(self):
        async def work(client: sealane.AsyncClient):
            await client.publish_batch("leave", [{"n": n} for n in range(3)])
            for _ in range(3):
                async for message in client.subscribe("leave", consumer="c"):
                    message.ack()
                    break
            return client._endpoint.closing

        self.assertEqual(self.run_async(work), set())
        self.assertEqual(self.client().consumer("leave", "c")["unfinished"], 0)

    def test_a_cancelled_wait_loses_nothing(self):
        async def work(client: sealane.AsyncClient):
            async with client.subscribe("cancel", start="new") as messages:
                for n in range(20):
                    with self.assertRaises(asyncio.TimeoutError):
                        await asyncio.wait_for(anext(messages), 0.005)
                    await client.publish("cancel", {"n": n})
                    self.assertEqual((await anext(messages)).body["n"], n)

        self.run_async(work)

    def test_a_cancelled_publish_leaves_the_others_in_order(self):
        async def work(client: sealane.AsyncClient):
            tasks = [asyncio.create_task(client.publish("gone", {"n": n})) for n in range(50)]
            await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            numbers = [one.body["n"] async for one in client.range("gone")]
            self.assertEqual(numbers, sorted(numbers))
            self.assertLessEqual(set(range(1, 50, 2)), set(numbers))

        self.run_async(work)

    def test_a_worker_that_is_slow_holds_few_messages(self):
        async def work(client: sealane.AsyncClient):
            await client.publish_batch("few", [{"n": n} for n in range(100)])
            async with client.subscribe("few", consumer="c", ack="auto", ack_wait=2) as jobs:
                for _ in range(6):
                    await anext(jobs)
                    await asyncio.sleep(0.1)
                # A quarter of two seconds is five of them, and what is being done.
                self.assertLessEqual((await client.consumer("few", "c"))["held"], 8)

        self.run_async(work)

    def test_a_token_may_be_asked_for_on_each_connection(self):
        asked = []

        async def token():
            asked.append(1)
            return ""

        async def work(client: sealane.AsyncClient):
            await client.publish("asked", {})
            await client.health()

        self.run_async(work, token=token)
        self.assertEqual(len(asked), 2)

    def test_losses_are_logged_where_nobody_listens(self):
        async def work(client: sealane.AsyncClient):
            await client.publish_batch("lost", [{"n": n} for n in range(9)])
            async with client.subscribe("lost", start="first", credit=1) as messages:
                await anext(messages)
                await client.purge("lost", 5)
                with self.assertLogs("sealane", logging.WARNING) as told:
                    self.assertEqual((await anext(messages)).offset, 5)
                self.assertIn("Gap(stream='lost', first=1, last=4", told.output[0])

        self.run_async(work)

    def test_requests_are_answered_by_one_of_several(self):
        async def work(client: sealane.AsyncClient):
            async def serve(name: str):
                async for asked in client.subscribe("ask", consumer="all", ack="auto"):
                    await client.reply(asked, {"by": name, "twice": asked.body["n"] * 2})

            agents = [asyncio.create_task(serve(name)) for name in "ab"]
            answers = await asyncio.gather(
                *(client.request("ask", {"n": n}, timeout=PATIENCE) for n in range(20))
            )
            self.assertEqual([one.body["twice"] for one in answers], list(range(0, 40, 2)))
            for agent in agents:
                agent.cancel()
            await asyncio.gather(*agents, return_exceptions=True)
            with self.assertRaises(sealane.NoReply):
                await client.request("ask/nobody", {}, timeout=0.1)
            with self.assertRaises(sealane.NotARequest):
                await client.reply(answers[0], {})
            return answers[0].stream

        answers = self.run_async(work)
        with self.assertRaises(refusals.UnknownStream):
            self.client().stream(answers)


class TestPatterns(unittest.TestCase):
    def test_patterns_match_as_the_page_says(self):
        for pattern, topic, holds in (
            ("a", "a", True),
            ("a", "b", False),
            ("a/*", "a/b", True),
            ("a/*", "a", False),
            ("a/*", "a/b/c", False),
            ("a/**", "a", True),
            ("a/**", "a/b/c", True),
            ("a/**", "ab", False),
            ("*/b", "a/b", True),
            ("**", "a/b", True),
            ("**", "dead/a", False),
            ("*/a", "groups/a", False),
            ("dead/**", "dead/a", True),
            ("**", "a/dead/b", True),
            ("a/*/c/**", "a/b/c", True),
        ):
            self.assertIs(matches(pattern, topic), holds, (pattern, topic))


if __name__ == "__main__":
    unittest.main()

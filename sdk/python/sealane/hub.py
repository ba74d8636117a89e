"""Publishes to a hub and reads from it, by spec/hub.md, with Python's standard library alone.

    from sealane.hub import Hub

    hub = Hub("127.0.0.1:9087")
    hub.publish("fleet/7/location", {"lat": 48.2})
    for message in hub.follow("fleet/*/location", start="first"):
        print(message["stream"], message["offset"], message["deliver"])

This module imports nothing of the package, so that it can be copied and used without the rest.
"""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

# The hub sends a comment every 15 s when it has nothing else to say.
SILENCE_S = 60
FIRST_WAIT_S = 0.05
MAX_WAIT_S = 5.0
# A line of an event has a message of at most 1 MiB, which JSON may write six times as long.
MAX_LINE_BYTES = 8 << 20
# The statuses that pass by themselves.
LATER = (429, 502, 503, 504)


class HubError(Exception):
    """The hub has refused a request: `code` is a name of docs/reference/ERRORS.md."""

    def __init__(self, status, error):
        self.status = status
        self.code = error.get("code", "")
        self.hint = error.get("hint", "")
        super().__init__(f"{error.get('message', 'refused')} [{self.code}]")


class Hub:
    """A hub at `host:port`, or at a URL with `https://`.

    A request without an answer is sent again for `patience` seconds. A repeated request has the
    idempotency key of the first one, so that nothing is stored twice.
    """

    def __init__(self, address="127.0.0.1:9087", token=None, patience=10.0):
        self._base = address if "://" in address else f"http://{address}"
        self._token = token
        self._patience = patience

    def publish(self, topic, envelope, key=None, expect=None, delay_ms=None):
        """Stores a map, and gives its place once it is stored: id, stream, offset, generation."""
        body = {"to": topic, "envelope": envelope}
        if expect is not None:
            body["expect"] = expect
        if delay_ms is not None:
            body["delayMs"] = delay_ms
        return self._send("/v1/enqueue", body, key)

    def publish_batch(self, topic, envelopes, key=None):
        """Stores maps in one commit, all of them or none."""
        return self._send("/v1/enqueue/batch", {"to": topic, "envelopes": envelopes}, key)

    def read(self, topic, start="first", limit=100):
        """A page of a stream: `messages`, `next`, and `end` if nothing is left."""
        query = urllib.parse.urlencode({"from": start, "limit": limit})
        path = f"/v1/streams/{urllib.parse.quote(topic)}?{query}"
        return self._again(lambda: self._open(path, None, {}))

    def follow(self, pattern, start="new"):
        """Messages of a topic or pattern as they come, without end.

        It connects again by itself and goes on behind the last message. A refusal that does not
        pass by itself is a `HubError`.
        """
        query = urllib.parse.urlencode({"stream": pattern, "from": start})
        last, wait = None, FIRST_WAIT_S
        while True:
            headers = {"Accept": "text/event-stream"}
            if last is not None:
                headers["Last-Event-ID"] = last
            try:
                with self._request(f"/v1/events?{query}", None, headers, SILENCE_S) as reply:
                    for name, data, place in _events(reply):
                        last, wait = place or last, FIRST_WAIT_S
                        if name == "refused":
                            raise HubError(200, json.loads(data).get("error", {}))
                        if name == "message":
                            yield json.loads(data)
            except urllib.error.HTTPError as failure:
                error = _refusal(failure)
                if error.status not in LATER:
                    raise error from None
            except OSError:
                pass  # Nobody answers, or the connection has ended.
            time.sleep(wait)
            wait = min(wait * 2, MAX_WAIT_S)

    def _send(self, path, body, key):
        headers = {"Content-Type": "application/json", "Idempotency-Key": key or uuid.uuid4().hex}
        data = json.dumps(body).encode()
        return self._again(lambda: self._open(path, data, headers))

    def _again(self, ask):
        until, wait = time.monotonic() + self._patience, FIRST_WAIT_S
        while True:
            try:
                return ask()
            except urllib.error.HTTPError as failure:
                error = _refusal(failure)
                if error.status not in LATER or time.monotonic() + wait > until:
                    raise error from None
            except OSError:
                if time.monotonic() + wait > until:
                    raise
            time.sleep(wait)
            wait = min(wait * 2, MAX_WAIT_S)

    def _open(self, path, data, headers):
        with self._request(path, data, headers, max(self._patience, 1)) as reply:
            return json.load(reply)

    def _request(self, path, data, headers, timeout):
        if self._token is not None:
            headers = {**headers, "Authorization": f"Bearer {self._token}"}
        request = urllib.request.Request(self._base + path, data=data, headers=headers)
        return urllib.request.urlopen(request, timeout=timeout)


def _refusal(failure):
    """What a reply that is no success says; a proxy may have said something else than a hub."""
    with failure:
        try:
            error = json.load(failure)["error"]
        except (ValueError, KeyError, TypeError, OSError):
            error = {"message": str(failure)}
    return HubError(failure.code, error if isinstance(error, dict) else {})


def _events(reply):
    """Name, data and id of each event, as the HTML standard says (section 9.2)."""
    name, data, place = "message", [], None
    while line := reply.readline(MAX_LINE_BYTES):
        if not line.endswith(b"\n"):
            raise OSError("an event has no end")
        field, _, value = line.decode().rstrip("\r\n").partition(":")
        value = value.removeprefix(" ")
        if not field and not value:
            # An id alone says where to go on.
            yield (name if data else "place", "\n".join(data), place)
            name, data = "message", []
        elif field == "data":
            data.append(value)
        elif field == "event":
            name = value
        elif field == "id":
            place = value

"""The hub's OpenAPI page through openapi-python-client: python generated.py HOST:PORT

The client is made of the page as the hub serves it. It must be whole, but for the codecs that the
generator does not know, and then publishes and reads.
"""

import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

# The generator writes requests in JSON alone.
CODECS = {"Unsupported content type application/msgpack", "Unsupported content type application/cbor"}


def make(address: str, folder: Path) -> None:
    """Makes the client, and wants no other complaint than the codecs."""
    page = folder / "openapi.json"
    page.write_bytes(urllib.request.urlopen(f"http://{address}/v1/openapi.json").read())
    program = Path(sys.executable).with_name("openapi-python-client")
    settings = folder / "settings.yml"
    # No formatter is asked for: nobody reads what is made.
    settings.write_text("post_hooks: []\n")
    words = [program, "generate", "--meta", "none", "--path", page, "--config", settings]
    made = subprocess.run(
        [*words, "--output-path", folder / "made"], capture_output=True, text=True, check=False
    )
    said = made.stdout + made.stderr
    assert made.returncode == 0, said
    lines = {line.strip() for line in said.splitlines()}
    foreign = [line for line in lines if line.startswith(("Unsupported", "Unable", "Cannot", "ERROR"))]
    assert set(foreign) <= CODECS, said
    for broken in ("Could not find reference", "has resulted in the removal", "Invalid property"):
        assert broken not in said, said


def use(address: str) -> None:
    """Publishes and reads as a user of the made client does."""
    from made import Client
    from made.api.default import enqueue, enqueue_batch, purge_stream, read_stream
    from made.models import Enqueue, EnqueueBatch, Enqueued, Envelope, Page, Purge, Refusal

    hub = Client(base_url=f"http://{address}")
    envelopes = [Envelope.from_dict({"n": n}) for n in range(3)]
    stored = enqueue_batch.sync(client=hub, body=EnqueueBatch(to="made", envelopes=envelopes))
    assert stored.count == 3, stored
    purge_stream.sync("made", client=hub, body=Purge(before=1))
    page = read_stream.sync("made", client=hub, from_="first")
    assert isinstance(page, Page), page
    assert [message.deliver["n"] for message in page.messages] == [1, 2], page
    assert page.end is True
    one = enqueue.sync(client=hub, body=Enqueue(to="made", envelope=envelopes[0]))
    assert isinstance(one, Enqueued) and one.offset == 3, one
    refused = enqueue.sync(client=hub, body=Enqueue(to="a//b", envelope=envelopes[0]))
    assert isinstance(refused, Refusal) and refused.error.code == "InvalidTopic", refused


def tell_apart() -> None:
    """One field says which frame it is."""
    from made.models import Page, StatusGap

    gap = {"status": "gap", "stream": "a", "from": 1, "to": 2, "reason": "retention"}
    rest = {"stream": "a", "generation": 1, "messages": [], "next": 3, "end": True}
    page = Page.from_dict({**rest, "gaps": [gap]})
    assert isinstance(page.gaps[0], StatusGap) and page.gaps[0].reason == "retention", page


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        make(sys.argv[1], Path(name))
        sys.path.insert(0, name)
        use(sys.argv[1])
        tell_apart()
    print("done")

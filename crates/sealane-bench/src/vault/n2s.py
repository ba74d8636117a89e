"""Blobs of n2s as the report describes them: a key for each file, from its path and hash."""

import base64
import hashlib
import json
import os
import sys

import blake3
import lz4.frame
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305


def blob(path: str) -> "tuple[str, bytes]":
    with open(path, "rb") as file:
        content = file.read()
    found = os.stat(path)
    digest = blake3.blake3(content).hexdigest()
    name = blake3.blake3(f"{path}:{digest}".encode()).hexdigest()
    ident = bytes.fromhex(name)
    key = hashlib.pbkdf2_hmac("sha256", b"123456", ident[:16], 100_000, 32)
    sealed = ChaCha20Poly1305(key).encrypt(ident[20:], lz4.frame.compress(content), None)
    metadata = {
        "path": path,
        "size": found.st_size,
        "timestamp": found.st_mtime,
        "file_hash": digest,
    }
    text = {"encrypted_content": base64.b64encode(sealed).decode(), "metadata": metadata}
    return name, json.dumps(text, indent=2).encode()


def main(source: str, target: str) -> None:
    for folder, _, names in os.walk(source):
        for name in names:
            ident, data = blob(os.path.join(folder, name))
            with open(os.path.join(target, ident), "wb") as file:
                file.write(data)


main(sys.argv[1], sys.argv[2])

"""Reads vaults on the command line.

    python -m sealane FOLDER list
    python -m sealane FOLDER restore TARGET

`FOLDER` holds the objects; those of a bucket are copied there first. The secret is asked for, or
comes from the environment: SEALANE_PASSPHRASE or SEALANE_RECOVERY_CODE. `--from-packs` needs no
snapshot and no index: it takes the newest form of every path that any pack tells of.
"""

import argparse
import getpass
import os
import stat
import sys

from .refused import Refused
from .vault import Folder, Vault, chosen, restore

#: Kinds of entries as the system names them.
KINDS = (stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO)


def main() -> int:
    """Runs it; 0 if all was well, 1 if something was refused, 2 if nothing could be read."""
    parser = argparse.ArgumentParser(prog="python -m sealane", description="Reads a vault.")
    parser.add_argument("folder")
    parser.add_argument("--snapshot", type=int, help="its number; else the newest")
    parser.add_argument("--from-packs", action="store_true", help="use no snapshot")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list")
    commands.add_parser("restore").add_argument("target")
    arguments = parser.parse_args()
    try:
        vault = Vault(Folder(arguments.folder), *secrets())
        entries = vault.from_packs() if arguments.from_packs else chosen(vault, arguments.snapshot)
    except Refused as refused:
        print(f"refused: {refused}", file=sys.stderr)
        return 2
    failed = {}
    if arguments.command == "restore":
        failed = restore(vault, entries, arguments.target)
    else:
        for entry in entries:
            mode = stat.filemode(KINDS[entry.kind] | entry.mode)
            print(mode, entry.size, entry.modified_ns, ascii(os.fsdecode(entry.path)))
    for name, code in {**vault.damaged, **failed}.items():
        print(f"{ascii(os.fsdecode(name))}: {code}", file=sys.stderr)
    print(f"{len(entries) - len(failed)} entries, {len(failed)} refused", file=sys.stderr)
    return 1 if failed or vault.damaged else 0


def secrets() -> "tuple[bytes | None, str | None]":
    """The passphrase or the recovery code."""
    code = os.environ.get("SEALANE_RECOVERY_CODE")
    if code is not None:
        return None, code
    passphrase = os.environ.get("SEALANE_PASSPHRASE")
    return os.fsencode(getpass.getpass("Passphrase: ") if passphrase is None else passphrase), None


if __name__ == "__main__":
    sys.exit(main())

"""The root file system of this machine in a vault and back, as root, beside restic.

    servers.py [FOLDER_OF_PROGRAMS]   without it, they are built in the profile `ship`

A lister of its own, which is Python's standard library, compares every entry: kind, mode, owner,
time, device, target, content, extended attributes, and which names are one file. What the machine
itself changed meanwhile is counted and left out. `SEALANE_LEAVE_OUT` names further folders, with
`:` between them; `SEALANE_RESTIC` names the program restic.
"""

import hashlib
import os
import shutil
import stat
import struct
import subprocess
import sys
import time

import lab

ROOT = "/"
# Kernel, memory, and what belongs to other runs.
LEFT_OUT = ["/proc", "/sys", "/dev/shm", "/run", "/tmp", "/work"]
LEAST_ENTRIES = 100_000
PLANTED = "/var/tmp/sealane-servers"
NAMED_DIFFERENCES = 20
BLOCK_BYTES = 1 << 20


def plant():
    """What servers have and this machine may lack: ACLs, capabilities, devices, pipes, links."""
    shutil.rmtree(PLANTED, ignore_errors=True)
    os.makedirs(PLANTED)

    def acl(user):
        rows = [(1, 6, -1), (2, 6, user), (4, 0, -1), (16, 6, -1), (32, 0, -1)]
        return struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *row) for row in rows)

    path = lambda name: os.path.join(PLANTED, name)  # noqa: E731
    for number in range(100):
        with open(path(f"ping{number}"), "w") as file:
            file.write(str(number))
        os.chown(path(f"ping{number}"), number, number + 1)
        os.chmod(path(f"ping{number}"), 0o4755)
        capability = struct.pack("<5I", 0x0200_0001, 1 << 13, 0, 0, 0)
        os.setxattr(path(f"ping{number}"), "security.capability", capability)
        with open(path(f"shared{number}"), "w") as file:
            file.write(str(number))
        os.setxattr(path(f"shared{number}"), "system.posix_acl_access", acl(1000 + number))
        os.setxattr(path(f"shared{number}"), "user.origin", b"x" * number)
        os.mkdir(path(f"folder{number}"))
        os.setxattr(path(f"folder{number}"), "system.posix_acl_default", acl(2000 + number))
        os.mknod(path(f"disk{number}"), stat.S_IFBLK | 0o660, os.makedev(259, number << 12))
        os.mknod(path(f"null{number}"), stat.S_IFCHR | 0o666, os.makedev(1, number))
        os.mkfifo(path(f"pipe{number}"), 0o620)
        os.symlink(f"ping{number}", path(f"link{number}"))
        os.setxattr(path(f"link{number}"), "trusted.of", b"a link", follow_symlinks=False)
        os.link(path(f"null{number}"), path(f"null{number} again"))
        os.link(path(f"ping{number}"), path(f"ping{number} again"))


def content(path):
    found = hashlib.blake2b()
    with open(path, "rb") as file:
        while block := file.read(BLOCK_BYTES):
            found.update(block)
    return found.hexdigest()


def look(path, first_names, root):
    """All that has to come back of one path; none for a socket."""
    found = os.lstat(path)
    kind = stat.S_IFMT(found.st_mode)
    if kind == stat.S_IFSOCK:
        return None
    names = sorted(os.listxattr(path, follow_symlinks=False))
    return (
        oct(found.st_mode),
        found.st_uid,
        found.st_gid,
        found.st_mtime_ns,
        found.st_rdev,
        found.st_size if kind == stat.S_IFREG else 0,
        [(name, os.getxattr(path, name, follow_symlinks=False)) for name in names],
        os.readlink(path) if kind == stat.S_IFLNK else "",
        content(path) if kind == stat.S_IFREG else "",
        "" if kind == stat.S_IFDIR else first_names.setdefault((found.st_dev, found.st_ino), root),
    )


def tree(root, left_out):
    """All paths below a folder with what they are."""
    entries, first_names = {}, {}
    for folder, folders, files in os.walk(root):
        below = lambda name: os.path.join("/", os.path.relpath(os.path.join(folder, name), root))  # noqa: E731,B023
        folders[:] = sorted(name for name in folders if below(name) not in left_out)
        for name in sorted(folders + files):
            if below(name) in left_out:
                continue
            try:
                seen = look(os.path.join(folder, name), first_names, below(name))
            except OSError as error:
                seen = ("unreadable", error.strerror)
            if seen:
                entries[below(name)] = seen
    return entries


def touched(root, left_out):
    """When the system last touched each path: of a file that this changed, nothing is compared."""
    times = {}
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in left_out]
        for path in (os.path.join(folder, name) for name in folders + files):
            try:
                times[path] = os.lstat(path).st_ctime_ns
            except OSError:
                pass
    return times


def run(*command, **variables):
    """Runs a program to its end; how long it took."""
    words = [str(word) for word in command]
    print(f"$ {' '.join(words)}", flush=True)
    begun = time.monotonic()
    done = subprocess.run(words, env={**os.environ, **variables})
    if done.returncode:
        sys.exit(f"it ended with {done.returncode}")
    return time.monotonic() - begun


def size(folder):
    paths = (os.path.join(at, name) for at, _, files in os.walk(folder) for name in files)
    return sum(os.lstat(path).st_size for path in paths)


def with_sealane(program, place, left_out):
    access = ("--vault", place / "kept", "--state", place / "state")
    secret = {"SEALANE_PASSPHRASE": "a passphrase of this run"}
    run(program, "vault", "init", "--no-recovery", *access, **secret)
    excludes = [word for path in left_out for word in ("--exclude", path)]
    put = run(program, "vault", "put", ROOT, *excludes, *access, **secret)
    get = run(program, "vault", "get", "--to", place / "back", *access, **secret)
    return put, get


def with_restic(program, place, left_out):
    access = ("--repo", place / "kept", "--cache-dir", place / "state", "--quiet")
    secret = {"RESTIC_PASSWORD": "a passphrase of this run"}
    run(program, "init", *access, **secret)
    excludes = [f"--exclude={path}" for path in left_out]
    put = run(program, "backup", ROOT, *excludes, *access, **secret)
    get = run(program, "restore", "latest", "--target", place / "back", *access, **secret)
    return put, get


def main():
    if os.geteuid():
        sys.exit("it reads and restores a whole machine: run it as root")
    programs = lab.programs(sys.argv[1:], "ship", ["sealane-cli"])
    place = lab.empty_folder("servers")
    more = [path for path in os.environ.get("SEALANE_LEAVE_OUT", "").split(":") if path]
    left_out = sorted({*LEFT_OUT, str(lab.TARGET), *more})
    ways = [("sealane", with_sealane, programs / "sealane")]
    restic = shutil.which(os.environ.get("SEALANE_RESTIC", "restic"))
    if restic:
        ways.append(("restic", with_restic, restic))
    else:
        print("NOT SHOWN: no restic: apt-get install restic")
    plant()
    try:
        failed = compare(ways, place, left_out)
    finally:
        shutil.rmtree(PLANTED)
        shutil.rmtree(place)
    sys.exit(failed)


def compare(ways, place, left_out):
    """Runs each program and compares; what is wrong, if anything is."""
    before, begun = tree(ROOT, left_out), touched(ROOT, left_out)
    print(f"{len(before)} entries", flush=True)
    failed = None
    for name, way, program in ways:
        (place / name).mkdir()
        put, get = way(program, place / name, left_out)
        back = tree(place / name / "back", [])
        ended = touched(ROOT, left_out)
        steady = {path for path in before if path in begun and begun[path] == ended.get(path)}
        differ = sorted(path for path in steady if back.get(path) != before[path])
        more = sorted(path for path in back if path not in begun and path not in ended)
        print(
            f"{name}: {len(before) - len(steady)} changed meanwhile, {len(differ)} differ, "
            f"{len(more)} too many; put {put:.1f} s, get {get:.1f} s, "
            f"{size(place / name / 'kept') / 1e6:.0f} MB",
            flush=True,
        )
        for path in (differ + more)[:NAMED_DIFFERENCES]:
            print(f"  {path}: {before.get(path)} and {back.get(path)}")
        if name == "sealane" and (differ or more or len(before) < LEAST_ENTRIES):
            failed = "not all came back, or there was too little"
        shutil.rmtree(place / name)
    return failed


if __name__ == "__main__":
    main()

"""What a machine's interfaces carry: recorded, and sent once more.

    wires.py record FOLDER         until the end of standard input; needs root
    wires.py replay FILE SOURCE_PORT TARGET_ADDRESS TARGET_PORT COUNT

`record` writes two captures that tcpdump reads: `outer.pcap` of the wires, `inner.pcap` of the
interfaces that carry IP packets alone. `replay` takes the last frames of an outer capture that went
to a target, and sends them again from this machine with the port of whoever sent them.
"""

import json
import os
import socket
import struct
import sys
import threading
import time

import captures

SNAP_BYTES = 1 << 18
# `linux/if_packet.h`, `linux/if_arp.h`, `linux/if_ether.h`.
SOL_PACKET, PACKET_STATISTICS = 263, 6
ARPHRD_ETHER, ARPHRD_NONE, ARPHRD_LOOPBACK = 1, 65534, 772
ETH_P_ALL = 3
QUEUE_BYTES = 64 << 20
SO_RCVBUFFORCE = 33


def pcap(path, link_type):
    """A new capture. Nothing of it waits in this process: its end may come at any time."""
    file = open(path, "wb", buffering=0)
    file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, SNAP_BYTES, link_type))
    return file


def record(folder):
    os.makedirs(folder, exist_ok=True)
    files = {
        ARPHRD_ETHER: pcap(os.path.join(folder, "outer.pcap"), captures.ETHERNET),
        ARPHRD_NONE: pcap(os.path.join(folder, "inner.pcap"), captures.RAW_IP),
    }
    packets = 0
    ended = threading.Event()
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as wires:
        wires.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, QUEUE_BYTES)
        wires.settimeout(0.1)
        print(json.dumps({"v": 1, "recording": True}), flush=True)
        threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
        while True:
            try:
                packet, (_, _, _, kind, _) = wires.recvfrom(SNAP_BYTES)
            except socket.timeout:
                if ended.is_set():
                    break
                continue
            if kind in files:
                now = time.time_ns() // 1000
                length = len(packet)
                head = struct.pack("<IIII", now // 1_000_000, now % 1_000_000, length, length)
                files[kind].write(head + packet)
                packets += 1
        _, missed = struct.unpack("II", wires.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
    for file in files.values():
        file.close()
    print(json.dumps({"v": 1, "packets": packets, "missed": missed}), flush=True)


def replay(path, source_port, address, port, count):
    frames = [
        unit.payload
        for unit in captures.units(path, port)
        if (unit.target, unit.target_port) == (address, port) and unit.frame is not None
    ]
    frames = frames[-count:]
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP) as wire:
        for frame in frames:
            # Without a checksum (RFC 768), which UDP over IPv4 allows.
            header = struct.pack(">HHHH", source_port, port, 8 + len(frame), 0)
            wire.sendto(header + frame, (address, 0))
    print(json.dumps({"v": 1, "frames": len(frames)}))


if __name__ == "__main__":
    verb, *words = sys.argv[1:]
    if verb == "record":
        record(*words)
    elif verb == "replay":
        path, source_port, address, port, count = words
        replay(path, int(source_port), address, int(port), int(count))
    else:
        sys.exit(__doc__)

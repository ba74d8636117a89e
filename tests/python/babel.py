"""Routes over the simulator's radio, found by `babeld` of Debian and by Sealane's relays.

    babel.py [FOLDER]   FOLDER has `sealane` and `sealane-sim`, built already; needs root

Both run in network namespaces, at the same places with the same loss. Beside them the machine of
the mesh finds routes in virtual time. `SEALANE_MACHINES` is the size of the largest cell.
`cargo xtask prove babel` installs what this needs, and records it.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time

import lab

# How long control is counted, in seconds.
WINDOW_S = 15
# Probes of a failing relay: how often, how many, and when the relay is killed.
PROBE_MS, PROBES, KILL_AFTER_S = 50, 600, 5
# Probes from the first machine to the last while nothing fails.
STEADY_PROBES = 200
# How often a relay is killed, and after how many seconds the relay that is back is known again.
KILLS, BACK_S = 2, 5
# How long programs talk.
IPERF_S = 20
# A run that is late by more has measured something else.
LATE_US = 50_000
# In virtual time a relay is killed after both ways are known.
SETTLED_S = 30
# Bytes of the file that a script of the page fetches, beside the page.
PAGE_BYTES = 100_000
PAGE = (
    "<!doctype html><p>nothing</p><script>"
    "fetch('more').then(reply => reply.arrayBuffer()).then(more => {"
    "document.querySelector('p').textContent = `read ${more.byteLength} bytes` })</script>"
)
PREFIX = "babel"
SIMULATED = "sealane-mesh, simulated"


class Topology:
    """Machines at places, and what the radio between them loses.

    Routes may take `most_s` seconds to be found; then control is counted. `nodes` are tables of
    machines, but for what they run.
    """

    def __init__(self, name, names, loss, most_s, *nodes):
        self.name, self.names, self.loss, self.most_s, self.nodes = name, names, loss, most_s, nodes

    def scenario(self, seconds, runs, more=""):
        """The scenario in which all machines run the same."""
        nodes = "".join(f'[[node]]\n{node}\nmedia = ["road"]\n{runs}\n' for node in self.nodes)
        return (
            f'version = 1\nname = "babel"\nduration_s = {seconds}\n'
            '[[medium]]\nname = "road"\nprofile = "11p"\nrange_m = 250\nfading = 0\n'
            f"loss = {self.loss}\n{nodes}{more}"
        )


def alike(name, machines, loss, most_s, place):
    names = [f"n-{number}" for number in range(1, machines + 1)]
    return Topology(name, names, loss, most_s, f'name = "n"\ncount = {machines}\n{place}')


CHAIN = alike("chain of 8", 8, "0.1", 45, "line = [200, 0]")
CELLS = [
    alike(f"cell of {machines}", machines, "0.1", most_s, "ring_m = 50")
    for machines, most_s in [(22, 30), (50, 30), (100, 60)]
]
# Four processes in a row, over which programs talk.
ROW = alike("row of 4", 4, "0", 60, "line = [200, 0]")
# Two ways of two hops.
DIAMOND = Topology(
    "two ways",
    ["from", "via-1", "via-2", "to"],
    "0",
    60,
    'name = "from"',
    'name = "via"\ncount = 2\nat = [200, -60]\nline = [0, 120]',
    'name = "to"\nat = [400, 0]',
)


def process(shell):
    """What a scenario's machines run."""
    return f'kind = "process"\ncommand = ["sh", "-c", """{shell}"""]'


def inside(name, *command):
    """A command in the namespace of a machine."""
    return ["ip", "netns", "exec", f"{PREFIX}-{name}", *map(str, command)]


class Babeld:
    def __init__(self, name, line=""):
        self.name = name
        more = f"-C '{line}' " if line else ""
        self.runs = process(
            "ip address add fd83::$SEALANE_SIM_NUMBER/128 dev lo; "
            "sysctl -qw net.ipv6.conf.all.forwarding=1; rm -f $SEALANE_SIM_NAME.state; "
            f"exec babeld -I '' -S $SEALANE_SIM_NAME.state {more}road"
        )

    def routes(self, name, *words):
        command = ["ip", "-n", f"{PREFIX}-{name}", "-6", "route", *words]
        return subprocess.run(command, capture_output=True, text=True).stdout

    def known(self, name):
        """How many others a machine has a route to."""
        return len(re.findall(r"^fd83::.*proto babel", self.routes(name, "show"), re.MULTILINE))

    def address(self, last):
        """The address of a machine, by its place in the list."""
        return f"fd83::{last}"

    def relay_in_use(self, last):
        """The relay by which the first machine sends to the last."""
        route = self.routes("from", "get", self.address(last))
        # The address of a card ends with the machine's number.
        return next((f"via-{n}" for n in (1, 2) if f"4cff:fe00:{n} " in route), None)


BABELD = [
    Babeld("babeld, as it comes"),
    Babeld("babeld, type wireless", "default type wireless"),
    Babeld("babeld, wireless, hello 1 s", "default type wireless hello-interval 1"),
]


class Sealane:
    """Keys for all machines of a topology, and a file for each.

    The first and the last are ends of a group of their own, the others relays that do not have its
    keys.
    """

    name = "sealane relay, mesh up"

    def __init__(self, programs, folder, topology):
        self.program, self.folder = programs / "sealane", folder
        self.runs = process(
            "export SEALANE_KEYS=$PWD/$SEALANE_SIM_NAME; "
            "grep -q mesh.member $SEALANE_SIM_NAME.toml && verb='mesh up fleet' || verb=relay; "
            f"exec {self.program} $verb $SEALANE_SIM_NAME.toml"
        )
        first, *others = topology.names
        for name in topology.names:
            shutil.rmtree(folder / name, ignore_errors=True)
            self.run(name, "key", "new", name)
        for group in ("roads", "fleet"):
            self.run(first, "group", "new", group)
        for name in others:
            self.join("roads", first, name)
        self.join("fleet", first, others[-1])
        orders = self.file("orders", first, "group", "orders", "roads")
        for name in others:
            # The machine that joined last has them already.
            with contextlib.suppress(RuntimeError):
                self.run(name, "group", "apply", "roads", orders)
        self.file("fleet.card", first, "group", "relay-card", "fleet")
        for name in topology.names:
            (folder / name).with_suffix(".toml").write_text(self.settings(name, first, others[-1]))

    def run(self, name, *command):
        keys = {**os.environ, "SEALANE_KEYS": str(self.folder / name)}
        return lab.output(self.program, *command, env=keys)

    def file(self, file, name, *command):
        (self.folder / file).write_bytes(self.run(name, *command))
        return self.folder / file

    def join(self, group, first, name):
        card = self.file("card", name, "key", "card")
        invitation = self.file("invitation", first, "group", "invite", group, card)
        self.run(name, "group", "join", invitation)

    @staticmethod
    def settings(name, first, last):
        """The file of a machine."""
        link = (
            'status = "127.0.0.1:9191"\n[[link]]\nname = "road"\nethernet = "road"\n'
            'medium = "11p"\nmtu = 1502\n[routing]\ngroup = "roads"\n'
        )
        if name not in (first, last):
            return f'version = 1\ncards = ["fleet.card"]\n{link}keys = "{name}"\n'
        own = 1 if name == first else 2
        members = "".join(
            f'[[mesh.member]]\nslot = {host - 1}\nprefixes = ["10.9.0.{host}/32"]\n'
            for host in (1, 2)
        )
        return f'version = 1\n{link}[mesh]\naddresses = ["10.9.0.{own}/24"]\n{members}'

    def ways(self, name):
        """The routes of a machine that has a way to somebody: none if it reports no status."""
        settings = (self.folder / name).with_suffix(".toml")
        command = inside(name, self.program, "--json", "mesh", "status", settings)
        said = subprocess.run(command, capture_output=True, text=True).stdout
        routes = find(json.loads(said or "{}"), "routes") or []
        return {route["to"]: route["ways"] for route in routes if route["ways"]}

    def known(self, name):
        return len(self.ways(name))

    def address(self, _last):
        return "10.9.0.2"

    def relay_in_use(self, last):
        via = self.ways("from").get(last, [{}])[0].get("via")
        return f"via-{via}" if via in (1, 2) else None


def find(value, key):
    """The first value of a key, however deep it stands."""
    if isinstance(value, dict) and key in value:
        return value[key]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((found for one in inner if (found := find(one, key)) is not None), None)


def sent(log, since_us):
    """Bytes a second and the share of the time on air, in the window after a moment."""
    span = range(since_us, since_us + WINDOW_S * 1_000_000)
    lines = [line for line in lab.lines(log, "send") if line["at"] in span]
    of = lambda key: sum(line.get(key, 0) for line in lines) / WINDOW_S
    return of("bytes"), of("air") / 1e6


def lost(said, probes):
    """How many probes were lost; nothing if the system has no route for them."""
    return probes - int(re.search(r"(\d+) received", said)[1]) if said else None


class LiveRun:
    """Routers in network namespaces, over the simulator's radio in real time."""

    def __init__(self, work, topology, router):
        self.sim, self.folder = work
        self.topology, self.router, self.names = topology, router, topology.names
        self.scenario, self.log = self.folder / "live.toml", self.folder / "live.jsonl"
        self.scenario.write_text(topology.scenario(3600, router.runs))
        command = [self.sim, "live", "--json", "--prefix", PREFIX, self.scenario]
        errors = self.folder / "live.err"
        with open(self.log, "wb") as out, open(errors, "wb") as err:
            self.child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=lab.ROOT
            )
        end = time.monotonic() + topology.most_s
        while True:
            with contextlib.suppress(RuntimeError):
                self.ctl("status")
                return
            if self.child.poll() is not None or time.monotonic() > end:
                self.child.kill()
                raise RuntimeError(errors.read_text())
            time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()

    def ctl(self, *order):
        said = lab.output(self.sim, "--json", "ctl", self.scenario, *order)
        return json.loads(said) if order == ("status",) else None

    def now_us(self):
        """The run's own time, in microseconds."""
        return find(self.ctl("status"), "at")

    def routes(self):
        """Waits until all have routes to all, and says when that was."""
        without = self.names
        while True:
            without = [name for name in without if self.router.known(name) < len(self.names) - 1]
            now = self.now_us()
            if not without:
                return now
            if now > self.topology.most_s * 1_000_000:
                return None
            time.sleep(0.1)

    def figures(self):
        routes = self.routes()
        # Control is counted at the same age of the mesh, whenever routes were found.
        since = self.topology.most_s * 1_000_000
        while self.now_us() < since + WINDOW_S * 1_000_000:
            time.sleep(0.5)
        unanswered = lost(self.ping(STEADY_PROBES).communicate()[0], STEADY_PROBES)
        return routes, sent(self.stop(), since), unanswered

    def ping(self, probes):
        """Probes from the first machine to the last."""
        target = self.router.address(len(self.names) - 1)
        probing = ["ping", "-q", "-W", "1", "-i", f"{PROBE_MS / 1000:.3f}", "-c", probes, target]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        return subprocess.Popen(inside(self.names[0], *probing), **pipes)

    def kills(self):
        """How many probes are lost when the relay in use is killed, each time anew."""
        found, last = [], len(self.names) - 1
        for _ in range(KILLS):
            end = time.monotonic() + self.topology.most_s
            while time.monotonic() < end:
                if all(self.router.known(name) >= last for name in ("from", "to")):
                    break
                time.sleep(0.2)
            ping = self.ping(PROBES)
            time.sleep(KILL_AFTER_S)
            via = self.router.relay_in_use(last)
            if via:
                self.ctl("kill", via)
            unanswered = lost(ping.communicate()[0], PROBES)
            if via:
                self.ctl("join", via)
            found.append(unanswered if via else None)
            time.sleep(BACK_S)
        self.stop()
        return found

    def talk(self):
        """Has programs talk from end to end over all hops, and demands that the run is not late."""
        if self.routes() is None:
            sys.exit("the row has found no routes")
        target = self.router.address(len(self.names) - 1)
        said = lab.output(*inside("n-1", "ping", "-q", "-i", "0.2", "-c", "20", target))
        print(said.decode(), end="")
        iperf = f"iperf3 -c {target} -t {IPERF_S} --connect-timeout 10000 -i 0".split()
        print(self.served(["iperf3", "-s", "-1"], iperf), end="")
        self.browse(target)
        late = find(self.ctl("status"), "late")
        half, most, all_of_it = late["half"], late["most"], late["all"]
        print(f"late, us: {half} half of the time, {most} 99 % of it, {all_of_it} at most")
        self.stop()
        if most > LATE_US:
            sys.exit(f"the run falls behind: {LATE_US} us are demanded for 99 %")

    def browse(self, target):
        """Has a browser read a page from the other end, whose script reads more from there."""
        page = self.folder / "page"
        page.mkdir()
        (page / "index.html").write_text(PAGE)
        (page / "more").write_bytes(b"x" * PAGE_BYTES)
        serve = ["python3", "-m", "http.server", "8080", "--bind", target, "--directory", page]
        browser = "chromium-headless-shell --no-sandbox --disable-gpu --virtual-time-budget=60000"
        shown = self.served(serve, [*browser.split(), "--dump-dom", f"http://{target}:8080/"])
        wanted = f"read {PAGE_BYTES} bytes"
        if wanted not in shown:
            sys.exit(f"the browser has shown: {shown}")
        print(f"a browser has shown the page of the other end: {wanted}")

    def served(self, serve, ask):
        """What a program at the first machine prints, while another serves it at the last."""
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        server = subprocess.Popen(inside(self.names[-1], *serve), **silent)
        try:
            time.sleep(1)
            return lab.output(*inside("n-1", *ask)).decode()
        finally:
            server.kill()
            server.wait()

    def stop(self):
        """Ends the run, and gives its log."""
        most = find(self.ctl("status"), "late")["most"]
        if most > LATE_US:
            print(f"(the run was late by up to {most} us for 99 % of the time)")
        self.ctl("stop")
        self.child.wait()
        return self.log.read_text()


def simulated(work, topology, seconds, more, seed):
    """The log of a run in virtual time."""
    sim, folder = work
    scenario = folder / "ours.toml"
    scenario.write_text(topology.scenario(seconds, 'kind = "mesh"', more))
    return lab.output(sim, "run", "--json", "--seed", seed, scenario).decode()


def flow(start, end, from_s, until_s):
    """Probes from one machine to another."""
    return (
        f'[[flow]]\nfrom = "{start}"\nto = "{end}"\nevery_ms = {PROBE_MS}\nbytes = 64\n'
        f"from_s = {from_s}\nuntil_s = {until_s}\n"
    )


def undelivered(log):
    offered, delivered = (sum(1 for _ in lab.lines(log, kind)) for kind in ("offer", "deliver"))
    return max(offered - delivered, 0)


def simulated_figures(work, topology):
    from_s = topology.most_s + WINDOW_S
    until_s = from_s + STEADY_PROBES * PROBE_MS // 1000
    probes = flow(topology.names[0], topology.names[-1], from_s, until_s)
    log = simulated(work, topology, until_s + 5, probes, 1)
    wanted = len(topology.names) * (len(topology.names) - 1)
    known, routes = set(), None
    for line in lab.lines(log, "mesh"):
        change = {"route": known.add, "route-lost": known.discard}.get(line["what"])
        if change:
            change((line["node"], line.get("of")))
        if len(known) == wanted:
            routes = line["at"]
            break
    return routes, sent(log, topology.most_s * 1_000_000), undelivered(log)


def simulated_kills(work):
    """The probes that are lost when a relay goes: the worse of both, as only one is in use."""
    until_s = SETTLED_S + PROBES * PROBE_MS // 1000
    probes = flow("from", "to", SETTLED_S, until_s)

    def of(via, seed):
        leaves = f'[[event]]\nat_s = {SETTLED_S + KILL_AFTER_S}\ndo = "leave"\nwho = ["{via}"]\n'
        return undelivered(simulated(work, DIAMOND, until_s + 5, probes + leaves, seed))

    return [max(of(via, seed) for via in ("via-1", "via-2")) for seed in range(1, KILLS + 1)]


def words(counts):
    return ", ".join("no route" if count is None else str(count) for count in counts)


def tell(topology, who, figures):
    routes, (bytes_per_second, air), unanswered = figures
    found = f"> {topology.most_s}" if routes is None else f"{routes / 1e6:.1f}"
    places = f"{topology.name}, {topology.loss} lost"
    each = bytes_per_second / len(topology.names)
    row = f"{places:<22} {who:<29} {found:>13} {each:>15.1f} {air * 100:>13.3f}"
    print(f"{row} {words([unanswered]):>11}", flush=True)


def main(arguments):
    programs = lab.programs(arguments, "ship", ["sealane-sim", "sealane-cli"])
    folder = lab.empty_folder("babel")
    work = programs / "sealane-sim", folder
    most = int(os.environ.get("SEALANE_MACHINES", sys.maxsize))
    version = subprocess.run(["babeld", "-V"], capture_output=True, text=True).stderr
    print(version.partition("\n")[0])
    print("radio: 802.11p at 6 Mbit/s, range 250 m, no fading; what it loses stands beside")
    print("two of Sealane's processes are ends of another group, and announce themselves\n")
    heads = "who", "all routes, s", "B/s per machine", "air of all, %", f"lost of {STEADY_PROBES}"
    print("{:<22} {:<29} {:>13} {:>15} {:>13} {:>11}".format("places, loss", *heads), flush=True)
    for topology in [CHAIN, *(cell for cell in CELLS if len(cell.names) <= most)]:
        for router in [*BABELD, Sealane(programs, folder, topology)]:
            with LiveRun(work, topology, router) as run:
                tell(topology, router.name, run.figures())
        tell(topology, SIMULATED, simulated_figures(work, topology))
    print(f"\nthe relay in use is killed: probes of {PROBES} lost, one each {PROBE_MS} ms")
    for router in [*BABELD, Sealane(programs, folder, DIAMOND)]:
        with LiveRun(work, DIAMOND, router) as run:
            print(f"{router.name:<52} {words(run.kills())}", flush=True)
    print(f"{SIMULATED:<52} {words(simulated_kills(work))}")
    print(f"\nfour processes of sealane in a row, iperf3 for {IPERF_S} s from end to end")
    with LiveRun(work, ROW, Sealane(programs, folder, ROW)) as run:
        run.talk()


if __name__ == "__main__":
    main(sys.argv[1:])

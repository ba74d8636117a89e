//! Machines in namespaces of their own, with wires between some of them.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use sealane::Value;

use crate::cli::home::Home;
use crate::cli::json;
use crate::crosses_a_blind_hub::net;

const BINARY: &str = env!("CARGO_BIN_EXE_sealane");
const PATIENCE: Duration = Duration::from_secs(60);

/// A process; it goes with its test.
pub(super) struct Machine {
    child: Child,
    /// Its output when it had started.
    pub(super) started: Value,
}

impl Machine {
    /// The memory that it takes of this machine.
    pub(super) fn memory_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Its process: `ip netns exec` becomes the program that it starts.
    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Tells it to end, and waits until it has.
    pub(super) fn stop(mut self) {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it as a power cut would.
    pub(super) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All machines, each with a key folder and a slot of the group `roads`; the first is its
/// authority. Those with an interface are members of `fleet` too.
pub(super) struct Field {
    pub(super) home: Home,
    names: Vec<&'static str>,
    spaces: Vec<String>,
    wires: Vec<(usize, usize)>,
}

impl Field {
    /// Machines, and the pairs of them that have a wire: `wireN`, on which the first has the
    /// address 10.77.N.1 and the second 10.77.N.2.
    pub(super) fn new(names: &[&'static str], wires: &[(usize, usize)]) -> Field {
        Field::new_with(&[], names, wires)
    }

    /// The same, where `fleet` is made with these options.
    pub(super) fn new_with(
        options: &[&str],
        names: &[&'static str],
        wires: &[(usize, usize)],
    ) -> Field {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        net::require();
        let (id, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let space = |name: &&str| format!("sealane-{id}-{number}-{name}");
        let spaces: Vec<_> = names.iter().map(space).collect();
        let home = Home::new();
        let field = Field { home, names: names.to_vec(), spaces, wires: wires.to_vec() };
        for space in &field.spaces {
            ip(&["netns", "add", space]);
            ip(&["-n", space, "link", "set", "lo", "up"]);
        }
        field.lay_wires();
        field.hand_out_keys(options);
        field
    }

    fn lay_wires(&self) {
        for (number, (one, other)) in self.wires.iter().enumerate() {
            let [one, other] = [&self.spaces[*one], &self.spaces[*other]];
            let wire = format!("wire{number}");
            ip(&["-n", one, "link", "add", &wire, "type", "veth", "peer", &wire, "netns", other]);
            for (space, host) in [(one, 1), (other, 2)] {
                let address = format!("10.77.{number}.{host}/30");
                ip(&["-n", space, "address", "add", &address, "dev", &wire]);
                let address = format!("fd77::{number}:{host}/112");
                ip(&["-n", space, "address", "add", &address, "dev", &wire, "nodad"]);
                ip(&["-n", space, "link", "set", &wire, "up"]);
            }
        }
    }

    fn hand_out_keys(&self, options: &[&str]) {
        let Field { home, names, .. } = self;
        for (slot, who) in names.iter().enumerate() {
            home.run(who, &["key", "new", who]);
            match slot {
                0 => drop(home.run(who, &["group", "new", "roads"])),
                _ => self.join("roads", who),
            }
        }
        self.renew();
        home.run(names[0], &[&["group", "new", "fleet"], options].concat());
        self.join("fleet", names[names.len() - 1]);
        home.file("fleet.card", names[0], &["group", "relay-card", "fleet"]);
    }

    pub(super) fn join(&self, group: &str, who: &str) {
        let card = self.home.file("card", who, &["key", "card"]);
        let invite = ["group", "invite", group, &card];
        let invitation = self.home.file("invitation", self.names[0], &invite);
        self.home.run(who, &["group", "join", &invitation]);
    }

    /// Removes a machine from the mesh, of which the others learn.
    pub(super) fn revoke(&self, who: &str) {
        self.home.run(self.names[0], &["group", "revoke", "roads", who]);
        self.renew();
    }

    /// Removes a machine from the mesh, of which nobody is told but the machine of the authority.
    pub(super) fn revoke_alone(&self, who: &str) {
        self.home.run(self.names[0], &["group", "revoke", "roads", who]);
    }

    /// Gives a machine a copy of the keys of another one.
    pub(super) fn take_keys(&self, of: &str, to: &str) {
        std::fs::remove_dir_all(self.home.path(to)).unwrap();
        self.home.copy(of, to);
    }

    /// Has all members of the mesh obey the orders that there are.
    pub(super) fn renew(&self) {
        let orders = self.home.file("orders", self.names[0], &["group", "orders", "roads"]);
        for who in &self.names[1..] {
            self.home.output(who, &["group", "apply", "roads", &orders]);
        }
    }

    /// The links of a machine: its wires in turn, each of a kind, on which neighbours are found.
    pub(super) fn links(&self, machine: usize, kinds: &[&str]) -> String {
        let own = |(_, (one, other)): &(usize, &(usize, usize))| [*one, *other].contains(&machine);
        let wires = self.wires.iter().enumerate().filter(own);
        let link = |((number, (one, _)), kind): ((usize, &(usize, usize)), &&str)| {
            let host = if *one == machine { 1 } else { 2 };
            let ethernet = format!("ethernet = \"wire{number}\"");
            let rest = match *kind {
                "udp" => format!("udp = \"10.77.{number}.{host}:9190\"\ndiscover = true"),
                "udp6" => format!("udp = \"[fd77::{number}:{host}]:9190\"\ndiscover = true"),
                "ethernet" => format!("{ethernet}\ndiscover = true"),
                radio => format!("{ethernet}\nmedium = \"{radio}\""),
            };
            format!("[[link]]\nname = \"wire{number}\"\n{rest}\n")
        };
        wires.zip(kinds).map(link).collect()
    }

    pub(super) fn relay(&self, who: &str, links: &str) {
        let head = "version = 1\nstatus = \"127.0.0.1:9191\"\ncards = [\"fleet.card\"]\n";
        let routing = format!("[routing]\nkeys = \"{who}\"\ngroup = \"roads\"\n");
        self.write(who, &format!("{head}{links}{routing}"));
    }

    pub(super) fn end(&self, who: &str, address: &str, links: &str) {
        let head = "version = 1\nstatus = \"127.0.0.1:9191\"\n";
        let routing = "[routing]\ngroup = \"roads\"\n";
        let mesh = format!("[mesh]\naddresses = [\"{address}/24\"]\n");
        let members = [("10.9.0.1", 0), ("10.9.0.2", 1)].map(|(address, slot)| {
            format!("[[mesh.member]]\nslot = {slot}\nprefixes = [\"{address}/32\"]\n")
        });
        self.write(who, &format!("{head}{links}{routing}{mesh}{}", members.concat()));
    }

    pub(super) fn write(&self, who: &str, text: &str) {
        std::fs::write(self.home.path(&format!("{who}.toml")), text).unwrap();
    }

    /// Starts the process of a machine: an end if its file has an interface.
    pub(super) fn start(&self, machine: usize) -> Machine {
        self.start_with(machine, &[])
    }

    /// The same with more flags.
    pub(super) fn start_with(&self, machine: usize, flags: &[&str]) -> Machine {
        self.begin(machine, flags, Stdio::inherit())
    }

    /// The same; what it says to people is kept: [`Field::said`].
    pub(super) fn start_heard(&self, machine: usize) -> Machine {
        let said = File::create(self.path(&format!("{}.said", self.names[machine]))).unwrap();
        self.begin(machine, &[], said.into())
    }

    /// The output of a machine that was started so.
    pub(super) fn said(&self, machine: usize) -> String {
        std::fs::read_to_string(self.path(&format!("{}.said", self.names[machine]))).unwrap()
    }

    fn begin(&self, machine: usize, flags: &[&str], said: Stdio) -> Machine {
        let who = self.names[machine];
        let file = self.home.path(&format!("{who}.toml"));
        let text = std::fs::read_to_string(&file).unwrap();
        let verb: &[&str] = match (text.contains("[mesh]"), text.contains("[gateway]")) {
            (true, _) => &["mesh", "up", "fleet"],
            (false, true) => &["gateway"],
            (false, false) => &["relay"],
        };
        let mut command = self.command(machine);
        command.arg("--json").args(verb).arg(&file).args(flags).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).stderr(said).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "{who} did not start");
        Machine { child, started: json(&line) }
    }

    /// A file of this test.
    pub(super) fn path(&self, name: &str) -> std::path::PathBuf {
        self.home.path(name)
    }

    pub(super) fn command(&self, machine: usize) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.spaces[machine], BINARY]);
        command.env("SEALANE_KEYS", self.home.path(self.names[machine]));
        command
    }

    /// The status of a machine, as soon as the condition holds.
    pub(super) fn told(&self, machine: usize, is_so: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let mut asked = self.command(machine);
            let file = self.home.path(&format!("{}.toml", self.names[machine]));
            let output = asked.args(["--json", "mesh", "status"]).arg(file).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{said}");
            let told = json(&String::from_utf8(output.stdout).unwrap());
            if is_so(&told) {
                return told;
            }
            assert!(begun.elapsed() < PATIENCE, "{told:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Which way leads from a machine to another one, by its slot or name, and what was wrong.
    pub(super) fn trace(&self, machine: usize, to: &str) -> (String, String) {
        let file = self.home.path(&format!("{}.toml", self.names[machine]));
        let mut asked = self.command(machine);
        asked.args(["--json", "mesh", "trace"]).arg(file).arg(to);
        let output = asked.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr))
    }

    /// On a machine.
    pub(super) fn on<T: Send + 'static>(
        &self,
        machine: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let space = File::open(Path::new("/run/netns").join(&self.spaces[machine])).unwrap();
        let thread = std::thread::spawn(move || {
            // Only this thread moves: it ends there.
            move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        });
        thread.join().unwrap()
    }
}

impl Drop for Field {
    fn drop(&mut self) {
        for space in &self.spaces {
            let _ = Command::new("ip").args(["netns", "delete", space]).status();
        }
    }
}

fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {}: {said}", arguments.join(" "));
}

//! Machines in namespaces of their own, with wires between some of them.

use std::fs::File;
use std::process::{Command, Stdio};

use sealane::Value;
use sealane_testing::{NetSpace, lay_wire};

use crate::cli::home::Home;
use crate::cli::{Machine, PROGRAM, until_status};

/// All machines, each with a key folder and a slot of the group `roads`; the first is its
/// authority. Those with an interface are members of `fleet` too.
pub(super) struct Field {
    pub(super) home: Home,
    names: Vec<&'static str>,
    spaces: Vec<NetSpace>,
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
        let spaces = names.iter().map(|name| NetSpace::new(name)).collect();
        let field =
            Field { home: Home::new(), names: names.to_vec(), spaces, wires: wires.to_vec() };
        for (number, (one, other)) in wires.iter().enumerate() {
            let at = |host: u8| {
                [format!("10.77.{number}.{host}/30"), format!("fd77::{number}:{host}/112")]
            };
            let [one, other] = [one, other].map(|machine| &field.spaces[*machine]);
            lay_wire(&format!("wire{number}"), [(one, &at(1)), (other, &at(2))]);
        }
        field.hand_out_keys(options);
        field
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
        command.arg("--json").args(verb).arg(&file).args(flags).stderr(said);
        Machine::start(command)
    }

    /// A file of this test.
    pub(super) fn path(&self, name: &str) -> std::path::PathBuf {
        self.home.path(name)
    }

    pub(super) fn command(&self, machine: usize) -> Command {
        let mut command = self.spaces[machine].command(PROGRAM);
        command.env("SEALANE_KEYS", self.home.path(self.names[machine]));
        command
    }

    /// The status of a machine, as soon as the condition holds.
    #[track_caller]
    pub(super) fn told(&self, machine: usize, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut asked = self.command(machine);
        let file = self.home.path(&format!("{}.toml", self.names[machine]));
        asked.args(["--json", "mesh", "status"]).arg(file);
        until_status(&mut asked, is_so)
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
        self.spaces[machine].on(work)
    }
}

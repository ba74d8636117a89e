//! Orders to a live run: a line of JSON through a socket beside the scenario, and a line back.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::SimError;
use crate::args::{SimOrderVerb, SimPairArgs, SimWhoArgs};
use crate::limits::{MAX_LIVE_ORDER_BYTES, MAX_LIVE_ORDERS, MAX_LIVE_WAIT_MS};

const PATIENCE: Duration = Duration::from_millis(MAX_LIVE_WAIT_MS);

/// Somebody wants something done, and waits for an answer.
pub(super) struct LiveOrder {
    pub(super) order: String,
    answer: SyncSender<Value>,
}

/// Where orders come in.
pub(super) struct LiveOrderInbox {
    orders: Receiver<LiveOrder>,
    /// Becomes readable when there is an order.
    pub(super) bell: UnixStream,
    socket: PathBuf,
}

/// The other side of it.
#[derive(Clone)]
pub(super) struct LiveOrderSender {
    orders: SyncSender<LiveOrder>,
    bell: Arc<UnixStream>,
}

/// The socket of a scenario's run.
pub(super) fn socket(scenario: &Path) -> PathBuf {
    scenario.with_extension("ctl")
}

impl LiveOrderInbox {
    /// Listens beside the scenario. Only its owner may give orders.
    pub(super) fn open(scenario: &Path) -> Result<(Self, LiveOrderSender), SimError> {
        let socket = socket(scenario);
        let failed = |cause: io::Error| SimError::Live(format!("{}: {cause}", socket.display()));
        let is_socket = socket.symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket());
        if is_socket {
            if UnixStream::connect(&socket).is_ok() {
                let other = io::Error::other("another live run of this scenario answers there");
                return Err(failed(other));
            }
            // A run that was killed has left it.
            std::fs::remove_file(&socket).map_err(failed)?;
        }
        // Nobody else may connect, from the first moment on.
        let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
        let listener = UnixListener::bind(&socket);
        rustix::process::umask(before);
        let listener = listener.map_err(failed)?;
        debug_assert!(
            socket.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o077 == 0),
            "others may give orders"
        );
        let (bell, ringer) = UnixStream::pair().map_err(failed)?;
        bell.set_nonblocking(true).and_then(|()| ringer.set_nonblocking(true)).map_err(failed)?;
        let (sender, orders) = sync_channel(MAX_LIVE_ORDERS);
        let door = LiveOrderSender { orders: sender, bell: Arc::new(ringer) };
        let clerk = door.clone();
        std::thread::spawn(move || clerk.serve(&listener));
        Ok((Self { orders, bell, socket }, door))
    }

    /// The next order, if there is one.
    pub(super) fn next(&self) -> Option<LiveOrder> {
        self.orders.try_recv().ok()
    }

    /// Takes the rings so far.
    pub(super) fn hush(&self) {
        let mut rings = [0; 64];
        while (&self.bell).read(&mut rings).is_ok_and(|count| count == rings.len()) {}
    }
}

impl Drop for LiveOrderInbox {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.socket);
    }
}

impl LiveOrder {
    pub(super) fn answer(self, answer: Value) {
        // Somebody who has gone does not need it.
        let _ = self.answer.try_send(answer);
    }
}

impl LiveOrderSender {
    /// One order at a time: each is answered within a turn of the run.
    fn serve(&self, listener: &UnixListener) {
        for stream in listener.incoming().flatten() {
            // One that sends half an order and waits keeps others for so long, and no longer.
            let _ = self.take(&stream);
        }
    }

    fn take(&self, mut stream: &UnixStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut order = String::new();
        let most = MAX_LIVE_ORDER_BYTES as u64 + 1;
        BufReader::new(stream.take(most)).read_line(&mut order)?;
        let answer = match order.len() > MAX_LIVE_ORDER_BYTES {
            true => refusal(&SimError::Order("the order is too long".to_owned())),
            false => self.ask(order),
        };
        writeln!(stream, "{answer}")
    }

    /// Has an order done.
    pub(super) fn ask(&self, order: String) -> Value {
        let (answer, answered) = sync_channel(1);
        let given = self.orders.try_send(LiveOrder { order, answer });
        self.ring();
        let said = given.ok().and_then(|()| answered.recv_timeout(PATIENCE).ok());
        said.unwrap_or_else(|| {
            refusal(&SimError::Order("the run is busy or at its end".to_owned()))
        })
    }

    /// Wakes the run.
    pub(super) fn ring(&self) {
        // A bell that is full rings already.
        let _ = (&*self.bell).write(&[1]);
    }
}

/// The answer to an order that is not done.
pub(super) fn refusal(error: &SimError) -> Value {
    let info = error.info();
    json!({ "v": 1, "error": { "code": info.code, "message": error.to_string() } })
}

/// Gives an order to the run of a scenario.
///
/// # Errors
///
/// [`SimError::NoRun`] where none answers, [`SimError::Order`] where it refuses.
pub(crate) fn give(scenario: &Path, order: &SimOrderVerb) -> Result<Value, SimError> {
    let socket = socket(scenario);
    let failed = |cause| SimError::NoRun { socket: socket.clone(), cause };
    let mut stream = UnixStream::connect(&socket).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE * 2)).map_err(failed)?;
    writeln!(stream, "{}", written(order)).map_err(failed)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).map_err(failed)?;
    let answer: Value = serde_json::from_str(&line).map_err(|error| failed(error.into()))?;
    match answer.pointer("/error/message").and_then(Value::as_str) {
        Some(why) => Err(SimError::Order(why.to_owned())),
        None => Ok(answer),
    }
}

/// An order as it is written.
fn written(order: &SimOrderVerb) -> Value {
    let all = |act: &str, machines: &SimWhoArgs| json!({ "do": act, "who": machines.who });
    let pair =
        |act, sides: &SimPairArgs| json!({ "do": act, "sides": [[sides.one], [sides.other]] });
    match order {
        SimOrderVerb::Status => json!({ "do": "status" }),
        SimOrderVerb::Stop => json!({ "do": "stop" }),
        SimOrderVerb::Move { who, x, y } => json!({ "do": "move", "who": [who], "to": [x, y] }),
        SimOrderVerb::Cut(sides) => pair("cut", sides),
        SimOrderVerb::Mend(sides) => pair("mend", sides),
        SimOrderVerb::Join(machines) => all("join", machines),
        SimOrderVerb::Kill(machines) => all("leave", machines),
        SimOrderVerb::Sleep(machines) => all("sleep", machines),
        SimOrderVerb::Wake(machines) => all("wake", machines),
        SimOrderVerb::Loss { medium, part } => {
            json!({ "do": "loss", "medium": medium, "loss": part })
        }
    }
}

/// The answer to `status` as people read it; nothing for other answers.
pub(crate) fn words(answer: &Value) -> Option<String> {
    let number = |at: &Value, key: &str| at.get(key).and_then(Value::as_f64).unwrap_or_default();
    let text =
        |at: &Value, key: &str| at.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let machines = answer.get("machines")?.as_array()?;
    let late = answer.get("late")?;
    let mut words = format!(
        "{:.1} s; late by {:.1} ms half of the time, {:.1} ms 99 % of it, {:.1} ms at most\n",
        number(answer, "at") / 1e6,
        number(late, "half") / 1e3,
        number(late, "most") / 1e3,
        number(late, "all") / 1e3,
    );
    words += "machine                           state     x m       y m       sent s    heard s\n";
    for one in machines {
        let (name, state) = (text(one, "name"), text(one, "state"));
        let [x, y] = ["x", "y"].map(|key| number(one, key));
        let [sent, heard] = ["sent", "heard"].map(|key| number(one, key) / 1e6);
        let line = format!("{name:<33} {state:<9} {x:<9.1} {y:<9.1} {sent:<9.3} {heard:.3}");
        words += line.trim_end();
        words.push('\n');
    }
    Some(words.trim_end().to_owned())
}

/// A channel for the one thing that a signal says.
pub(super) fn on_signal(door: LiveOrderSender) -> Receiver<()> {
    let (sender, signals) = channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            use tokio::signal::unix::{SignalKind, signal};
            let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
        });
        let _ = sender.send(());
        door.ring();
    });
    signals
}

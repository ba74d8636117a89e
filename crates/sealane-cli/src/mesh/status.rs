//! `sealane mesh status`.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use sealane::{Codec, Value};
use sealane_link::LinkError;
use sealane_machine::MachineConfig;
use sealane_machine::limits::{MAX_STATUS_BYTES, MAX_STATUS_MS};
use tokio::net::TcpStream;

use crate::args::mesh::MeshStatusArgs as Args;
use crate::terminal::table;
use crate::times::{show_bytes, show_duration, show_time};
use crate::{CliFailure, Terminal};

/// Back to the upper left corner, and nothing left of what stood there.
const CLEAR: &str = "\x1b[H\x1b[J";

/// Shows what a relay or end on this machine does now, once or until Ctrl-C.
///
/// # Errors
/// [`CliFailure::Machine`] if its configuration names no place for it, or nobody answers there.
pub(super) async fn run(args: &Args, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let config = MachineConfig::read(&args.file)?;
    if !args.watch {
        return show(&ask(&config, "/status").await?, terminal);
    }
    let screen = !terminal.json() && std::io::stdout().is_terminal();
    let mut ended = tokio::spawn(tokio::signal::ctrl_c());
    loop {
        match ask(&config, "/status").await {
            Ok(told) => {
                if screen {
                    terminal.write(CLEAR.as_bytes())?;
                }
                show(&told, terminal)?;
                terminal.flush()?;
            }
            // It may be started again.
            Err(failure) => eprintln!("sealane: {failure}"),
        }
        tokio::select! {
            () = tokio::time::sleep(args.every) => {}
            _ = &mut ended => return Ok(()),
        }
    }
}

/// Asks a relay or end for something, and gives its JSON.
pub(super) async fn ask(config: &MachineConfig, path: &str) -> Result<Vec<u8>, CliFailure> {
    let address = config.status_address()?;
    let patience = Duration::from_millis(MAX_STATUS_MS);
    let answer = tokio::time::timeout(patience, read(address, path)).await;
    let body = answer.unwrap_or_else(|late| Err(late.into()));
    let not_reached = |cause| config.refused(LinkError::StatusNotReached { address, cause });
    Ok(body.map_err(not_reached)?)
}

async fn read(address: SocketAddr, path: &str) -> std::io::Result<Vec<u8>> {
    let socket = TokioIo::new(TcpStream::connect(address).await?);
    let (mut sender, connection) = http1::handshake(socket).await.map_err(std::io::Error::other)?;
    let connection = tokio::spawn(connection);
    let request = Request::get(path).header(HOST, address.to_string()).header(CONNECTION, "close");
    let request = request.body(Empty::<Bytes>::new()).map_err(std::io::Error::other)?;
    let answer = sender.send_request(request).await.map_err(std::io::Error::other)?;
    if answer.status() != StatusCode::OK {
        return Err(std::io::Error::other("this is no status"));
    }
    let body = Limited::new(answer.into_body(), MAX_STATUS_BYTES).collect().await;
    connection.abort();
    Ok(body.map_err(std::io::Error::other)?.to_bytes().to_vec())
}

fn show(told: &[u8], terminal: &mut Terminal) -> Result<(), CliFailure> {
    if terminal.json() {
        return terminal.write(told);
    }
    let told = sealane_codec::decode(Codec::Json, told).unwrap_or(Value::Null);
    terminal.text(&head(&told))?;
    let rows: Vec<_> = all(&told, "neighbours").iter().map(neighbour).collect();
    terminal.text("\n")?;
    let columns =
        ["NEIGHBOUR", "TAG", "LINK", "ADDRESS", "HEARD", "IN", "DROPPED", "OUT", "UNSENT"];
    terminal.text(&table(&columns, &rows))?;
    let pairs = |list: &str, first: &str, second: &str| -> Vec<Vec<String>> {
        let row = |row: &Value| vec![said(row, &[first]), said(row, &[second])];
        all(&told, list).iter().map(row).collect()
    };
    if let Some(routing) = told.field("routing") {
        show_routing(routing, terminal)?;
    }
    if let Some(documents) = told.field("documents") {
        terminal.text(&show_documents(documents))?;
    }
    for (head, rows) in [
        (["ROUTE", "VIA"], pairs("routes", "to", "via")),
        (["DROPPED", "UNITS"], pairs("dropped", "reason", "units")),
    ] {
        if !rows.is_empty() {
            terminal.text(&format!("\n{}", table(&head, &rows)))?;
        }
    }
    Ok(())
}

/// Shows the state of the machine that routes.
fn show_routing(routing: &Value, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let of = |name: &str| said(routing, &[name]);
    let mut text = format!(
        "\nmesh {}, slot {}, epoch {}, {}\n",
        of("group"),
        of("slot"),
        of("epoch"),
        of("role")
    );
    if number(routing, &["ownSlotHeard"]) > 0 {
        text += "another machine sends with this machine's keys, or its own frames come back\n";
    }
    if routing.field("fault").is_some() {
        text += &format!("the group's keys could not be followed: {}\n", of("fault"));
    }
    terminal.text(&text)?;
    let rows: Vec<_> = all(routing, "neighbours").iter().map(mesh_neighbour).collect();
    let columns = ["SLOT", "LINK", "ADDRESS", "HEARD", "TOLD", "ROUND TRIP", "COST"];
    terminal.text(&format!("\n{}", table(&columns, &rows)))?;
    let rows: Vec<_> = all(routing, "routes").iter().flat_map(mesh_ways).collect();
    let columns = ["TO", "VIA", "LINK", "METRIC", ""];
    terminal.text(&format!("\n{}", table(&columns, &rows)))?;
    let rows: Vec<_> = all(routing, "air").iter().map(air).collect();
    let columns = ["LINK", "MEDIUM", "CONTROL", "URGENT", "NORMAL", "ANNOUNCEMENTS"];
    terminal.text(&format!("\n{}", table(&columns, &rows)))
}

/// The counts of the documents of a team.
fn show_documents(of: &Value) -> String {
    let count = |name: &str| number(of, &[name]);
    let mut text = format!(
        "\ndocuments   {} ({}), taken {}, handed on {}, left for want of room {}\n",
        count("frames"),
        show_bytes(count("bytes")),
        count("taken"),
        count("given"),
        count("evicted")
    );
    for one in all(of, "conflicting") {
        let of = |name: &str| said(one, &[name]);
        text += &format!(
            "conflict: slot {} of {}, {}: {} frames with the stamp of another one\n",
            of("slot"),
            of("group"),
            of("type"),
            of("frames")
        );
    }
    let row = |row: &Value| vec![said(row, &["reason"]), said(row, &["frames"])];
    let rows: Vec<_> = all(of, "refused").iter().map(row).collect();
    if !rows.is_empty() {
        text += &format!("\n{}", table(&["DOCUMENTS REFUSED", "FRAMES"], &rows));
    }
    text
}

fn mesh_neighbour(one: &Value) -> Vec<String> {
    let of = |name: &str| said(one, &[name]);
    let share = |name: &str| format!("{}/15", number(one, &[name]));
    let trip = one.field("roundTripUs").map(|_| span(number(one, &["roundTripUs"])));
    let cost = match one.field("avoided") {
        Some(Value::Bool(true)) => format!("{} avoided", of("cost")),
        _ => of("cost"),
    };
    vec![
        of("slot"),
        of("link"),
        of("address"),
        share("heard"),
        share("told"),
        trip.unwrap_or_default(),
        cost,
    ]
}

/// A route with each way that is known of it.
fn mesh_ways(route: &Value) -> Vec<Vec<String>> {
    let is = |of: &Value, name: &str| of.field(name) == Some(&Value::Bool(true));
    let gateway = if is(route, "gateway") { " gateway" } else { "" };
    let to = format!("{}{gateway}", said(route, &["to"]));
    let row = |way: &Value| {
        let of = |name: &str| said(way, &[name]);
        let metric = way.field("metric").map_or("no way now".to_owned(), |_| of("metric"));
        let notes = [("used", "used"), ("avoided", "avoided")];
        let notes: Vec<_> =
            notes.iter().filter(|(name, _)| is(way, name)).map(|(_, note)| *note).collect();
        vec![to.clone(), of("via"), of("link"), metric, notes.join(", ")]
    };
    all(route, "ways").iter().map(row).collect()
}

/// The air time that a link has spent, by part.
fn air(link: &Value) -> Vec<String> {
    let parts = ["control", "urgent", "normal", "announcements"];
    let parts = parts.map(|part| span(number(link, &["spentUs", part])));
    [said(link, &["link"]), said(link, &["medium"])].into_iter().chain(parts).collect()
}

/// Microseconds, as people read them.
pub(super) fn span(us: u64) -> String {
    match us {
        0..10_000 => format!("{us} us"),
        10_000..10_000_000 => format!("{} ms", us / 1000),
        _ => show_duration(us / 1000),
    }
}

/// The lines about the machine as a whole.
fn head(told: &Value) -> String {
    let up = show_duration(number(told, &["upMs"]));
    let mut text = format!("{}  up {up}\n", said(told, &["tag"]));
    if let Some(end) = told.field("end") {
        let of = |name: &str| said(end, &[name]);
        text += &format!(
            "end of {}, slot {}, epoch {}  {} mtu {}\n",
            of("group"),
            of("slot"),
            of("epoch"),
            of("interface"),
            of("mtu")
        );
        if end.field("unsealed").is_some() {
            text += &format!("nothing is sent: {}\n", of("unsealed"));
        }
        for slot in all(end, "awaited") {
            text += &format!("slot {} is no member now\n", said(slot, &[]));
        }
    }
    if let Some(gateway) = told.field("gateway") {
        text += &way_to_hub(gateway);
    }
    for group in all(told, "groups") {
        let of = |name: &str| said(group, &[name]);
        text += &format!("group {}  epoch {}  members {}\n", of("tag"), of("epoch"), of("members"));
    }
    for (name, label) in [
        ("received", "received"),
        ("forwarded", "went on"),
        ("delivered", "taken here"),
        ("sent", "sent"),
    ] {
        text += &format!("{label:<11} {}\n", volume(told, name));
    }
    let held = said(told, &["announcementsHeld"]);
    let partial = show_bytes(number(told, &["partialBytes"]));
    text += &format!("announcements held {held}  incomplete frames {partial}\n");
    if let Some(capture) = told.field("capture") {
        let (units, missed) = (said(capture, &["units"]), said(capture, &["missed"]));
        text += &format!("captured {units}, missed {missed}\n");
    }
    text + &reloads(told)
}

/// The lines about a gateway's way to its hub.
fn way_to_hub(of: &Value) -> String {
    let (address, state) = (said(of, &["hub", "address"]), said(of, &["hub", "state"]));
    let since = show_time(number(of, &["hub", "sinceMs"]));
    let mut text = format!("gateway to {address}: {state} since {since}\n");
    if find(of, &["hub", "cause"]).is_some() {
        text += &format!("the hub: {}\n", said(of, &["hub", "cause"]));
    }
    let bytes = |name: &str| show_bytes(number(of, &["queue", name]));
    let frames = number(of, &["queue", "frames"]);
    let (held, bound) = (bytes("bytes"), bytes("boundBytes"));
    text += &format!("waiting     {frames} ({held} of {bound})\n");
    if find(of, &["queue", "fault"]).is_some() {
        text += &format!("the queue: {}\n", said(of, &["queue", "fault"]));
    }
    let (stored, replayed) = (number(of, &["stored"]), number(of, &["replayed"]));
    text += &format!("stored      {stored}, known to the hub already {replayed}\n");
    let (down, orders) = (number(of, &["down", "put"]), number(of, &["orders", "given"]));
    text += &format!("from hub    {down}, orders {orders}\n");
    for lost in find(of, &["queue"]).map_or(&[][..], |queue| all(queue, "lost")) {
        let of = |name: &str| said(lost, &[name]);
        text += &format!("lost        {} ({}, {})\n", of("frames"), of("reason"), of("urgency"));
    }
    for (list, what) in [(all(of, "held"), "held"), (down_waiting(of), "not read")] {
        for one in list {
            let of = |name: &str| said(one, &[name]);
            text += &format!("{what}: {}: {}\n", of("stream"), of("cause"));
        }
    }
    text
}

fn down_waiting(of: &Value) -> &[Value] {
    of.field("down").map_or(&[], |down| all(down, "waiting"))
}

fn reloads(told: &Value) -> String {
    let count = |name: &str| number(told, &["reloads", name]);
    let Some(last) = told.field("reloads").and_then(|all| all.field("last")) else {
        return String::new();
    };
    let at = show_time(number(last, &["atMs"]));
    let what = match last.field("refusal") {
        Some(_) => format!("refused: {}", said(last, &["refusal"])),
        None => ["neighbours", "routes", "members"]
            .map(|what| {
                let of = |name: &str| said(last, &[what, name]);
                format!("{what} +{} -{}", of("added"), of("removed"))
            })
            .join(", "),
    };
    let (taken, refused) = (count("taken"), count("refused"));
    format!("read again {taken} times, {refused} refused; last {at}: {what}\n")
}

fn neighbour(one: &Value) -> Vec<String> {
    let of = |name: &str| said(one, &[name]);
    let heard = match one.field("silentMs") {
        Some(_) => format!("{} ago", show_duration(number(one, &["silentMs"]))),
        None => "never".to_owned(),
    };
    let (came, went) = (volume(one, "received"), volume(one, "sent"));
    vec![
        of("name"),
        of("tag"),
        of("link"),
        of("address"),
        heard,
        came,
        of("dropped"),
        went,
        of("unsent"),
    ]
}

fn volume(of: &Value, name: &str) -> String {
    let bytes = show_bytes(number(of, &[name, "bytes"]));
    format!("{} ({bytes})", number(of, &[name, "units"]))
}

fn find<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| value.field(name))
}

pub(super) fn number(value: &Value, path: &[&str]) -> u64 {
    find(value, path).and_then(Value::as_u64).unwrap_or(0)
}

/// A text or number as people read it.
pub(super) fn said(value: &Value, path: &[&str]) -> String {
    let found = find(value, path);
    let text = found.and_then(Value::as_text).map(str::to_owned);
    text.or_else(|| found.and_then(Value::as_u64).map(|number| number.to_string()))
        .unwrap_or_default()
}

pub(super) fn all<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    match value.field(name) {
        Some(Value::Array(all)) => all,
        _ => &[],
    }
}

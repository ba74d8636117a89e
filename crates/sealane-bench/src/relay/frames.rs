//! The processor time that a relay takes for a frame, beside a loop that looks at nothing: batched,
//! and one by one.

use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use sealane_frame::{FrameBuf, HeaderFields, PeerTag, seal_frame};
use sealane_seal::{Binding, Class, Suite};

use super::net::{self, RowMachine, RowNamespaces, RowSide};
use super::row::MESH;
use super::{RelayBench, RelayFindingSink};
use crate::failure::{BenchFailure, Result};
use crate::measure::FigureSpread;
use crate::members::{self, BenchMembers};
use crate::process::BenchProcess;

/// The most that checks and look-ups may cost, as a part of the loop without them.
const OF_BARE: f64 = 1.3;
/// The most that a relay in a mesh may take, as a part of a relay in none. It is no more, as far as
/// turns of the same relay agree.
const OF_STATIC: f64 = 1.05;
/// Bodies of the frames, in bytes; with header and seal the second makes 1,400 of a datagram.
const BODIES: [usize; 2] = [64, 1400 - 64 - 9 - 16];
/// How long each turn lasts.
const TURN: Duration = Duration::from_millis(800);
const RELAY_PORT: u16 = 9290;
const BARE_PORT: u16 = 9291;
const ROUTED_PORT: u16 = 9292;
/// Frames of a batch, and how many of them leave at each tick.
const BATCH: usize = 40;
const BATCHES_A_TICK: usize = 2;
/// Frames that leave one by one at each tick.
const SINGLES_A_TICK: usize = 16;
const TICK: Duration = Duration::from_millis(1);

/// A forwarder on the truck, the car's socket before it and the gateway's behind it.
struct RelayTestbed {
    process: BenchProcess,
    source: UdpSocket,
    sink: UdpSocket,
    target: SocketAddr,
    /// The tag that frames to it name as their next hop.
    tag: PeerTag,
}

/// How frames leave the car.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameSendMode {
    Batched,
    Singly,
}

pub(super) fn run(bench: RelayBench<'_>, show: &mut RelayFindingSink<'_>) -> Result<()> {
    let net = RowNamespaces::make()?;
    let folder = tempfile::tempdir().map_err(BenchFailure::io("making a folder"))?;
    let relay = relay(
        &net,
        bench,
        &RelayPlacement { folder: folder.path(), port: RELAY_PORT, mesh: None },
    )?;
    let keys = mesh(bench, folder.path())?;
    let place = RelayPlacement { folder: folder.path(), port: ROUTED_PORT, mesh: Some(&keys) };
    let stands = [relay, self::relay(&net, bench, &place)?, bare(&net, bench, folder.path())?];
    show.line(
        "body  sent         relay us/frame   routed us/frame     bare us/frame   of bare   lost of",
    );
    for sent in [FrameSendMode::Batched, FrameSendMode::Singly] {
        for body in BODIES {
            one(bench, &stands, sent, body, show)?;
        }
    }
    Ok(())
}

/// One kind of frames through all stands in turns: the relay, one with `[routing]`, the bare loop.
fn one(
    bench: RelayBench<'_>,
    stands: &[RelayTestbed; 3],
    sent: FrameSendMode,
    body: usize,
    show: &mut RelayFindingSink<'_>,
) -> Result<()> {
    let mut costs = [const { Vec::new() }; 3];
    let (mut lost, mut all) = (0, 0);
    let frames: Vec<Vec<u8>> =
        stands.iter().map(|stand| frame(body, stand.tag)).collect::<Result<_, _>>()?;
    for round in 0..=bench.rounds() {
        for ((stand, frame), costs) in stands.iter().zip(&frames).zip(&mut costs) {
            let turn = turn(stand, frame, sent)?;
            // The first round warms up.
            if round > 0 {
                costs.push(turn.us_per_frame);
                (lost, all) = (lost + turn.lost, all + turn.sent);
            }
        }
    }
    let [relay, routed, bare] = costs.map(|mut all| FigureSpread::of(&mut all));
    let part = relay.median / bare.median;
    let name = if sent == FrameSendMode::Batched { "batched" } else { "one by one" };
    let shown = |of: FigureSpread| format!("{:.3} ({:.3}-{:.3})", of.median, of.low, of.high);
    let [ours, with_mesh, theirs] = [relay, routed, bare].map(shown);
    show.line(&format!(
        "{body:>4}  {name:<11}{ours:>16}  {with_mesh:>16}  {theirs:>16}  {part:>8.2}   {lost} of \
         {all}"
    ));
    show.at_most(&format!("relay of bare, {name}, body of {body}"), part, OF_BARE);
    let what = format!("relay with [routing] of without, {name}, body of {body}");
    show.at_most(&what, routed.median / relay.median, OF_STATIC);
    Ok(())
}

/// A frame of a member on the relay's card.
fn frame(body: usize, next_hop: PeerTag) -> Result<Vec<u8>> {
    let members = BenchMembers::new(Class::Group, Suite::Aes256Gcm, 0, Binding::link())?;
    let BenchMembers { mut sealer, fields, binding, .. } = members;
    let (mut buf, fields) = (FrameBuf::new(), HeaderFields { next_hop, ..fields });
    Ok(seal_frame(&mut sealer, &fields, &binding, &vec![8; body], &mut buf)?.to_vec())
}

/// Addresses of the car, of the truck on the left and on the right, and of the gateway.
fn places(port: u16) -> [String; 4] {
    let ends = [
        (RowMachine::Car, RowSide::Right),
        (RowMachine::Truck, RowSide::Left),
        (RowMachine::Truck, RowSide::Right),
        (RowMachine::Gateway, RowSide::Left),
    ];
    ends.map(|(machine, side)| format!("{}:{port}", machine.address(side)))
}

/// Where a relay stands, and the keys of its mesh if it is a machine of one.
struct RelayPlacement<'a> {
    folder: &'a Path,
    port: u16,
    mesh: Option<&'a Path>,
}

/// A key folder with a mesh of one machine.
fn mesh(bench: RelayBench<'_>, folder: &Path) -> Result<PathBuf> {
    let keys = folder.join("keys");
    for words in [["key", "new", "relay"], ["group", "new", MESH]] {
        let mut command = Command::new(&bench.programs.sealane);
        net::run(command.args(words).env("HOME", folder).env("SEALANE_KEYS", &keys))?;
    }
    Ok(keys)
}

/// The product's relay, which knows the members of [`BenchMembers`].
fn relay(
    net: &RowNamespaces,
    bench: RelayBench<'_>,
    place: &RelayPlacement<'_>,
) -> Result<RelayTestbed> {
    let [car, left, right, gateway] = &places(place.port);
    let discover = if place.mesh.is_some() { "discover = true\n" } else { "" };
    let link = |name: &str, address: &str| {
        format!("[[link]]\nname = \"{name}\"\nudp = \"{address}\"\n{discover}")
    };
    let neighbour = |name: &str, slot: u8, address: &str| {
        format!(
            "[[neighbour]]\nname = \"{name}\"\ntag = \"slot {slot}\"\nlink = \"{name}\"\n\
             address = \"{address}\"\n[[route]]\nto = \"slot {slot}\"\nvia = \"{name}\"\n"
        )
    };
    let routing = place.mesh.map_or(String::new(), |keys| {
        format!("[routing]\nkeys = \"{}\"\ngroup = \"{MESH}\"\n", keys.display())
    });
    let tag = if place.mesh.is_some() {
        String::new()
    } else {
        format!("tag = \"{}\"\n", members::RELAY)
    };
    let config = [
        format!("version = 1\n{tag}cards = [\"group.card\"]\n"),
        link("left", left),
        link("right", right),
        neighbour("left", 1, car),
        neighbour("right", 0, gateway),
        routing,
    ];
    let file = place.folder.join(format!("relay-{}.toml", place.port));
    std::fs::write(place.folder.join("group.card"), members::relay_card())
        .and_then(|()| std::fs::write(&file, config.concat()))
        .map_err(BenchFailure::io("writing a configuration"))?;
    let mut command = net.within(RowMachine::Truck, &bench.programs.sealane);
    command.args(["--json", "relay"]).arg(file);
    let process = BenchProcess::start(&mut command, Some(&place.folder.join("log")))?;
    stand(net, process, &places(place.port))
}

/// The same loop without check and look-up.
fn bare(net: &RowNamespaces, bench: RelayBench<'_>, folder: &Path) -> Result<RelayTestbed> {
    let places = places(BARE_PORT);
    let [car, left, right, gateway] = &places;
    let mut command = net.within(RowMachine::Truck, &bench.programs.bench);
    command.args(["hop", "forward", "--link", left, "--neighbour", car]);
    command.args(["--link", right, "--neighbour", gateway]);
    let process = BenchProcess::start(&mut command, Some(&folder.join("log")))?;
    stand(net, process, &places)
}

fn stand(
    net: &RowNamespaces,
    process: BenchProcess,
    [car, left, _, gateway]: &[String; 4],
) -> Result<RelayTestbed> {
    let bind = |address: String| {
        move || {
            let socket = UdpSocket::bind(address)?;
            for set in [
                rustix::net::sockopt::set_socket_recv_buffer_size_force,
                rustix::net::sockopt::set_socket_send_buffer_size_force,
            ] {
                set(&socket, QUEUE)?;
            }
            Ok(socket)
        }
    };
    let source = net.on(RowMachine::Car, bind(car.clone()))?;
    let sink = net.on(RowMachine::Gateway, bind(gateway.clone()))?;
    let target = left.parse().map_err(BenchFailure::of)?;
    // The bare loop has none, and looks at none.
    let tag = process.started("tag").and_then(|tag| u64::from_str_radix(&tag, 16).ok());
    let tag = tag.map(|tag| PeerTag::from_bytes(tag.to_be_bytes()));
    Ok(RelayTestbed { process, source, sink, target, tag: tag.unwrap_or(members::RELAY) })
}

/// The result of one turn.
struct RelayTurn {
    us_per_frame: f64,
    sent: u64,
    lost: u64,
}

/// Sends for a while, and counts what comes out at the other side.
fn turn(stand: &RelayTestbed, frame: &[u8], sent: FrameSendMode) -> Result<RelayTurn> {
    let (came, stops) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let sink = scope.spawn(|| take(&stand.sink, frame.len(), &came, &stops));
        let before = stand.process.cpu_ns();
        let count = give(stand, frame, sent);
        let mut last = u64::MAX;
        while last != came.load(Ordering::SeqCst) {
            last = came.load(Ordering::SeqCst);
            std::thread::sleep(LULL);
        }
        let after = stand.process.cpu_ns();
        stops.store(true, Ordering::SeqCst);
        let failed = |_| std::io::Error::other("a thread panicked");
        sink.join().map_err(failed).flatten().map_err(BenchFailure::io("receiving frames"))?;
        let (count, came) = (count?, came.load(Ordering::SeqCst));
        let spent_us = after?.saturating_sub(before?) as f64 / 1e3;
        let lost = count.saturating_sub(came);
        Ok(RelayTurn { us_per_frame: spent_us / came as f64, sent: count, lost })
    })
}

fn give(stand: &RelayTestbed, frame: &[u8], sent: FrameSendMode) -> Result<u64> {
    let failed = || BenchFailure::io("sending frames");
    let state = UdpSocketState::new((&stand.source).into()).map_err(failed())?;
    let batch = frame.repeat(BATCH);
    let (begun, mut ticks, mut count) = (Instant::now(), 0, 0);
    while begun.elapsed() < TURN {
        let (contents, times, each) = match sent {
            FrameSendMode::Batched => (&*batch, BATCHES_A_TICK, BATCH),
            FrameSendMode::Singly => (frame, SINGLES_A_TICK, 1),
        };
        for _ in 0..times {
            let transmit = Transmit {
                destination: stand.target,
                ecn: None,
                contents,
                segment_size: (each > 1).then_some(frame.len()),
                src_ip: None,
            };
            state.try_send((&stand.source).into(), &transmit).map_err(failed())?;
            count += each as u64;
        }
        ticks += 1;
        let next = begun + TICK * ticks;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(count)
}

/// Counts the frames that come; the relay's notes are no frames.
fn take(
    socket: &UdpSocket,
    frame_bytes: usize,
    came: &AtomicU64,
    stops: &AtomicBool,
) -> std::io::Result<()> {
    let state = UdpSocketState::new(socket.into())?;
    let mut buffer = vec![0; 1 << 16];
    while !stops.load(Ordering::SeqCst) {
        let mut metas = [RecvMeta::default()];
        let mut slices = [std::io::IoSliceMut::new(&mut buffer)];
        match state.recv(socket.into(), &mut slices, &mut metas) {
            Ok(_) => {
                let [RecvMeta { len, stride, .. }] = metas;
                if stride == frame_bytes {
                    came.fetch_add((len / stride) as u64, Ordering::SeqCst);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_micros(500));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// After so long without a frame no more come.
const LULL: Duration = Duration::from_millis(100);
/// The bytes that may wait at a socket.
const QUEUE: usize = 32 << 20;

//! Every byte that crosses the wires of a namespace, recorded by a packet socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::{
    AddressFamily, RecvFlags, SocketFlags, SocketType, eth, recv, socket_with, sockopt,
};

use crate::NetSpace;

/// Bytes of a packet, at most: a virtual wire carries packets that the kernel has not cut yet.
const PACKET_BYTES: usize = 128 << 10;
/// The bytes that may wait to be recorded.
const QUEUE_BYTES: usize = 64 << 20;
/// Wires are silent when nothing has come for so long.
const SILENCE: Duration = Duration::from_millis(100);

/// A recorder at work.
pub struct PacketRecorder {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Vec<u8>>>,
}

impl PacketRecorder {
    /// Records every wire of the namespace from now on.
    pub fn start(space: &NetSpace) -> PacketRecorder {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, (ready, waiting)) = (stop.clone(), std::sync::mpsc::channel());
        let thread = space.spawn(move || {
            let (family, flags) = (AddressFamily::PACKET, SocketFlags::CLOEXEC);
            let socket = socket_with(family, SocketType::RAW, flags, Some(eth::ALL)).expect("root");
            sockopt::set_socket_recv_buffer_size_force(&socket, QUEUE_BYTES).expect("root");
            sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(SILENCE))
                .expect("a timeout");
            ready.send(()).expect("somebody waits for it");
            let (mut packets, mut buffer) = (Vec::new(), vec![0; PACKET_BYTES]);
            loop {
                match recv(&socket, buffer.as_mut_slice(), RecvFlags::empty()) {
                    Ok((_, bytes)) => packets.push(buffer[..bytes].to_vec()),
                    // Packets that were sent before the end was asked for have come by then.
                    Err(_) if stopped.load(Ordering::SeqCst) => return packets,
                    Err(_) => {}
                }
            }
        });
        waiting.recv().expect("it records");
        PacketRecorder { stop, thread }
    }

    /// The recorded packets, as soon as the wires are silent.
    pub fn finish(self) -> Vec<Vec<u8>> {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().expect("it has recorded")
    }
}

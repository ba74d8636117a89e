use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// The messages that one consumer was given, a few bits for each message.
pub(crate) struct Ledger {
    messages: u64,
    first: Bits,
    acked: Bits,
    finished: AtomicU64,
    delivered: AtomicU64,
    redelivered: AtomicU64,
    /// First deliveries that were not the first.
    doubled: AtomicU64,
    /// Deliveries of what was acknowledged before.
    returned: AtomicU64,
    /// First deliveries to a member behind a higher offset.
    disordered: AtomicU64,
    beyond: AtomicU64,
    disconnects: AtomicU64,
    ended: AtomicBool,
}

struct Bits(Vec<AtomicU64>);

impl Bits {
    fn new(count: u64) -> Bits {
        Bits((0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    /// Sets a bit; returns what it was.
    fn set(&self, index: u64) -> bool {
        let bit = 1 << (index % 64);
        self.0[(index / 64) as usize].fetch_or(bit, SeqCst) & bit != 0
    }

    fn is_set(&self, index: u64) -> bool {
        self.0[(index / 64) as usize].load(SeqCst) & (1 << (index % 64)) != 0
    }
}

impl Ledger {
    pub(crate) fn new(messages: u64) -> Ledger {
        Ledger {
            messages,
            first: Bits::new(messages),
            acked: Bits::new(messages),
            finished: AtomicU64::new(0),
            delivered: AtomicU64::new(0),
            redelivered: AtomicU64::new(0),
            doubled: AtomicU64::new(0),
            returned: AtomicU64::new(0),
            disordered: AtomicU64::new(0),
            beyond: AtomicU64::new(0),
            disconnects: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        }
    }

    /// Notes a delivery.
    pub(crate) fn deliver(&self, offset: u64, attempt: u32) {
        self.delivered.fetch_add(1, SeqCst);
        if attempt > 1 {
            self.redelivered.fetch_add(1, SeqCst);
        } else {
            self.doubled.fetch_add(u64::from(self.first.set(offset)), SeqCst);
        }
    }

    /// Notes that a delivery was sent to a connection that stays.
    pub(crate) fn expect_unfinished(&self, offset: u64) {
        self.returned.fetch_add(u64::from(self.acked.is_set(offset)), SeqCst);
    }

    /// Notes an acknowledgement that the hub will certainly read.
    pub(crate) fn ack(&self, offset: u64) {
        assert!(!self.acked.set(offset), "{offset} was acknowledged twice");
        self.finished.fetch_add(1, SeqCst);
    }

    pub(crate) fn note_disorder(&self) {
        self.disordered.fetch_add(1, SeqCst);
    }

    pub(crate) fn note_beyond(&self, count: u64) {
        self.beyond.fetch_add(count, SeqCst);
    }

    pub(crate) fn note_disconnect(&self) {
        self.disconnects.fetch_add(1, SeqCst);
    }

    pub(crate) fn give_up(&self) {
        self.ended.store(true, SeqCst);
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.is_done() || self.ended.load(SeqCst)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.finished.load(SeqCst) == self.messages
    }

    pub(crate) fn delivered(&self) -> u64 {
        self.delivered.load(SeqCst)
    }

    pub(crate) fn redelivered(&self) -> u64 {
        self.redelivered.load(SeqCst)
    }

    pub(crate) fn lost(&self) -> u64 {
        self.messages - self.finished.load(SeqCst)
    }

    pub(crate) fn beyond(&self) -> u64 {
        self.beyond.load(SeqCst)
    }

    pub(crate) fn disconnects(&self) -> u64 {
        self.disconnects.load(SeqCst)
    }

    pub(crate) fn check(&self) {
        assert_eq!(self.lost(), 0, "lost");
        assert_eq!(self.beyond(), 0, "beyond credit");
        assert_eq!(self.doubled.load(SeqCst), 0, "delivered twice as if for the first time");
        assert_eq!(self.returned.load(SeqCst), 0, "came back though acknowledged");
        assert_eq!(self.disordered.load(SeqCst), 0, "out of order");
    }
}

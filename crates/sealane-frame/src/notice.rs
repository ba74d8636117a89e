//! The notices of a group's control stream, as they travel: orders, renewals, heartbeats and
//! removals. `spec/group.md`, *Notices*, is the specification.
//!
//! Members, beaters, gateways and machines that route read them here. A machine without keys sees
//! as much of them as it needs to keep and pass them on; members open what is sealed in them.

use sealane_message::bytes::ByteReader;
use sealane_seal::limits::SIGNATURE_BYTES;
use sealane_seal::{Epoch, GroupId, Slot, verifies_open};

/// The version of notices, in the upper half of their first byte.
pub const NOTICE_VERSION: u8 = 3;
/// Bytes of a notice of removal.
pub const REMOVAL_NOTICE_BYTES: usize = 1 + 8 + 8 + 2 + 8 + SIGNATURE_BYTES;
/// Bytes of the ML-DSA-65 signature behind that of Ed25519 in a renewal: members check it, too.
const LATTICE_SIGNATURE_BYTES: usize = 3309;
/// The head of the renewal within its notice: four letters and the version.
const RENEWAL_HEAD: [u8; 5] = [b'S', b'L', b'R', b'N', NOTICE_VERSION];

const ORDER: u8 = 1;
const RENEWAL: u8 = 2;
const HEARTBEAT: u8 = 3;
const REMOVAL: u8 = 4;
/// The bit of a renewal's flags that says that it begins anew.
const ANEW: u8 = 1;

/// A hash of all orders up to one of them: what the next order stands on. Before the first order
/// it is the group's id.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OrderChainHead(pub [u8; 32]);

impl OrderChainHead {
    /// The beginning of a group's chain.
    pub const fn of_group(group: GroupId) -> Self {
        Self(group.0)
    }

    /// The first bytes, which an announcement says of the head that its sender has obeyed.
    pub const fn short(&self) -> [u8; 8] {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        [a, b, c, d, e, f, g, h]
    }
}

impl std::fmt::Debug for OrderChainHead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OrderChainHead({})", sealane_message::hex::encode(&self.short()))
    }
}

/// Why bytes are no notice, or none of that signer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoticeFault {
    /// They are too short, too long, or have a field out of range.
    #[error("this is no well-formed notice of a group")]
    Malformed,
    /// They are of another version.
    #[error("the notice has version {0}")]
    Version(u8),
    /// The signature does not verify.
    #[error("the signature of the notice does not verify")]
    Signature,
    /// It is the renewal of another group.
    #[error("the notice belongs to another group")]
    OtherGroup,
}

/// A notice, as its bytes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeView<'a> {
    /// An order.
    Order(OrderView<'a>),
    /// A fresh secret that needs no earlier one.
    Renewal(RenewalView<'a>),
    /// So many orders were given.
    Heartbeat(GroupHeartbeat),
    /// Somebody is about to be removed.
    Removal(RemovalNotice),
}

/// An order: a sealed frame, and what the authority says of its place in the clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderView<'a> {
    /// Its number.
    pub number: u64,
    /// The head of the chain before it.
    pub before: OrderChainHead,
    /// How many slots were given, this order included. An authority that was restored reads it.
    pub given: u16,
    /// The frame.
    pub frame: &'a [u8],
}

/// A renewal, as far as it is in the clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenewalView<'a> {
    /// The group.
    pub group: GroupId,
    /// Its number.
    pub number: u64,
    /// The head of the chain before it. Of one that begins anew: of the chain that it leaves.
    pub before: OrderChainHead,
    /// As [`OrderView::given`].
    pub given: u16,
    /// The epoch that it begins.
    pub epoch: Epoch,
    /// The orders before it that a member has not obeyed were given elsewhere, or are of no use any
    /// more.
    pub is_anew: bool,
    /// The wraps, fresh keys and roster.
    pub sealed: &'a [u8],
}

/// That the authority, or a beater in its place, has seen so many orders at that time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupHeartbeat {
    /// How many orders were given.
    pub orders: u64,
    /// The head of the chain behind them.
    pub head: OrderChainHead,
    /// The group's newest epoch, or 0 from a beater, which does not know it.
    pub epoch: Epoch,
    /// Milliseconds since 1970-01-01 UTC.
    pub time_ms: u64,
}

/// That a member is about to be removed. The order that removes it is long, and may take hours on a
/// slow radio; a notice is one short frame, so that everybody stops taking the member's frames at
/// once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemovalNotice {
    /// The number of the order that removes the member.
    pub order: u64,
    /// The epoch which that order ends.
    pub epoch: Epoch,
    /// The member that is removed.
    pub slot: Slot,
    /// Messages that the member sealed in that epoch with a counter below this were sent before the
    /// removal. With 0 there are none.
    pub mark: u64,
}

impl RemovalNotice {
    /// Whether something of a slot is taken nevertheless: it is of somebody else, or was sent
    /// before the removal, as far as the authority has said.
    pub fn allows(&self, slot: Slot, epoch: Epoch, counter: u64) -> bool {
        slot != self.slot || epoch == self.epoch && counter < self.mark
    }
}

impl<'a> NoticeView<'a> {
    /// Reads a notice. Nothing is verified.
    ///
    /// # Errors
    ///
    /// [`NoticeFault::Malformed`], [`NoticeFault::Version`].
    pub fn parse(notice: &'a [u8]) -> Result<Self, NoticeFault> {
        let (head, rest) = notice.split_first().ok_or(NoticeFault::Malformed)?;
        let (version, kind) = (head >> 4, head & 0x0f);
        match version {
            NOTICE_VERSION => {}
            // Before version 3 a notice named its kind alone.
            0 if (ORDER..=REMOVAL).contains(&kind) => return Err(NoticeFault::Version(2)),
            0 => return Err(NoticeFault::Malformed),
            other => return Err(NoticeFault::Version(other)),
        }
        Self::read(kind, rest)?.ok_or(NoticeFault::Malformed)
    }

    fn read(kind: u8, rest: &'a [u8]) -> Result<Option<Self>, NoticeFault> {
        if kind == RENEWAL {
            return renewal(rest).map(|view| view.map(Self::Renewal));
        }
        let Some((rest, _)) = rest.split_last_chunk::<SIGNATURE_BYTES>() else { return Ok(None) };
        let mut fields = ByteReader::new(rest);
        let view = match kind {
            ORDER => order(&mut fields).map(Self::Order),
            HEARTBEAT => heartbeat(&mut fields).map(Self::Heartbeat),
            REMOVAL => removal(&mut fields).map(Self::Removal),
            _ => None,
        };
        Ok(view.filter(|_| fields.rest().is_empty()))
    }

    /// Reads a notice of that group, if the Ed25519 signature of that key verifies.
    ///
    /// # Errors
    ///
    /// As [`NoticeView::parse`]; [`NoticeFault::Signature`]; [`NoticeFault::OtherGroup`] for the
    /// renewal of another group.
    pub fn verify(notice: &'a [u8], group: GroupId, key: &[u8; 32]) -> Result<Self, NoticeFault> {
        let view = Self::parse(notice)?;
        if matches!(view, Self::Renewal(renewal) if renewal.group != group) {
            return Err(NoticeFault::OtherGroup);
        }
        let tail = if matches!(view, Self::Renewal(_)) { LATTICE_SIGNATURE_BYTES } else { 0 };
        let signed = notice.len().checked_sub(tail).and_then(|end| notice.get(..end));
        let split = signed.and_then(<[u8]>::split_last_chunk::<SIGNATURE_BYTES>);
        let (bytes, signature) = split.ok_or(NoticeFault::Malformed)?;
        let labelled = match view {
            // A renewal is a document of its own, and is signed without the byte before it.
            Self::Renewal(_) => {
                [b"Sealane 1.0 renewal ", bytes.get(1..).unwrap_or_default()].concat()
            }
            _ => [&notice_label(bytes, group)[..], bytes].concat(),
        };
        let is_its = verifies_open(key, &labelled, signature);
        if is_its { Ok(view) } else { Err(NoticeFault::Signature) }
    }
}

fn order<'a>(fields: &mut ByteReader<'a>) -> Option<OrderView<'a>> {
    let (number, before) = (word(fields)?, OrderChainHead(fields.array()?));
    let given = u16::from_be_bytes(fields.array()?);
    let frame = fields.bytes(fields.rest().len())?;
    (!frame.is_empty()).then_some(OrderView { number, before, given, frame })
}

fn renewal(rest: &[u8]) -> Result<Option<RenewalView<'_>>, NoticeFault> {
    let end = rest.len().checked_sub(SIGNATURE_BYTES + LATTICE_SIGNATURE_BYTES);
    let Some(signed) = end.and_then(|end| rest.get(..end)) else { return Ok(None) };
    let mut fields = ByteReader::new(signed);
    let Some([s, l, r, n, version]) = fields.array::<5>() else { return Ok(None) };
    let [.., known] = RENEWAL_HEAD;
    if version == 0 || [s, l, r, n, known] != RENEWAL_HEAD {
        return Ok(None);
    }
    if version != known {
        return Err(NoticeFault::Version(version));
    }
    Ok(renewal_fields(&mut fields))
}

fn renewal_fields<'a>(fields: &mut ByteReader<'a>) -> Option<RenewalView<'a>> {
    let (group, number) = (GroupId(fields.array()?), word(fields)?);
    let (before, given) = (OrderChainHead(fields.array()?), u16::from_be_bytes(fields.array()?));
    let epoch = Epoch(word(fields)?);
    let [flags] = fields.array()?;
    let sealed = fields.bytes(fields.rest().len())?;
    let is_anew = flags == ANEW;
    // The number behind it is how many were given.
    let is_renewal = flags & !ANEW == 0 && number < u64::MAX;
    is_renewal.then_some(RenewalView { group, number, before, given, epoch, is_anew, sealed })
}

fn heartbeat(fields: &mut ByteReader<'_>) -> Option<GroupHeartbeat> {
    let (orders, head) = (word(fields)?, OrderChainHead(fields.array()?));
    Some(GroupHeartbeat { orders, head, epoch: Epoch(word(fields)?), time_ms: word(fields)? })
}

fn removal(fields: &mut ByteReader<'_>) -> Option<RemovalNotice> {
    let (order, epoch) = (word(fields)?, Epoch(word(fields)?));
    let slot = Slot::new(u16::from_be_bytes(fields.array()?))?;
    Some(RemovalNotice { order, epoch, slot, mark: word(fields)? })
}

fn word(fields: &mut ByteReader<'_>) -> Option<u64> {
    fields.array().map(u64::from_be_bytes)
}

/// The part of an order or a renewal that the next head of the chain is a hash of: all but its
/// signatures. Nothing for other notices, which are no part of the chain.
pub fn chained_part(notice: &[u8]) -> Option<&[u8]> {
    let tail = match NoticeView::parse(notice).ok()? {
        NoticeView::Order(_) => SIGNATURE_BYTES,
        NoticeView::Renewal(_) => SIGNATURE_BYTES + LATTICE_SIGNATURE_BYTES,
        NoticeView::Heartbeat(_) | NoticeView::Removal(_) => return None,
    };
    notice.get(..notice.len().checked_sub(tail)?)
}

/// The label that a notice's signature begins with: a notice of one group is none of another.
pub fn notice_label(notice: &[u8], group: GroupId) -> Vec<u8> {
    let kind: &[u8] = match notice.first().map(|head| head & 0x0f) {
        Some(HEARTBEAT) => b"Sealane 1.0 heartbeat ",
        Some(REMOVAL) => b"Sealane 1.0 removal ",
        _ => b"Sealane 1.0 order ",
    };
    [kind, &group.0].concat()
}

const fn head(kind: u8) -> u8 {
    NOTICE_VERSION << 4 | kind
}

impl OrderView<'_> {
    /// The notice before its signature.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![head(ORDER)];
        bytes.extend(self.number.to_be_bytes());
        bytes.extend(self.before.0);
        bytes.extend(self.given.to_be_bytes());
        bytes.extend_from_slice(self.frame);
        bytes
    }
}

impl RenewalView<'_> {
    /// The renewal before its signatures, which stands behind the first byte of its notice.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = RENEWAL_HEAD.to_vec();
        bytes.extend(self.group.0);
        bytes.extend(self.number.to_be_bytes());
        bytes.extend(self.before.0);
        bytes.extend(self.given.to_be_bytes());
        bytes.extend(self.epoch.0.to_be_bytes());
        bytes.push(if self.is_anew { ANEW } else { 0 });
        bytes.extend_from_slice(self.sealed);
        bytes
    }

    /// The notice of a renewal that was signed.
    pub fn notice(signed: &[u8]) -> Vec<u8> {
        [&[head(RENEWAL)], signed].concat()
    }
}

impl GroupHeartbeat {
    /// The notice before its signature.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![head(HEARTBEAT)];
        bytes.extend(self.orders.to_be_bytes());
        bytes.extend(self.head.0);
        bytes.extend(self.epoch.0.to_be_bytes());
        bytes.extend(self.time_ms.to_be_bytes());
        bytes
    }
}

impl RemovalNotice {
    /// The notice before its signature.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![head(REMOVAL)];
        bytes.extend(self.order.to_be_bytes());
        bytes.extend(self.epoch.0.to_be_bytes());
        bytes.extend(self.slot.number().to_be_bytes());
        bytes.extend(self.mark.to_be_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(number: u16) -> Slot {
        Slot::new(number).unwrap()
    }

    /// One notice of each kind, with zeros for signatures.
    fn all() -> Vec<Vec<u8>> {
        let before = OrderChainHead([7; 32]);
        let order = OrderView { number: 9, before, given: 3, frame: b"frame" };
        let renewal = RenewalView {
            group: GroupId([1; 32]),
            number: 9,
            before,
            given: 3,
            epoch: Epoch(4),
            is_anew: true,
            sealed: b"sealed",
        };
        let heartbeat = GroupHeartbeat { orders: 9, head: before, epoch: Epoch(4), time_ms: 5 };
        let removal = RemovalNotice { order: 9, epoch: Epoch(4), slot: slot(5), mark: 6 };
        let renewal = RenewalView::notice(&renewal.to_bytes());
        let signed = |bytes: Vec<u8>, signatures: usize| [bytes, vec![0; signatures]].concat();
        vec![
            signed(order.to_bytes(), SIGNATURE_BYTES),
            signed(renewal, SIGNATURE_BYTES + LATTICE_SIGNATURE_BYTES),
            signed(heartbeat.to_bytes(), SIGNATURE_BYTES),
            signed(removal.to_bytes(), SIGNATURE_BYTES),
        ]
    }

    #[test]
    fn each_kind_reads_back_and_is_written_as_it_was() {
        let [order, renewal, heartbeat, removal] = all().try_into().unwrap();
        let NoticeView::Order(view) = NoticeView::parse(&order).unwrap() else { panic!() };
        assert_eq!(order[..order.len() - 64], view.to_bytes());
        assert_eq!(chained_part(&order), Some(&order[..order.len() - 64]));
        let NoticeView::Renewal(view) = NoticeView::parse(&renewal).unwrap() else { panic!() };
        assert_eq!(renewal[1..renewal.len() - 64 - 3309], view.to_bytes());
        assert_eq!(chained_part(&renewal), Some(&renewal[..renewal.len() - 64 - 3309]));
        let NoticeView::Heartbeat(view) = NoticeView::parse(&heartbeat).unwrap() else { panic!() };
        assert_eq!(heartbeat[..heartbeat.len() - 64], view.to_bytes());
        let NoticeView::Removal(view) = NoticeView::parse(&removal).unwrap() else { panic!() };
        assert_eq!(removal[..removal.len() - 64], view.to_bytes());
        assert_eq!(removal.len(), REMOVAL_NOTICE_BYTES);
        assert_eq!((chained_part(&heartbeat), chained_part(&removal)), (None, None));
    }

    #[test]
    fn what_is_cut_longer_or_of_another_version_is_refused() {
        for notice in all() {
            let kind = notice[0] & 0x0f;
            let fixed = kind == HEARTBEAT || kind == REMOVAL;
            let least = notice.len() - if fixed { 0 } else { 5 };
            for end in (0..least).filter(|end| fixed || *end < 100) {
                assert!(NoticeView::parse(&notice[..end]).is_err(), "{kind} {end}");
            }
            let longer = [&notice[..], &[0]].concat();
            assert_eq!(NoticeView::parse(&longer).is_err(), fixed);
            let of = |head: u8| NoticeView::parse(&[&[head], &notice[1..]].concat()).err();
            assert_eq!(of(kind), Some(NoticeFault::Version(2)));
            assert_eq!(of(4 << 4 | kind), Some(NoticeFault::Version(4)));
            assert_eq!(of(3 << 4 | 15), Some(NoticeFault::Malformed));
            assert_eq!(of(0), Some(NoticeFault::Malformed));
        }
    }

    #[test]
    fn a_slot_or_flag_that_cannot_be_is_refused() {
        let [_, mut renewal, _, mut removal] = <[Vec<u8>; 4]>::try_from(all()).unwrap();
        removal[17] = 4;
        assert_eq!(NoticeView::parse(&removal), Err(NoticeFault::Malformed));
        let flags = 1 + 5 + 32 + 8 + 32 + 2 + 8;
        assert_eq!(renewal[flags], 1);
        renewal[flags] = 2;
        assert_eq!(NoticeView::parse(&renewal), Err(NoticeFault::Malformed));
        renewal[5] = 2;
        assert_eq!(NoticeView::parse(&renewal), Err(NoticeFault::Version(2)));
    }

    #[test]
    fn only_what_lies_below_the_mark_in_the_epoch_that_ends_is_taken() {
        let removal = RemovalNotice { order: 5, epoch: Epoch(3), slot: slot(1), mark: 7 };
        let allows = |of, epoch, counter| removal.allows(slot(of), Epoch(epoch), counter);
        assert!(allows(1, 3, 6) && allows(2, 3, 7));
        assert!(!allows(1, 3, 7) && !allows(1, 2, 0) && !allows(1, 4, 0));
    }
}

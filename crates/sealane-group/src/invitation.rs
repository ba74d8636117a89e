use sealane_seal::{Epoch, EpochSecret, Epochs, GroupId, Slot};
use zeroize::Zeroizing;

use crate::card::PendingCard;
use crate::certificate::MemberCertificate;
use crate::charter::GroupCharter;
use crate::crypto::{AuthoritySigner, wrap};
use crate::limits::AUTHORITY_SIGNATURE_BYTES;
use crate::marks::RemovalMarks;
use crate::now_ms;
use crate::state::{GroupState, NewestHeartbeat, put_epochs, read_epochs};
use crate::wire::{GroupFieldReader, begin, put_part};
use crate::{Error, GroupDocument, GroupRoster, IdentityCard};

const LABEL: &[u8] = b"Sealane 1.0 invitation ";

/// Which epochs' secrets a new member is handed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PastSecrets {
    /// All that the authority holds; of a forward-secret group the present one.
    #[default]
    All,
    /// The newest one, which is begun for the new member: what was sealed before stays closed to
    /// it.
    None,
}

/// The envelope of an invitation: readable by anybody.
pub(crate) struct InvitationEnvelope<'a> {
    pub(crate) group: GroupId,
    pub(crate) slot: Slot,
    pub(crate) nonce: [u8; 32],
    pub(crate) sealed: &'a [u8],
}

impl<'a> InvitationEnvelope<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Result<InvitationEnvelope<'a>, Error> {
        let mut reader = GroupFieldReader::open(GroupDocument::Invitation, bytes)?;
        let group = GroupId(reader.array()?);
        let slot = Slot::new(reader.u16()?).ok_or_else(|| reader.malformed())?;
        let nonce = reader.array()?;
        Ok(InvitationEnvelope { group, slot, nonce, sealed: reader.rest() })
    }

    /// The context that the encryption is bound to.
    fn info(&self) -> Vec<u8> {
        let slot = self.slot.number().to_be_bytes();
        [LABEL, &self.group.0, &slot, &self.nonce].concat()
    }
}

/// Makes an invitation for the holder of a card, and gives the pairwise key besides.
pub(crate) fn make(
    signer: &AuthoritySigner,
    state: &GroupState,
    card: &IdentityCard,
    certificate: &MemberCertificate,
    past: PastSecrets,
) -> Result<(Vec<u8>, Zeroizing<[u8; 32]>), Error> {
    let mut inner = Zeroizing::new(Vec::with_capacity(state.capacity() + (1 << 14)));
    inner.extend_from_slice(&card.hash());
    put_part(&mut inner, &state.charter.to_bytes());
    put_part(&mut inner, &certificate.bytes);
    inner.extend_from_slice(state.routing.as_slice());
    inner.extend(state.live_from.0.to_be_bytes());
    inner.extend(state.orders.to_be_bytes());
    inner.extend(now_ms().to_be_bytes());
    inner.extend(state.beater.unwrap_or_default());
    state.marks.put(&mut inner);
    state.roster.put(&mut inner);
    let newest = state.epochs.newest();
    let handed: Vec<(Epoch, &EpochSecret)> = state
        .epochs
        .held()
        .filter(|(epoch, _)| *epoch == newest || past == PastSecrets::All)
        .collect();
    put_epochs(&mut inner, &handed);
    signer.append(LABEL, &mut inner)?;
    let envelope = InvitationEnvelope {
        group: state.id(),
        slot: certificate.slot,
        nonce: card.nonce,
        sealed: &[],
    };
    let (sealed, key) = wrap(card.once(), &envelope.info(), &[], &inner)?;
    let mut bytes = begin(GroupDocument::Invitation);
    bytes.extend(envelope.group.0);
    bytes.extend(envelope.slot.number().to_be_bytes());
    bytes.extend(envelope.nonce);
    bytes.extend(sealed);
    Ok((bytes, key))
}

/// Opens an invitation with the key of the card that it answers, and checks all that it says.
pub(crate) fn open(
    envelope: &InvitationEnvelope<'_>,
    waiting: &PendingCard,
    own: &[u8; 32],
) -> Result<GroupState, Error> {
    let document = GroupDocument::Invitation;
    let opened = waiting.wrapping()?.open(&envelope.info(), &[], envelope.sealed);
    let opened = opened.ok_or(Error::NotForUs(document))?;
    let mut reader = GroupFieldReader::new(document, &opened.plaintext);
    let card: [u8; 32] = reader.array()?;
    let charter = GroupCharter::from_bytes(document, reader.part()?)?;
    if charter.id() != envelope.group {
        return Err(Error::OtherGroup(document));
    }
    charter.authority.verify(LABEL, document, &opened.plaintext)?;
    let certificate = MemberCertificate::from_bytes(&charter, reader.part()?)?;
    let routing = Zeroizing::new(reader.array()?);
    let live_from = Epoch(reader.u64()?);
    let (orders, time_ms) = (reader.u64()?, reader.u64()?);
    let beater: [u8; 32] = reader.array()?;
    let marks = RemovalMarks::read(&mut reader)?;
    let roster = GroupRoster::read(&mut reader)?;
    let epochs = read_epochs(&mut reader, charter.id(), charter.history)?;
    if reader.left() != AUTHORITY_SIGNATURE_BYTES {
        return Err(Error::Malformed(document));
    }
    let is_ours = certificate.card == card
        && certificate.verifying == *own
        && certificate.slot == envelope.slot
        && roster.entry(envelope.slot) == Some(&certificate.entry());
    if !is_ours {
        return Err(Error::NotForUs(document));
    }
    Ok(GroupState {
        charter,
        routing,
        slot: envelope.slot,
        is_removed: false,
        is_copied: false,
        wrap_key: opened.exported,
        live_from,
        roster,
        awaited: epochs.newest(),
        epochs,
        wraps: Vec::new(),
        certificates: Vec::new(),
        orders,
        known: orders,
        claimed: 0,
        marks,
        marked: Epoch(0),
        beater: (beater != [0; 32]).then_some(beater),
        beat: NewestHeartbeat { time_ms, came_ms: now_ms() },
        spent: Vec::new(),
    })
}

/// Adds what an earlier membership in the same group still holds to the epochs of a new one.
pub(crate) fn keep_past(epochs: &mut Epochs, earlier: &Epochs) {
    for (epoch, secret) in earlier.held() {
        if epoch < epochs.newest() && epochs.secret(epoch).is_none() {
            // Beyond the bound of epochs the oldest are left out.
            let _ = epochs.insert(epoch, secret.clone());
        }
    }
}

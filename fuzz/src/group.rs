//! Cards, invitations, orders and files of keys from anybody, in a real key folder.

use std::cell::RefCell;
use std::path::PathBuf;

use sealane_group::{
    EpochSource, Error, Fingerprint, GroupDocument, GroupMember, GroupNotice, IdentityCard,
    KeyFolder, NewGroup, PastSecrets, PublicKey, examine, read_orders, write_orders,
};

/// An authority, a member, and a folder with a card that waits for the invitation.
struct FuzzedGroup {
    root: PathBuf,
    member: GroupMember,
    waiting: KeyFolder,
    card: Vec<u8>,
    invitation: Vec<u8>,
    notices: Vec<GroupNotice>,
    _folder: tempfile::TempDir,
}

impl FuzzedGroup {
    fn new() -> Result<FuzzedGroup, Error> {
        let folder = tempfile::tempdir().expect("a folder");
        let keys = |name: &str| KeyFolder::create(&folder.path().join(name), name, None);
        let mut base = keys("base")?.new_group("fleet", NewGroup::default())?;
        let car = keys("car")?;
        let invited = base.invite(&IdentityCard::from_bytes(&car.card()?)?, PastSecrets::All)?;
        let member = car.join(&invited.invitation, None, None)?;
        let waiting = keys("bus")?;
        let card = waiting.card()?;
        let invited = base.invite(&IdentityCard::from_bytes(&card)?, PastSecrets::All)?;
        let mut notices = invited.notices;
        notices.extend(base.rotate()?);
        notices.extend(base.advance()?);
        notices.extend(base.set_beater(Some(&[7; 32]))?);
        notices.push(base.heartbeat()?);
        let fresh = IdentityCard::from_bytes(&car.card()?)?;
        notices.extend(base.heal(&[fresh], false)?.notices);
        base.revoke(&[member.slot()])?;
        notices.extend(base.removals(0)?);
        notices.extend(base.renew(None)?);
        let (root, invitation) = (folder.path().to_owned(), invited.invitation);
        Ok(FuzzedGroup { root, member, waiting, card, invitation, notices, _folder: folder })
    }
}

thread_local! {
    static WORLD: RefCell<FuzzedGroup> = RefCell::new(FuzzedGroup::new().expect("a world"));
}

fn coded<T>(outcome: Result<T, Error>) -> Option<T> {
    outcome.inspect_err(|error| assert!(error.info().code.starts_with("SL-"))).ok()
}

/// The bytes with a difference applied; none if that changes nothing.
fn changed(bytes: &[u8], difference: &[u8]) -> Option<Vec<u8>> {
    let mut changed = bytes.to_vec();
    changed.iter_mut().zip(difference).for_each(|(byte, difference)| *byte ^= difference);
    (changed != bytes).then_some(changed)
}

/// Cards, and the text of public keys and fingerprints.
pub fn card(bytes: &[u8]) {
    coded(IdentityCard::from_bytes(bytes));
    if let Ok(text) = std::str::from_utf8(bytes) {
        if let Some(key) = coded(text.parse::<PublicKey>()) {
            assert_eq!(key.to_string(), text.trim());
        }
        if let Some(fingerprint) = coded(text.parse::<Fingerprint>()) {
            assert_eq!(coded(fingerprint.to_string().parse()), Some(fingerprint));
        }
    }
    WORLD.with_borrow(|world| {
        if let Some(changed) = changed(&world.card, bytes) {
            assert!(
                coded(IdentityCard::from_bytes(&changed)).is_none(),
                "a changed card was taken"
            );
        }
    });
}

/// Invitations to a card that waits.
pub fn invitation(bytes: &[u8]) {
    WORLD.with_borrow(|world| {
        let join = |bytes: &[u8]| coded(world.waiting.join(bytes, None, None));
        assert!(join(bytes).is_none() || bytes == world.invitation, "a forged invitation joined");
        if let Some(changed) = changed(&world.invitation, bytes) {
            assert!(join(&changed).is_none(), "a changed invitation joined");
        }
        assert!(coded(world.waiting.groups()).is_some_and(|groups| groups.is_empty()));
    });
}

/// Orders: their bodies behind their data type, files of them, and notices that come to a member.
pub fn order(bytes: &[u8]) {
    for document in [GroupDocument::Order, GroupDocument::Renewal] {
        if let Some(written) = coded(examine(document, bytes)) {
            assert_eq!(written, bytes);
        }
    }
    if let Some(notices) = coded(read_orders(bytes)) {
        assert_eq!(write_orders(&notices), bytes);
    }
    WORLD.with_borrow_mut(|world| {
        unmoved(&mut world.member, bytes);
        let [choice, difference @ ..] = bytes else { return };
        let notice = &world.notices[usize::from(*choice) % world.notices.len()];
        if let Some(changed) = changed(notice.as_bytes(), difference) {
            unmoved(&mut world.member, &changed);
        }
    });
}

/// A notice that nobody has signed changes nothing, and says nothing that it was obeyed.
fn unmoved(member: &mut GroupMember, notice: &[u8]) {
    let Some(notice) = coded(GroupNotice::from_bytes(notice)) else { return };
    let state = |member: &GroupMember| {
        let known = (member.orders(), member.check_sealing().is_ok());
        (member.epochs().newest(), known, member.roster().clone())
    };
    let before = state(member);
    let changes = coded(member.apply(&notice));
    assert!(changes.is_none_or(|changes| changes.is_empty()), "a forged order was obeyed");
    assert_eq!(state(member), before);
}

/// The files of a key folder: the first byte chooses which.
pub fn folder(bytes: &[u8]) {
    if let Some(written) = coded(examine(GroupDocument::GroupFile, bytes)) {
        assert!(written == bytes, "a folder's file that is written otherwise than it was read");
    }
    coded(KeyFolder::is_protected_backup(bytes));
    let [choice, bytes @ ..] = bytes else { return };
    let files = ["identity", "cards", "groups/fleet/group", "groups/fleet/counters"];
    let name = files[usize::from(*choice) % files.len()];
    WORLD.with_borrow(|world| {
        let root = world.root.join("car");
        let whole = std::fs::read(root.join(name)).unwrap_or_default();
        std::fs::write(root.join(name), bytes).expect("a file");
        let member = KeyFolder::open(&root, None).and_then(|keys| keys.group("fleet"));
        coded(member.and_then(|member| member.sender()));
        std::fs::write(root.join(name), whole).expect("the file again");
        if name == "cards" {
            std::fs::remove_file(root.join(name)).expect("no cards");
        }
    });
}

use proptest::prelude::*;

use super::*;
use crate::format::chunk::ChunkCompression;
use crate::format::header::{ObjectHeader, ObjectKind};
use crate::format::roster::NO_END;
use crate::format::snapshot::{self, SnapshotBody, SnapshotCounts, SnapshotLink};
use crate::keys::{VaultSealingKeys, VaultSecretKey, VaultSigner};

const VAULT: VaultId = [7; 16];
const OWNER: SignerId = [0; 8];
const WRITER: SignerId = [1; 8];
const STRANGER: SignerId = [2; 8];

/// The keys of all that sign here.
struct Keys {
    sealing: VaultSealingKeys,
    succession: OwnerSuccession,
    signers: HashMap<SignerId, SignerKey>,
}

fn signer(id: SignerId) -> VaultSigner {
    VaultSigner::from_seed(&VaultSecretKey::new([id[0] + 1; 32])).unwrap()
}

impl Keys {
    fn new(until: u64) -> Keys {
        let sealing = VaultSealingKeys::derive(&VaultSecretKey::new([9; 32]), &VAULT).unwrap();
        let succession = OwnerSuccession::of_one(signer(OWNER).verifying_key());
        let writer = SignerKey { verifying: signer(WRITER).verifying_key(), until };
        Keys { sealing, succession, signers: HashMap::from([(WRITER, writer)]) }
    }

    fn link(&self, number: u64, previous: ObjectHash, by: SignerId) -> Vec<u8> {
        self.removing(number, previous, by, Vec::new())
    }

    fn removing(
        &self,
        number: u64,
        previous: ObjectHash,
        by: SignerId,
        removed: Vec<ChainHead>,
    ) -> Vec<u8> {
        let body = SnapshotBody {
            prune: !removed.is_empty(),
            time_ns: 0,
            source: "host".to_owned(),
            note: String::new(),
            counts: SnapshotCounts::default(),
            compression: ChunkCompression::None,
            listing: None,
            pages: Vec::new(),
            paths: Vec::new(),
            tags: Vec::new(),
            roster: 0,
            rotations: Vec::new(),
        };
        let header = ObjectHeader::owners(ObjectKind::Snapshot, &VAULT, 0);
        let link = SnapshotLink { number, previous, signer: by, removed };
        snapshot::write(&header, &link, &body, &self.sealing, &signer(by)).unwrap()
    }

    fn judge(
        &self,
        from: Option<ChainHead>,
        objects: &[(u64, Vec<u8>)],
    ) -> Result<SnapshotChain, Error> {
        let Keys { succession, signers, .. } = self;
        let trust = LedgerTrust { vault: &VAULT, succession, signers };
        let mut ledger = ChainLedger::new(trust, None, from);
        for (number, bytes) in objects {
            ledger.add(*number, Ok(bytes.clone()));
        }
        ledger.chain()
    }

    /// A chain of links by these signers.
    fn chain(&self, by: &[SignerId]) -> Vec<(u64, Vec<u8>)> {
        let mut previous = [0; 32];
        let link = |(number, by): (u64, &SignerId)| {
            let object = self.link(number, previous, *by);
            previous = hash(&object);
            (number, object)
        };
        (1..).zip(by).map(link).collect()
    }
}

fn hash(object: &[u8]) -> ObjectHash {
    *blake3::hash(object).as_bytes()
}

#[test]
fn objects_make_a_chain_without_a_store() {
    let keys = Keys::new(NO_END);
    let objects = keys.chain(&[OWNER, WRITER, OWNER]);
    let chain = keys.judge(None, &objects).unwrap();
    assert_eq!((chain.links, chain.next), (vec![1, 2, 3], 4));
    assert_eq!(chain.head, Some((3, hash(&objects[2].1))));
    assert_eq!(chain.standing, chain.head);
    assert!(chain.problems.is_empty() && chain.unread.is_empty());
}

#[test]
fn a_strangers_link_holds_a_place_and_is_no_standing_head() {
    let keys = Keys::new(NO_END);
    let objects = keys.chain(&[OWNER, STRANGER]);
    let owners = (1, hash(&objects[0].1));
    for from in [None, Some(owners)] {
        let chain = keys.judge(from, &objects).unwrap();
        assert_eq!(chain.head, Some((2, hash(&objects[1].1))));
        assert_eq!((chain.standing, chain.next), (Some(owners), 3));
    }
    let alone = keys.judge(None, &keys.chain(&[STRANGER])).unwrap();
    assert_eq!((alone.standing, alone.links), (None, Vec::new()));
}

#[test]
fn a_removed_writers_link_behind_its_end_is_counted_apart() {
    let keys = Keys::new(1);
    let objects = keys.chain(&[WRITER, WRITER]);
    let chain = keys.judge(None, &objects).unwrap();
    assert_eq!((chain.links, chain.ended), (vec![1], vec![(2, hash(&objects[1].1))]));
}

#[test]
fn a_head_that_was_seen_is_there_or_names_the_fault() {
    let keys = Keys::new(NO_END);
    let objects = keys.chain(&[OWNER, OWNER]);
    let seen = (2, hash(&objects[1].1));
    assert_eq!(keys.judge(Some(seen), &objects).unwrap().head, Some(seen));
    let lost = keys.judge(Some(seen), &objects[..1]).unwrap_err();
    assert!(matches!(lost, Error::RolledBack { seen: 2, .. }), "{lost}");
    let other = keys.judge(Some((2, [5; 32])), &objects).unwrap_err();
    assert!(matches!(other, Error::Forked(2)), "{other}");
}

proptest! {
    /// The order in which a store gives the objects decides nothing, and neither does what was
    /// damaged beside them change what is said of the rest.
    #[test]
    fn the_order_of_objects_decides_nothing(
        by in prop::collection::vec(0..3_usize, 1..8),
        broken in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        lost in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        order in any::<u64>(),
    ) {
        let keys = Keys::new(4);
        let by: Vec<SignerId> = by.into_iter().map(|by| [OWNER, WRITER, STRANGER][by]).collect();
        let mut objects = keys.chain(&by);
        for at in broken {
            let object = &mut at.get_mut(&mut objects[..]).1;
            *object.last_mut().unwrap() ^= 1;
        }
        for at in lost {
            if objects.len() > 1 {
                objects.remove(at.index(objects.len()));
            }
        }
        let told = |objects: &[(u64, Vec<u8>)]| {
            let mut chain = keys.judge(None, objects).unwrap();
            chain.problems.sort_by(|a, b| a.path.cmp(&b.path));
            chain.ended.sort_unstable();
            format!("{chain:?}")
        };
        let before = told(&objects);
        objects.sort_by_key(|(number, _)| number.wrapping_mul(order | 1) % 8191);
        prop_assert_eq!(before, told(&objects));
    }
}

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use sealane::{Codec, Value};

/// The published messages: a fingerprint of each message under its id.
#[derive(Debug, Default)]
pub(super) struct PublishedLedger {
    messages: HashMap<String, u64>,
}

impl PublishedLedger {
    pub(super) fn add(&mut self, id: String, envelope: &Value) {
        self.messages.insert(id, fingerprint(envelope));
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Messages that are not in `received`, or are there with another content.
    pub(super) fn missing(&self, received: &HashMap<String, u64>) -> u64 {
        let missing = |(id, print): &(&String, &u64)| received.get(*id) != Some(*print);
        u64::try_from(self.messages.iter().filter(missing).count()).unwrap_or(u64::MAX)
    }
}

/// Tells apart what differs in anything: the CBOR form is deterministic.
pub(super) fn fingerprint(envelope: &Value) -> u64 {
    let mut bytes = Vec::new();
    sealane_codec::encode(Codec::Cbor, envelope, &mut bytes);
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_or_differs_is_lost() {
        let value = |n: u64| Value::Map(vec![("n".into(), n.into())]);
        let mut ledger = PublishedLedger::default();
        (0..4).for_each(|n| ledger.add(n.to_string(), &value(n)));
        let mut received: HashMap<_, _> =
            (0..4).map(|n| (n.to_string(), fingerprint(&value(n)))).collect();
        assert_eq!(ledger.missing(&received), 0);
        received.remove("1");
        received.insert("2".into(), fingerprint(&value(9)));
        assert_eq!(ledger.missing(&received), 2);
    }
}

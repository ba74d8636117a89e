//! People with key folders who share a group.

use std::time::Duration;

use sealane::{Client, ClientEvent, ClientEvents, GroupClient, GroupMember, KeyFolder};
use sealane_group::{IdentityCard, NewGroup, PastSecrets};

/// One person: a real folder with real files.
pub(crate) struct Person {
    pub(crate) keys: KeyFolder,
    _home: tempfile::TempDir,
}

impl Person {
    pub(crate) fn new(name: &str) -> Person {
        let home = tempfile::tempdir().unwrap();
        let keys = KeyFolder::create(&home.path().join("keys"), name, None).unwrap();
        Person { keys, _home: home }
    }

    pub(crate) fn member(&self) -> GroupMember {
        self.keys.group("fleet").unwrap()
    }

    /// A client of its own with this person's keys.
    pub(crate) async fn group(&self, client: &Client) -> GroupClient {
        client.group(self.member()).await.unwrap()
    }
}

/// The authority of the group `fleet`.
pub(crate) fn authority(options: NewGroup) -> Person {
    let person = Person::new("base");
    person.keys.new_group("fleet", options).unwrap();
    person
}

/// Invites somebody; the orders are in the authority's folder and nowhere else yet.
pub(crate) fn invite(authority: &Person, name: &str, past: PastSecrets) -> Person {
    let person = Person::new(name);
    let card = IdentityCard::from_bytes(&person.keys.card().unwrap()).unwrap();
    let invited = authority.member().invite(&card, past).unwrap();
    person.keys.join(&invited.invitation, None, None).unwrap();
    person
}

/// The base and a car, and what they have ordered is published.
pub(crate) async fn fleet(client: &Client) -> (Person, Person) {
    let base = authority(NewGroup::default());
    let car = invite(&base, "car", PastSecrets::All);
    assert_eq!(base.group(client).await.publish_orders().await.unwrap(), 2);
    (base, car)
}

/// The names of the next refusals.
pub(crate) async fn refusals(events: &mut ClientEvents, count: usize) -> Vec<&'static str> {
    let mut names = Vec::new();
    while names.len() < count {
        let next = tokio::time::timeout(Duration::from_secs(60), events.next());
        match next.await.expect("an event within 10 s").expect("no end") {
            ClientEvent::Refused { name, .. } => names.push(name),
            _ => continue,
        }
    }
    names
}

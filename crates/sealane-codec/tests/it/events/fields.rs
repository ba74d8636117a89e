//! Every field of the specification has its key and its type, and is there if it has to be.

use sealane_codec::event::{EventError, decode};

use super::{encoded, raw};

#[derive(Clone, Copy, PartialEq)]
enum Presence {
    Needed,
    Optional,
    /// It says what the map is, so that without it the map is another one.
    Variant,
}

/// A field with a value that it may have.
struct Field {
    key: u64,
    name: &'static str,
    value: Vec<u8>,
    presence: Presence,
}

fn need(key: u64, name: &'static str, value: Vec<u8>) -> Field {
    Field { key, name, value, presence: Presence::Needed }
}

fn some(key: u64, name: &'static str, value: Vec<u8>) -> Field {
    Field { key, name, value, presence: Presence::Optional }
}

fn variant(key: u64, name: &'static str, number: u64) -> Vec<Field> {
    let field = Field { key, name, value: raw::number(number), presence: Presence::Variant };
    // Of 0 nothing is written.
    if number == 0 { vec![] } else { vec![field] }
}

/// A map of the specification, and the event that it stands in.
struct Form {
    wrap: fn(Vec<u8>) -> Vec<u8>,
    fields: Vec<Field>,
}

impl Form {
    /// The event with another value, or none, in the place of the field at `at`.
    fn changed(&self, at: usize, value: Option<&[u8]>) -> Vec<u8> {
        let values = self.fields.iter().enumerate().filter_map(|(index, field)| {
            let own = if index == at { value } else { Some(&field.value[..]) };
            Some((field.key, own?))
        });
        (self.wrap)(raw::map(&values.collect::<Vec<_>>()))
    }

    fn whole(&self) -> Vec<u8> {
        self.changed(usize::MAX, None)
    }
}

const ID: [u8; 8] = [0x11; 8];

/// The fields of the least attachment.
pub(super) const ATTACHMENT: [(u64, &[u8]); 5] =
    [(0, b"\x48attached"), (1, b"\x60"), (2, b"\x60"), (3, b"\x00"), (5, b"\x40")];

fn id() -> Vec<u8> {
    raw::bytes(&ID)
}

fn time() -> Vec<u8> {
    raw::number(1_795_370_000_000)
}

fn reference() -> Vec<u8> {
    raw::bytes(&[2, 3, 3, 3, 3, 3, 3, 3, 3])
}

fn plain() -> Vec<u8> {
    raw::map(&[(1, &raw::text("hello"))])
}

/// An event that says this.
pub(super) fn said(content: &[u8]) -> Vec<u8> {
    raw::map(&[(0, &id()), (4, &time()), (7, content)])
}

/// A message with this attachment.
pub(super) fn attached(attachment: Vec<u8>) -> Vec<u8> {
    let attachments = raw::array(&[attachment]);
    raw::map(&[(0, &id()), (4, &time()), (7, &plain()), (12, &attachments)])
}

fn action(number: u64, own: Vec<Field>) -> Form {
    let mut fields =
        vec![need(0, "id", id()), some(3, "device", raw::text("phone")), need(4, "time", time())];
    fields.extend(variant(5, "action", number));
    fields.extend(own);
    Form { wrap: |map| map, fields }
}

fn actions() -> Vec<Form> {
    let of = || need(6, "of", reference());
    let content = || need(7, "content", plain());
    let text = |name| need(8, name, raw::text("x"));
    let mut forms = vec![
        action(
            0,
            vec![
                content(),
                some(9, "thread", reference()),
                some(10, "reply to", reference()),
                some(11, "mentions", raw::texts(&["ada"])),
                some(12, "attachments", raw::array(&[raw::map(&ATTACHMENT)])),
                some(13, "expires", time()),
                some(14, "ephemeral", raw::TRUE.to_vec()),
            ],
        ),
        action(1, vec![of(), content()]),
        action(9, vec![of(), need(15, "choices", raw::texts(&["a", "b"]))]),
        action(15, vec![]),
        action(16, vec![need(16, "seconds", raw::number(90))]),
    ];
    forms.extend([2, 5, 6, 7, 8].map(|number| action(number, vec![of()])));
    forms.extend([3, 4].map(|number| action(number, vec![of(), text("emoji")])));
    forms.extend([10, 11].map(|number| action(number, vec![text("name")])));
    forms.extend([12, 13, 14].map(|number| action(number, vec![text("handle")])));
    forms
}

fn content(kind: u64, own: Vec<Field>) -> Form {
    let mut fields = variant(0, "kind", kind);
    fields.extend(own);
    Form { wrap: |map| said(&map), fields }
}

fn written() -> Vec<Form> {
    let text = |key, name| need(key, name, raw::text("x"));
    let some_text = |key, name| some(key, name, raw::text("x"));
    let truth = |key, name| some(key, name, raw::TRUE.to_vec());
    let degrees = |key, name| need(key, name, raw::float(48.1));
    let links = some(3, "links", raw::texts(&["https://example.org"]));
    let options = need(2, "options", raw::array(&[raw::texts(&["a", "yes"])]));
    vec![
        content(0, vec![text(1, "text")]),
        content(1, vec![text(1, "raw text"), text(2, "formatted text"), links]),
        content(
            2,
            vec![
                text(1, "language"),
                text(2, "code"),
                some_text(3, "file name"),
                truth(4, "line numbers"),
            ],
        ),
        content(
            5,
            vec![
                degrees(1, "latitude"),
                degrees(2, "longitude"),
                some(3, "accuracy", raw::float(0.1)),
                some_text(4, "address"),
                some_text(5, "place"),
            ],
        ),
        content(
            6,
            vec![
                text(1, "question"),
                options,
                truth(3, "several choices"),
                truth(4, "anonymous"),
                some(5, "closes", time()),
            ],
        ),
    ]
}

fn recorded() -> Vec<Form> {
    let text = |key, name| need(key, name, raw::text("x"));
    let bytes = |key, name| need(key, name, raw::bytes(b"x"));
    let number = |key, name| need(key, name, raw::number(1000));
    vec![
        content(
            3,
            vec![
                number(1, "seconds"),
                bytes(2, "waveform"),
                some(3, "transcription", raw::text("x")),
                text(4, "MIME type"),
                bytes(5, "data"),
            ],
        ),
        content(
            4,
            vec![
                number(1, "seconds"),
                bytes(2, "thumbnail"),
                number(3, "width"),
                number(4, "height"),
                text(5, "MIME type"),
                bytes(6, "data"),
            ],
        ),
    ]
}

fn pictures_and_attachments() -> Vec<Form> {
    let text = |key, name| need(key, name, raw::text("x"));
    let bytes = |key, name| need(key, name, raw::bytes(b"x"));
    let some_bytes = |key, name| some(key, name, raw::bytes(b"x"));
    let number = |key, name| need(key, name, raw::number(1000));
    let sticker = vec![
        text(1, "pack"),
        text(2, "sticker"),
        text(3, "emoji"),
        some(4, "animated", raw::TRUE.to_vec()),
        bytes(5, "data"),
    ];
    let gif = vec![
        text(1, "URL"),
        bytes(2, "thumbnail"),
        number(3, "width"),
        number(4, "height"),
        some(5, "caption", raw::text("x")),
    ];
    let attachment = vec![
        need(0, "attachment's id", id()),
        text(1, "file name"),
        text(2, "MIME type"),
        number(3, "size"),
        some_bytes(4, "thumbnail"),
        bytes(5, "object"),
        some_bytes(6, "attachment's key"),
        some(7, "facts", raw::array(&[raw::texts(&["a", "b"])])),
    ];
    vec![content(7, sticker), content(8, gif), Form { wrap: attached, fields: attachment }]
}

fn forms() -> impl Iterator<Item = Form> {
    [actions(), written(), recorded(), pictures_and_attachments()].into_iter().flatten()
}

/// Whether two values have one type: a major type, or one of the simple ones.
fn is_alike(one: &[u8], other: &[u8]) -> bool {
    if one[0] >> 5 == 7 { one[0] == other[0] } else { one[0] >> 5 == other[0] >> 5 }
}

#[test]
fn each_has_its_key_and_its_type() {
    assert_eq!(forms().count(), 17 + 9 + 1, "actions, contents, the attachment");
    for form in forms() {
        let bytes = form.whole();
        assert_eq!(encoded(&decode(&bytes).unwrap()), bytes);
    }
}

#[test]
fn those_that_are_needed_are_missed_and_others_may_be_absent() {
    for form in forms() {
        for (at, field) in form.fields.iter().enumerate() {
            let bytes = form.changed(at, None);
            match field.presence {
                Presence::Needed => {
                    let missing = EventError::Missing { name: field.name };
                    assert_eq!(decode(&bytes), Err(missing));
                }
                Presence::Optional => assert_eq!(encoded(&decode(&bytes).unwrap()), bytes),
                Presence::Variant => {}
            }
        }
    }
}

#[test]
fn a_value_of_another_type_is_refused() {
    let values = [
        raw::NULL.to_vec(),
        raw::FALSE.to_vec(),
        raw::number(7),
        // -1.
        vec![0x20],
        raw::bytes(&ID),
        raw::text("x"),
        raw::texts(&["x"]),
        raw::map(&[]),
        raw::float(0.1),
    ];
    for form in forms() {
        for (at, field) in form.fields.iter().enumerate() {
            for value in values.iter().filter(|value| !is_alike(value, &field.value)) {
                let refused = EventError::Field { name: field.name };
                assert_eq!(decode(&form.changed(at, Some(value))), Err(refused), "{value:x?}");
            }
        }
    }
}

#[test]
fn what_is_absent_is_not_written_as_nothing() {
    let empty = [raw::texts::<&str>(&[]), raw::FALSE.to_vec(), raw::number(0)];
    let names = ["mentions", "attachments", "links", "facts", "ephemeral", "action", "kind"];
    let mut tried = 0;
    for form in forms() {
        for (at, field) in form.fields.iter().enumerate() {
            let is_tried = names.contains(&field.name);
            for value in
                empty.iter().filter(|value| is_tried && value[0] >> 5 == field.value[0] >> 5)
            {
                let refused = EventError::Field { name: field.name };
                assert_eq!(decode(&form.changed(at, Some(value))), Err(refused));
                tried += 1;
            }
        }
    }
    // 16 actions and 8 kinds have a number, and each other name stands once.
    assert_eq!(tried, 16 + 8 + 5);
}

#[test]
fn ids_have_8_bytes() {
    for form in forms() {
        let is_id = |field: &Field| ["id", "attachment's id"].contains(&field.name);
        for at in (0..form.fields.len()).filter(|at| is_id(&form.fields[*at])) {
            for length in [0, 7, 9, 16] {
                let bytes = form.changed(at, Some(&raw::bytes(&[1; 16][..length])));
                let refused = EventError::Field { name: form.fields[at].name };
                assert_eq!(decode(&bytes), Err(refused), "{length}");
            }
        }
    }
}

#[test]
fn references_have_8_to_10_bytes_and_no_leading_zero() {
    let mut tried = 0;
    for form in forms() {
        let is_reference = |field: &Field| ["of", "thread", "reply to"].contains(&field.name);
        for at in (0..form.fields.len()).filter(|at| is_reference(&form.fields[*at])) {
            let read = |bytes: &[u8]| decode(&form.changed(at, Some(&raw::bytes(bytes)))).err();
            let refused = Some(EventError::Field { name: form.fields[at].name });
            for length in [0, 7, 11, 16] {
                assert_eq!(read(&[1; 16][..length]), refused, "{length}");
            }
            for zero in [&[0; 9][..], &[0; 10], &[0, 1, 1, 1, 1, 1, 1, 1, 1, 1]] {
                let error = read(zero);
                assert!(matches!(error, Some(EventError::NotDeterministic { .. })), "{error:?}");
            }
            for good in [&[0; 8][..], &[1, 0, 0, 0, 0, 0, 0, 0, 0], &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0]]
            {
                assert_eq!(read(good), None);
            }
            tried += 1;
        }
    }
    assert_eq!(tried, 2 + 2 + 5 + 2, "messages, edit and vote, five receipts and pins, reactions");
}

#[test]
fn pairs_have_two_texts() {
    let pairs = [raw::texts(&["a"]), raw::texts(&["a", "b", "c"]), raw::text("a"), raw::map(&[])];
    let halves =
        [raw::array(&[raw::text("a"), raw::number(1)]), raw::array(&[vec![0x40], vec![0x60]])];
    for form in forms() {
        let is_pairs = |field: &Field| ["options", "facts"].contains(&field.name);
        for at in (0..form.fields.len()).filter(|at| is_pairs(&form.fields[*at])) {
            for wrong in pairs.iter().chain(&halves) {
                let bytes = form.changed(at, Some(&raw::array(std::slice::from_ref(wrong))));
                let refused = EventError::Field { name: form.fields[at].name };
                assert_eq!(decode(&bytes), Err(refused));
            }
        }
    }
}

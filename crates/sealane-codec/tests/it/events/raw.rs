//! CBOR put together by hand, in the deterministic form and apart from the code under test.

pub(super) const NULL: &[u8] = &[0xf6];
pub(super) const TRUE: &[u8] = &[0xf5];
pub(super) const FALSE: &[u8] = &[0xf4];

fn head(major: u8, argument: u64) -> Vec<u8> {
    let (info, width) = match argument {
        0..24 => return vec![major << 5 | argument as u8],
        24..0x100 => (24, 1),
        0x100..0x1_0000 => (25, 2),
        0x1_0000..0x1_0000_0000 => (26, 4),
        _ => (27, 8),
    };
    [&[major << 5 | info][..], &argument.to_be_bytes()[8 - width..]].concat()
}

pub(super) fn number(value: u64) -> Vec<u8> {
    head(0, value)
}

pub(super) fn bytes(value: &[u8]) -> Vec<u8> {
    [head(2, value.len() as u64), value.to_vec()].concat()
}

pub(super) fn text(value: &str) -> Vec<u8> {
    [head(3, value.len() as u64), value.as_bytes().to_vec()].concat()
}

pub(super) fn float(value: f64) -> Vec<u8> {
    [&[0xfb][..], &value.to_be_bytes()].concat()
}

pub(super) fn array(elements: &[Vec<u8>]) -> Vec<u8> {
    [head(4, elements.len() as u64), elements.concat()].concat()
}

pub(super) fn texts<T: AsRef<str>>(elements: &[T]) -> Vec<u8> {
    array(&elements.iter().map(|element| text(element.as_ref())).collect::<Vec<_>>())
}

pub(super) fn map(fields: &[(u64, &[u8])]) -> Vec<u8> {
    let fields_bytes = fields.iter().map(|(key, value)| [&number(*key), *value].concat());
    [head(5, fields.len() as u64), fields_bytes.collect::<Vec<_>>().concat()].concat()
}

/// So many arrays, each but the last within another.
pub(super) fn nested(levels: usize) -> Vec<u8> {
    let mut arrays = vec![0x81; levels];
    arrays[levels - 1] = 0x80;
    arrays
}

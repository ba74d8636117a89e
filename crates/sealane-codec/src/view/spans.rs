//! The maps of an array, and where each of them ends.

use super::MapField;
use crate::limits::MAX_VALUES;

/// Maps that stand in one array, their fields in one list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Maps<'a> {
    pub(super) fields: Vec<MapField<'a>>,
    /// Where the fields of each map end.
    pub(super) ends: Vec<usize>,
    /// Bytes of each map.
    pub(super) lengths: Vec<usize>,
}

impl<'a> Maps<'a> {
    /// The fields of each map, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[MapField<'a>]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let map = self.fields.get(start..end).unwrap_or_default();
            start = end;
            map
        })
    }

    /// Bytes of each map, in order.
    pub fn lengths(&self) -> impl ExactSizeIterator<Item = usize> {
        self.lengths.iter().copied()
    }

    pub(super) fn close(&mut self) {
        self.ends.push(self.fields.len());
    }

    /// Measures the maps of a JSON array, which was read. Its parser tells no places of maps, and
    /// around their values stand blanks, commas and brackets only.
    pub(super) fn measure_json(&mut self, array: &[u8]) {
        let find = |at: usize, bracket| {
            let rest = array.get(at..).unwrap_or_default();
            at + rest.iter().position(|&byte| byte == bracket).unwrap_or(rest.len())
        };
        let (mut lengths, mut at) = (Vec::with_capacity(self.ends.len()), 0);
        for map in self.iter() {
            let start = find(at, b'{');
            let inner = map.last().map_or(start, |(_, value)| {
                (value.as_ptr() as usize).wrapping_sub(array.as_ptr() as usize) + value.len()
            });
            at = find(inner, b'}') + 1;
            lengths.push(at - start);
        }
        self.lengths = lengths;
    }

    /// Whether there are more maps and fields than values in one datum.
    pub(super) fn is_too_large(&self) -> bool {
        self.ends.len() + self.fields.len() > MAX_VALUES
    }
}

#[cfg(test)]
mod tests {
    use crate::{Codec, Transcoder, elements, maps};

    #[test]
    fn maps_are_as_long_as_the_elements_of_their_array() {
        let json = br#" [ {} ,{"a":"}{,","b":[{"c":{}}]} , { "d" : 1 } ,{"e":{}}] "#;
        for codec in Codec::AT_REST {
            let mut array = Vec::new();
            match codec {
                Codec::Json => array.extend_from_slice(json),
                _ => Transcoder::new().transcode(Codec::Json, json, codec, &mut array).unwrap(),
            }
            let lengths: Vec<usize> = maps(codec, &array).unwrap().lengths().collect();
            let elements = elements(codec, &array).unwrap();
            assert_eq!(lengths, elements.iter().map(|map| map.len()).collect::<Vec<_>>());
        }
    }
}

//! Small inputs that claim to be large are refused at once, without the memory they claim.

use crate::shared::counting::{allocations_of, peak_of};
use sealane_codec::limits::{MAX_DEPTH, MAX_VALUES};
use sealane_codec::{Codec, CodecError, Transcoder, decode, elements, fields, maps, records};

use Codec::{Cbor, Json, MsgPack, MsgPackRecords};

/// How long a processor has worked for this thread: other programs do not add to it.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    // proc(5): utime and stime, 12th and 13th behind the name, in ticks of 10 ms.
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let ticks = fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u32>().unwrap());
    f64::from(ticks.sum::<u32>()) / 100.0
}

fn refused_cheaply(codec: Codec, bytes: &[u8]) -> CodecError {
    let started = cpu_seconds();
    let (verdict, peak) = peak_of(|| decode(codec, bytes));
    assert!(cpu_seconds() - started < 2.0);
    assert!(peak < 64 * bytes.len() + (64 << 10), "{peak} bytes for {} of input", bytes.len());
    let (views, peak) = peak_of(|| {
        let lists = (fields(codec, bytes).is_ok(), elements(codec, bytes).is_ok());
        (lists, maps(codec, bytes).is_ok())
    });
    assert_eq!(views, ((false, false), false));
    assert!(peak < 64 * bytes.len() + (64 << 10));
    verdict.unwrap_err()
}

fn nested(open: &[u8], inner: &[u8], close: &[u8], levels: usize) -> Vec<u8> {
    [open.repeat(levels), inner.to_vec(), close.repeat(levels)].concat()
}

#[test]
fn depth_is_bounded() {
    let shapes: [(Codec, [&[u8]; 3]); 9] = [
        (Json, [b"[", b"1", b"]"]),
        (Json, [b"{\"a\":", b"1", b"}"]),
        (MsgPack, [b"\x91", b"\x01", b""]),
        (MsgPack, [b"\x81\xa1a", b"\x01", b""]),
        (Cbor, [b"\x81", b"\x01", b""]),
        (Cbor, [b"\x9f", b"\x01", b"\xff"]),
        (Cbor, [b"\xbf\x61a", b"\x01", b"\xff"]),
        (MsgPackRecords, [b"\x91", b"\x01", b""]),
        (MsgPackRecords, [b"\xd4\x72\x40\x91\xa1a", b"\x01", b""]),
    ];
    for (codec, [open, inner, close]) in shapes {
        assert!(decode(codec, &nested(open, inner, close, MAX_DEPTH)).is_ok());
        for levels in [MAX_DEPTH + 1, 10_000, 100_000] {
            let error = refused_cheaply(codec, &nested(open, inner, close, levels));
            assert!(matches!(error, CodecError::TooDeep { .. }), "{codec:?} {levels} {error}");
        }
        // Unclosed and empty towers as well.
        refused_cheaply(codec, &nested(open, b"", b"", 100_000));
    }
}

/// The views look at the depth of values that the parser only steps over.
#[test]
fn a_view_is_as_deep_as_its_datum() {
    let shapes: [(Codec, [&[u8]; 5]); 3] = [
        (Json, [b"[", b"1", b"]", b"{\"a\":", b"}"]),
        (MsgPack, [b"\x91", b"\x01", b"", b"\x81\xa1a", b""]),
        (Cbor, [b"\x9f", b"\x01", b"\xff", b"\xbf\x61a", b"\xff"]),
    ];
    for (codec, [open, inner, close, map, end]) in shapes {
        for (levels, is_taken) in [(MAX_DEPTH, true), (MAX_DEPTH + 1, false)] {
            let array = nested(open, inner, close, levels);
            let in_map = [map, &nested(open, inner, close, levels - 1), end].concat();
            let rest = nested(open, inner, close, levels - 2);
            let in_maps = [open, map, &rest, end, close].concat();
            let verdicts = [
                elements(codec, &array).map(drop),
                fields(codec, &in_map).map(drop),
                maps(codec, &in_maps).map(drop),
            ];
            for verdict in verdicts {
                match verdict {
                    Ok(()) => assert!(is_taken, "{codec:?} {levels}"),
                    Err(CodecError::TooDeep { .. }) => assert!(!is_taken, "{codec:?} {levels}"),
                    Err(other) => panic!("{codec:?} {levels}: {other}"),
                }
            }
        }
    }
    let brackets = format!(r#"[{{"a":"{}"}}]"#, "[{\\\"".repeat(10 * MAX_DEPTH));
    assert_eq!(maps(Json, brackets.as_bytes()).map(|all| all.iter().len()), Ok(1));
}

/// Deliveries come by hundreds in one array: to find their fields takes no memory for each.
#[test]
fn the_fields_of_many_maps_are_two_lists() {
    let json = format!("[{}{{}}]", r#"{"deliver":{"id":"a"},"offset":7,"attempt":1},"#.repeat(256));
    let packed = [&b"\xdc\x01\x00"[..], &b"\x82\xa1a\x01\xa1b\x02".repeat(256)].concat();
    for (codec, array) in [(Json, json.as_bytes()), (MsgPack, &packed)] {
        let calls = allocations_of(|| drop(maps(codec, array).unwrap()));
        assert!(calls <= 32, "{codec:?}: {calls} allocations");
    }
}

#[test]
fn lengths_do_not_lie() {
    let lies: [(Codec, &[u8]); 14] = [
        (MsgPack, b"\xdf\xff\xff\xff\xff"),
        (MsgPack, b"\xdd\xff\xff\xff\xff\x01"),
        (MsgPack, b"\xdb\xff\xff\xff\xff\x01"),
        (MsgPack, b"\xc6\xff\xff\xff\xff\x01"),
        (MsgPack, b"\xdf\xff\xff\xff\xff\xa1a\xdf\xff\xff\xff\xff"),
        (MsgPackRecords, b"\xdf\xff\xff\xff\xff"),
        (MsgPackRecords, b"\xd4\x72\x40\xdd\xff\xff\xff\xff"),
        (MsgPackRecords, b"\xd4\x72\x40\x91\xdb\xff\xff\xff\xff"),
        (Cbor, b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff"),
        (Cbor, b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff"),
        (Cbor, b"\x7b\xff\xff\xff\xff\xff\xff\xff\xff"),
        (Cbor, b"\x5b\x00\x00\x00\xff\xff\xff\xff\xff"),
        (Cbor, b"\x7f\x7b\xff\xff\xff\xff\xff\xff\xff\xff"),
        (Cbor, b"\xba\xff\xff\xff\xff"),
    ];
    for (codec, bytes) in lies {
        let error = refused_cheaply(codec, bytes);
        let expected =
            matches!(error, CodecError::Truncated { .. } | CodecError::RecordStructure { .. });
        assert!(expected, "{bytes:02x?} {error}");
    }
}

#[test]
fn values_are_counted() {
    let many = MAX_VALUES;
    let inputs = [
        (Json, format!("[{}0]", "0,".repeat(many)).into_bytes()),
        (MsgPack, [&b"\xdd"[..], &(many as u32 + 1).to_be_bytes(), &vec![0xc0; many + 1]].concat()),
        (Cbor, [&b"\x9f"[..], &vec![0xf6; many + 1], b"\xff"].concat()),
    ];
    for (codec, bytes) in inputs {
        let (verdict, peak) = peak_of(|| Transcoder::new().validate(codec, &bytes));
        assert!(matches!(verdict, Err(CodecError::TooLarge { .. })));
        assert!(peak < 16 << 20, "{peak}");
    }
}

/// One byte stands for a record's keys, so that few bytes could become gigabytes.
#[test]
fn records_do_not_explode() {
    let mut bytes = b"\x92\xd4\x72\x40\x91\xda\x0f\xff".to_vec();
    bytes.extend([b'k'; 0xfff]);
    bytes.extend(b"\x01\xdd\x00\x01\x00\x00");
    bytes.extend(b"\x40\x01".repeat(0x1_0000));
    let mut decoder = records::Decoder::new();
    let mut plain = Vec::new();
    assert!(matches!(decoder.to_plain(&bytes, &mut plain), Err(CodecError::TooLarge { .. })));
    assert!(plain.is_empty());
    let mut wide = b"\xd4\x72\x40\x91\xda\x10\x01".to_vec();
    wide.extend([b'k'; 0x1001]);
    wide.push(1);
    assert!(matches!(decoder.decode(&wide), Err(CodecError::RecordStructure { .. })));
}

/// Wide maps of keys that all look alike take no quadratic time.
#[test]
fn wide_maps_are_checked_in_time() {
    let prefix = "k".repeat(40);
    let keys = (0..100_000).map(|n| format!("\"{prefix}{n}\":0"));
    let json = format!("{{{}}}", keys.collect::<Vec<_>>().join(","));
    let started = cpu_seconds();
    let mut transcoder = Transcoder::new();
    let (mut cbor, mut back) = (Vec::new(), Vec::new());
    transcoder.transcode(Json, json.as_bytes(), Cbor, &mut cbor).unwrap();
    transcoder.transcode(Cbor, &cbor, MsgPack, &mut back).unwrap();
    assert_eq!(fields(Json, json.as_bytes()).unwrap().len(), 100_000);
    let took = cpu_seconds() - started;
    assert!(took < 10.0, "{took} s");
}

/// Each span of a list takes sixteen bytes, each of these values one or two.
#[test]
fn a_small_input_is_no_large_list_of_its_parts() {
    for (codec, head) in [(MsgPack, 0xdd_u8), (Cbor, 0x9a)] {
        for (count, is_taken) in [(MAX_VALUES, true), (MAX_VALUES + 1, false)] {
            let mut array = vec![head];
            array.extend((count as u32).to_be_bytes());
            array.resize(5 + count, 0);
            check(codec, &array, is_taken);
        }
    }
    check(Json, format!("[{}0]", "0,".repeat(MAX_VALUES - 1)).as_bytes(), true);
    check(Json, format!("[{}0]", "0,".repeat(MAX_VALUES)).as_bytes(), false);
}

/// Each map and each of its fields is a value.
#[test]
fn a_small_input_is_no_large_list_of_its_maps() {
    for (count, is_taken) in [(MAX_VALUES, true), (MAX_VALUES + 1, false)] {
        let json = format!("[{}{{}}]", "{},".repeat(count - 1));
        let head = [&[0xdd], (count as u32).to_be_bytes().as_slice()].concat();
        let packed = [head, vec![0x80; count]].concat();
        for (codec, array) in [(Json, json.into_bytes()), (MsgPack, packed)] {
            match maps(codec, &array) {
                Ok(all) => assert!(is_taken && all.iter().len() == MAX_VALUES, "{codec:?}"),
                Err(error) => {
                    assert!(!is_taken && matches!(error, CodecError::TooLarge { .. }), "{error}");
                }
            }
        }
    }
}

fn check(codec: Codec, array: &[u8], is_taken: bool) {
    match sealane_codec::elements(codec, array) {
        Ok(all) => assert!(is_taken && all.len() == MAX_VALUES, "{codec:?}: {}", all.len()),
        Err(error) => assert!(!is_taken && matches!(error, CodecError::TooLarge { .. }), "{error}"),
    }
}

//! A certificate that signs itself, as RFC 5280 has it: P-256, and names instead of a subject.
//!
//! A library for it would be eight more crates in the program; this is the one form that is made.

use std::net::IpAddr;
use std::time::SystemTime;

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};

/// What a name of the certificate stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Name {
    Dns(String),
    Address(IpAddr),
}

/// What is to be made.
pub(super) struct Request<'a> {
    pub(super) names: &'a [Name],
    pub(super) from: SystemTime,
    pub(super) until: SystemTime,
}

/// A certificate and its key, both PEM.
pub(super) struct Made {
    pub(super) certificate: String,
    pub(super) key: String,
}

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const UTF8_STRING: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// The name of DNS and the address among the forms of a name.
const DNS_NAME: u8 = 0x82;
const IP_ADDRESS: u8 = 0x87;
/// The version and the extensions, the parts of a certificate that have a number.
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;

// Object identifiers, with their tag and length.
const ECDSA_WITH_SHA256: &[u8] = &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
const COMMON_NAME: &[u8] = &[6, 3, 0x55, 4, 3];
const SUBJECT_ALT_NAME: &[u8] = &[6, 3, 0x55, 0x1d, 0x11];
const BASIC_CONSTRAINTS: &[u8] = &[6, 3, 0x55, 0x1d, 0x13];
const KEY_USAGE: &[u8] = &[6, 3, 0x55, 0x1d, 0x0f];
const EXTENDED_KEY_USAGE: &[u8] = &[6, 3, 0x55, 0x1d, 0x25];
const SERVER_AUTH: &[u8] = &[6, 8, 0x2b, 6, 1, 5, 5, 7, 3, 1];
/// The value TRUE, for an extension that who does not know it is to refuse.
const CRITICAL: &[u8] = &[1, 1, 0xff];
/// The bits of the use of a key, of which the first is signing.
const DIGITAL_SIGNATURE: &[u8] = &[BIT_STRING, 2, 7, 0x80];

impl Request<'_> {
    /// Makes a key, and a certificate for it that no other certificate can be signed with.
    pub(super) fn make(&self, serial: [u8; 16], subject: &str) -> Result<Made, Unspecified> {
        let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING)?;
        let public = key.public_key().as_der()?;
        let algorithm = wrap(SEQUENCE, &[ECDSA_WITH_SHA256]);
        let name = wrap(
            SEQUENCE,
            &[COMMON_NAME, &wrap(UTF8_STRING, &[b"Sealane node ", subject.as_bytes()])],
        );
        let name = wrap(SEQUENCE, &[&wrap(SET, &[&name])]);
        let to_sign = wrap(
            SEQUENCE,
            &[
                &wrap(VERSION, &[&[INTEGER, 1, 2]]),
                &wrap(INTEGER, &[&positive(serial)]),
                &algorithm,
                &name,
                &wrap(SEQUENCE, &[&time(self.from), &time(self.until)]),
                &name,
                public.as_ref(),
                &wrap(EXTENSIONS, &[&wrap(SEQUENCE, &[&self.extensions()])]),
            ],
        );
        let signature = key.sign(&SystemRandom::new(), &to_sign)?;
        let signature = wrap(BIT_STRING, &[&[0], signature.as_ref()]);
        let certificate = wrap(SEQUENCE, &[&to_sign, &algorithm, &signature]);
        let key = key.to_pkcs8v1()?;
        Ok(Made {
            certificate: pem("CERTIFICATE", &certificate),
            key: pem("PRIVATE KEY", key.as_ref()),
        })
    }

    fn extensions(&self) -> Vec<u8> {
        let names: Vec<u8> = self.names.iter().flat_map(alternative).collect();
        let extension = |parts: &[&[u8]], value: &[u8]| {
            let value = wrap(OCTET_STRING, &[value]);
            wrap(SEQUENCE, &[parts.concat().as_slice(), &value])
        };
        [
            extension(&[SUBJECT_ALT_NAME], &wrap(SEQUENCE, &[&names])),
            extension(&[BASIC_CONSTRAINTS, CRITICAL], &wrap(SEQUENCE, &[])),
            extension(&[KEY_USAGE, CRITICAL], DIGITAL_SIGNATURE),
            extension(&[EXTENDED_KEY_USAGE], &wrap(SEQUENCE, &[SERVER_AUTH])),
        ]
        .concat()
    }
}

fn alternative(name: &Name) -> Vec<u8> {
    match name {
        Name::Dns(name) => wrap(DNS_NAME, &[name.as_bytes()]),
        Name::Address(IpAddr::V4(address)) => wrap(IP_ADDRESS, &[&address.octets()]),
        Name::Address(IpAddr::V6(address)) => wrap(IP_ADDRESS, &[&address.octets()]),
    }
}

/// A number that is neither negative nor zero, and needs all its bytes.
fn positive(mut number: [u8; 16]) -> [u8; 16] {
    let [first, ..] = &mut number;
    *first = (*first & 0x7f) | 0x40;
    number
}

/// Tag, length and value, of which the last is made of parts.
fn wrap(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut out = vec![tag];
    match length {
        0..=0x7f => out.push(length as u8),
        _ => {
            let bytes = length.to_be_bytes();
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            let bytes = bytes.get(zeros..).unwrap_or_default();
            out.push(0x80 | bytes.len() as u8);
            out.extend_from_slice(bytes);
        }
    }
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out
}

/// A second in UTC, with two digits of the year up to 2049 (RFC 5280 §4.1.2.5).
fn time(time: SystemTime) -> Vec<u8> {
    let text = humantime::format_rfc3339_seconds(time).to_string();
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    match digits.strip_prefix("20").filter(|rest| *rest < "50") {
        Some(rest) => wrap(UTC_TIME, &[rest.as_bytes(), b"Z"]),
        None => wrap(GENERALIZED_TIME, &[digits.as_bytes(), b"Z"]),
    }
}

/// RFC 7468.
fn pem(label: &str, der: &[u8]) -> String {
    const COLUMNS: usize = 64;
    let text = base64_simd::STANDARD.encode_to_string(der);
    let mut pem = format!("-----BEGIN {label}-----\n");
    for (at, c) in text.chars().enumerate() {
        if at > 0 && at % COLUMNS == 0 {
            pem.push('\n');
        }
        pem.push(c);
    }
    pem + &format!("\n-----END {label}-----\n")
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn lengths_are_as_short_as_they_can_be() {
        assert_eq!(wrap(SEQUENCE, &[]), [0x30, 0]);
        assert_eq!(wrap(INTEGER, &[&[7; 127]])[..2], [2, 127]);
        assert_eq!(wrap(INTEGER, &[&[7; 128]])[..3], [2, 0x81, 128]);
        assert_eq!(wrap(INTEGER, &[&[7; 256]])[..4], [2, 0x82, 1, 0]);
    }

    #[test]
    fn years_have_two_digits_up_to_2049() {
        let at = |seconds| time(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(2_524_607_999), b"\x17\x0d491231235959Z");
        assert_eq!(at(2_524_608_000), b"\x18\x0f20500101000000Z");
    }

    #[test]
    fn a_serial_number_is_positive() {
        for first in [0, 0x7f, 0x80, 0xff] {
            let number = positive([first; 16]);
            assert!(number[0] > 0 && number[0] < 0x80, "{number:?}");
        }
    }
}

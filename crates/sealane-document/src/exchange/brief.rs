//! A frame without what its neighbours know: `spec/document.md`, *Exchange*.

use sealane_frame::{FrameView, GroupTag, Header, HeaderFields, PeerTag, RELAY_BYTES};
use sealane_message::bytes::put_leb128;
use sealane_seal::{Class, Epoch, Form, SenderContext, SframeHeader};

use super::bytes::ExchangeFieldReader;
use crate::ExchangeError;
use crate::limits::MAX_DOCUMENT_BYTES;

/// The tag of every seal, and the signature of class S.
const TAG_BYTES: usize = 16;
const SIGNATURE_BYTES: usize = 64;
/// The bits of flags that say the class.
const CLASS_BITS: u8 = 0b11;

/// The brief form of a frame, if it has one in a message of that group.
pub(super) fn brief(group: GroupTag, frame: &[u8]) -> Option<Vec<u8>> {
    let view = FrameView::parse(frame).ok()?;
    let header = view.header();
    let mut out = vec![header.flags(), header.codec()];
    put_leb128(header.data_type().into(), &mut out);
    out.extend(header.source().to_bytes());
    out.extend(header.context().0);
    out.push(header.orders());
    let behind = view.sealed();
    // In class A the body follows the SFrame header here, so that the place of each is known.
    let (body, seal) = behind.split_at_checked(view.clear_body().map_or(0, <[u8]>::len))?;
    let (seal, tag) = seal.split_at_checked(seal.len().checked_sub(TAG_BYTES)?)?;
    [seal, body, tag].into_iter().for_each(|part| out.extend(part));
    // The brief form has not all fields. The others must have the values that everybody knows.
    let is_same =
        whole_form(group, &out).is_ok_and(|again| frame.get(RELAY_BYTES..) == Some(&again[..]));
    is_same.then_some(out)
}

/// The frame of a brief form, without the bytes of relays.
pub(super) fn whole_form(group: GroupTag, brief: &[u8]) -> Result<Vec<u8>, ExchangeError> {
    let mut input = ExchangeFieldReader::new(brief);
    let [flags, codec] = input.array()?;
    let data_type = u16::try_from(input.leb128()?).map_err(|_| ExchangeError::Order)?;
    let (source, context): ([u8; 8], [u8; 8]) = (input.array()?, input.array()?);
    let [orders] = input.array()?;
    let rest = input.rest();
    let seal = SframeHeader::parse(rest, Form::Full, Epoch(0));
    let (seal, seal_bytes) = seal.map_err(|_| ExchangeError::Order)?;
    let class = Class::ALL.get(usize::from(flags & CLASS_BITS)).ok_or(ExchangeError::Order)?;
    let signature = if *class == Class::Signed { SIGNATURE_BYTES } else { 0 };
    let around = seal_bytes + signature + TAG_BYTES;
    let body_bytes = rest.len().checked_sub(around).ok_or(ExchangeError::Length)?;
    let fields =
        HeaderFields { orders, ..HeaderFields::new(group, PeerTag::from_bytes(source), data_type) };
    let header = Header::new(&fields, body_bytes, seal.counter, SenderContext(context));
    let header = header.map_err(|_| ExchangeError::Order)?.with_entry(flags, codec);
    let mut frame = header.authenticated().to_vec();
    if *class == Class::Authenticated {
        let (head, behind) = rest.split_at_checked(seal_bytes).ok_or(ExchangeError::Length)?;
        let (body, tag) = behind.split_at_checked(body_bytes).ok_or(ExchangeError::Length)?;
        [body, head, tag].into_iter().for_each(|part| frame.extend(part));
    } else {
        frame.extend(rest);
    }
    match frame.len() <= MAX_DOCUMENT_BYTES - RELAY_BYTES {
        true => Ok(frame),
        false => Err(ExchangeError::Order),
    }
}

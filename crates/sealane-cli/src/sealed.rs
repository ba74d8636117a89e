//! The facts of a sealed message without keys: the fields of its frame's header.

use std::sync::Arc;

use sealane::{Client, Error, GroupClient, ReceivedMessage, Value};
use sealane_codec::Codec;
use sealane_frame::{FrameView, PeerTag};
use sealane_protocol::SealedEnvelope;

use crate::CliFailure;
use crate::args::key::KeysArgs;
use crate::config::SettingsFile;
use crate::terminal::harmless;

/// The view of a sealed message without its keys; none where the message is open.
///
/// # Errors
/// An envelope that the hub should not have delivered.
pub fn describe(message: &ReceivedMessage) -> Result<Option<Value>, CliFailure> {
    let Some(sealed) = read(message)? else { return Ok(None) };
    let frame = FrameView::parse(&sealed.frame).map_err(wrong)?;
    let header = frame.header();
    let fields = [
        ("group", header.group().to_string().into()),
        ("class", header.class().letter().to_string().into()),
        ("type", u64::from(header.data_type()).into()),
        ("codec", codec_name(header.codec()).into()),
        ("source", header.source().to_string().into()),
        ("destination", tag_name(header.destination()).into()),
        ("context", header.context().to_string().into()),
        ("sequence", header.sequence().into()),
        ("bodyBytes", (header.body_bytes() as u64).into()),
    ];
    Ok(Some(Value::Map(fields.map(|(name, value)| (name.to_owned(), value)).into())))
}

/// The envelope of a sealed message; none where the message is open.
///
/// # Errors
/// An envelope that the hub should not have delivered.
pub fn read(message: &ReceivedMessage) -> Result<Option<SealedEnvelope<'_>>, CliFailure> {
    Ok(SealedEnvelope::read(message.codec, &message.envelope).map_err(wrong)?)
}

/// The codec of a body, by its number in the header.
pub fn codec_name(id: u8) -> String {
    match Codec::from_id(id) {
        Some(codec) => codec.name().to_owned(),
        None if id == 0 => "none".to_owned(),
        None => id.to_string(),
    }
}

/// A tag, or who has none of his own.
pub fn tag_name(tag: PeerTag) -> String {
    match tag {
        PeerTag::BROADCAST => "everybody".to_owned(),
        PeerTag::NOBODY => "nobody".to_owned(),
        tag => tag.to_string(),
    }
}

fn wrong(cause: impl std::fmt::Display) -> Error {
    Error::Protocol(format!("a sealed message is none: {cause}"))
}

/// A client with the keys of a group of the key folder, and the policy that the settings name.
///
/// # Errors
/// The refusal of the key folder, the policy file or the hub.
pub async fn open(
    client: &Client,
    keys: &KeysArgs,
    group: &str,
    file: &SettingsFile,
) -> Result<GroupClient, CliFailure> {
    let (policy, _) = crate::policy::load(None, file)?;
    let member = crate::key::open(keys)?.group(group)?;
    Ok(client.group(member).await?.with_policy(policy))
}

/// Says on standard error what people should know of the group before they trust what they see.
pub fn warn(group: &GroupClient) {
    for warning in group.warnings() {
        eprintln!("sealane: {} [{}]", harmless(&warning.to_string()), warning.code());
    }
}

/// Looks once more for orders, behind the published messages. Messages that fell behind a removal
/// meanwhile are sealed again.
///
/// # Errors
/// The refusal of the hub.
pub async fn settle(group: &GroupClient) -> Result<(), CliFailure> {
    let events = tokio::spawn(crate::subscribe::tell(group.events(), Arc::default()));
    let outcome = group.catch_up().await;
    events.abort();
    outcome?;
    // If a fault keeps a message from being sealed, the failure of sealing says so.
    warn(group);
    Ok(())
}

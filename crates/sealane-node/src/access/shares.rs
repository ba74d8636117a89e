//! The shares that are chosen for a token, in the file of tokens.

use std::fmt::Write as _;

use sealane_message::InputError;
use sealane_stream::{OwnShares, ShareKind};
use toml::de::DeTable;
use toml::{Table, Value};

/// The key of a token under which its shares stand.
const KEY: &str = "share";

/// Why a share cannot be read, and its name where it has one.
pub(super) struct ShareFault {
    pub(super) key: String,
    pub(super) cause: InputError,
}

/// Takes the shares out of a token's table; what is not chosen is not there.
pub(super) fn take(table: &mut Table) -> Result<OwnShares, ShareFault> {
    let all = match table.remove(KEY) {
        None => return Ok(OwnShares::default()),
        Some(Value::Table(all)) => all,
        Some(_) => {
            let cause = format!("`{KEY}` is no table like {{ streams = 1000 }}").into();
            return Err(ShareFault { key: String::new(), cause });
        }
    };
    let mut shares = OwnShares::default();
    for (name, value) in all {
        let read = read(&name, &value);
        let (kind, limit) = read.map_err(|cause| ShareFault { key: name.clone(), cause })?;
        shares = shares.with(kind, limit);
    }
    Ok(shares)
}

fn read(name: &str, value: &Value) -> Result<(ShareKind, u64), InputError> {
    let kind = ShareKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
        let names: Vec<_> = ShareKind::ALL.into_iter().map(ShareKind::name).collect();
        format!("`{KEY}.{name}` is no share; there are {}", names.join(", "))
    })?;
    let most = kind.limit();
    let limit = value.as_integer().and_then(|limit| u64::try_from(limit).ok());
    match limit.filter(|limit| *limit <= most) {
        Some(limit) => Ok((kind, limit)),
        None => Err(format!("`{KEY}.{name}` is {value}, and no integer from 0 to {most}").into()),
    }
}

/// The line of a token's table that has its shares; nothing where none were chosen.
pub(super) fn write(shares: &OwnShares, text: &mut String) {
    let all: Vec<_> =
        shares.iter().map(|(kind, limit)| format!("{} = {limit}", kind.name())).collect();
    if !all.is_empty() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{KEY} = {{ {} }}", all.join(", "));
    }
}

/// The line of a token, by its place in the file, or of its share of this name.
pub(super) fn line(text: &str, token: usize, share: Option<&str>) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let token = document.get_ref().get("token")?.get_ref().get(token)?;
    let found = share.and_then(|name| {
        let shares = token.get_ref().get(KEY)?;
        Some(shares.get_ref().get(name).unwrap_or(shares))
    });
    let start = found.unwrap_or(token).span().start;
    Some(text.get(..start)?.matches('\n').count() + 1)
}

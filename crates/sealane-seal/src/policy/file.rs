//! A policy file: TOML, read whole or not at all.

use std::borrow::Borrow;

use crate::limits::{
    MAX_POLICY_BATCH_MS, MAX_POLICY_BYTES, MAX_REASON_BYTES, MIN_POLICY_FRAGMENT_BYTES,
};
use sealane_message::DataType;
use toml::de::{DeTable, DeValue};

use super::rules::{Rules, group_floor, may_be_lowered};
use super::{Battery, Policy, PolicyError, PolicyFault, PolicyLink, Rate, ReaderTrust, SendPace};
use crate::{Class, Suite};

pub(super) fn read(text: &str) -> Result<Rules, PolicyError> {
    if text.len() > MAX_POLICY_BYTES {
        return Err(PolicyError { line: 1, fault: PolicyFault::too_long() });
    }
    let file = PolicyFile { text };
    let parsed = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        file.error(at, PolicyFault::Syntax(error.message().to_owned()))
    })?;
    let top = PolicyTable { file, name: String::new(), at: 0, entries: parsed.get_ref() };
    let mut rules = Rules::default();
    // Before all else: the rest may mean something else in another version.
    top.version()?;
    top.only(&["version", "type", "link", "trust", "adapt"])?;
    let (of_applications, named): (Vec<_>, Vec<_>) =
        top.tables("type")?.into_iter().partition(|(name, _)| application(name).is_some());
    // Where those of applications say nothing, what the file says of `unknown` holds.
    for (name, types) in named.iter().chain(&of_applications) {
        of_type(&mut rules, name, types)?;
    }
    for (name, link) in top.tables("link")? {
        of_link(&mut rules, &name, &link)?;
    }
    for (name, trust) in top.tables("trust")? {
        of_trust(&mut rules, &name, &trust)?;
    }
    if let Some(adapt) = top.table("adapt")? {
        of_adapt(&mut rules, &adapt)?;
    }
    Ok(rules)
}

fn of_type(rules: &mut Rules, name: &str, table: &PolicyTable<'_>) -> Result<(), PolicyError> {
    let registered = DataType::ALL.iter().find(|known| known.name() == Some(name)).copied();
    let data_type = registered.or_else(|| application(name)).ok_or_else(|| {
        let names = DataType::ALL.iter().filter_map(|known| known.name());
        let names: Vec<_> = names.chain(["64 to 79"]).collect();
        table.unknown(name, "[type]", &names)
    })?;
    table.only(&["floor", "group_floor", "ceiling", "because"])?;
    let because = table.reason()?;
    if data_type.is_application() {
        rules.bound_alone(data_type);
    }
    let bounds = rules.bounds_mut(data_type);
    if let Some(floor) = table.floor("floor", data_type, bounds.built_in_floor)? {
        bounds.floor = floor;
        bounds.group_floor = group_floor(data_type, floor);
        if !bounds.ceiling.covers(floor) {
            bounds.ceiling = floor;
        }
    }
    if let Some(floor) = table.floor("group_floor", data_type, bounds.built_in_group_floor)? {
        if !floor.covers(bounds.floor) {
            let least = bounds.floor.letter();
            return Err(table.wrong("group_floor", format!("is at least the floor, {least}")));
        }
        bounds.group_floor = floor;
    }
    if let Some(ceiling) = table.class("ceiling")? {
        let floor = bounds.floor;
        if !ceiling.covers(floor) {
            let fault = PolicyFault::CeilingBelowFloor { data_type, floor, ceiling };
            return Err(table.error("ceiling", fault));
        }
        bounds.ceiling = ceiling;
    }
    bounds.because = because;
    Ok(())
}

/// The type of applications of that number, written in one way.
fn application(name: &str) -> Option<DataType> {
    let data_type = DataType::from_number(name.parse().ok()?);
    (data_type.is_application() && data_type.to_string() == name).then_some(data_type)
}

fn of_link(rules: &mut Rules, name: &str, table: &PolicyTable<'_>) -> Result<(), PolicyError> {
    let known = PolicyLink::ALL.map(PolicyLink::name);
    let link = PolicyLink::from_name(name).ok_or_else(|| table.unknown(name, "[link]", &known))?;
    table.only(&["raise", "fragment_bytes", "because"])?;
    let rule = rules.link_mut(link);
    rule.is_given = table.entry("raise").is_some();
    rule.raise = table.raise(rule.raise)?;
    rule.fragment_bytes = table.fragment_bytes()?.unwrap_or(rule.fragment_bytes);
    Ok(())
}

fn of_trust(rules: &mut Rules, name: &str, table: &PolicyTable<'_>) -> Result<(), PolicyError> {
    let known = ReaderTrust::ALL.map(ReaderTrust::name);
    let trust =
        ReaderTrust::from_name(name).ok_or_else(|| table.unknown(name, "[trust]", &known))?;
    table.only(&["raise", "because"])?;
    let rule = rules.trust_mut(trust);
    rule.raise = table.raise(rule.raise)?;
    Ok(())
}

fn of_adapt(rules: &mut Rules, table: &PolicyTable<'_>) -> Result<(), PolicyError> {
    let [normal, busy, saving] = SendPace::ALL.map(SendPace::name);
    table.only(&["battery_percent", "rate_hz", normal, busy, saving])?;
    if let Some(percent) = table.integer("battery_percent", 0, 100)? {
        rules.battery = u8::try_from(percent).ok().and_then(Battery::new).unwrap_or(rules.battery);
    }
    rules.rate = table.rate("rate_hz")?.unwrap_or(rules.rate);
    for pace in SendPace::ALL {
        let Some(table) = table.table(pace.name())? else { continue };
        table.only(&["rate_hz_max", "batch_ms", "delta", "fragment_bytes", "suite"])?;
        let sending = rules.pace_mut(pace);
        sending.rate_max = table.rate("rate_hz_max")?.or(sending.rate_max);
        if let Some(batch) = table.integer("batch_ms", 0, MAX_POLICY_BATCH_MS.into())? {
            sending.batch_ms = u32::try_from(batch).unwrap_or(MAX_POLICY_BATCH_MS);
        }
        sending.delta = table.flag("delta")?.unwrap_or(sending.delta);
        sending.fragment_bytes = table.fragment_bytes()?.unwrap_or(sending.fragment_bytes);
        sending.suite = table.suite()?.unwrap_or(sending.suite);
    }
    Ok(())
}

/// The text, which tells lines from places.
#[derive(Clone, Copy)]
struct PolicyFile<'a> {
    text: &'a str,
}

impl PolicyFile<'_> {
    fn error(self, at: usize, fault: PolicyFault) -> PolicyError {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        PolicyError { line, fault }
    }
}

/// A table, its name with dots (none for the whole file), and where it begins.
struct PolicyTable<'a> {
    file: PolicyFile<'a>,
    name: String,
    at: usize,
    entries: &'a DeTable<'a>,
}

impl<'a> PolicyTable<'a> {
    fn entry(&self, key: &str) -> Option<(usize, &'a DeValue<'a>)> {
        let value = self.entries.get(key)?;
        Some((value.span().start, value.get_ref()))
    }

    fn error(&self, key: &str, fault: PolicyFault) -> PolicyError {
        self.file.error(self.entry(key).map_or(self.at, |(at, _)| at), fault)
    }

    fn wrong(&self, key: &str, cause: impl Into<String>) -> PolicyError {
        self.error(key, PolicyFault::Value { key: key.to_owned(), cause: cause.into() })
    }

    fn unknown(&self, key: &str, section: &str, known: &[&str]) -> PolicyError {
        let (key, section) = (key.to_owned(), section.to_owned());
        self.file.error(self.at, PolicyFault::UnknownKey { key, section, known: known.join(", ") })
    }

    /// Refuses keys that are none.
    fn only(&self, known: &[&str]) -> Result<(), PolicyError> {
        let names = |key: &str| known.contains(&key);
        let Some(key) = self.entries.keys().find(|key| !names(key.get_ref().borrow())) else {
            return Ok(());
        };
        let section = match self.name.as_str() {
            "" => "the file".into(),
            name => format!("[{name}]"),
        };
        let (at, key) = (key.span().start, key.get_ref().to_string());
        Err(self.file.error(at, PolicyFault::UnknownKey { key, section, known: known.join(", ") }))
    }

    fn version(&self) -> Result<(), PolicyError> {
        let found = match self.entry("version") {
            Some((_, value)) if integer(value) == Some(Policy::VERSION) => return Ok(()),
            Some((_, DeValue::Integer(number))) => Some(number.to_string()),
            Some((_, DeValue::String(text))) => Some(format!("\"{text}\"")),
            Some((_, other)) => Some(format!("of a {}", other.type_str())),
            None => None,
        };
        Err(self.error("version", PolicyFault::Version { found }))
    }

    fn table(&self, key: &str) -> Result<Option<PolicyTable<'a>>, PolicyError> {
        let Some((at, value)) = self.entry(key) else { return Ok(None) };
        let entries = value.as_table().ok_or_else(|| self.wrong(key, "is a table"))?;
        let name = if self.name.is_empty() { key.into() } else { format!("{}.{key}", self.name) };
        Ok(Some(PolicyTable { file: self.file, name, at, entries }))
    }

    /// The tables within a table, by name.
    fn tables(&self, key: &str) -> Result<Vec<(String, PolicyTable<'a>)>, PolicyError> {
        let Some(outer) = self.table(key)? else { return Ok(Vec::new()) };
        let names = outer.entries.keys().map(|name| name.get_ref().to_string());
        let inner = |name: String| match outer.table(&name)? {
            Some(table) => Ok(Some((name, table))),
            None => Ok(None),
        };
        names.filter_map(|name| inner(name).transpose()).collect()
    }

    fn text(&self, key: &str) -> Result<Option<&'a str>, PolicyError> {
        let Some((_, value)) = self.entry(key) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.wrong(key, "is text in quotes"))
    }

    fn class(&self, key: &str) -> Result<Option<Class>, PolicyError> {
        let Some(letter) = self.text(key)? else { return Ok(None) };
        let cause = "is A, C, S or P; plaintext is not a class";
        Class::from_letter(letter).map(Some).ok_or_else(|| self.wrong(key, cause))
    }

    /// A floor of a type; less than what is built in needs a reason, where it is allowed at all.
    fn floor(
        &self,
        key: &str,
        data_type: DataType,
        built_in: Class,
    ) -> Result<Option<Class>, PolicyError> {
        let Some(floor) = self.class(key)? else { return Ok(None) };
        if !floor.covers(built_in) {
            if !may_be_lowered(data_type) {
                return Err(
                    self.error(key, PolicyFault::LowersFloor { data_type, built_in, floor })
                );
            }
            if self.reason()?.is_none() {
                let named = format!("{}.{key}", self.name);
                let fault = PolicyFault::NoReason { key: named, built_in, asked: floor };
                return Err(self.error(key, fault));
            }
        }
        Ok(Some(floor))
    }

    /// The class that a link or trust asks for. If it is less than the built-in class, it needs a
    /// reason.
    fn raise(&self, built_in: Class) -> Result<Class, PolicyError> {
        let because = self.reason()?;
        let asked = self.class("raise")?.unwrap_or(built_in);
        if asked.covers(built_in) || because.is_some() {
            return Ok(asked);
        }
        let key = format!("{}.raise", self.name);
        Err(self.error("raise", PolicyFault::NoReason { key, built_in, asked }))
    }

    fn reason(&self) -> Result<Option<String>, PolicyError> {
        let Some(reason) = self.text("because")? else { return Ok(None) };
        let shown = !reason.trim().is_empty() && !reason.chars().any(char::is_control);
        if shown && reason.len() <= MAX_REASON_BYTES {
            return Ok(Some(reason.to_owned()));
        }
        Err(self.error("because", PolicyFault::bad_reason()))
    }

    fn integer(&self, key: &str, min: i64, max: i64) -> Result<Option<i64>, PolicyError> {
        let Some((_, value)) = self.entry(key) else { return Ok(None) };
        let number = integer(value).filter(|number| (min..=max).contains(number));
        number.map(Some).ok_or_else(|| self.wrong(key, format!("is a number from {min} to {max}")))
    }

    fn fragment_bytes(&self) -> Result<Option<u16>, PolicyError> {
        let (min, max) = (MIN_POLICY_FRAGMENT_BYTES, u16::MAX);
        let bytes = self.integer("fragment_bytes", min.into(), max.into())?;
        Ok(bytes.map(|bytes| u16::try_from(bytes).unwrap_or(max)))
    }

    fn rate(&self, key: &str) -> Result<Option<Rate>, PolicyError> {
        let Some((_, value)) = self.entry(key) else { return Ok(None) };
        let hertz = match value {
            DeValue::Float(number) => number.as_str().parse().ok(),
            other => integer(other).map(|number| number as f64),
        };
        let rate = hertz.and_then(Rate::from_hertz).filter(|rate| *rate > Rate::default());
        let cause = "is a number of messages per second from 0.001 to 4 million";
        rate.map(Some).ok_or_else(|| self.wrong(key, cause))
    }

    fn flag(&self, key: &str) -> Result<Option<bool>, PolicyError> {
        let Some((_, value)) = self.entry(key) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.wrong(key, "is true or false"))
    }

    fn suite(&self) -> Result<Option<Suite>, PolicyError> {
        let Some(name) = self.text("suite")? else { return Ok(None) };
        let known = Suite::ALL.map(Suite::name);
        let cause = format!("is one of {}", known.join(", "));
        Suite::from_name(name).map(Some).ok_or_else(|| self.wrong("suite", cause))
    }
}

fn integer(value: &DeValue<'_>) -> Option<i64> {
    let number = value.as_integer()?;
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

//! `sealane policy`.

use std::path::{Path, PathBuf};

use sealane::Value;
use sealane_message::DataType;
use sealane_seal::policy::{Conditions, Decision, Policy, Rate, Rule, Sending};
use sealane_seal::{Class, Group, GroupId};

use crate::args::policy::{self as args, PolicyExplain, PolicyVerb};
use crate::config::{SettingKey, SettingsFile};
use crate::terminal::table;
use crate::{CliFailure, Terminal};

/// Explains one decision, or checks a file.
///
/// # Errors
/// [`CliFailure::Policy`], or a file that cannot be read.
pub fn run(
    args: &args::PolicyArgs,
    file: &SettingsFile,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    match &args.verb {
        PolicyVerb::Explain(asked) => {
            let (policy, origin) = load(asked.file.as_deref(), file)?;
            explain(asked, &policy, &origin, terminal)
        }
        PolicyVerb::Check { file: named } => {
            let (policy, origin) = load(named.as_deref(), file)?;
            check(&policy, &origin, terminal)
        }
    }
}

/// The policy of the file that was named, of the setting, or what is built in; and which it was.
///
/// # Errors
/// [`CliFailure::Policy`], or a file that cannot be read.
pub fn load(named: Option<&Path>, file: &SettingsFile) -> Result<(Policy, String), CliFailure> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => match file.path(SettingKey::Policy) {
            Some(path) => path,
            None => return Ok((Policy::default(), "built in".into())),
        },
    };
    Ok((read(&path)?, path.display().to_string()))
}

/// The policy of a file.
///
/// # Errors
/// As [`load`].
pub(crate) fn read(path: &Path) -> Result<Policy, CliFailure> {
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    Policy::from_toml(&text)
        .map_err(|error| CliFailure::Policy { file: path.to_owned(), cause: Box::new(error) })
}

fn unreadable(path: &Path, error: &std::io::Error) -> CliFailure {
    CliFailure::File { file: PathBuf::from(path), cause: error.to_string() }
}

fn explain(
    asked: &PolicyExplain,
    policy: &Policy,
    origin: &str,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let PolicyExplain { data_type, link, trust, battery, rate, .. } = *asked;
    let conditions = Conditions { link, trust, battery, rate };
    let decision = policy.decide(data_type, &conditions);
    let bounds = policy.bounds(data_type);
    let sealed = SealedIn::new(data_type, &decision, policy);
    if terminal.json() {
        return terminal.record(fields(data_type, &decision, &sealed, policy, origin));
    }
    let registered = match data_type.name() {
        Some(_) => format!("type {}", data_type.number()),
        None if policy.applications().contains(&data_type) => "of applications".into(),
        None => "a number without a name, judged as unknown".into(),
    };
    terminal.line(format_args!("{data_type} ({registered}): {}", meaning(decision.class)))?;
    terminal.line(format_args!("  decided by   {}", why(data_type, &decision, policy)))?;
    if let Some(because) = &bounds.because {
        terminal.line(format_args!("  because      {because}"))?;
    }
    if let Some(capped) = decision.capped {
        let (capped, ceiling) = (capped.letter(), bounds.ceiling.letter());
        terminal.line(format_args!(
            "  capped       {capped} was asked for; the ceiling is {ceiling}"
        ))?;
    }
    match sealed.group {
        Some(class) if class == decision.class => {}
        Some(class) => {
            let class = class.letter();
            terminal.line(format_args!("  in a group   class {class}, its floor there"))?;
        }
        None => terminal.line("  in a group   not sent: it needs class P")?,
    }
    if let Some(class) = sealed.pair.filter(|class| *class != decision.class) {
        terminal.line(format_args!("  in a pair    class {}", class.letter()))?;
    }
    terminal.line(format_args!("  pace         {}", pace(&decision)))?;
    terminal.line(format_args!("  policy       {origin}"))
}

/// The classes that a message is sealed in by a decision; none where it is not sent.
struct SealedIn {
    /// In a group of more than two.
    group: Option<Class>,
    pair: Option<Class>,
}

impl SealedIn {
    fn new(data_type: DataType, decision: &Decision, policy: &Policy) -> Self {
        // Of a group nothing but its size counts here.
        let (id, suite) = (GroupId([0; 32]), decision.sending.suite);
        let class = |group| policy.class_in(&group, data_type, decision).ok();
        Self { group: class(Group::new(id, suite)), pair: class(Group::pair(id, suite)) }
    }
}

fn fields(
    data_type: DataType,
    decision: &Decision,
    sealed: &SealedIn,
    policy: &Policy,
    origin: &str,
) -> Vec<(&'static str, Value)> {
    let bounds = policy.bounds(data_type);
    let Sending { rate_max, batch_ms, delta, fragment_bytes, suite, .. } = decision.sending;
    let or_null = |class: Option<Class>| class.map(letter).map_or(Value::Null, Into::into);
    vec![
        ("type", data_type.to_string().into()),
        ("number", u64::from(data_type.number()).into()),
        ("policy", origin.into()),
        ("class", letter(decision.class).into()),
        ("inGroup", or_null(sealed.group)),
        ("inPair", or_null(sealed.pair)),
        ("rule", rule_name(decision.rule).into()),
        ("capped", or_null(decision.capped)),
        ("floor", letter(bounds.floor).into()),
        ("groupFloor", letter(bounds.group_floor).into()),
        ("ceiling", letter(bounds.ceiling).into()),
        ("pace", decision.pace.name().into()),
        ("rateMaxHz", rate_max.map_or(Value::Null, |rate| Value::F64(hertz(rate)))),
        ("batchMs", u64::from(batch_ms).into()),
        ("delta", delta.into()),
        ("fragmentBytes", u64::from(fragment_bytes).into()),
        ("suite", suite.name().into()),
    ]
}

/// The rule that decided, in a sentence.
fn why(data_type: DataType, decision: &Decision, policy: &Policy) -> String {
    let bounds = policy.bounds(data_type);
    let floor = bounds.floor.letter();
    let changed = if bounds.floor == bounds.built_in_floor { "built in" } else { "of the file" };
    match decision.rule {
        Rule::Floor => format!("the floor {floor} ({changed}); nothing raised it"),
        Rule::Link(link) => format!("the link `{}`, which raises the floor {floor}", link.name()),
        Rule::Trust(trust) => {
            format!("the trust `{}`, which raises the floor {floor}", trust.name())
        }
    }
}

fn meaning(class: Class) -> &'static str {
    match class {
        Class::Authenticated => "class A, authenticated and readable by all",
        Class::Group => "class C, readable by the group only",
        Class::Signed => "class S, readable by the group only and signed by its sender",
        Class::Peer => "class P, readable by two only",
    }
}

fn pace(decision: &Decision) -> String {
    let Sending { rate_max, batch_ms, delta, fragment_bytes, suite, .. } = decision.sending;
    let rate = rate_max.map_or("any rate".into(), |rate| format!("at most {rate} per second"));
    let batch = match batch_ms {
        0 => "sent at once".into(),
        ms => format!("gathered for {ms} ms"),
    };
    let delta = if delta { "deltas" } else { "no deltas" };
    let (name, suite) = (decision.pace.name(), suite.name());
    format!("{name}: {rate}, {batch}, {delta}, fragments to {fragment_bytes} bytes, {suite}")
}

fn check(policy: &Policy, origin: &str, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let mut rows = Vec::new();
    for data_type in DataType::ALL.iter().copied().chain(policy.applications()) {
        let bounds = policy.bounds(data_type);
        let reachable = policy.reachable(data_type);
        let letters: Vec<String> = reachable.into_iter().map(letter).collect();
        if terminal.json() {
            let reachable = letters.into_iter().map(Into::into).collect();
            terminal.record(vec![
                ("type", data_type.to_string().into()),
                ("number", u64::from(data_type.number()).into()),
                ("policy", origin.into()),
                ("floor", letter(bounds.floor).into()),
                ("groupFloor", letter(bounds.group_floor).into()),
                ("ceiling", letter(bounds.ceiling).into()),
                ("reachable", Value::Array(reachable)),
                ("because", bounds.because.clone().map_or(Value::Null, Into::into)),
            ])?;
            continue;
        }
        rows.push(vec![
            data_type.to_string(),
            data_type.number().to_string(),
            letter(bounds.floor),
            letter(bounds.group_floor),
            letter(bounds.ceiling),
            letters.join(" "),
            bounds.because.clone().unwrap_or_default(),
        ]);
    }
    if terminal.json() {
        return Ok(());
    }
    let head = ["type", "number", "floor", "group floor", "ceiling", "reachable", "because"];
    terminal.write(table(&head, &rows).as_bytes())?;
    terminal.line(format_args!("policy: {origin}; any other number is judged as unknown"))
}

fn rule_name(rule: Rule) -> String {
    match rule {
        Rule::Floor => "floor".into(),
        Rule::Link(link) => format!("link {}", link.name()),
        Rule::Trust(trust) => format!("trust {}", trust.name()),
    }
}

fn letter(class: Class) -> String {
    class.letter().to_string()
}

fn hertz(rate: Rate) -> f64 {
    f64::from(rate.millihertz()) / 1000.0
}

//! `sealane relay`.

mod mesh_told;
mod orders;
pub(crate) mod page;
mod routing;
mod told;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sealane::Value;
use sealane_link::{Beside, Config, LinkError, Reason, Relay, RelayCard, Tally, Volume};

use crate::args::key::KeysArgs;
use crate::args::operate::Relay as Args;
use crate::documents::Documents;
use crate::signals::Signals;
use crate::terminal::table;
use crate::{Failure, Terminal};

pub(crate) use orders::{CardOrders, Obeying};
pub(crate) use page::{Page, Tell, Teller};
pub(crate) use routing::Routing;
pub(crate) use told::{EndTold, Told};

/// A configuration, and the cards that it names.
pub(crate) struct Plan {
    pub(crate) config: Config,
    pub(crate) cards: Vec<RelayCard>,
}

/// How often a relay looks whether the mesh's group has changed.
pub(crate) const BEAT: Duration = Duration::from_secs(1);

/// Relays until Ctrl-C or SIGTERM, then says what was carried and dropped. SIGHUP reads the
/// configuration and its cards again.
///
/// # Errors
/// [`Failure::Link`], or a file that cannot be read.
pub async fn run(args: &Args, terminal: &mut Terminal) -> Result<(), Failure> {
    let plan = read(&args.file)?;
    let mut asked = Signals::new().map_err(Failure::Runtime)?;
    let wrong = |cause| refused(&args.file, cause);
    let capture = args.capture.as_deref().map(create).transpose()?;
    let routing = Routing::read(&args.file, &plan.config, &KeysArgs::default())?;
    let (mut routing, machine) = routing.unzip();
    let beside = Beside { end: None, machine };
    let relay = Relay::open(&plan.config, &plan.cards, beside).map_err(wrong)?;
    routing.iter_mut().for_each(|routing| routing.follow_with(&relay));
    let slot = routing.as_ref().map(Routing::slot);
    // They are kept until the relay ends.
    let documents = slot
        .map(|slot| Documents::open(&args.file, &plan.config, &relay, slot, None))
        .transpose()?
        .flatten();
    documents.iter().for_each(|one| one.know(&plan.cards));
    let mut orders = CardOrders::new(&relay);
    orders.keep(&plan.cards);
    capture.map_or(Ok(()), |file| relay.capture(file)).map_err(Failure::Runtime)?;
    let (watch, counts) = (relay.watch(), documents.as_ref().map(Documents::counts));
    let told: Tell = Arc::new(move || Told {
        status: watch.status(),
        end: None,
        gateway: None,
        documents: counts.as_ref().map(|counts| counts.lock().clone()),
    });
    let teller = Teller { tell: told, router: relay.router() };
    let _page = Page::serve(&plan.config, teller).await.map_err(wrong)?;
    started(&relay, &plan, vec![], terminal)?;
    let mut know = |cards: Vec<RelayCard>| {
        documents.iter().for_each(|one| one.know(&cards));
        orders.keep(&cards);
    };
    let mut beat = tokio::time::interval(BEAT);
    let name = loop {
        tokio::select! {
            name = asked.next() => match name {
                "SIGHUP" => {
                    tell_reload(&relay, reload(&relay, &args.file, &plan.config).map(&mut know));
                }
                name => break name,
            },
            _ = beat.tick() => routing.iter_mut().for_each(Routing::follow),
        }
    };
    eprintln!("sealane: {name}: stopping");
    // It waits for its threads, which take what has come.
    let tally = tokio::task::spawn_blocking(|| relay.stop()).await;
    tell(&tally.map_err(|error| Failure::Runtime(error.into()))?, terminal)
}

/// Gives the cards that it goes on with.
fn reload(relay: &Relay, file: &Path, before: &Config) -> Result<Vec<RelayCard>, Failure> {
    let Plan { config, cards } = read(file)?;
    let is_same = (&config.status, &config.documents) == (&before.status, &before.documents);
    let taken = match is_same {
        true => relay.reload(&config, &cards).map(|_| ()),
        false => Err(LinkError::LinksChanged),
    };
    taken.map_err(|cause| refused(file, cause))?;
    Ok(cards)
}

/// Says what became of a configuration, on standard error and in the status.
pub(crate) fn tell_reload(relay: &Relay, outcome: Result<(), Failure>) {
    let failure = match outcome {
        Ok(()) => return eprintln!("sealane: SIGHUP: configuration and cards were read again"),
        Err(failure) => failure.to_string(),
    };
    eprintln!("sealane: SIGHUP: {failure}; it is as it was");
    relay.refuse_reload(failure);
}

/// The file of a capture, which nobody else reads: it shows who talks to whom.
pub(crate) fn create(file: &Path) -> Result<File, Failure> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = File::options();
    let opened = options.write(true).create(true).truncate(true).mode(0o600).open(file);
    opened.map_err(|error| Failure::File { file: file.to_owned(), cause: error.to_string() })
}

/// Cards are named as seen from the folder of the configuration.
pub(crate) fn read(file: &Path) -> Result<Plan, Failure> {
    let config = config(file)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let card = |name: &String| {
        let path = folder.join(name);
        RelayCard::parse(&text(&path)?).map_err(|cause| refused(&path, cause))
    };
    let cards = config.cards.iter().map(card).collect::<Result<_, Failure>>()?;
    Ok(Plan { config, cards })
}

/// The configuration alone.
pub(crate) fn config(file: &Path) -> Result<Config, Failure> {
    Config::parse(&text(file)?).map_err(|cause| refused(file, cause))
}

fn text(file: &Path) -> Result<String, Failure> {
    let unreadable =
        |error: std::io::Error| Failure::File { file: file.to_owned(), cause: error.to_string() };
    std::fs::read_to_string(file).map_err(unreadable)
}

pub(crate) fn refused(file: &Path, cause: LinkError) -> Failure {
    Failure::Link { file: file.to_owned(), cause: Box::new(cause) }
}

/// Says what was started: a relay, and what else is true of the machine.
pub(crate) fn started(
    relay: &Relay,
    plan: &Plan,
    more: Vec<(&str, Value)>,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let (version, tag) = (env!("CARGO_PKG_VERSION"), relay.tag());
    let Plan { config, cards } = plan;
    let members: usize = cards.iter().map(|card| card.members().count()).sum();
    let (neighbours, groups) = (config.neighbours.len(), cards.len());
    if terminal.json() {
        let link = |link: &sealane_link::LinkConfig| {
            Value::Map(vec![
                ("name".to_owned(), link.name.as_str().into()),
                (link.wire.kind().to_owned(), Value::from(link.wire.to_string())),
            ])
        };
        let mut fields = vec![
            ("version", version.into()),
            ("tag", tag.to_string().into()),
            ("links", Value::Array(config.links.iter().map(link).collect())),
            ("neighbours", (neighbours as u64).into()),
            ("groups", (groups as u64).into()),
            ("members", (members as u64).into()),
        ];
        fields.extend(more);
        terminal.record(fields)?;
    } else {
        let links: Vec<_> =
            config.links.iter().map(|link| format!("{} {}", link.name, link.wire)).collect();
        terminal.line(format_args!(
            "sealane {version}  relay {tag}  {}  neighbours {neighbours}  groups {groups}, \
             members {members}",
            links.join(", ")
        ))?;
    }
    terminal.flush()
}

/// Says what was carried and dropped: of the reasons, those that there were.
pub(crate) fn tell(tally: &Tally, terminal: &mut Terminal) -> Result<(), Failure> {
    let volumes = [
        ("received", tally.received),
        ("forwarded", tally.forwarded),
        ("delivered", tally.delivered),
        ("sent", tally.sent),
    ];
    let reasons = Reason::ALL.into_iter().map(|why| (why.name(), tally.dropped(why)));
    let dropped = reasons.filter(|(_, count)| *count > 0);
    if terminal.json() {
        let volume = |Volume { units, bytes }| {
            Value::Map(vec![("units".to_owned(), units.into()), ("bytes".to_owned(), bytes.into())])
        };
        let mut fields: Vec<_> =
            volumes.into_iter().map(|(name, amount)| (name, volume(amount))).collect();
        let dropped = dropped.map(|(name, count)| (name.to_owned(), count.into())).collect();
        fields.push(("dropped", Value::Map(dropped)));
        return terminal.record(fields);
    }
    let carried = volumes.into_iter().map(|(name, Volume { units, bytes })| {
        vec![name.to_owned(), units.to_string(), bytes.to_string()]
    });
    let dropped = dropped
        .map(|(name, count)| vec![format!("dropped: {name}"), count.to_string(), String::new()]);
    let rows: Vec<_> = carried.chain(dropped).collect();
    terminal.write(table(&["", "UNITS", "BYTES"], &rows).as_bytes())
}

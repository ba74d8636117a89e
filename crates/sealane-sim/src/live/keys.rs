//! The keys of a live run: machines of the simulator and processes are members of one mesh, each
//! with a key folder of its own, as machines of people are.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use sealane_group::{GroupMember, GroupNotice, IdentityCard, KeyFolder, NewGroup, PastSecrets};
use tempfile::TempDir;

use crate::SimError;
use crate::node::SimMeshMembers;
use crate::scenario::{MeshPlan, NodePlan, ProgramKind, Scenario};

/// The key folders of all machines of a mesh, each called as its machine.
pub(super) struct LiveKeyFolders {
    pub(super) folder: PathBuf,
    /// A folder that goes with the run.
    own: Option<TempDir>,
    machines: Vec<KeyedMachine>,
    group: String,
}

/// A machine that holds keys.
struct KeyedMachine {
    node: u32,
    name: String,
    is_process: bool,
    folder: KeyFolder,
}

fn refused(machine: &str) -> impl Fn(sealane_group::Error) -> SimError + '_ {
    move |cause| SimError::Keys { machine: machine.to_owned(), cause }
}

impl LiveKeyFolders {
    /// Those of a scenario with `[mesh]`: made, unless the folder that it names is there already.
    pub(super) fn open(scenario: &Scenario, file: &Path) -> Result<Option<Self>, SimError> {
        let Some(plan) = &scenario.mesh else { return Ok(None) };
        let failed = |cause| SimError::File { file: file.to_owned(), cause };
        let beside = file.parent().unwrap_or(Path::new(""));
        let own = match &plan.keys {
            Some(_) => None,
            None => {
                let made = tempfile::Builder::new().prefix("sealane-sim-").tempdir();
                Some(made.map_err(failed)?)
            }
        };
        let folder = match (&own, &plan.keys) {
            (None, Some(named)) => beside.join(named),
            (own, _) => own.as_ref().map(|own| own.path().to_owned()).unwrap_or_default(),
        };
        // Programs begin in the folder of the scenario, wherever the run was started.
        let folder = std::path::absolute(folder).map_err(failed)?;
        let is_there = plan.keys.is_some() && folder.exists();
        let members = (0..).zip(&scenario.nodes).filter(|(_, plan)| plan.kind.holds_keys());
        let machine = |(node, plan): (u32, &NodePlan)| {
            let path = folder.join(&plan.name);
            let folder = match is_there {
                true => KeyFolder::open(&path, None),
                false => KeyFolder::create(&path, &plan.name, None),
            };
            let folder = folder.map_err(refused(&plan.name))?;
            let (name, is_process) = (plan.name.clone(), plan.kind == ProgramKind::Process);
            Ok(KeyedMachine { node, name, is_process, folder })
        };
        let machines = members.map(machine).collect::<Result<Vec<_>, SimError>>()?;
        if !is_there {
            make_groups(plan, &machines)?;
        }
        Ok(Some(Self { folder, own, machines, group: plan.group.clone() }))
    }

    /// The machines as members of their mesh. No run repeats the chance of another one: their keys
    /// may be used again.
    pub(super) fn crew(&self) -> Result<SimMeshMembers, SimError> {
        let mut members = BTreeMap::new();
        for one in &self.machines {
            members.insert(one.node, one.member(&self.group)?);
        }
        let mut random = [0; 8];
        let drawn =
            std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut random));
        drawn.map_err(|cause| SimError::File { file: "/dev/urandom".into(), cause })?;
        let crew = SimMeshMembers::of_group(members, u64::from_le_bytes(random));
        crew.map_err(refused(&self.group))
    }

    /// The folder that is to be removed when the run ends, however it does.
    pub(super) fn is_own(&self) -> bool {
        self.own.is_some()
    }
}

impl KeyedMachine {
    fn member(&self, group: &str) -> Result<GroupMember, SimError> {
        self.folder.group(group).map_err(refused(&self.name))
    }
}

/// The mesh's group with all machines, and that of the ends with the processes. The authority of
/// both is the first process: its relay tells the mesh what it orders.
fn make_groups(plan: &MeshPlan, machines: &[KeyedMachine]) -> Result<(), SimError> {
    let processes: Vec<_> = machines.iter().filter(|one| one.is_process).collect();
    let others = machines.iter().filter(|one| !one.is_process);
    let all: Vec<_> = processes.iter().copied().chain(others).collect();
    make_group(&plan.group, &all)?;
    plan.ends.as_ref().map_or(Ok(()), |ends| make_group(ends, &processes))
}

/// A group of machines, of which the first is the authority. Each obeys the orders that admitted
/// those behind it.
fn make_group(name: &str, machines: &[&KeyedMachine]) -> Result<(), SimError> {
    let Some((authority, others)) = machines.split_first() else { return Ok(()) };
    let first = refused(&authority.name);
    let mut group = authority.folder.new_group(name, NewGroup::default()).map_err(&first)?;
    let mut orders: Vec<GroupNotice> = vec![];
    let mut members = vec![];
    for one in others {
        let refused = refused(&one.name);
        let card =
            one.folder.card().and_then(|card| IdentityCard::from_bytes(&card)).map_err(&refused)?;
        let invited = group.invite(&card, PastSecrets::All).map_err(&refused)?;
        let fingerprint = Some(group.authority());
        let joined = one.folder.join(&invited.invitation, fingerprint, None);
        orders.extend(invited.notices);
        members.push((one, joined.map_err(&refused)?, orders.len()));
    }
    for (one, mut member, known) in members {
        for order in orders.iter().skip(known) {
            obey(&mut member, order).map_err(refused(&one.name))?;
        }
    }
    Ok(())
}

fn obey(member: &mut GroupMember, order: &GroupNotice) -> Result<(), sealane_group::Error> {
    sealane_group::EpochSource::apply(member, order).map(drop)
}

//! A Rust program is a member of a mesh, without a command line and without root.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};

use sealane::{DocumentsClient, GroupMember, KeyFolder, Value};
use sealane_group::{IdentityCard, NewGroup, PastSecrets};
use sealane_machine::{DaemonRole, Machine, MachineConfig, MachineHandle, MachineKeys, MemberKeys};
use sealane_testing::until_told_async;

/// Two members, each with keys of the mesh's group and of its own, and a configuration.
struct Team {
    home: tempfile::TempDir,
}

fn join(founder: &mut GroupMember, folder: &KeyFolder) {
    let card = IdentityCard::from_bytes(&folder.card().unwrap()).unwrap();
    let invited = founder.invite(&card, PastSecrets::All).unwrap();
    folder.join(&invited.invitation, None, None).unwrap();
}

/// A port of UDP that nobody has now.
fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Team {
    fn new() -> Team {
        let home = tempfile::tempdir().unwrap();
        let keys = |name: &str| KeyFolder::create(&home.path().join(name), name, None).unwrap();
        let (base, car) = (keys("base"), keys("car"));
        for group in ["roads", "fleet"] {
            join(&mut base.new_group(group, NewGroup::default()).unwrap(), &car);
        }
        let everybody = free_port();
        for name in ["base", "car"] {
            let text = format!(
                "version = 1\n[[link]]\nname = \"air\"\nudp = \"127.0.0.1:{}\"\ndiscover = true\n\
                 multicast = \"239.192.83.77:{everybody}\"\n[routing]\ngroup = \"roads\"\n\
                 [documents]\nstore = \"{name}.documents\"\nsocket = \"{name}.socket\"\n\
                 policy = \"policy.toml\"\n",
                free_port()
            );
            std::fs::write(home.path().join(format!("{name}.toml")), text).unwrap();
        }
        let policy = "version = 1\n[type.73]\nfloor = \"P\"\n";
        std::fs::write(home.path().join("policy.toml"), policy).unwrap();
        Team { home }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn config(&self, name: &str) -> MachineConfig {
        MachineConfig::read(&self.path(&format!("{name}.toml"))).unwrap()
    }

    fn keys(&self, name: &str) -> MachineKeys {
        let folder = KeyFolder::open(&self.path(name), None).unwrap();
        let mesh = Some(folder.group("roads").unwrap().into());
        let role = DaemonRole::Documents(MemberKeys { folder, group: "fleet".to_owned() });
        MachineKeys { role, mesh }
    }

    async fn start(&self, name: &str) -> MachineHandle {
        Machine::start(self.config(name), self.keys(name)).await.unwrap()
    }

    async fn documents(&self, name: &str) -> DocumentsClient {
        DocumentsClient::connect(self.path(&format!("{name}.socket"))).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_writes_is_read_on_another_machine() {
    let team = Team::new();
    let machines = [team.start("base").await, team.start("car").await];
    let mut at_car = team.documents("car").await;
    let _ = at_car.set("72", "the first sample".into()).await.unwrap();
    let mut at_base = team.documents("base").await;
    let ask = async || at_base.get("72", Some(1)).await.unwrap();
    let found = until_told_async(ask, |found| !found.is_empty()).await;
    assert_eq!(found[0].field("value").and_then(Value::as_text), Some("the first sample"));
    assert_eq!(found[0].field("name").and_then(Value::as_text), Some("car"));
    for machine in machines {
        assert!(machine.status().documents.is_some_and(|documents| documents.frames == 1));
        let ended = machine.stop().await.unwrap();
        assert!(ended.fault.is_none() && ended.waiting.is_none());
    }
    assert!(!team.path("car.socket").exists(), "the socket goes with its machine");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_reaches_the_program_with_its_own_code() {
    let team = Team::new();
    let machine = team.start("car").await;
    let mut documents = team.documents("car").await;
    let refused = |error: sealane::DocumentsError| (error.code().to_owned(), error.to_string());
    let (code, said) = refused(documents.set("73", "for two".into()).await.unwrap_err());
    assert_eq!(code, "SL-POLICY-09", "{said}");
    let (code, said) = refused(documents.set("chat", "hello".into()).await.unwrap_err());
    assert_eq!((code.as_str(), said.contains("doc say")), ("SL-TEAM-02", true), "{said}");
    let (code, _) = refused(documents.clear(7, 7).await.unwrap_err());
    assert_eq!(code, "SL-TEAM-02");
    let _ = machine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_read_again_counts_only_if_the_machine_can_follow() {
    let team = Team::new();
    let machine = team.start("car").await;
    machine.reload().await.unwrap();
    let file = team.path("car.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("car.documents", "other.documents")).unwrap();
    let refused = machine.reload().await.unwrap_err();
    assert_eq!(refused.info().code, "SL-LINK-06");
    assert_eq!(machine.status().status.reloads.refused, 1);
    let _ = machine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_other_machines_reach_is_refused_before_anything_runs() {
    let team = Team::new();
    let mut config = team.config("car");
    config.view = Some("0.0.0.0:0".parse().unwrap());
    let refused = Machine::start(config, team.keys("car")).await.err().unwrap();
    assert_eq!(refused.info().code, "SL-MACHINE-03");
    assert!(!Path::new(&team.path("car.socket")).exists());
}

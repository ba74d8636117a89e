//! All proofs: what each shows, runs and sets.

use super::*;

/// A vehicle's messages, with each radio that the bench reckons.
const COST: &[&str] = &[
    "cost",
    "crates/sealane-bench/samples/fleet.jsonl",
    "--link",
    "ble-1m",
    "--link",
    "lora-sf7",
    "--link",
    "11p",
];

/// Fuzzes the messages of neighbours in a mesh about documents, and their hellos.
const FUZZED: &[&str] = &[FUZZ, "document", "hello", "exchange", "--inputs", "100000000"];
/// Fuzzes the agent that takes these messages, with a store made for each of them.
const FUZZED_AGENT: &[&str] = &[FUZZ, "agent", "--inputs", "100000000"];

pub(super) const PROOFS: &[ProofSpec] = &[
    ProofSpec {
        name: "newcomer",
        shows: "the README in a clean clone: what is typed, what is printed, how long it takes",
        runs: ProofCommand::Script("tests/newcomer.sh"),
        environment: &[],
    },
    ProofSpec {
        name: "model",
        shows: "ten million random steps of the hub beside a plain model, on a store that fails",
        runs: ProofCommand::Unit { package: "sealane-stream", named: "model" },
        environment: &[("SEALANE_STEPS", "10000000"), ("SEALANE_SEEDS", "10000")],
    },
    ProofSpec {
        name: "million",
        shows: "a million messages to 100 members: nothing lost, nothing beyond credit, in order",
        runs: ProofCommand::Test { package: NODE, named: "delivers_exactly" },
        environment: &[("SEALANE_MESSAGES", "1000000")],
    },
    ProofSpec {
        name: "kill",
        shows: "50 kills under load: nothing acknowledged at `os` or `disk` is lost",
        runs: ProofCommand::Test { package: CLI, named: "survives_kill" },
        environment: &[("SEALANE_KILLS", "50")],
    },
    ProofSpec {
        name: "powercut",
        shows: "50 copies of a running disk: each holds all that was acknowledged at `disk`",
        runs: ProofCommand::Test { package: CLI, named: "survives_power_cut" },
        environment: &[("SEALANE_CUTS", "50")],
    },
    ProofSpec {
        name: "retention",
        shows: "a day of messages that stay for an hour: disk and memory stay as they are",
        runs: ProofCommand::Test { package: CLI, named: "a_day_of_retention" },
        environment: &[("SEALANE_HOURS", "24")],
    },
    ProofSpec {
        name: "diskfull",
        shows: "a full disk: refused with an error, nothing acknowledged, service resumes",
        runs: ProofCommand::Test { package: CLI, named: "survives_full_disk" },
        environment: &[],
    },
    ProofSpec {
        name: "nonces",
        shows: "a million messages of copies, forks, disks put back, containers: no nonce twice",
        runs: ProofCommand::Test { package: GROUP, named: "never_repeats_a_nonce" },
        environment: &[("SEALANE_NONCES", "1000000")],
    },
    ProofSpec {
        name: "sealed",
        shows: "two members in network namespaces: no body, key or name on the hub or its wires",
        runs: ProofCommand::Test { package: CLI, named: "crosses_a_blind_hub" },
        environment: &[],
    },
    ProofSpec {
        name: "crowd",
        shows: "10,000 half-open and other hostile connections: memory, p99 of 50 who behave",
        runs: ProofCommand::Test { package: CLI, named: "withstands::a_hostile_crowd" },
        environment: &[("SEALANE_CROWD", "10000"), ("SEALANE_SECONDS", "60"), DEMANDS],
    },
    ProofSpec {
        name: "shares",
        shows: "100 tokens, one hostile in each of 11 ways: the others' refusals, waits, memory",
        runs: ProofCommand::Test { package: CLI, named: "withstands::a_token_that_takes_all" },
        environment: &[("SEALANE_SECONDS", "30"), DEMANDS],
    },
    ProofSpec {
        name: "stalled",
        shows: "one of 1,000 readers stands still for a minute: the others' p99, memory, catch-up",
        runs: ProofCommand::Test { package: CLI, named: "withstands::a_stalled_reader" },
        environment: &[("SEALANE_READERS", "1000"), ("SEALANE_SECONDS", "60"), DEMANDS],
    },
    ProofSpec {
        name: "publish",
        shows: "10,000 publishers on a disk that stalls; 200 kills: nothing lost, nothing twice",
        runs: ProofCommand::Test { package: CLI, named: "publishes_over_" },
        environment: &[
            ("SEALANE_PUBLISHERS", "10000"),
            ("SEALANE_SECONDS", "10"),
            ("SEALANE_KILLS", "200"),
        ],
    },
    ProofSpec {
        name: "held",
        shows: "a store that another process holds for a minute: named refusals, reads, the return",
        runs: ProofCommand::Test { package: NODE, named: "another_process_holds" },
        environment: &[("SEALANE_HELD_SECONDS", "60")],
    },
    ProofSpec {
        name: "letters",
        shows: "a million dead letters of 16 consumers: each once, memory, who waits beside them",
        runs: ProofCommand::Test { package: CLI, named: "bounds_the_node::dead_letters" },
        environment: &[("SEALANE_LETTERS", "1000000"), DEMANDS],
    },
    ProofSpec {
        name: "acks",
        shows: "2,000 acknowledgements a second, 65,536 messages in flight: bytes written",
        runs: ProofCommand::Test { package: CLI, named: "bounds_the_node::acknowledgements" },
        environment: &[("SEALANE_IN_FLIGHT", "65536"), ("SEALANE_SECONDS", "30")],
    },
    ProofSpec {
        name: "followers",
        shows: "100 subscriptions to 100,000 streams, 1,000 clients that read nothing: memory",
        runs: ProofCommand::Test {
            package: CLI,
            named: "bounds_the_node::followers_and_stuck_clients",
        },
        environment: &[("SEALANE_STREAMS", "100000"), ("SEALANE_STUCK", "1000")],
    },
    ProofSpec {
        name: "bystanders",
        shows: "a hammered node beside an idle one: nobody else is refused, and how long they wait",
        runs: ProofCommand::Test {
            package: CLI,
            named: "bounds_the_node::bystanders_of_a_hammered_node",
        },
        environment: &[("SEALANE_SECONDS", "60"), DEMANDS],
    },
    ProofSpec {
        name: METRICS,
        shows: "a Prometheus reads a node, takes the rules, and answers what the dashboard asks",
        runs: ProofCommand::Test { package: NODE, named: "feeds_prometheus" },
        environment: &[],
    },
    ProofSpec {
        name: "upgrade",
        shows: "clients of an earlier commit at this node, and these clients at the earlier node",
        runs: ProofCommand::Xtask(&["upgrade"]),
        environment: &[],
    },
    ProofSpec {
        name: MUTANTS,
        shows: "small faults made in seal, frame, group and hub: 90 % are noticed, the rest named",
        runs: ProofCommand::Xtask(&[MUTANTS]),
        environment: &[("SEALANE_MUTANTS", "25"), ("SEALANE_MINUTES", "120")],
    },
    ProofSpec {
        name: GROW,
        shows: "a codec, an error, a field of the hub, a limit: each is added where the page says",
        runs: ProofCommand::Xtask(&[GROW]),
        environment: &[],
    },
    ProofSpec {
        name: "load",
        shows: "the hub under load: appends, deliveries, sealed streams, latency, replay, idle",
        runs: ProofCommand::Instrument(&["load"]),
        environment: &[],
    },
    ProofSpec {
        name: RACE,
        shows: "the hub beside NATS, JetStream and Centrifugo: publish, consume, fan-out",
        runs: ProofCommand::Instrument(&["race"]),
        environment: &[],
    },
    ProofSpec {
        name: RELAY,
        shows: "programs over two relays without keys, beside a bare chain; frames; 100 kills",
        runs: ProofCommand::Instrument(&["relay"]),
        environment: &[],
    },
    ProofSpec {
        name: "field",
        shows: "field to cloud: 100 kills, the hub down for ten minutes; revoked; two gateways",
        runs: ProofCommand::Test { package: CLI, named: "reaches_the_cloud" },
        environment: &[("SEALANE_KILLS", "100"), ("SEALANE_SECONDS", "600"), DEMANDS],
    },
    ProofSpec {
        name: "append",
        shows: "durable appends beside a plain file with fdatasync and a row for each message",
        runs: ProofCommand::Bench { package: "sealane-stream", bench: "append" },
        environment: &[],
    },
    ProofSpec {
        name: "vaultkill",
        shows: "200 kills each of put, prune, repair, key rotate: the next run completes",
        runs: ProofCommand::Test { package: CLI, named: "vault_outlives_kill" },
        environment: &[("SEALANE_KILLS", "200")],
    },
    ProofSpec {
        name: "vaultmany",
        shows: "two writers, a prune, a reader for 10 minutes in a folder and in a bucket",
        runs: ProofCommand::Test { package: "sealane-vault", named: "serves_many_at_once" },
        environment: &[("SEALANE_SECONDS", "600")],
    },
    ProofSpec {
        name: VAULT,
        shows: "a vault beside the report's pipeline, restic and borg: files/s, MB/s, size, memory",
        runs: ProofCommand::Instrument(&["vault"]),
        environment: &[],
    },
    ProofSpec {
        name: "seal",
        shows: "seal and open beside the bare ciphers and the report's own recipe",
        runs: ProofCommand::Bench { package: "sealane-seal", bench: "seal" },
        environment: &[],
    },
    ProofSpec {
        name: "frame",
        shows: "relaying a frame at every size; frames made and read beside the bare ciphers",
        runs: ProofCommand::Bench { package: "sealane-frame", bench: "frames" },
        environment: &[],
    },
    ProofSpec {
        name: "medium",
        shows: "a delivery at 16 receivers beside the origin's packets, which are copied by value",
        runs: ProofCommand::Bench { package: "sealane-sim", bench: "medium" },
        environment: &[],
    },
    ProofSpec {
        name: "mesh",
        shows: "churn, silent next hops, black holes, 22 to 100 in a cell: demanded and measured",
        runs: ProofCommand::Test { package: "sealane-sim", named: "mesh::" },
        environment: &[
            ("SEALANE_MACHINES", "50"),
            ("SEALANE_MINUTES", "10"),
            ("SEALANE_SEEDS", "20"),
            ("RUST_TEST_THREADS", "1"),
        ],
    },
    ProofSpec {
        name: "city",
        shows: "48 gateways and 100 vehicles of the mesh for 300 s: how fast, memory, no loop",
        runs: ProofCommand::Test { package: "sealane-sim", named: "a_city_begins" },
        environment: &[("SEALANE_SECONDS", "300")],
    },
    ProofSpec {
        name: "documents",
        shows: "1,000 lives of 20 machines over 7 bad hops end with the same bytes; cost by medium",
        runs: ProofCommand::Test { package: "sealane-document", named: "field::" },
        environment: &[("SEALANE_SEEDS", "1000"), ("SEALANE_MEDIUM", "all")],
    },
    ProofSpec {
        name: "policy",
        shows: "every type over every medium at battery 5 and 100 %: pace, size, class, floor",
        runs: ProofCommand::Test { package: "sealane-document", named: "paces::" },
        environment: &[("SEALANE_MEDIUM", "all")],
    },
    ProofSpec {
        name: "rekey",
        shows: "notice and re-key over seven hops at 30 % loss: Bluetooth, 802.11p, LoRa at 1 %",
        runs: ProofCommand::Test { package: "sealane-mesh", named: "gives_orders::" },
        environment: &[("SEALANE_SEEDS", "5")],
    },
    ProofSpec {
        name: "radios",
        shows: "1,000 LoRa radios of the mesh for an hour: how fast, shares, emergencies",
        runs: ProofCommand::Test { package: "sealane-sim", named: "a_thousand_radios" },
        environment: &[("SEALANE_SECONDS", "3600")],
    },
    ProofSpec {
        name: BABEL,
        shows: "routes over simulated radio: babeld beside sealane; ping, iperf3, a browser",
        runs: ProofCommand::Xtask(&[BABEL]),
        environment: &[("SEALANE_MACHINES", "100")],
    },
    ProofSpec {
        name: SUMO,
        shows: "vehicles that SUMO drives are where it has them, and talk to gateways",
        runs: ProofCommand::Xtask(&[SUMO]),
        environment: &[],
    },
    ProofSpec {
        name: FUZZ,
        shows: "100 million inputs each: documents, hellos, and the exchange of documents",
        runs: ProofCommand::Xtask(FUZZED),
        environment: &[],
    },
    ProofSpec {
        name: "agent",
        shows: "100 million messages to the machine that exchanges documents: eight hours",
        runs: ProofCommand::Xtask(FUZZED_AGENT),
        environment: &[],
    },
    ProofSpec {
        name: "cost",
        shows: "what each step of a vehicle's messages costs, the ways, and three radios",
        runs: ProofCommand::Instrument(COST),
        environment: &[],
    },
    ProofSpec {
        name: "reports",
        shows: "the five founding reports: published, reproduced, Sealane, ratio",
        runs: ProofCommand::Instrument(&["report", "--all"]),
        environment: &[],
    },
];

use sealane::{Codec, Value};

use crate::cli::scripted::{Script, Scripted, strangers};
use crate::cli::{json, sealane};

#[test]
fn a_newer_hub_is_read_and_quoted() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    for codec in [Codec::Json, Codec::MsgPack, Codec::Cbor] {
        let script = Script { frames: strangers(codec), ..Script::default() };
        let hub = runtime.block_on(Scripted::start(script));
        let output = sealane(folder.path())
            .args(["sub", "a", "--from", "first", "--codec", codec.name()])
            .env("SEALANE_SERVER", hub.address.to_string())
            .output()
            .unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        let numbers = out.lines().map(|line| json(line).field("n").and_then(Value::as_u64));
        assert!(numbers.eq([Some(0), Some(3), Some(4)]), "{out}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("a: offsets 1 to 2 do not come: meteor"), "{said}");
        for words in ["the hub has left its orbit", "SL-HUB-99", "Wait for its return."] {
            assert!(said.contains(words), "{words}: {said}");
        }
        assert!(!output.status.success());
        assert_eq!(hub.heard().len(), 1, "credit alone was asked");
    }
}

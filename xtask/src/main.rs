//! The commands that build, check and prove Sealane: `cargo xtask help` lists them.
//!
//! Each command is a module with a `run` function. They need Rust's standard library and a
//! TOML reader, so that the first check of a fresh clone starts in seconds.
#![forbid(unsafe_code)]

mod babel;
mod bench_guard;
mod check;
mod counts;
mod date;
mod deny;
mod dist;
mod docs;
mod figures;
mod fuzz;
mod grow;
mod limits;
mod metrics;
mod mutants;
mod needs;
mod pictures;
mod process;
mod prove;
mod rust;
mod steps;
mod sumo;
mod test;
mod threats;
mod tidy;
mod tree;
mod upgrade;
mod verdict;
mod worktree;

use std::process::ExitCode;

use process::XtaskResult;

struct XtaskCommand {
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
    run: fn(&[String]) -> XtaskResult,
}

const COMMANDS: &[XtaskCommand] = &[
    XtaskCommand {
        name: "check",
        arguments: "",
        summary: "tidy, licences and bans, format, clippy, documentation, feature builds",
        run: check::run,
    },
    XtaskCommand {
        name: "tidy",
        arguments: "",
        summary: "only what the compiler does not see: sizes, layers, documented names",
        run: tidy::run,
    },
    XtaskCommand {
        name: "deny",
        arguments: "",
        summary: "only licences, bans and sources of dependencies, by deny.toml",
        run: deny::run,
    },
    XtaskCommand {
        name: "docs",
        arguments: "",
        summary: "write the pages and lists of limits and errors from the code",
        run: docs::run,
    },
    XtaskCommand {
        name: "needs",
        arguments: "",
        summary: "only install what the tests need: packages of npm and Python, as root of Debian",
        run: needs::run,
    },
    XtaskCommand {
        name: "test",
        arguments: "[--lab] [--no-fuzz] [--fuzz-seconds N]",
        summary: "install what the tests need, check, run every test, fuzz for 4 minutes in all",
        run: test::run,
    },
    XtaskCommand {
        name: "lab",
        arguments: "[ARGUMENT ...]",
        summary: "cargo test with these arguments, and with tests that need root or a program",
        run: test::lab,
    },
    XtaskCommand {
        name: "fuzz",
        arguments: "[TARGET] [--seconds N | --inputs N]",
        summary: "fuzz one target or all, N seconds (default: 20) or N inputs each",
        run: fuzz::run,
    },
    XtaskCommand {
        name: "bench-guard",
        arguments: "[--write] [--instructions]",
        summary: "bytes and allocations of fixed messages, which may not grow",
        run: bench_guard::run,
    },
    XtaskCommand {
        name: "prove",
        arguments: "[NAME [--dirty] [KEY=VALUE ...] [ARGUMENT ...]]",
        summary: "run a long proof and record it in results/; without NAME, list them",
        run: prove::run,
    },
    XtaskCommand {
        name: "pictures",
        arguments: "[FOLDER]",
        summary: "the console, the bench's pages and the command line in results/pictures",
        run: pictures::run,
    },
    XtaskCommand {
        name: "upgrade",
        arguments: "[COMMIT]",
        summary: "client tests of an earlier commit at this node, and these at the earlier node",
        run: upgrade::run,
    },
    XtaskCommand {
        name: "babel",
        arguments: "[FOLDER]",
        summary: "routes found by babeld and by sealane over the same simulated radio",
        run: babel::run,
    },
    XtaskCommand {
        name: "sumo",
        arguments: "[FOLDER]",
        summary: "a run whose vehicles SUMO drives, each place compared with SUMO's",
        run: sumo::run,
    },
    XtaskCommand {
        name: "mutants",
        arguments: "[seal | frame | group | hub]",
        summary: "break the code in small ways and count what the crates' own tests notice",
        run: mutants::run,
    },
    XtaskCommand {
        name: "grow",
        arguments: "[NAME ...]",
        summary: "apply the patches that add something, and see that what comes of it compiles",
        run: grow::run,
    },
    XtaskCommand {
        name: "metrics",
        arguments: "[NAME=FOLDER ...]",
        summary: "sizes and habits of our code, beside that of other source folders",
        run: metrics::run,
    },
    XtaskCommand {
        name: "dist",
        arguments: "",
        summary: "build a release: a static binary with its pages, completions and service file",
        run: dist::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if fuzz::compiles() {
        return fuzz::compile(&arguments);
    }
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[String]) -> XtaskResult {
    let Some((name, rest)) = arguments.split_first() else {
        print!("{}", help());
        return Ok(());
    };
    if matches!(name.as_str(), "help" | "--help" | "-h") || rest.iter().any(|a| a == "--help") {
        print!("{}", help());
        return Ok(());
    }
    match COMMANDS.iter().find(|command| command.name == name) {
        Some(command) => (command.run)(rest),
        None => Err(format!("there is no command `{name}`\n\n{}", help())),
    }
}

fn help() -> String {
    let mut text =
        String::from("Builds, checks and proves Sealane.\n\nUsage: cargo xtask COMMAND\n");
    for XtaskCommand { name, arguments, summary, .. } in COMMANDS {
        text += &format!("\n  {}\n      {summary}\n", format!("{name} {arguments}").trim_end());
    }
    text + "\n  help\n      this text\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_every_command() {
        assert!(COMMANDS.iter().all(|command| help().contains(command.summary)));
    }

    #[test]
    fn an_unknown_command_is_refused_with_the_list() {
        let refusal = dispatch(&["polish".to_owned()]).unwrap_err();
        assert!(
            refusal.contains("`polish`") && refusal.contains("cargo xtask COMMAND"),
            "{refusal}"
        );
    }
}

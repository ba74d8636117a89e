//! The output of the command line on terminals of two widths, as text.

use std::path::Path;

use crate::process::{self, XtaskResult};

/// Columns of a usual terminal, and of a wide one.
const WIDTHS: [usize; 2] = [80, 200];
const ROWS: usize = 40;
/// Back to the upper left corner, and nothing left of what stood there: what is seen begins anew.
const CLEAR: &str = "\x1b[H\x1b[J";

/// Nothing is left of the line.
const ERASE: &str = "\x1b[2K";

/// Something that people type.
struct PictureScreen {
    name: &'static str,
    typed: &'static str,
}

const SCREENS: [PictureScreen; 7] = [
    PictureScreen { name: "sub", typed: "sealane sub '**' --from first -n 24" },
    PictureScreen { name: "stream-ls", typed: "sealane stream ls" },
    PictureScreen { name: "top", typed: "sealane top --every 500ms --count 2" },
    PictureScreen { name: "group-ls", typed: "sealane group ls" },
    PictureScreen { name: "doctor", typed: "sealane doctor --data ~/data" },
    PictureScreen { name: "cost", typed: "sealane-bench cost --quick fleet.jsonl" },
    PictureScreen { name: "demo", typed: "sealane demo --for 4s" },
];

/// Types each of them into a shell on a terminal of each width, and keeps what is seen then. The
/// folder `home` becomes the home of whoever types; `address` is that of a node with messages.
pub(super) fn keep(programs: &Path, home: &Path, address: &str, pictures: &Path) -> XtaskResult {
    if !process::has("script") {
        return Err("`script` is missing: cargo xtask needs".to_owned());
    }
    for typed in ["sealane key new alice", "sealane group new fleet", "sealane group new drivers"] {
        on_terminal(programs, home, address, typed, 80)?;
    }
    for PictureScreen { name, typed } in &SCREENS {
        for width in WIDTHS {
            let shown = on_terminal(programs, home, address, typed, width)?;
            let text = seen(&shown, width).replace(&home.display().to_string(), "~");
            let path = pictures.join(format!("{name}-{width}.txt"));
            let kept = std::fs::write(&path, format!("$ {typed}\n{text}"));
            kept.map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    println!("{} screens are in {}", SCREENS.len() * WIDTHS.len(), pictures.display());
    Ok(())
}

fn on_terminal(
    programs: &Path,
    home: &Path,
    address: &str,
    typed: &str,
    width: usize,
) -> XtaskResult<String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut script = process::program("script");
    let line = format!("stty cols {width} rows {ROWS}; {typed}");
    script.args(["-qec", &line, "/dev/null"]).env_clear().current_dir(home);
    script.env("PATH", format!("{}:{path}", programs.display())).env("HOME", home);
    script.env("SEALANE_SERVER", address).env("NO_COLOR", "1").env("TERM", "xterm");
    script.stdin(std::process::Stdio::null());
    process::output(&mut script)
}

/// The lines as they stand on a terminal of that width, which breaks the longer ones. What a
/// progress bar has drawn over is not seen any more.
fn seen(shown: &str, width: usize) -> String {
    let last = shown.rsplit(CLEAR).next().unwrap_or_default();
    let mut text = String::new();
    for line in last.trim_end().lines() {
        let line = line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
        let line = line.rsplit(ERASE).next().unwrap_or_default();
        let letters: Vec<char> = line.chars().collect();
        if letters.is_empty() {
            text.push('\n');
        }
        for part in letters.chunks(width) {
            let part: String = part.iter().collect();
            text.push_str(part.trim_end());
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_breaks_long_lines_and_forgets_what_was_cleared() {
        let shown = format!("old\r\n{CLEAR}abcdef\r\n\r\nüüü  \r\n");
        assert_eq!(seen(&shown, 4), "abcd\nef\n\nüüü\n");
        assert_eq!(seen("10 %\r\x1b[2K20 %\r\x1b[2Kdone\r\n", 80), "done\n");
        assert_eq!(seen("", 4), "");
    }
}

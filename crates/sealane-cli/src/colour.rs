//! Colours, where they help somebody who watches a terminal.

use std::fmt::Display;
use std::io::IsTerminal;

use crate::config::environment;

/// The meaning of a colour.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ColourTone {
    Good,
    Warning,
    Bad,
    /// Text that stands beside the thing itself.
    Dim,
}

impl ColourTone {
    /// The number of SGR, as in ECMA-48.
    fn number(self) -> &'static str {
        match self {
            ColourTone::Good => "32",
            ColourTone::Warning => "33",
            ColourTone::Bad => "31;1",
            ColourTone::Dim => "2",
        }
    }
}

/// Whether an output has colours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputColours(bool);

impl OutputColours {
    /// Those of a terminal that can show them, unless `NO_COLOR` is set (<https://no-color.org>).
    pub(crate) fn of(output: &impl IsTerminal) -> Self {
        let can = environment("TERM").is_none_or(|terminal| terminal != "dumb");
        Self(can && environment("NO_COLOR").is_none() && output.is_terminal())
    }

    pub(crate) fn none() -> Self {
        Self(false)
    }

    /// Whether there are any.
    pub(crate) fn shown(self) -> bool {
        self.0
    }

    /// The text in the colour of its tone, or as it is.
    pub(crate) fn paint(self, tone: ColourTone, text: impl Display) -> String {
        match self.0 {
            true => format!("\x1b[{}m{text}\x1b[0m", tone.number()),
            false => text.to_string(),
        }
    }
}

/// Says on standard error what is probably not what somebody wants.
pub(crate) fn warn(warning: impl Display) {
    let label = OutputColours::of(&std::io::stderr()).paint(ColourTone::Warning, "warning:");
    eprintln!("sealane: {label} {warning}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_no_colours() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(OutputColours::of(&file).paint(ColourTone::Bad, "error:"), "error:");
        assert_eq!(OutputColours(true).paint(ColourTone::Bad, "error:"), "\x1b[31;1merror:\x1b[0m");
    }
}

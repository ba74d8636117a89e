//! SPDX licence expressions: `(MIT OR Apache-2.0) AND Unicode-3.0`.

/// Whether the licences in `allowed` satisfy `expression`.
pub(super) fn allowed(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut parser = Parser { words: spaced.split_whitespace().collect(), at: 0, allowed };
    let satisfied = parser.either();
    satisfied && parser.at == parser.words.len()
}

struct Parser<'a> {
    words: Vec<&'a str>,
    at: usize,
    allowed: &'a [&'a str],
}

impl Parser<'_> {
    fn takes(&mut self, word: &str) -> bool {
        let found = self.words.get(self.at) == Some(&word);
        self.at += usize::from(found);
        found
    }

    fn either(&mut self) -> bool {
        let mut satisfied = self.all();
        while self.takes("OR") {
            satisfied |= self.all();
        }
        satisfied
    }

    fn all(&mut self) -> bool {
        let mut satisfied = self.one();
        while self.takes("AND") {
            satisfied &= self.one();
        }
        satisfied
    }

    fn one(&mut self) -> bool {
        if self.takes("(") {
            let satisfied = self.either();
            return self.takes(")") && satisfied;
        }
        let Some(name) = self.words.get(self.at).map(|name| (*name).to_owned()) else {
            return false;
        };
        self.at += 1;
        if !self.takes("WITH") {
            return self.allowed.contains(&name.as_str());
        }
        let exception = self.words.get(self.at).copied().unwrap_or_default();
        self.at += 1;
        self.allowed.contains(&format!("{name} WITH {exception}").as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::allowed;

    #[test]
    fn expressions_are_weighed() {
        let list = ["MIT", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"];
        for expression in [
            "MIT",
            "MIT/Apache-2.0",
            "Apache-2.0 OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(allowed(expression, &list), "{expression}");
        }
        for expression in ["", "GPL-3.0", "MIT AND GPL-3.0", "Apache-2.0", "(MIT", "MIT MIT"] {
            assert!(!allowed(expression, &list), "{expression}");
        }
    }
}

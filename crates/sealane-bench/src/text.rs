//! Tables for terminals.

/// Columns as wide as their widest cell: the `texts` to the left, and numbers to the right.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>], texts: &[usize]) -> String {
    let heads: Vec<String> = head.iter().map(|name| (*name).to_owned()).collect();
    let width = |at: usize| {
        let cells = std::iter::once(&heads).chain(rows).filter_map(|row| row.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    for row in std::iter::once(&heads).chain(rows) {
        let mut line = String::new();
        for (at, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            if at > 0 {
                line.push_str("  ");
            }
            // The last column is not followed by anything.
            line.push_str(&match texts.contains(&at) {
                true => format!("{cell:<width$}"),
                false => format!("{cell:>width$}"),
            });
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_below_each_other() {
        let rows = [vec!["a".to_owned(), "é".to_owned(), "10".to_owned()]];
        assert_eq!(table(&["x", "name", "n"], &rows, &[0, 1]), "x  name   n\na  é     10\n");
    }
}

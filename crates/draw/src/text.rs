//! Plain-text tables for terminals and committed transcripts.

/// The space between two columns of a table.
const GAP: &str = "  ";

/// A table with headers. Every column is as wide as its widest cell; columns of numbers are right-aligned.
///
/// The width of a cell is its number of characters. East Asian and combining characters have other widths, so columns
/// with such characters are not aligned.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Table {
    headers: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns a table without rows.
    #[must_use]
    pub fn new<S: Into<String>>(headers: impl IntoIterator<Item = S>) -> Self {
        Self { headers: cells(headers), rows: Vec::new() }
    }

    /// Returns the table with one more row. Missing cells are empty; additional cells get a column without a header.
    #[must_use]
    pub fn row<S: Into<String>>(mut self, row: impl IntoIterator<Item = S>) -> Self {
        self.push(row);
        self
    }

    /// Adds a row. Missing cells are empty; additional cells get a column without a header.
    pub fn push<S: Into<String>>(&mut self, row: impl IntoIterator<Item = S>) {
        self.rows.push(cells(row));
    }

    /// Returns the text: the headers, a line of hyphens, and the rows. Every line ends in a newline, and has no trailing space.
    #[must_use]
    pub fn render(&self) -> String {
        let count = self.rows.iter().map(Vec::len).chain([self.headers.len()]).max().unwrap_or(0);
        let columns: Vec<Column> = (0..count).map(|index| self.column(index)).collect();
        let rule: Vec<String> = columns.iter().map(|column| "-".repeat(column.width)).collect();
        let mut text = String::new();
        for row in [&self.headers, &rule].into_iter().chain(&self.rows) {
            line(&mut text, row, &columns);
        }
        text
    }

    /// Returns the text of [`Table::render`]. If a cell is `-`, a last line gives the meaning of it.
    #[must_use]
    pub fn render_with_meaning(&self, of_absent: &str) -> String {
        let has_absent = self.rows.iter().flatten().any(|cell| cell == "-");
        let meaning = if has_absent { format!("`-`: {of_absent}\n") } else { String::new() };
        self.render() + &meaning
    }

    fn column(&self, index: usize) -> Column {
        let body = || self.rows.iter().filter_map(move |row| row.get(index));
        let width = body().chain(self.headers.get(index)).map(|cell| cell.chars().count()).max().unwrap_or(0);
        let numbers =
            body().any(|cell| is_number(cell)) && body().all(|cell| is_number(cell) || is_absent(cell));
        Column { width, numbers }
    }
}

struct Column {
    width: usize,
    numbers: bool,
}

fn line(text: &mut String, row: &[String], columns: &[Column]) {
    let start = text.len();
    for (index, column) in columns.iter().enumerate() {
        let cell = row.get(index).map_or("", String::as_str);
        let padding = " ".repeat(column.width - cell.chars().count());
        let gap = if index == 0 { "" } else { GAP };
        let (before, after) = if column.numbers { (padding.as_str(), "") } else { ("", padding.as_str()) };
        for part in [gap, before, cell, after] {
            text.push_str(part);
        }
    }
    text.truncate(start + text[start..].trim_end().len());
    text.push('\n');
}

/// Returns the cells of a row. A row must be one line, so line breaks and tabs in a cell become spaces.
fn cells<S: Into<String>>(row: impl IntoIterator<Item = S>) -> Vec<String> {
    row.into_iter().map(|cell| cell.into().replace(['\n', '\r', '\t'], " ")).collect()
}

/// Returns whether a cell is a number, with an optional bound or sign before it and one unit after it: `12`, `-3.5`,
/// `<0.1`, `+5 %`, `20 ms`.
fn is_number(cell: &str) -> bool {
    let mut words = cell.trim_start_matches(['<', '>', '≤', '≥', '~', '±', '×']).split_whitespace();
    let number = words.next().map_or("", |word| word.trim_end_matches('%'));
    let starts_like_one = number.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
    starts_like_one && number.parse::<f64>().is_ok() && words.nth(1).is_none()
}

/// Returns whether a cell states that there is no number.
fn is_absent(cell: &str) -> bool {
    matches!(cell.trim(), "" | "-" | "–" | "—" | "n/a" | "none" | "no end")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_numbers_stand_to_the_right() {
        let table = Table::new(["protocol", "loss", "gap", "why not"])
            .row(["Cellular IP, hard", "4", "20.5 ms", ""])
            .row(["Mobile IP", "-", "<1200 ms", "no agent"])
            .row(["I-TCP"]);
        let expected = "\
protocol           loss       gap  why not
-----------------  ----  --------  --------
Cellular IP, hard     4   20.5 ms
Mobile IP             -  <1200 ms  no agent
I-TCP
";
        assert_eq!(table.render(), expected);
    }

    #[test]
    fn a_cell_too_many_and_a_line_break_do_no_harm() {
        assert_eq!(Table::new(["a"]).row(["x\ny", "7"]).render(), "a\n---  -\nx y  7\n");
        assert_eq!(Table::new(Vec::<String>::new()).render(), "\n\n");
    }

    #[test]
    fn the_meaning_of_an_absent_value_is_below_a_table_that_has_one() {
        let table = |cell: &str| Table::new(["n"]).row([cell]).render_with_meaning("not measured");
        assert_eq!(table("-"), "n\n-\n-\n`-`: not measured\n");
        assert_eq!(table("7"), "n\n-\n7\n");
    }

    #[test]
    fn what_counts_as_a_number() {
        for cell in ["12", "-3.5", "<0.1", "+5 %", "5%", "20 ms", "1e-6"] {
            assert!(is_number(cell), "{cell}");
        }
        for cell in ["", "-", "b2", "10.0.0.1", "3 of 4", "inf", "nan"] {
            assert!(!is_number(cell), "{cell}");
        }
    }
}

//! CSV (RFC 4180) with the numbers of a figure.

/// The text of a CSV table (RFC 4180), to which rows are added. For version control, its lines end in LF, not in CRLF.
#[derive(Debug, Default)]
pub struct Csv(String);

impl Csv {
    /// Adds a row. A field that contains a comma, a quotation mark or a line break is quoted.
    pub fn row<S: AsRef<str>>(&mut self, fields: impl IntoIterator<Item = S>) {
        for (index, field) in fields.into_iter().enumerate() {
            if index > 0 {
                self.0.push(',');
            }
            self.field(field.as_ref());
        }
        self.0.push('\n');
    }

    /// Returns the text of the table.
    #[must_use]
    pub fn finish(self) -> String {
        self.0
    }

    fn field(&mut self, field: &str) {
        if field.contains([',', '"', '\n', '\r']) {
            self.0.push('"');
            self.0.push_str(&field.replace('"', "\"\""));
            self.0.push('"');
        } else {
            self.0.push_str(field);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fields_that_need_it_are_quoted() {
        let mut csv = Csv::default();
        csv.row(["a b", "c,d", "e\"f", "", "g\nh"]);
        assert_eq!(csv.finish(), "a b,\"c,d\",\"e\"\"f\",,\"g\nh\"\n");
    }
}

//! The SVG elements that the figures need, written so that equal figures give equal bytes.

use std::fmt::Write as _;

/// The font families. Every renderer has the last one.
const FONTS: &str = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";

/// A drawing of fixed width. `finish` sets its height.
#[derive(Debug)]
pub(crate) struct Svg {
    width: f64,
    body: String,
}

/// The style of a line of text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text {
    pub(crate) size: f64,
    pub(crate) colour: &'static str,
    pub(crate) anchor: Anchor,
    pub(crate) bold: bool,
    /// Whether the text has a white rim, for text on top of lines.
    pub(crate) halo: bool,
    /// Whether the text is rotated, to be read from bottom to top.
    pub(crate) upward: bool,
}

/// Whether the start, the middle or the end of a text is at its position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Text {
    pub(crate) const fn new(size: f64, anchor: Anchor) -> Self {
        Self { size, colour: "#222222", anchor, bold: false, halo: false, upward: false }
    }

    pub(crate) const fn bold(mut self) -> Self {
        self.bold = true;
        self
    }

    pub(crate) const fn halo(mut self) -> Self {
        self.halo = true;
        self
    }

    pub(crate) const fn upward(mut self) -> Self {
        self.upward = true;
        self
    }

    pub(crate) const fn colour(mut self, colour: &'static str) -> Self {
        self.colour = colour;
        self
    }
}

impl Svg {
    pub(crate) const fn new(width: f64) -> Self {
        Self { width, body: String::new() }
    }

    /// Draws a rectangle. `style` has SVG attributes. It is not escaped, because it comes from this crate only.
    pub(crate) fn rect(&mut self, [x, y, width, height]: [f64; 4], style: &str) {
        let [x, y, width, height] = [x, y, width, height].map(num);
        self.put(format_args!(r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" {style}/>"#));
    }

    pub(crate) fn line(&mut self, from: [f64; 2], to: [f64; 2], style: &str) {
        let ([x1, y1], [x2, y2]) = (from.map(num), to.map(num));
        self.put(format_args!(r#"<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" {style}/>"#));
    }

    pub(crate) fn circle(&mut self, [x, y]: [f64; 2], radius: f64, style: &str) {
        let [x, y, radius] = [x, y, radius].map(num);
        self.put(format_args!(r#"<circle cx="{x}" cy="{y}" r="{radius}" {style}/>"#));
    }

    /// Draws a dot of this diameter at each place. All dots are one element, which is smaller than one circle for each.
    pub(crate) fn dots(&mut self, places: &[[f64; 2]], diameter: f64, colour: &str) {
        if places.is_empty() {
            return;
        }
        let mut path = String::new();
        for [x, y] in places {
            // Writing to a `String` cannot fail.
            let _ = write!(path, "M{} {}h0", tenths(*x), tenths(*y));
        }
        let style =
            format!(r#"fill="none" stroke="{colour}" stroke-width="{diameter}" stroke-linecap="round""#);
        self.put(format_args!(r#"<path d="{path}" {style}/>"#));
    }

    /// Draws straight lines through `points`; `closed` joins the last to the first.
    pub(crate) fn path(&mut self, points: &[[f64; 2]], closed: bool, style: &str) {
        if points.is_empty() {
            return;
        }
        let points: Vec<String> = points.iter().map(|[x, y]| format!("{} {}", num(*x), num(*y))).collect();
        let end = if closed { "Z" } else { "" };
        self.put(format_args!(r#"<path d="M{}{end}" {style}/>"#, points.join("L")));
    }

    pub(crate) fn text(&mut self, [x, y]: [f64; 2], text: Text, content: &str) {
        let [x, y] = [x, y].map(num);
        let place = if text.upward {
            format!(r#"transform="translate({x} {y}) rotate(-90)""#)
        } else {
            format!(r#"x="{x}" y="{y}""#)
        };
        let anchor = match text.anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        let bold = if text.bold { r#" font-weight="bold""# } else { "" };
        let halo =
            if text.halo { r##" stroke="#ffffff" stroke-width="3" paint-order="stroke""## } else { "" };
        let (size, colour, content) = (num(text.size), text.colour, escape(content));
        self.put(format_args!(
            r#"<text {place} font-size="{size}" fill="{colour}"{anchor}{bold}{halo}>{content}</text>"#
        ));
    }

    /// Draws a group of elements with a common `style`.
    pub(crate) fn group(&mut self, style: &str, draw: impl FnOnce(&mut Self)) {
        self.put(format_args!("<g {style}>"));
        draw(self);
        self.put(format_args!("</g>"));
    }

    /// Returns the text of the SVG file. `title` and `about` are its name and its description for screen readers.
    pub(crate) fn finish(self, height: f64, title: &str, about: &str) -> String {
        let [width, height] = [self.width, height].map(num);
        format!(
            concat!(
                r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" "#,
                r#"width="{width}" height="{height}" role="img" aria-labelledby="title about" "#,
                r#"font-family="{fonts}">"#,
                "\n<title id=\"title\">{title}</title>\n<desc id=\"about\">{about}</desc>\n",
                r##"<rect x="0" y="0" width="{width}" height="{height}" fill="#ffffff"/>"##,
                "\n{body}</svg>\n"
            ),
            width = width,
            height = height,
            fonts = FONTS,
            title = escape(title),
            about = escape(about),
            body = self.body,
        )
    }

    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a `String` cannot fail.
        let _ = writeln!(self.body, "{element}");
    }
}

/// Formats a coordinate with at most two decimals. The text is the same on every machine, and never `NaN` or `-0`.
pub(crate) fn num(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Formats a coordinate with one decimal. The text is never `NaN`, an infinity or `-0.0`.
fn tenths(value: f64) -> String {
    let text = format!("{:.1}", if value.is_finite() { value } else { 0.0 });
    if text == "-0.0" { "0.0".to_owned() } else { text }
}

/// Escapes text for XML content or an attribute value. Line breaks and tabs become spaces. Characters that XML 1.0 does
/// not allow become U+FFFD.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\t' | '\n' | '\r' => escaped.push(' '),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ => escaped.push(c),
        }
    }
    escaped
}

/// Returns an upper estimate of the width of regular `text` in pixels, for the widest font of the list.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let em: f64 = text
        .chars()
        .map(|c| match c {
            'f' | 'i' | 'j' | 'l' | 't' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.36,
            '(' | ')' | '[' | ']' | '/' | '-' | 'r' => 0.42,
            'm' | 'w' | 'M' | 'W' | '%' | '@' | '+' | '<' | '>' | '=' | '→' | '—' => 0.95,
            'A'..='Z' => 0.74,
            _ => 0.63,
        })
        .sum();
    em * size
}

/// Breaks `text` at spaces into lines that are at most `width` wide, except for single long words.
pub(crate) fn wrap(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(line, size) + text_width(word, size) + size * 0.36 <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Returns `text`, cut to `width` with an ellipsis if it is wider.
pub(crate) fn fit(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut cut = text.to_owned();
    while !cut.is_empty() && text_width(&cut, size) + size > width {
        cut.pop();
    }
    format!("{}…", cut.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short_and_finite() {
        let cases = [(1.0, "1"), (1.005, "1"), (-0.001, "0"), (10.0, "10"), (2.346, "2.35"), (f64::NAN, "0")];
        for (value, text) in cases {
            assert_eq!(num(value), text);
        }
        assert_eq!(num(f64::INFINITY), "0");
    }

    #[test]
    fn dots_have_no_negative_zero() {
        let mut svg = Svg::new(10.0);
        svg.dots(&[[-0.04, f64::NAN], [-0.06, 2.0]], 1.0, "#000000");
        let text = svg.finish(10.0, "", "");
        assert!(text.contains(r#"d="M0.0 0.0h0M-0.1 2.0h0""#), "{text}");
    }

    #[test]
    fn text_cannot_leave_its_element() {
        assert_eq!(escape("a<b> & \"c\" 'd'\n\u{1}"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39; \u{fffd}");
    }

    #[test]
    fn lines_break_at_spaces_and_a_long_word_stands_alone() {
        assert_eq!(wrap("aa bb cc", 10.0, 32.0), ["aa bb", "cc"]);
        assert_eq!(wrap("unbreakable x", 10.0, 5.0), ["unbreakable", "x"]);
        assert!(wrap("  ", 10.0, 50.0).is_empty());
    }
    #[test]
    fn what_does_not_fit_is_cut() {
        assert_eq!(fit("short", 12.0, 80.0), "short");
        let cut = fit("a very long label of a handoff", 12.0, 80.0);
        assert!(cut.ends_with('…') && text_width(&cut, 12.0) <= 80.0, "{cut}");
    }
}

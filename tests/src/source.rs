//! Rust source files as text, as `rustfmt` writes them: an item ends with the first brace at its own indentation.

/// Returns the text without its items under `#[cfg(test)]`, wherever they are in the file.
pub fn without_tests(text: &str) -> String {
    let mut product = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            product.push_str(line);
            product.push('\n');
            continue;
        }
        let indent = indent_of(line);
        // More attributes may follow, over several lines.
        let mut is_first = true;
        for line in lines.by_ref() {
            let own = indent_of(line) == indent;
            let begins = is_first && !line.trim_start().starts_with("#[") && own;
            let ends_at_once = begins && (line.ends_with(';') || line.ends_with('}') || line.ends_with(','));
            is_first &= !begins && !line.trim().is_empty();
            if ends_at_once || (!is_first && own && line.trim_start().starts_with('}')) {
                break;
            }
        }
    }
    product
}

/// Returns the number of spaces before the first other character.
pub fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns the number of lines that are not empty, not comments and not tests.
pub fn code_lines(text: &str) -> usize {
    let product = without_tests(text);
    product.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

/// Returns the text without comment lines, and without the arms of a `match` that do nothing or return `None`.
pub fn heeded(text: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let is_idle = ["=> {}", "=> None,", "=> return None,"].iter().any(|end| line.contains(end));
        if !is_idle {
            kept.push(line);
            continue;
        }
        // The patterns above this line belong to the same arm.
        let continues = |text: &str| text.trim_start().starts_with(['|', ')', '}']);
        let mut first = line;
        while indent_of(first) != indent_of(line) || continues(first) {
            let Some(above) = kept.pop() else { break };
            first = above;
        }
    }
    kept.join("\n")
}

/// Returns the arms of each `match` whose arms are on separate lines: the text of each up to its `=>`.
pub fn matches(text: &str) -> Vec<Vec<String>> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let opens =
            line.ends_with(" {") && line.split(|c: char| !c.is_alphanumeric()).any(|word| word == "match");
        if !opens || line.trim_start().starts_with("//") {
            continue;
        }
        let indent = indent_of(line);
        let body =
            lines[at + 1..].iter().take_while(|line| line.trim().is_empty() || indent_of(line) > indent);
        let (mut arms, mut pattern) = (Vec::new(), String::new());
        // The body of an arm is indented further. Its closing brace is not part of the next pattern.
        for code in body.filter(|line| indent_of(line) == indent + 4).map(|line| line.trim()) {
            if code.starts_with("//") || (code.starts_with('}') && !code.contains("=>")) {
                continue;
            }
            pattern.push_str(code);
            if let Some(end) = pattern.find("=>") {
                arms.push(pattern[..end].trim().to_owned());
                pattern.clear();
            }
        }
        found.push(arms);
    }
    found
}

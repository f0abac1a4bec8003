//! Checks of SVG drawings.

/// Panics unless every element is closed in its order, and no `<`, `&` or quote is where XML forbids it.
fn assert_well_formed(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = svg;
    while let Some((text, tail)) = rest.split_once('<') {
        assert_text(text);
        let (tag, tail) = tail.split_once('>').unwrap();
        assert!(!tag.contains('<') && tag.matches('"').count() % 2 == 0, "<{tag}>");
        tag.split('"').skip(1).step_by(2).for_each(assert_text);
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap());
        }
        rest = tail;
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} {rest}");
}

fn assert_text(text: &str) {
    let entities = ["amp;", "lt;", "gt;", "quot;", "#39;"];
    let bare = text.split('&').skip(1).find(|after| !entities.iter().any(|entity| after.starts_with(entity)));
    assert!(bare.is_none() && !text.contains('>'), "{text}");
}

/// Panics unless the drawing is well-formed, and no attribute or path begins with a value that is not a number.
pub(crate) fn assert_sound(svg: &str) {
    assert_well_formed(svg);
    for wrong in ["\"NaN\"", "\"inf\"", "\"-0\"", "MNaN", "LNaN"] {
        assert!(!svg.contains(wrong), "{wrong} in {svg}");
    }
}

/// Writes a drawing into the target directory, for viewing.
pub(crate) fn save(name: &str, svg: &str) {
    std::fs::write(format!("{}/{name}.svg", env!("CARGO_TARGET_TMPDIR")), svg).unwrap();
}

//! A page for each code: why, and an example that gives it and one that does not.

/// Pages by code, in order.
static PAGES: &[(&str, &str)] = &[
    ("E0101", include_str!("explain/E0101.md")),
    ("E0102", include_str!("explain/E0102.md")),
    ("E0103", include_str!("explain/E0103.md")),
    ("E0104", include_str!("explain/E0104.md")),
    ("E0105", include_str!("explain/E0105.md")),
    ("E0106", include_str!("explain/E0106.md")),
    ("E0107", include_str!("explain/E0107.md")),
    ("E0108", include_str!("explain/E0108.md")),
    ("E0109", include_str!("explain/E0109.md")),
    ("E0110", include_str!("explain/E0110.md")),
    ("E0111", include_str!("explain/E0111.md")),
    ("E0112", include_str!("explain/E0112.md")),
    ("E0113", include_str!("explain/E0113.md")),
    ("E0114", include_str!("explain/E0114.md")),
    ("E0115", include_str!("explain/E0115.md")),
    ("E0116", include_str!("explain/E0116.md")),
    ("E0117", include_str!("explain/E0117.md")),
    ("E0118", include_str!("explain/E0118.md")),
    ("E0119", include_str!("explain/E0119.md")),
    ("E0120", include_str!("explain/E0120.md")),
    ("E0121", include_str!("explain/E0121.md")),
    ("E0122", include_str!("explain/E0122.md")),
    ("E0123", include_str!("explain/E0123.md")),
    ("E0201", include_str!("explain/E0201.md")),
    ("E0202", include_str!("explain/E0202.md")),
    ("E0203", include_str!("explain/E0203.md")),
    ("E0204", include_str!("explain/E0204.md")),
    ("E0205", include_str!("explain/E0205.md")),
    ("E0206", include_str!("explain/E0206.md")),
    ("E0207", include_str!("explain/E0207.md")),
    ("E0208", include_str!("explain/E0208.md")),
    ("E0209", include_str!("explain/E0209.md")),
    ("E0210", include_str!("explain/E0210.md")),
    ("E0211", include_str!("explain/E0211.md")),
    ("E0212", include_str!("explain/E0212.md")),
    ("E0213", include_str!("explain/E0213.md")),
    ("E0301", include_str!("explain/E0301.md")),
    ("E0302", include_str!("explain/E0302.md")),
    ("E0304", include_str!("explain/E0304.md")),
    ("E0305", include_str!("explain/E0305.md")),
    ("E0306", include_str!("explain/E0306.md")),
    ("E0307", include_str!("explain/E0307.md")),
    ("E0308", include_str!("explain/E0308.md")),
    ("E0309", include_str!("explain/E0309.md")),
    ("E0310", include_str!("explain/E0310.md")),
    ("E0311", include_str!("explain/E0311.md")),
    ("E0312", include_str!("explain/E0312.md")),
    ("E0313", include_str!("explain/E0313.md")),
    ("E0314", include_str!("explain/E0314.md")),
    ("E0401", include_str!("explain/E0401.md")),
    ("E0402", include_str!("explain/E0402.md")),
    ("E0403", include_str!("explain/E0403.md")),
    ("E0404", include_str!("explain/E0404.md")),
    ("E0405", include_str!("explain/E0405.md")),
    ("E0406", include_str!("explain/E0406.md")),
    ("E0407", include_str!("explain/E0407.md")),
    ("E0408", include_str!("explain/E0408.md")),
    ("E0409", include_str!("explain/E0409.md")),
    ("E0410", include_str!("explain/E0410.md")),
    ("E0411", include_str!("explain/E0411.md")),
    ("E0412", include_str!("explain/E0412.md")),
    ("E0413", include_str!("explain/E0413.md")),
    ("N0401", include_str!("explain/N0401.md")),
    ("N0402", include_str!("explain/N0402.md")),
    ("N0403", include_str!("explain/N0403.md")),
    ("W0201", include_str!("explain/W0201.md")),
    ("W0202", include_str!("explain/W0202.md")),
    ("W0203", include_str!("explain/W0203.md")),
    ("W0401", include_str!("explain/W0401.md")),
    ("W0402", include_str!("explain/W0402.md")),
    ("W0403", include_str!("explain/W0403.md")),
    ("W0404", include_str!("explain/W0404.md")),
    ("W0405", include_str!("explain/W0405.md")),
    ("W0406", include_str!("explain/W0406.md")),
    ("W0407", include_str!("explain/W0407.md")),
    ("W0408", include_str!("explain/W0408.md")),
];

/// The page of a diagnostic's code, as Markdown; none if there is no such code.
pub fn explain(code: &str) -> Option<&'static str> {
    let found = PAGES
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(code));
    found.map(|(_, page)| *page)
}

/// All codes, in order.
pub fn codes() -> impl Iterator<Item = &'static str> {
    PAGES.iter().map(|(code, _)| *code)
}

//! The keys that databases of tuned plans had before, as today's. `axe.plan` in IR has today's alone.

use super::entry::{Entries, Entry};

/// Old keys and today's.
const RENAMED: [(&str, &str); 4] = [
    ("kernel", "mainloop"),
    ("order", "raster"),
    ("group", "swizzle"),
    ("swap", "swap_ab"),
];
/// Old keys whose value is a number of CTAs, and today's way to share depth.
const SHARED: [(&str, &str); 3] = [
    ("split", "cluster_split_k"),
    ("parts", "split_k"),
    ("tail", "stream_k"),
];

/// What to write for an old key; `None` for one that never was.
pub(super) fn advice(key: &str) -> Option<String> {
    let renamed = RENAMED.iter().find(|(old, _)| *old == key);
    let shared = SHARED.iter().find(|(old, _)| *old == key);
    match (renamed, shared, key) {
        (Some((_, new)), ..) => Some(format!("'{new}'")),
        (_, Some((_, sharing)), _) => Some(format!("decomposition = \"{sharing}\", splits = n")),
        (.., "turns") => Some("schedule = \"pingpong\"".to_owned()),
        (.., "beside") => Some("cluster = array<i64: 1, n>".to_owned()),
        _ => None,
    }
}

/// The entries with today's keys.
pub(super) fn renewed(entries: Entries) -> Entries {
    let beside = entries.contains(&("beside".to_owned(), Entry::Flag(true)));
    let mut found = Entries::new();
    for (key, entry) in entries {
        let mut put = |key: &str, entry| found.push((key.to_owned(), entry));
        let shared = SHARED.iter().find(|(old, _)| *old == key);
        match (key.as_str(), entry) {
            ("beside", _) | ("turns", Entry::Flag(false)) => {}
            ("turns", _) => put("schedule", Entry::Text("pingpong".to_owned())),
            ("cluster", Entry::Number(ctas)) => {
                let shape = if beside { vec![1, ctas] } else { vec![ctas, 1] };
                put("cluster", Entry::Numbers(shape));
            }
            (_, Entry::Number(1)) if shared.is_some() => {}
            (key, entry) => match shared {
                Some((_, sharing)) => {
                    put("decomposition", Entry::Text((*sharing).to_owned()));
                    put("splits", entry);
                }
                None => {
                    let renamed = RENAMED.iter().find(|(old, _)| *old == key);
                    put(renamed.map_or(key, |(_, new)| new), entry);
                }
            },
        }
    }
    found
}

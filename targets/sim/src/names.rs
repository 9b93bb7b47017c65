//! Names of functions as people write them.

use cpp_demangle::{DemangleOptions, Symbol};

/// Characters of template arguments beyond which they are left out.
const LONG: usize = 48;

/// A function's name without mangling and parameters; long template arguments become `...`.
pub(crate) fn short(name: &str) -> String {
    let options = DemangleOptions::new().no_params().no_return_type();
    let plain = Symbol::new(name)
        .ok()
        .and_then(|symbol| symbol.demangle_with_options(&options).ok());
    plain.map_or_else(|| name.to_string(), |plain| elide(&plain))
}

/// Replaces the outermost template arguments that are long.
fn elide(name: &str) -> String {
    let mut out = String::new();
    let mut inner = String::new();
    let mut depth = 0usize;
    for c in name.chars() {
        if c == '<' {
            depth += 1;
        }
        let text = if depth == 0 { &mut out } else { &mut inner };
        text.push(c);
        if c == '>' && depth > 0 {
            depth -= 1;
            if depth == 0 {
                let arguments = std::mem::take(&mut inner);
                out.push_str(if arguments.len() > LONG {
                    "<...>"
                } else {
                    &arguments
                });
            }
        }
    }
    out + &inner
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn names_lose_what_nobody_reads() {
        assert_eq!(short("_Z6kernelPfi"), "kernel");
        assert_eq!(short("_ZN3foo3barIiEEvT_"), "foo::bar<int>");
        assert_eq!(short("matmul_kernel"), "matmul_kernel");
        assert_eq!(short("_Znonsense"), "_Znonsense");
        let long = format!("_Z1fI{}Evv", "4name".repeat(12));
        assert_eq!(short(&long), "f<...>");
    }
}

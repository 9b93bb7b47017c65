//! MLIR's language server over all upstream dialects and axe.
fn main() {
    let arguments: Vec<_> = std::env::args_os().collect();
    std::process::exit(axe_opt::lsp_server_main(&arguments));
}

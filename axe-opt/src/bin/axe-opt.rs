//! mlir-opt's whole command line over all upstream dialects and axe.
fn main() {
    let arguments: Vec<_> = std::env::args_os().collect();
    std::process::exit(axe_opt::opt_main(&arguments));
}

//! The command line: `axe layout ...` and the standalone `axe-layout ...`.

mod algebra;
mod analysis;
mod cute;
mod picture;
mod relayout;
mod shard;
mod triton;

use std::io::{self, IsTerminal, Write};

use clap::{Args, Subcommand};
use serde::{Serialize, Serializer};

use crate::json::extents;
use crate::{DYNAMIC, Layout};

/// Look at layouts, compute with them, and answer questions about them.
#[derive(Debug, Args)]
pub struct LayoutArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print a layout as a table, coloured by owner on a terminal.
    Show(picture::ShowArgs),
    /// Draw a layout as SVG.
    Svg(picture::DrawArgs),
    /// Draw a layout as an HTML page: zoom, hover for coordinates, click to light up an owner.
    Html(picture::DrawArgs),
    /// Answer JSON Lines requests on standard input, such as
    /// {"id": "1", "op": "span", "inputs": {"layout": {"shard": [[8, 4, "lane"]]}, "axis": "lane"}}.
    #[command(after_help = super::eval::OPERATIONS)]
    Eval,
    /// Compute with CuTe layouts.
    Cute(cute::CuteArgs),
    /// Shardings: translate between notations, and plan the collectives between two.
    Shard(shard::ShardArgs),
    /// Triton's encodings as linear layouts and Axe layouts, and back.
    Triton(triton::TritonArgs),
    #[command(flatten)]
    Algebra(Box<algebra::AlgebraCommand>),
    #[command(flatten)]
    Analysis(Box<analysis::AnalysisCommand>),
}

/// Any failure, as one line for people.
pub type CliError = Box<dyn std::error::Error + Send + Sync>;

/// Runs a subcommand. Results go to standard output, failures to standard error with exit status 1.
/// Gives the exit status.
#[must_use]
pub fn run(args: LayoutArgs) -> u8 {
    let outcome = match args.command {
        Command::Show(args) => picture::show(&args),
        Command::Svg(args) => picture::svg(&args),
        Command::Html(args) => picture::html(&args),
        Command::Eval => {
            return match super::eval::serve(io::stdin().lock(), io::stdout().lock()) {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => fail(&error.into()),
                _ => 0,
            };
        }
        Command::Cute(args) => cute::run(&args),
        Command::Shard(args) => shard::run(&args),
        Command::Triton(args) => triton::run(&args),
        Command::Algebra(command) => algebra::run(&command),
        Command::Analysis(command) => analysis::run(&command),
    };
    let written = outcome.and_then(|text| {
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            // A closed pipe (`| head`) is no failure.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    });
    written.map_or_else(|error| fail(&error), |()| 0)
}

fn fail(error: &CliError) -> u8 {
    eprintln!("error: {error}");
    1
}

/// A layout in the textual form, in `#axe.layout<...>`, or in JSON.
fn parse_layout(text: &str) -> Result<Layout, String> {
    let text = text.trim();
    if text.starts_with('{') {
        return serde_json::from_str(text).map_err(|error| error.to_string());
    }
    let inner = text
        .strip_prefix("#axe.layout<")
        .and_then(|rest| rest.strip_suffix('>'));
    inner
        .unwrap_or(text)
        .parse()
        .map_err(|error: crate::Error| error.to_string())
}

/// `8,16` or `8x16`; empty for a scalar. `?` is a dynamic extent.
fn parse_numbers(text: &str) -> Result<Numbers, String> {
    let trimmed = text
        .trim()
        .trim_matches(|c| matches!(c, '(' | ')' | '[' | ']'));
    if trimmed.is_empty() {
        return Ok(Numbers(Vec::new()));
    }
    let number = |part: &str| match part.trim() {
        "?" => Ok(DYNAMIC),
        part => part.parse().map_err(|_| format!("`{part}` is no integer")),
    };
    trimmed
        .split([',', 'x'])
        .map(number)
        .collect::<Result<_, _>>()
        .map(Numbers)
}

/// A list of integers as one argument.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Numbers(Vec<i64>);

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        extents(&self.0).serialize(serializer)
    }
}

/// Colours on a terminal, unless `NO_COLOR` is set (<https://no-color.org>).
fn wants_colour() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    !refused && (forced || io::stdout().is_terminal())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Shell {
        #[command(flatten)]
        layout: LayoutArgs,
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Shell::command().debug_assert();
    }

    #[test]
    fn every_argument_of_every_command_is_described() {
        use clap::CommandFactory;
        let shell = Shell::command();
        let commands: Vec<_> = shell.get_subcommands().collect();
        assert!(commands.len() > 20);
        for command in commands {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for argument in command.get_arguments() {
                let (of, name) = (command.get_name(), argument.get_id());
                assert!(argument.get_help().is_some(), "{of}: {name}");
            }
        }
    }

    #[test]
    fn layouts_are_read_in_every_form() {
        let want = parse_layout("S[(8, 4) : (4@lane, 1)]").unwrap();
        for text in [
            "#axe.layout<S[(8, 4) : (4@lane, 1)]>",
            r#"{"shard": [[8, 4, "lane"], [4, 1, "m"]], "replica": [], "offset": {}, "swizzle": null}"#,
        ] {
            assert_eq!(parse_layout(text).unwrap(), want);
        }
        assert!(parse_layout("S[(8").is_err());
        assert_eq!(
            parse_numbers("8x16").unwrap(),
            parse_numbers("(8, 16)").unwrap()
        );
        assert!(parse_numbers("8,,2").is_err());
        let dynamic = serde_json::to_string(&parse_numbers("?x64").unwrap()).unwrap();
        assert_eq!(dynamic, r#"["?",64]"#);
    }
}

//! The command tree: what all commands take, what several share, and the list of commands in its help.

mod shared;

use crate::commands::{Command, GROUPS};
use crate::place::Driven;
use clap::{Args, Parser, ValueEnum};
pub(crate) use shared::{Acting, Drive, Durability, Grading, Look, Own, Times, Which, model_set};
use std::path::PathBuf;

/// Runs multi-agent LLM systems as durable state machines.
#[derive(Debug, Parser)]
#[command(
    name = "steersman",
    version,
    disable_help_subcommand = true,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The arguments of every command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct Global {
    /// Where sessions are kept: a file, sqlite:FILE or memory: [default: .steersman/sessions.db here or above, else your data
    /// folder].
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "STEERSMAN_STORE",
        hide_env_values = true
    )]
    pub(crate) store: Option<PathBuf>,
    /// Ask the server at this address in place of a store, with the token in STEERSMAN_TOKEN, or in `server.token` next to the store.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "STEERSMAN_SERVER",
        hide_env_values = true
    )]
    pub(crate) server: Option<String>,
    /// Print data as JSON, one document or one a line.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say only what went wrong.
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// When to use colours. They carry nothing that the text lacks.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
    /// Width of the terminal on which another process prints the rows of this one.
    #[arg(long, global = true, hide = true)]
    pub(crate) columns: Option<usize>,
    /// Everything in this process that drives sessions for the command.
    #[arg(skip)]
    pub(crate) driven: Driven,
}

/// Use of colours.
#[derive(Copy, Clone, Debug, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

/// Returns the command tree, with the grouped list in its help.
pub(crate) fn command() -> clap::Command {
    use clap::CommandFactory;
    use std::fmt::Write;
    let mut list = String::new();
    for (group, commands) in GROUPS {
        let _ = writeln!(list, "\x1b[1m{group}\x1b[0m");
        for (name, about) in *commands {
            let _ = writeln!(list, "  {name:<11} {about}");
        }
        list.push('\n');
    }
    Cli::command().help_template(format!(
        "{{about}}\n\n\x1b[1mUsage:\x1b[0m {{usage}}\n\n{list}\x1b[1mOptions\x1b[0m\n{{options}}{{after-help}}"
    ))
    .after_help("First: steersman demo. Each command tells more with --help.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_stands_in_one_group() {
        let tree = command();
        tree.clone().debug_assert();
        let mut shown: Vec<&str> = tree
            .get_subcommands()
            .filter(|c| !c.is_hide_set())
            .map(clap::Command::get_name)
            .collect();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, commands)| commands.iter().map(|(name, _)| *name))
            .collect();
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(shown, grouped);
    }

    /// The day of the manual. `cargo xtask dist` says it in seconds since 1970.
    fn date() -> String {
        let seconds = std::env::var("STEERSMAN_PAGES_TIME");
        let seconds = seconds.map_or(0, |seconds| seconds.parse().unwrap());
        let date = jiff::Timestamp::from_second(seconds).unwrap();
        date.strftime("%F").to_string()
    }

    /// Writes the page of a command and those of its subcommands.
    fn write_manual(command: &clap::Command, date: &str, folder: &std::path::Path) {
        for shown in command.get_subcommands().filter(|c| !c.is_hide_set()) {
            write_manual(shown, date, folder);
        }
        let page = clap_mangen::Man::new(command.clone())
            .date(date)
            .source(concat!("steersman ", env!("CARGO_PKG_VERSION")))
            .manual("Steersman");
        let mut text = Vec::new();
        page.render(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        // The page means one empty line, and writes three breaks.
        let text = text.replace("\n.br\n\n.br\n", "\n.sp\n");
        std::fs::write(folder.join(page.get_filename()), text).unwrap();
    }

    /// `cargo xtask dist` names the folder; the pages come into the folders of an installation.
    #[test]
    fn the_pages_of_all_commands_are_written() {
        use clap_complete::Shell;
        let named = std::env::var_os("STEERSMAN_PAGES").map(PathBuf::from);
        let own = format!("steersman-pages-{}", std::process::id());
        let folder = named.clone().unwrap_or(std::env::temp_dir().join(own));
        let share = folder.join("share");
        for (shell, path) in [
            (Shell::Bash, "bash-completion/completions/steersman"),
            (Shell::Zsh, "zsh/site-functions/_steersman"),
            (Shell::Fish, "fish/vendor_completions.d/steersman.fish"),
        ] {
            let path = share.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command(), "steersman", &mut script);
            std::fs::write(&path, &script).unwrap();
            let script = String::from_utf8(script).unwrap();
            assert!(script.contains("pending") && script.contains("until-idle"));
        }
        let manual = share.join("man/man1");
        std::fs::create_dir_all(&manual).unwrap();
        let mut whole = command().disable_help_subcommand(true);
        whole.build();
        write_manual(&whole, &date(), &manual);
        for (name, _) in GROUPS.iter().flat_map(|(_, commands)| *commands) {
            let page = manual.join(format!("steersman-{name}.1"));
            let page = std::fs::read_to_string(page).unwrap();
            let name = name.replace('-', "\\-");
            assert!(page.contains(&format!("steersman\\-{name} \\- ")), "{page}");
            assert!(page.contains(".SH SYNOPSIS"), "{page}");
        }
        if named.is_none() {
            std::fs::remove_dir_all(&folder).unwrap();
        }
    }
}

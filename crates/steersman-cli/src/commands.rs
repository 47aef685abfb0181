//! The commands, one file each: the arguments of a command with their help, its line in `steersman --help` (`LISTED`), and
//! `run`, from parsed arguments to an exit code. The other files of the folder are shared by several commands.

#![expect(
    clippy::unused_async,
    reason = "all commands are called in the same way; some have nothing to wait for"
)]

mod act;
mod adopt;
mod answer;
mod approve;
mod artifacts;
mod backup;
mod branching;
mod cancel;
mod changed;
mod check;
mod completions;
mod context;
mod demo;
mod diff;
mod doctor;
mod edit;
mod effects;
mod erase;
mod example_service;
mod explain;
mod export;
mod fork;
mod fsck;
mod gc;
mod graph;
mod hold;
mod import;
mod join;
mod key;
mod log;
mod login;
mod lsp;
mod mcp;
mod memory;
mod migrate;
mod new;
mod orders;
mod pause;
mod pending;
mod reject;
mod release;
mod rerun;
mod resolve;
mod resume;
mod retry;
mod rewind;
mod run;
mod run_all;
mod run_there;
mod schedule;
mod schema;
mod search;
mod send;
mod serve;
mod servers;
mod sessions;
mod show;
mod simulate;
mod test;
mod there;
mod timeline;
mod token;
mod top;
mod ui;
mod why;

use crate::cli::Global;
use crate::error::{CommandError, Exit};
use crate::printer::Printer;
use crate::remote;
pub(crate) use artifacts::refused;

/// Declares the commands in the groups and in the order of the help. A row names a variant, the module of the command (which
/// has the command's name), and the type of its arguments.
macro_rules! commands {
    (
        $($group:literal { $($name:ident($module:ident::$args:ident),)+ })+
        hidden { $($hidden:ident($hidden_module:ident::$hidden_args:ident),)+ }
    ) => {
        /// The commands.
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum Command {
            $($($name(Box<$module::$args>),)+)+
            $($hidden(Box<$hidden_module::$hidden_args>),)+
        }

        /// The groups of the help: the names of their commands, with a line about each.
        pub(crate) const GROUPS: &[(&str, &[(&str, &str)])] = &[
            $(($group, &[$((stringify!($module), $module::LISTED),)+]),)+
        ];

        impl Command {
            /// Returns the name of its module.
            fn module(&self) -> &'static str {
                match self {
                    $($(Self::$name(_) => stringify!($module),)+)+
                    $(Self::$hidden(_) => stringify!($hidden_module),)+
                }
            }

            /// Runs the command.
            pub(crate) async fn run(
                self,
                global: &Global,
                printer: &Printer,
            ) -> Result<Exit, CommandError> {
                remote::fits(self.module(), global)?;
                match self {
                    $($(Self::$name(args) => Box::pin($module::run(*args, global, printer)).await,)+)+
                    $(Self::$hidden(args) => {
                        Box::pin($hidden_module::run(*args, global, printer)).await
                    })+
                }
            }
        }
    };
}

commands! {
    "Begin" {
        Demo(demo::DemoArgs),
        New(new::NewArgs),
        Check(check::CheckArgs),
        Run(run::RunArgs),
        Login(login::LoginArgs),
        Schedule(schedule::ScheduleArgs),
        Serve(serve::ServeArgs),
        Ui(ui::UiArgs),
        Mcp(mcp::McpArgs),
    }
    "Look" {
        Sessions(sessions::SessionsArgs),
        Top(top::TopArgs),
        Show(show::ShowArgs),
        Log(log::LogArgs),
        Context(context::ContextArgs),
        Effects(effects::EffectsArgs),
        Timeline(timeline::TimelineArgs),
        Graph(graph::GraphArgs),
        Why(why::WhyArgs),
        Artifacts(artifacts::ArtifactsArgs),
        Memory(memory::MemoryArgs),
        Diff(diff::DiffArgs),
        Pending(pending::PendingArgs),
    }
    "Act" {
        Send(send::SendArgs),
        Answer(answer::AnswerArgs),
        Approve(approve::ApproveArgs),
        Reject(reject::RejectArgs),
        Resolve(resolve::ResolveArgs),
        Edit(edit::EditArgs),
        Cancel(cancel::CancelArgs),
        Pause(pause::PauseArgs),
        Resume(resume::ResumeArgs),
        Hold(hold::HoldArgs),
        Release(release::ReleaseArgs),
        Retry(retry::RetryArgs),
    }
    "Time" {
        Fork(fork::ForkArgs),
        Join(join::JoinArgs),
        Adopt(adopt::AdoptArgs),
        Rewind(rewind::RewindArgs),
        Rerun(rerun::RerunArgs),
        Search(search::SearchArgs),
    }
    "Ship" {
        Test(test::TestArgs),
        Simulate(simulate::SimulateArgs),
        Import(import::ImportArgs),
        Export(export::ExportArgs),
        Migrate(migrate::MigrateArgs),
    }
    "Keep" {
        Gc(gc::GcArgs),
        Fsck(fsck::FsckArgs),
        Backup(backup::BackupArgs),
        Erase(erase::EraseArgs),
        Key(key::KeyArgs),
        Token(token::TokenArgs),
        Doctor(doctor::DoctorArgs),
        Schema(schema::SchemaArgs),
        Lsp(lsp::LspArgs),
        Explain(explain::ExplainArgs),
        Completions(completions::CompletionsArgs),
    }
    hidden {
        ExampleService(example_service::ExampleServiceArgs),
    }
}

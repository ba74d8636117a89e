//! `sealane policy`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use sealane_message::{DataType, InputError};
use sealane_seal::policy::{Battery, PolicyLink, Rate, ReaderTrust};

/// `sealane policy`.
#[derive(Debug, Args)]
pub struct PolicyArgs {
    /// The question to the policy
    #[command(subcommand)]
    pub verb: PolicyVerb,
}

/// The verbs of `sealane policy`.
#[derive(Debug, Subcommand)]
pub enum PolicyVerb {
    /// Say how a message of a type is sealed and sent, and which rule decided
    Explain(PolicyExplain),
    /// Check a policy file, and list the classes that each type can reach
    Check {
        /// The file [default: the setting `policy`, or what is built in]
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

/// `sealane policy explain`.
#[derive(Debug, Args)]
pub struct PolicyExplain {
    /// The data type, for example location, or its number
    #[arg(value_name = "TYPE")]
    pub data_type: DataType,
    /// Where it travels first: local, mesh, hub or foreign
    #[arg(long, value_name = "KIND", default_value = "hub", value_parser = link)]
    pub link: PolicyLink,
    /// The trust in its readers: verified, member or unknown
    #[arg(long, value_name = "TRUST", default_value = "member", value_parser = trust)]
    pub trust: ReaderTrust,
    /// The sender's battery in percent [default: unknown]
    #[arg(long, value_name = "PERCENT", value_parser = battery)]
    pub battery: Option<Battery>,
    /// How many such messages it has per second
    #[arg(long, value_name = "HZ", default_value = "1", value_parser = rate)]
    pub rate: Rate,
    /// The policy file [default: the setting `policy`, or what is built in]
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

fn link(text: &str) -> Result<PolicyLink, InputError> {
    let known = PolicyLink::ALL.map(PolicyLink::name).join(", ");
    PolicyLink::from_name(text).ok_or_else(|| format!("a link is one of {known}").into())
}

fn trust(text: &str) -> Result<ReaderTrust, InputError> {
    let known = ReaderTrust::ALL.map(ReaderTrust::name).join(", ");
    ReaderTrust::from_name(text).ok_or_else(|| format!("trust is one of {known}").into())
}

fn battery(text: &str) -> Result<Battery, &'static str> {
    text.parse().ok().and_then(Battery::new).ok_or("a battery has 0 to 100 percent")
}

fn rate(text: &str) -> Result<Rate, &'static str> {
    let rate = text.parse().ok().and_then(Rate::from_hertz);
    rate.ok_or("a rate is a number from 0 to 4 million")
}

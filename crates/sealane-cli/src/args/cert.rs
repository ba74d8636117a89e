//! `sealane cert`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `sealane cert`.
#[derive(Debug, Args)]
pub struct CertArgs {
    /// The verb
    #[command(subcommand)]
    pub verb: CertVerb,
}

/// The verbs of `sealane cert`.
#[derive(Debug, Subcommand)]
pub enum CertVerb {
    /// Make a certificate that signs itself, with its key, for a node without an issuer
    SelfSigned(SelfSigned),
}

/// `sealane cert self-signed`.
#[derive(Debug, Args)]
pub struct SelfSigned {
    /// The names and addresses of the node [default: localhost, 127.0.0.1, ::1 and the name of this
    /// machine]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// The folder for cert.pem and key.pem
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub to: PathBuf,
    /// For how many days it is valid
    #[arg(long, value_name = "N", default_value_t = 365)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=3650))]
    pub days: u32,
}

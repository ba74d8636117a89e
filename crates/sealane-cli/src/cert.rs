//! `sealane cert`: a certificate for a node that has no issuer.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose};

use crate::args::cert::{CertArgs, CertVerb, SelfSigned};
use crate::key::{machine_name, say};
use crate::limits::CERT_BACKDATED_HOURS;
use crate::{CliFailure, Terminal};

/// Makes a certificate and its key.
///
/// # Errors
/// [`CliFailure::File`] where there is one already or none can be written,
/// [`CliFailure::Certificate`].
pub fn run(args: &CertArgs, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let CertVerb::SelfSigned(args) = &args.verb;
    self_signed(args, terminal)
}

fn self_signed(args: &SelfSigned, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let names = if args.names.is_empty() { names_of_this_machine() } else { args.names.clone() };
    if let Some(name) = names.iter().find(|name| !is_name(name)) {
        return Err(CliFailure::Certificate(format!("`{name}` is no name and no address")));
    }
    let now = SystemTime::now();
    let until = now + Duration::from_secs(24 * 3600) * args.days;
    let subject = names.first().map_or("localhost", String::as_str);
    let from = now - Duration::from_secs(3600 * CERT_BACKDATED_HOURS);
    let made = make(&names, subject, CertValidity { from, until });
    let CertKeyPair { certificate, key } =
        made.map_err(|cause| CliFailure::Certificate(cause.to_string()))?;
    let (certificate_path, key_path) = (args.to.join("cert.pem"), args.to.join("key.pem"));
    std::fs::create_dir_all(&args.to).map_err(|cause| CliFailure::file(&args.to, cause))?;
    write_new(&key_path, &key, 0o600)?;
    write_new(&certificate_path, &certificate, 0o644)?;
    let (cert, key) = (certificate_path.display().to_string(), key_path.display().to_string());
    let until = humantime::format_rfc3339_seconds(until).to_string();
    if terminal.json() {
        return terminal.record(vec![
            ("certificate", cert.into()),
            ("key", key.into()),
            ("names", sealane::Value::Array(names.into_iter().map(Into::into).collect())),
            ("until", until.into()),
        ]);
    }
    terminal.line(format_args!("certificate  {cert}"))?;
    terminal.line(format_args!("key          {key}"))?;
    terminal.line(format_args!("names        {}", names.join(", ")))?;
    terminal.line(format_args!("until        {until}"))?;
    let name = subject;
    say(
        terminal,
        &format!(
            "\nAt the node:    sealane up --listen 0.0.0.0:9087 --tls-cert {cert} --tls-key {key}\n\
             At the clients: copy {cert} there, then\n\
             \x20               sealane context add {name} --server https://{name}:9087 --ca {cert}"
        ),
    );
    Ok(())
}

fn names_of_this_machine() -> Vec<String> {
    let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
    let name = machine_name();
    if !names.contains(&name) && is_name(&name) {
        names.insert(0, name);
    }
    names
}

/// From when until when a certificate holds.
struct CertValidity {
    from: SystemTime,
    until: SystemTime,
}

/// A certificate and its key, both PEM.
struct CertKeyPair {
    certificate: String,
    key: String,
}

/// A certificate that is no authority of others: whoever trusts it, trusts this node alone.
fn make(
    names: &[String],
    subject: &str,
    validity: CertValidity,
) -> Result<CertKeyPair, rcgen::Error> {
    let mut params = CertificateParams::new(names.to_vec())?;
    params.distinguished_name.push(DnType::CommonName, format!("Sealane node {subject}"));
    params.not_before = validity.from.into();
    params.not_after = validity.until.into();
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok(CertKeyPair { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// Whether a certificate can be for it: a name of DNS, with `*` for its first part or not, or an
/// address.
fn is_name(name: &str) -> bool {
    if name.parse::<IpAddr>().is_ok() {
        return true;
    }
    let is_part = |part: &str| {
        (1..=63).contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    let rest = name.strip_prefix("*.").unwrap_or(name);
    name.len() <= 253 && rest.split('.').all(is_part)
}

/// Writes over nothing: a key that is in use would be lost.
fn write_new(path: &Path, text: &str, mode: u32) -> Result<(), CliFailure> {
    let failed = |cause: io::Error| match cause.kind() {
        io::ErrorKind::AlreadyExists => {
            let cause = "is there already, and is never overwritten; name another folder with --to";
            CliFailure::File { file: path.to_owned(), cause: cause.to_owned() }
        }
        _ => CliFailure::file(path, cause),
    };
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(path).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_for_names_and_addresses() {
        for good in ["localhost", "hub.example", "*.hub.example", "192.0.2.7", "::1", "a-1"] {
            assert!(is_name(good), "{good}");
        }
        for wrong in ["", "a b", "hub.example:9087", "a..b", "-a", "http://a", "a/b", "*"] {
            assert!(!is_name(wrong), "{wrong}");
        }
        assert!(names_of_this_machine().iter().all(|name| is_name(name)));
    }
}

//! Objects in a bucket, behind the same blocking calls as a folder.

mod dial;
mod http;
mod limit;
mod probe;
mod read;
mod upload;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::limits::{
    MAX_S3_CONNECT_MS, MAX_S3_RETRIES, MAX_S3_RETRY_MS, MAX_S3_SILENCE_MS, S3_SINGLE_PUT_BYTES,
};
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path as Location;
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt, PutMode, RetryConfig};
use tokio::runtime::{Handle, Runtime};

use self::dial::S3DialConfig;
use self::http::S3Connector;
use self::limit::UploadLimit;
use super::CreateOutcome;
use super::cache::StoreCache;
use super::look::StoreLook;
use super::outage::{StoreOutage, StoreRetry};
use crate::Error;

/// Objects in an S3-compatible bucket, under a prefix.
///
/// Region, endpoint and credentials come from the environment: `AWS_REGION`, `AWS_ENDPOINT_URL`,
/// `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, or the role of the machine. Plain HTTP is
/// spoken with this machine alone unless `AWS_ALLOW_HTTP=true`. `HTTPS_PROXY` or `ALL_PROXY` is the
/// way to it, unless `NO_PROXY` has its name; `AWS_CA_BUNDLE` takes the place of the certificates
/// that the system trusts. Its calls block the thread that makes them, within a runtime too.
#[derive(Debug)]
pub struct S3Store {
    location: String,
    /// The location behind the address of its server, as far as one is named.
    place: String,
    bucket: AmazonS3,
    prefix: Location,
    runtime: &'static Runtime,
    spool: PathBuf,
    swept: OnceLock<()>,
    /// Set once the server has shown that it creates an object only where none is.
    asked: OnceLock<()>,
    limit: Arc<UploadLimit>,
    outage: StoreOutage,
    cache: OnceLock<StoreCache>,
    look: StoreLook,
}

impl S3Store {
    /// The store at `s3://bucket/prefix`. Nothing is sent yet.
    ///
    /// # Errors
    /// [`Error::Store`] when the address or the environment makes no client.
    pub fn new(location: &str) -> Result<S3Store, Error> {
        let variables = std::env::vars_os();
        S3Store::with_environment(
            location,
            variables.filter_map(|(key, value)| {
                Some((key.into_string().ok()?, value.into_string().ok()?))
            }),
        )
    }

    /// The same with `variables` in the place of the environment's.
    ///
    /// # Errors
    /// As [`S3Store::new`].
    pub fn with_environment(
        location: &str,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<S3Store, Error> {
        let silence = Duration::from_millis(MAX_S3_SILENCE_MS);
        S3Store::with_patience(location, variables, silence)
    }

    /// The same with a server that may be silent for no longer than `silence`: tests do not wait
    /// for minutes.
    #[doc(hidden)]
    pub fn with_patience(
        location: &str,
        variables: impl IntoIterator<Item = (String, String)>,
        silence: Duration,
    ) -> Result<S3Store, Error> {
        let variables: BTreeMap<String, String> = variables.into_iter().collect();
        let invalid = |what: &str| Error::store(location, io::Error::other(what.to_owned()));
        let rest = location.strip_prefix("s3://").ok_or_else(|| invalid("not an s3:// address"))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = Location::parse(prefix).map_err(|_| invalid("the prefix is malformed"))?;
        let road = S3DialConfig::new(&variables).map_err(|cause| Error::store(location, cause))?;
        let builder = builder(&variables);
        let place = match endpoint(&builder) {
            Some(endpoint) => format!("{} {location}", endpoint.trim_end_matches('/')),
            None => location.to_owned(),
        };
        let limit = Arc::new(UploadLimit::default());
        let connector = S3Connector { road, limit: Arc::clone(&limit) };
        let bucket = client(builder.with_bucket_name(bucket), &variables, connector, silence)
            .map_err(|cause| failure(location, cause))?;
        let runtime = runtime().map_err(|cause| Error::store(location, cause))?;
        let spool = spool_folder(&place, &variables);
        let location = location.to_owned();
        Ok(S3Store {
            location,
            place,
            bucket,
            prefix,
            runtime,
            spool,
            swept: OnceLock::new(),
            asked: OnceLock::new(),
            outage: StoreOutage::new(StoreRetry::within(Duration::ZERO)),
            cache: OnceLock::new(),
            look: StoreLook::default(),
            limit,
        })
    }

    /// Sends no more than so many bytes a second from now on; 0 is no bound.
    pub(crate) fn limit_upload(&self, bytes_per_second: u64) {
        self.limit.set(bytes_per_second);
    }

    /// The same with outages waited out. Without this a request fails with its last retry.
    #[must_use]
    pub fn retrying(self, retry: StoreRetry) -> S3Store {
        S3Store { outage: StoreOutage::new(retry), ..self }
    }

    pub(super) fn remember_in(&self, folder: &Path) {
        // Without the folder each object is read each time.
        if self.cache.get().is_none()
            && let Ok(cache) = StoreCache::open(folder)
        {
            self.cache.get_or_init(|| cache);
        }
    }

    pub(super) fn doubt(&self, key: &str) {
        if let Some(cache) = self.cache.get() {
            cache.remove(key);
        }
    }

    pub(super) fn forget(&self) {
        self.look.forget();
        if let Some(cache) = self.cache.get() {
            cache.clear();
        }
    }

    pub(super) fn look(&self) -> &StoreLook {
        &self.look
    }

    pub(crate) fn location(&self) -> &str {
        &self.location
    }

    /// A name that differs for a bucket of the same name at another server.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// A local folder of this store. What was left there a day ago is removed on the way.
    pub(crate) fn spool(&self) -> Result<PathBuf, Error> {
        fs::create_dir_all(&self.spool).map_err(|cause| Error::store("spool", cause))?;
        if self.spool.starts_with(std::env::temp_dir()) {
            only_ours(&self.spool).map_err(|cause| Error::store("spool", cause))?;
        }
        self.swept.get_or_init(|| self.sweep());
        Ok(self.spool.clone())
    }

    pub(crate) fn put(&self, key: &str, bytes: &[u8]) -> Result<CreateOutcome, Error> {
        match self.create(key, bytes) {
            // The first of two attempts may have arrived although its answer did not.
            Ok(CreateOutcome::Existed) => match self.get(key, bytes.len()) {
                Ok(found) if found == bytes => Ok(CreateOutcome::Created),
                Ok(_) | Err(Error::TooLarge { .. }) => Ok(CreateOutcome::Existed),
                Err(error) => Err(error),
            },
            Ok(CreateOutcome::Created) => Ok(CreateOutcome::Created),
            Err(cause) => Err(failure(key, cause)),
        }
    }

    /// Asks for an object where none is, and gives the server's answer as it was.
    fn create(&self, key: &str, bytes: &[u8]) -> object_store::Result<CreateOutcome> {
        let at = self.at(key);
        let payload = object_store::PutPayload::from(bytes.to_vec());
        let put = || self.bucket.put_opts(&at, payload.clone(), PutMode::Create.into());
        let put = self.request(put);
        self.look.wrote(key);
        match put {
            Ok(_) => Ok(CreateOutcome::Created),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(CreateOutcome::Existed),
            Err(cause) => Err(cause),
        }
    }

    /// Packs are named by the hash of what they hold: a bucket that has the name has the bytes, and
    /// two uploads of one pack write the same.
    pub(crate) fn put_file(&self, key: &str, file: &Path) -> Result<CreateOutcome, Error> {
        let size = fs::metadata(file).map_err(|cause| Error::store(key, cause))?.len();
        let outcome = if size <= S3_SINGLE_PUT_BYTES {
            let bytes = fs::read(file).map_err(|cause| Error::store(key, cause))?;
            self.put(key, &bytes)?
        } else if self.size(key)?.is_some() {
            CreateOutcome::Existed
        } else {
            let journal = upload::UploadJournal::open(&self.spool()?, &self.place, key)
                .map_err(|cause| Error::store(key, cause))?;
            let upload = upload::S3Upload::new(&self.bucket, self.at(key), file, size);
            let (place, finished) = (&self.location, &upload.finished);
            let run = self.outage.wait_out_parts(place, finished, || upload.run(&journal));
            let ran = self.wait(run);
            self.look.wrote(key);
            ran.map_err(|cause| cause.into_error(key))?;
            CreateOutcome::Created
        };
        fs::remove_file(file).map_err(|cause| Error::store(key, cause))?;
        Ok(outcome)
    }

    /// Creates an object of one request that is named by the hash of its bytes. Other bytes under
    /// that name are damaged, and are replaced.
    pub(super) fn put_hashed(&self, key: &str, file: &Path) -> Result<CreateOutcome, Error> {
        let bytes = fs::read(file).map_err(|cause| Error::store(key, cause))?;
        if self.put(key, &bytes)? == CreateOutcome::Existed {
            self.delete(key)?;
            self.put(key, &bytes)?;
        }
        fs::remove_file(file).map_err(|cause| Error::store(key, cause))?;
        Ok(CreateOutcome::Created)
    }

    pub(crate) fn get_range(&self, key: &str, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        if out.is_empty() {
            return Ok(());
        }
        let at = self.at(key);
        let range = offset..offset.saturating_add(out.len() as u64);
        match self.request(|| self.bucket.get_range(&at, range.clone())) {
            Ok(bytes) if bytes.len() == out.len() => {
                out.copy_from_slice(&bytes);
                Ok(())
            }
            Ok(_) => Err(Error::Truncated(key.to_owned())),
            Err(cause) if says(&cause, &["416"]) => Err(Error::Truncated(key.to_owned())),
            Err(cause) => Err(read_failure(key, cause)),
        }
    }

    pub(crate) fn size(&self, key: &str) -> Result<Option<u64>, Error> {
        let at = self.at(key);
        match self.request(|| self.bucket.head(&at)) {
            Ok(found) => Ok(Some(found.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(cause) => Err(failure(key, cause)),
        }
    }

    pub(crate) fn delete(&self, key: &str) -> Result<(), Error> {
        let at = self.at(key);
        let deleted = self.request(|| self.bucket.delete(&at));
        self.look.wrote(key);
        match deleted {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(cause) => Err(failure(key, cause)),
        }
    }

    /// Asks the bucket, and again while it is out.
    fn request<T, F>(&self, ask: impl FnMut() -> F + Send) -> object_store::Result<T>
    where
        T: Send,
        F: Future<Output = object_store::Result<T>> + Send,
    {
        self.wait(self.outage.wait_out(&self.location, ask))
    }

    fn wait<F>(&self, future: F) -> F::Output
    where
        F: Future + Send,
        F::Output: Send,
    {
        if Handle::try_current().is_err() {
            return self.runtime.block_on(future);
        }
        // A thread that drives one runtime may not wait for another.
        let wait = || self.runtime.block_on(future);
        let waited = std::thread::scope(|scope| scope.spawn(wait).join());
        waited.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn at(&self, key: &str) -> Location {
        let parts = key.split('/').filter(|part| !part.is_empty());
        parts.fold(self.prefix.clone(), |at, part| at.join(part))
    }

    /// Gives up what nobody came back for. A bucket keeps parts, and bills them, until told.
    fn sweep(&self) {
        super::sweep(&self.spool, |file| {
            if upload::UploadJournal::is_held(file) {
                return false;
            }
            if let Some(unfinished) = upload::S3PendingUpload::read(file) {
                // The bucket may have given it up by itself, which is as good.
                let _ = self.wait(unfinished.abort(&self.bucket));
            }
            true
        });
    }
}

/// One runtime for all buckets of the process. It is never dropped, which a caller's runtime would
/// not let happen.
fn runtime() -> io::Result<&'static Runtime> {
    static SHARED: OnceLock<Runtime> = OnceLock::new();
    if SHARED.get().is_none() {
        let built = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        if let Err(second) = SHARED.set(built) {
            second.shutdown_background();
        }
    }
    SHARED.get().ok_or_else(|| io::Error::other("no runtime"))
}

/// The settings of all buckets from the environment.
fn builder(variables: &BTreeMap<String, String>) -> AmazonS3Builder {
    let mut builder = AmazonS3Builder::new();
    for (name, value) in variables.iter().filter(|(name, _)| name.starts_with("AWS_")) {
        // The client ignores variables that are meant for other programs.
        if let Ok(key) = name.to_ascii_lowercase().parse() {
            builder = builder.with_config(key, value);
        }
    }
    builder
}

/// The address of the server, if it is not that of AWS.
fn endpoint(builder: &AmazonS3Builder) -> Option<String> {
    let keys = [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint];
    keys.iter().find_map(|key| builder.get_config_value(key))
}

/// The client of one bucket.
fn client(
    builder: AmazonS3Builder,
    variables: &BTreeMap<String, String>,
    connector: S3Connector,
    silence: Duration,
) -> object_store::Result<AmazonS3> {
    let endpoint = endpoint(&builder);
    let asked = variables.get("AWS_ALLOW_HTTP").is_some_and(|value| value == "true");
    let options = ClientOptions::new()
        .with_timeout_disabled()
        .with_connect_timeout(Duration::from_millis(MAX_S3_CONNECT_MS))
        .with_read_timeout(silence)
        .with_allow_http(asked || endpoint.is_some_and(|endpoint| is_this_machine(&endpoint)));
    let retry = RetryConfig {
        max_retries: MAX_S3_RETRIES,
        retry_timeout: Duration::from_millis(MAX_S3_RETRY_MS),
        ..RetryConfig::default()
    };
    builder.with_http_connector(connector).with_client_options(options).with_retry(retry).build()
}

/// Unencrypted only within this machine, or when asked for: the objects are sealed, credentials and
/// the fact that they are used are not.
fn is_this_machine(endpoint: &str) -> bool {
    let host = endpoint.strip_prefix("http://").unwrap_or_default();
    let host = host.split('/').next().unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    matches!(name, "localhost" | "127.0.0.1" | "[::1]")
}

/// Where packs of this store wait: below the user's cache folder.
fn spool_folder(place: &str, variables: &BTreeMap<String, String>) -> PathBuf {
    let folder =
        |name: &str| variables.get(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    // Buckets of one name at two servers know nothing of each other's uploads.
    let name = blake3::hash(place.as_bytes()).to_hex();
    let name = name.get(..16).unwrap_or_default().to_owned();
    let user = rustix::process::geteuid().as_raw();
    let shared = || std::env::temp_dir().join(format!("sealane-{user}"));
    cache.map_or_else(shared, |cache| cache.join("sealane")).join("spool").join(name)
}

/// Refuses a spool in a folder that everybody may write to, where somebody else has made a part of
/// the way to it: that one could exchange what is sent.
fn only_ours(spool: &Path) -> io::Result<()> {
    let user = rustix::process::geteuid().as_raw();
    for folder in spool.ancestors().take(3) {
        let found = folder.symlink_metadata()?;
        if !found.is_dir() || found.uid() != user || found.mode() & 0o022 != 0 {
            let text = format!("`{}` is somebody else's: set XDG_CACHE_HOME", folder.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
    }
    Ok(())
}

/// A failure that says nothing about whether an object is there.
fn failure(key: &str, cause: object_store::Error) -> Error {
    let kind = match &cause {
        object_store::Error::PermissionDenied { .. }
        | object_store::Error::Unauthenticated { .. } => io::ErrorKind::PermissionDenied,
        cause if says(cause, &["507", "QuotaExceeded", "StorageFull"]) => {
            io::ErrorKind::StorageFull
        }
        _ => io::ErrorKind::Other,
    };
    Error::store(key, io::Error::new(kind, answer(&cause.to_string())))
}

/// A server's answer for people: of a body in XML the code and the message.
pub(super) fn answer(text: &str) -> String {
    let Some((before, body)) = text.split_once('<') else { return text.to_owned() };
    let field = |name: &str| {
        let (_, rest) = body.split_once(&format!("<{name}>"))?;
        let (field, _) = rest.split_once(&format!("</{name}>"))?;
        Some(field.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let said = [field("Code"), field("Message")].into_iter().flatten();
    let said = said.filter(|field| !field.is_empty()).collect::<Vec<_>>().join(": ");
    let said = if said.is_empty() { "no answer of an S3 server" } else { &said };
    format!("{before}{said}")
}

/// A failure to read an object that something refers to.
fn read_failure(key: &str, cause: object_store::Error) -> Error {
    match cause {
        object_store::Error::NotFound { .. } if !says(&cause, &["NoSuchBucket"]) => {
            Error::Missing(key.to_owned())
        }
        cause => failure(key, cause),
    }
}

/// Whether the server's answer has one of these words. The client keeps status and body as text.
fn says(cause: &object_store::Error, words: &[&str]) -> bool {
    // The client names the address and the time that it took before the dash: a bucket may be
    // called as a status is.
    let text = cause.to_string();
    let said = text.split_once(" - ").map_or(text.as_str(), |(_, said)| said);
    let mut said = said.split(|c: char| !c.is_ascii_alphanumeric());
    said.any(|said| words.contains(&said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_and_a_time_are_no_answers() {
        let cause = |text: &str| object_store::Error::Generic { store: "S3", source: text.into() };
        let sent = "Error performing GET http://s3/507/416 in 416.1ms";
        let denied = cause(&format!("{sent} - Server returned non-2xx status code: 403 Forbidden"));
        assert!(!says(&denied, &["416", "507"]) && says(&denied, &["403"]));
        assert!(says(&cause(&format!("{sent} - status 416")), &["416"]));
    }

    #[test]
    fn an_answer_in_xml_is_its_code_and_message() {
        let denied = "failed: 403 Forbidden: <?xml version=\"1.0\"?>\n<Error>\
                      <Code>AccessDenied</Code><Message>Access\n Denied.</Message>\
                      <RequestId>17</RequestId></Error>";
        assert_eq!(answer(denied), "failed: 403 Forbidden: AccessDenied: Access Denied.");
        let code = "failed: 500: <Error><Code>InternalError</Code><Message></Message></Error>";
        assert_eq!(answer(code), "failed: 500: InternalError");
        let page = "failed: 502: <html><body>Bad Gateway</body></html>";
        assert_eq!(answer(page), "failed: 502: no answer of an S3 server");
        assert_eq!(answer("failed: 502: <"), "failed: 502: no answer of an S3 server");
        assert_eq!(answer("connection refused"), "connection refused");
    }
}

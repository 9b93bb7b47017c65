//! Why a package could not be read or written.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::MANIFEST_FILE;
use crate::manifest::MANIFEST_VERSION;
use crate::validate::ManifestError;

/// Why a package could not be read or written.
#[derive(Debug, Error)]
pub enum PackageError {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// Neither a directory with a manifest nor a tar file that starts with one.
    #[error("{}: not a kernel package: {reason}", path.display())]
    NotAPackage {
        /// The file or directory.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// The manifest's format is of another version.
    #[error("{}: manifest version {got}, this program reads version {MANIFEST_VERSION}; compile the source again", path.display())]
    Version {
        /// The package.
        path: PathBuf,
        /// The version found.
        got: u64,
    },
    /// The manifest is not JSON of the right form.
    #[error("{}: {MANIFEST_FILE}: {source}", path.display())]
    Json {
        /// The package.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// The manifest contradicts itself.
    #[error("invalid package manifest: {0}")]
    Manifest(#[from] ManifestError),
    /// A file that the manifest lists is not there.
    #[error("file `{0}` is missing from the package")]
    MissingFile(String),
    /// A file that the manifest does not list.
    #[error("file `{0}` is in the package but not in its manifest")]
    UnlistedFile(String),
    /// A file is cut off or has grown.
    #[error(
        "file `{file}` has {got} bytes, its manifest says {want}; the package is damaged or cut off"
    )]
    Size {
        /// The file.
        file: String,
        /// The size in the manifest in bytes.
        want: u64,
        /// The size found in bytes.
        got: u64,
    },
    /// A file's content changed.
    #[error("file `{0}` does not have the hash that the manifest says; the package is damaged")]
    Hash(String),
    /// A constant's data does not fill its shape.
    #[error("buffer `{buffer}` needs {want} bytes, its file `{file}` has {got}")]
    ConstantSize {
        /// The buffer.
        buffer: String,
        /// Its file.
        file: String,
        /// The size of its shape in bytes.
        want: u64,
        /// The size of the file in bytes.
        got: u64,
    },
    /// The destination exists and is no package, so it is left alone.
    #[error("{}: exists and is not a kernel package; remove it first", .0.display())]
    Occupied(PathBuf),
}

pub(super) fn io_error(path: &Path, source: io::Error) -> PackageError {
    PackageError::Io {
        path: path.to_owned(),
        source,
    }
}

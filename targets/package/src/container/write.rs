//! Writing a package: as one tar file or as a directory, each of them atomically.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::error::io_error;
use super::read::starts_with_manifest;
use super::{IN_MEMORY, MANIFEST_FILE, Package, PackageError};

impl Package {
    /// Writes the package as one tar file, atomically, replacing an older package at `path`.
    /// The same package gives the same bytes.
    ///
    /// # Errors
    /// What the operating system refuses; a destination that is no package.
    pub fn write_file(&self, path: impl AsRef<Path>) -> Result<(), PackageError> {
        let path = path.as_ref();
        refuse_to_replace_foreign(path, false)?;
        let temp = tempfile::Builder::new()
            .prefix(".axe-package-")
            .tempfile_in(parent(path))
            .map_err(|e| io_error(path, e))?;
        let written = self.write_tar(BufWriter::new(temp), path)?;
        let finish = || -> io::Result<()> {
            let temp = written
                .into_inner()
                .map_err(io::IntoInnerError::into_error)?;
            set_mode(temp.as_file(), 0o644)?;
            temp.as_file().sync_all()?;
            temp.persist(path)?;
            Ok(())
        };
        finish().map_err(|e| io_error(path, e))
    }

    /// Writes the package as a directory, atomically, replacing an older package at `path`.
    ///
    /// # Errors
    /// What the operating system refuses; a destination that is no package.
    pub fn write_dir(&self, path: impl AsRef<Path>) -> Result<(), PackageError> {
        let path = path.as_ref();
        refuse_to_replace_foreign(path, true)?;
        let temp = tempfile::Builder::new()
            .prefix(".axe-package-")
            .tempdir_in(parent(path))
            .map_err(|e| io_error(path, e))?;
        let manifest = self.manifest_json(path)?;
        let all = std::iter::once((MANIFEST_FILE, manifest.as_slice())).chain(self.files());
        let fill = || -> io::Result<()> {
            for (name, bytes) in all {
                let file = temp.path().join(name);
                fs::create_dir_all(parent(&file))?;
                let mut file = File::create(file)?;
                file.write_all(bytes)?;
                file.sync_all()?;
            }
            set_mode(&File::open(temp.path())?, 0o755)?;
            if path.exists() {
                // Swap the two, then the temporary directory's guard removes the old one.
                renameat_with(CWD, temp.path(), CWD, path, RenameFlags::EXCHANGE)?;
            } else {
                fs::rename(temp.path(), path)?;
            }
            Ok(())
        };
        fill().map_err(|e| io_error(path, e))
    }

    /// The package as the bytes of one tar file: what [`Package::write_file`] writes.
    ///
    /// # Errors
    /// A manifest that JSON cannot hold.
    pub fn to_bytes(&self) -> Result<Vec<u8>, PackageError> {
        self.write_tar(Vec::new(), Path::new(IN_MEMORY))
    }

    /// Writes the tar file to `out`; `path` is for messages.
    fn write_tar<W: io::Write>(&self, out: W, path: &Path) -> Result<W, PackageError> {
        let mut tar = tar::Builder::new(out);
        let manifest = self.manifest_json(path)?;
        append(&mut tar, MANIFEST_FILE, &manifest).map_err(|e| io_error(path, e))?;
        for (name, bytes) in &self.files {
            append(&mut tar, name, bytes).map_err(|e| io_error(path, e))?;
        }
        tar.into_inner().map_err(|e| io_error(path, e))
    }

    fn manifest_json(&self, path: &Path) -> Result<Vec<u8>, PackageError> {
        let mut json =
            serde_json::to_vec_pretty(&self.manifest).map_err(|source| PackageError::Json {
                path: path.to_owned(),
                source,
            })?;
        json.push(b'\n');
        Ok(json)
    }
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

/// Temporary files are private; results are for everybody.
pub(crate) fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(mode))
}

fn append<W: io::Write>(tar: &mut tar::Builder<W>, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_mtime(0);
    tar.append_data(&mut header, name, bytes)
}

fn refuse_to_replace_foreign(path: &Path, directory: bool) -> Result<(), PackageError> {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    let ours = if directory {
        metadata.is_dir() && (path.join(MANIFEST_FILE).is_file() || is_empty_dir(path))
    } else {
        metadata.is_file() && (metadata.len() == 0 || starts_with_manifest(path))
    };
    if ours {
        Ok(())
    } else {
        Err(PackageError::Occupied(path.to_owned()))
    }
}

fn is_empty_dir(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

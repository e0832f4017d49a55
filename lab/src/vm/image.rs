//! A kernel to boot: an image, or the root of an unpacked package.

use std::{
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
};

use super::VmError;

/// Bytes of a bzImage up to the end of its magic number (Documentation/arch/x86/boot.rst).
const HEAD: u64 = 0x206;

/// A kernel's image. Its modules are where its package has them: beside `boot`, in `lib/modules`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The image.
    pub path: PathBuf,
}

impl Image {
    /// Finds the kernel that a path names: an image such as `boot/vmlinuz-6.12`, or a folder with `boot` and
    /// `lib/modules`, as `dpkg-deb -x` unpacks a Debian package.
    ///
    /// # Errors
    /// If there is none, or more than one.
    pub fn find(path: &Path) -> Result<Self, VmError> {
        let wrong = |problem: String| VmError::Kernel { path: path.to_owned(), problem };
        let absolute = path.canonicalize().map_err(|error| wrong(format!("no such kernel ({error})")))?;
        let image = if absolute.is_dir() { only_image(&absolute).map_err(wrong)? } else { absolute };
        // virtme-ng hands the path to a shell as it is.
        if let Some(strange) = image.to_str().map_or(Some('\u{fffd}'), strange) {
            return Err(wrong(format!(
                "a path with '{strange}' can't be given to virtme-ng: move the kernel elsewhere"
            )));
        }
        check(&image).map_err(wrong)?;
        Ok(Self { path: image })
    }
}

/// Whether a file can be an image at all: of a pipe or a device no end is read, and qemu runs any bytes as code.
fn check(image: &Path) -> Result<(), String> {
    let words = |error: std::io::Error| error.to_string();
    if !fs::metadata(image).map_err(words)?.is_file() {
        return Err("a kernel is a file".to_owned());
    }
    if cfg!(target_arch = "x86_64") {
        let mut head = Vec::new();
        File::open(image).and_then(|file| file.take(HEAD).read_to_end(&mut head)).map_err(words)?;
        if !head.starts_with(b"\x7fELF") && !head.ends_with(b"HdrS") {
            return Err("no kernel image: a bzImage has \"HdrS\" at 0x202".to_owned());
        }
    }
    Ok(())
}

/// The only image in the `boot` of an unpacked package.
fn only_image(root: &Path) -> Result<PathBuf, String> {
    let boot = root.join("boot");
    let entries = fs::read_dir(&boot).map_err(|error| {
        format!("a folder is a kernel's if it has boot/vmlinuz-*, as an unpacked package does; its boot: {error}")
    })?;
    let mut images: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with("vmlinu")))
        .map(|entry| entry.path())
        .collect();
    images.sort();
    match images.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err("its boot has no vmlinuz-*".to_owned()),
        many => {
            let names: Vec<_> = many.iter().map(|path| path.display().to_string()).collect();
            Err(format!("has several kernels: name one of {}", names.join(", ")))
        }
    }
}

/// The first character that a shell might take for more than itself.
pub(super) fn strange(text: &str) -> Option<char> {
    text.chars().find(|c| !(c.is_ascii_alphanumeric() || "_-.,:=+/@%".contains(*c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(images: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::Builder::new().prefix("kernel").tempdir().unwrap();
        fs::create_dir(dir.path().join("boot")).unwrap();
        fs::write(dir.path().join("boot/config-1"), "").unwrap();
        for name in images {
            fs::write(dir.path().join("boot").join(name), format!("{:514}HdrS", "")).unwrap();
        }
        dir
    }

    fn problem(path: &Path) -> String {
        match Image::find(path) {
            Err(VmError::Kernel { problem, .. }) => problem,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_image_of_an_unpacked_package_is_found() {
        let dir = unpacked(&["vmlinuz-6.12"]);
        let image = dir.path().join("boot/vmlinuz-6.12").canonicalize().unwrap();
        assert_eq!(Image::find(dir.path()).unwrap().path, image);
        assert_eq!(Image::find(&image).unwrap().path, image);
    }

    #[test]
    fn what_is_no_kernel_is_said() {
        assert!(problem(Path::new("/nowhere")).contains("no such kernel"));
        assert!(problem(unpacked(&[]).path()).contains("no vmlinuz-*"));
        assert!(problem(unpacked(&["vmlinuz-1", "vmlinuz-2"]).path()).contains("vmlinuz-2"));
        let empty = tempfile::tempdir().unwrap();
        assert!(problem(empty.path()).contains("boot/vmlinuz-*"));
        fs::create_dir(empty.path().join("boot")).unwrap();
        fs::write(empty.path().join("boot/vmlinuz-1"), "no kernel").unwrap();
        assert!(problem(empty.path()).contains("no kernel image"));
        assert!(problem(Path::new("/dev/zero")).contains("is a file"));
        let strange = unpacked(&["vmlinuz-$(x)"]);
        assert!(problem(strange.path()).contains("'$'"));
    }
}

//! qemu's monitor (QMP, docs/interop/qmp-spec.rst of qemu): takes the carrier from NICs that no cable is plugged into, which
//! no argument of qemu's does.

use std::{
    io::{self, BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use serde_json::{Value, json};

use super::VmError;

/// The monitor's socket, in the folder that is shared with the guest.
pub(super) const SOCKET: &str = "qmp";
/// How long qemu may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

/// Takes the carrier from some NICs, by their ids. `false` where qemu does not listen yet.
///
/// # Errors
/// Where qemu refuses, or does not answer.
pub(super) fn unplug(socket: &Path, ids: &[String]) -> Result<bool, VmError> {
    let failed = |source| VmError::File { operation: "talk to qemu by", path: socket.to_owned(), source };
    let mut stream = match UnixStream::connect(socket) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            return Ok(false);
        }
        Err(error) => return Err(failed(error)),
    };
    stream.set_read_timeout(Some(ANSWER)).map_err(failed)?;
    let mut answers = BufReader::new(stream.try_clone().map_err(failed)?);
    let mut line = String::new();
    // It greets first.
    answers.read_line(&mut line).map_err(failed)?;
    let links = ids.iter().map(|id| json!({ "execute": "set_link", "arguments": { "name": id, "up": false } }));
    for command in std::iter::once(json!({ "execute": "qmp_capabilities" })).chain(links) {
        writeln!(stream, "{command}").map_err(failed)?;
        loop {
            line.clear();
            if answers.read_line(&mut line).map_err(failed)? == 0 {
                return Err(failed(io::ErrorKind::UnexpectedEof.into()));
            }
            // Events come between answers.
            match answer(&line) {
                Some(Ok(())) => break,
                Some(Err(refused)) => return Err(failed(io::Error::other(refused))),
                None => {}
            }
        }
    }
    Ok(true)
}

/// What a line answers; `None` where it is no answer.
fn answer(line: &str) -> Option<Result<(), String>> {
    let value: Value = serde_json::from_str(line).ok()?;
    if let Some(error) = value.get("error") {
        let words = error.get("desc").and_then(Value::as_str).unwrap_or("refused");
        return Some(Err(words.to_owned()));
    }
    value.get("return").map(|_| Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_from_events() {
        assert_eq!(answer("{\"return\": {}}"), Some(Ok(())));
        let refused = "{\"error\": {\"class\": \"DeviceNotFound\", \"desc\": \"Device 'x' not found\"}}";
        assert_eq!(answer(refused), Some(Err("Device 'x' not found".to_owned())));
        assert_eq!(answer("{\"event\": \"RESUME\", \"timestamp\": {}}"), None);
        assert_eq!(answer("nonsense"), None);
    }

    #[test]
    fn a_qemu_that_does_not_listen_yet_is_no_error() {
        assert!(!unplug(Path::new("/nonexistent/qmp"), &["nic16".to_owned()]).unwrap());
    }
}

//! Where the last lines of a log begin.

use logs::{Log, LogError, Logs};

/// Bytes looked at in one go, from the end backwards.
const BLOCK: u64 = 64 << 10;

/// The offset at which the last `lines` lines of the first `size` bytes of a log begin. A last line without its line
/// feed counts as a line.
pub(crate) async fn start(logs: &dyn Logs, log: &Log, size: u64, lines: u64) -> Result<u64, LogError> {
    if lines == 0 {
        return Ok(size);
    }
    let (mut end, mut left) = (size, lines);
    while end > 0 {
        let from = end.saturating_sub(BLOCK);
        let block = exactly(logs, log, from, end).await?;
        for (n, byte) in block.iter().enumerate().rev() {
            let at = from + n as u64;
            // The line feed that ends the last line begins no other.
            if *byte == b'\n' && at + 1 != size {
                left -= 1;
                if left == 0 {
                    return Ok(at + 1);
                }
            }
        }
        end = from;
    }
    Ok(0)
}

/// The bytes [from, end), which exist; fewer only if the log was removed meanwhile.
async fn exactly(logs: &dyn Logs, log: &Log, from: u64, end: u64) -> Result<Vec<u8>, LogError> {
    let mut block = Vec::new();
    loop {
        let at = from + block.len() as u64;
        let bytes = logs
            .read(log, at, usize::try_from(end - at).unwrap_or(usize::MAX))
            .await?;
        if bytes.is_empty() {
            return Ok(block);
        }
        block.extend_from_slice(&bytes);
    }
}

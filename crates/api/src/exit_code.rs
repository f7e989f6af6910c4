//! Exit codes as Windows means them: unsigned 32-bit, written in decimal, hex, negative or as ranges.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, fmt, ops::RangeInclusive};

/// One code or range as the user wrote it; it is never rewritten, since a rewritten spec is an endless diff for GitOps.
/// Compared modulo 2^32, so `-1073741819`, `3221225477` and `"0xC0000005"` are the same code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CodePattern {
    /// `3010`, `-1`.
    Number(i64),
    /// `"0xC0000005"`, `"1-7"`, `"-5--1"`.
    Text(String),
}

impl CodePattern {
    /// The codes it stands for, or `None` where it is malformed or out of range (below -2^31, above 2^32 - 1).
    pub fn range(&self) -> Option<RangeInclusive<u32>> {
        match self {
            CodePattern::Number(n) => code(*n).map(|c| c..=c),
            CodePattern::Text(text) => {
                let text = text.trim();
                if let Some(c) = parse(text) {
                    return Some(c..=c);
                }
                // the separator is the first dash that is no sign
                let dash = text.char_indices().skip(1).find(|(_, c)| *c == '-')?.0;
                let (low, high) = (parse(text[..dash].trim())?, parse(text[dash + 1..].trim())?);
                (low <= high).then_some(low..=high)
            }
        }
    }

    /// Whether `code` is meant.
    pub fn matches(&self, code: u32) -> bool {
        self.range().is_some_and(|r| r.contains(&code))
    }
}

fn code(n: i64) -> Option<u32> {
    match n {
        -0x8000_0000..=-1 => u32::try_from(n + 0x1_0000_0000).ok(),
        _ => u32::try_from(n).ok(),
    }
}

fn parse(text: &str) -> Option<u32> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) if hex.bytes().all(|b| b.is_ascii_hexdigit()) => u32::from_str_radix(hex, 16).ok(),
        Some(_) => None,
        None if text.starts_with('+') => None,
        None => text.parse().ok().and_then(code),
    }
}

impl fmt::Display for CodePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodePattern::Number(n) => n.fmt(f),
            CodePattern::Text(t) => f.write_str(t),
        }
    }
}

impl JsonSchema for CodePattern {
    fn schema_name() -> Cow<'static, str> {
        "CodePattern".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "maxLength": 24,
            "minimum": -2_147_483_648_i64,
            "maximum": 4_294_967_295_i64,
        })
    }
}

/// A code as people read it: decimal, above 0x80000000 with hex, and with its NTSTATUS name where it is a known one.
pub fn describe(code: u32) -> String {
    match ntstatus(code) {
        Some(name) => format!("{code} (0x{code:08X} {name})"),
        None if code >= 0x8000_0000 => format!("{code} (0x{code:08X})"),
        None => code.to_string(),
    }
}

/// The name of an NTSTATUS that programs end with; source: ntstatus.h.
pub fn ntstatus(code: u32) -> Option<&'static str> {
    Some(match code {
        0x4001_0004 => "DBG_TERMINATE_PROCESS",
        0x8000_0003 => "STATUS_BREAKPOINT",
        0xC000_0005 => "STATUS_ACCESS_VIOLATION",
        0xC000_0006 => "STATUS_IN_PAGE_ERROR",
        0xC000_0017 => "STATUS_NO_MEMORY",
        0xC000_001D => "STATUS_ILLEGAL_INSTRUCTION",
        0xC000_0094 => "STATUS_INTEGER_DIVIDE_BY_ZERO",
        0xC000_0096 => "STATUS_PRIVILEGED_INSTRUCTION",
        0xC000_00FD => "STATUS_STACK_OVERFLOW",
        0xC000_0135 => "STATUS_DLL_NOT_FOUND",
        0xC000_0138 => "STATUS_ORDINAL_NOT_FOUND",
        0xC000_0139 => "STATUS_ENTRYPOINT_NOT_FOUND",
        0xC000_013A => "STATUS_CONTROL_C_EXIT",
        0xC000_0142 => "STATUS_DLL_INIT_FAILED",
        0xC000_0374 => "STATUS_HEAP_CORRUPTION",
        0xC000_0409 => "STATUS_STACK_BUFFER_OVERRUN",
        0xC000_0417 => "STATUS_INVALID_CRUNTIME_PARAMETER",
        0xC000_0420 => "STATUS_ASSERTION_FAILURE",
        0xE043_4352 => "CLR exception",
        0xE06D_7363 => "C++ exception",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(t: &str) -> CodePattern {
        CodePattern::Text(t.into())
    }

    #[test]
    fn every_spelling_of_a_code_is_the_same_code() {
        for p in [
            CodePattern::Number(3_221_225_477),
            CodePattern::Number(-1_073_741_819),
            text("0xC0000005"),
            text("0xc0000005"),
            text("3221225477"),
            text("-1073741819"),
        ] {
            assert!(p.matches(0xC000_0005), "{p}");
            assert!(!p.matches(5), "{p}");
        }
        assert!(CodePattern::Number(-1).matches(u32::MAX));
    }

    #[test]
    fn codes_are_never_cut_to_fewer_bits() {
        assert!(!CodePattern::Number(0).matches(256));
        assert!(!CodePattern::Number(0).matches(65536));
        assert!(CodePattern::Number(65536).matches(65536));
    }

    #[test]
    fn ranges_hold_both_ends() {
        assert_eq!(text("1-7").range(), Some(1..=7));
        assert_eq!(text("-2--1").range(), Some(u32::MAX - 1..=u32::MAX));
        assert_eq!(text("0x10-0x1F").range(), Some(16..=31));
    }

    #[test]
    fn nonsense_is_refused_not_guessed() {
        for bad in [
            "",
            "7-1",
            "1-",
            "-",
            "0xZ",
            "abc",
            "1.5",
            "4294967296",
            "-2147483649",
            "+1",
            "0x",
            "1-2-3",
        ] {
            assert_eq!(text(bad).range(), None, "{bad}");
        }
        assert_eq!(CodePattern::Number(4_294_967_296).range(), None);
        assert_eq!(CodePattern::Number(-2_147_483_649).range(), None);
    }

    #[test]
    fn crash_codes_carry_hex_and_name() {
        assert_eq!(
            describe(0xC000_0005),
            "3221225477 (0xC0000005 STATUS_ACCESS_VIOLATION)"
        );
        assert_eq!(describe(3010), "3010");
        assert_eq!(describe(0x8000_0001), "2147483649 (0x80000001)");
    }
}

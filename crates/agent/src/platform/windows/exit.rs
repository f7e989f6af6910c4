//! Exit codes by which Windows says that a program never began.

use std::time::Duration;

/// A program that ran longer did begin, and hands on what another ended with.
const BEGINNING: Duration = Duration::from_secs(10);

/// Why a program that printed nothing, and lived so long, did not begin; `None` where its code is its own. Source: ntstatus.h.
pub fn never_began(code: u32, lived: Duration) -> Option<&'static str> {
    let why = match code {
        0xC000_007B => "a DLL it loads was made for another kind of processor",
        0xC000_0135 => {
            "a DLL it needs is missing: install what it depends on, such as the Visual C++ runtime"
        }
        0xC000_0138 | 0xC000_0139 => "a DLL it loads is of another version than it needs",
        0xC000_0142 => {
            "a DLL it loads did not start: the account may have no access to the desktop, or the host has no room for more desktops"
        }
        _ => return None,
    };
    (lived < BEGINNING).then_some(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_just_started_has_not_begun() {
        let short = Duration::from_millis(50);
        for code in [0xC000_0135, 0xC000_0139, 0xC000_0142] {
            assert!(never_began(code, short).is_some(), "{code:#x}");
            assert!(never_began(code, Duration::from_secs(60)).is_none(), "{code:#x}");
        }
        assert!(never_began(0xC000_0005, short).is_none());
        assert!(never_began(0, short).is_none());
    }
}

//! Windows of other processes, on a desktop of their own: found, and asked to close. This program stands for the others, too.

#![cfg(windows)]
#![allow(clippy::unwrap_used)]

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    os::windows::io::AsHandle,
    path::Path,
    ptr,
};
use tokio::io::AsyncReadExt;
use win32::{
    desktop::Desktop,
    environment, pipe,
    process::Process,
    security::Descriptor,
    spawn::{Console, Spawn},
    window,
};
use windows_sys::Win32::{
    Foundation::{HWND, LPARAM, LRESULT, WPARAM},
    UI::WindowsAndMessaging::{
        CreateWindowExW, DefWindowProcW, DispatchMessageW, GetMessageW, MSG, PostQuitMessage, RegisterClassW,
        WM_DESTROY, WNDCLASSW, WS_OVERLAPPEDWINDOW,
    },
};

/// Which part this program plays, and for whom.
const PART: &str = "PROW_TEST_PART";

/// Runs one test of this program as another process, on a desktop.
fn play(test: &str, part: &str, desktop: &Desktop, out: impl AsHandle) -> Process {
    let program = std::env::current_exe().unwrap();
    let line = format!("\"{}\" --exact {test} --nocapture", program.display());
    let nul = File::open("NUL").unwrap();
    let mut variables: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    variables.push((PART.into(), part.into()));
    let block = environment::block(variables.iter().map(|(n, v)| (n.as_ref(), v.as_ref())));
    Spawn {
        program: &program,
        command_line: OsStr::new(&line),
        environment: Some(&block),
        folder: Path::new(r"C:\"),
        streams: [nul.as_handle(), out.as_handle(), out.as_handle()],
        jobs: &[],
        console: Console::Own,
        desktop: Some(desktop),
        leave_jobs: false,
    }
    .start()
    .unwrap()
}

#[tokio::test]
async fn a_window_on_a_desktop_of_its_own_is_asked_to_close() {
    let name = format!("prow-test-{}", std::process::id());
    let desktop = Desktop::create(&name, &Descriptor::private().unwrap()).unwrap();
    let (mut said, out) = pipe::output().unwrap();
    let program = play("has_a_window", "window", &desktop, &out);
    drop(out);
    let mut words = Vec::new();
    while !String::from_utf8_lossy(&words).contains("it is there") {
        assert_ne!(said.read_buf(&mut words).await.unwrap(), 0, "{words:?}");
    }
    let nul = File::options().write(true).open("NUL").unwrap();
    let asked = play("asks_to_close", &program.pid().to_string(), &desktop, nul);
    assert_eq!(asked.wait().unwrap(), 0);
    assert_eq!(program.wait().unwrap(), 0);
    said.read_to_end(&mut words).await.unwrap();
    assert!(String::from_utf8_lossy(&words).contains("it was closed"));
}

/// The part of a program with a window.
#[test]
fn has_a_window() {
    if std::env::var(PART).as_deref() != Ok("window") {
        return;
    }
    let class: Vec<u16> = "prow-test\0".encode_utf16().collect();
    // SAFETY: the class and its name outlive the window; null stands for none where it is given.
    unsafe {
        let made = WNDCLASSW {
            lpfnWndProc: Some(told),
            lpszClassName: class.as_ptr(),
            ..Default::default()
        };
        assert_ne!(RegisterClassW(&made), 0);
        let (name, style) = (class.as_ptr(), WS_OVERLAPPEDWINDOW);
        let (none, nothing) = (ptr::null_mut(), ptr::null_mut());
        let window = CreateWindowExW(
            0,
            name,
            name,
            style,
            0,
            0,
            9,
            9,
            none,
            nothing,
            ptr::null_mut(),
            ptr::null(),
        );
        assert!(!window.is_null());
        println!("it is there");
        let mut message = MSG::default();
        while GetMessageW(&mut message, ptr::null_mut(), 0, 0) > 0 {
            DispatchMessageW(&message);
        }
    }
    println!("it was closed");
}

unsafe extern "system" fn told(window: HWND, message: u32, a: WPARAM, b: LPARAM) -> LRESULT {
    // SAFETY: what the system gave is handed on to it.
    unsafe {
        if message == WM_DESTROY {
            PostQuitMessage(0);
        }
        DefWindowProcW(window, message, a, b)
    }
}

/// The part of the helper.
#[test]
fn asks_to_close() {
    if let Some(pid) = std::env::var(PART).ok().and_then(|pid| pid.parse().ok()) {
        assert!(window::close(pid).unwrap() > 0);
    }
}

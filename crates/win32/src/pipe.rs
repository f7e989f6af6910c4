//! Named pipes between processes of the same host and of accounts that trust each other.

use crate::{Error, Result, security::Descriptor};
use std::{
    ffi::c_void,
    future::Future,
    io,
    os::windows::io::{AsRawHandle, OwnedHandle},
    pin::pin,
    task::{Context, Poll, Waker},
};
use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient, NamedPipeServer, ServerOptions};
use windows_sys::Win32::{
    Storage::FileSystem::SECURITY_IDENTIFICATION, System::Pipes::GetNamedPipeServerProcessId,
};

/// Makes an instance of a pipe that only those named by the descriptor may open, and nobody over the network. The first instance is
/// refused where another process already has the name. Needs a tokio runtime.
pub fn serve(name: &str, descriptor: &Descriptor, first: bool) -> io::Result<NamedPipeServer> {
    let mut attributes = descriptor.attributes();
    let attributes: *mut c_void = (&raw mut attributes).cast();
    // SAFETY: the attributes and their descriptor live during the call.
    unsafe {
        ServerOptions::new()
            .first_pipe_instance(first)
            .reject_remote_clients(true)
            .create_with_security_attributes_raw(name, attributes)
    }
}

/// Opens a pipe. Its server learns who we are, and cannot act as we. Needs a tokio runtime.
pub fn open(name: &str) -> io::Result<NamedPipeClient> {
    ClientOptions::new()
        .security_qos_flags(SECURITY_IDENTIFICATION)
        .open(name)
}

/// A pipe of no name that others could guess or open: what is written to the handle, by whoever inherits it, is read here. Reading ends
/// when the last copy of the handle is closed. Needs a tokio runtime.
pub fn output() -> io::Result<(NamedPipeServer, OwnedHandle)> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let name = format!(r"\\.\pipe\prow-output-{:032x}", u128::from_ne_bytes(random));
    let descriptor = Descriptor::private()?;
    let mut attributes = descriptor.attributes();
    // SAFETY: the attributes and their descriptor live during the call.
    let reader = unsafe {
        ServerOptions::new()
            .access_outbound(false)
            .first_pipe_instance(true)
            .reject_remote_clients(true)
            .max_instances(1)
            .in_buffer_size(64 << 10)
            .create_with_security_attributes_raw(&name, (&raw mut attributes).cast())
    }?;
    let writer = std::fs::OpenOptions::new().write(true).open(&name)?;
    // its client is there, so this is done at once; without it nothing is read
    match pin!(reader.connect()).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(connected) => connected?,
        Poll::Pending => return Err(io::Error::other("a pipe does not see its client")),
    }
    Ok((reader, writer.into()))
}

/// The process that serves an opened pipe.
pub fn server_process(pipe: &NamedPipeClient) -> Result<u32> {
    let mut pid = 0;
    // SAFETY: the handle is open, `pid` takes the result.
    match unsafe { GetNamedPipeServerProcessId(pipe.as_raw_handle(), &mut pid) } {
        0 => Err(Error::last("GetNamedPipeServerProcessId")),
        _ => Ok(pid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn both_sides_talk_and_know_each_other() {
        let name = format!(r"\\.\pipe\prow-test-{}", std::process::id());
        let mut server = serve(&name, &Descriptor::private().unwrap(), true).unwrap();
        let mut client = open(&name).unwrap();
        server.connect().await.unwrap();
        assert_eq!(server_process(&client).unwrap(), std::process::id());
        client.write_all(b"ping").await.unwrap();
        let mut four = [0; 4];
        server.read_exact(&mut four).await.unwrap();
        assert_eq!(&four, b"ping");
        server.write_all(b"last words").await.unwrap();
        drop(server);
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"last words");
    }

    #[tokio::test]
    async fn a_pipe_that_is_not_there_is_not_found() {
        let error = open(r"\\.\pipe\prow-test-none").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}

//! Named pipes between processes of the same host and of accounts that trust each other.

use crate::{Error, Result, security::Descriptor};
use std::{ffi::c_void, io, os::windows::io::AsRawHandle};
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

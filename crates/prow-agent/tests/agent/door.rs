//! What agents go through to reach the server: a relay that can be shut, which cuts all connections and refuses new ones.

use std::{net::SocketAddr, sync::Arc};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// The relay.
pub struct Door {
    /// Where it listens.
    pub address: SocketAddr,
    open: Arc<watch::Sender<bool>>,
}

impl Door {
    /// An open door to `server`.
    pub async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let open = Arc::new(watch::Sender::new(true));
        let state = open.clone();
        tokio::spawn(async move {
            loop {
                let (mut inside, _) = listener.accept().await.unwrap();
                let mut state = state.subscribe();
                tokio::spawn(async move {
                    if !*state.borrow_and_update() {
                        return;
                    }
                    let Ok(mut outside) = TcpStream::connect(server).await else {
                        return;
                    };
                    tokio::select! {
                        _ = copy_bidirectional(&mut inside, &mut outside) => {}
                        _ = state.wait_for(|open| !open) => {}
                    }
                });
            }
        });
        Self { address, open }
    }

    /// Cuts everybody off.
    pub fn shut(&self) {
        self.open.send_replace(false);
    }

    /// Lets everybody through again.
    pub fn open(&self) {
        self.open.send_replace(true);
    }
}

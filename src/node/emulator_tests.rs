//! For tests: a server of another project that stands for a cloud's.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// A port of loopback at which nothing listens now.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The server, which ends with the test.
pub(super) struct Emulator {
    server: duct::Handle,
    /// Where it listens, on loopback.
    pub(super) port: u16,
}

impl Drop for Emulator {
    fn drop(&mut self) {
        drop(self.server.kill());
    }
}

impl Emulator {
    /// Starts what `command` makes of a free port, and waits until it listens there.
    pub(super) fn start(name: &str, command: impl FnOnce(&str) -> duct::Expression) -> Self {
        let port = free_port();
        let server = command(&port.to_string()).stdout_null().stderr_null().unchecked().start().unwrap();
        let emulator = Self { server, port };
        let since = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(since.elapsed().as_secs() < 60, "{name} does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        emulator
    }
}

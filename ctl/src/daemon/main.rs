//! `holdfastd`: the control daemon of the switch, unprivileged (SPEC 11). It serves the control
//! protocol over HTTP and sees to it that the desired profile is in force. The switch neither needs
//! it nor notices its end.
#![forbid(unsafe_code)]

mod arguments;
mod client;
mod http;
mod metrics;
mod query;
mod reconcile;
mod routes;
mod server;
mod service;
mod signals;
mod status;
mod upstream;
mod watched;

use arguments::Arguments;
use clap::Parser;
use http::HostPolicy;
use mio::net::TcpListener;
use reconcile::Reconciler;
use server::{Server, SWITCH};
use service::Service;
use signals::Signals;
use std::process::ExitCode;
use std::time::Instant;
use upstream::Upstream;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let environment = env_logger::Env::default().filter_or("HOLDFAST_LOG", "info");
    env_logger::Builder::from_env(environment).format_timestamp_micros().init();
    match serve(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("holdfastd: {error}");
            ExitCode::from(1)
        }
    }
}

fn serve(arguments: Arguments) -> Result<(), String> {
    // Before anybody can know that it runs, so that no signal ends it by surprise.
    let signals = Signals::new().map_err(|error| format!("no signal can be caught: {error}"))?;
    if nix::unistd::geteuid().is_root() {
        log::warn!("started as root, which it doesn't need: run it as a user of group holdfast");
    }
    let listener = listen(&arguments)?;
    let now = Instant::now();
    let Arguments { socket, name, host, allow_apply, profile, .. } = arguments;
    let find_socket = Box::new(move || {
        let found = holdfast_api::place::control_socket(socket.as_deref(), name.as_deref());
        found.map_err(|error| error.to_string())
    });
    let upstream = Upstream::new(find_socket, SWITCH, now);
    let service = Service::new(upstream, profile.map(Reconciler::new), allow_apply, now);
    let server = Server::new(listener, HostPolicy::new(&host), service, signals);
    server.map_err(|error| format!("the sockets can't be polled: {error}"))?.run();
    log::info!("ended");
    Ok(())
}

fn listen(arguments: &Arguments) -> Result<TcpListener, String> {
    let asked = arguments.listen;
    let listener = TcpListener::bind(asked).map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => format!(
            "{asked} is in use: another holdfastd runs, or another program; end it, or choose \
             another address by --listen"
        ),
        _ => format!("{asked} can't be listened on: {error}; choose another one by --listen"),
    })?;
    let address = listener.local_addr().map_err(|error| format!("{asked}: {error}"))?;
    log::info!("listening on http://{address}");
    if !address.ip().is_loopback() {
        let may = if arguments.allow_apply { "reads and changes" } else { "reads" };
        log::warn!("{address} is no loopback address: whoever reaches it {may} everything");
    }
    if let Some(path) = &arguments.port_file {
        let text = format!("{}\n", address.port());
        std::fs::write(path, text)
            .map_err(|error| format!("{}: can't be written: {error}", path.display()))?;
    }
    Ok(listener)
}

use super::*;

/// 64 clients that have just been answered.
fn full(desk: &Desk) -> (Instant, Vec<Client>) {
    let start = Instant::now();
    let mut clients: Vec<Client> = (0..MAX_CLIENTS).map(|_| desk.client()).collect();
    clients.iter_mut().for_each(|client| drop(ping(client)));
    (start, clients)
}

fn try_ping(client: &mut Client) -> Result<PongReply, ClientError> {
    client.call(Call::Ping(Ping::default()))
}

#[test]
fn the_65th_client_is_refused_while_all_others_are_at_work() {
    let desk = Desk::new(1, 1);
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let (start, mut clients) = full(&desk);
        let late = try_ping(&mut desk.client());
        if start.elapsed() > IDLE_LIMIT && Instant::now() < until {
            // Too slow a machine to tell: some of them were idle.
            continue;
        }
        let body = refused(late);
        assert_eq!(body.code, ErrorCode::Unavailable);
        assert_eq!(body.limit.as_deref(), Some("64"));
        clients.iter_mut().for_each(|client| drop(ping(client)));
        clients.pop();
        while let Err(error) = try_ping(&mut desk.client()) {
            assert!(Instant::now() < until, "a place that is free again isn't given: {error}");
            std::thread::sleep(Duration::from_millis(5));
        }
        return;
    }
}

#[test]
fn idle_clients_lock_nobody_out() {
    let desk = Desk::new(1, 1);
    let (_, mut clients) = full(&desk);
    std::thread::sleep(IDLE_LIMIT + Duration::from_millis(100));
    // All but the first are at work again: it makes room, and is told so.
    clients.iter_mut().skip(1).for_each(|client| drop(ping(client)));
    ping(&mut desk.client());
    let body = refused(try_ping(&mut clients[0]));
    assert_eq!(body.code, ErrorCode::Unavailable);
    assert!(body.message.contains("made room"), "{body}");
    ping(&mut clients[1]);
}

#[test]
fn a_half_open_client_gets_its_answers() {
    let desk = Desk::new(1, 1);
    let mut stream = desk.stream();
    let requests = "{\"v\":1,\"id\":1,\"call\":\"ping\"}\n{\"v\":1,\"id\":2,\"call\":\"ping\"}\n";
    stream.write_all(requests.as_bytes()).unwrap();
    stream.write_all(b"{\"v\":1,\"id\":3").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let ids: Vec<_> =
        text.lines().map(|line| serde_json::from_str::<Response>(line).unwrap().id).collect();
    assert_eq!(ids, [Some(1), Some(2)]);
}

#[test]
fn a_client_that_does_not_read_holds_up_itself_alone() {
    let desk = Desk::new(1, 2);
    let mut deaf = desk.stream();
    deaf.set_nonblocking(true).unwrap();
    let line = b"{\"v\":1,\"id\":1,\"call\":\"show_profile\"}\n".repeat(1_000);
    let until = Instant::now() + Duration::from_millis(500);
    let mut taken = 0;
    while Instant::now() < until {
        taken += deaf.write(&line).unwrap_or_default();
    }
    // Its requests are no longer read: what it has sent stays in the socket, not with us.
    assert!(taken < 16 << 20, "{taken} bytes were taken");
    for _ in 0..50 {
        ping(&mut desk.client());
    }
}

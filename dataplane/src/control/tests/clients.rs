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

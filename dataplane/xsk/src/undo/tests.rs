use super::*;
use crate::netns::Netns;
use proptest::prelude::*;

fn loopback() -> NetdevMark {
    let netns = Netns::Own.open().unwrap();
    let dev = netns.run(|| Rtnetlink::open().unwrap().netdev(Which::Name("lo")).unwrap()).unwrap();
    NetdevMark::new(&netns, &dev)
}

fn mtu(netdev: &NetdevMark) -> Original {
    let lo = Rtnetlink::open().unwrap().netdev(Which::Name("lo")).unwrap();
    Original { netdev: netdev.clone(), was: Setting::Mtu(lo.mtu) }
}

/// The log as whoever keeps it has seen it last.
fn watched(older: Vec<Original>) -> (UndoLog, Arc<Mutex<Vec<Vec<Original>>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let write = Arc::clone(&seen);
    let log = UndoLog::new(older, move |all| write.lock().unwrap().push(all.to_vec()));
    (log, seen)
}

/// Nothing is done to a netdev that only looks like the one that was changed.
#[test]
fn a_netdev_that_is_not_the_same_needs_nothing() {
    let lo = loopback();
    let same = mtu(&lo);
    assert_eq!(same.put_back(Known::ByAll).unwrap(), Outcome::Unchanged);
    let others = [
        NetdevMark { ifindex: lo.ifindex + 1_000_000, ..lo.clone() },
        NetdevMark { ifname: "lo2".to_owned(), ..lo.clone() },
        NetdevMark { mac: "02:00:00:00:00:01".to_owned(), ..lo.clone() },
        NetdevMark { netns: NetnsMark { inode: 1, ..lo.netns.clone() }, ..lo.clone() },
        NetdevMark { netns: NetnsMark { cookie: u64::MAX, ..lo.netns.clone() }, ..lo },
    ];
    // An MTU that loopback would refuse, were it asked.
    let other = |netdev| Original { netdev, was: Setting::Mtu(u32::MAX) };
    let left: Vec<_> = others.into_iter().map(other).collect();
    let result = put_back(left);
    assert_eq!((result.done.len(), result.gone.len(), result.failed.len()), (0, 5, 0));
}

#[test]
fn what_is_refused_is_named_and_comes_back_in_its_order() {
    let netdev = loopback();
    // Loopback has no channels, whoever asks.
    let channels = Setting::Channels { rx: 1, tx: 2, other: 3, combined: 4 };
    let pause = Setting::Pause { autoneg: true, rx: false, tx: true };
    let left: Vec<_> = [channels, pause].map(|was| Original { netdev: netdev.clone(), was }).into();
    let result = put_back(left.clone());
    let failed: Vec<_> = result.failed.into_iter().map(|(original, _)| original).collect();
    assert_eq!(failed, left);
    assert_eq!(
        failed[0].to_string(),
        "own/lo: channels rx 1 tx 2 other 3 combined 4",
        "by this the operator knows it"
    );
}

#[test]
fn the_log_is_written_at_each_change_and_keeps_the_older_value() {
    let netdev = loopback();
    let of = |was| Original { netdev: netdev.clone(), was };
    let (old, gro) = (of(Setting::Mtu(1500)), of(Setting::Offload("rx-gro".to_owned())));
    let (log, seen) = watched(vec![old.clone()]);
    log.add(&[of(Setting::Mtu(9000)), gro.clone()]);
    log.add(&[]);
    log.remove(std::slice::from_ref(&gro));
    log.remove(&[gro.clone(), of(Setting::Mtu(9000))]);
    let seen = seen.lock().unwrap();
    assert_eq!(*seen, [vec![old.clone()], vec![old.clone(), gro], vec![old]]);
}

fn setting() -> impl Strategy<Value = Setting> {
    prop_oneof![
        any::<String>().prop_map(Setting::Offload),
        any::<[u32; 4]>().prop_map(|[rx, tx, other, combined]| Setting::Channels {
            rx,
            tx,
            other,
            combined
        }),
        any::<[bool; 3]>().prop_map(|[autoneg, rx, tx]| Setting::Pause { autoneg, rx, tx }),
        any::<u32>().prop_map(Setting::Mtu),
        Just(Setting::AdminDown),
    ]
}

fn original() -> impl Strategy<Value = Original> {
    let netns = (any::<String>(), any::<String>(), any::<u64>(), any::<u64>());
    let netdev = (netns, any::<u32>(), any::<String>(), any::<String>());
    (netdev, setting()).prop_map(|(((path, name, inode, cookie), ifindex, ifname, mac), was)| {
        let netns = NetnsMark { path, name, inode, cookie };
        Original { netdev: NetdevMark { netns, ifindex, ifname, mac }, was }
    })
}

proptest! {
    #[test]
    fn every_original_is_read_as_it_was_written(all in prop::collection::vec(original(), 0..8)) {
        let text = serde_json::to_string(&all).unwrap();
        prop_assert_eq!(serde_json::from_str::<Vec<Original>>(&text).unwrap(), all);
    }
}

#[test]
fn channels_wait_for_a_queue_that_is_still_taken() {
    let mut tries = 0;
    let set = || {
        tries += 1;
        match tries {
            1 => Err(io::Error::from_raw_os_error(libc::EINVAL)),
            2 => Err(io::Error::from_raw_os_error(libc::EBUSY)),
            _ => Ok(()),
        }
    };
    when_free(set).unwrap();
    assert_eq!(tries, 3);
    // What is no matter of time is said at once.
    let mut tries = 0;
    let error = when_free(|| {
        tries += 1;
        Err(io::Error::from_raw_os_error(libc::EPERM))
    });
    assert_eq!((error.unwrap_err().raw_os_error(), tries), (Some(libc::EPERM), 1));
}

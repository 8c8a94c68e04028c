//! Reads netdevs on a thread that may wait: while a netdev is being removed, the kernel holds
//! whoever asks about it, and the control thread must not be held.

use crate::mailbox::PATIENCE;
use crossbeam::channel::{unbounded, Sender};
use holdfast_xsk::{inspect, Inspection, Netns};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Which netdev.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Netdev {
    /// Where it is.
    pub(crate) netns: Netns,
    /// Its name there.
    pub(crate) ifname: String,
}

/// Its settings, or why they can't be read.
type Seen = Result<Inspection, String>;

/// Looks at netdevs, one thread at a time: however often it is asked, no more than one is held.
pub(crate) struct Looker {
    look: fn(&Netdev) -> Seen,
    patience: Duration,
    under_way: Option<JoinHandle<()>>,
}

impl Looker {
    /// One that asks the kernel.
    pub(crate) fn new() -> Self {
        let look = |netdev: &Netdev| {
            inspect(&netdev.netns, &netdev.ifname).map_err(|error| error.to_string())
        };
        Self::with(look, PATIENCE)
    }

    /// One that asks `look`, and waits so long for all answers of a call.
    pub(crate) fn with(look: fn(&Netdev) -> Seen, patience: Duration) -> Self {
        Self { look, patience, under_way: None }
    }

    /// The settings of each of these, in their order; after the patience is over, an error for each
    /// that hasn't answered.
    pub(crate) fn look(&mut self, netdevs: Vec<Netdev>) -> Vec<Seen> {
        let mut seen: Vec<Option<Seen>> = netdevs.iter().map(|_| None).collect();
        let unanswered = match self.start(netdevs) {
            Ok(answers) => {
                let deadline = Instant::now() + self.patience;
                while let Ok((number, answer)) = answers.recv_deadline(deadline) {
                    if let Some(place) = seen.get_mut(number) {
                        *place = Some(answer);
                    }
                }
                let ms = self.patience.as_millis();
                format!("the kernel didn't answer within {ms}ms: is the netdev being removed?")
            }
            Err(why) => why,
        };
        seen.into_iter().map(|seen| seen.unwrap_or_else(|| Err(unanswered.clone()))).collect()
    }

    fn start(
        &mut self,
        netdevs: Vec<Netdev>,
    ) -> Result<crossbeam::channel::Receiver<(usize, Seen)>, String> {
        if self.under_way.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return Err("the kernel hasn't answered an earlier call yet".to_owned());
        }
        let (tell, answers) = unbounded();
        let look = self.look;
        let all = move |tell: Sender<(usize, Seen)>| {
            for (number, netdev) in netdevs.iter().enumerate() {
                // Whoever asked may have given up.
                let _ = tell.send((number, look(netdev)));
            }
        };
        let thread = std::thread::Builder::new().name("look".to_owned()).spawn(move || all(tell));
        self.under_way = Some(thread.map_err(|error| format!("no thread to ask with: {error}"))?);
        Ok(answers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn netdev(ifname: &str) -> Netdev {
        Netdev { netns: Netns::Own, ifname: ifname.to_owned() }
    }

    /// A kernel that holds who asks for `held`, a while.
    fn slow(netdev: &Netdev) -> Seen {
        match netdev.ifname.as_str() {
            "held" => std::thread::sleep(Duration::from_secs(3)),
            "gone" => return Err("no such netdev".to_owned()),
            _ => {}
        }
        Ok(Inspection { driver: netdev.ifname.clone(), ..Inspection::default() })
    }

    #[test]
    fn a_held_netdev_holds_neither_the_caller_nor_a_second_thread() {
        let mut looker = Looker::with(slow, Duration::from_millis(200));
        let seen = looker.look(vec![netdev("a"), netdev("gone"), netdev("b")]);
        let drivers: Vec<_> = seen.iter().map(|s| s.as_ref().ok().map(|i| &*i.driver)).collect();
        assert_eq!(drivers, [Some("a"), None, Some("b")]);
        assert_eq!(seen[1], Err("no such netdev".to_owned()));
        let began = Instant::now();
        let seen = looker.look(vec![netdev("a"), netdev("held"), netdev("b")]);
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        assert!(seen[0].is_ok(), "what had answered before is kept: {seen:?}");
        assert!(matches!(&seen[1], Err(why) if why.contains("within 200ms")), "{seen:?}");
        assert!(seen[2].is_err());
        let seen = looker.look(vec![netdev("a")]);
        assert!(matches!(&seen[0], Err(why) if why.contains("earlier call")), "{seen:?}");
        if let Some(thread) = looker.under_way.take() {
            thread.join().unwrap();
        }
        assert!(looker.look(vec![netdev("a")])[0].is_ok(), "the kernel answers again");
    }
}

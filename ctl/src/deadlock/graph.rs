//! The waits-for graph: PGs in XOFF of all switches, and what each of them waits for.

use holdfast_api::message::{WaitsHold, WaitsPg, WaitsQueue, WaitsReply};
use serde::Serialize;
use std::fmt;

/// The source address of frames that have none.
const ZERO: &str = "00:00:00:00:00:00";

/// A PG of a port of a switch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Place {
    /// The switch.
    pub(super) switch: String,
    /// The ingress port.
    pub(super) port: String,
    /// The PG.
    pub(super) pg: u8,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} port {} pg {}", self.switch, self.port, self.pg)
    }
}

/// A PG in XOFF.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    /// Cells that it holds.
    pub(super) cells: u32,
    /// When the switch suspected it, by that switch's clock.
    pub(super) suspected_at_ns: Option<u64>,
    pub(super) edges: Vec<Edge>,
}

/// Why a PG waits: frames of it in one queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Edge {
    /// The egress port.
    pub(super) port: String,
    /// The queue.
    pub(super) queue: u8,
    /// Cells of the PG in it.
    pub(super) cells: u32,
    /// How long the queue has been paused and sent nothing, ns.
    pub(super) stands_ns: u64,
    /// Whose pause it was.
    pub(super) paused_by: Option<String>,
    /// That address is one of several ports: which of them it was isn't known.
    pub(super) doubtful: bool,
    /// What has to happen first.
    #[serde(skip)]
    pub(super) to: To,
}

/// What a queue waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum To {
    /// A PG that pauses it, by its index.
    Pg(usize),
    /// Nothing that was asked.
    End(End),
}

/// Where a chain of waiting ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum End {
    /// The queue isn't paused.
    NotPaused,
    /// The pause came with source address zero, as some hosts send it, or from before the link
    /// came up.
    NoAddress,
    /// No switch that was asked has the address: a host, another switch, or one that is missing.
    Unasked {
        /// The address.
        mac: String,
    },
    /// A port that was asked has paused the queue, but has no PG in XOFF for it: its worker is
    /// late, or it has let go meanwhile.
    NoXoff {
        /// The switch.
        switch: String,
        /// Its port.
        port: String,
    },
    /// None of the PG's frames is in a queue: they are on their way.
    OnTheWay,
}

/// The graph of what these switches say.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
}

/// A port with the address that was looked for.
struct Owner<'a> {
    switch: usize,
    port: &'a str,
}

impl Graph {
    pub(super) fn new(replies: &[&WaitsReply]) -> Self {
        let labels = labels(replies);
        let all = replies.iter().enumerate();
        let index: Vec<(usize, &WaitsPg)> =
            all.flat_map(|(number, reply)| reply.pgs.iter().map(move |pg| (number, pg))).collect();
        let builder = Builder { replies, labels: &labels, index: &index };
        let nodes = index.iter().map(|(number, pg)| builder.node(*number, pg)).collect();
        Self { nodes }
    }

    /// For each PG, those that it waits for.
    pub(super) fn next(&self, among: impl Fn(&Node) -> bool) -> Vec<Vec<usize>> {
        let of = |node: &Node| {
            let wanted = node.edges.iter().filter(|_| among(node));
            let next = wanted.filter_map(|edge| match edge.to {
                To::Pg(next) if self.nodes.get(next).is_some_and(&among) => Some(next),
                _ => None,
            });
            next.collect()
        };
        self.nodes.iter().map(of).collect()
    }

    /// The edge that leads from one PG to the other.
    pub(super) fn edge(&self, from: usize, to: usize) -> Option<&Edge> {
        self.nodes.get(from)?.edges.iter().find(|edge| edge.to == To::Pg(to))
    }
}

/// The names of switches, with the process where two have the same.
fn labels(replies: &[&WaitsReply]) -> Vec<String> {
    let label = |reply: &&WaitsReply| {
        let namesakes = replies.iter().filter(|other| other.switch == reply.switch).count();
        match namesakes {
            1 => reply.switch.clone(),
            _ => format!("{} (pid {})", reply.switch, reply.pid),
        }
    };
    replies.iter().map(label).collect()
}

struct Builder<'a> {
    replies: &'a [&'a WaitsReply],
    labels: &'a [String],
    /// All PGs with the number of their switch, in the order of the nodes.
    index: &'a [(usize, &'a WaitsPg)],
}

impl Builder<'_> {
    fn label(&self, switch: usize) -> String {
        self.labels.get(switch).cloned().unwrap_or_default()
    }

    fn node(&self, switch: usize, pg: &WaitsPg) -> Node {
        let place = Place { switch: self.label(switch), port: pg.port.clone(), pg: pg.pg };
        let holds = pg.waits_for.iter();
        let edges: Vec<Edge> = holds.flat_map(|hold| self.edges(switch, hold)).collect();
        Node { place, cells: pg.cells, suspected_at_ns: pg.suspected_at_ns, edges }
    }

    /// One edge for each PG that may pause the queue, or one to the end.
    fn edges(&self, switch: usize, hold: &WaitsHold) -> Vec<Edge> {
        let queues = self.replies.get(switch).map_or(&[][..], |reply| &reply.queues);
        let queue = queues.iter().find(|q| (&q.port, q.queue) == (&hold.port, hold.queue));
        let (targets, doubtful) =
            queue.map_or((vec![To::End(End::NotPaused)], false), |queue| self.targets(queue));
        let edge = |to| Edge {
            port: hold.port.clone(),
            queue: hold.queue,
            cells: hold.cells,
            stands_ns: queue.map_or(0, |queue| queue.stands_ns),
            paused_by: queue.and_then(|queue| queue.paused_by.clone()),
            doubtful,
            to,
        };
        targets.into_iter().map(edge).collect()
    }

    /// What a queue waits for, and whether that is in doubt.
    fn targets(&self, queue: &WaitsQueue) -> (Vec<To>, bool) {
        let end = |end| (vec![To::End(end)], false);
        if !queue.paused {
            return end(End::NotPaused);
        }
        let Some(mac) = queue.paused_by.as_deref().filter(|mac| *mac != ZERO) else {
            return end(End::NoAddress);
        };
        let owners = self.owners(mac);
        let pausing: Vec<(usize, usize)> = (owners.iter().enumerate())
            .flat_map(|(number, owner)| {
                self.pausing(owner, &queue.priorities).map(move |node| (number, node))
            })
            .collect();
        let Some((first, _)) = pausing.first() else {
            return end(owners.first().map_or_else(
                || End::Unasked { mac: mac.to_owned() },
                |owner| End::NoXoff {
                    switch: self.label(owner.switch),
                    port: owner.port.to_owned(),
                },
            ));
        };
        let doubtful = pausing.iter().any(|(owner, _)| owner != first);
        (pausing.iter().map(|(_, node)| To::Pg(*node)).collect(), doubtful)
    }

    /// The ports that have an address; more than one where it isn't unique.
    fn owners(&self, mac: &str) -> Vec<Owner<'_>> {
        let mut owners = Vec::new();
        for (switch, reply) in self.replies.iter().enumerate() {
            let own = reply.ports.iter().filter(|port| port.mac.eq_ignore_ascii_case(mac));
            owners.extend(own.map(|port| Owner { switch, port: &port.port }));
        }
        owners
    }

    /// The PGs of a port that pause one of these priorities.
    fn pausing<'a>(
        &'a self,
        owner: &'a Owner<'_>,
        priorities: &'a [u8],
    ) -> impl Iterator<Item = usize> + 'a {
        let nodes = self.index.iter().enumerate();
        let theirs = nodes.filter(|(_, (switch, pg))| {
            *switch == owner.switch
                && pg.port == owner.port
                && pg.priorities.iter().any(|priority| priorities.contains(priority))
        });
        theirs.map(|(node, _)| node)
    }
}

//! What follows from the graph: deadlocks, cycles that move, chains and their ends.

use super::ask::Unasked;
use super::cycles::cycles;
use super::graph::{Edge, End, Graph, Node, Place, To};
use holdfast_api::message::WaitsReply;
use serde::Serialize;

/// The answer of `holdfast deadlock`.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    /// The switches that answered, by name.
    pub(super) switches: Vec<String>,
    /// Those that didn't.
    pub(super) unasked: Vec<Unasked>,
    /// Cycles in which nothing can move.
    pub(super) deadlocks: Vec<Cycle>,
    /// Cycles of pauses in which something still does.
    pub(super) moving_cycles: Vec<Cycle>,
    /// Who waits for whom without a cycle.
    pub(super) chains: Vec<Chain>,
}

/// A PG and how it waits for the next one.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Link {
    #[serde(flatten)]
    pub(super) place: Place,
    /// Cells that it holds in all.
    pub(super) pg_cells: u32,
    /// Whether its switch suspects it: nothing of it moves.
    pub(super) suspected: bool,
    /// The queue by which it waits for the next PG, or for the end; `None` if none holds it.
    pub(super) waits_for: Option<Edge>,
}

/// A cycle: the last PG waits for the first one.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Cycle {
    /// In words.
    pub(super) text: String,
    /// Its PGs, each waiting for the next one.
    pub(super) pgs: Vec<Link>,
}

/// PGs of which each waits for the next one.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Chain {
    /// From the PG that nobody waits for, or that has a chain of its own besides a cycle.
    pub(super) pgs: Vec<Link>,
    /// What the last one waits for.
    pub(super) end: ChainEnd,
}

/// Where a chain ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ChainEnd {
    /// At something that isn't a PG in XOFF.
    At(End),
    /// At a PG that is in a deadlock.
    Deadlock(Place),
    /// At a PG that is in a cycle that moves.
    MovingCycle(Place),
    /// At a PG whose own chain is told elsewhere.
    Told(Place),
}

impl Report {
    /// Judges what the switches said. A cycle is a deadlock if its PGs are suspected in `first`,
    /// and in `again` still by the same suspicion: then none of them moved in between, and there
    /// was an instant at which all of them stood. `again` is as `first` with one entry each, `None`
    /// for one that didn't answer again.
    pub(super) fn new(
        first: &[&WaitsReply],
        again: &[Option<WaitsReply>],
        unasked: Vec<Unasked>,
    ) -> Self {
        let graph = Graph::new(first);
        let still = still_suspected(first, again);
        let stuck: Vec<bool> =
            graph.nodes.iter().zip(still).map(|(node, still)| stands(node) && still).collect();
        let is_stuck = |index: usize| stuck.get(index).copied().unwrap_or_default();
        let mut among = graph.next(|_| true);
        for (from, next) in among.iter_mut().enumerate() {
            next.retain(|to| is_stuck(from) && is_stuck(*to));
        }
        let deadlocks = cycles(&among);
        let mut moving = cycles(&graph.next(|_| true));
        moving.retain(|cycle| !is_told(cycle, &deadlocks));
        let chains = Chains::of(&graph, &deadlocks, &moving);
        let told = |cycles: Vec<Vec<usize>>| {
            cycles.iter().map(|cycle| Cycle::new(&graph, cycle)).collect()
        };
        Self {
            switches: first.iter().map(|reply| reply.switch.clone()).collect(),
            unasked,
            deadlocks: told(deadlocks),
            moving_cycles: told(moving),
            chains,
        }
    }

    /// Whether a second look is worth it: some cycle may be a deadlock.
    pub(super) fn may_be_deadlock(first: &[&WaitsReply]) -> bool {
        !cycles(&Graph::new(first).next(stands)).is_empty()
    }
}

const fn stands(node: &Node) -> bool {
    node.suspected_at_ns.is_some()
}

/// Of each PG in the order of the graph: whether the suspicion of `first` holds in `again`.
fn still_suspected(first: &[&WaitsReply], again: &[Option<WaitsReply>]) -> Vec<bool> {
    let mut still = Vec::new();
    for (number, reply) in first.iter().enumerate() {
        let later = again.get(number).and_then(Option::as_ref);
        for pg in &reply.pgs {
            let same = later.into_iter().flat_map(|reply| &reply.pgs).find(|other| {
                (&other.port, other.pg) == (&pg.port, pg.pg)
                    && other.suspected_at_ns == pg.suspected_at_ns
            });
            still.push(same.is_some());
        }
    }
    still
}

/// Whether the PGs of a cycle are all in deadlocks that are told already.
fn is_told(cycle: &[usize], deadlocks: &[Vec<usize>]) -> bool {
    cycle.iter().all(|node| deadlocks.iter().any(|deadlock| deadlock.contains(node)))
}

impl Link {
    fn new(graph: &Graph, node: usize, edge: Option<&Edge>) -> Option<Self> {
        let node = graph.nodes.get(node)?;
        Some(Self {
            place: node.place.clone(),
            pg_cells: node.cells,
            suspected: stands(node),
            waits_for: edge.cloned(),
        })
    }
}

impl Cycle {
    fn new(graph: &Graph, cycle: &[usize]) -> Self {
        let next = cycle.iter().cycle().skip(1);
        let pgs: Vec<Link> = (cycle.iter().zip(next))
            .filter_map(|(from, to)| Link::new(graph, *from, graph.edge(*from, *to)))
            .collect();
        let places = pgs.iter().chain(pgs.first()).map(|link| link.place.to_string());
        Self { text: places.collect::<Vec<_>>().join(" -> "), pgs }
    }

    /// Whether an address in it is that of several ports.
    pub(super) fn is_doubtful(&self) -> bool {
        self.pgs.iter().any(|link| link.waits_for.as_ref().is_some_and(|edge| edge.doubtful))
    }
}

/// The chains of a graph, each edge that is no part of a cycle once.
struct Chains<'a> {
    graph: &'a Graph,
    deadlocks: &'a [Vec<usize>],
    moving: &'a [Vec<usize>],
    told: Vec<bool>,
    chains: Vec<Chain>,
}

impl<'a> Chains<'a> {
    fn of(graph: &'a Graph, deadlocks: &'a [Vec<usize>], moving: &'a [Vec<usize>]) -> Vec<Chain> {
        let told = vec![false; graph.nodes.len()];
        let mut chains = Self { graph, deadlocks, moving, told, chains: Vec::new() };
        let mut waited_for = vec![false; graph.nodes.len()];
        for next in graph.next(|_| true).into_iter().flatten() {
            if let Some(entry) = waited_for.get_mut(next) {
                *entry = true;
            }
        }
        // From those that nobody waits for; from cycles, what leads out of them; then the rest.
        for node in (0..graph.nodes.len()).filter(|node| waited_for.get(*node) == Some(&false)) {
            chains.follow(&[], node);
        }
        for node in 0..graph.nodes.len() {
            chains.follow(&[], node);
        }
        chains.chains
    }

    fn cycle_of(&self, node: usize) -> Option<(&'a [usize], bool)> {
        let of = |cycles: &'a [Vec<usize>]| cycles.iter().find(|cycle| cycle.contains(&node));
        let deadlock = of(self.deadlocks).map(|cycle| (cycle.as_slice(), true));
        deadlock.or_else(|| of(self.moving).map(|cycle| (cycle.as_slice(), false)))
    }

    /// Tells what a node waits for, where `before` are those that wait for it in this chain.
    fn follow(&mut self, before: &[Link], node: usize) {
        let Some(known) = self.graph.nodes.get(node) else { return };
        if self.told.get(node) != Some(&false) {
            return;
        }
        self.told[node] = true;
        let own = self.cycle_of(node);
        if known.edges.is_empty() {
            self.end(before, node, None, ChainEnd::At(End::OnTheWay));
        }
        for edge in &known.edges {
            match &edge.to {
                To::End(end) => self.end(before, node, Some(edge), ChainEnd::At(end.clone())),
                To::Pg(next) if own.is_some_and(|(cycle, _)| cycle.contains(next)) => {}
                To::Pg(next) => self.go_on(before, node, edge, *next),
            }
        }
    }

    fn go_on(&mut self, before: &[Link], node: usize, edge: &Edge, next: usize) {
        let Some(place) = self.graph.nodes.get(next).map(|node| node.place.clone()) else { return };
        let end = match self.cycle_of(next) {
            Some((_, true)) => ChainEnd::Deadlock(place),
            Some((_, false)) => ChainEnd::MovingCycle(place),
            None if self.told.get(next) == Some(&true) => ChainEnd::Told(place),
            None => {
                let link = Link::new(self.graph, node, Some(edge));
                let before: Vec<Link> = before.iter().cloned().chain(link).collect();
                return self.follow(&before, next);
            }
        };
        self.end(before, node, Some(edge), end);
    }

    fn end(&mut self, before: &[Link], node: usize, edge: Option<&Edge>, end: ChainEnd) {
        let link = Link::new(self.graph, node, edge);
        let pgs = before.iter().cloned().chain(link).collect();
        self.chains.push(Chain { pgs, end });
    }
}

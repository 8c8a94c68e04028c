//! Cycles of a directed graph, given as the successors of each node.

use std::collections::VecDeque;

/// Cycles that together go through every node that is on one; each is the shortest through some
/// node. It begins with its smallest node, and none is named twice. (All cycles there are may be
/// more than anybody can read: their number grows exponentially.)
pub(super) fn cycles(next: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut found: Vec<Vec<usize>> = Vec::new();
    for start in 0..next.len() {
        if found.iter().any(|cycle| cycle.contains(&start)) {
            continue;
        }
        if let Some(mut cycle) = shortest_back(next, start) {
            let smallest = (0..cycle.len()).min_by_key(|at| cycle.get(*at)).unwrap_or_default();
            cycle.rotate_left(smallest);
            found.push(cycle);
        }
    }
    found
}

/// The shortest way from a node back to itself, without its repetition at the end.
fn shortest_back(next: &[Vec<usize>], start: usize) -> Option<Vec<usize>> {
    let successors = |node: usize| next.get(node).into_iter().flatten().copied();
    let mut came_from: Vec<Option<usize>> = vec![None; next.len()];
    let mut waiting = VecDeque::from([start]);
    while let Some(node) = waiting.pop_front() {
        for successor in successors(node) {
            if successor == start {
                let mut way = vec![node];
                while let Some(before) =
                    way.last().filter(|last| **last != start).and_then(|last| came_from[*last])
                {
                    way.push(before);
                }
                way.reverse();
                return Some(way);
            }
            if let Some(entry @ None) = came_from.get_mut(successor) {
                *entry = Some(node);
                waiting.push_back(successor);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(edges: &[(usize, usize)]) -> Vec<Vec<usize>> {
        let count = edges.iter().map(|(from, to)| from.max(to) + 1).max().unwrap_or_default();
        let mut next = vec![Vec::new(); count];
        edges.iter().for_each(|(from, to)| next[*from].push(*to));
        cycles(&next)
    }

    #[test]
    fn each_node_on_a_cycle_is_in_one_that_is_named() {
        assert_eq!(of(&[]), Vec::<Vec<usize>>::new());
        assert_eq!(of(&[(0, 1), (1, 2)]), Vec::<Vec<usize>>::new());
        assert_eq!(of(&[(0, 0)]), [[0]]);
        assert_eq!(of(&[(0, 1), (1, 0)]), [[0, 1]]);
        assert_eq!(of(&[(2, 1), (1, 0), (0, 2)]), [[0, 2, 1]]);
        // A way into it and one out of it don't belong to it.
        assert_eq!(of(&[(0, 1), (1, 2), (2, 1), (2, 3)]), [[1, 2]]);
        assert_eq!(of(&[(0, 1), (1, 0), (2, 3), (3, 2)]), [[0, 1], [2, 3]]);
        // Two that share a node; and one within another: the shorter one first.
        assert_eq!(of(&[(0, 1), (1, 0), (1, 2), (2, 1)]), [[0, 1], [1, 2]]);
        assert_eq!(of(&[(0, 1), (1, 2), (2, 0), (0, 2)]), [vec![0, 2], vec![0, 1, 2]]);
    }
}

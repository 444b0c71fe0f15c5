//! The queue's order, without any bus.

use std::vec::Vec;

use crate::bus::node::{Entry, Node, Task};
use crate::bus::queue::{OVERTAKEN_MAX, Queue};

/// Nodes with a context, a priority and, as their message's length, a number.
fn nodes(of: &[(usize, u8)]) -> Vec<Node> {
    let numbered = of.iter().enumerate();
    let node = |(number, &(context, priority))| {
        let message = core::ptr::slice_from_raw_parts_mut(core::ptr::null_mut(), number);
        let turn = Task::turn(context);
        Node::new(Task { priority, message, ..turn })
    };
    numbered.map(node).collect()
}

fn number(mut entry: Entry) -> usize {
    entry.with_task(|task| task.message.len())
}

fn order(of: &[(usize, u8)]) -> Vec<usize> {
    let nodes = nodes(of);
    let mut queue = Queue::new();
    for node in &nodes {
        queue.add_for_test(node);
    }
    let mut order = Vec::new();
    while let Some(entry) = queue.take_next() {
        order.push(number(entry));
    }
    assert!(queue.is_empty());
    order
}

#[test]
fn equals_are_first_in_first_out() {
    assert_eq!(order(&[(1, 0), (2, 0), (1, 0)]), [0, 1, 2]);
    assert_eq!(order(&[(1, 3), (2, 3), (3, 3)]), [0, 1, 2]);
    assert_eq!(order(&[]), []);
}

#[test]
fn the_urgent_goes_first_but_behind_its_own_context() {
    assert_eq!(order(&[(1, 0), (2, 0), (3, 1), (4, 2)]), [3, 2, 0, 1]);
    assert_eq!(order(&[(1, 0), (2, 0), (2, 1), (1, 0)]), [1, 2, 0, 3]);
}

#[test]
fn nobody_is_overtaken_for_ever() {
    let mut all = std::vec![(1, 0), (1, 0)];
    all.extend((0..100).map(|n| (2 + n, 1)));
    let order = order(&all);
    let place = |number| order.iter().position(|&at| at == number).expect("it comes");
    assert_eq!(place(0), usize::from(OVERTAKEN_MAX));
    assert_eq!(place(1), usize::from(OVERTAKEN_MAX) + 1, "the second was overtaken as often");
}

#[test]
fn what_is_pushed_youngest_first_comes_out_oldest_first_and_any_can_be_taken_out() {
    let nodes = nodes(&[(1, 0), (2, 0), (3, 0)]);
    let mut queue = Queue::new();
    queue.add_pushed_for_test(&nodes);
    let taken = queue.take_if(|_, task| task.context == 2).expect("it is there");
    assert_eq!(number(taken), 1);
    assert!(queue.take_if(|_, task| task.context == 2).is_none());
    let last = queue.take_if(|_, task| task.context == 3).expect("it is there");
    assert_eq!(number(last), 2);
    queue.add_for_test(&nodes[1]);
    assert_eq!(queue.take_next().map(number), Some(0));
    assert_eq!(queue.take_next().map(number), Some(1));
    assert!(queue.take_next().is_none());
}

//! The runner is replaced under load, and nobody who uses the pool notices.

use crate::node::{Node, http, python_or_skip};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Operations of a load at least.
const OPERATIONS: usize = 1_000;
/// A load that has not come so far by then has hung.
const PATIENCE: Duration = Duration::from_secs(180);

/// Puts through one engine and gets through the other, one after the other, until it is told to end.
struct Load {
    done: Arc<AtomicUsize>,
    end: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Vec<String>>,
}

impl Load {
    fn start(node: &Node, name: &'static str) -> Self {
        let (done, end) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let engines = [node.port(10), node.port(11)];
        let (counter, over) = (Arc::clone(&done), Arc::clone(&end));
        let thread = std::thread::spawn(move || {
            let mut failures = Vec::new();
            for number in 0.. {
                if over.load(Ordering::SeqCst) && counter.load(Ordering::SeqCst) >= OPERATIONS {
                    break;
                }
                let value = vec![number as u8; 4096 + number % 1000];
                let put =
                    http(engines[number % 2], "PUT", &format!("/put?key={name}-{number}"), &value).status;
                let got = http(engines[(number + 1) % 2], "GET", &format!("/get?key={name}-{number}"), b"");
                if put != 200 {
                    failures.push(format!("put {number}: {put}"));
                }
                if got.status != 200 || got.body != value {
                    failures.push(format!("get {number}: {}, {} bytes", got.status, got.body.len()));
                }
                counter.fetch_add(2, Ordering::SeqCst);
            }
            failures
        });
        Self { done, end, thread }
    }

    /// Waits until so many operations more have been done.
    fn more(&self, operations: usize) {
        let (from, begun) = (self.done.load(Ordering::SeqCst), Instant::now());
        while self.done.load(Ordering::SeqCst) < from + operations {
            assert!(begun.elapsed() < PATIENCE, "the load stands still");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends it, once it has done enough; what failed.
    fn failures(self) -> Vec<String> {
        self.end.store(true, Ordering::SeqCst);
        self.thread.join().unwrap()
    }
}

fn pids(node: &Node) -> Vec<(String, Value)> {
    let units = node.units().into_iter();
    units.map(|unit| (unit["unit"].as_str().unwrap().to_owned(), unit["pid"].clone())).collect()
}

#[test]
fn the_runner_is_killed_and_replaced_under_load() {
    let Some(_) = python_or_skip("the runner is replaced under load") else { return };
    let mut node = Node::new(295).run();
    let before = pids(&node);
    let store = node.pid("mooncake-store");

    let undisturbed = Load::start(&node, "undisturbed");
    undisturbed.more(OPERATIONS);
    let expected = undisturbed.failures();

    let load = Load::start(&node, "disturbed");
    load.more(100);
    node.kill_9();
    load.more(200);
    node.start_again();
    node.eventually("the units are taken over", |node| pids(node) == before);
    load.more(200);
    // A rebuilt binary: another file, with other bytes.
    let rebuilt = node.path("tenon-rebuilt");
    let mut bytes = std::fs::read(Node::binary()).unwrap();
    bytes.extend(b"rebuilt");
    std::fs::copy(Node::binary(), &rebuilt).unwrap();
    std::fs::write(&rebuilt, bytes).unwrap();
    let answer = node.ask(["reexec", "--binary", rebuilt.to_str().unwrap()]);
    assert_eq!(answer.code, 0, "{}", answer.all());
    let exe = format!("/proc/{}/exe", node.runner_pid());
    node.eventually("the rebuilt binary runs", |_| std::fs::read_link(&exe).is_ok_and(|exe| exe == rebuilt));
    load.more(300);
    let failures = load.failures();

    assert_eq!(failures, expected, "as many operations fail as without it");
    assert!(expected.is_empty(), "{expected:?}");
    assert_eq!((node.pid("mooncake-store"), pids(&node)), (store, before));
    assert_eq!(node.unit("mooncake-store")["starts"], 1);
}

//! What is written is read, by this version and by every later one.

use super::*;

fn memory(state: State, generation: u64) -> Memory {
    Memory {
        desired_up: true,
        state,
        process: None,
        generation: Generation(generation),
        starts: 7,
        restarts: 3,
        recent: vec![Time(Duration::from_millis(1)), Time(Duration::from_secs(8))],
        since: Some(Time(Duration::from_secs(1))),
        started_at: Some(Time(Duration::from_millis(900))),
        internal: false,
        held: true,
        origin: Origin::Automatic,
        settled: true,
        ended: false,
        ready_at: Time(Duration::from_millis(1500)),
        until: Time(Duration::from_secs(9)),
        rules_decide: true,
        last_exit: Some(ExitStatus::Signal { signal: 9, core: false, oom: true }),
        last_exit_by: By::Ladder,
        stop_signal: Some(15),
        asked_signal: Some(64),
        cause: "killed by SIGKILL (out of memory)".to_owned(),
    }
}

#[test]
fn what_is_written_is_there_for_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slots");
    let (slots, before) = Slots::open(&path).unwrap();
    assert!(before.is_none());
    slots.begin("mark", Duration::from_secs(5));
    slots.hand_over(true);
    slots.started(3, Generation(12), 0xab_cdef_0123);
    slots.remember(3, "engine@0", &memory(State::Backoff, 12), true);
    drop(slots);
    let (slots, before) = Slots::open(&path).unwrap();
    let before = before.unwrap();
    assert_eq!((before.mark.as_str(), before.clock), ("mark", Duration::from_secs(5)));
    assert_eq!((before.handed_over, before.leaving), (u64::from(std::process::id()), 0));
    assert_eq!(before.units.len(), 1);
    let left = &before.units[0];
    assert_eq!((left.place, left.name.as_str()), (3, "engine@0"));
    assert!(left.holds_data);
    assert_eq!(left.memory, memory(State::Backoff, 12));
    assert_eq!(left.started, Some(0xab_cdef_0123));
    // Of a later start nothing is known until it is written: a version that does not know it leaves the word.
    slots.remember(3, "engine@0", &memory(State::Ready, 13), true);
    assert_eq!(Slots::open(&path).unwrap().1.unwrap().units[0].started, None);
    slots.blame(3, "index out of bounds");
    slots.blame(4, "nobody's");
    let left = Slots::open(&path).unwrap().1.unwrap().units;
    assert_eq!(left.len(), 1);
    assert!(left[0].memory.internal && left[0].memory.cause == "index out of bounds");
    slots.forget_all();
    assert!(Slots::open(&path).unwrap().1.is_none());
}

#[test]
fn a_process_counts_for_the_start_it_was_born_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slots");
    let (slots, _) = Slots::open(&path).unwrap();
    let slots = Rc::new(slots);
    slots.begin("mark", Duration::ZERO);
    let birth = |generation, phase, parent| Birth {
        slots: Rc::clone(&slots),
        place: 0,
        generation: Generation(generation),
        phase,
        parent,
        dies_with_parent: false,
    };
    let parent = nix::unistd::getppid().as_raw();
    slots.remember(0, "web", &memory(State::Starting, 4), false);
    assert!(birth(4, Phase::Main, parent).record());
    let left = Slots::open(&path).unwrap().1.unwrap().units.remove(0);
    let own = std::process::id() as i32;
    assert_eq!(left.memory.process, Some((Phase::Main, own)));
    let stat = std::fs::read(format!("/proc/{own}/stat")).unwrap();
    assert_eq!(Some(left.start_time), start_in(&stat));
    assert_eq!(still_there(own, left.start_time), Some(false));
    assert_eq!(still_there(own, left.start_time + 1), None);
    // A start later, it is nobody's process; and a child whose runner has gone does not go on.
    slots.remember(0, "web", &memory(State::Preparing, 5), false);
    assert_eq!(Slots::open(&path).unwrap().1.unwrap().units[0].memory.process, None);
    assert!(!birth(5, Phase::Step(2), parent + 1).record());
    let left = Slots::open(&path).unwrap().1.unwrap().units.remove(0);
    assert_eq!(left.memory.process, Some((Phase::Step(2), own)));
}

#[test]
fn another_boot_or_layout_is_nothing_to_go_on_from() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slots");
    for place in [H_MAGIC, H_BOOT, H_NAMESPACE] {
        let (slots, _) = Slots::open(&path).unwrap();
        slots.begin("mark", Duration::ZERO);
        assert!(Slots::open(&path).unwrap().1.is_some());
        slots.map.set(place, 1);
        assert!(Slots::open(&path).unwrap().1.is_none());
    }
    std::fs::write(&path, "short").unwrap();
    assert!(Slots::open(&path).unwrap().1.is_none());
}

/// Version 1 of the layout, written out: places and numbers, none of the names above. What a released version has
/// written must be read by every later one; whoever changes this test breaks that.
#[test]
fn a_file_of_version_1_can_be_read_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slots");
    let mut file = vec![0u8; 512 * 1025];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    let (boot, namespace) = here();
    let header = [0x5445_4e4f_4e00_0001, boot[0], boot[1], namespace, 5_000_000_000, 4];
    for (at, word) in header.iter().enumerate() {
        put(8 * at, &word.to_ne_bytes());
    }
    put(48, b"mark");
    // The process (phase of the main one: all bits set; pid 42), born for start 12, at tick 777; start 12 of 7,
    // 3 restarts; backoff (7), wanted, settled; ready at 1.5 s, until 9 s; killed by 9 for memory.
    let slot = [
        (0xffff_ffff << 32) + 42,
        12,
        777,
        12,
        7,
        3,
        7 + 0x100 + 0x1_0000,
        1_500_000_000,
        9_000_000_000,
        (2 << 32) + (1 << 41) + 9,
        8,
    ];
    for (at, word) in slot.iter().enumerate() {
        put(512 * 4 + 8 * at, &u64::to_ne_bytes(*word));
    }
    put(512 * 4 + 88, b"engine@0");
    put(512 * 4 + 344, &5u64.to_ne_bytes());
    put(512 * 4 + 352, b"cause");
    std::fs::write(&path, &file).unwrap();
    let words = State::ALL.map(State::word).join(" ");
    assert_eq!(
        words,
        "inactive waiting preparing starting ready unhealthy stopping backoff finished failed skipped"
    );
    let before = Slots::open(&path).unwrap().1.expect("it can be read");
    assert_eq!((before.handed_over, before.leaving), (0, 0));
    assert_eq!((before.mark.as_str(), before.clock), ("mark", Duration::from_secs(5)));
    let left = &before.units[0];
    assert_eq!((left.place, left.name.as_str(), left.start_time), (3, "engine@0", 777));
    assert!(!left.holds_data && left.started.is_none());
    let expected = Memory {
        process: Some((Phase::Main, 42)),
        recent: Vec::new(),
        since: None,
        started_at: None,
        held: false,
        rules_decide: false,
        origin: Origin::Planned,
        last_exit_by: By::Others,
        stop_signal: None,
        asked_signal: None,
        cause: "cause".to_owned(),
        ..memory(State::Backoff, 12)
    };
    assert_eq!(left.memory, expected);
}

#[test]
fn three_faults_a_minute() {
    let folder = tempfile::tempdir().unwrap();
    let (slots, _) = Slots::open(&folder.path().join("slots")).unwrap();
    slots.begin("mark", Duration::ZERO);
    let check = |second: u64, expected: Option<u64>| {
        let waits = slots.count_fault(Duration::from_secs(second));
        assert_eq!(waits.map(|wait| wait.as_secs()), expected, "at {second}");
    };
    check(100, None);
    check(110, None);
    check(120, None);
    check(130, Some(30));
    check(159, Some(1));
    check(160, None);
    check(165, Some(5));
    check(170, None);
    // Those of a boot before count for nothing.
    check(5, None);
}

#[test]
fn stat_lines() {
    let line = b"12 (a) b) S 1 12 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2 3";
    assert_eq!(start_in(line), Some(98765));
    assert_eq!(start_in(b"12 (a"), None);
}

#[test]
fn that_an_earlier_boot_was_leaving_says_nothing_of_this_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slots");
    let (slots, _) = Slots::open(&path).unwrap();
    slots.begin("mark", Duration::from_secs(5));
    slots.leaving();
    // The process of the same number in the next container.
    slots.begin("mark", Duration::from_secs(9));
    let before = Slots::open(&path).unwrap().1.unwrap();
    assert_eq!((before.clock, before.leaving), (Duration::from_secs(9), 0));
}

#[test]
fn what_the_governor_has_counted_is_there_for_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slots");
    let (slots, _) = Slots::open(&path).unwrap();
    slots.begin("mark", Duration::from_secs(5));
    let times: Vec<Time> = (1..=70).map(|second| Time(Duration::from_secs(second))).collect();
    slots.remember_restarts(&times[..3]);
    let left = || Slots::open(&path).unwrap().1.unwrap().restarts;
    assert_eq!(left(), times[..3]);
    // Of too many, the latest.
    slots.remember_restarts(&times);
    assert_eq!(left(), times[10..]);
    slots.begin("mark", Duration::from_secs(9));
    assert_eq!(left(), []);
}

#[test]
fn a_process_is_recognised_though_the_kernel_cut_its_name_in_the_middle_of_a_letter() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("fourteen-bytesé");
    std::os::unix::fs::symlink("/bin/sleep", &program).unwrap();
    let mut child = std::process::Command::new(&program).arg("60").spawn().unwrap();
    let pid = child.id() as i32;
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap();
    assert!(std::str::from_utf8(&stat).is_err(), "{}", String::from_utf8_lossy(&stat));
    let started = start_in(&stat).unwrap();
    assert_eq!(still_there(pid, started), Some(true));
    assert_eq!(still_there(pid, started + 1), None);
    child.kill().unwrap();
    child.wait().unwrap();
}

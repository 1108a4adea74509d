# A runner that is not PID 1 and has a cgroup of its own is killed, and another one takes over. (Sourced by `checks`.)
second() { tenon --dir /second "$@" 2>&1; }
top=/sys/fs/cgroup/second
begin() { # GROUP OUTPUT [VAR=VALUE]: as a service manager would, in that cgroup, and no child of anybody here
  (setsid sh -c "echo 0 >$1/cgroup.procs && ${3:-} exec tenon run --dir /second" >"$2" 2>&1 &)
}
mkdir -p "$top/runner"
echo 100M >"$top/memory.max"
begin "$top/runner" /tmp/second.1
until_ok 30 sh -c 'tenon --dir /second status kept | grep -q ready'
has "a runner below: exact" "$(second status kept)" 'tree: exact'
until_ok 30 sh -c 'tenon --dir /second status above | grep -q failed'
has "the limit of a group above" "$(second status above)" 'the limit of cgroup `/second`, 100.0 MB, was used up'
before=$(cat "$top"/tenon-*/kept.unit/cgroup.procs | tr '\n' ' ')
kill -9 "$(cat /run/second/lock)"
until_ok 10 sh -c '! tenon --dir /second status'
check "units outlive their runner" "$(cat "$top"/tenon-*/kept.unit/cgroup.procs | tr '\n' ' ')" "$before"
begin "$top/runner" /tmp/second.2
until_ok 30 sh -c 'tenon --dir /second status kept | grep -q ready'
has "another runner takes over" "$(cat /tmp/second.2)" '1 running units of an earlier runner are kept'
check "the very processes" "$(cat "$top"/tenon-*/kept.unit/cgroup.procs | tr '\n' ' ')" "$before"
has "and knows them exactly" "$(second status kept)" 'tree: exact'
check "limits still hold" "$(cat "$top"/tenon-*/kept.unit/pids.max)" 40
check "one runner alone" "$(wc -l <"$(echo "$top"/tenon-*/runner/cgroup.procs)")" 1
second stop kept
check "adopted, hidden worker and all: gone at stop" "$(for pid in $before; do ls -d "/proc/$pid" 2>/dev/null; done)" ""
second shutdown
check "nothing of it is left" "$(ls -d "$top"/tenon-* 2>/dev/null)" ""

# The same where the service manager has no leaf to give: the runner is in the service's own cgroup.
top=/sys/fs/cgroup/third
mkdir -p "$top"
begin "$top" /tmp/third.1 INVOCATION_ID=1
until_ok 30 sh -c 'tenon --dir /second status kept | grep -q ready'
kept=$(echo "$top"/tenon-*/kept.unit)
check "its limits need controllers in the service's cgroup" "$(grep -c pids "$top/cgroup.subtree_control")" 1
before=$(tr '\n' ' ' <"$kept/cgroup.procs")
kill -9 "$(cat /run/second/lock)"
until_ok 10 sh -c '! tenon --dir /second status'
has "nobody is let into it again" "$(sh -c "echo 0 >$top/cgroup.procs" 2>&1)" 'busy'
# Where systemd puts what it runs after the main process.
mkdir "$top/.control"
sh -c "echo 0 >$top/.control/cgroup.procs && exec sh /stopped"
rmdir "$top/.control"
check "the service hands nothing down any more" "$(cat "$top/cgroup.subtree_control" "$top"/tenon-*/cgroup.subtree_control | tr -d '\n')" ""
check "and its units live" "$(tr '\n' ' ' <"$kept/cgroup.procs")" "$before"
begin "$top" /tmp/third.2 INVOCATION_ID=1
until_ok 30 sh -c 'tenon --dir /second status kept | grep -q ready'
has "the next runner is let in, and takes over" "$(cat /tmp/third.2)" 'running units of an earlier runner are kept'
check "the same processes" "$(tr '\n' ' ' <"$kept/cgroup.procs")" "$before"
check "and their limits hold again" "$(cat "$kept/pids.max")" 40
second shutdown
check "nobody is left" "$(find "$top" -name cgroup.procs -exec cat {} +)" ""

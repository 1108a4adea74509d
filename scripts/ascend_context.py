#!/usr/bin/env python3
"""Make a device context in this very process, then become a Python module.

    python3 -u ascend_context.py --device 0 -- -m package.module [argument ...]

An NPU device context belongs to a process and does not survive exec, and some programs never create one. This
script sets the device and then runs the module as `python3 -m package.module` would: as `__main__`, with the same
arguments and the same first entry of `sys.path`. It creates no communicator: a second one on a card announces the
card's address twice (EI0014).

Whatever goes wrong with the device is one warning line on standard error; the module runs all the same.
"""

import os
import runpy
import sys

PREFIX = "ascend_context:"


def say(words):
    """One line on standard error, recognisable in a shared log."""
    print(f"{PREFIX} {words}", file=sys.stderr, flush=True)


def expect_zero(call, code):
    """The runtime answers 0 for success."""
    if code:
        raise RuntimeError(f"{call} answered {code}")


def set_device(device):
    """Initialise the runtime and make a context on `device`, in this process."""
    import acl  # pyACL, part of CANN; not a package of the index

    expect_zero("acl.init()", acl.init())
    expect_zero(f"acl.rt.set_device({device})", acl.rt.set_device(device))
    say(f"device {device} is set in process {os.getpid()}")


def parse(arguments):
    """`--device N -- -m MODULE ARG...` to (N, MODULE, ARGs); exits with a usage error otherwise."""
    try:
        if arguments[0] != "--device" or arguments[2:4] != ["--", "-m"]:
            raise ValueError
        return int(arguments[1]), arguments[4], arguments[5:]
    except (IndexError, ValueError):
        say("usage: ascend_context.py --device N -- -m MODULE [ARGUMENT ...]")
        raise SystemExit(2) from None


def main():
    device, module, arguments = parse(sys.argv[1:])
    try:
        set_device(device)
    except (Exception, SystemExit) as problem:  # the store must come up without a card too
        words = " ".join(str(problem).split())  # one line, whatever the runtime says
        say(f"warning: no device context ({type(problem).__name__}: {words}); going on without one")
    sys.argv = [sys.argv[0], *arguments]  # run_module puts the module's own path into argv[0], as -m does
    sys.path[0] = os.getcwd()
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

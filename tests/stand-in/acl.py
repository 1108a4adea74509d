"""Stands in for pyACL: writes each call down, with the process it came from, in the file that ACL_RECORD names.

ACL_INIT and ACL_SET_DEVICE are what the calls answer (0 = well); ACL_BROKEN is raised while the module is imported.
"""

import os


def _record(words):
    with open(os.environ["ACL_RECORD"], "a", encoding="utf-8") as file:
        file.write(f"{os.getpid()} {words}\n")


if os.environ.get("ACL_BROKEN"):
    raise OSError(os.environ["ACL_BROKEN"])


def init():
    _record("init")
    return int(os.environ.get("ACL_INIT", "0"))


class rt:
    @staticmethod
    def set_device(device):
        _record(f"set_device {device}")
        return int(os.environ.get("ACL_SET_DEVICE", "0"))

"""Writes down how it was started: in ACL_RECORD, after what the stand-in for pyACL wrote, and on standard output."""

import json
import os
import sys

with open(os.environ["ACL_RECORD"], "a", encoding="utf-8") as file:
    file.write(f"{os.getpid()} module\n")
print(
    json.dumps(
        {
            "name": __name__,
            "package": __package__,
            "spec": __spec__.name if __spec__ else None,
            "file": __file__,
            "argv": sys.argv,
            "path": sys.path[0],
            "main": sys.modules["__main__"].__dict__ is globals(),
        }
    )
)

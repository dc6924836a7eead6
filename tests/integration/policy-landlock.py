"""Takes a Landlock ruleset upon itself, then says what of the asked it may still do, as JSON.

Reads {"handled": n, "fileBits": n, "rules": [[path, access]], "asked": [[verb, path]]} from standard
input. Each answer is 0 or an errno.
"""

import ctypes
import json
import os
import stat
import struct
import sys

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
PATH_BENEATH = 1
PR_SET_NO_NEW_PRIVS = 38

libc = ctypes.CDLL(None, use_errno=True)


def call(*arguments):
    result = libc.syscall(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def restrict(handled, file_bits, rules):
    attribute = struct.pack("=Q", handled)
    ruleset = call(CREATE_RULESET, attribute, ctypes.c_size_t(len(attribute)), 0)
    for path, access in rules:
        try:
            parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        if not stat.S_ISDIR(os.fstat(parent).st_mode):
            access &= file_bits
        if access:
            call(ADD_RULE, ruleset, PATH_BENEATH, struct.pack("=Qi", access, parent), 0)
        os.close(parent)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    call(RESTRICT_SELF, ruleset, 0)


def attempt(verb, path):
    try:
        if verb == "read":
            os.close(os.open(path, os.O_RDONLY))
        elif verb == "write":
            os.close(os.open(path, os.O_WRONLY))
        elif verb == "truncate":
            os.truncate(path, 0)
        elif verb == "exec":
            os.waitpid(os.posix_spawn(path, [path], {}), 0)
        else:
            os.rename(path, verb)
    except OSError as error:
        return error.errno
    return 0


given = json.load(sys.stdin)
restrict(given["handled"], given["fileBits"], given["rules"])
print(json.dumps([attempt(verb, path) for verb, path in given["asked"]]))

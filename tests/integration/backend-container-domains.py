"""Which pages of a file are in memory through one mount after they were read through another.

Given the pinned namespace, a path below a mount, and two mounts: reads by the first, and prints how many
pages each of the two has then.
"""

import ctypes
import mmap
import os
import sys

CLONE_NEWNS = 0x20000
PROT_READ, MAP_SHARED = 1, 1


def resident(libc, path):
    fd = os.open(path, os.O_RDONLY)
    size = os.fstat(fd).st_size
    pages = -(-size // mmap.PAGESIZE)
    vector = (ctypes.c_ubyte * pages)()
    libc.mmap.restype = ctypes.c_void_p
    address = libc.mmap(None, ctypes.c_size_t(size), PROT_READ, MAP_SHARED, fd, ctypes.c_long(0))
    if libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), vector) != 0:
        raise OSError(ctypes.get_errno(), "mincore")
    libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))
    os.close(fd)
    return sum(byte & 1 for byte in vector), pages


def main(pin, path, first, second):
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(pin, os.O_RDONLY)
    if libc.setns(fd, CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "setns")
    paths = [f"/layers/{name}/mount/{path}" for name in (first, second)]
    for each in paths:
        file = os.open(each, os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)
    file = os.open(paths[0], os.O_RDONLY)
    while os.read(file, 1 << 20):
        pass
    os.close(file)
    for each in paths:
        print(*resident(libc, each))


main(*sys.argv[1:])

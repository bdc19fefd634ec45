"""A warm Python: one process has loaded the large libraries, and jobs are forked from it instead of started anew.

This file runs by itself, in the server and in its clients, and imports nothing of the project: jobs read that anew.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import shlex
import shutil
import signal
import socket
import sys
import traceback

# What most jobs import; the order is no matter.
LIBRARIES = (
    "numpy", "pandas", "scipy.integrate", "scipy.optimize", "scipy.special", "scipy.stats", "matplotlib.pyplot",
    "matplotlib.backends.backend_pdf", "matplotlib.backends.backend_svg",
)  # fmt: skip
# The C library keeps what arrays gave back: asked of the system anew, it is cleared page by page.
MEMORY = {f"MALLOC_{name}_THRESHOLD_": str(1 << 30) for name in ("MMAP", "TRIM")}
# Names the program of a server that runs already; whoever sets it vouches for libraries and environment.
RUNNING = "PRIVPOST_WARM"
# How a job ended, once it has.
_ended: list[int] = []


def start(*libraries: str) -> str:
    """Start a server and return the path of a program that is called as Python is: `program -m module words`.

    Folder, environment and the three standard streams of a job are those of the call. The server ends with this
    process; a program without its server is Python itself.
    """
    import subprocess
    import tempfile

    if program := os.environ.get(RUNNING):
        return program
    folder = tempfile.mkdtemp(prefix="privpost-")
    program, place = f"{folder}/python", f"{folder}/socket"
    with open(program, "w", encoding="utf-8") as script:
        call = [sys.executable, "-I", "-S", __file__, "call", place]
        script.write(f'#!/bin/sh\nexec {shlex.join(call)} "$@"\n')
    os.chmod(program, 0o700)
    life, _ = os.pipe()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place)
        # Calls wait until the server has loaded its libraries.
        listener.listen(socket.SOMAXCONN)
        numbers = [listener.fileno(), life]
        subprocess.Popen(
            [sys.executable, "-P", __file__, "serve", folder, *map(str, numbers), *LIBRARIES, *libraries],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=numbers, env={**MEMORY, **os.environ},
        )  # fmt: skip
    os.close(life)
    # The other end stays open for as long as this process lives; no child inherits it.
    return program


def serve(folder: str, listening: str, life: str, *libraries: str) -> None:
    """Fork a process for each call until the other end of the pipe `life` is closed; then remove the folder."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Children are not waited for: they tell their callers themselves how they end.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # First registered, so called last, after what libraries and jobs have registered.
    atexit.register(_leave)
    for library in libraries:
        importlib.import_module(library)
    # What is loaded stays: the jobs' collector neither looks at it nor copies its pages.
    gc.freeze()
    with socket.socket(fileno=int(listening)) as listener:
        while int(life) not in select.select([listener, int(life)], [], [])[0]:
            connection, _ = listener.accept()
            if not os.fork():
                listener.close()
                os.close(int(life))
                _work(connection)
            connection.close()
    shutil.rmtree(folder, ignore_errors=True)


def _leave() -> None:
    """End a job's process at once: to take its libraries apart object by object takes longer than many jobs."""
    if _ended:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(_ended[0])


def _work(connection: socket.socket) -> None:
    """Take the place of the caller: its streams, folder and environment; run the module that it names, and end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _, streams, *_ = socket.recv_fds(connection, 1, 3)
    request = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    folder, environment, (option, module, *words) = json.loads(request)
    connection.sendall(os.getpid().to_bytes(8))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # Those of the server know of a file what is not true of a pipe.
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", 1 if os.isatty(1) else -1, closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [folder, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv = [module, *words]
    status = 0
    try:
        assert option == "-m", option
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    connection.sendall(bytes([status % 256]))
    _ended.append(status % 256)
    # Out of the server's loop: Python cleans up after the job, such as the processes of a pool.
    sys.exit(status)


def call(place: str, *words: str) -> None:
    """Have the server run `python words`, and end as that ends; without a server run it here."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(place)
        except OSError:
            os.execv(sys.executable, [sys.executable, *words])
        # An interrupt of the terminal reaches the job itself; a request to end waits until there is a job.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        socket.send_fds(connection, [b"."], [0, 1, 2])
        connection.sendall(json.dumps([os.getcwd(), dict(os.environ), words]).encode())
        connection.shutdown(socket.SHUT_WR)
        process = int.from_bytes(connection.recv(8))
        signal.signal(signal.SIGTERM, lambda *_: os.kill(process, signal.SIGTERM))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        if status := connection.recv(1):
            sys.exit(status[0])
        # Killed before it could say how it ended.
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    {"serve": serve, "call": call}[sys.argv[1]](*sys.argv[2:])

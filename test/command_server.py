"""Runs mx-opt and mx-run for the lit tests in forks of one process that has imported them, on Linux.

Starting Python and loading the bindings takes most of the time of a small test. A fork has its own streams, arguments,
folder and environment, and ends as the command's process does; tests of the process itself start one of their own.

    python command_server.py SOCKET               serves until its standard input ends
    python command_server.py SOCKET mx-opt ...    runs a command there: the same streams, the same exit
"""

import array
import json
import os
import selectors
import signal
import socket
import sys

# The client imports nothing else, and is started with -S -E -s, so that it starts at once.
_LENGTH = 8


def _client(path: str, arguments: list[str]) -> int:
    request = json.dumps([arguments, os.getcwd(), dict(os.environ)]).encode()
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        descriptors = array.array("i", (0, 1, 2))
        server.sendmsg(
            [len(request).to_bytes(_LENGTH, "little")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)]
        )
        server.sendall(request)
        answer = server.recv(_LENGTH)
    status = int.from_bytes(answer, "little")
    if not answer or not os.WIFSIGNALED(status):
        return os.WEXITSTATUS(status) if answer else 1
    signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
    os.kill(os.getpid(), os.WTERMSIG(status))
    return 1


def _received(connection: socket.socket) -> tuple[list[str], str, dict[str, str], list[int]]:
    """Return the arguments, folder, environment and streams of a request."""
    room = socket.CMSG_SPACE(3 * array.array("i").itemsize)
    head, ancillary, _, _ = connection.recvmsg(_LENGTH, room)
    descriptors = array.array("i")
    descriptors.frombytes(ancillary[0][2])
    length, body = int.from_bytes(head, "little"), b""
    while len(body) < length:
        body += connection.recv(length - len(body))
    arguments, folder, environment = json.loads(body)
    return arguments, folder, environment, list(descriptors)


def _command(connection: socket.socket) -> int:
    """Become the process of a command, and return its exit code."""
    from mx_dialect import opt, run

    arguments, folder, environment, descriptors = _received(connection)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = arguments
    return {"mx-opt": opt.main, "mx-run": run.main}[arguments[0]]()


def _fork(connection: socket.socket) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        code = _command(connection)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _serve(path: str) -> None:
    from mx_dialect import opt

    # What commands import, so that forks have it.
    opt.main(["--mx-to-linalg", "--canonicalize", os.devnull, "-o", os.devnull])
    running: dict[int, socket.socket] = {}
    with socket.socket(socket.AF_UNIX) as listening, selectors.DefaultSelector() as selector:
        listening.bind(path)
        listening.listen(64)
        selector.register(listening, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        print("ready", flush=True)
        while True:
            ready = [key.fileobj for key, _ in selector.select(0.005 if running else None)]
            if sys.stdin in ready:
                return
            if listening in ready:
                connection, _ = listening.accept()
                running[_fork(connection)] = connection
            while running:
                child, status = os.waitpid(-1, os.WNOHANG)
                if not child:
                    break
                with running.pop(child) as finished:
                    finished.sendall(status.to_bytes(_LENGTH, "little"))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(_client(sys.argv[1], sys.argv[2:]))
    _serve(sys.argv[1])

"""First script of a worker process, run by path under any interpreter with ``-I``.

Arguments: the package's folder, the target ("module:function" or "file.py:function"), the number of
an inherited socket, the size limit in bytes. The package is made importable by its folder alone:
``sys.path`` stays that interpreter's own, so nothing beside the package leaks in, and the package's
own start-up (registering environments) is not run.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import signal
import socket
import sys
import types


def _target(text: str) -> object:
    where, _, attribute = text.rpartition(":")
    if where.endswith(".py"):
        spec = importlib.util.spec_from_file_location("wmeval_worker_target", where)
        if spec is None or spec.loader is None:
            raise ImportError(f"no module at {where}")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(where)
    return getattr(module, attribute)


def main(package: str, target: str, descriptor: int, max_bytes: int) -> None:
    """Serve one socket until it closes."""
    # Ctrl-C is the client's to handle; its death is seen as the end of the socket.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    name = os.path.basename(package)
    root = types.ModuleType(name)
    root.__path__ = [package]
    sys.modules[name] = root
    sock = socket.socket(fileno=descriptor)
    sock.set_inheritable(False)
    worker = importlib.import_module(f"{name}.jobs.worker")
    handlers = _target(target)
    assert callable(handlers)
    worker.serve(handlers(), sock, max_bytes=max_bytes)


if __name__ == "__main__":
    code = 1
    try:
        main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # No exit handlers: a forked worker must not run those of the process it came from.
        os._exit(code)

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import pytest

from seustream.commands.signals import EndSignal


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_another_thread_got_ends_the_wait(number: str) -> None:
    """The kernel may give a process's signal to any thread, and gRPC has many."""
    program = f"""
        import signal, threading, time
        from seustream.commands.signals import EndSignal

        def get_it():
            time.sleep(0.2)  # the main thread waits by now
            signal.pthread_kill(threading.get_ident(), signal.{number})
            while True:
                time.sleep(60)

        with EndSignal() as end:
            threading.Thread(target=get_it, daemon=True).start()
            end.wait()
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=60)


def test_a_signal_before_the_wait_counts_and_the_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with EndSignal() as end:
        signal.raise_signal(signal.SIGTERM)
        end.wait()
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_server_that_outlives_its_terminal() -> None:
    """`nohup` has it ignore SIGHUP, and so it does."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with EndSignal() as end:
            signal.raise_signal(signal.SIGHUP)
            signal.raise_signal(signal.SIGTERM)
            end.wait()
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)

"""`python -m factorfield` is the command `factorfield`."""

import sys

if __name__ == "__main__":
    del sys.path[0]  # the current folder, where `python -m` looks first: a stranger's module of NumPy's name would run

import signal

from factorfield.cli.signals import SIGNALS, end_at_once


def main() -> None:
    """Signals are heard before anything else is imported, and no more once the command is over."""
    for number in SIGNALS:
        signal.signal(number, end_at_once)
    try:
        from factorfield.cli.app import main as run

        run()
    finally:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    main()

"""A program on a terminal of its own, as a person has it before them: what it draws, and keys that are pressed."""

import contextlib
import fcntl
import os
import select
import struct
import subprocess
import termios
import time


class OnTerminal:
    """Everything that the program writes, on standard output and error, is in `drawn`."""

    def __init__(self, *command, rows=24, columns=120):
        self.screen, terminal = os.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
        self.process = subprocess.Popen([str(part) for part in command], stdin=terminal, stdout=terminal,
                                        stderr=terminal, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(terminal)
        self.drawn = ''

    def _read(self, seconds):
        if not select.select([self.screen], [], [], seconds)[0]:
            return False
        with contextlib.suppress(OSError):  # its last owner is gone
            if text := os.read(self.screen, 65536):
                self.drawn += text.decode(errors='replace')
                return True
        return False

    def until(self, seen, seconds=120):
        """Reads until `seen`, a function of all that was drawn, is true of it; returns that."""
        deadline = time.monotonic() + seconds
        while not (value := seen(self.drawn)):
            assert time.monotonic() < deadline and (self._read(1) or self.process.poll() is None), self.drawn
        return value

    def press(self, keys):
        os.write(self.screen, keys)

    def exit_code(self, seconds=120):
        deadline = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.drawn
            self._read(0.1)
        while self._read(0):
            pass
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.screen)

"""Runs a program on its own terminal, except for its standard error, until SIGUSR1 removes the terminal; exits as it does."""
import os
import pty
import signal
import sys

stderr = os.dup(2)
child, terminal = pty.fork()
if child == 0:
    os.dup2(stderr, 2)
    os.execvp(sys.argv[1], sys.argv[1:])
signal.signal(signal.SIGUSR1, lambda *_: os.close(terminal))
signal.signal(signal.SIGHUP, lambda *_: os.kill(child, signal.SIGHUP))
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))

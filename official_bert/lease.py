"""Lock a folder of an object store with a lease: at most one process holds it.

Object stores have no locks, and TensorFlow's client has no conditional write. Each
process writes a claim under its own name, then lists all claims. Lists are consistent:
of two claims, the later writer always sees the earlier one. Therefore two processes can
never both see only their own claim. A process that sees another live claim gives up.

A claim contains its expiry time. Its owner renews it in a thread. The claim of a killed
process expires after `SECONDS`. The clocks of the hosts may differ by up to `SKEW`.
"""

import contextlib
import dataclasses
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator

from official_bert import object_store
from official_bert.errors import StoreError, UserError

# After this number of seconds without a renewal, the claim's process counts as dead.
SECONDS = 60.0
SKEW = 5.0
# Seconds between two renewals by a live owner.
RENEWAL = SECONDS / 4
_PREFIX = ".lease-"
_BYTES = 512


@dataclasses.dataclass(frozen=True)
class Claim:
    """A claim: the process that made it, and its expiry time."""

    owner: str
    host: str
    pid: int
    expires: float

    def is_dead(self, now: float) -> bool:
        """Return whether the claim's process is dead or was suspended for too long."""
        if now > self.expires + SKEW:
            return True
        # A restarted container may have the host name and process id of the first.
        is_gone = self.pid == os.getpid() or not _is_alive(self.pid)
        return self.host == _host() and is_gone


@contextlib.contextmanager
def held(
    directory: str, flag: str, say: Callable[[str], None] = print
) -> Iterator[None]:
    """Hold the lease on a folder for this process.

    Args:
      directory: a remote path.
      flag: the flag that named the path, for messages.
      say: prints a line while waiting for the claim of a process that may be dead.

    Raises:
      UserError: another process holds the lease.

    After a `StoreError` in the block, the claim is left to expire.
    """
    _wait_for_dead(directory, flag, say)
    own = _own_claim()
    path = os.path.join(directory, _PREFIX + own.owner)
    object_store.write(path, _encoded(own))
    is_refused = False
    try:
        others = {name: c for name, c in _claims(directory).items() if name != path}
        living = [c for c in others.values() if not c.is_dead(time.time())]
        if living:
            raise _refusal(directory, flag, living[0])
        for name in others:
            object_store.remove(name)
        with _renewed(path, own):
            yield
    except StoreError:
        # A store that refuses would refuse this, too, after minutes of retries.
        is_refused = True
        raise
    finally:
        # A claim that stays here expires.
        if not is_refused:
            with contextlib.suppress(StoreError):
                object_store.remove(path)


def _wait_for_dead(directory, flag, say):
    """Wait until no claim is live; raise an error if a claim is renewed meanwhile."""
    first = _claims(directory)
    told = False
    while True:
        living = {
            name: claim
            for name, claim in _claims(directory).items()
            if not claim.is_dead(time.time())
        }
        if not living:
            return
        for name, claim in living.items():
            is_renewed = name not in first or claim.expires > first[name].expires
            if is_renewed or claim.host == _host():
                raise _refusal(directory, flag, claim)
        if not told:
            claim = next(iter(living.values()))
            say(
                f"{directory} is in use by process {claim.pid} on {claim.host}. "
                f"Waiting up to {SECONDS + SKEW:.0f} s to check whether that process "
                "is alive."
            )
            told = True
        time.sleep(1.0)


def _refusal(directory, flag, claim):
    return UserError(
        f"{flag}: process {claim.pid} on {claim.host} is using {directory}. Wait "
        "until it ends, or choose another directory."
    )


def require_held(directory: str) -> None:
    """Raise `UserError` unless this process still holds the lease on a folder.

    Call it before a write that the next owner must not see: a suspended process may
    have lost its lease.
    """
    own = [
        claim
        for claim in _claims(directory).values()
        if (claim.host, claim.pid) == (_host(), os.getpid())
    ]
    if not any(time.time() < claim.expires for claim in own):
        raise UserError(
            f"The lease on {directory} was lost, because this process or the store "
            "was suspended for more than a minute. Run the command again: it resumes "
            "at the last checkpoint."
        )


@contextlib.contextmanager
def _renewed(path, claim):
    """Renew a claim in a thread."""
    ended = threading.Event()

    def renew():
        while not ended.wait(RENEWAL):
            renewed = dataclasses.replace(claim, expires=time.time() + SECONDS)
            # If the store does not respond, try again at the next renewal. Do not
            # rewrite a claim that another owner has removed.
            with contextlib.suppress(UserError):
                if object_store.exists(path):
                    object_store.write(path, _encoded(renewed))

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    is_refused = False
    try:
        yield
    except StoreError:
        is_refused = True
        raise
    finally:
        ended.set()
        if not is_refused:  # Otherwise its request may take minutes.
            thread.join()


def _claims(directory):
    """Return path -> `Claim` of all claims in a folder."""
    claims = {}
    for name in object_store.list_directory(directory):
        if name.startswith(_PREFIX):
            path = os.path.join(directory, name)
            try:
                claims[path] = _decoded(path, object_store.read(path))
            except StoreError:
                raise
            except UserError:  # Its owner has removed it since the list was made.
                continue
    return claims


def _decoded(path, data):
    try:
        return Claim(**json.loads(data))
    except (ValueError, TypeError):
        # A damaged or incomplete claim counts as live, to be safe.
        return Claim(path, f"an unknown host ({path})", 0, time.time() + SECONDS)


def _own_claim():
    return Claim(secrets.token_hex(8), _host(), os.getpid(), time.time() + SECONDS)


def _encoded(claim):
    # All claims have one size. Otherwise a reader that asked for the size before a
    # renewal would miss the end of the new claim.
    return json.dumps(dataclasses.asdict(claim)).encode().ljust(_BYTES)


def _host():
    """Return the host name with its boot id, because containers may share a name."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as source:
            boot = source.read().strip()[:8]
    except OSError:
        boot = ""
    return f"{socket.gethostname()}-{boot}"


def _is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

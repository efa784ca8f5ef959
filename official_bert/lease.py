"""A lease on a folder of an object store: at most one process holds it.

Object stores have no locks, and TensorFlow's client has no conditional write. Each
process writes a claim under a name of its own, then lists all claims. Lists are
consistent: of two claims, the later writer always sees the earlier one, so two
processes never both see their own alone. Who sees another living claim gives up.

A claim says when it expires. Its owner renews it in a thread; the claim of a killed
process expires after `SECONDS`. Clocks of the hosts may differ by up to `SKEW`.
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

# A claim that was not renewed for so many seconds is that of a dead process.
SECONDS = 60.0
SKEW = 5.0
# A live owner renews its claim so often.
RENEWAL = SECONDS / 4
_PREFIX = ".lease-"
_BYTES = 512


@dataclasses.dataclass(frozen=True)
class Claim:
    """What a claim says: which process made it, and until when it counts."""

    owner: str
    host: str
    pid: int
    expires: float

    def is_dead(self, now: float) -> bool:
        """Return whether its process is dead, or has stood still for too long."""
        if now > self.expires + SKEW:
            return True
        # A restarted container may have the name and the process number of the first.
        is_gone = self.pid == os.getpid() or not _is_alive(self.pid)
        return self.host == _host() and is_gone


@contextlib.contextmanager
def held(
    directory: str, flag: str, say: Callable[[str], None] = print
) -> Iterator[None]:
    """Hold a folder for this process.

    Args:
      directory: a remote path.
      flag: where it came from, for the message.
      say: prints a line while it waits for the claim of a process that may be dead.

    Raises:
      UserError: another process holds it.
    """
    _wait_for_dead(directory, flag, say)
    own = _own_claim()
    path = os.path.join(directory, _PREFIX + own.owner)
    object_store.write(path, _encoded(own))
    try:
        others = {name: c for name, c in _claims(directory).items() if name != path}
        living = [c for c in others.values() if not c.is_dead(time.time())]
        if living:
            raise _refusal(directory, flag, living[0])
        for name in others:
            object_store.remove(name)
        with _renewed(path, own):
            yield
    finally:
        # If the store does not answer, the claim expires.
        with contextlib.suppress(StoreError):
            object_store.remove(path)


def _wait_for_dead(directory, flag, say):
    """Return once no claim is alive; refuse if a claim is renewed meanwhile."""
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
                f"{directory} is leased to process {claim.pid} on {claim.host}. "
                f"Waiting up to {SECONDS + SKEW:.0f} s to see whether it is alive."
            )
            told = True
        time.sleep(1.0)


def _refusal(directory, flag, claim):
    return UserError(
        f"{flag}: process {claim.pid} on {claim.host} is at work in {directory}; wait "
        "for it, or choose another directory."
    )


def require_held(directory: str) -> None:
    """Raise `UserError` unless this process still holds a folder.

    Call it before a write that the next owner must not see: a process that was
    suspended may have lost its lease.
    """
    own = [
        claim
        for claim in _claims(directory).values()
        if (claim.host, claim.pid) == (_host(), os.getpid())
    ]
    if not any(time.time() < claim.expires for claim in own):
        raise UserError(
            f"The lease on {directory} was lost, because this process or the store "
            "stood still for more than a minute. Run the command again: it resumes at "
            "the last checkpoint."
        )


@contextlib.contextmanager
def _renewed(path, claim):
    """Renew a claim in a thread."""
    ended = threading.Event()

    def renew():
        while not ended.wait(RENEWAL):
            renewed = dataclasses.replace(claim, expires=time.time() + SECONDS)
            # A store that does not answer is tried again at the next renewal. A claim
            # that another owner has removed is not written again.
            with contextlib.suppress(UserError):
                if object_store.exists(path):
                    object_store.write(path, _encoded(renewed))

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
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
        # Damaged, or not written to its end: it counts, to be on the safe side.
        return Claim(path, f"an unknown host ({path})", 0, time.time() + SECONDS)


def _own_claim():
    return Claim(secrets.token_hex(8), _host(), os.getpid(), time.time() + SECONDS)


def _encoded(claim):
    # All claims have one size: a reader that has asked for the size before a renewal
    # would otherwise miss the end.
    return json.dumps(dataclasses.asdict(claim)).encode().ljust(_BYTES)


def _host():
    """Return the host's name with the id of its boot: a container may share a name."""
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

"""Calls a farm's tracker: jobs, devices, records. It needs grpcio and protobuf (``pip install tilth[farm]``)."""

from __future__ import annotations

import datetime
import ipaddress
import os
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Type, Union

try:
    import grpc

    from . import wire
except ImportError as e:
    raise ImportError(f"tilth.Client needs grpcio and protobuf: pip install 'tilth[farm]' ({e})") from e

from . import program as tool
from .errors import Error
from .records import Record
from .source import files
from .tuning import Seeds, Tuned, import_seeds, tune

PathLike = Union[str, "os.PathLike[str]"]

# Maximum message size, equal to that of the tracker's own clients.
_MAX_MESSAGE_BYTES = 64 << 20
_PAGE = 1000
# Delays between attempts to resume a broken stream.
_FIRST_WAIT_SECONDS, _LAST_WAIT_SECONDS = 0.2, 5.0


@dataclass(frozen=True)
class Job:
    """A job of the farm. ``wait`` is what it waits for, if anything; ``message`` is the tracker's whole message."""

    id: str
    name: str
    owner: str
    state: str
    reason: str
    wait: str
    target: str
    tasks: int
    trials: int
    created: Optional[datetime.datetime]
    ended: Optional[datetime.datetime]
    message: Any = field(repr=False)

    @property
    def over(self) -> bool:
        """Whether the job has ended."""
        return self.state in ("done", "failed", "cancelled")


@dataclass(frozen=True)
class Device:
    """A device that runs candidates. ``why`` is the reason if it gets no work."""

    name: str
    state: str
    why: str
    targets: Tuple[str, ...]
    labels: Dict[str, str]
    leases: int
    message: Any = field(repr=False)


@dataclass(frozen=True)
class Event:
    """An event of a job.

    ``kind`` is ``state``, ``proposed``, ``trial``, ``dead_letter``, ``retried`` or ``suspected``, and ``detail`` the
    message of that kind. ``sequence`` numbers the events of a job 1, 2, 3, ...
    """

    sequence: int
    at: datetime.datetime
    kind: str
    detail: Any


class Client:
    """A client of the tracker at ``address``: ``host:port`` or ``unix:PATH``. It is thread-safe.

    ``ca`` is a file of the authorities that may sign the tracker's certificate, or ``"system"``, and turns TLS on;
    ``cert`` and ``key`` are files that prove who calls, as does ``token``, or the file of one, which is read for each
    call. None is what ``$TILTH_TRACKER``, ``$TILTH_TLS_CA``, ... say. ``timeout`` bounds a call, in seconds.

    Methods raise Error, which says what was attempted and why it failed. A farm of several shards is called by the
    program only.
    """

    def __init__(
        self,
        address: Optional[str] = None,
        *,
        token: Optional[str] = None,
        token_file: Optional[PathLike] = None,
        ca: Optional[PathLike] = None,
        cert: Optional[PathLike] = None,
        key: Optional[PathLike] = None,
        timeout: float = 30.0,
        program: Optional[PathLike] = None,
    ) -> None:
        self.address = address or os.environ.get("TILTH_TRACKER") or "127.0.0.1:9190"
        self._token, self._timeout, self._program = token, timeout, program
        self._token_file = tool.path_of(token_file) or (None if token else os.environ.get("TILTH_TOKEN_FILE"))
        self._ca = tool.path_of(ca) or os.environ.get("TILTH_TLS_CA")
        self._cert = tool.path_of(cert) or os.environ.get("TILTH_TLS_CERT")
        self._key = tool.path_of(key) or os.environ.get("TILTH_TLS_KEY")
        _check_address(self.address)
        if not self._ca and (self._token or self._token_file) and not _is_local(self.address):
            raise Error(f"a token would be sent to {self.address} in the clear: name the tracker's authorities by ca=")
        if not self._ca and (self._cert or self._key):
            raise Error("cert= and key= prove who calls by TLS only: name the tracker's authorities by ca=")
        self._ended = threading.Event()
        self._channel = self._connect()
        self._calls = wire.Calls(self._channel, self._metadata)

    def jobs(self, *, name: str = "", states: Sequence[str] = (), limit: int = 100) -> List[Job]:
        """Lists jobs, newest first, by a case-insensitive part of their name and by state."""
        try:
            numbers = [wire.enum_number("JobState", s, "JOB_STATE_") for s in states]
        except KeyError as e:
            known = "reading, queued, running, paused, done, failed or cancelled"
            raise Error(f"there is no state {e}: want {known}") from e
        found: List[Job] = []
        for page in self._pages("list jobs", "JobService", "ListJobs", states=numbers):
            found += [_job(j) for j in page.jobs if name.lower() in j.spec.name.lower()]
            if len(found) >= limit:
                break
        return found[:limit]

    def job(self, id: str) -> Job:
        """Returns a job by id."""
        return _job(self._call(f"show job {id}", "JobService", "GetJob", job_id=id).job)

    def cancel(self, id: str, reason: str = "") -> Job:
        """Ends a job and keeps its measurements. Cancelling an ended job has no effect."""
        return _job(self._call(f"cancel job {id}", "JobService", "CancelJob", job_id=id, reason=reason).job)

    def pause(self, id: str, reason: str = "") -> Job:
        """Stops work on a job until ``resume``."""
        return _job(self._call(f"pause job {id}", "JobService", "PauseJob", job_id=id, reason=reason).job)

    def resume(self, id: str, reason: str = "") -> Job:
        """Resumes a paused job."""
        return _job(self._call(f"resume job {id}", "JobService", "ResumeJob", job_id=id, reason=reason).job)

    def watch(self, id: str, *, after: int = 0) -> Iterator[Event]:
        """Yields all events of a job after a sequence number, stored and live, without gaps or repeats.

        When the tracker goes away meanwhile it waits for it, and goes on, until the client is closed.
        """
        self.job(id)  # fail early if the tracker is unreachable
        seen, at, wait = after, None, _FIRST_WAIT_SECONDS
        while True:
            last: Dict[str, Any] = {"after": at} if at else {}
            call = self._calls("JobService", "WatchJob", job_id=id, from_sequence=seen + 1, several=True, **last)
            try:
                for answer in call:
                    wait = _FIRST_WAIT_SECONDS
                    for message in [answer.event, *answer.more]:
                        if message.sequence == seen + 1:
                            seen, at = message.sequence, message.at
                            yield _event(message)
                        elif message.sequence > seen:
                            gap = f"got event {message.sequence}, want {seen + 1}"
                            raise Error(f"watch job {id}: {gap}: the tracker's log has a gap")
                return
            except grpc.RpcError as e:
                if self._ended.is_set() or e.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
                    raise self._explain(f"watch job {id}", e) from e
            finally:
                call.cancel()
            if self._ended.wait(wait):
                raise Error(f"watch job {id}: the client was closed")
            wait = min(2 * wait, _LAST_WAIT_SECONDS)

    def devices(self) -> List[Device]:
        """Lists all devices."""
        pages = self._pages("list devices", "DeviceService", "ListDevices")
        return [_device(d) for page in pages for d in page.devices]

    def device(self, name: str) -> Device:
        """Returns a device by name."""
        return _device(self._call(f"show device {name}", "DeviceService", "GetDevice", name=name).device)

    def best(self, *, target: str = "", workloads: Sequence[str] = (), numerics: str = "") -> List[Record]:
        """Returns the fastest verified record of each workload (by digest; default all) and target (by fingerprint)."""
        pages = self._pages(
            "list best records",
            "RecordService",
            "BestRecords",
            target=target,
            workload_digests=workloads,
            numerics=numerics,
        )
        return [_record(r) for page in pages for r in page.records]

    def records(self, *, target: str = "", workload: str = "") -> Iterator[Record]:
        """Yields every record, including failures."""
        call = self._calls("RecordService", "ListRecords", target=target, workload_digest=workload)
        try:
            for answer in call:
                yield _record(answer.record)
        except grpc.RpcError as e:
            raise self._explain("list records", e) from e
        finally:
            call.cancel()

    def submit(
        self,
        model: Any,
        *,
        args: Any = None,
        time: Optional[tool.Duration] = None,
        trials: Optional[int] = None,
        shape: Optional[tool.Shapes] = None,
        device: Optional[str] = None,
        name: Optional[str] = None,
        seeds: Optional[Seeds] = None,
        **options: Any,
    ) -> Job:
        """Submits a job without waiting for it. The program does this, because it contains the compiler.

        Arguments are those of ``tune``; other ``options`` are flags of ``tilth jobs submit``, such as ``threads=4``.
        """
        import_seeds(seeds, None, self._program)
        with self._proof() as proof, files(model, args) as paths:
            words = [
                *tool.flags(tracker=self.address, time=tool.duration(time), trials=trials, shape=tool.shapes(shape)),
                *tool.flags(device=device, name=name, **options),
                *tool.security(**proof),
            ]
            row = tool.call_json(["jobs", "submit"], [*words, "--", *paths], program=self._program)
        return self.job(row["job"])

    def tune(self, model: Any, **options: Any) -> Tuned:
        """``tilth.tune`` on this farm."""
        with self._proof() as proof:
            return tune(model, tracker=self.address, program=self._program, **proof, **options)

    def close(self) -> None:
        """Closes the connection and cancels calls in progress."""
        self._ended.set()
        self._channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def _connect(self) -> grpc.Channel:
        options = [
            ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
        ]
        if not self._ca:
            return grpc.insecure_channel(self.address, options)
        credentials = grpc.ssl_channel_credentials(
            None if self._ca == "system" else _read(self._ca),
            _read(self._key) if self._key else None,
            _read(self._cert) if self._cert else None,
        )
        return grpc.secure_channel(self.address, credentials, options)

    def _metadata(self) -> Tuple[Tuple[str, str], ...]:
        token = _read(self._token_file).decode(errors="replace").strip() if self._token_file else self._token
        if not token:
            return ()
        if not all("!" <= c <= "~" for c in token):
            raise Error("the token is none: 'tilth tracker token create' makes one")
        return (("authorization", f"Bearer {token}"),)

    @contextmanager
    def _proof(self) -> Iterator[Dict[str, Any]]:
        """Returns the credential files for the program."""
        proof = {"ca": self._ca, "cert": self._cert, "key": self._key, "token_file": self._token_file}
        if not self._token:
            yield proof
            return
        with tempfile.NamedTemporaryFile("w", prefix="tilth-token-") as f:  # readable only by its owner
            f.write(self._token)
            f.flush()
            yield {**proof, "token_file": f.name}

    def _call(self, doing: str, service: str, method: str, **fields: Any) -> Any:
        try:
            return self._calls(service, method, timeout=self._timeout, **fields)
        except grpc.RpcError as e:
            raise self._explain(doing, e) from e

    def _pages(self, doing: str, service: str, method: str, **fields: Any) -> Iterator[Any]:
        token = ""
        while True:
            page = self._call(doing, service, method, page_size=_PAGE, page_token=token, **fields)
            yield page
            token = page.next_page_token
            if not token:
                return

    def _explain(self, doing: str, error: Any) -> Error:
        """Describes a failed call and its remedy without gRPC's vocabulary."""
        code, details = error.code(), " ".join((error.details() or "").split())
        who = f"tracker {self.address}"
        if code == grpc.StatusCode.UNAVAILABLE:
            tls = ", and its authority by ca= if it uses TLS" if not self._ca else f" (TLS by {self._ca})"
            return Error(f"{doing}: {who} cannot be reached: check that it runs, its address{tls}: {details}")
        if code == grpc.StatusCode.DEADLINE_EXCEEDED:
            return Error(f"{doing}: {who} does not answer: check whether it is overloaded, and try again")
        if code == grpc.StatusCode.UNAUTHENTICATED:
            return Error(f"{doing}: {who}: not authenticated: {details}")
        if code == grpc.StatusCode.UNIMPLEMENTED:
            return Error(f"{doing}: {who} does not know this call: use one version of tilth on both sides")
        return Error(f"{doing}: {details or code.name}")


def _check_address(address: str) -> None:
    if "," in address:
        raise Error(f"{address!r} is several addresses: name one of them")
    if address.startswith("unix:"):
        return
    host, _, port = address.rpartition(":")
    if "://" in address or not port.isdigit() or ":" in host.strip("[]") and not host.startswith("["):
        raise Error(f"address {address!r} is not host:port or unix:PATH")


def _is_local(address: str) -> bool:
    host = address.rpartition(":")[0].strip("[]")
    if address.startswith("unix:") or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as f:
            return f.read(1 << 20)
    except OSError as e:
        raise Error(f"reading {path}: {e.strerror}") from e


def _time(message: Any, field: str) -> Optional[datetime.datetime]:
    if not message.HasField(field):
        return None
    return _utc(getattr(message, field))


def _utc(timestamp: Any) -> datetime.datetime:
    began = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return began + datetime.timedelta(seconds=timestamp.seconds, microseconds=timestamp.nanos // 1000)


def _job(j: Any) -> Job:
    return Job(
        id=j.id,
        name=j.spec.name,
        owner=j.spec.owner,
        state=wire.enum_name("JobState", j.state, "JOB_STATE_"),
        reason=j.reason,
        wait=j.wait.message,
        target=j.spec.target.fingerprint,
        tasks=len(j.spec.tasks),
        trials=sum(p.trials for p in j.progress),
        created=_time(j, "created_at"),
        ended=_time(j, "ended_at"),
        message=j,
    )


def _device(d: Any) -> Device:
    spec = d.agent.spec
    return Device(
        name=spec.name,
        state=wire.enum_name("DeviceState", d.state, "DEVICE_STATE_"),
        why=d.quarantine.reason or d.cordon.reason,
        targets=tuple(c.name for c in spec.device_classes),
        labels=dict(spec.labels),
        leases=d.leases,
        message=d,
    )


def _event(e: Any) -> Event:
    kind = e.WhichOneof("event") or ""
    return Event(e.sequence, _utc(e.at), kind, getattr(e, kind) if kind else None)


def _record(r: Any) -> Record:
    m = r.measurement
    error = wire.enum_name("ErrorClass", m.error, "ERROR_CLASS_")
    return Record(
        workload=r.workload_digest,
        target=r.target,
        candidate=m.candidate.digest,
        latency=m.latency_seconds if error == "none" and m.latency_seconds > 0 else None,
        error="" if error == "none" else error,
        device=m.device,
        at=_utc(m.at).isoformat(),
        raw=r,
    )

"""A farm of real processes, closed by TLS and tokens, is called from Python."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
import unittest
from pathlib import Path
from typing import List

import tilth
from tilth import program

from . import support

try:
    import grpc  # noqa: F401
except ImportError:
    raise unittest.SkipTest("grpcio is not installed") from None


class Farm:
    """A tracker, a tuner, a builder and a runner of this machine."""

    def __init__(self) -> None:
        self.dir = tempfile.mkdtemp(dir=support.FOLDER, prefix="farm-")
        self.address = f"unix:{self.dir}/sock"
        self._running: List[subprocess.Popen[bytes]] = []
        # Harnesses that were built before serve this farm, too; scratch folders are its own.
        for part in ("builds", "rates"):
            kept = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "tilth", part)
            kept.mkdir(parents=True, exist_ok=True)
            Path(self.dir, "cache").mkdir(exist_ok=True)
            Path(self.dir, "cache", part).symlink_to(kept)
        program.call(["tracker", "certs", f"--dir={self.dir}/certs", "--host=tracker.test"])
        for name, role in (("alice", "client"), ("board", "agent")):
            program.call(
                ["tracker", "token", "create", name, f"--role={role}", f"--tokens={self.dir}/tokens.json"]
                + [f"--output={self.token(name)}"]
            )
        self.ca = f"{self.dir}/certs/ca.crt"

    def open(self) -> None:
        self.tracker = [f"--listen={self.address}", "--http=", f"--data={self.dir}/data"]
        self.tracker += [f"--tls-cert={self.dir}/certs/tracker.crt", f"--tls-key={self.dir}/certs/tracker.key"]
        self.start("tracker", *self.tracker, f"--tokens={self.dir}/tokens.json")
        self.await_tracker()
        agent = [f"--tracker={self.address}", f"--tls-ca={self.ca}", f"--token-file={self.token('board')}"]
        for kind in ("tuner", "builder", "runner"):
            more = ["--threads=1", "--label=rack=3"] if kind == "runner" else []
            self.start(kind, *agent, f"--cache={self.dir}/cache", *more)

    def token(self, name: str) -> str:
        return f"{self.dir}/{name}.token"

    def start(self, *words: str) -> None:
        with open(f"{self.dir}/{words[0]}.log", "ab") as log:
            self._running.append(
                subprocess.Popen([program.find(), *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            )

    def await_tracker(self) -> None:
        deadline = time.monotonic() + 60
        with self.client() as client:
            while True:
                try:
                    client.jobs()
                    return
                except tilth.Error:
                    if time.monotonic() > deadline or self._running[0].poll() is not None:
                        raise
                time.sleep(0.05)

    def stop(self) -> None:
        for process in reversed(self._running):
            process.terminate()
        for process in self._running:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def client(self, **options: object) -> tilth.Client:
        proof = {"ca": self.ca, "token_file": self.token("alice")}
        return tilth.Client(self.address, **proof, **options)  # type: ignore[arg-type]


class Calling(unittest.TestCase):
    farm: Farm

    @classmethod
    def setUpClass(cls) -> None:
        cls.farm = Farm()
        cls.addClassCleanup(cls.farm.stop)
        cls.farm.open()

    def test_a_job_is_submitted_watched_and_its_records_read(self) -> None:
        with self.farm.client() as farm:
            tuned = farm.tune(support.mlp(), trials=4, tasks="0", wait="5m", name="first", seed=1)
            self.assertEqual((tuned.state, tuned.trials), ("done", 4))

            job = farm.submit(support.mlp(), trials=2, device="rack=3", name="second", tasks="1")
            self.assertEqual((job.name, job.owner, job.tasks), ("second", "alice", 1))
            events = list(farm.watch(job.id))
            self.assertEqual([e.sequence for e in events], list(range(1, len(events) + 1)))
            self.assertEqual(sum(e.kind == "trial" for e in events), 2)
            self.assertEqual(events[-1].kind, "state")
            self.assertEqual([e.sequence for e in farm.watch(job.id, after=2)], [e.sequence for e in events[2:]])

            job = farm.job(job.id)
            self.assertTrue(job.over and job.state == "done" and job.trials == 2, job)
            self.assertTrue(job.created is not None and job.ended is not None and job.created <= job.ended)
            self.assertEqual([j.name for j in farm.jobs()], ["second", "first"])
            self.assertEqual([j.id for j in farm.jobs(name="FIRST", states=["done"])], [tuned.job])
            self.assertEqual(farm.jobs(states=["queued"]), [])

            (device,) = farm.devices()
            self.assertEqual((device.state, device.labels, device.targets), ("ready", {"rack": "3"}, device.targets))
            self.assertEqual(farm.device(device.name).name, device.name)

            best = farm.best(target=tuned.target)
            self.assertEqual(len(best), 2)
            self.assertIn(tuned.best, [r.latency for r in best])
            (task, *_) = tilth.tasks(support.mlp())
            made = list(farm.records(target=tuned.target, workload=task.workload))
            self.assertEqual(len(made), 4)
            self.assertTrue(all((r.latency is None) == bool(r.error) for r in made))

            job = farm.submit(support.mlp(), time="10m")
            cancelled = farm.cancel(job.id, "no longer wanted")
            self.assertEqual((cancelled.state, cancelled.reason), ("cancelled", "no longer wanted"))
            self.assertEqual(list(farm.watch(job.id))[-1].kind, "state")

    def test_refusals_are_told_in_the_trackers_words(self) -> None:
        with self.farm.client() as farm:
            with self.assertRaisesRegex(tilth.Error, "show job job-00000099-abcdef: .*job"):
                farm.job("job-00000099-abcdef")
            with self.assertRaisesRegex(tilth.Error, "there is no state 'STATE_EATEN'|there is no state"):
                farm.jobs(states=["eaten"])
        with tilth.Client(self.farm.address, ca=self.farm.ca, token="wrong") as nobody:
            with self.assertRaisesRegex(tilth.Error, "not authenticated"):
                nobody.jobs()
        token = Path(self.farm.token("alice")).read_text(encoding="ascii").strip()
        with tilth.Client(self.farm.address, ca=self.farm.ca, token=token) as alice:
            self.assertIsInstance(alice.jobs(), list)
            with self.assertRaisesRegex(tilth.ProgramError, "no such file"):
                alice.submit("/no/model.onnx")
        with tilth.Client(self.farm.address, timeout=5) as plain, self.assertRaisesRegex(tilth.Error, "list jobs: "):
            plain.jobs()


class Addresses(unittest.TestCase):
    def test_what_is_no_address_is_refused(self) -> None:
        for address in ("https://tracker:9190", "tracker", "tracker:port", "::1:9190:", "a:1,b:2"):
            with self.subTest(address), self.assertRaises(tilth.Error):
                tilth.Client(address)
        with self.assertRaisesRegex(tilth.Error, "cannot be reached: check that it runs"):
            tilth.Client(f"unix:{support.FOLDER}/nobody").jobs()

    def test_a_token_is_not_sent_in_the_clear(self) -> None:
        for address in ("tracker.example.com:9190", "192.0.2.1:9190", "[2001:db8::1]:9190"):
            with self.subTest(address), self.assertRaisesRegex(tilth.Error, "in the clear"):
                tilth.Client(address, token="secret")
        for address in ("127.0.0.1:9190", "localhost:9190", "[::1]:9190"):
            tilth.Client(address, token="secret").close()

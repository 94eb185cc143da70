package tracker_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/artifact"
	tilthfarm "github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/lab/testkit/pgserver"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
)

// takeoverEnv makes the test binary act as a tracker on a database. It holds its folder, the database's address and
// the number of shards, one per line.
const takeoverEnv = "TILTH_TEST_TAKEOVER"

// rivalProcess runs such a tracker. It waits on standby while another one has the database.
func rivalProcess(dir, address, shards string) error {
	n, err := strconv.Atoi(shards)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cfg := tilthfarm.TrackerConfig{
		Store: address, Shards: n, Listen: "unix:" + filepath.Join(dir, "sock"), HTTP: "unix:" + filepath.Join(dir, "web"), ObjectStore: os.Getenv(objectsEnv),
		Tracker: tracker.Config{ArtifactsDir: filepath.Join(dir, "artifacts"), Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))},
	}
	if _, err := os.Stat(filepath.Join(dir, "tokens.json")); err == nil { // tokens imply a certificate
		cfg.Security = tilthfarm.Security{
			Cert: filepath.Join(dir, "tracker.crt"), Key: filepath.Join(dir, "tracker.key"), ClientCA: filepath.Join(dir, "ca.crt"),
			Tokens: filepath.Join(dir, "tokens.json"),
		}
	}
	return tilthfarm.RunTracker(ctx, cfg)
}

// rival is one of two trackers of a database, in a separate process.
type rival struct {
	*testing.T
	dir, database string
	shards        int
	program       []string // with arguments; nil = this program
	cmd           *exec.Cmd
	jobs          tilthv1.JobServiceClient // a client of this tracker only
}

func newRival(t *testing.T, database, artifacts string) *rival {
	t.Helper()
	return newRivalOf(t, database, 1, artifacts)
}

// servingAndStandingBy returns two trackers of a database. The first one serves.
func servingAndStandingBy(t *testing.T) (a, b *rival, address string) {
	t.Helper()
	address = pgserver.DatabaseForTest(t)
	artifacts := t.TempDir()
	a = newRival(t, address, artifacts)
	a.serves()
	b = newRival(t, address, artifacts)
	b.standsBy()
	return a, b, address
}

// newRivalOf returns one of two trackers of a sharded database, each with a folder of artifacts.
func newRivalOf(t *testing.T, database string, shards int, artifacts ...string) *rival {
	t.Helper()
	r := makeRival(t, database, shards, artifacts...)
	r.start()
	return r
}

// makeRival is newRivalOf without starting the tracker.
func makeRival(t *testing.T, database string, shards int, artifacts ...string) *rival {
	t.Helper()
	r := &rival{T: t, dir: t.TempDir(), database: database, shards: shards}
	for i, folder := range artifacts {
		name := "artifacts"
		if i > 0 {
			name = fmt.Sprint("artifacts-", i)
		}
		if err := os.Symlink(folder, filepath.Join(r.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := agent.Dial(r.address())
	if err != nil {
		t.Fatal(err)
	}
	r.jobs = tilthv1.NewJobServiceClient(conn)
	t.Cleanup(func() {
		conn.Close()
		if r.cmd != nil {
			r.kill()
		}
	})
	return r
}

func (r *rival) address() string { return "unix:" + filepath.Join(r.dir, "sock") }

func (r *rival) start() {
	r.Helper()
	r.cmd = exec.Command(os.Args[0])
	r.cmd.Env = append(os.Environ(), takeoverEnv+"="+r.dir+"\n"+r.database+"\n"+strconv.Itoa(r.shards))
	if r.program != nil {
		r.cmd = exec.Command(r.program[0], r.program[1:]...)
	}
	if err := r.cmd.Start(); err != nil {
		r.Fatal(err)
	}
}

func (r *rival) kill() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}

func (r *rival) signal(s syscall.Signal) {
	r.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.Fatal(err)
	}
}

// ask makes a call that only a serving tracker answers.
func (r *rival) ask() error {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	_, err := r.jobs.ListJobs(ctx, &tilthv1.ListJobsRequest{})
	return err
}

// serves waits until the tracker serves. stands waits until it is on standby.
func (r *rival) serves() {
	r.Helper()
	r.until("serves", func(err error) bool { return err == nil })
}

func (r *rival) standsBy() {
	r.Helper()
	r.until("stands by", func(err error) bool { return wire.Reason(err) == wire.ReasonStandby })
}

func (r *rival) until(what string, is func(error) bool) {
	r.Helper()
	for end := time.Now().Add(10 * time.Minute); !is(r.ask()); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			r.Fatalf("it did not come to be that the tracker %s: %v", what, r.ask())
		}
	}
}

// TestJobGoesOnWithTheTrackerThatTakesOver kills one of two trackers and stops the other during a job. Each time the
// standby takes over, and agents that know both addresses finish the job. No trial may be lost or repeated.
func TestJobGoesOnWithTheTrackerThatTakesOver(t *testing.T) {
	t.Parallel() // mostly waits
	a, b, _ := servingAndStandingBy(t)
	conn, err := agent.Dial(b.address() + "," + a.address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // detects a hang
	defer cancel()
	submitted, err := tilthv1.NewJobServiceClient(conn).SubmitJob(ctx, &tilthv1.SubmitJobRequest{RequestId: "r", Spec: spec("conv")})
	if err != nil {
		t.Fatal(err)
	}
	w := &workers{conn: conn, dir: t.TempDir()}
	uploader := artifact.NewClient(conn, nil, w.logger())
	w.upload = func(ctx context.Context, path string) (*tilthv1.ArtifactRef, error) {
		return uploader.Upload(ctx, "candidates", path)
	}
	living, stopAgents := context.WithCancel(ctx)
	var agents sync.WaitGroup
	defer agents.Wait()
	defer stopAgents()
	runWorkers(living, t, &agents, w)
	var seen []*tilthv1.JobEvent
	err = agent.Watch(ctx, conn, w.logger(), &tilthv1.WatchJobRequest{JobId: submitted.GetJob().GetId()}, func(e *tilthv1.JobEvent) error {
		switch seen = append(seen, e); len(seen) {
		case 20:
			began := time.Now()
			a.kill()
			b.serves()
			t.Logf("taken over %v after a kill", time.Since(began))
			a.start()
			a.standsBy()
		case 40:
			began := time.Now()
			b.signal(syscall.SIGSTOP)
			a.serves()
			t.Logf("taken over %v after a stop", time.Since(began))
			b.signal(syscall.SIGCONT)
			b.refuses()
			b.standsBy()
		}
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	check(t, seen)
}

// refuses checks that a suspended tracker that lost its database changes nothing.
func (r *rival) refuses() {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), 10*time.Minute)
	defer cancel()
	_, err := r.jobs.SubmitJob(ctx, &tilthv1.SubmitJobRequest{RequestId: "late", Spec: spec("conv")})
	if status.Code(err) != codes.Unavailable {
		r.Errorf("a tracker that was taken over submits a job: %v", err)
	}
}

// refuseTakeovers makes the database refuse takeovers, like a server that is shutting down. tried waits for n
// refusals, and allow ends them.
func refuseTakeovers(t *testing.T, database string) (tried func(n int64), allow func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	do := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	do(`CREATE SEQUENCE tilth.refused;
		CREATE FUNCTION tilth.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			PERFORM nextval('tilth.refused');
			RAISE EXCEPTION 'the server is about to go away' USING ERRCODE = 'admin_shutdown';
		END $$;
		CREATE TRIGGER refuse BEFORE UPDATE OF epoch ON tilth.tracker FOR EACH ROW EXECUTE FUNCTION tilth.refuse()`)
	tried = func(n int64) {
		t.Helper()
		var count int64
		for end := time.Now().Add(10 * time.Minute); count < n; time.Sleep(20 * time.Millisecond) {
			if err := conn.QueryRow(t.Context(), "SELECT last_value - (NOT is_called)::int FROM tilth.refused").Scan(&count); err != nil {
				t.Fatal(err)
			}
			if time.Now().After(end) {
				t.Fatalf("the database was taken over %d times, not %d", count, n)
			}
		}
	}
	return tried, func() { do("DROP TRIGGER refuse ON tilth.tracker") }
}

// TestTrackerThatStandsByOutlivesADatabaseThatRefusesIt is a regression test: a standby exited if its database went
// away during the takeover.
func TestTrackerThatStandsByOutlivesADatabaseThatRefusesIt(t *testing.T) {
	t.Parallel() // mostly waits
	a, b, database := servingAndStandingBy(t)
	tried, allow := refuseTakeovers(t, database)
	a.kill()
	tried(2)
	b.standsBy()
	allow()
	b.serves()
}

// TestTrackerThatStartsBeforeItsDatabaseWaitsForIt is a regression test: a tracker exited if its database was
// unavailable at the start.
func TestTrackerThatStartsBeforeItsDatabaseWaitsForIt(t *testing.T) {
	for name, shards := range map[string]int{"alone": 1, "of several shards": someShards} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // mostly waits
			server, database := pgserver.ForTest(t)
			server.Kill()
			var artifacts []string
			for range shards {
				artifacts = append(artifacts, t.TempDir())
			}
			r := newRivalOf(t, database, shards, artifacts...)
			r.until("waits", func(err error) bool {
				return wire.Reason(err) == wire.ReasonStandby && strings.Contains(err.Error(), "the database server is unavailable")
			})
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
			r.serves()
		})
	}
}

// TestOfTwoTrackersThatStartAtOnceOneServes checks that exactly one serves.
func TestOfTwoTrackersThatStartAtOnceOneServes(t *testing.T) {
	t.Parallel() // mostly waits
	database := pgserver.DatabaseForTest(t)
	artifacts := t.TempDir()
	both := []*rival{newRival(t, database, artifacts), newRival(t, database, artifacts)}
	first := both[0]
	first.until("has begun", func(err error) bool { return err == nil || wire.Reason(err) == wire.ReasonStandby })
	if first.ask() != nil {
		both[0], both[1] = both[1], both[0]
	}
	both[0].serves()
	both[1].standsBy()
	both[0].signal(syscall.SIGTERM)
	_ = both[0].cmd.Wait()
	both[1].serves()
	if _, err := net.Dial("unix", strings.TrimPrefix(both[0].address(), "unix:")); err == nil {
		t.Error("the one that stopped still listens")
	}
}

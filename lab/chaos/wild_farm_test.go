package chaos

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"pgregory.net/rapid"
)

// inMemory returns a folder in a memory file system, if available, because these tests need no disk.
func inMemory() string {
	const dir = "/dev/shm"
	if info, err := os.Stat(dir); err == nil && info.IsDir() && unix.Access(dir, unix.W_OK) == nil {
		return dir
	}
	return ""
}

// makeCallers creates a token for each role.
func makeCallers(t *rapid.T, dir string) map[access.Role]string {
	callers := map[access.Role]string{}
	for _, role := range []access.Role{access.ReadOnly, access.Client, access.Agent, access.Admin} {
		text, _, err := access.CreateToken(filepath.Join(dir, tokensName), access.TokenRequest{Name: string(role), Role: role}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		callers[role] = text
	}
	return callers
}

// serveWild serves a tracker on the data in dir, with its authentication and limits.
func serveWild(t *rapid.T, dir string) (conn *grpc.ClientConn, stop func()) {
	db, err := bolt.Open(filepath.Join(dir, recordsName), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var security tracker.Security
	security.Tokens, err = access.OpenTokens(filepath.Join(dir, tokensName), quiet, nil)
	if err != nil {
		t.Fatal(err)
	}
	log, err := access.OpenAuditFile(filepath.Join(dir, "audit.jsonl"), 1<<20, 1)
	if err != nil {
		t.Fatal(err)
	}
	security.Audit = access.NewAuditLog(log, quiet)
	tr, err := tracker.New(tracker.Config{
		Store: db, ArtifactsDir: filepath.Join(dir, artifactsName), FirstRetry: -1, Security: security,
	})
	if err != nil {
		t.Fatal(err)
	}
	listener := bufconn.Listen(1 << 20)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- tr.Serve(ctx, listener, nil) }()
	conn, err = grpc.NewClient("passthrough:wild", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	return conn, func() {
		conn.Close()
		cancel()
		if err := <-served; err != nil {
			t.Fatalf("the tracker stopped: %v", err)
		}
		if err := errors.Join(db.Close(), security.Audit.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// caller returns a context with credentials: usually those of a role that may make the call, or else another's, wrong
// ones, or none.
func (w *wild) caller(path string) context.Context {
	role := access.Client
	for _, service := range []string{"AgentService", "SearchService", "BuildService", "MeasureService", "RunService", "ReportCalibration"} {
		if strings.Contains(path, service) {
			role = access.Agent
		}
	}
	switch rapid.IntRange(0, 19).Draw(w.T, "caller") {
	case 0:
		return context.Background()
	case 1:
		return withToken("tilth_wrong")
	case 2, 3:
		role = access.Admin
	case 4:
		role = access.ReadOnly
	case 5:
		role = access.Client
	}
	return withToken(w.callers[role])
}

// bound limits the duration of a call.
func (w *wild) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	w.calls++
	return context.WithTimeout(ctx, time.Minute)
}

// checkStore checks the logs of all jobs in a records file, and its pages.
func checkStore(t *rapid.T, path string) {
	if err := consistent(path); err != nil {
		t.Fatal(err)
	}
	db, err := bolt.OpenReadOnly(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	jobs, _, err := db.Jobs(records.JobQuery{Max: 1 << 20, MaxBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	c := &checker{db: db, jobs: map[string]*storedJob{}, amid: true, prunes: true}
	for _, j := range jobs {
		if err := c.readJob(j.GetId()); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.Violations) > 0 {
		t.Fatal(strings.Join(c.Violations, "\n"))
	}
}

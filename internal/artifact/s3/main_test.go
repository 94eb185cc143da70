package s3_test

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/artifact/s3"
	"github.com/tilth-dev/tilth/lab/testkit/s3server"
	"github.com/tilth-dev/tilth/records"
)

// common is the server shared by all tests that do not kill it.
var common struct {
	once   sync.Once
	server *s3server.Server
	err    error
}

func TestMain(m *testing.M) {
	os.Setenv("AWS_ACCESS_KEY_ID", s3server.AccessKey)
	os.Setenv("AWS_SECRET_ACCESS_KEY", s3server.SecretKey)
	code := m.Run()
	if common.server != nil {
		_ = common.server.Stop()
	}
	os.Exit(code)
}

func commonServer(t *testing.T) *s3server.Server {
	t.Helper()
	if testing.Short() {
		t.Skip("slow: it builds an object store")
	}
	common.once.Do(func() { common.server, common.err = s3server.New() })
	if common.err != nil {
		t.Fatal(common.err)
	}
	return common.server
}

// keeper is a storage of artifacts in a test.
type keeper struct {
	bucket  string                              // empty = a folder
	options func(t *testing.T) artifact.Options // for another store on the same storage
	path    func(digest string) string          // of the file of an artifact
}

// keepers returns one keeper of each kind.
func keepers(t *testing.T) map[string]keeper {
	dir := t.TempDir()
	all := map[string]keeper{
		"folder": {
			options: func(*testing.T) artifact.Options { return artifact.Options{Dir: dir} },
			path:    func(digest string) string { return filepath.Join(dir, digest[:2], digest) },
		},
	}
	if !testing.Short() { // slow: builds an object store
		all["bucket"] = bucketKeeper(t, commonServer(t))
	}
	return all
}

func bucketKeeper(t *testing.T, server *s3server.Server) keeper {
	name := newBucket(t, server)
	return keeper{
		bucket: name,
		options: func(t *testing.T) artifact.Options {
			return artifact.Options{Dir: t.TempDir(), Blobs: bucket(t, server, name)}
		},
		path: func(digest string) string {
			all, err := filepath.Glob(server.File(name, "farm/"+digest[:2]+"/"+digest+".*"))
			if err != nil || len(all) != 1 {
				t.Fatalf("artifact %s is in %v, %v", digest, all, err)
			}
			return all[0]
		},
	}
}

func newBucket(t *testing.T, server *s3server.Server) string {
	t.Helper()
	name := fmt.Sprintf("b%d", time.Now().UnixNano())
	if err := server.MakeBucket(name); err != nil {
		t.Fatal(err)
	}
	return name
}

func bucket(t *testing.T, server *s3server.Server, name string) *s3.Bucket {
	t.Helper()
	return open(t, fmt.Sprintf("s3://%s/farm?endpoint=%s&region=%s", name, server.Endpoint(), s3server.Region))
}

func open(t *testing.T, address string) *s3.Bucket {
	t.Helper()
	a, err := s3.ParseAddress(address)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s3.Open(a)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// clock is a settable clock.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *clock) forward(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += by
}

// store is a store with running maintenance that records the damage that it finds.
type store struct {
	*artifact.Store
	damaged chan string
	stop    func()
}

// run opens a store that needs some contents, and runs it until the test ends.
func run(t *testing.T, opts artifact.Options, needs ...string) *store {
	t.Helper()
	s := &store{damaged: make(chan string, 100)}
	opts.Damaged = func(digest string) { s.damaged <- digest }
	opts.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	var err error
	if s.Store, err = artifact.Open(opts); err != nil {
		t.Fatal(err)
	}
	for _, content := range needs {
		s.Pin(digestOf(content))
	}
	s.stop = runOpen(t, s.Store)
	return s
}

// runOpen runs a store until the test ends or stop is called.
func runOpen(t *testing.T, s *artifact.Store) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(stop)
	return stop
}

func digestOf(content string) string { return records.Digest([]byte(content)) }

func put(t *testing.T, s *artifact.Store, identity string, contents ...string) {
	t.Helper()
	for _, c := range contents {
		if err := upload(s, identity, c); err != nil {
			t.Fatal(err)
		}
	}
}

func upload(s *artifact.Store, identity, content string) error {
	up := artifact.Upload{Identity: identity, Digest: digestOf(content), SizeBytes: int64(len(content))}
	return s.Put(context.Background(), up, strings.NewReader(content))
}

// get returns a store's artifact from an offset.
func get(s *artifact.Store, content string, offset int64) (string, error) {
	var out strings.Builder
	err := s.Send(context.Background(), digestOf(content), offset, func(b []byte) error {
		out.Write(b)
		return nil
	})
	return out.String(), err
}

// has reports whether a store has an intact artifact.
func has(t *testing.T, s *artifact.Store, content string) bool {
	t.Helper()
	there, err := s.Confirm(t.Context(), digestOf(content))
	if err != nil {
		t.Fatal(err)
	}
	return there
}

// eventually waits until is returns true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for !is() {
		select {
		case <-ctx.Done():
			t.Fatalf("after a minute: not %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// rot flips a bit of an artifact without changing the file's metadata, like a failing disk.
func rot(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	bytes, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bytes[len(bytes)/2] ^= 1
	if err := os.WriteFile(path, bytes, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
}

// files counts the files below a folder.
func files(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

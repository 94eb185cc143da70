package artifact_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/records"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, opts artifact.Options) *artifact.Store {
	t.Helper()
	if opts.Dir == "" {
		opts.Dir = t.TempDir()
	}
	s, err := artifact.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// unit is the accounting unit of small artifacts.
const unit = 16 << 10

// upload returns an upload of content by an identity.
func upload(identity, content string) artifact.Upload {
	return artifact.Upload{Identity: identity, Digest: records.Digest([]byte(content)), SizeBytes: int64(len(content))}
}

func put(s *artifact.Store, content string) error { return putAs(s, "", content) }

func putAs(s *artifact.Store, identity, content string) error {
	return s.Put(context.Background(), upload(identity, content), strings.NewReader(content))
}

// received returns the number of bytes that an interrupted upload left.
func received(t *testing.T, s *artifact.Store, identity, content string) int64 {
	t.Helper()
	n, err := s.Received(t.Context(), identity, records.Digest([]byte(content)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func mustPut(t *testing.T, s *artifact.Store, contents ...string) {
	t.Helper()
	for _, c := range contents {
		if err := put(s, c); err != nil {
			t.Fatal(err)
		}
	}
}

// present lists which of the contents are complete.
func present(s *artifact.Store, contents ...string) (out string) {
	for _, c := range contents {
		if complete, _ := s.Stat(records.Digest([]byte(c))); complete {
			out += c[:1]
		}
	}
	return out
}

// files lists the files in a folder.
func files(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, d.Name())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestStoredArtifactsAreServed(t *testing.T) {
	dir := t.TempDir()
	s := open(t, artifact.Options{Dir: dir})
	mustPut(t, s, "hello", "hello", "")
	s = open(t, artifact.Options{Dir: dir})
	path, release, err := s.Use(records.Digest([]byte("hello")))
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if got, err := os.ReadFile(path); string(got) != "hello" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if s.Stats().UsedBytes != 2*unit {
		t.Errorf("%d bytes are used, want room for two", s.Stats().UsedBytes)
	}
	if _, _, err := s.Use(records.Digest([]byte("other"))); !errors.Is(err, artifact.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestLeastRecentlyUsedGoesFirstButNothingInUse(t *testing.T) {
	dir := t.TempDir()
	s := open(t, artifact.Options{Dir: dir, CapBytes: 3 * unit, UploadBytes: 3 * unit})
	large := strings.Repeat("e", unit+1) // two units
	mustPut(t, s, "aaa", "bbb", "ccc")
	_, release, err := s.Use(records.Digest([]byte("aaa")))
	if err != nil {
		t.Fatal(err)
	}
	release()
	mustPut(t, s, "ddd")
	if got := present(s, "aaa", "bbb", "ccc", "ddd"); got != "acd" {
		t.Errorf("%s are left, want acd", got)
	}
	s.Pin(records.Digest([]byte("ccc")), records.Digest([]byte(large)))
	mustPut(t, s, large)
	if got := present(s, "aaa", "bbb", "ccc", "ddd", large); got != "ce" {
		t.Errorf("%s are left, want ce", got)
	}
	err = put(s, "ffff")
	if !errors.Is(err, artifact.ErrFull) || !strings.Contains(err.Error(), "may hold 49152 bytes, 49152 are in use and 16384 more are needed") {
		t.Errorf("got %v", err)
	}
	s.Unpin(records.Digest([]byte("ccc")))
	mustPut(t, s, "ffff")
	if got := files(t, dir); len(got) != 2 {
		t.Errorf("files %v", got)
	}
}

func TestBrokenUploadIsResumed(t *testing.T) {
	dir := t.TempDir()
	s := open(t, artifact.Options{Dir: dir})
	content := strings.Repeat("0123456789", 1000)
	up := upload("ana", content)
	broken := io.MultiReader(strings.NewReader(content[:4321]), iotest.ErrReader(errors.New("line cut")))
	if err := s.Put(t.Context(), up, broken); err == nil || !strings.Contains(err.Error(), "line cut") {
		t.Fatalf("got %v", err)
	}
	s = open(t, artifact.Options{Dir: dir})
	if n := received(t, s, "ana", content); n != 4321 {
		t.Fatalf("%d bytes were received", n)
	}
	if n := received(t, s, "ben", content); n != 0 {
		t.Errorf("another identity is told of %d bytes", n)
	}
	up.Offset = 4320
	if err := s.Put(t.Context(), up, strings.NewReader(content[4320:])); !errors.Is(err, artifact.ErrOffset) {
		t.Errorf("going on elsewhere: %v", err)
	}
	up.Offset = 4321
	if err := s.Put(t.Context(), up, strings.NewReader(content[4321:])); err != nil {
		t.Fatal(err)
	}
	if got := files(t, dir); present(s, content) != "0" || s.Stats().UsedBytes != 6<<12 || len(got) != 1 {
		t.Errorf("files %v, %d bytes used", got, s.Stats().UsedBytes)
	}
}

func TestBadUploadsLeaveNothing(t *testing.T) {
	digest := records.Digest([]byte("hello"))
	for name, c := range map[string]struct {
		digest string
		size   int64
		src    string
		want   error
	}{
		"other bytes":    {digest, 5, "jello", artifact.ErrDigest},
		"too many":       {digest, 5, "hello!", artifact.ErrSize},
		"too few":        {digest, 5, "hell", artifact.ErrSize},
		"beyond the cap": {digest, 1 << 40, "hello", artifact.ErrFull},
		"beyond numbers": {digest, math.MaxInt64 - 1, "hello", artifact.ErrFull},
		"less than none": {digest, -1, "hello", artifact.ErrSize},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, artifact.Options{Dir: dir})
			mustPut(t, s, "other")
			up := artifact.Upload{Digest: c.digest, SizeBytes: c.size}
			if err := s.Put(t.Context(), up, strings.NewReader(c.src)); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if got := files(t, dir); len(got) != 1 || s.Stats().UsedBytes != unit {
				t.Errorf("left %v, %d bytes used, want what was there before", got, s.Stats().UsedBytes)
			}
			mustPut(t, s, "hello")
		})
	}
	if err := open(t, artifact.Options{}).Put(t.Context(), artifact.Upload{Digest: "../../etc/passwd", SizeBytes: 1}, strings.NewReader("x")); err == nil {
		t.Error("a name that is not a digest was stored")
	}
}

// fullDisk is a file system with limited space.
type fullDisk struct {
	artifact.OS
	free int
}

type fullFile struct {
	artifact.File
	disk *fullDisk
}

func (d *fullDisk) OpenAppend(path string) (artifact.File, error) {
	f, err := d.OS.OpenAppend(path)
	return &fullFile{f, d}, err
}

func (f *fullFile) Write(b []byte) (int, error) {
	if len(b) > f.disk.free {
		n, _ := f.File.Write(b[:f.disk.free])
		f.disk.free = 0
		return n, &os.PathError{Op: "write", Path: "part", Err: syscall.ENOSPC}
	}
	f.disk.free -= len(b)
	return f.File.Write(b)
}

func TestFullDiskIsReportedAndLeavesNoPart(t *testing.T) {
	dir := t.TempDir()
	disk := &fullDisk{free: 3}
	s := open(t, artifact.Options{Dir: dir, FS: disk})
	err := put(s, "hello")
	if !errors.Is(err, artifact.ErrFull) || !strings.Contains(err.Error(), fmt.Sprintf("the disk of %s is full: free some", dir)) {
		t.Errorf("got %v", err)
	}
	if got := files(t, dir); len(got) > 0 || s.Stats().UsedBytes != 0 {
		t.Errorf("left %v, %d bytes used", got, s.Stats().UsedBytes)
	}
	disk.free = 100
	mustPut(t, s, "hello")
}

// noted is a file system that records the operations that make an artifact durable.
type noted struct {
	artifact.OS
	steps *[]string
}

type notedFile struct {
	artifact.File
	steps *[]string
}

func (n noted) note(step string) { *n.steps = append(*n.steps, step) }

func (n noted) OpenAppend(path string) (artifact.File, error) {
	f, err := n.OS.OpenAppend(path)
	return notedFile{f, n.steps}, err
}

func (f notedFile) Sync() error {
	*f.steps = append(*f.steps, "sync the file")
	return f.File.Sync()
}

func (n noted) Rename(from, to string) error {
	n.note("name it")
	return n.OS.Rename(from, to)
}

func (n noted) MakeDir(path string) error {
	n.note("make the folder")
	return n.OS.MakeDir(path)
}

func (n noted) SyncDir(path string) error {
	n.note("sync the folder " + filepath.Base(path)[:1])
	return n.OS.SyncDir(path)
}

// TestArtifactOutlivesAPowerCutOnceItIsStored checks that the bytes, the name and the folder are synced when Put
// returns.
func TestArtifactOutlivesAPowerCutOnceItIsStored(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	var steps []string
	mustPut(t, open(t, artifact.Options{Dir: dir, FS: noted{steps: &steps}}), "hello") // its digest begins with 2cf2
	const want = "sync the folder s, make the folder, sync the folder s, sync the file, name it, sync the folder 2"
	if got := strings.Join(steps, ", "); got != want {
		t.Errorf("steps are: %s", got)
	}
}

func TestManyUploadsOfOneArtifactStoreItOnce(t *testing.T) {
	s := open(t, artifact.Options{})
	content := bytes.Repeat([]byte("x"), 1<<20)
	var uploads sync.WaitGroup
	for range 8 {
		uploads.Go(func() {
			if err := s.Put(context.Background(), upload("", string(content)), iotest.HalfReader(bytes.NewReader(content))); err != nil {
				t.Error(err)
			}
		})
	}
	uploads.Wait()
	if s.Stats().UsedBytes != 1<<20+12<<10 || present(s, string(content)) != "x" {
		t.Errorf("%d bytes are used", s.Stats().UsedBytes)
	}
}

package artifact_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/records"
)

// badSync is a file system whose next syncs fail once each, like a disk that lost its write cache: the following sync
// succeeds.
type badSync struct {
	artifact.OS
	file, folder bool
}

type badFile struct {
	artifact.File
	disk *badSync
}

func (d *badSync) OpenAppend(path string) (artifact.File, error) {
	f, err := d.OS.OpenAppend(path)
	return &badFile{f, d}, err
}

func (f *badFile) Sync() error {
	if f.disk.file {
		f.disk.file = false
		return syscall.EIO
	}
	return f.File.Sync()
}

func (d *badSync) SyncDir(path string) error {
	if d.folder {
		d.folder = false
		return syscall.EIO
	}
	return d.OS.SyncDir(path)
}

func TestFailedSyncEndsTheFilesLife(t *testing.T) {
	line := errors.New("line cut")
	for name, c := range map[string]struct {
		fail func(*badSync)
		src  io.Reader
		want error
	}{
		"of the whole":                  {func(d *badSync) { d.file = true }, strings.NewReader("hello"), syscall.EIO},
		"of its folder":                 {func(d *badSync) { d.folder = true }, strings.NewReader("hello"), syscall.EIO},
		"of an upload that broke off":   {func(d *badSync) { d.file = true }, io.MultiReader(strings.NewReader("hel"), iotest.ErrReader(line)), line},
		"of all, by one that broke off": {func(d *badSync) { d.file = true }, io.MultiReader(strings.NewReader("hello"), iotest.ErrReader(line)), syscall.EIO},
	} {
		t.Run(name, func(t *testing.T) {
			dir, disk := t.TempDir(), &badSync{}
			s := open(t, artifact.Options{Dir: dir, FS: disk})
			mustPut(t, s, besides("hello")) // creates the folder
			before := len(files(t, dir))
			c.fail(disk)
			if err := s.Put(t.Context(), upload("ana", "hello"), c.src); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if present(s, "hello") != "" || received(t, s, "ana", "hello") != 0 {
				t.Error("what may be lost is there")
			}
			if got := files(t, dir); len(got) != before || s.Stats().UsedBytes != unit {
				t.Errorf("left %v, %d bytes used", got, s.Stats().UsedBytes)
			}
			mustPut(t, s, "hello")
			if got := files(t, dir); len(got) != before+1 {
				t.Errorf("uploaded again: %v", got)
			}
		})
	}
}

func TestClientSendsAgainWhatADiskLost(t *testing.T) {
	store := open(t, artifact.Options{FS: &badSync{file: true}})
	path, content := randomFile(t, 1000)
	client := artifact.NewClient(serve(t, store), nil, slog.New(slog.DiscardHandler))
	if _, err := client.Upload(t.Context(), "candidates", path); err != nil {
		t.Fatal(err)
	}
	if there, err := store.Confirm(t.Context(), records.Digest(content)); !there || err != nil {
		t.Errorf("there: %v, %v", there, err)
	}
}

// besides returns content that is stored in the same folder as another one.
func besides(content string) string {
	for n := 0; ; n++ {
		if other := fmt.Sprint(n); records.Digest([]byte(other))[:2] == records.Digest([]byte(content))[:2] {
			return other
		}
	}
}

func TestUploadThatWasUnderWayWhenTheProcessEndedIsNotBelieved(t *testing.T) {
	dir := t.TempDir()
	s := open(t, artifact.Options{Dir: dir})
	h := hold(t, s, upload("ana", "hello"), "hel")
	older := filepath.Join(dir, "2c", records.Digest([]byte("hello"))+".part") // unsynced, as in older versions
	if err := os.WriteFile(older, []byte("hel"), 0o644); err != nil {
		t.Fatal(err)
	}
	again := open(t, artifact.Options{Dir: dir})
	if got := files(t, dir); len(got) != 0 || again.Stats().UsedBytes != 0 {
		t.Errorf("left %v", got)
	}
	_ = h.end()
}

package artifact_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/filesystem"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// rot flips a bit of an artifact without changing the file's metadata, like a failing disk.
func rot(t *testing.T, dir, content string) {
	t.Helper()
	digest := records.Digest([]byte(content))
	path := filepath.Join(dir, digest[:2], digest)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	bytes, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bytes[len(bytes)/2] ^= 1
	if err := errors.Join(os.WriteFile(path, bytes, 0o644), os.Chtimes(path, info.ModTime(), info.ModTime())); err != nil {
		t.Fatal(err)
	}
}

// rotting is a store in a folder that records the damage that it finds.
type rotting struct {
	*artifact.Store
	dir   string
	clock time.Time
	found []string
}

func newRotting(t *testing.T, opts artifact.Options) *rotting {
	r := &rotting{dir: t.TempDir(), clock: time.Now()}
	opts.Dir, opts.Now = r.dir, func() time.Time { return r.clock }
	opts.Damaged = func(digest string) { r.found = append(r.found, digest) }
	r.Store = open(t, opts)
	return r
}

// mustHaveFound checks that a damaged artifact was set aside and can be stored again.
func (r *rotting) mustHaveFound(t *testing.T, content string) {
	t.Helper()
	digest := records.Digest([]byte(content))
	if !slices.Equal(r.found, []string{digest}) || r.Stats().Dropped["damaged"] != 1 {
		t.Errorf("found %v", r.found)
	}
	if got := files(t, filepath.Join(r.dir, "damaged")); !slices.Equal(got, []string{digest + ".damaged"}) {
		t.Errorf("set aside %v", got)
	}
	if err := put(r.Store, content); err != nil {
		t.Fatal(err)
	}
	if path, release, err := r.Use(digest); err != nil {
		t.Error(err)
	} else {
		defer release()
		if b, err := os.ReadFile(path); string(b) != content {
			t.Errorf("there is %q, %v", b, err)
		}
	}
}

func TestAnotherUploadRepairsAFlippedBit(t *testing.T) {
	r := newRotting(t, artifact.Options{})
	mustPut(t, r.Store, "hello")
	rot(t, r.dir, "hello")
	r.clock = r.clock.Add(time.Hour)
	mustPut(t, r.Store, "hello")
	r.mustHaveFound(t, "hello")
}

func TestModifiedArtifactsAreVerifiedAgain(t *testing.T) {
	r := newRotting(t, artifact.Options{})
	mustPut(t, r.Store, "hello")
	digest := records.Digest([]byte("hello"))
	if err := os.WriteFile(filepath.Join(r.dir, digest[:2], digest), []byte("jello"), 0o644); err != nil {
		t.Fatal(err)
	}
	if there, err := r.Confirm(t.Context(), digest); there || err != nil {
		t.Errorf("there: %v, %v", there, err)
	}
	r.mustHaveFound(t, "hello")
}

func TestFlippedBitIsFoundByADownload(t *testing.T) {
	for _, content := range []string{"hello", strings.Repeat("x", 1<<20)} {
		r := newRotting(t, artifact.Options{})
		mustPut(t, r.Store, content)
		rot(t, r.dir, content)
		conn := serve(t, r.Store)
		stream, err := tilthv1.NewArtifactServiceClient(conn).DownloadArtifact(t.Context(),
			&tilthv1.DownloadArtifactRequest{Digest: records.Digest([]byte(content))})
		if err != nil {
			t.Fatal(err)
		}
		var got int
		for err == nil {
			var m *tilthv1.DownloadArtifactResponse
			m, err = stream.Recv()
			got += len(m.GetData())
		}
		if status.Code(err) != codes.DataLoss || got >= len(content) {
			t.Errorf("got %d of %d bytes, %v", got, len(content), err)
		}
		r.mustHaveFound(t, content)
	}
}

// TestClientIsToldThatADamagedArtifactIsNotThere checks the error that makes the lease return and the batch be
// rebuilt.
func TestClientIsToldThatADamagedArtifactIsNotThere(t *testing.T) {
	r := newRotting(t, artifact.Options{})
	mustPut(t, r.Store, "hello")
	rot(t, r.dir, "hello")
	client := artifact.NewClient(serve(t, r.Store), open(t, artifact.Options{}), slog.New(slog.DiscardHandler))
	ref := &tilthv1.ArtifactRef{Digest: records.Digest([]byte("hello")), SizeBytes: 5}
	if _, _, err := client.Download(t.Context(), ref); !errors.Is(err, artifact.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	r.mustHaveFound(t, "hello")
}

func TestFlippedBitInACacheIsFetchedAgain(t *testing.T) {
	store, cache := open(t, artifact.Options{}), newRotting(t, artifact.Options{})
	mustPut(t, store, "hello")
	client := artifact.NewClient(serve(t, store), cache.Store, slog.New(slog.DiscardHandler))
	ref := &tilthv1.ArtifactRef{Digest: records.Digest([]byte("hello")), SizeBytes: 5}
	for range 2 {
		path, release, err := client.Download(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); string(b) != "hello" {
			t.Errorf("there is %q, %v", b, err)
		}
		release()
		rot(t, cache.dir, "hello")
		cache.clock = cache.clock.Add(time.Hour)
	}
}

func TestFileThatIsGoneIsFoundMissing(t *testing.T) {
	r := newRotting(t, artifact.Options{})
	mustPut(t, r.Store, "hello")
	digest := records.Digest([]byte("hello"))
	if err := os.Remove(filepath.Join(r.dir, digest[:2], digest)); err != nil {
		t.Fatal(err)
	}
	if there, err := r.Confirm(t.Context(), digest); there || err != nil || len(r.found) != 1 {
		t.Errorf("there: %v, %v; found %v", there, err, r.found)
	}
	mustPut(t, r.Store, "hello")
}

// TestScrubberFindsWhatNobodyUses checks the interval and the rate of scrubbing.
func TestScrubberFindsWhatNobodyUses(t *testing.T) {
	content := strings.Repeat("x", 1<<20)
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		found := make(chan string, 1)
		s := open(t, artifact.Options{
			Dir: dir, ScrubBytes: 64 << 10, ScrubEvery: time.Hour, Damaged: func(digest string) { found <- digest },
		})
		mustPut(t, s, "hello", content)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { s.Run(ctx); close(ended) }()
		time.Sleep(59 * time.Minute)
		synctest.Wait()
		if n := s.Stats().CheckedBytes; n != 0 {
			t.Errorf("%d bytes were checked again within the hour", n)
		}
		rot(t, dir, content)
		begun := time.Now()
		select {
		case digest := <-found:
			if digest != records.Digest([]byte(content)) {
				t.Errorf("%s is damaged", digest)
			}
		case <-time.After(2 * time.Hour): // fake time
			t.Error("nothing was found")
		}
		if took := time.Since(begun); took < time.Minute+16*time.Second-5*time.Second || took > 3*time.Minute {
			t.Errorf("1 MiB at 64 KiB/s, due in a minute, took %v", took)
		}
		if stats := s.Stats(); stats.CheckedBytes != 1<<20+5 && stats.CheckedBytes != 1<<20 {
			t.Errorf("%d bytes were checked", stats.CheckedBytes)
		}
		cancel()
		<-ended
	})
}

func TestTimesOfChecksSurviveARestart(t *testing.T) {
	dir, clock := t.TempDir(), time.Now()
	if filesystem.SetAttribute(dir, "user.test", "x") != nil {
		t.Skip("the file system has no attributes")
	}
	now := func() time.Time { return clock }
	mustPut(t, open(t, artifact.Options{Dir: dir, Now: now}), "hello")
	for _, step := range []struct {
		later time.Duration
		reads int64
	}{{30 * time.Minute, 0}, {time.Hour, 5}, {30 * time.Minute, 0}} {
		clock = clock.Add(step.later)
		s := open(t, artifact.Options{Dir: dir, Now: now})
		if there, err := s.Confirm(t.Context(), records.Digest([]byte("hello"))); !there || err != nil || s.Stats().CheckedBytes != step.reads {
			t.Errorf("%v later: there %v, %v, %d bytes were checked, want %d", step.later, there, err, s.Stats().CheckedBytes, step.reads)
		}
	}
}

func TestDamagedArtifactsSetAsideAreBounded(t *testing.T) {
	r := newRotting(t, artifact.Options{})
	for n := range 12 {
		content := fmt.Sprint(n)
		mustPut(t, r.Store, content)
		rot(t, r.dir, content)
		r.clock = r.clock.Add(time.Hour)
		if there, err := r.Confirm(t.Context(), records.Digest([]byte(content))); there || err != nil {
			t.Fatal(there, err)
		}
	}
	if got := files(t, filepath.Join(r.dir, "damaged")); len(got) != 8 || len(r.found) != 12 {
		t.Errorf("%d were found, %d are kept", len(r.found), len(got))
	}
	if len(files(t, r.dir)) != 8 || r.Stats().UsedBytes != 0 {
		t.Errorf("%d bytes are used", r.Stats().UsedBytes)
	}
}

func TestVerifyFindsWhatIsDamagedAndChangesNothing(t *testing.T) {
	r := newRotting(t, artifact.Options{})
	mustPut(t, r.Store, "hello", "other")
	rot(t, r.dir, "hello")
	h := hold(t, r.Store, upload("ana", "unfinished"), "unf")
	before := files(t, r.dir)
	v, err := artifact.Verify(t.Context(), artifact.Folder(r.dir))
	if err != nil || v.Files != 2 || v.Bytes != 10 || !slices.Equal(v.Damaged, []string{records.Digest([]byte("hello"))}) {
		t.Errorf("found %+v, %v", v, err)
	}
	if got := files(t, r.dir); !slices.Equal(got, before) {
		t.Errorf("left %v of %v", got, before)
	}
	_ = h.end()
}

package s3_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tilth-dev/tilth/internal/artifact"
)

// unit is the accounting unit of small artifacts.
const unit = 16 << 10

var errCut = errors.New("line cut")

// TestBlobsContract runs the same tests on each kind of storage.
func TestBlobsContract(t *testing.T) {
	for what, promise := range map[string]func(*testing.T, keeper){
		"what is stored is served": stored, "a broken upload is resumed": resumed, "bad uploads leave nothing": bad,
		"many uploads store it once": many, "a large one is whole": large, "what is damaged is found when it is used": damagedUsed,
		"what is damaged is found at rest": damagedAtRest, "what is set aside is bounded": aside, "the unused goes": unused,
		"the least recently used makes room": room, "who has most loses first": fair, "verify changes nothing": verified,
		"one that is gone is missing": gone,
	} {
		t.Run(what, func(t *testing.T) {
			for kind, k := range keepers(t) {
				t.Run(kind, func(t *testing.T) { promise(t, k) })
			}
		})
	}
}

func stored(t *testing.T, k keeper) {
	s := run(t, k.options(t))
	put(t, s.Store, "ana", "hello", "hello", "")
	if got := s.Stats().UsedBytes; got != 2*unit {
		t.Errorf("%d bytes are used", got)
	}
	s.stop()
	s = run(t, k.options(t))
	if got, err := get(s.Store, "hello", 0); got != "hello" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	for offset, want := range map[int64]string{2: "llo", 5: ""} {
		if got, err := get(s.Store, "hello", offset); got != want || err != nil {
			t.Errorf("from %d on: %q, %v", offset, got, err)
		}
	}
	if got, err := get(s.Store, "", 0); got != "" || err != nil || !has(t, s.Store, "") {
		t.Errorf("of no bytes: %q, %v", got, err)
	}
	if _, err := get(s.Store, "hello", 6); !errors.Is(err, artifact.ErrSize) {
		t.Errorf("beyond the end: %v", err)
	}
	if _, err := get(s.Store, "other", 0); !errors.Is(err, artifact.ErrNotFound) || has(t, s.Store, "other") {
		t.Errorf("what is not there: %v", err)
	}
}

func resumed(t *testing.T, k keeper) {
	s, content := run(t, k.options(t)), strings.Repeat("0123456789", 1000)
	up := artifact.Upload{Identity: "ana", Digest: digestOf(content), SizeBytes: int64(len(content))}
	if err := s.Put(t.Context(), up, io.MultiReader(strings.NewReader(content[:4321]), iotest.ErrReader(errCut))); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	if has(t, s.Store, content) {
		t.Error("half of it is taken for all")
	}
	var err error
	if up.Offset, err = s.Received(t.Context(), "ana", up.Digest); up.Offset != 4321 || err != nil {
		t.Fatalf("received %d, %v", up.Offset, err)
	}
	if err := s.Put(t.Context(), up, strings.NewReader(content[4321:])); err != nil {
		t.Fatal(err)
	}
	if got, err := get(s.Store, content, 0); got != content || err != nil {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

func bad(t *testing.T, k keeper) {
	opts := k.options(t)
	s := run(t, opts)
	for name, c := range map[string]struct {
		src  string
		want error
	}{"other bytes": {"jello", artifact.ErrDigest}, "too many": {"hello!", artifact.ErrSize}, "too few": {"hell", artifact.ErrSize}} {
		up := artifact.Upload{Digest: digestOf("hello"), SizeBytes: 5}
		if err := s.Put(t.Context(), up, strings.NewReader(c.src)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if has(t, s.Store, "hello") || s.Stats().UsedBytes != 0 || files(t, opts.Dir) != 0 {
		t.Errorf("%d bytes are used by %d files", s.Stats().UsedBytes, files(t, opts.Dir))
	}
}

func many(t *testing.T, k keeper) {
	s, content := run(t, k.options(t)), strings.Repeat("x", 1<<20)
	var uploads sync.WaitGroup
	for range 8 {
		uploads.Go(func() {
			up := artifact.Upload{Digest: digestOf(content), SizeBytes: int64(len(content))}
			if err := s.Put(t.Context(), up, iotest.HalfReader(strings.NewReader(content))); err != nil {
				t.Error(err)
			}
		})
	}
	uploads.Wait()
	if s.Stats().UsedBytes != 1<<20+12<<10 {
		t.Errorf("%d bytes are used", s.Stats().UsedBytes)
	}
	if info := k.path(digestOf(content)); info == "" {
		t.Error("it is not there")
	}
}

// large transfers an artifact in several parts.
func large(t *testing.T, k keeper) {
	s, content := run(t, k.options(t)), strings.Repeat("0123456789abcdef", 20<<20/16)
	put(t, s.Store, "ana", content)
	if got, err := get(s.Store, content, 0); got != content || err != nil {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	if got, err := get(s.Store, content, 10<<20+1); got != content[10<<20+1:] || err != nil {
		t.Errorf("from the midst on: %d bytes, %v", len(got), err)
	}
}

func damagedUsed(t *testing.T, k keeper) {
	c, opts := &clock{}, k.options(t)
	opts.Now = c.now
	s := run(t, opts)
	put(t, s.Store, "", "hello", "other")
	rot(t, k.path(digestOf("hello")))
	if got, err := get(s.Store, "hello", 0); !errors.Is(err, artifact.ErrDamaged) || got != "" {
		t.Errorf("sent %q, %v", got, err)
	}
	if got := <-s.damaged; got != digestOf("hello") || s.Stats().Dropped["damaged"] != 1 {
		t.Errorf("%s is damaged", got)
	}
	put(t, s.Store, "", "hello") // repairs it
	if got, err := get(s.Store, "hello", 0); got != "hello" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	rot(t, k.path(digestOf("other")))
	c.forward(time.Hour)
	if has(t, s.Store, "other") || <-s.damaged != digestOf("other") {
		t.Error("it is taken for whole")
	}
}

func damagedAtRest(t *testing.T, k keeper) {
	opts := k.options(t)
	opts.ScrubBytes, opts.ScrubEvery = 1<<30, time.Nanosecond
	first := run(t, k.options(t))
	put(t, first.Store, "", "hello", "other")
	first.stop()
	rot(t, k.path(digestOf("hello")))
	s := run(t, opts)
	if got := <-s.damaged; got != digestOf("hello") {
		t.Errorf("%s is damaged", got)
	}
	if has(t, s.Store, "hello") || !has(t, s.Store, "other") {
		t.Error("the wrong one was set aside")
	}
}

func aside(t *testing.T, k keeper) {
	s := run(t, k.options(t))
	for _, content := range strings.Split("abcdefghij", "") {
		put(t, s.Store, "", content)
		rot(t, k.path(digestOf(content)))
		if _, err := get(s.Store, content, 0); !errors.Is(err, artifact.ErrDamaged) {
			t.Fatal(err)
		}
	}
	dir := k.path(digestOf(keep(t, s, "kept")))
	for range 2 { // twice up from PREFIX/2c/NAME
		dir = dir[:strings.LastIndexByte(dir, '/')]
	}
	if n := files(t, dir+"/damaged"); n != 8 {
		t.Errorf("%d are kept", n)
	}
}

// keep stores a content and returns its digest.
func keep(t *testing.T, s *store, content string) string {
	put(t, s.Store, "", content)
	return content
}

func unused(t *testing.T, k keeper) {
	c, opts := &clock{}, k.options(t)
	opts.Now, opts.Keep = c.now, 24*time.Hour
	first := run(t, opts)
	put(t, first.Store, "", "hello", "needed")
	first.stop()
	c.forward(25 * time.Hour)
	s := run(t, opts, "needed")
	eventually(t, "dropped", func() bool { return s.Stats().Dropped["unused"] == 1 })
	if has(t, s.Store, "hello") || !has(t, s.Store, "needed") {
		t.Error("the wrong one was dropped")
	}
}

func room(t *testing.T, k keeper) {
	c, opts := &clock{}, k.options(t)
	opts.Now, opts.CapBytes, opts.UploadBytes = c.now, 3*unit, 3*unit
	s := run(t, opts)
	put(t, s.Store, "", "aaa", "bbb", "ccc")
	c.forward(2 * time.Hour)
	if _, err := get(s.Store, "aaa", 0); err != nil {
		t.Fatal(err)
	}
	put(t, s.Store, "", "ddd")
	if !has(t, s.Store, "aaa") || has(t, s.Store, "bbb") || !has(t, s.Store, "ccc") || !has(t, s.Store, "ddd") {
		t.Error("another than the least recently used made room")
	}
	s.Pin(digestOf("aaa"), digestOf("ccc"), digestOf("ddd"))
	up := artifact.Upload{Digest: digestOf("eee"), SizeBytes: 3}
	if err := s.Put(t.Context(), up, strings.NewReader("eee")); !errors.Is(err, artifact.ErrFull) {
		t.Errorf("got %v", err)
	}
}

func fair(t *testing.T, k keeper) {
	c, opts := &clock{}, k.options(t)
	opts.Now, opts.CapBytes, opts.UploadBytes = c.now, 4*unit, 4*unit
	s := run(t, opts)
	put(t, s.Store, "ben", "b1")
	put(t, s.Store, "mallory", "m1", "m2", "m3")
	c.forward(2 * time.Hour)
	put(t, s.Store, "ana", "a1")
	if !has(t, s.Store, "b1") || has(t, s.Store, "m1") {
		t.Error("who has less lost first")
	}
}

func verified(t *testing.T, k keeper) {
	opts := k.options(t)
	s := run(t, opts)
	put(t, s.Store, "", "hello", "other")
	rot(t, k.path(digestOf("hello")))
	blobs := opts.Blobs
	if blobs == nil {
		blobs = artifact.Folder(opts.Dir)
	}
	v, err := artifact.Verify(t.Context(), blobs)
	if err != nil || v.Files != 2 || v.Bytes != 10 || len(v.Damaged) != 1 || v.Damaged[0] != digestOf("hello") {
		t.Errorf("found %+v, %v", v, err)
	}
	if k.path(digestOf("hello")) == "" {
		t.Error("it was removed")
	}
}

func gone(t *testing.T, k keeper) {
	c, opts := &clock{}, k.options(t)
	opts.Now = c.now
	s := run(t, opts)
	put(t, s.Store, "", "hello")
	s.Pin(digestOf("hello"))
	if err := os.Remove(k.path(digestOf("hello"))); err != nil {
		t.Fatal(err)
	}
	c.forward(time.Hour)
	if has(t, s.Store, "hello") || <-s.damaged != digestOf("hello") {
		t.Error("it is taken for there")
	}
}

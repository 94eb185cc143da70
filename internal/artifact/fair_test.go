package artifact_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/records"
)

func putAllAs(t *testing.T, s *artifact.Store, identity string, contents ...string) {
	t.Helper()
	for _, c := range contents {
		if err := putAs(s, identity, c); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOldestArtifactsOfTheLargestOwnerAreEvicted(t *testing.T) {
	s := open(t, artifact.Options{CapBytes: 16 * unit})
	putAllAs(t, s, "ana", "a", "b", "c")
	for n := range 100 {
		putAllAs(t, s, "mallory", fmt.Sprintf("x%d", n))
	}
	if got := present(s, "a", "b", "c", "x0", "x86", "x87", "x99"); got != "abcxx" {
		t.Errorf("%s are left, want ana's and the last 13 of mallory's", got)
	}
}

func TestSmallOwnerEvictsArtifactsOfTheLargest(t *testing.T) {
	s := open(t, artifact.Options{CapBytes: 16 * unit})
	putAllAs(t, s, "ana", "a", "b")
	for n := range 14 {
		putAllAs(t, s, "ben", fmt.Sprintf("%c", 'm'+n))
	}
	putAllAs(t, s, "cleo", "1", "2", "3")
	if got := present(s, "a", "b", "m", "n", "o", "p", "1", "2", "3"); got != "abp123" {
		t.Errorf("%s are left, want all but the oldest of ben, who has most", got)
	}
}

// TestUploadLargerThanAnyShareEvictsNothing uploads many incomplete artifacts by one identity.
func TestUploadLargerThanAnyShareEvictsNothing(t *testing.T) {
	s := open(t, artifact.Options{CapBytes: 16 * unit, UploadBytes: 16 * unit})
	putAllAs(t, s, "ana", "a", "b", "c", "d")
	err := putAs(s, "mallory", strings.Repeat("x", 14*unit))
	if !errors.Is(err, artifact.ErrFull) {
		t.Errorf("got %v", err)
	}
	if got := present(s, "a", "b", "c", "d"); got != "abcd" {
		t.Errorf("%s are left of what ana has", got)
	}
}

func TestPinnedArtifactsCountForNoOwner(t *testing.T) {
	s := open(t, artifact.Options{CapBytes: 32 * unit})
	for n := range 20 { // artifacts needed by batches
		content := fmt.Sprintf("p%d", n)
		putAllAs(t, s, "builder", content)
		s.Pin(records.Digest([]byte(content)))
	}
	for n := range 12 {
		putAllAs(t, s, "ana", fmt.Sprintf("%c", 'a'+n))
	}
	putAllAs(t, s, "builder", "q0", "q1")
	if got := present(s, "p0", "p19", "q0", "q1", "a", "b", "c"); got != "ppqqc" {
		t.Errorf("%s are left", got)
	}
}

func TestOwnersOfArtifactsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	if filesystem.SetAttribute(dir, "user.test", "x") != nil {
		t.Skip("the file system has no attributes")
	}
	s := open(t, artifact.Options{Dir: dir, CapBytes: 16 * unit})
	putAllAs(t, s, "ana", "a", "b", "c")
	for n := range 13 {
		putAllAs(t, s, "mallory", fmt.Sprintf("x%d", n))
	}
	s = open(t, artifact.Options{Dir: dir, CapBytes: 16 * unit})
	putAllAs(t, s, "cleo", "1", "2")
	if got := present(s, "a", "b", "c", "1", "2"); got != "abc12" || s.Stats().UsedBytes != 16*unit {
		t.Errorf("%s are left of what is not mallory's", got)
	}
}

func TestUnusedArtifactsAreDroppedAndSaid(t *testing.T) {
	clock := time.Now()
	var log strings.Builder
	s := open(t, artifact.Options{
		Keep: 30 * 24 * time.Hour, Now: func() time.Time { return clock }, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	mustPut(t, s, "aaa", "bbb", "ccc")
	s.Pin(records.Digest([]byte("ccc")))
	clock = clock.Add(29 * 24 * time.Hour)
	_, release, err := s.Use(records.Digest([]byte("bbb")))
	if err != nil {
		t.Fatal(err)
	}
	release()
	maintain(t, s)
	if got := present(s, "aaa", "bbb", "ccc"); got != "abc" {
		t.Fatalf("%s are left a day too early", got)
	}
	clock = clock.Add(24 * time.Hour)
	maintain(t, s)
	if got := present(s, "aaa", "bbb", "ccc"); got != "bc" {
		t.Errorf("%s are left, want what was used and what is needed", got)
	}
	if s.Stats().Dropped["unused"] != 1 || !strings.Contains(log.String(), `msg="artifacts dropped" unused=1`) {
		t.Errorf("said %q", log.String())
	}
}

func TestStoreThatIsOpenedWithLessRoomShrinks(t *testing.T) {
	dir := t.TempDir()
	mustPut(t, open(t, artifact.Options{Dir: dir}), "aaa", "bbb", "ccc")
	open(t, artifact.Options{Dir: dir, CapBytes: 2 * unit})
	if got := files(t, dir); len(got) != 2 {
		t.Errorf("left %v", got)
	}
}

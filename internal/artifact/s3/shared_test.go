package s3_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/artifact/s3"
	"github.com/tilth-dev/tilth/lab/testkit/s3server"
)

// pair returns the stores of two trackers that share a bucket, with a common clock.
func pair(t *testing.T, opts artifact.Options) (a, b *store, k keeper, c *clock) {
	return pairAsked(t, opts, nil)
}

// pairAsked returns a pair of stores. The first one calls ask before each call to the bucket, unless ask is nil.
func pairAsked(t *testing.T, opts artifact.Options, ask func(context.Context, call) error) (a, b *store, k keeper, c *clock) {
	k, c = bucketKeeper(t, commonServer(t)), &clock{}
	both := [2]*store{}
	for i := range both {
		at := k.options(t)
		opts.Dir, opts.Blobs, opts.Now, opts.Part = at.Dir, at.Blobs, c.now, artifact.Part{Index: i, Count: 2}
		if i == 0 && ask != nil {
			opts.Blobs = asked{at.Blobs, ask}
		}
		both[i] = run(t, opts)
	}
	return both[0], both[1], k, c
}

// call is an operation on a bucket. The digest of a listing is empty.
type call struct{ verb, digest string }

// asked is a blob store that calls a test's function before each operation and returns its error.
type asked struct {
	artifact.Blobs
	ask func(context.Context, call) error
}

func (a asked) List(ctx context.Context, each func(artifact.Blob) error) error {
	if err := a.ask(ctx, call{verb: "list"}); err != nil {
		return err
	}
	return a.Blobs.List(ctx, each)
}

func (a asked) Put(ctx context.Context, b artifact.Blob, path string) (artifact.Blob, error) {
	if err := a.ask(ctx, call{"put", b.Digest}); err != nil {
		return b, err
	}
	return a.Blobs.Put(ctx, b, path)
}

func (a asked) Touch(ctx context.Context, b artifact.Blob, at time.Time) (artifact.Blob, error) {
	if err := a.ask(ctx, call{"touch", b.Digest}); err != nil {
		return b, err
	}
	return a.Blobs.Touch(ctx, b, at)
}

func (a asked) Remove(ctx context.Context, b artifact.Blob) error {
	if err := a.ask(ctx, call{"remove", b.Digest}); err != nil {
		return err
	}
	return a.Blobs.Remove(ctx, b)
}

// sweepNow runs the periodic sweep of a store.
func sweepNow(s *store) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.Run(ctx)
}

// contentOf returns content whose artifact belongs to a part.
func contentOf(part int, name string) string {
	for n := 0; ; n++ {
		content := fmt.Sprint(name, n)
		if (artifact.Part{Index: part, Count: 2}).Has(digestOf(content)) {
			return content
		}
	}
}

func TestArtifactsAreSharedBetweenTrackersAtOnce(t *testing.T) {
	a, b, k, c := pair(t, artifact.Options{})
	for part := range 2 {
		content := contentOf(part, "x")
		put(t, a.Store, "ana", content)
		if got, err := get(b.Store, content, 0); got != content || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		put(t, b.Store, "ben", content) // neither reads nor stores anything
		if k.path(digestOf(content)) == "" {
			t.Error("it is not there")
		}
		if there, size := b.Stat(digestOf(content)); !there || size != int64(len(content)) {
			t.Errorf("there %v, of %d bytes", there, size)
		}
	}
	if a.Stats().UsedBytes != 2*unit {
		t.Errorf("the first counts %d bytes, want all that it stored", a.Stats().UsedBytes)
	}
	c.forward(20 * time.Minute)
	sweepNow(a)
	if a.Stats().UsedBytes != unit {
		t.Errorf("after the other one has listed it the first counts %d bytes, want those of its part", a.Stats().UsedBytes)
	}
}

// TestArtifactThatAnotherTrackerPutsMeanwhileIsCountedOnce lets a tracker discover another tracker's artifact while
// it stores the same one. It must count the artifact once, and evict its owner's other artifacts.
func TestArtifactThatAnotherTrackerPutsMeanwhileIsCountedOnce(t *testing.T) {
	for part, whose := range []string{"its own", "the other's"} {
		content := contentOf(part, "x")
		putting, goOn := make(chan struct{}), make(chan struct{})
		a, b, _, c := pairAsked(t, artifact.Options{CapBytes: 4 * unit, UploadBytes: 4 * unit}, func(_ context.Context, one call) error {
			if one == (call{"put", digestOf(content)}) {
				close(putting)
				<-goOn
			}
			return nil
		})
		ended := make(chan error, 1)
		go func() { ended <- upload(a.Store, "ana", content) }()
		<-putting
		put(t, b.Store, "ana", content)
		if !has(t, a.Store, content) {
			t.Errorf("of %s part: it does not find what the other one has put", whose)
		}
		close(goOn)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if got, err := get(a.Store, content, 0); got != content || err != nil {
			t.Errorf("of %s part: got %q, %v", whose, got, err)
		}
		if part == 0 && a.Stats().UsedBytes != unit {
			t.Errorf("of %s part: it takes %d bytes", whose, a.Stats().UsedBytes)
		}
		c.forward(2 * time.Hour)
		sweepNow(a)
		for n := range 8 {
			put(t, a.Store, "ana", contentOf(0, fmt.Sprint("more", n, "-")))
			c.forward(2 * time.Hour)
		}
		if a.Stats().UsedBytes != 4*unit || a.Stats().Files != 4 {
			t.Errorf("of %s part: %d files take %d bytes", whose, a.Stats().Files, a.Stats().UsedBytes)
		}
	}
}

// TestEvictionSkipsRequestedArtifacts uses the least recently used artifact, so that the next one is evicted instead.
func TestEvictionSkipsRequestedArtifacts(t *testing.T) {
	c, opts := &clock{}, bucketKeeper(t, commonServer(t)).options(t)
	opts.Now, opts.CapBytes, opts.UploadBytes = c.now, 3*unit, 3*unit
	s := run(t, opts)
	put(t, s.Store, "ana", "xxx", "yyy", "zzz")
	c.forward(2 * time.Hour)
	if !has(t, s.Store, "xxx") {
		t.Fatal("it is gone")
	}
	put(t, s.Store, "ana", "www")
	if !has(t, s.Store, "xxx") || has(t, s.Store, "yyy") || !has(t, s.Store, "zzz") || !has(t, s.Store, "www") {
		t.Error("another went than what was used least recently")
	}
}

// TestCheckOfWhatAnotherTrackerUsesLeavesRoomToBeMade lets a tracker learn from a check, not from a listing, that
// another tracker has used its next candidate for eviction.
func TestCheckOfWhatAnotherTrackerUsesLeavesRoomToBeMade(t *testing.T) {
	k := bucketKeeper(t, commonServer(t))
	opts := k.options(t)
	blobs, opened := opts.Blobs, false
	first := run(t, opts)
	old := []string{"xxx", "yyy", "zzz"}
	put(t, first.Store, "ana", old...)
	first.stop()
	for i, content := range old {
		at := time.Now().Add(-2*time.Hour + time.Duration(i)*time.Minute)
		if err := os.Chtimes(k.path(digestOf(content)), at, at); err != nil {
			t.Fatal(err)
		}
	}
	opts = k.options(t)
	opts.CapBytes, opts.UploadBytes, opts.ScrubBytes = 3*unit, 3*unit, 1<<30
	opts.Blobs = asked{blobs, func(ctx context.Context, one call) error {
		if one.verb == "list" && opened {
			<-ctx.Done()
		}
		return ctx.Err()
	}}
	s, err := artifact.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	opened = true
	used, err := blobs.Find(t.Context(), digestOf("xxx"))
	if err == nil {
		_, err = blobs.Touch(t.Context(), used, time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	runOpen(t, s)
	eventually(t, "checked", func() bool { return s.Stats().CheckedBytes == 9 })
	put(t, s, "ana", "www")
	if !has(t, s, "xxx") || has(t, s, "yyy") || !has(t, s, "zzz") || !has(t, s, "www") {
		t.Error("another went than what was used least recently")
	}
}

// TestDamageIsReportedAlthoughAListingFoundItFirst runs a listing after a damaged artifact was moved aside and before
// its check ends.
func TestDamageIsReportedAlthoughAListingFoundItFirst(t *testing.T) {
	k := bucketKeeper(t, commonServer(t))
	first := run(t, k.options(t))
	put(t, first.Store, "", "hello", "other")
	first.stop()
	rot(t, k.path(digestOf("hello")))
	opts := k.options(t)
	opts.ScrubBytes = 1 << 30
	damaged := make(chan string, 100)
	opts.Damaged = func(digest string) { damaged <- digest }
	opened, moved := false, make(chan struct{})
	blobs := &listedLate{Blobs: asked{opts.Blobs, func(ctx context.Context, one call) error {
		if one.verb == "list" && opened {
			<-moved
		}
		return ctx.Err()
	}}}
	opts.Blobs = blobs
	s, err := artifact.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	opened = true
	blobs.aside = func() {
		close(moved)
		eventually(t, "forgotten", func() bool { return s.Stats().UsedBytes == unit })
	}
	runOpen(t, s)
	if got := <-damaged; got != digestOf("hello") || s.Stats().Dropped["damaged"] != 1 {
		t.Errorf("%s is damaged, of %v", got, s.Stats().Dropped)
	}
}

// listedLate is a blob store that notifies the test after a move aside, and waits for it.
type listedLate struct {
	artifact.Blobs
	aside func()
}

func (l *listedLate) SetAside(ctx context.Context, b artifact.Blob) error {
	err := l.Blobs.SetAside(ctx, b)
	l.aside()
	return err
}

// TestArtifactsThatCannotBeRenewedOrRemovedStopNothingElse uses an object store that never copies one artifact and
// never removes another. Other artifacts must still be renewed, removed and listed.
func TestArtifactsThatCannotBeRenewedOrRemovedStopNothingElse(t *testing.T) {
	k, c := bucketKeeper(t, commonServer(t)), &clock{}
	opts := k.options(t)
	bad := map[call]bool{{"touch", digestOf("stuck")}: true, {"remove", digestOf("old3")}: true}
	blobs, tried := opts.Blobs, make(chan call, 100)
	opts.Blobs = asked{blobs, func(_ context.Context, one call) error {
		if one.verb == "touch" || one.verb == "remove" {
			tried <- one
		}
		if bad[one] {
			return fmt.Errorf("%w: it does not like %s", artifact.ErrAway, one.digest)
		}
		return nil
	}}
	opts.Now, opts.Keep = c.now, 24*time.Hour
	s, err := artifact.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	needed := []string{"stuck", "fine1", "fine2", "fine3"}
	dropped := []string{"old1", "old2", "old3", "old4"}
	put(t, s, "ana", slices.Concat(needed, dropped)...)
	for _, content := range needed {
		s.Pin(digestOf(content))
	}
	c.forward(25 * time.Hour)
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "another's")
	if _, err := blobs.Put(t.Context(), artifact.Blob{Digest: digestOf("another's"), Owner: "o", SizeBytes: 9, Used: c.now()}, path); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(k.path(digestOf("another's")), c.now(), c.now()); err != nil {
		t.Fatal(err)
	}
	runOpen(t, s)
	want := map[call]bool{}
	for _, content := range needed {
		want[call{"touch", digestOf(content)}] = true
	}
	for _, content := range dropped {
		want[call{"remove", digestOf(content)}] = true
	}
	for len(want) > 0 {
		select {
		case one := <-tried:
			delete(want, one)
		case <-time.After(10 * time.Minute):
			t.Fatalf("after a minute without more: %d are not tried", len(want))
		}
	}
	eventually(t, "listed", func() bool { return s.Stats().Files == len(needed)+1 })
	if s.Unavailable() != nil {
		t.Errorf("it is taken for away: %v", s.Unavailable())
	}
}

func TestObjectStoreThatRenewsNothingIsAway(t *testing.T) {
	c, opts := &clock{}, bucketKeeper(t, commonServer(t)).options(t)
	opts.Now, opts.Blobs = c.now, asked{opts.Blobs, func(_ context.Context, one call) error {
		if one.verb == "touch" {
			return fmt.Errorf("%w: it copies nothing", artifact.ErrAway)
		}
		return nil
	}}
	s, err := artifact.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range strings.Split("abcdefgh", "") {
		put(t, s, "ana", content)
		s.Pin(digestOf(content))
	}
	c.forward(10 * time.Minute)
	runOpen(t, s)
	eventually(t, "known to be away", func() bool { return errors.Is(s.Unavailable(), artifact.ErrAway) })
}

// TestOwnersOfSharedArtifactsAreKnown pins and unpins artifacts that another tracker accounts for.
func TestOwnersOfSharedArtifactsAreKnown(t *testing.T) {
	a, b, _, _ := pair(t, artifact.Options{})
	first, second := contentOf(1, "first"), contentOf(1, "second")
	put(t, b.Store, "ana", first, second)
	if !has(t, a.Store, first) || !has(t, a.Store, second) {
		t.Fatal("what the other one stored is not there")
	}
	a.Pin(digestOf(first), digestOf(second))
	a.Unpin(digestOf(first), digestOf(second))
	if a.Stats().UsedBytes != 0 || !has(t, a.Store, first) {
		t.Errorf("%d bytes are used", a.Stats().UsedBytes)
	}
}

// TestArtifactsOfOtherTrackersUseCapacity fills a tracker with artifacts of another tracker's part. They count against
// its capacity, pinned or not, until the other tracker accounts for them.
func TestArtifactsOfOtherTrackersUseCapacity(t *testing.T) {
	a, _, _, c := pair(t, artifact.Options{CapBytes: 4 * unit, UploadBytes: 4 * unit})
	var contents []string
	for n := range 8 {
		contents = append(contents, contentOf(1, fmt.Sprint(n, "-")))
	}
	put(t, a.Store, "ana", contents[:4]...)
	a.Pin(digestOf(contents[0]))
	refused := func(what, content string) {
		t.Helper()
		if err := upload(a.Store, "ana", content); !errors.Is(err, artifact.ErrFull) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	refused("with four of four", contents[4])
	c.forward(20 * time.Minute)
	sweepNow(a)
	if a.Stats().UsedBytes != unit {
		t.Errorf("%d bytes are used, want those of what is needed", a.Stats().UsedBytes)
	}
	put(t, a.Store, "ana", contents[4:7]...)
	refused("with one that is needed and three", contents[7])
	c.forward(10 * time.Minute)
	sweepNow(a)
	if a.Stats().UsedBytes != 3*unit {
		t.Errorf("%d bytes are used, want those of the last three", a.Stats().UsedBytes)
	}
	c.forward(10 * time.Minute)
	sweepNow(a)
	a.Unpin(digestOf(contents[0]))
	if a.Stats().UsedBytes != 0 || !has(t, a.Store, contents[0]) {
		t.Errorf("%d bytes are used in the end", a.Stats().UsedBytes)
	}
}

// TestSweepDropsNothingThatAnotherTrackerUses lets a tracker sweep its part with an outdated view while another
// tracker pins one artifact for a day and uses another one.
func TestSweepDropsNothingThatAnotherTrackerUses(t *testing.T) {
	k, ours, others := bucketKeeper(t, commonServer(t)), &clock{}, &clock{}
	needed, used, unused := contentOf(0, "needed"), contentOf(0, "used"), contentOf(0, "unused")
	opts := k.options(t)
	opts.Now, opts.Part = others.now, artifact.Part{Index: 1, Count: 2}
	b := run(t, opts, needed)
	put(t, b.Store, "ana", needed, used, unused)

	opts = k.options(t)
	opts.Now, opts.Keep = ours.now, 24*time.Hour
	a, err := artifact.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	former := k.path(digestOf(needed))
	others.forward(25 * time.Hour)
	eventually(t, "renewed", func() bool { _, err := os.Stat(former); return err != nil })
	if !has(t, b.Store, used) {
		t.Fatal("it is gone already")
	}
	ours.forward(25 * time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a.Run(ctx) // once, without removals yet
	if n := a.Stats().Dropped["unused"]; n != 3 {
		t.Fatalf("%d were judged unused by what is known, want all", n)
	}
	ours.forward(-25 * time.Hour) // the server's times are correct again
	runOpen(t, a)
	gone := k.path(digestOf(unused))
	eventually(t, "removed", func() bool { _, err := os.Stat(gone); return err != nil })
	for _, content := range []string{needed, used} {
		if got, err := get(b.Store, content, 0); got != content || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

// TestUseWinsAgainstARemoval lets a tracker use an artifact at each moment of its removal by another tracker that
// considers it unused.
func TestUseWinsAgainstARemoval(t *testing.T) {
	server := commonServer(t)
	blobs := bucket(t, server, newBucket(t, server))
	for n := range 20 {
		path := filepath.Join(t.TempDir(), "f")
		content := fmt.Sprint("content", n)
		write(t, path, content)
		old, err := blobs.Put(t.Context(), artifact.Blob{Digest: digestOf(content), Owner: "o", SizeBytes: int64(len(content)), Used: time.Now()}, path)
		if err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		both.Go(func() {
			if err := blobs.Remove(t.Context(), old); err != nil {
				t.Error(err)
			}
		})
		touched, err := blobs.Touch(t.Context(), old, time.Now())
		both.Wait()
		found, missing := blobs.Find(t.Context(), old.Digest)
		if err == nil && (missing != nil || found.Name != touched.Name) || err != nil && missing == nil {
			t.Errorf("the use ended with %v, and then %+v is found, %v", err, found, missing)
		}
	}
}

func TestTrackersThatUseOneArtifactAtOnceLeaveIt(t *testing.T) {
	a, b, _, c := pair(t, artifact.Options{})
	put(t, a.Store, "ana", "hello")
	for range 5 {
		c.forward(20 * time.Minute)
		var users sync.WaitGroup
		for _, s := range []*store{a, b, a, b} {
			users.Go(func() {
				if got, err := get(s.Store, "hello", 0); got != "hello" || err != nil {
					t.Errorf("got %q, %v", got, err)
				}
			})
		}
		users.Wait()
	}
}

// TestArtifactsCanBeReliedOnOnlyWhileFresh: another tracker may remove them afterwards.
func TestArtifactsCanBeReliedOnOnlyWhileFresh(t *testing.T) {
	a, _, _, c := pair(t, artifact.Options{})
	put(t, a.Store, "ana", "hello")
	there := func() bool { there, _ := a.Stat(digestOf("hello")); return there }
	if !there() {
		t.Error("what was just stored is not there")
	}
	c.forward(16 * time.Minute)
	if there() {
		t.Error("what was not used for long is there")
	}
	if !has(t, a.Store, "hello") || !there() {
		t.Error("what was just asked for is not there")
	}
}

func TestListsOfManyPagesAreWhole(t *testing.T) {
	server := commonServer(t)
	blobs := bucket(t, server, newBucket(t, server))
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "x")
	const objects = 1050 // a page has a thousand
	numbers := make(chan int)
	var puts sync.WaitGroup
	for range 8 {
		puts.Go(func() {
			for n := range numbers {
				if _, err := blobs.Put(t.Context(), artifact.Blob{Digest: digestOf(fmt.Sprint(n)), Owner: "o", SizeBytes: 1}, path); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for n := range objects {
		numbers <- n
	}
	close(numbers)
	puts.Wait()
	seen := map[string]bool{}
	err := blobs.List(t.Context(), func(b artifact.Blob) error {
		seen[b.Digest] = true
		return nil
	})
	if len(seen) != objects || err != nil {
		t.Errorf("%d are listed, %v", len(seen), err)
	}
}

func TestUnfinishedTransfersAreRemoved(t *testing.T) {
	server := commonServer(t)
	name := newBucket(t, server)
	core := clientOf(t, server)
	for _, key := range []string{"farm/2c/left", "other/left"} {
		if _, err := core.NewMultipartUpload(t.Context(), name, key, minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	blobs := bucket(t, server, name)
	for before, want := range map[time.Time]int{time.Now().Add(-time.Hour): 2, time.Now().Add(time.Hour): 1} {
		if err := blobs.Tidy(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		left, err := core.ListMultipartUploads(t.Context(), name, "", "", "", "", 10)
		if before.After(time.Now()) && (len(left.Uploads) != want || err != nil) {
			t.Errorf("%d are left, %v", len(left.Uploads), err)
		}
	}
}

// TestErrorsOfTheObjectStoreNameTheirRemedy requires a one-line message for each fault of an object store.
func TestErrorsOfTheObjectStoreNameTheirRemedy(t *testing.T) {
	server := commonServer(t)
	at := "?endpoint=" + server.Endpoint() + "&region=" + s3server.Region
	told := func(b *s3.Bucket, want string) {
		t.Helper()
		err := b.Ready(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	told(open(t, "s3://nothing/farm"+at), "has no bucket nothing: create it, or correct --artifacts")
	told(open(t, "s3://nothing/farm?endpoint=http://127.0.0.1:1&region=x"), "start it, or correct endpoint=")
	name := newBucket(t, server)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "another")
	told(open(t, "s3://"+name+"/farm"+at), "refuses the tracker's credentials (SignatureDoesNotMatch): correct AWS_ACCESS_KEY_ID")
}

// TestServerThatIsKilledLosesNothing kills the server during an upload and a download.
func TestServerThatIsKilledLosesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: it builds an object store")
	}
	server, err := s3server.New()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	}()
	k := bucketKeeper(t, server)
	s := run(t, k.options(t))
	content := strings.Repeat("0123456789abcdef", 64<<20/16)
	up := artifact.Upload{Identity: "ana", Digest: digestOf(content), SizeBytes: int64(len(content))}
	ended := make(chan error, 1)
	go func() { ended <- s.Put(context.Background(), up, strings.NewReader(content)) }()
	core := clientOf(t, server)
	eventually(t, "sending", func() bool {
		under, err := core.ListMultipartUploads(t.Context(), k.bucket, "", "", "", "", 10)
		return err == nil && len(under.Uploads) > 0
	})
	server.Kill()
	if err := <-ended; !errors.Is(err, artifact.ErrAway) {
		t.Errorf("the upload ended with %v", err)
	}
	eventually(t, "known to be away", func() bool { return s.Unavailable() != nil })
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	if up.Offset, err = s.Received(t.Context(), "ana", up.Digest); up.Offset != up.SizeBytes || err != nil {
		t.Errorf("%d bytes were kept, %v", up.Offset, err)
	}
	if err := s.Put(t.Context(), up, strings.NewReader("")); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	take := func(b []byte) error {
		if got.Len() == 0 {
			server.Kill()
		}
		got.Write(b)
		return nil
	}
	if err := s.Send(t.Context(), up.Digest, 0, take); !errors.Is(err, artifact.ErrAway) {
		t.Errorf("the download ended with %v after %d bytes", err, got.Len())
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	if err := s.Send(t.Context(), up.Digest, int64(got.Len()), take); err != nil || got.String() != content {
		t.Errorf("got %d bytes, %v", got.Len(), err)
	}
	eventually(t, "known to be back", func() bool { return s.Unavailable() == nil })
	if len(s.damaged) > 0 {
		t.Error("something is taken for damaged")
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func clientOf(t *testing.T, server *s3server.Server) *minio.Core {
	t.Helper()
	core, err := minio.NewCore(strings.TrimPrefix(server.Endpoint(), "http://"), &minio.Options{
		Creds: credentials.NewStaticV4(s3server.AccessKey, s3server.SecretKey, ""), Region: s3server.Region,
	})
	if err != nil {
		t.Fatal(err)
	}
	return core
}

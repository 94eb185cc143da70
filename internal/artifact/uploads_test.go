package artifact_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// holder is a stalled upload.
type holder struct {
	w     *io.PipeWriter
	ended chan error
}

// hold starts an upload by an identity and sends its first bytes.
func hold(t *testing.T, s *artifact.Store, up artifact.Upload, comes string) *holder {
	t.Helper()
	r, w := io.Pipe()
	h := &holder{w, make(chan error, 1)}
	go func() {
		err := s.Put(context.Background(), up, r)
		r.CloseWithError(errors.New("nobody reads"))
		h.ended <- err
	}()
	h.send(t, comes)
	return h
}

// send returns once the bytes were received.
func (h *holder) send(t *testing.T, text string) {
	t.Helper()
	for _, part := range []string{text, ""} { // the second is read after the first was written
		if _, err := io.WriteString(h.w, part); err != nil {
			t.Fatal(err)
		}
	}
}

// end interrupts the upload.
func (h *holder) end() error {
	h.w.CloseWithError(errors.New("line cut"))
	return <-h.ended
}

func TestUploadThatAnnouncesAllOfTheRoomEvictsNothingBeforeBytesCome(t *testing.T) {
	const cap = 3 * unit
	dir := t.TempDir()
	s := open(t, artifact.Options{Dir: dir, CapBytes: cap, UploadBytes: cap})
	mustPut(t, s, "aaa", "bbb", "ccc")
	h := hold(t, s, artifact.Upload{Digest: records.Digest([]byte("?")), SizeBytes: 2 * unit}, "")
	if got := present(s, "aaa", "bbb", "ccc"); got != "abc" || s.Stats().UsedBytes != cap || len(files(t, dir)) != 3 {
		t.Errorf("%s are left, and %d bytes are used", got, s.Stats().UsedBytes)
	}
	h.send(t, "some bytes")
	if got := present(s, "aaa", "bbb", "ccc"); got != "bc" || s.Stats().UsedBytes != cap {
		t.Errorf("once some came, %s are left, and %d bytes are used", got, s.Stats().UsedBytes)
	}
	if err := h.end(); err == nil {
		t.Error("it was stored")
	}
}

func TestUploadBeyondTheQuotaIsRefusedByWhatItAnnounces(t *testing.T) {
	s := open(t, artifact.Options{CapBytes: 100 * unit, UploadBytes: 10 * unit})
	err := s.Put(t.Context(), artifact.Upload{Digest: records.Digest(nil), SizeBytes: 10 * unit}, iotest.ErrReader(errors.New("it was read")))
	if !errors.Is(err, artifact.ErrFull) || !strings.Contains(err.Error(), "the uploads of an identity may take 163840") {
		t.Errorf("got %v", err)
	}
}

func TestStalledUploadBlocksNoOther(t *testing.T) {
	for _, identity := range []string{"mallory", "ana"} {
		t.Run(identity, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, artifact.Options{Dir: dir})
			h := hold(t, s, upload(identity, "hello"), "j") // with wrong content
			if err := putAs(s, "ana", "hello"); err != nil {
				t.Fatal(err)
			}
			if err := putAs(s, "ben", "hello"); err != nil {
				t.Errorf("once it is there: %v", err)
			}
			if _, err := io.WriteString(h.w, "e"); err != nil {
				t.Fatal(err)
			}
			if err := <-h.ended; err != nil {
				t.Errorf("who held it is told %v, though it is there", err)
			}
			if got := files(t, dir); len(got) != 1 || s.Stats().UsedBytes != unit {
				t.Errorf("left %v, %d bytes used", got, s.Stats().UsedBytes)
			}
		})
	}
}

func TestStalledUploadOverTheWireBlocksNoOther(t *testing.T) {
	store := open(t, artifact.Options{})
	conn := serve(t, store)
	path, content := randomFile(t, 1<<20)
	stream, err := tilthv1.NewArtifactServiceClient(conn).UploadArtifact(as(t.Context(), "mallory"))
	if err != nil {
		t.Fatal(err)
	}
	err = stream.Send(&tilthv1.UploadArtifactRequest{Digest: records.Digest(content), SizeBytes: 1 << 20, Data: content[:1]})
	if err != nil {
		t.Fatal(err)
	}
	client := artifact.NewClient(conn, nil, slog.New(slog.DiscardHandler))
	if _, err := client.Upload(as(t.Context(), "ana"), "candidates", path); err != nil {
		t.Fatal(err)
	}
	_ = stream.Send(&tilthv1.UploadArtifactRequest{Data: content[1:2]})
	if _, err := stream.CloseAndRecv(); err != nil {
		t.Errorf("who held it is told %v, though it is there", err)
	}
}

// TestUploadsResumeAfterReconnecting reconnects before the tracker has synced the received bytes.
func TestUploadsResumeAfterReconnecting(t *testing.T) {
	slow := &slowDisk{syncing: make(chan struct{}), goOn: make(chan struct{})}
	s := open(t, artifact.Options{FS: slow})
	ctx, cancel := context.WithCancel(t.Context())
	up := upload("ana", "hello")
	first := make(chan error, 1)
	go func() { first <- s.Put(ctx, up, io.MultiReader(strings.NewReader("hel"), untilDone{ctx})) }()
	cancel()
	<-slow.syncing
	second := make(chan error, 1)
	go func() {
		var err error
		if up.Offset, err = s.Received(t.Context(), "ana", up.Digest); err == nil {
			err = s.Put(t.Context(), up, strings.NewReader("lo"))
		}
		second <- err
	}()
	close(slow.goOn)
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first ended with %v", err)
	}
	if err := <-second; err != nil || up.Offset != 3 {
		t.Errorf("going on at %d: %v", up.Offset, err)
	}
}

// untilDone is a reader that fails when its context ends.
type untilDone struct{ ctx context.Context }

func (u untilDone) Read([]byte) (int, error) {
	<-u.ctx.Done()
	return 0, context.Cause(u.ctx)
}

// slowDisk is a file system whose first sync blocks until released.
type slowDisk struct {
	artifact.OS
	syncing, goOn chan struct{}
	synced        bool
}

type slowFile struct {
	artifact.File
	disk *slowDisk
}

func (d *slowDisk) OpenAppend(path string) (artifact.File, error) {
	f, err := d.OS.OpenAppend(path)
	return &slowFile{f, d}, err
}

func (f *slowFile) Sync() error {
	if !f.disk.synced {
		f.disk.synced = true
		close(f.disk.syncing)
		<-f.disk.goOn
	}
	return f.File.Sync()
}

func TestManyTinyUploadsFillNoDisk(t *testing.T) {
	dir := t.TempDir()
	s := open(t, artifact.Options{Dir: dir, CapBytes: 1000 * unit, Uploads: 4})
	mustPut(t, s, "kept")
	cut := func(n int) {
		up := upload("mallory", fmt.Sprintf("x%d", n))
		err := s.Put(t.Context(), up, io.MultiReader(strings.NewReader("x"), iotest.ErrReader(errors.New("line cut"))))
		if err == nil || !strings.Contains(err.Error(), "line cut") {
			t.Fatal(err)
		}
	}
	for n := range 100 {
		cut(n)
	}
	if got := files(t, dir); len(got) != 5 || s.Stats().UsedBytes != 5*unit {
		t.Errorf("left %d files, %d bytes used", len(got), s.Stats().UsedBytes)
	}
	if n := received(t, s, "mallory", "x99"); n != 1 {
		t.Errorf("the last cannot be resumed")
	}
	var held []*holder
	for n := range 4 {
		held = append(held, hold(t, s, upload("mallory", fmt.Sprintf("y%d", n)), "y"))
	}
	if err := putAs(s, "mallory", "one more"); !errors.Is(err, artifact.ErrBusy) {
		t.Errorf("one more than may be under way: %v", err)
	}
	if err := putAs(s, "ana", "another's"); err != nil {
		t.Error(err)
	}
	for _, h := range held {
		_ = h.end()
	}
	if err := putAs(s, "mallory", "one more"); err != nil {
		t.Errorf("once others ended: %v", err)
	}
}

func TestTinyArtifactsCountWhatTheyTakeOfADisk(t *testing.T) {
	dir := t.TempDir()
	s := open(t, artifact.Options{Dir: dir, CapBytes: 10 * unit})
	for n := range 100 {
		mustPut(t, s, fmt.Sprint(n))
	}
	if got := files(t, dir); len(got) != 10 {
		t.Errorf("%d files of a byte or two lie in room for 10", len(got))
	}
}

func TestUnfinishedBytesOfAnIdentityAreBounded(t *testing.T) {
	s := open(t, artifact.Options{CapBytes: 100 * unit, UploadBytes: 4 * unit})
	text := func(name string) string { return name + strings.Repeat(".", unit) } // two units
	first := hold(t, s, upload("mallory", text("a")), text("a")[:unit+1])
	second := hold(t, s, upload("mallory", text("b")), text("b")[:unit])
	if err := putAs(s, "mallory", "c"); !errors.Is(err, artifact.ErrBusy) {
		t.Errorf("got %v", err)
	}
	if n := s.Stats().Refused["uploads"]; n != 1 {
		t.Errorf("%d refusals are counted", n)
	}
	_ = second.end() // evicted when space is needed
	if err := putAs(s, "mallory", "c"); err != nil {
		t.Error(err)
	}
	if n := received(t, s, "mallory", text("b")); n != 0 {
		t.Errorf("%d bytes of it are left", n)
	}
	_ = first.end()
}

// TestUploadThatOthersHoldUpGoesOnWhereItWas reaches the limit on bytes in the middle of an upload.
func TestUploadThatOthersHoldUpGoesOnWhereItWas(t *testing.T) {
	s := open(t, artifact.Options{CapBytes: 100 * unit, UploadBytes: 4 * unit})
	large, up := strings.Repeat("l", 2*unit), upload("ana", "")
	up.Digest, up.SizeBytes = records.Digest([]byte(large)), int64(len(large))
	h := hold(t, s, upload("ana", strings.Repeat("s", unit)), strings.Repeat("s", unit-1))
	if err := s.Put(t.Context(), up, iotest.OneByteReader(strings.NewReader(large))); !errors.Is(err, artifact.ErrBusy) {
		t.Errorf("got %v", err)
	}
	_ = h.end()
	up.Offset = received(t, s, "ana", large)
	if err := s.Put(t.Context(), up, strings.NewReader(large[up.Offset:])); err != nil || up.Offset == 0 {
		t.Errorf("going on at %d: %v", up.Offset, err)
	}
}

// TestTooManyUploadsAreTriedAgain lets a client wait for other uploads of its identity.
func TestTooManyUploadsAreTriedAgain(t *testing.T) {
	store := open(t, artifact.Options{Uploads: 1})
	conn := serve(t, store)
	rpc := tilthv1.NewArtifactServiceClient(conn)
	h := hold(t, store, upload("ana", "first"), "fir")
	stream, err := rpc.UploadArtifact(as(t.Context(), "ana"))
	if err != nil {
		t.Fatal(err)
	}
	up := upload("", "second")
	_ = stream.Send(&tilthv1.UploadArtifactRequest{Digest: up.Digest, SizeBytes: uint64(up.SizeBytes), Data: []byte("second")})
	_, err = stream.CloseAndRecv()
	if status.Code(err) != codes.Unavailable || wire.Reason(err) != wire.ReasonOverloaded {
		t.Errorf("got %v", err)
	}
	path, _ := randomFile(t, 100)
	uploaded := make(chan error, 1)
	heard := make(chan struct{}, 100)
	client := artifact.NewClient(conn, nil, slog.New(&listener{heard: heard}))
	go func() {
		_, err := client.Upload(as(t.Context(), "ana"), "candidates", path)
		uploaded <- err
	}()
	select {
	case <-heard: // refused at least once
	case err := <-uploaded:
		t.Fatalf("it was not tried again: %v", err)
	}
	_ = h.end()
	if err := <-uploaded; err != nil {
		t.Error(err)
	}
}

// listener is a log writer that signals each line.
type listener struct {
	slog.Handler
	heard chan struct{}
}

func (l *listener) Enabled(context.Context, slog.Level) bool { return true }

func (l *listener) Handle(context.Context, slog.Record) error {
	l.heard <- struct{}{}
	return nil
}

func TestPartsThatNobodyResumesExpire(t *testing.T) {
	dir := t.TempDir()
	clock := time.Now()
	s := open(t, artifact.Options{Dir: dir, KeepParts: time.Hour, Now: func() time.Time { return clock }})
	_ = hold(t, s, upload("ana", "hello"), "hel").end()
	clock = clock.Add(59 * time.Minute)
	maintain(t, s)
	if n := received(t, s, "ana", "hello"); n != 3 {
		t.Fatalf("%d bytes are left before the hour is over", n)
	}
	clock = clock.Add(time.Minute)
	maintain(t, s)
	if got := files(t, dir); len(got) > 0 || s.Stats().UsedBytes != 0 || s.Stats().Dropped["part"] != 1 {
		t.Errorf("left %v, %d bytes used", got, s.Stats().UsedBytes)
	}
}

// maintain runs a store's maintenance once.
func maintain(t *testing.T, s *artifact.Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Run(ctx)
}

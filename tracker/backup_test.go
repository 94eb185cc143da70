package tracker_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
)

// receive returns a whole backup.
func (f *trackerFarm) receive(stream grpc.ServerStreamingClient[tilthv1.BackupStoreResponse]) []byte {
	f.Helper()
	var file bytes.Buffer
	for {
		part := must[*tilthv1.BackupStoreResponse](f)(stream.Recv())
		file.Write(part.GetData())
		if part.GetDigest() == "" {
			continue
		}
		if part.GetDigest() != records.Digest(file.Bytes()) || part.GetSizeBytes() != uint64(file.Len()) {
			f.Errorf("%d bytes came, and %d are told", file.Len(), part.GetSizeBytes())
		}
		return file.Bytes()
	}
}

func TestBackupHasAllThatWasAcknowledgedBeforeIt(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	f.submit("before", spec("conv"))
	tuner := f.mustLease(f.tuner())
	var writers sync.WaitGroup
	defer writers.Wait()
	acknowledged := make(chan uint64, 1000)
	writers.Go(func() {
		defer close(acknowledged)
		for n := range uint64(60) {
			f.propose(tuner.GetLease(), n, 0, fmt.Sprintf("a %d", n), fmt.Sprintf("b %d", n))
			acknowledged <- n
		}
	})
	for range 30 {
		<-acknowledged
	}
	stream, err := tilthv1.NewAdminServiceClient(f.conn).BackupStore(t.Context(), &tilthv1.BackupStoreRequest{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "restored.db")
	if err := os.WriteFile(path, f.receive(stream), 0o644); err != nil {
		t.Fatal(err)
	}
	// To restore is to use the file: a tracker continues the jobs in progress.
	db := must[*bolt.DB](t)(bolt.Open(path, bolt.Options{}))
	defer db.Close()
	must[*tracker.Tracker](t)(tracker.New(tracker.Config{Store: db, ArtifactsDir: t.TempDir()}))
	batches := must[[]*records.OpenBatch](t)(db.OpenBatches())
	if len(batches) < 30 {
		t.Errorf("%d batches, at least 30 were acknowledged before", len(batches))
	}
	for i, b := range batches {
		if b.Row.GetProposal() != uint64(i) || len(b.Candidates) != 2 {
			t.Errorf("batch %d is %v", i, b)
		}
	}
}

func TestOneBackupAtATime(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	// More than the connection buffers, so that the first backup stays in progress while its receiver does not read.
	for i := range 6 {
		s := spec("conv")
		s.Tasks[0].Workload = fmt.Appendf(nil, "%01000000d", i)
		s.Tasks[0].WorkloadDigest = records.Digest(s.GetTasks()[0].GetWorkload())
		f.submit(fmt.Sprint("r", i), s)
	}
	admin := tilthv1.NewAdminServiceClient(f.conn)
	first, err := admin.BackupStore(t.Context(), &tilthv1.BackupStoreRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Recv(); err != nil {
		t.Fatal(err)
	}
	second, err := admin.BackupStore(t.Context(), &tilthv1.BackupStoreRequest{})
	if err == nil {
		_, err = second.Recv()
	}
	wantStatus(t, err, codes.ResourceExhausted, "", "a backup is under way")
	for {
		if _, err := first.Recv(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	third, err := admin.BackupStore(t.Context(), &tilthv1.BackupStoreRequest{})
	if err != nil {
		t.Fatal(err)
	}
	f.receive(third)
}

func TestRecordsOfATrackerArePruned(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	stream := must[grpc.ClientStreamingClient[tilthv1.ImportRecordsRequest, tilthv1.ImportRecordsResponse]](t)(f.records.ImportRecords(t.Context()))
	for i := range 10 {
		if err := stream.Send(&tilthv1.ImportRecordsRequest{Record: record(fmt.Sprint("t", i), int64(i)+1)}); err != nil {
			t.Fatal(err)
		}
	}
	must[*tilthv1.ImportRecordsResponse](t)(stream.CloseAndRecv())
	r := must[*tilthv1.PruneRecordsResponse](t)(tilthv1.NewAdminServiceClient(f.conn).PruneRecords(t.Context(), &tilthv1.PruneRecordsRequest{KeepBest: 2, KeepRecent: 3}))
	if r.GetRemoved() != 5 || r.GetKept() != 5 {
		t.Errorf("pruned: %v", r)
	}
}

package rpc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// backupPatience is how long a receiver may take to accept a chunk. The records file cannot reuse free pages during a
// backup, so a stalled one is aborted.
const backupPatience = 30 * time.Second

var errSlowBackup = errors.New("the receiver read nothing for too long")

// BackupStore implements tilthv1.AdminServiceServer.
func (s *Services) BackupStore(_ *tilthv1.BackupStoreRequest, stream grpc.ServerStreamingServer[tilthv1.BackupStoreResponse]) error {
	file, ok := s.coordinator.Store().(records.File)
	if !ok {
		return status.Error(codes.FailedPrecondition,
			"the tracker keeps its records in no file, so there is no file to back up: a database is backed up with pg_dump")
	}
	end, ok := s.backups.Begin()
	if !ok {
		return status.Error(codes.ResourceExhausted, "a backup is under way: wait for its end")
	}
	defer end()
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	chunks := &chunkWriter{ctx: ctx, closing: s.coordinator.Closing(), out: make(chan []byte)}
	var size int64
	var err error
	go func() {
		defer close(chunks.out)
		size, err = file.Backup(chunks)
		if err == nil {
			err = chunks.flush()
		}
	}()
	sum := sha256.New()
	for chunk := range chunks.out {
		sum.Write(chunk)
		if err := stream.Send(&tilthv1.BackupStoreResponse{Data: chunk}); err != nil {
			cancel()
			for range chunks.out { // drain until the transaction has ended
			}
			return err
		}
	}
	switch {
	case errors.Is(err, errSlowBackup):
		return status.Errorf(codes.Aborted, "back up the records file: %v", err)
	case err != nil && ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	case err != nil:
		return StoreError(err)
	}
	s.log.Info("backup sent", "bytes", size)
	return stream.Send(&tilthv1.BackupStoreResponse{SizeBytes: uint64(size), Digest: hex.EncodeToString(sum.Sum(nil))})
}

// chunkWriter passes what is written to it to a receiver in chunks. It fails when the receiver stalls.
type chunkWriter struct {
	ctx     context.Context
	closing <-chan struct{}
	out     chan []byte
	pending []byte
}

// Write implements io.Writer.
func (w *chunkWriter) Write(p []byte) (int, error) {
	for n := 0; n < len(p); {
		room := min(wire.PieceBytes-len(w.pending), len(p)-n)
		w.pending = append(w.pending, p[n:n+room]...)
		n += room
		if len(w.pending) == wire.PieceBytes {
			if err := w.flush(); err != nil {
				return n, err
			}
		}
	}
	return len(p), nil
}

func (w *chunkWriter) flush() error {
	if len(w.pending) == 0 {
		return nil
	}
	select {
	case w.out <- w.pending:
		w.pending = make([]byte, 0, wire.PieceBytes)
		return nil
	case <-time.After(backupPatience):
		return errSlowBackup
	case <-w.closing:
		return fmt.Errorf("tracker is stopping: %w", context.Canceled)
	case <-w.ctx.Done():
		return context.Cause(w.ctx)
	}
}

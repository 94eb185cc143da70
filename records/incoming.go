package records

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protodelim"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Admit validates and normalizes a record from outside. It returns an error that wraps ErrInvalid for a bad record. It
// cuts a valid record to the stored size and clears its job and its preference, which belong to the tracker that made
// it. The bounds of the wire also apply to records from files.
func Admit(r *tilthv1.Record) error {
	if err := Validate(r); err != nil {
		return err
	}
	if at := r.GetMeasurement().GetAt().AsTime(); time.Until(at) > maxClockSkew {
		return invalid("measurement.at", "is %s, which is in the future", at.Format(time.RFC3339))
	}
	r.JobId = ""
	ClearPreference(r.GetMeasurement())
	CutMeasurement(r.GetMeasurement())
	if err := wire.Check(r); err != nil {
		return &InvalidError{Field: fieldOf(err), Text: status.Convert(err).Message()}
	}
	return nil
}

// fieldOf returns the field named by a bounds violation.
func fieldOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if request, is := detail.(*errdetails.BadRequest); is && len(request.GetFieldViolations()) > 0 {
			return request.GetFieldViolations()[0].GetField()
		}
	}
	return ""
}

// chunkRecords and chunkBytes end a chunk of an import, which is one write.
const chunkRecords, chunkBytes = 500, 1 << 20

// Collect encodes the records that next returns until io.EOF as length-delimited messages and passes them to keep in
// chunks, which keep owns. DecodeChunk is the inverse. It returns the first error of next, keep or ctx, or ErrInvalid
// for a bad record; the chunks kept so far are then incomplete.
func Collect(ctx context.Context, next func() (*tilthv1.Record, error), keep func(chunk []byte) error) error {
	var chunk bytes.Buffer
	for n := 1; ; n++ {
		record, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = Admit(record)
		}
		if err != nil {
			return err
		}
		if _, err := protodelim.MarshalTo(&chunk, record); err != nil {
			return fmt.Errorf("keep records to import: %w", err)
		}
		if n%chunkRecords == 0 || chunk.Len() >= chunkBytes {
			if err := errors.Join(keep(chunk.Bytes()), context.Cause(ctx)); err != nil {
				return err
			}
			chunk = bytes.Buffer{}
		}
	}
	if chunk.Len() > 0 {
		return errors.Join(keep(chunk.Bytes()), context.Cause(ctx))
	}
	return context.Cause(ctx)
}

// DecodeChunk returns the operations that add the records of a chunk. It returns ErrDamaged unless Collect made the
// chunk.
func DecodeChunk(chunk []byte) (adds []AddRecord, err error) {
	for in := bytes.NewReader(chunk); ; {
		record := &tilthv1.Record{}
		err := protodelim.UnmarshalOptions{MaxSize: MaxRowBytes}.UnmarshalFrom(in, record)
		if errors.Is(err, io.EOF) {
			return adds, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: a record to be imported: %v", ErrDamaged, err)
		}
		adds = append(adds, NewAddRecord(record))
	}
}

// Pending is a commit in progress.
type Pending struct {
	done chan struct{}
	err  error
}

// NewPending returns a commit in progress, for implementations of Store.
func NewPending() *Pending { return &Pending{done: make(chan struct{})} }

// Settle completes the commit with its error; nil means stored. The store must call it exactly once.
func (p *Pending) Settle(err error) {
	p.err = err
	close(p.done)
}

// Wait waits until the commit is stored or has failed, or until ctx ends. In the last case it may still be stored.
func (p *Pending) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	default:
	}
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Report is the result of verifying a records file.
type Report struct {
	// SizeBytes is the size of the file.
	SizeBytes int64
	// Schema is the version of the file's layout.
	Schema uint32
	// Pages and Rows count what was checked.
	Pages, Rows uint64
	// SetAside counts damaged rows that had been set aside before.
	SetAside uint64
	// Damaged counts damaged pages and rows; Damage has the first hundred.
	Damaged uint64
	Damage  []*Damage
}

// Failure returns a one-line error that wraps ErrDamaged if anything is damaged, else nil.
func (r *Report) Failure(path string) error {
	if r.Damaged == 0 {
		return nil
	}
	return fmt.Errorf("verify records file %s: %w: %d pages or rows, the first is %v: restore a backup, or drop what is damaged with "+
		"'tilth records compact'", path, ErrDamaged, r.Damaged, r.Damage[0])
}

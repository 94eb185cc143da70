package records

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protodelim"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// A chunk of an import ends at chunkRecords, or with the record that reaches chunkBytes. Each is a write of its own.
const chunkRecords, chunkBytes = 500, 1 << 20

// Collect encodes the records that next returns until io.EOF as length-delimited messages and passes them to keep in
// chunks, which keep owns. DecodeChunk is the inverse. It returns the first error of next, keep or ctx, or ErrInvalid
// for a bad record; the chunks kept so far are then incomplete.
func (i *Incoming) Collect(ctx context.Context, next func() (*tilthv1.Record, error), keep func(chunk []byte) error) error {
	var chunk bytes.Buffer
	for n := 1; ; n++ {
		record, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = i.Admit(record)
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

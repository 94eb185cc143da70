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

// A chunk of an import ends at so many records, or with the first that makes it so large. It is a write of its own.
const chunkRecords, chunkBytes = 500, 1 << 20

// Collect has all records that next returns until io.EOF kept, in chunks, each record after its length; DecodeChunk
// reads them. A chunk is keep's. An error is of next, of a record (ErrInvalid), of keep or of ctx: the chunks that
// were kept are then not all.
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

// DecodeChunk returns what adds the records of a chunk. ErrDamaged when it is none that Collect made.
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

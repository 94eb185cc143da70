package s3

import (
	"context"
	"errors"
	"io"
	"time"
)

// reader reads an object. Any failure is reported where the data ends.
type reader struct {
	ctx    context.Context // the caller's
	bucket *Bucket
	digest string
	body   io.ReadCloser
	cancel context.CancelFunc
	stall  *time.Timer // cancels a stalled read
}

func newReader(ctx context.Context, b *Bucket, digest string, body io.ReadCloser, cancel context.CancelFunc) *reader {
	stall := time.AfterFunc(answerWithin, cancel)
	stall.Stop()
	return &reader{ctx, b, digest, body, cancel, stall}
}

func (r *reader) Read(p []byte) (int, error) {
	r.stall.Reset(answerWithin)
	n, err := r.body.Read(p)
	r.stall.Stop()
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.bucket.fault(r.ctx, "read artifact "+r.digest, err)
	}
	return n, err
}

// Close implements io.Closer.
func (r *reader) Close() error {
	r.stall.Stop()
	r.cancel()
	return r.body.Close()
}

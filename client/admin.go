package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Backup writes a consistent copy of the tracker's records file to w and returns its size. After an error,
// the written data are incomplete.
func (c *Client) Backup(ctx context.Context, w io.Writer) (sizeBytes uint64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.admin.BackupStore(ctx, &tilthv1.BackupStoreRequest{})
	if err != nil {
		return 0, c.explain("back up the records", err)
	}
	sum := sha256.New()
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return sizeBytes, fmt.Errorf("back up the records of %s: truncated after %d bytes: try again", c.addr, sizeBytes)
		}
		if err != nil {
			return sizeBytes, c.explain("back up the records", err)
		}
		if part.GetDigest() != "" {
			if part.GetSizeBytes() != sizeBytes || part.GetDigest() != hex.EncodeToString(sum.Sum(nil)) {
				return sizeBytes, fmt.Errorf("back up the records of %s: checksum mismatch: try again", c.addr)
			}
			return sizeBytes, nil
		}
		sum.Write(part.GetData())
		sizeBytes += uint64(len(part.GetData()))
		if _, err := w.Write(part.GetData()); err != nil {
			return sizeBytes, err
		}
	}
}

// Prune removes obsolete records of the tracker.
func (c *Client) Prune(ctx context.Context, request *tilthv1.PruneRecordsRequest) (removed, kept uint64, err error) {
	response, err := c.admin.PruneRecords(ctx, request)
	if err != nil {
		return 0, 0, c.explain("prune the records", err)
	}
	return response.GetRemoved(), response.GetKept(), nil
}

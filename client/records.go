package client

import (
	"context"
	"errors"
	"io"
	"slices"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// BestRecords returns the fastest verified record of each workload on a target whose schedule a level of numerics allows; no
// workloads means every one at every level, no target every target. Workloads without a record are left out.
func (c *Client) BestRecords(ctx context.Context, target, numerics string, workloads ...string) (best []*tilthv1.Record, err error) {
	if len(workloads) == 0 {
		return c.bestPages(ctx, target)
	}
	for some := range slices.Chunk(workloads, recordsPerPage) {
		request := &tilthv1.BestRecordsRequest{Target: target, WorkloadDigests: some, Numerics: numerics}
		response, err := c.bestRecords(ctx, request)
		if err != nil {
			return nil, err
		}
		best = append(best, response.GetRecords()...)
	}
	return best, nil
}

// recordsPerPage keeps a message far below what a connection takes: a record with its workload has some kilobytes.
const recordsPerPage = 1000

// bestPages returns the best record of every workload, a page after the other.
func (c *Client) bestPages(ctx context.Context, target string) (best []*tilthv1.Record, err error) {
	request := &tilthv1.BestRecordsRequest{Target: target, PageSize: recordsPerPage}
	for {
		response, err := c.bestRecords(ctx, request)
		if err != nil {
			return nil, err
		}
		best = append(best, response.GetRecords()...)
		if request.PageToken = response.GetNextPageToken(); request.PageToken == "" {
			return best, nil
		}
	}
}

func (c *Client) bestRecords(ctx context.Context, request *tilthv1.BestRecordsRequest) (*tilthv1.BestRecordsResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := c.records.BestRecords(ctx, request)
	if err != nil {
		return nil, c.explain("look up the best records", err)
	}
	return response, nil
}

// ListRecords calls visit with every record that matches; an empty target or workload matches all.
func (c *Client) ListRecords(ctx context.Context, target, workload string, visit func(*tilthv1.Record) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.records.ListRecords(ctx, &tilthv1.ListRecordsRequest{Target: target, WorkloadDigest: workload})
	if err != nil {
		return c.explain("list records", err)
	}
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return c.explain("list records", err)
		}
		if err := visit(response.GetRecord()); err != nil {
			return err
		}
	}
}

// ImportRecords hands in the records that next returns until io.EOF, all or none.
func (c *Client) ImportRecords(ctx context.Context, next func() (*tilthv1.Record, error)) (imported, skipped uint64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.records.ImportRecords(ctx)
	if err != nil {
		return 0, 0, c.explain("import records", err)
	}
	for {
		record, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, 0, err
		}
		if stream.Send(&tilthv1.ImportRecordsRequest{Record: record}) != nil {
			break // the answer has the cause
		}
	}
	response, err := stream.CloseAndRecv()
	if err != nil {
		return 0, 0, c.explain("import records", err)
	}
	return response.GetImported(), response.GetSkipped(), nil
}

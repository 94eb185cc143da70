package client

import (
	"context"
	"errors"
	"io"
	"slices"

	"google.golang.org/grpc"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// BestRecords returns the fastest verified record of each workload on a target with a schedule that the
// numerics level allows. Without workloads it returns all workloads at all levels; an empty target means all
// targets. Workloads without a record are omitted.
func (c *Client) BestRecords(ctx context.Context, target, numerics string, workloads ...string) (best []*tilthv1.Record, err error) {
	if len(workloads) == 0 {
		return c.bestPages(ctx, &tilthv1.BestRecordsRequest{Target: target})
	}
	for some := range slices.Chunk(workloads, itemsPerPage) {
		page, err := c.bestPages(ctx, &tilthv1.BestRecordsRequest{Target: target, WorkloadDigests: some, Numerics: numerics})
		if err != nil {
			return nil, err
		}
		best = append(best, page...)
	}
	return best, nil
}

// bestPages fetches all pages of a request.
func (c *Client) bestPages(ctx context.Context, request *tilthv1.BestRecordsRequest) ([]*tilthv1.Record, error) {
	request.PageSize = itemsPerPage
	return list(ctx, c, "look up the best records", request, &request.PageToken, c.records.BestRecords, (*tilthv1.BestRecordsResponse).GetRecords)
}

// ListRecords calls visit with every matching record. An empty target or workload matches all.
func (c *Client) ListRecords(ctx context.Context, target, workload string, visit func(*tilthv1.Record) error) error {
	request := &tilthv1.ListRecordsRequest{Target: target, WorkloadDigest: workload}
	return visitRecords(ctx, c, "list records", request, c.records.ListRecords, visit)
}

// visitRecords calls visit with every record of a stream.
func visitRecords[Q any, R interface{ GetRecord() *tilthv1.Record }, S interface{ Recv() (R, error) }](
	ctx context.Context, c *Client, doing string, request Q, method func(context.Context, Q, ...grpc.CallOption) (S, error), visit func(*tilthv1.Record) error,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := method(ctx, request)
	if err != nil {
		return c.explain(doing, err)
	}
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return c.explain(doing, err)
		}
		if err := visit(response.GetRecord()); err != nil {
			return err
		}
	}
}

// ImportRecords imports the records that next returns until io.EOF, all or none.
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
			break // the response contains the cause
		}
	}
	response, err := stream.CloseAndRecv()
	if err != nil {
		return 0, 0, c.explain("import records", err)
	}
	return response.GetImported(), response.GetSkipped(), nil
}

// RecordGroups returns groups of records; see ListRecordGroups in the wire.
func (c *Client) RecordGroups(ctx context.Context, req *tilthv1.ListRecordGroupsRequest) (*tilthv1.ListRecordGroupsResponse, error) {
	response, err := call(ctx, req, c.records.ListRecordGroups)
	if err != nil {
		return nil, c.explain("compare records", err)
	}
	return response, nil
}

// RecordKeys returns keys of a group's records.
func (c *Client) RecordKeys(ctx context.Context, req *tilthv1.ListRecordKeysRequest) ([]byte, error) {
	return get(ctx, c, "list keys of records", req, c.records.ListRecordKeys, (*tilthv1.ListRecordKeysResponse).GetKeys)
}

// LackingRecords returns the records of a group that the tracker lacks.
func (c *Client) LackingRecords(ctx context.Context, req *tilthv1.FindLackingRecordsRequest) ([]byte, error) {
	return get(ctx, c, "ask for lacking records", req, c.records.FindLackingRecords, (*tilthv1.FindLackingRecordsResponse).GetKeys)
}

// GetRecords calls visit with the existing ones among some records of a group.
func (c *Client) GetRecords(ctx context.Context, req *tilthv1.GetRecordsRequest, visit func(*tilthv1.Record) error) error {
	return visitRecords(ctx, c, "get records", req, c.records.GetRecords, visit)
}

package client

import (
	"context"
	"errors"
	"io"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

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
	response, err := call(ctx, req, c.records.ListRecordKeys)
	if err != nil {
		return nil, c.explain("list keys of records", err)
	}
	return response.GetKeys(), nil
}

// LackingRecords returns the records of a group that the tracker lacks.
func (c *Client) LackingRecords(ctx context.Context, req *tilthv1.FindLackingRecordsRequest) ([]byte, error) {
	response, err := call(ctx, req, c.records.FindLackingRecords)
	if err != nil {
		return nil, c.explain("ask for lacking records", err)
	}
	return response.GetKeys(), nil
}

// GetRecords calls visit with the existing ones among some records of a group.
func (c *Client) GetRecords(ctx context.Context, req *tilthv1.GetRecordsRequest, visit func(*tilthv1.Record) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.records.GetRecords(ctx, req)
	if err != nil {
		return c.explain("get records", err)
	}
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return c.explain("get records", err)
		}
		if err := visit(response.GetRecord()); err != nil {
			return err
		}
	}
}

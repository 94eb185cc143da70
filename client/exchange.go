package client

import (
	"context"

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

package services

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// BestRecords implements tilthv1.RecordServiceServer.
func (s *Services) BestRecords(_ context.Context, req *tilthv1.BestRecordsRequest) (*tilthv1.BestRecordsResponse, error) {
	if len(req.GetWorkloadDigests()) == 0 {
		return s.bestPage(req)
	}
	if req.GetTarget() == "" {
		return nil, invalid("target", "is empty: workloads are looked up for one target")
	}
	if !records.ValidNumerics(req.GetNumerics()) {
		return nil, invalid("numerics", "is %q, not strict, default or fast", req.GetNumerics())
	}
	from, err := placeOf(req)
	if err != nil {
		return nil, err
	}
	response, bytes := &tilthv1.BestRecordsResponse{}, 0
	for i, digest := range req.GetWorkloadDigests()[from:] {
		best, err := s.engine.Store().BestAllowed(req.GetTarget(), digest, req.GetNumerics())
		if errors.Is(err, records.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, storeError(err)
		}
		bytes += proto.Size(best)
		switch {
		case req.GetPageSize() == 0 && bytes > mostBestBytes:
			return nil, status.Errorf(codes.ResourceExhausted, "the best records of %d workloads do not fit a message: ask for them in pages, or for fewer",
				len(req.GetWorkloadDigests()))
		case req.GetPageSize() > 0 && len(response.GetRecords()) > 0 && (len(response.GetRecords()) == int(req.GetPageSize()) || bytes > mostListBytes):
			response.NextPageToken = strconv.Itoa(from + i)
			return response, nil
		}
		response.Records = append(response.Records, best)
	}
	return response, nil
}

// mostBestBytes bounds the answer for workloads that somebody wants all in one.
const mostBestBytes = wire.MaxMessageBytes / 4

// placeOf is where a page of a request for workloads begins among these.
func placeOf(req *tilthv1.BestRecordsRequest) (int, error) {
	if req.GetPageToken() == "" {
		return 0, nil
	}
	from, err := strconv.Atoi(req.GetPageToken())
	if err != nil || from < 0 || from > len(req.GetWorkloadDigests()) {
		return 0, strangeToken(req.GetPageToken())
	}
	return from, nil
}

// bestPage answers for every workload. A token is a mark of the store as hexadecimal digits.
func (s *Services) bestPage(req *tilthv1.BestRecordsRequest) (*tilthv1.BestRecordsResponse, error) {
	mark, err := hex.DecodeString(req.GetPageToken())
	target, _, whole := strings.Cut(string(mark), "\x00") // a group of records: target and workload
	if err != nil || len(mark) > 0 && (!whole || req.GetTarget() != "" && target != req.GetTarget()) {
		return nil, strangeToken(req.GetPageToken())
	}
	most := cmp.Or(int(req.GetPageSize()), math.MaxInt)
	best, next, err := s.engine.Store().BestPage(req.GetTarget(), string(mark), most, mostListBytes)
	return &tilthv1.BestRecordsResponse{Records: best, NextPageToken: hex.EncodeToString([]byte(next))}, storeError(err)
}

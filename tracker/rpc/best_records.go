package rpc

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
func (s *Services) BestRecords(ctx context.Context, req *tilthv1.BestRecordsRequest) (*tilthv1.BestRecordsResponse, error) {
	if err := checkTarget(req.GetTarget()); err != nil {
		return nil, err
	}
	owner, err := s.readerOf(viewerOf(ctx), req.GetJobId())
	if err != nil {
		return nil, err
	}
	if len(req.GetWorkloadDigests()) == 0 {
		return s.bestPage(owner, req)
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
		best, err := s.best(owner, req.GetTarget(), digest, req.GetNumerics())
		if errors.Is(err, records.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, StoreError(err)
		}
		bytes += proto.Size(best)
		switch {
		case req.GetPageSize() == 0 && bytes > maxBestBytes:
			return nil, status.Errorf(codes.ResourceExhausted, "the best records of %d workloads do not fit a message: ask for them in pages, or for fewer",
				len(req.GetWorkloadDigests()))
		case req.GetPageSize() > 0 && len(response.GetRecords()) > 0 && (len(response.GetRecords()) == int(req.GetPageSize()) || bytes > maxListBytes):
			response.NextPageToken = strconv.Itoa(from + i)
			return response, nil
		}
		response.Records = append(response.Records, best)
	}
	return response, nil
}

// maxBestBytes bounds an unpaged response.
const maxBestBytes = wire.MaxMessageBytes / 4

// placeOf returns the index of a page's first workload.
func placeOf(req *tilthv1.BestRecordsRequest) (int, error) {
	if req.GetPageToken() == "" {
		return 0, nil
	}
	from, err := strconv.Atoi(req.GetPageToken())
	if err != nil || from < 0 || from > len(req.GetWorkloadDigests()) {
		return 0, invalidPageToken(req.GetPageToken())
	}
	return from, nil
}

// bestPage returns a page of the best records of all workloads: first the workloads with shared records, then those
// for which only the owner has records. A page token is a mark of the store in hexadecimal.
func (s *Services) bestPage(owner string, req *tilthv1.BestRecordsRequest) (*tilthv1.BestRecordsResponse, error) {
	mark, err := hex.DecodeString(req.GetPageToken())
	if err != nil || !marks(string(mark), owner, req.GetTarget()) {
		return nil, invalidPageToken(req.GetPageToken())
	}
	within, private := req.GetTarget(), records.IsPrivate(string(mark))
	if private {
		within = records.Private(req.GetTarget(), owner)
	}
	first := ""
	if owner != "" {
		if first, err = s.firstPrivate(owner, req.GetTarget()); err != nil {
			return nil, StoreError(err)
		}
	}
	limit := cmp.Or(int(req.GetPageSize()), math.MaxInt)
	page, next, err := s.coordinator.Store().BestPage(within, string(mark), limit, maxListBytes)
	if next == "" && !private {
		next = first
	}
	if first == "" && !private {
		owner = "" // without private records the page needs no merging
	}
	response := &tilthv1.BestRecordsResponse{NextPageToken: hex.EncodeToString([]byte(next))}
	for _, r := range page {
		if err == nil {
			err = s.addBest(response, r, owner)
		}
	}
	return response, StoreError(err)
}

// marks reports whether a mark belongs to a page that the owner may request, of one target or of all.
func marks(mark, owner, target string) bool {
	if mark == "" {
		return true
	}
	name, _, whole := strings.Cut(mark, "\x00") // a group's name: target and workload
	of, whose := records.SplitTarget(name)
	return whole && whose == "" && (target == "" || of == target) || records.IsPrivate(name) && whose == owner && owner != "" && (target == "" || of == target || of == "")
}

// firstPrivate returns the mark of the first page of an owner's private records, or "".
func (s *Services) firstPrivate(owner, target string) (mark string, err error) {
	of := records.Private(target, owner)
	groups, _, err := s.coordinator.Store().GroupPage(of, "", 1)
	if len(groups) == 0 {
		return "", err
	}
	return of, err
}

// addBest adds the record that the owner gets for r to a page. Where shared and private records exist, it adds the
// better one, once.
func (s *Services) addBest(page *tilthv1.BestRecordsResponse, r *tilthv1.Record, owner string) error {
	target, whose := records.SplitTarget(r.GetTarget())
	if owner == "" {
		page.Records = append(page.Records, r)
		return nil
	}
	if whose != "" {
		_, err := s.coordinator.Store().BestAllowed(target, r.GetWorkloadDigest(), "")
		if err == nil {
			return nil // it was on an earlier page
		}
		if !errors.Is(err, records.ErrNotFound) {
			return err
		}
	}
	best, err := s.best(owner, target, r.GetWorkloadDigest(), "")
	if err == nil {
		page.Records = append(page.Records, best)
	}
	return err
}

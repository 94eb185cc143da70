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
func (s *Services) BestRecords(ctx context.Context, req *tilthv1.BestRecordsRequest) (*tilthv1.BestRecordsResponse, error) {
	if err := checkTarget(req.GetTarget()); err != nil {
		return nil, err
	}
	owner := viewerOf(ctx).name
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

// bestPage answers for every workload: first for those that have shared records, then for those of which the owner
// alone has any. A token is a mark of the store as hexadecimal digits.
func (s *Services) bestPage(owner string, req *tilthv1.BestRecordsRequest) (*tilthv1.BestRecordsResponse, error) {
	mark, err := hex.DecodeString(req.GetPageToken())
	if err != nil || !marks(string(mark), owner, req.GetTarget()) {
		return nil, strangeToken(req.GetPageToken())
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
	most := cmp.Or(int(req.GetPageSize()), math.MaxInt)
	page, next, err := s.engine.Store().BestPage(within, string(mark), most, mostListBytes)
	if next == "" && !private {
		next = first
	}
	if first == "" && !private {
		owner = "" // who has no private records gets the page as it is
	}
	response := &tilthv1.BestRecordsResponse{NextPageToken: hex.EncodeToString([]byte(next))}
	for _, r := range page {
		if err == nil {
			err = s.addBest(response, r, owner)
		}
	}
	return response, StoreError(err)
}

// marks says whether a mark is of a page that an owner may ask for, of a target or of all.
func marks(mark, owner, target string) bool {
	if mark == "" {
		return true
	}
	name, _, whole := strings.Cut(mark, "\x00") // a group of records: target and workload
	of, whose := records.SplitTarget(name)
	return whole && whose == "" && (target == "" || of == target) || records.IsPrivate(name) && whose == owner && owner != "" && (target == "" || of == target || of == "")
}

// firstPrivate is the mark of an owner's first page of private records; empty when there are none.
func (s *Services) firstPrivate(owner, target string) (mark string, err error) {
	of := records.Private(target, owner)
	groups, _, err := s.engine.Store().GroupPage(of, "", 1)
	if len(groups) == 0 {
		return "", err
	}
	return of, err
}

// addBest adds to a page what the owner gets for a record of the store's: the better one of a shared and a private
// record where there are both, once.
func (s *Services) addBest(page *tilthv1.BestRecordsResponse, r *tilthv1.Record, owner string) error {
	target, whose := records.SplitTarget(r.GetTarget())
	if owner == "" {
		page.Records = append(page.Records, r)
		return nil
	}
	if whose != "" {
		_, err := s.engine.Store().BestAllowed(target, r.GetWorkloadDigest(), "")
		if err == nil {
			return nil // it was on a page before
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

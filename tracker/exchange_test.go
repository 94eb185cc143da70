package tracker_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

// keysOf returns the keys of records by their seconds, as on the wire.
func keysOf(seconds ...int64) []byte {
	var keys []records.Key
	for _, second := range seconds {
		keys = append(keys, records.KeyOf(storetest.Record("cpu", "conv", second, 0.5).GetMeasurement()))
	}
	return records.PackKeys(keys)
}

func TestRecordsAreComparedOverTheWire(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	stream := must[grpc.ClientStreamingClient[tilthv1.ImportRecordsRequest, tilthv1.ImportRecordsResponse]](t)(f.records.ImportRecords(t.Context()))
	add := func(r *tilthv1.Record) {
		if err := stream.Send(&tilthv1.ImportRecordsRequest{Record: r}); err != nil {
			t.Fatal(err)
		}
	}
	for _, target := range []string{"cpu", "gpu"} {
		for second := range int64(3) {
			add(storetest.Record(target, "conv", second, 0.5))
		}
		add(storetest.Record(target, "pool", 9, 0.5))
	}
	must[*tilthv1.ImportRecordsResponse](t)(stream.CloseAndRecv())
	conv := records.Digest([]byte("conv"))
	for filter, want := range map[*tilthv1.ListRecordGroupsRequest]int{
		{}: 4, {Target: "cpu"}: 2, {WorkloadDigests: []string{conv}}: 2, {Target: "gpu", WorkloadDigests: []string{conv, records.Digest(nil)}}: 1,
	} {
		var groups []string
		for filter.PageSize = 1; len(groups) == 0 || filter.GetPageToken() != ""; {
			page := must[*tilthv1.ListRecordGroupsResponse](t)(f.records.ListRecordGroups(t.Context(), filter))
			for _, g := range page.GetGroups() {
				groups = append(groups, g.GetTarget()+g.GetWorkloadDigest())
				if three := g.GetWorkloadDigest() == conv; g.GetRecords() != map[bool]uint64{true: 3, false: 1}[three] || len(g.GetKeysDigest()) != 32 {
					t.Errorf("a group is %v", g)
				}
			}
			filter.PageToken = page.GetNextPageToken()
		}
		if len(groups) != want || !slices.IsSorted(groups) {
			t.Errorf("%v: groups %q, want %d", filter, groups, want)
		}
	}
	keys := must[*tilthv1.ListRecordKeysResponse](t)(f.records.ListRecordKeys(t.Context(), &tilthv1.ListRecordKeysRequest{Target: "cpu", WorkloadDigest: conv, PageSize: 2}))
	if !bytes.Equal(keys.GetKeys(), keysOf(0, 1)) {
		t.Errorf("keys %x", keys.GetKeys())
	}
	keys = must[*tilthv1.ListRecordKeysResponse](t)(f.records.ListRecordKeys(t.Context(), &tilthv1.ListRecordKeysRequest{Target: "cpu", WorkloadDigest: conv, From: keysOf(1)}))
	if !bytes.Equal(keys.GetKeys(), keysOf(1, 2)) {
		t.Errorf("keys from the second on %x", keys.GetKeys())
	}
	lacking := must[*tilthv1.FindLackingRecordsResponse](t)(f.records.FindLackingRecords(t.Context(), &tilthv1.FindLackingRecordsRequest{
		Target: "cpu", WorkloadDigest: conv, Keys: keysOf(0, 2, 5, 6),
	}))
	if !bytes.Equal(lacking.GetKeys(), keysOf(5, 6)) {
		t.Errorf("lacking %x", lacking.GetKeys())
	}
	got, err := f.someRecords(&tilthv1.GetRecordsRequest{Target: "cpu", WorkloadDigest: conv, Keys: keysOf(0, 2, 5)})
	if err != nil || len(got) != 2 || string(got[0].GetWorkload()) != "conv" || got[1].GetMeasurement().GetAt().GetSeconds() != 2 {
		t.Errorf("records %v, %v", got, err)
	}
	for name, bad := range map[string][]byte{"cut": keysOf(1)[:10], "out of order": keysOf(2, 1), "twice": keysOf(1, 1)} {
		_, err := f.records.FindLackingRecords(t.Context(), &tilthv1.FindLackingRecordsRequest{Target: "cpu", WorkloadDigest: conv, Keys: bad})
		wantStatus(t, err, codes.InvalidArgument, "", "keys")
		if _, err = f.someRecords(&tilthv1.GetRecordsRequest{Target: "cpu", WorkloadDigest: conv, Keys: bad}); err == nil {
			t.Errorf("keys %s are taken", name)
		}
	}
	_, err = f.records.ListRecordKeys(t.Context(), &tilthv1.ListRecordKeysRequest{Target: "cpu", WorkloadDigest: conv, From: []byte("x")})
	wantStatus(t, err, codes.InvalidArgument, "", "from")
}

// someRecords returns all records of a stream.
func (f *trackerFarm) someRecords(req *tilthv1.GetRecordsRequest) (all []*tilthv1.Record, err error) {
	stream := must[grpc.ServerStreamingClient[tilthv1.GetRecordsResponse]](f)(f.records.GetRecords(f.Context(), req))
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, r.GetRecord())
	}
}

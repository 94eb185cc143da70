package records_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	"github.com/tilth-dev/tilth/records"
)

func groupsAndKeysComeInPages(t *testing.T, k storeKind) {
	s := fresh(t, k)
	for _, target := range []string{"a", "b", "bb"} {
		for _, workload := range []string{"conv", "pool", "dense"} {
			storetest.Add(t, s, storetest.Record(target, workload, 3, 0.5), storetest.Record(target, workload, 1, 0), storetest.Record(target, workload, 2, 0.5))
		}
	}
	for target, want := range map[string]int{"": 9, "a": 3, "b": 3, "c": 0} {
		for _, most := range []int{1, 2, 9, 100} {
			var all []string
			for after, first := "", true; first || after != ""; first = false {
				page, next, err := s.GroupPage(target, after, most)
				if err != nil || len(page) > most {
					t.Fatalf("a page has %d groups, %v", len(page), err)
				}
				for _, g := range page {
					all = append(all, g.Target+"\x00"+g.Workload)
				}
				after = next
			}
			if len(all) != want || !slices.IsSorted(all) || len(slices.Compact(all)) != want {
				t.Errorf("%q, %d at a time: %q, want %d", target, most, all, want)
			}
		}
	}
	conv := records.Group{Target: "b", Workload: records.Digest([]byte("conv"))}
	var want []records.Key
	for second := range int64(3) {
		want = append(want, records.KeyOf(storetest.Record("b", "conv", second+1, 0.5).GetMeasurement()))
	}
	for from, first := range want {
		for most := range 5 {
			keys, err := s.KeyPage(conv, first, most)
			if rest := want[from:]; err != nil || !slices.Equal(keys, rest[:min(most, len(rest))]) {
				t.Errorf("%d keys from the key %d on are %v, %v", most, from, keys, err)
			}
		}
	}
	for _, of := range []records.Group{conv, {Target: "c", Workload: conv.Workload}} {
		if keys, err := s.KeyPage(of, want[2].After(), 5); err != nil || len(keys) > 0 {
			t.Errorf("keys after the last: %v, %v", keys, err)
		}
	}
}

func someRecordsAreFoundByTheirKeys(t *testing.T, k storeKind) {
	s := fresh(t, k)
	var keys []records.Key
	for second := range int64(200) {
		r := storetest.Record("cpu", "conv", second, 0.5)
		keys = append(keys, records.KeyOf(r.GetMeasurement()))
		if second%2 == 1 {
			storetest.Add(t, s, r)
		}
	}
	of := records.Group{Target: "cpu", Workload: records.Digest([]byte("conv"))}
	found, looked, err := s.RecordsOf(of, keys, 1<<20)
	if err != nil || looked != len(keys) || len(found) != len(keys)/2 {
		t.Fatalf("%d records of %d keys, %v", len(found), looked, err)
	}
	for i, r := range found {
		want := storetest.Record("cpu", "conv", int64(2*i+1), 0.5)
		if i > 0 {
			want.Workload = nil
		}
		if !proto.Equal(r, want) {
			t.Errorf("record %d is %v, want %v", i, r, want)
		}
	}
	found, looked, err = s.RecordsOf(of, keys[1:], 1)
	if err != nil || len(found) == 0 || looked >= len(keys)-1 || !proto.Equal(found[0], storetest.Record("cpu", "conv", 1, 0.5)) {
		t.Errorf("within few bytes: %d records of %d keys, %v", len(found), looked, err)
	}
	found, looked, err = s.RecordsOf(records.Group{Target: "gpu", Workload: of.Workload}, keys, 1<<20)
	if err != nil || looked != len(keys) || len(found) > 0 {
		t.Errorf("a group that is not there has %d records of %d keys, %v", len(found), looked, err)
	}
}

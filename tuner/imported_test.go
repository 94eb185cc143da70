package tuner

import (
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

func TestSearchBeginsWithAnImportedPoint(t *testing.T) {
	s := spaceOf(t, kerneltest.Product(t, 128, 64, 128), testTarget(t), schedule.Default)
	var points []searchspace.Point
	var texts []string
	for _, columns := range []int64{3, 5, 7} {
		p, ok := s.Tiled(searchspace.Tiling{Channels: 32, Columns: columns})
		if !ok {
			t.Fatal("no point is near")
		}
		points, texts = append(points, p), append(texts, s.Format(p))
	}
	search := func() Search {
		search, err := NewSearch(s, nil, Options{Seed: 7, Imported: points})
		if err != nil {
			t.Fatal(err)
		}
		return search
	}
	a, resumed := search(), search()
	first := a.Propose(4)
	if first[0].Origin != s.Format(s.Default()) || !slices.Contains(texts, first[1].Origin) {
		t.Errorf("it begins with %s and %s, of the imported %q", first[0].Origin, first[1].Origin, texts)
	}
	for _, c := range first {
		a.Observe(measure(s, c))
		resumed.Observe(measure(s, c))
	}
	next, again := a.Propose(8), resumed.Propose(8)
	for k := range next {
		if next[k].Digest != again[k].Digest {
			t.Errorf("candidate %d: %s, resumed %s", k, next[k].Origin, again[k].Origin)
		}
	}
}

// TestSeedsOfAJobAreRead checks that seeds without a point in this version's space are skipped.
func TestSeedsOfAJobAreRead(t *testing.T) {
	s := spaceOf(t, kerneltest.Product(t, 128, 64, 128), testTarget(t), schedule.Default)
	p, ok := s.Tiled(searchspace.Tiling{Channels: 32, Columns: 7})
	if !ok {
		t.Fatal("no point is near")
	}
	points := imported(s, &tilthv1.TaskSpec{Seeds: [][]byte{[]byte("alg=1099511627776 x=1"), []byte(s.Format(p))}})
	if len(points) != 1 || !slices.Equal(points[0], p) {
		t.Errorf("they are %v, want %v", points, p)
	}
}

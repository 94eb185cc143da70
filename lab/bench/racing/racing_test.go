package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestPairsThatTookTurnsAreCompared(t *testing.T) {
	r := &result{Task: "t", Candidates: []candidate{
		{Group: 0, Search: []float64{1.2}, Race: []float64{1}, Long: []float64{1, 1, 1, 1, 1}},
		{Group: 0, Search: []float64{1.1}, Race: []float64{1.1}, Long: []float64{1.5, 1.5, 1.5, 1.5, 1.5}},
		{Group: 1, Search: []float64{3}, Race: []float64{3}, Long: []float64{3}},
	}}
	pairs := r.pairs()
	if len(pairs) != 1 || pairs[0] != (pair{difference: 0.5, race: true, clear: true}) {
		t.Errorf("pairs are %+v", pairs)
	}
	if search, race := r.regret(bySearch), r.regret(byRace); search != 0.5 || race != 0 {
		t.Errorf("the search's choice is %g too slow, the finalists' %g", search, race)
	}
}

func TestFinalistsAreTheFirstGroup(t *testing.T) {
	order := strings.Split("abcdefghijklmnopqr", "")
	var got []string
	for _, g := range groups(order) {
		got = append(got, strings.Join(g, ""))
	}
	if strings.Join(got, " ") != "abcdefgh ikmoq jlnpr" {
		t.Errorf("groups are %v", got)
	}
	if got := groups(order[:3]); len(got) != 1 || len(got[0]) != 3 {
		t.Errorf("groups of three are %v", got)
	}
}

func TestTheLastResultOfATaskCounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.jsonl")
	for _, r := range []result{{Task: "a", RaceSeconds: 1}, {Task: "b"}, {Task: "a", RaceSeconds: 2}} {
		if err := appendResult(path, &r); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readResults(path)
	if err != nil || len(got) != 2 || got[0].RaceSeconds != 2 {
		t.Errorf("results are %v, %v", got, err)
	}
}

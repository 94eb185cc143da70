package memory

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSortedMapIsAMapInOrder compares a sorted map with an ordinary one.
func TestSortedMapIsAMapInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s sorted[int, int]
		plain := map[int]int{}
		for round := range rapid.IntRange(0, 6).Draw(t, "rounds") {
			first, step := rapid.IntRange(-3000, 3000).Draw(t, "first"), rapid.SampledFrom([]int{-7, -1, 1, 3}).Draw(t, "step")
			remove := rapid.IntRange(0, 3).Draw(t, "remove") == 0
			for n := range 1500 {
				key := first + n*step
				value, there := plain[key]
				if remove {
					delete(plain, key)
					if got, was := s.remove(key); was != there || got != value {
						t.Fatalf("removing %d gave %d, %v", key, got, was)
					}
					continue
				}
				plain[key] = round
				if got, was := s.put(key, round); was != there || got != value {
					t.Fatalf("putting %d gave %d, %v", key, got, was)
				}
			}
		}
		checkSorted(t, &s, plain)
	})
}

func checkSorted(t *rapid.T, s *sorted[int, int], plain map[int]int) {
	keys := slices.Sorted(maps.Keys(plain))
	if got := slices.Collect(maps.Keys(maps.Collect(s.all()))); s.count != len(keys) || len(got) != len(keys) {
		t.Fatalf("it has %d keys and says %d, want %d", len(got), s.count, len(keys))
	}
	at := rapid.IntRange(-15000, 15000).Draw(t, "at")
	place, _ := slices.BinarySearch(keys, at)
	var from, before []int
	for key, value := range s.from(at) {
		if value != plain[key] {
			t.Fatalf("%d is %d, want %d", key, value, plain[key])
		}
		from = append(from, key)
	}
	for key := range s.before(at) {
		before = append(before, key)
	}
	slices.Reverse(before)
	if !slices.Equal(from, keys[place:]) || !slices.Equal(before, keys[:place]) {
		t.Fatalf("around %d there are %d and %d keys, want %d and %d", at, len(before), len(from), place, len(keys)-place)
	}
	if last, ok := s.last(); ok != (len(keys) > 0) || ok && last != keys[len(keys)-1] {
		t.Fatalf("the last is %d, %v", last, ok)
	}
	_, there := plain[at]
	if got, ok := s.get(at); ok != there || got != plain[at] {
		t.Fatalf("%d is %d, %v", at, got, ok)
	}
}

package contest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/tuner"
)

// Known selects the knowledge available before a search.
type Known int

const (
	// Nothing is the state of a first job on an empty store.
	Nothing Known = iota
	// Others includes all sets of other workloads on the same target.
	Others
	// Same adds an earlier search of the same workload to Others.
	Same
)

// Variant is a search with its knowledge and disabled parts.
type Variant struct {
	Name    string
	Options tuner.Options
	Known   Known
}

// Variants returns the compared searches: the algorithms, and the learning one without each of its parts or
// with earlier knowledge.
func Variants() []Variant {
	var list []Variant
	for _, name := range tuner.Names() {
		if name != tuner.Best {
			list = append(list, Variant{name, tuner.Options{Algorithm: name}, Nothing})
		}
	}
	if !slices.Contains(tuner.Names(), tuner.Best) {
		return list
	}
	best := func(name string, known Known, leaveOut func(*tuner.Options)) {
		v := Variant{tuner.Best + name, tuner.Options{Algorithm: tuner.Best}, known}
		leaveOut(&v.Options)
		list = append(list, v)
	}
	best("", Others, func(*tuner.Options) {})
	best("-no-transfer", Nothing, func(o *tuner.Options) { o.NoTransfer = true })
	best("-no-model", Others, func(o *tuner.Options) { o.NoModel = true })
	best("-no-draft", Others, func(o *tuner.Options) { o.NoDraft = true })
	best("-no-seeds", Others, func(o *tuner.Options) { o.NoSeeds = true })
	best("-known", Same, func(*tuner.Options) {})
	return list
}

// Choose returns variants by name, in order, or all without names.
func Choose(names []string) ([]Variant, error) {
	all := Variants()
	if len(names) == 0 {
		return all, nil
	}
	var list []Variant
	for _, name := range names {
		k := slices.IndexFunc(all, func(v Variant) bool { return v.Name == name })
		if k < 0 {
			var known []string
			for _, v := range all {
				known = append(known, v.Name)
			}
			return nil, fmt.Errorf("unknown search %q: want one of %s", name, strings.Join(known, ", "))
		}
		list = append(list, all[k])
	}
	return list, nil
}

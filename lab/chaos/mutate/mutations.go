package mutate

import "slices"

// mutations lists all mutations, in the order of the promises in docs/reliability.md.
var mutations = slices.Concat(once, stored, exchanged, database, shards, converted, restored, artifacts, faults, watched, gentle, agents, fair, kept, bounded, rates, sizes, closed, lies, waits)

// in returns mutations of one package, which its own tests must notice.
func in(pkg string, list []mutation) []mutation {
	for k := range list {
		list[k].pkg = "./" + pkg
		list[k].file = pkg + "/" + list[k].file
	}
	return list
}

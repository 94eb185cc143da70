package mutation

import (
	_ "embed" // the table
	"fmt"
	"strings"
)

//go:embed mutations.txt
var table string

// mutations lists all mutations, in the order of the promises in docs/reliability.md.
var mutations = parse(table)

// parse parses a table of mutations, which empty lines separate. It panics if the table is malformed.
func parse(table string) (list []mutation) {
	for entry := range strings.SplitSeq(table, "\n\n") {
		lines := strings.Split(strings.Trim(entry, "\n"), "\n")
		if strings.HasPrefix(lines[0], "#") {
			continue
		}
		m := mutation{name: lines[0]}
		if _, err := fmt.Sscan(lines[1], &m.file, &m.pkg, &m.test); err != nil {
			panic(fmt.Sprintf("mutation %q: %v", m.name, err))
		}
		var from, to []string
		for _, line := range lines[2:] {
			switch text := line[1:]; line[0] {
			case '-':
				from = append(from, text)
			case '+':
				to = append(to, text)
			default:
				panic(fmt.Sprintf("mutation %q: line %q", m.name, line))
			}
		}
		m.from, m.to = strings.Join(from, "\n"), strings.Join(to, "\n")
		list = append(list, m)
	}
	return list
}

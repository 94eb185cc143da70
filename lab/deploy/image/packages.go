package image

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// debianPackage is a package that is installed here.
type debianPackage struct {
	essential bool
	// provided is set for virtual package names.
	provided bool
	// depends has a list of alternatives for each dependency.
	depends [][]string
}

// debianPackages are by name, and by the names that they provide.
type debianPackages map[string]*debianPackage

// packageTable asks dpkg.
func packageTable(ctx context.Context) (debianPackages, error) {
	format := "${db:Status-Abbrev}\t${Package}\t${Essential}\t${Pre-Depends}, ${Depends}\t${Provides}\n"
	listed, err := exec.CommandContext(ctx, "dpkg-query", "--show", "--showformat", format).Output()
	if err != nil {
		return nil, fmt.Errorf("images are made of Debian's packages: dpkg-query: %w", err)
	}
	all := debianPackages{}
	for line := range strings.Lines(string(listed)) {
		fields := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(fields) != 5 || !strings.HasPrefix(fields[0], "ii") {
			continue
		}
		p := &debianPackage{essential: fields[2] == "yes", depends: dependencies(fields[3])}
		all[fields[1]] = p
		for _, provided := range dependencies(fields[4]) {
			if all[provided[0]] == nil {
				all[provided[0]] = &debianPackage{provided: true, depends: [][]string{{fields[1]}}}
			}
		}
	}
	return all, nil
}

// dependencies reads a field such as Depends: "a (>= 1), b | c:any".
func dependencies(field string) (list [][]string) {
	for clause := range strings.SplitSeq(field, ",") {
		var alternatives []string
		for choice := range strings.SplitSeq(clause, "|") {
			if words := strings.Fields(choice); len(words) > 0 {
				name, _, _ := strings.Cut(words[0], ":")
				alternatives = append(alternatives, name)
			}
		}
		if len(alternatives) > 0 {
			list = append(list, alternatives)
		}
	}
	return list
}

// closure returns packages with their dependencies, without recommendations, sorted.
func (all debianPackages) closure(names []string) ([]string, error) {
	seen, todo := map[string]bool{}, slices.Clone(names)
	for len(todo) > 0 {
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[name] {
			continue
		}
		seen[name] = true
		p := all[name]
		if p == nil {
			return nil, fmt.Errorf("the package %s is not installed here: run scripts/packages.sh test", name)
		}
		for _, alternatives := range p.depends {
			i := slices.IndexFunc(alternatives, func(choice string) bool { return all[choice] != nil })
			if i < 0 {
				return nil, fmt.Errorf("the package %s lacks %s", name, strings.Join(alternatives, " or "))
			}
			todo = append(todo, alternatives[i])
		}
	}
	return all.real(seen), nil
}

// real leaves out names that are only provided.
func (all debianPackages) real(names map[string]bool) (list []string) {
	for name := range names {
		if !all[name].provided {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

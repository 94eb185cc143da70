package aot

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/internal/humanize"
)

// CSource describes an archive of C source in a manifest.
type CSource struct {
	// Prefix starts its names in C.
	Prefix string `json:"prefix"`
	// RAMBytes is the memory of a run: the arena, data, and an estimate of the stack.
	RAMBytes int64 `json:"ram_bytes"`
	// FlashBytes is the size of read-only data: weights and code.
	FlashBytes int64 `json:"flash_bytes"`
	CodeBytes  int64 `json:"code_bytes"`
	StackBytes int64 `json:"stack_bytes"`
	// Needs lists the external functions that it calls.
	Needs []string `json:"needs,omitempty"`
}

// Limits bounds the memory use of C source, and the size of a package; 0 means no bound.
type Limits struct{ RAMBytes, FlashBytes, PackageBytes int64 }

// limit returns an error that names an exceeded limit and the largest contributions.
func (s *source) limit() error {
	l := s.options.Limits
	if l.RAMBytes > 0 && s.ramBytes() > l.RAMBytes {
		return fmt.Errorf("it needs %d bytes of RAM, and --max-ram allows %d: most is in use for %s", s.ramBytes(), l.RAMBytes, largest(s.alive()))
	}
	if l.FlashBytes > 0 && s.flashBytes() > l.FlashBytes {
		return fmt.Errorf("it needs %d bytes of flash, and --max-flash allows %d: most are %s", s.flashBytes(), l.FlashBytes, largest(s.kept()))
	}
	return nil
}

// part is a contribution to memory use.
type part struct {
	name  string
	bytes int64
}

// largest describes the largest parts with their sizes.
func largest(parts []part) string {
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.bytes, a.bytes) })
	return humanize.Join(parts[:min(len(parts), 3)], ", ", func(p part) string { return fmt.Sprintf("%s (%d bytes)", p.name, p.bytes) })
}

// alive returns the values and the scratch of the call with the largest memory use.
func (s *source) alive() (parts []part) {
	peak := int64(-1)
	for k, c := range s.program.Calls {
		var now []part
		all := int64(0)
		for _, u := range s.uses {
			if u.from <= k && k <= u.to && u.bytes > 0 {
				now = append(now, part{u.name, u.bytes})
				all += u.bytes
			}
		}
		if all > peak {
			peak, parts = all, now
			for i := range parts {
				if parts[i].name == "" {
					parts[i].name = "scratch of " + c.Name
				}
			}
		}
	}
	return append(parts, part{"the stack", s.sizes.Stack})
}

// kept returns the weights and the code.
func (s *source) kept() (parts []part) {
	for k, c := range s.constants {
		end := s.weightsBytes
		if k+1 < len(s.constants) {
			end = s.constants[k+1].offset
		}
		parts = append(parts, part{"the weights " + s.program.Values[c.root].Name, end - c.offset})
	}
	return append(parts, part{"the code", s.sizes.Code})
}

package powercut

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Part is an unsynced change that may be lost independently.
type Part struct {
	node   *node
	change int   // of the node's changes or renames
	sector int64 // of a file, or newSize
}

// newSize is the part of a change that sets the file's size.
const newSize = -1

// Loss is the set of changes lost by a power failure. The zero value is empty.
type Loss struct {
	parts map[Part]bool
	bytes int64 // sector size
}

// sectorBytes lists the atomic write sizes of disks.
var sectorBytes = []int64{512, 4096}

// parts returns everything that may be lost below a path; "" is the root.
func (d *Disk) parts(below string, sector int64) (out []Part) {
	for _, n := range d.nodes {
		if below != "" && n.path != below && !strings.HasPrefix(n.path, below+"/") {
			continue
		}
		for i := range n.renames {
			out = append(out, Part{n, i, newSize})
		}
		for i, c := range n.changes {
			if c.grows {
				out = append(out, Part{n, i, newSize})
			}
			for s := c.offset / sector; s*sector < c.offset+int64(len(c.data)); s++ {
				out = append(out, Part{n, i, s})
			}
		}
	}
	return out
}

// Draw draws a loss below a path, relative to the root: everything that may be lost, nothing, one part, all but one,
// or a random set of parts.
func (d *Disk) Draw(rng *rand.Rand, below string) Loss {
	l := Loss{map[Part]bool{}, sectorBytes[rng.IntN(len(sectorBytes))]}
	all := d.parts(below, l.bytes)
	if len(all) == 0 {
		return l
	}
	one := all[rng.IntN(len(all))]
	chance := [...]float64{0, 0, 1, 1, 0.1, 0.5, 0.5, 0.9}
	way := rng.IntN(len(chance))
	for _, p := range all {
		l.parts[p] = rng.Float64() < chance[way]
	}
	switch way {
	case 0:
		l.parts[one] = true
	case 2:
		l.parts[one] = false
	}
	maps.DeleteFunc(l.parts, func(_ Part, lost bool) bool { return !lost })
	return l
}

// Shrink returns a minimal part of a loss that still fails. It calls fails often.
func (d *Disk) Shrink(l Loss, fails func(Loss) bool) Loss {
	lost := slices.DeleteFunc(d.parts("", l.bytes), func(p Part) bool { return !l.parts[p] })
	for size := len(lost); size > 0; size /= 2 {
		for at := 0; at < len(lost); {
			fewer := slices.Concat(lost[:at], lost[min(at+size, len(lost)):])
			if fails(l.of(fewer)) {
				lost = fewer
			} else {
				at += size
			}
		}
	}
	return l.of(lost)
}

func (l Loss) of(parts []Part) Loss {
	out := Loss{map[Part]bool{}, l.bytes}
	for _, p := range parts {
		out.parts[p] = true
	}
	return out
}

// Tell lists the lost parts, one per line.
func (l Loss) Tell() string {
	var lines []string
	for p := range l.parts {
		switch {
		case p.node.names != nil:
			r := p.node.renames[p.change]
			lines = append(lines, fmt.Sprintf("step %d: in folder /%s, %q gone, %q come", r.step, p.node.path, r.gone, r.came))
		case p.sector == newSize:
			c := p.node.changes[p.change]
			lines = append(lines, fmt.Sprintf("step %d: /%s has %d bytes", c.step, p.node.path, c.size))
		default:
			c := p.node.changes[p.change]
			lines = append(lines, fmt.Sprintf("step %d: /%s, of a write of %d bytes at %d the sector at %d", c.step, p.node.path, len(c.data), c.offset, p.sector*l.bytes))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Write creates a folder with the content below a path of a disk after a loss. It creates nothing if the path
// itself was lost.
func (d *Disk) Write(to, below string, l Loss) error {
	n := d.root
	for _, name := range strings.Split(below, "/") {
		if n = n.left(l)[name]; n == nil {
			return nil
		}
	}
	return n.write(to, l)
}

func (n *node) write(to string, l Loss) error {
	if n.names == nil {
		return os.WriteFile(to, n.content(l), 0o644)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for name, inside := range n.left(l) {
		if err := inside.write(filepath.Join(to, name), l); err != nil {
			return err
		}
	}
	return nil
}

// left returns the remaining names in a folder. A lost change of a name also loses the later changes of that name.
func (n *node) left(l Loss) map[string]*node {
	names, broken := maps.Clone(n.syncedNames), map[string]bool{}
	for i, r := range n.renames {
		if l.parts[Part{n, i, newSize}] || r.gone != "" && broken[r.gone] || r.came != "" && broken[r.came] {
			broken[r.gone], broken[r.came] = true, true
			continue
		}
		r.apply(names)
	}
	return names
}

// content returns the remaining bytes of a file. A lost size change also loses later ones. Unwritten bytes
// within the size are zero.
func (n *node) content(l Loss) []byte {
	b, size, sized := slices.Clone(n.synced), int64(len(n.synced)), true
	sector := cmp.Or(l.bytes, sectorBytes[0])
	for i, c := range n.changes {
		if sized = sized && !(c.grows && l.parts[Part{n, i, newSize}]); sized {
			size = c.size
			b = resized(b, size)
		}
		b = resized(b, max(int64(len(b)), c.offset+int64(len(c.data))))
		for at := c.offset; at < c.offset+int64(len(c.data)); {
			s := at / sector
			end := min((s+1)*sector, c.offset+int64(len(c.data)))
			if !l.parts[Part{n, i, s}] {
				copy(b[at:end], c.data[at-c.offset:])
			}
			at = end
		}
	}
	return resized(b, size)
}
